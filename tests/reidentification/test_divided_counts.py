"""Tasks of an engine count the candidates that one process counts."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from privacy_assets import LocalEngine, anonymize, assess_reidentification
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification import candidate_index, divided_counts
from privacy_assets.reidentification.candidate_index import CandidateIndex
from tests.anonymization.test_anonymize import options, plan, tables
from tests.engines import ShufflingEngine
from tests.examples import examples


def assert_equal_by(engine, *given, **named):
    found = assess_reidentification(*given, **named, engine=engine)
    expected = assess_reidentification(*given, **named)
    assert found == expected
    return expected


@given(tables(), options(), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_an_assessment_does_not_depend_on_the_tasks(drawn, chosen, data):
    table, names = drawn
    try:
        found = plan(table, names, **chosen)
    except InvalidSettingError:
        assume(False)
    engine = ShufflingEngine(rows_per_task=data.draw(st.integers(1, 12)), seed=data.draw(st.integers(1, 99)))
    sample = data.draw(st.sampled_from([None, 1, 5]))
    assert_equal_by(engine, table, found, max_known=data.draw(st.integers(1, 3)), curve_sample=sample)


def skewed_table(n_rows=1_500):
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n_rows) < 0.9, 40, rng.integers(18, 90, n_rows)),
            "income": rng.lognormal(8, 1, n_rows).round(-1),
            "empty": pd.Series([None] * n_rows, dtype="Int64"),
            "area": rng.choice(list("abcdef"), n_rows),
            # Some have very many records, and they are anywhere.
            "person": np.minimum(rng.geometric(0.004, n_rows), 600),
        }
    )


@pytest.mark.parametrize("subject", [None, "person"])
@pytest.mark.parametrize("curve_sample", [None, 50])
def test_one_value_in_most_rows_and_a_column_without_values(subject, curve_sample, monkeypatch):
    calls = []
    for name in ("count_in_boxes", "count_for_many_sets_by"):
        work = getattr(candidate_index, name)

        def watched(*given, work=work, name=name):
            calls.append(name)
            return work(*given)

        monkeypatch.setattr(candidate_index, name, watched)
    table = skewed_table()
    found = anonymize(table, quasi_identifiers=["age", "income", "empty", "area"], k=4, subject=subject)
    engine = ShufflingEngine(rows_per_task=200, rows_per_batch=40)
    assessed = assert_equal_by(engine, table, found, max_known=2, curve_sample=curve_sample)
    assert assessed.scores["fewest_candidates"] >= 4
    assert set(calls) == {"count_in_boxes", "count_for_many_sets_by"}


def test_progress_is_reported_before_and_after_each_job_and_may_end_the_work(monkeypatch):
    monkeypatch.setattr(divided_counts, "BOXES_AT_A_TIME", 40)
    table = skewed_table()
    found = anonymize(table, quasi_identifiers=["age", "income", "area"], k=4)
    index = CandidateIndex.of_anonymization(table, found)
    expected = index.sizes_of_sets([("age",), ("age", "income")], np.arange(100)), index.sizes(("age", "income"))
    index.engine = ShufflingEngine(rows_per_task=200, rows_per_batch=40)
    shares, waits = [], []
    of_sets = index.sizes_of_sets([("age",), ("age", "income")], np.arange(100), shares.append)
    of_all = index.sizes(("age", "income"), lambda: waits.append(1))
    assert np.array_equal(of_sets, expected[0])
    assert np.array_equal(of_all, expected[1])
    assert shares == [0, 1 / 3, 2 / 3, 1]
    assert len(waits) > 3

    def cancel(*_):
        raise KeyboardInterrupt

    for work in (lambda: index.sizes(("age",), cancel), lambda: index.sizes_of_sets([("age",)], np.arange(9), cancel)):
        with pytest.raises(KeyboardInterrupt):
            work()


def test_an_engine_that_does_not_divide_changes_nothing(monkeypatch):
    monkeypatch.setattr(candidate_index, "count_in_boxes", None)
    monkeypatch.setattr(candidate_index, "count_for_many_sets_by", None)
    table = skewed_table(300)
    found = anonymize(table, quasi_identifiers=["age", "income"], k=4)
    assert_equal_by(LocalEngine(), table, found)
