"""Sums of normal scores are those of all records at once, and do not depend on the engine."""

import math
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.synthesis.chunked_scores import (
    ROWS_PER_CHUNK,
    ScoreProducts,
    ScoreSumsByValue,
    ScoreTotals,
    generator_of,
    score_chunks,
)
from privacy_assets.synthesis.synthesize import synthesize
from tests.engines import ShufflingEngine
from tests.examples import examples


def drawn(random, n_records, sizes):
    """Cells of skewed sizes, and their upper ends; one in each size has no record."""
    cells = [np.minimum(random.geometric(0.4, n_records) - 1, n - 1) for n in sizes]
    uppers = [np.cumsum(np.bincount(own, minlength=n) / n_records) for own, n in zip(cells, sizes, strict=True)]
    for upper in uppers:
        upper[-1] = 1.0
    return cells, uppers


def scores_by_definition(cells, uppers, seed, rows_per_chunk):
    n_records = len(cells[0])
    scores = np.zeros((n_records, len(cells)))
    for begin in range(0, n_records, rows_per_chunk):
        rows = range(begin, min(begin + rows_per_chunk, n_records))
        within = generator_of(seed, begin // rows_per_chunk).random((len(rows), len(cells)))
        for row in rows:
            for j, upper in enumerate(uppers):
                own = cells[j][row]
                low = upper[own - 1] if own > 0 else 0.0
                place = low + within[row - begin, j] * (upper[own] - low)
                at_least = 0.5 / (n_records + 1)
                inner = min(max(place, at_least), 1 - at_least)
                scores[row, j] = NormalDist().inv_cdf(inner) if len(upper) > 1 else 0.0
    return scores


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 60),
    st.lists(st.sampled_from([1, 2, 5, 9]), min_size=1, max_size=4),
    st.sampled_from([1, 7, 20, 100]),
)
def test_sums_are_those_of_the_definition_and_of_every_engine_to_the_last_bit(seed, n_records, sizes, rows_per_chunk):
    random = np.random.default_rng(seed)
    cells, uppers = drawn(random, n_records, sizes)
    scores = scores_by_definition(cells, uppers, seed, rows_per_chunk)
    counted = [random.random(n) < 0.8 for n in sizes]
    counts = np.column_stack([own[of] for own, of in zip(counted, cells, strict=True)])
    means = random.normal(size=len(sizes))
    column = int(random.integers(len(sizes)))
    moved = random.permutation(sizes[column])

    def all_sums(engine):
        with score_chunks(engine, list(cells), uppers, seed, rows_per_chunk) as chunks:
            found = [chunks.add(each) for each in (ScoreTotals(counted), ScoreProducts(counted, means))]
            found.append(chunks.add(ScoreSumsByValue(column, sizes[column])))
            chunks.replace(column, moved[cells[column]], np.linspace(1 / sizes[column], 1, sizes[column]))
            return [*found, chunks.add(ScoreTotals(counted))]

    totals, products, of_values, after = all_sums(None)
    centered = [[(scores[i, j] - means[j]) * counts[i, j] for j in range(len(sizes))] for i in range(n_records)]
    for j in range(len(sizes)):
        assert totals[0, j] == counts[:, j].sum()
        assert totals[1, j] == pytest.approx(math.fsum(scores[:, j] * counts[:, j]), abs=1e-8)
        for k in range(len(sizes)):
            assert products[1, j, k] == pytest.approx(math.fsum(own[j] * own[k] for own in centered), abs=1e-8)
            squares = math.fsum(own[j] ** 2 * counts[i, k] for i, own in enumerate(centered))
            assert products[0, j, k] == pytest.approx(squares, abs=1e-8)
    others = [j for j in range(len(sizes)) if j != column]
    for value in range(sizes[column]):
        expected = [math.fsum(scores[cells[column] == value, j]) for j in others] or [0.0]
        assert of_values[value] == pytest.approx(expected, abs=1e-8)
    for j in others:
        assert after[1, j] == totals[1, j]
    engine = ShufflingEngine(rows_per_task=5, seed=seed + 1)
    for expected, found in zip([totals, products, of_values, after], all_sums(engine), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_records_of_more_than_one_chunk_do_not_depend_on_the_engine():
    random = np.random.default_rng(3)
    n_records = ROWS_PER_CHUNK + 500
    shared = random.normal(size=n_records)
    table = pd.DataFrame(
        {
            "age": (50 + 12 * shared + random.normal(size=n_records)).round(),
            "town": pd.Series(random.choice(["Como", "Arles", "Delft"], n_records, p=[0.9, 0.06, 0.04]), dtype=str),
            "level": pd.Series(np.digitize(shared, [-1, 0, 1]), dtype=str).str.replace("", "level"),
            "nothing": pd.Series([None] * (n_records - 1) + [1.0]),
        }
    )
    person = np.arange(n_records) // 2
    made = synthesize(table, method="gaussian_copula", seed=5, person=person)
    by_tasks = synthesize(
        table,
        method="gaussian_copula",
        seed=5,
        person=person,
        engine=ShufflingEngine(rows_per_batch=9_000, rows_per_task=10_000),
    )
    pd.testing.assert_frame_equal(by_tasks, made)
    # Nor are the records of the second chunk those of the first.
    assert not made["age"].iloc[ROWS_PER_CHUNK:].reset_index(drop=True).equals(made["age"].iloc[:500])


def test_another_method_learns_where_it_is_called():
    table = pd.DataFrame({"a": np.arange(300) % 7, "b": np.arange(300) % 3})
    pd.testing.assert_frame_equal(
        synthesize(table, method="cart", engine=ShufflingEngine()), synthesize(table, method="cart")
    )
