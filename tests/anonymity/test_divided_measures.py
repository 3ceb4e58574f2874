"""Tasks of an engine measure the classes of a table as one process does, to the last bit."""

from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import LocalEngine
from privacy_assets.anonymity import divided_measures, verify
from privacy_assets.anonymity.verify import verify_anonymity
from tests.engines import ShufflingEngine
from tests.examples import examples
from tests.mixed_tables import table_pairs


def assert_equal_by(engine, *given, **named):
    assert verify_anonymity(*given, **named, engine=engine) == verify_anonymity(*given, **named)


@given(table_pairs(max_columns=5, max_rows=40), st.data(), st.integers(1, 12))
@settings(max_examples=examples(100), deadline=None)
def test_the_report_does_not_depend_on_the_tasks(tables, data, rows_per_task):
    table = tables[0]
    names = data.draw(st.permutations(list(table.columns)))
    n_quasi = data.draw(st.integers(1, len(names)))
    quasi, sensitive = names[:n_quasi], names[n_quasi:]
    subject = sensitive.pop() if sensitive and data.draw(st.booleans()) else None
    engine = ShufflingEngine(rows_per_task=rows_per_task, seed=data.draw(st.integers(1, 99)))
    largest_l = data.draw(st.integers(1, 12))
    with patch.object(verify, "_can_divide", return_value=True):
        assert_equal_by(engine, table, quasi, sensitive, subject=subject, recursive_l=largest_l)


def skewed_table(n_rows=2_000):
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "area": np.where(rng.random(n_rows) < 0.9, 0, rng.integers(0, 50, n_rows)),
            "empty": pd.Series([None] * n_rows, dtype="Int64"),
            "illness": rng.zipf(1.5, n_rows) % 300,
            "cost": rng.lognormal(5, 1, n_rows).round(),
            "person": rng.integers(0, 700, n_rows),
        }
    )


@pytest.mark.parametrize("quasi_identifiers", [["area", "empty"], ["empty"], ["illness", "cost", "person"]])
def test_one_value_in_most_rows_one_class_and_classes_of_one_row(quasi_identifiers):
    table = skewed_table()
    others = [name for name in ("illness", "cost", "empty") if name not in quasi_identifiers]
    subject = None if "person" in quasi_identifiers else "person"
    # Fewer than the rows, but more than the values of each column.
    engine = ShufflingEngine(rows_per_task=700, rows_per_batch=30)
    assert_equal_by(engine, table, quasi_identifiers, others, subject=subject)
    assert_equal_by(engine, table, quasi_identifiers)


def test_a_column_of_more_values_than_rows_of_a_task_is_measured_here():
    class NoEngine(ShufflingEngine):
        def place(self, columns):
            raise AssertionError("placed")

    table = skewed_table(400)
    assert_equal_by(NoEngine(rows_per_task=table["cost"].nunique()), table, ["area"], ["illness", "cost"])
    with pytest.raises(AssertionError, match="placed"):
        verify_anonymity(table, ["area"], ["cost"], engine=NoEngine(rows_per_task=table["cost"].nunique() + 1))


def test_classes_are_shared_out_among_tasks(monkeypatch):
    n_of_tasks = []
    measure = divided_measures.measure_all

    def watched(classes, *given):
        n_of_tasks.append(len(classes.rows))
        return measure(classes, *given)

    monkeypatch.setattr(divided_measures, "measure_all", watched)
    table = pd.DataFrame({"area": np.arange(900) % 300, "illness": np.arange(900) % 7})
    assert_equal_by(LocalEngine(rows_per_task=100), table, ["area"], ["illness"])
    assert (len(n_of_tasks), sum(n_of_tasks), max(n_of_tasks)) == (9, 900, 102)
