"""A partition by tasks equals that of the kernels."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import anonymize
from privacy_assets.anonymization.divided_cuts import partition_by
from privacy_assets.anonymization.kernels.models import row_models
from privacy_assets.anonymization.kernels.mondrian import make_dimensions, partition_rows
from privacy_assets.anonymization.kernels.mondrian_rows import pack_rows
from tests.anonymization.kernels.mondrian_tables import classes_of, describe, even, heavy_neighbors, wide_table
from tests.engines import ShufflingEngine
from tests.examples import examples


def agree(engine, columns, n_values, dimensions, models):
    expected = partition_rows(pack_rows(columns, n_values), dimensions, models)
    found = partition_by(engine, columns, n_values, dimensions, models)
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


@pytest.mark.parametrize("seed", range(8))
def test_single_codes_are_counted_where_bins_are_too_coarse(seed):
    kinds, columns, k = heavy_neighbors(seed, 900)
    dimensions, n_values = describe(kinds, columns)
    agree(ShufflingEngine(rows_per_task=100, rows_per_batch=50), columns, n_values, dimensions, row_models(k))


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


@pytest.mark.parametrize("more", [{}, {"relaxed": True}, {"bounds": "cell"}, {"subject": "person"}, {"l_diversity": 2}])
def test_an_anonymization_does_not_depend_on_the_engine(more):
    rng = np.random.default_rng(8)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, 600),
            "income": rng.normal(40, 15, 600).round(1),
            "region": pd.Series(rng.choice(["north", "south", "east"], 600, p=[0.9, 0.06, 0.04]), dtype=str),
            "illness": pd.Series(rng.choice(["a", "b", "c"], 600), dtype=str),
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
            sensitive=["illness"],
            n_threads=1,
            engine=engine,
            **more,
        )
        for engine in (None, ShufflingEngine(rows_per_task=80))
    )
    assert found == expected
    assert expected.stats["n_classes"] > 3
