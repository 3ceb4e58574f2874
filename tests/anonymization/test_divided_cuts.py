"""A partition by tasks equals that of the kernels."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import anonymize
from privacy_assets.anonymization import classes_by_cuts, divided_counts
from privacy_assets.anonymization.divided_cuts import partition_by
from privacy_assets.anonymization.kernels.models import DISTINCT, row_models
from privacy_assets.anonymization.kernels.mondrian import make_dimensions, partition_rows
from privacy_assets.anonymization.kernels.mondrian_rows import pack_rows
from tests.anonymization.kernels.mondrian_tables import (
    classes_of,
    describe,
    even,
    heavy_neighbors,
    limits,
    models_of_one,
    wide_table,
)
from tests.engines import ShufflingEngine
from tests.examples import examples


def agree(engine, columns, n_values, dimensions, models, person=None, sensitive=None):
    expected = partition_rows(pack_rows(columns, n_values), dimensions, models, person=person, sensitive=sensitive)
    found = partition_by(engine, columns, n_values, dimensions, models, person, sensitive)
    assert found.begins.tolist() == expected.begins.tolist()
    assert found.cuts.tolist() == expected.cuts.tolist()
    assert [sorted(own) for own in classes_of(found)] == [sorted(own) for own in classes_of(expected)]
    assert found.records.dtype == expected.records.dtype
    return expected


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([60, 250, 700]),
    st.lists(st.tuples(st.booleans(), st.sampled_from([1, 2, 7, 40, 700, 5000])), min_size=1, max_size=4),
    st.sampled_from([1, 2, 9, 40]),
    st.sampled_from([20, 50, 150]),
    st.booleans(),
)
def test_tasks_cut_like_the_kernels(seed, n_rows, kinds, k, rows_per_task, is_by_range):
    random = np.random.default_rng(seed)
    columns = [np.minimum(random.geometric(4 / n, n_rows) - 1 if n > 4 else random.integers(0, n, n_rows), n - 1)
               for _, n in kinds]  # fmt: skip
    n_values = [n for _, n in kinds]
    dimensions = make_dimensions([even(n) if is_ordered else None for is_ordered, n in kinds], n_values)
    engine = ShufflingEngine(rows_per_task=rows_per_task, seed=seed + 1)
    agree(engine, columns, n_values, dimensions, row_models(k, is_by_range=is_by_range))


@settings(max_examples=examples(80), deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([60, 250, 700]),
    st.lists(st.tuples(st.booleans(), st.sampled_from([1, 2, 7, 40, 700, 5000])), min_size=1, max_size=4),
    st.sampled_from([1, 2, 9, 40]),
    st.sampled_from([20, 50, 150]),
    st.booleans(),
    st.sampled_from([1.0, 1.3, 3.0, 20.0]),
)
def test_tasks_count_people_like_the_kernels(seed, n_rows, kinds, k, rows_per_task, is_by_range, rows_per_person):
    random = np.random.default_rng(seed)
    columns = [np.minimum(random.geometric(4 / n, n_rows) - 1 if n > 4 else random.integers(0, n, n_rows), n - 1)
               for _, n in kinds]  # fmt: skip
    n_people = max(int(n_rows / rows_per_person), 1)
    # Some have many rows, and the rows of a person are anywhere.
    person = np.minimum(random.geometric(2 / n_people, n_rows) - 1 if n_people > 2 else 0, n_people - 1) + np.zeros(
        n_rows, np.int32
    )
    if rows_per_person == 1.0:
        person = random.permutation(n_rows)
    n_values = [n for _, n in kinds]
    dimensions = make_dimensions([even(n) if is_ordered else None for is_ordered, n in kinds], n_values)
    models = row_models(k, is_by_range=is_by_range)._replace(counts_people=True)
    engine = ShufflingEngine(rows_per_task=rows_per_task, seed=seed + 1)
    agree(engine, columns, n_values, dimensions, models, np.unique(person, return_inverse=True)[1].astype(np.int32))


@settings(max_examples=examples(120), deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([60, 250, 700]),
    st.lists(st.tuples(st.booleans(), st.sampled_from([1, 2, 7, 40, 700, 5000])), min_size=1, max_size=4),
    st.sampled_from([1, 2, 9]),
    st.sampled_from([20, 50, 150]),
    st.sampled_from([2, 3, 12]),
    limits(),
    st.booleans(),
    st.booleans(),
)
def test_tasks_count_sensitive_values_like_the_kernels(
    seed, n_rows, kinds, k, rows_per_task, n_secrets, limits_of_one, is_by_range, by_people
):
    random = np.random.default_rng(seed)
    columns = [np.minimum(random.geometric(4 / n, n_rows) - 1 if n > 4 else random.integers(0, n, n_rows), n - 1)
               for _, n in kinds]  # fmt: skip
    # The sensitive values depend on a column, so that cuts are not alike on both sides.
    secret = (random.geometric(0.4, n_rows) + columns[0] * random.integers(0, 2)) % n_secrets
    secret = np.unique(secret, return_inverse=True)[1].astype(np.int32)
    person = np.unique(random.integers(0, n_rows, n_rows), return_inverse=True)[1].astype(np.int32)
    n_values = [n for _, n in kinds]
    dimensions = make_dimensions([even(n) if is_ordered else None for is_ordered, n in kinds], n_values)
    models = models_of_one(k, secret, *limits_of_one[0], is_by_range=is_by_range, by_people=by_people)
    engine = ShufflingEngine(rows_per_task=rows_per_task, seed=seed + 1)
    agree(engine, columns, n_values, dimensions, models, person if by_people else None, secret[:, None])


@pytest.mark.parametrize("most_cells", [1, 5_000, divided_counts.MOST_CELLS])
def test_classes_are_counted_by_value_in_groups_that_fit_into_memory(monkeypatch, most_cells):
    monkeypatch.setattr(divided_counts, "MOST_CELLS", most_cells)
    passes, add_up = [], divided_counts.add_up

    def watched(engine, batches, count, n_bins):
        passes.append(n_bins)
        return add_up(engine, batches, count, n_bins)

    monkeypatch.setattr(divided_counts, "add_up", watched)
    random = np.random.default_rng(5)
    columns, n_values = [random.integers(0, 300, 2_000), random.integers(0, 5, 2_000)], [300, 5]
    secret = random.integers(0, 4, 2_000).astype(np.int32)
    models = models_of_one(5, secret, DISTINCT, 3.0)
    expected = agree(
        ShufflingEngine(rows_per_task=100, rows_per_batch=100), columns, n_values,
        make_dimensions([even(300), None], n_values), models, sensitive=secret[:, None],
    )  # fmt: skip
    assert len(expected.begins) > 50
    # Each pass ends with the class that reaches the limit.
    assert max(passes) < most_cells + 4 * 305
    assert len(passes) > (10 if most_cells == 1 else 1)


@pytest.mark.parametrize("most_of", ["rows of one value", "rows of one person"])
def test_what_has_most_rows_does_not_change_what_is_counted(most_of):
    random = np.random.default_rng(4)
    codes, person = random.integers(0, 300, 2_000), random.integers(0, 900, 2_000)
    is_of_one = np.arange(2_000) % 10 > 0
    if most_of == "rows of one value":
        codes[is_of_one] = 7
    else:
        person[is_of_one] = 7
    columns, n_values = [codes, random.integers(0, 5, 2_000), np.zeros(2_000, np.int64)], [300, 5, 1]
    dimensions = make_dimensions([even(300), None, None], n_values)
    models = row_models(5)._replace(counts_people=True)
    person = np.unique(person, return_inverse=True)[1].astype(np.int32)
    expected = agree(
        ShufflingEngine(rows_per_task=100, rows_per_batch=30), columns, n_values, dimensions, models, person
    )
    assert len(expected.begins) > 3


@pytest.mark.parametrize("has_values", [False, True])
@pytest.mark.parametrize("has_people", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_single_codes_are_counted_where_bins_are_too_coarse(seed, has_people, has_values):
    kinds, columns, k = heavy_neighbors(seed, 900)
    dimensions, n_values = describe(kinds, columns)
    n_rows = len(columns[0])
    person = np.random.default_rng(seed).permutation(n_rows).astype(np.int32) if has_people else None
    secret = np.random.default_rng(seed + 1).integers(0, 5, n_rows).astype(np.int32)
    of_values = (DISTINCT, 5.0) if has_values else ()
    models = models_of_one(k, secret, *of_values, by_people=has_people)
    engine = ShufflingEngine(rows_per_task=100, rows_per_batch=50)
    agree(engine, columns, n_values, dimensions, models, person, secret[:, None])


def test_wide_codes_and_classes_that_cannot_be_cut():
    kinds, columns = wide_table(2_000)
    columns[0] = np.where(np.arange(2_000) % 10 > 0, columns[0][0], columns[0])
    dimensions, n_values = describe(kinds, columns)
    n_values[1] = 70_000
    dimensions = make_dimensions(
        [even(n) if kind == "ordered" else None for kind, n in zip(kinds, n_values, strict=True)], n_values
    )
    for k in (3, 400):
        expected = agree(
            ShufflingEngine(rows_per_task=200, rows_per_batch=100), columns, n_values, dimensions, row_models(k)
        )
        assert len(expected.begins) > 1


@pytest.mark.parametrize(
    ("more", "n_divided"),
    [
        ({}, 2),
        ({"relaxed": True}, 2),
        ({"bounds": "cell"}, 2),
        ({"subject": "person"}, 2),
        ({"l_diversity": 2}, 2),
        ({"l_diversity": {"illness": 2}, "t_closeness": {"ward": 0.4}, "subject": "person"}, 2),
        ({"t_closeness": {"illness": 0.2}, "max_suppression": 0.2}, 4),
        # 600 different values are too many: all rows are cut here, but not where classes are left out.
        ({"t_closeness": {"cost": 0.3}, "max_suppression": 0.2}, 2),
    ],
)
def test_an_anonymization_does_not_depend_on_the_engine(monkeypatch, more, n_divided):
    used = []

    def watched(*given):
        used.append(given)
        return partition_by(*given)

    monkeypatch.setattr(classes_by_cuts, "partition_by", watched)
    rng = np.random.default_rng(8)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 600),
            "income": rng.normal(40, 15, 600).round(1),
            "region": pd.Series(rng.choice(["north", "south", "east"], 600, p=[0.9, 0.06, 0.04]), dtype=str),
            "illness": pd.Series(rng.choice(["a", "b", "c"], 600), dtype=str),
            "ward": rng.integers(0, 4, 600),
            "cost": rng.permutation(600),
            "person": rng.integers(0, 400, 600),
        }
    )
    if "subject" not in more:
        table = table.drop(columns="person")
    expected, found = (
        anonymize(
            table,
            quasi_identifiers=["age", "income", "region"],
            k=5,
            sensitive=["illness"] if more.get("l_diversity") == 2 else ["illness", "ward", "cost"],
            n_threads=1,
            engine=engine,
            **more,
        )
        for engine in (None, ShufflingEngine(rows_per_task=80))
    )
    assert found == expected
    assert len(used) == n_divided
    assert expected.stats["n_classes"] > 3
