"""Columns that depend on each other are found; columns of noise, also of noise that depends on itself, are apart."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, norm, rankdata

from privacy_assets.columns.coding import encode_column, read_column
from privacy_assets.columns.dependence import LEVEL, MOST_ROWS, _classes, columns_alone, ranks_of, related_columns

N = 2_000


def latent(n_columns, seed, n=N, n_values=6):
    random = np.random.default_rng(seed)
    z = random.normal(size=(n, 1)) + random.normal(size=(n, n_columns))
    return [np.clip(np.floor(own + 3), 0, n_values - 1).astype(int) for own in z.T]


def noise(n_columns, seed, n=N, n_values=6):
    return list(np.random.default_rng(seed).integers(0, n_values, (n_columns, n)))


def test_noise_beside_columns_that_depend_on_each_other_is_left_out():
    assert related_columns([*latent(4, 0), *noise(14, 1)], [True] * 18) == [[0, 1, 2, 3]]
    assert related_columns([*noise(3, 1), *latent(4, 0)], [False] * 7) == [[3, 4, 5, 6]]


def test_noise_that_depends_on_itself_is_a_group_of_its_own():
    groups = related_columns([*latent(4, 0), *latent(6, 5), *noise(2, 9)], [True] * 12)
    assert groups == [[4, 5, 6, 7, 8, 9], [0, 1, 2, 3]]


@pytest.mark.parametrize("n_values", [2, 6, 300, N])
def test_independent_columns_are_rarely_related(n_values):
    found = [related_columns(noise(12, seed, n_values=n_values), [seed % 2 == 0] * 12) for seed in range(40)]
    assert sum(map(bool, found)) <= 1


def test_a_relation_that_is_no_trend_is_seen():
    random = np.random.default_rng(2)
    x = random.integers(0, 40, N)
    assert related_columns([x, abs(x - 20) + random.integers(0, 3, N)], [True, True]) == [[0, 1]]


def test_the_decision_is_that_of_a_chi_square_test_of_categories():
    random = np.random.default_rng(3)
    seen = set()
    for strength in np.linspace(0, 0.3, 40):
        a, b = random.integers(0, 4, (2, N))
        b = np.where(random.random(N) < strength, a, b)
        table = np.zeros((4, 4))
        np.add.at(table, (a, b), 1)
        is_related = chi2_contingency(table, correction=False).pvalue <= LEVEL
        assert bool(related_columns([a, b], [False, False])) == is_related
        seen.add(is_related)
    assert seen == {True, False}


def test_the_decision_is_that_of_two_tests_on_repeated_rows():
    random = np.random.default_rng(4)
    seen = set()
    for _ in range(200):
        n, is_ordered = int(random.integers(30, 200)), random.random(2) < 0.7
        z, strength = random.normal(size=n), random.choice([-0.5, 0.3, 0.5, 1], (2, 1))
        values = np.floor(random.choice([1, 2, 30]) * (strength * z + random.normal(size=(2, n))))
        codes = [np.unique(own, return_inverse=True)[1] for own in values]
        times = random.integers(1, 4, n)
        classes = [_classes(own, times.astype(float), order) for own, order in zip(codes, is_ordered, strict=True)]
        table = np.zeros(np.max(classes, axis=1) + 1)
        np.add.at(table, tuple(np.repeat(own, times) for own in classes), 1)
        p_values = [chi2_contingency(table, correction=False).pvalue, 1.0]
        r = 0.0
        if is_ordered.all():
            r = np.corrcoef(*(np.repeat(rankdata(own), times) for own in codes))[0, 1]
            p_values[1] = 2 * norm.sf(abs(r) * np.sqrt(times.sum() - 1))
        assert bool(related_columns(codes, is_ordered.tolist(), times)) == (min(p_values) <= LEVEL)
        seen.add((p_values[0] <= LEVEL, p_values[1] <= LEVEL, r < 0))
    assert {(False, True, True), (False, True, False), (True, False, False), (False, False, False)} <= seen


def test_weights_count_records_and_rows_are_drawn_without_a_seed():
    a, b = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
    alike = np.where(a == b, 500, 20)
    assert related_columns([a, b], [False, False], alike) == [[0, 1]]
    assert related_columns([a, b], [False, False], np.full(16, 100)) == []
    large = latent(2, 0, n=MOST_ROWS * 3)
    assert related_columns(large, [True, True]) == related_columns(large, [True, True]) == [[0, 1]]


def test_constant_columns_and_single_columns_are_in_no_group():
    assert related_columns([np.zeros(50, int), np.arange(50)], [True, True]) == []
    # Expected counts are rounded.
    for seed in range(20):
        random = np.random.default_rng(seed)
        times, column = random.integers(1, 1_000_000, 50), random.integers(0, 7, 50)
        assert related_columns([np.zeros(50, int), column], [seed % 2 == 0] * 2, times / 7) == []
    assert related_columns([np.arange(50)], [True]) == []


def test_columns_alone_are_at_least_three_and_not_all():
    assert columns_alone([*latent(2, 0), *noise(5, 1)], [True] * 7) == []
    assert columns_alone(latent(5, 0), [True] * 5) == []
    assert columns_alone([*latent(3, 0), *noise(1, 1)], [True] * 4) == [[0, 1, 2]]


@pytest.mark.parametrize(
    "values",
    [
        [10, 9, None, -3, 100],
        [0.5, 10.25, -2.0, None, 9.0],
        pd.to_timedelta(["3 days", "20 days", None, "-1 days", "100 s"]),
        pd.to_datetime(["2020-05-01 09:00", "1999-12-31 00:00", None, "2020-05-01 10:00", "2021-01-01 00:00"]),
        ["b", "a", None, "ab", "c"],
        [2**60 + 5, 3, None, -(2**60), 2**50],
    ],
)
def test_ranks_are_in_the_order_of_values_and_not_of_their_appearance(values):
    column = pd.Series(values)
    encoded = encode_column([read_column(column, "A column")])
    ranks = ranks_of(encoded.labels, encoded.kind)[encoded.codes[0]]
    known = column.dropna()
    expected = {value: place for place, value in enumerate(sorted(known.unique()))}
    assert ranks.tolist() == [expected.get(value, len(expected)) for value in column]
