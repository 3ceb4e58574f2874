"""The compiled search agrees with enumeration on tables large enough for every shortcut it takes."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.mpucc.kernels.code_blocks import group_by_width, suffix_groups
from privacy_assets.mpucc.kernels.search import SearchInput, find_mpuccs
from tests.examples import examples
from tests.reference import mpucc as reference


def skewed_rows(rng, n_rows, n_values):
    """Rows whose low codes are frequent, so that classes are large and rare values are identified."""
    return np.column_stack([np.minimum(rng.geometric(0.5, n_rows) - 1, n - 1) for n in n_values])


def search(original, synthetic, n_values, max_size, **arguments):
    """Search tables of plain codes; the columns are handed over in search order."""
    order = reference.search_order([tuple(row) for row in synthetic])
    rows = np.concatenate([synthetic, original])
    weights = arguments.pop("weights", np.ones(len(rows), np.int32))
    columns = [rows[:, c] for c in order]
    codes = [n_values[c] for c in order]
    n_threads = arguments.pop("n_threads", 1)
    asked = SearchInput(columns, codes, len(synthetic), weights, max_size, **arguments)
    return find_mpuccs(asked, n_threads), order


def check(found, order, original, synthetic, max_size):
    """Compare records, unique counts, and what was left out, with enumeration."""
    original, synthetic = ([tuple(row) for row in rows.tolist()] for rows in (original, synthetic))
    expected = reference.find(original, synthetic, max_size)
    combos = [tuple(order[c] for c in combo[:size]) for combo, size in zip(found.combos, found.sizes, strict=True)]
    records = {
        s: (combos[found.combo_of_row[s]], found.partner_of_row[s]) for s in np.flatnonzero(found.combo_of_row >= 0)
    }
    assert records == expected
    assert found.profile.n_unique.tolist() == [reference.n_unique(synthetic, combo) for combo in combos]
    everything = reference.all_combinations(order, max_size)
    assert combos == [combo for combo in everything if combo in set(combos)]
    exhausted = {combo for combo, is_exhausted in zip(combos, found.was_exhausted, strict=True) if is_exhausted}
    for combo in set(everything) - set(combos):
        assert any(combo[:size] in exhausted for size in range(1, len(combo)))


@pytest.mark.parametrize("seed", range(6))
def test_large_classes_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    n_values = [3, 2, 6, 4, 2, 5]
    original, synthetic = (skewed_rows(rng, n, n_values) for n in (150, 170))
    original, synthetic = (np.unique(rows, axis=0) for rows in (original, synthetic))
    found, order = search(original, synthetic, n_values, 6, n_threads=2)
    check(found, order, original, synthetic, 6)


@pytest.mark.parametrize("seed", range(4))
def test_equal_rows_agree_with_enumeration_of_every_copy(seed):
    rng = np.random.default_rng(seed)
    n_values = [3, 2, 4, 3, 5]
    original, synthetic = (skewed_rows(rng, n, n_values) for n in (130, 110))
    found, order = search(original, synthetic, n_values, 5, n_threads=1)
    check(found, order, original, synthetic, 5)
    parts = [np.unique(rows, axis=0, return_counts=True) for rows in (synthetic, original)]
    weights = np.concatenate([counts for _, counts in parts]).astype(np.int32)
    for n_threads in (1, 3):
        weighted, _ = search(parts[1][0], parts[0][0], n_values, 5, weights=weights, alpha=2.0, n_threads=n_threads)
        assert weighted.profile.n_unique.tolist() == found.profile.n_unique.tolist()
        assert sorted(weighted.combo_of_row[weighted.combo_of_row >= 0]) == sorted(
            found.combo_of_row[found.combo_of_row >= 0]
        )
        rows = [tuple(row) for row in synthetic.tolist()]
        for combo, size, value in zip(weighted.combos, weighted.sizes, weighted.profile.entropy, strict=True):
            assert np.isclose(value, reference.entropy(rows, [order[c] for c in combo[:size]], 2.0), atol=1e-12)


@pytest.mark.parametrize("widths", [(200, 300), (300, 70_000), (70_000, 200), (256, 65_536)])
def test_codes_of_every_width_agree_with_enumeration(widths):
    rng = np.random.default_rng(7)
    pools = [rng.choice(n, 12, replace=False) for n in widths]
    tables = [np.column_stack([rng.choice(pool, 40) for pool in pools]) for _ in range(2)]
    found, order = search(*tables, list(widths), 2)
    check(found, order, *tables, 2)


@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 60), st.integers(1, 5))
@settings(max_examples=examples(60), deadline=None)
def test_threads_never_change_a_result(seed, n_original, n_synthetic, n_columns):
    rng = np.random.default_rng(seed)
    n_values = rng.integers(1, 6, n_columns).tolist()
    tables = [skewed_rows(rng, n, n_values) for n in (n_original, n_synthetic)]
    results = [search(*tables, n_values, n_columns, alpha=1.0, n_threads=n)[0] for n in (1, 2, 3)]
    check(results[0], search(*tables, n_values, n_columns)[1], *tables, n_columns)
    for other in results[1:]:
        for first, second in zip(results[0][:4], other[:4], strict=True):
            assert np.array_equal(first, second)
        assert np.array_equal(results[0].combo_of_row, other.combo_of_row)
        assert np.array_equal(results[0].partner_of_row, other.partner_of_row)
        assert np.array_equal(results[0].profile.entropy, other.profile.entropy)


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 40), st.integers(1, 5), st.integers(1, 7))
@settings(max_examples=examples(60), deadline=None)
def test_the_size_of_batches_changes_no_record(seed, n_original, n_synthetic, n_columns, batch):
    rng = np.random.default_rng(seed)
    n_values = rng.integers(1, 6, n_columns).tolist()
    tables = [skewed_rows(rng, n, n_values) for n in (n_original, n_synthetic)]
    at_once, _ = search(*tables, n_values, n_columns)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privacy_assets.mpucc.kernels.search.BATCH", batch)
        one, two = (search(*tables, n_values, n_columns, n_threads=n)[0] for n in (1, 2))
    for found in (one, two):
        combos, expected = (
            [tuple(each.combos[place, : each.sizes[place]]) if place >= 0 else None for place in each.combo_of_row]
            for each in (found, at_once)
        )
        assert combos == expected
        assert np.array_equal(found.partner_of_row, at_once.partner_of_row)
    assert np.array_equal(one.combos, two.combos)
    # A search in batches checks less, never more.
    assert {tuple(row) for row in one.combos} <= {tuple(row) for row in at_once.combos}


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 40), st.integers(1, 5), st.booleans(), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_only_sought_rows_and_combinations_with_the_first_column_are_searched(
    seed, n_original, n_synthetic, n_columns, only_with_first, by_person
):
    rng = np.random.default_rng(seed)
    n_values = rng.integers(1, 5, n_columns).tolist()
    original, synthetic = (np.unique(skewed_rows(rng, n, n_values), axis=0) for n in (n_original, n_synthetic))
    is_sought = rng.random(len(synthetic)) < 0.5
    subjects = np.concatenate([np.zeros(len(synthetic)), np.arange(len(original))]).astype(np.int32)
    found, order = search(
        original,
        synthetic,
        n_values,
        n_columns,
        is_sought=is_sought,
        only_with_first=only_with_first,
        subjects=subjects if by_person else None,
    )
    rows = ([tuple(row) for row in rows.tolist()] for rows in (original, synthetic))
    expected = reference.find(*rows, n_columns, lambda combo: not only_with_first or combo[0] == order[0])
    records = {
        s: tuple(order[c] for c in found.combos[found.combo_of_row[s]] if c >= 0)
        for s in np.flatnonzero(found.combo_of_row >= 0)
    }
    assert records == {s: combo for s, (combo, _) in expected.items() if is_sought[s]}


@given(st.integers(0, 2**32), st.integers(2, 6), st.integers(1, 40))
@settings(max_examples=examples(60), deadline=None)
def test_a_search_ends_before_the_size_that_would_check_too_much(seed, n_columns, most):
    rng = np.random.default_rng(seed)
    n_values = rng.integers(1, 4, n_columns).tolist()
    tables = [skewed_rows(rng, n, n_values) for n in (30, 35)]
    found, order = search(*tables, n_values, n_columns, max_combinations=most)
    assert len(found.sizes) <= most
    if found.complete_size == 0:
        assert n_columns > most
        return
    check(found, order, *tables, found.complete_size)
    if found.complete_size < n_columns:
        further, _ = search(*tables, n_values, found.complete_size + 1)
        n_live = int((~found.was_exhausted & (found.sizes == found.complete_size)).sum())
        assert n_live > 0
        assert len(found.sizes) + n_live * n_columns > most
        assert len(further.sizes) >= len(found.sizes)


@pytest.mark.parametrize(("n_original", "n_synthetic"), [(0, 0), (0, 2), (2, 0), (1, 1), (2, 2)])
@pytest.mark.parametrize("n_columns", [0, 1, 3, 4])
def test_tables_of_no_one_and_two_rows_work(n_original, n_synthetic, n_columns):
    rows = np.arange(2)[:, None] + np.zeros((2, n_columns), int)
    columns = [np.concatenate([rows[:n_synthetic, c], rows[:n_original, c]]) for c in range(n_columns)]
    weights = np.ones(n_synthetic + n_original, np.int32)
    found = find_mpuccs(SearchInput(columns, [2] * n_columns, n_synthetic, weights, max(n_columns, 1)), 2)
    n_pairs = min(n_original, n_synthetic) if n_columns else 0
    assert (found.combo_of_row >= 0).sum() == n_pairs


def exact_entropy(sizes, alpha):
    """Renyi entropy of classes of these sizes, of 50 digits, as a share of its largest value."""
    with localcontext(prec=50, Emin=-(10**15), Emax=10**15):
        shares = [Decimal(size) / sum(sizes) for size in sizes]
        power_sum = sum(share ** Decimal(alpha) for share in shares)
        return float(power_sum.ln() / (1 - Decimal(alpha)) / Decimal(sum(sizes)).ln())


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 0.5, 0.95, 1 - 1e-9, 1 + 1e-15, 1 + 1e-6, 1.5, 29.0, 31.0, 900.0, 1e7])
@pytest.mark.parametrize("sizes", [[1] * 40, [16, 12, 8, 2, 1, 1], [39, 1], [40], [8] * 5, [1, 1, 9, 29]])
def test_entropies_of_any_order_keep_their_digits(sizes, alpha):
    # Powers of a high order underflowed, so that every entropy was 1; near order 1 the logarithm of the sum cancelled.
    column = np.repeat(np.arange(len(sizes)), sizes)
    columns = [np.concatenate([column, column])] * 2
    weights = np.ones(len(columns[0]), np.int32)
    found = find_mpuccs(SearchInput(columns, [len(sizes)] * 2, len(column), weights, 2, alpha=alpha))
    assert np.allclose(found.profile.entropy, exact_entropy(sizes, alpha), rtol=1e-9, atol=1e-12)


def test_the_order_of_an_entropy_has_no_steps():
    rows = skewed_rows(np.random.default_rng(8), 500, [6, 4, 3])
    weights = np.ones(1000, np.int32)

    def entropies(alpha):
        columns = [np.tile(rows[:, c], 2) for c in range(3)]
        return find_mpuccs(SearchInput(columns, [6, 4, 3], 500, weights, 3, alpha=alpha)).profile.entropy

    for left, right in (
        (0.9, 0.9 + 1e-12),
        (1 - 1e-12, 1.0),
        (1.1 - 1e-12, 1.1),
        (30.0, 30.0 + 1e-11),
        (1e300, np.inf),
    ):
        assert np.allclose(entropies(left), entropies(right), atol=1e-9)


def test_suffix_groups_are_rows_that_agree_from_a_column_on():
    rng = np.random.default_rng(3)
    rows = skewed_rows(rng, 300, [4, 3, 2, 3])
    groups = suffix_groups(group_by_width(list(rows.T), [4, 3, 2, 3]))
    assert groups.first == 0
    for c, ids in enumerate(groups.ids):
        pairs = {(tuple(row), i) for row, i in zip(rows[:, c:].tolist(), ids.tolist(), strict=True)}
        assert len(pairs) == len({row for row, _ in pairs}) == len({i for _, i in pairs})
        assert max(i for _, i in pairs) < groups.n_groups
