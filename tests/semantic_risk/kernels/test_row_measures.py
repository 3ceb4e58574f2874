"""Risks and suppression agree with the full lattice and with the enumeration of all subsets."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.kernels import slices
from privacy_assets.semantic_risk.kernels import search
from privacy_assets.semantic_risk.kernels.formal_context import make_context, pack_patterns, unpack_rows
from privacy_assets.semantic_risk.kernels.row_measures import find_greatest_subset, measure_rows
from privacy_assets.semantic_risk.kernels.search import search_semantic_risks
from tests.examples import examples
from tests.random_contexts import as_context, contexts, random_rows
from tests.reference import formal_concepts as reference


def packed(rows, universe):
    """The context in bits, and the row of each record in it."""
    context = as_context(rows, universe)
    return context.packed, context.row_of_record


def lacked_attribute(rows, universe, row):
    """The first attribute that most of the records with the attributes of a row have besides; -1 if there is none."""
    besides = {a: sum(row < other and a in other for other in rows) for a in sorted(universe - row)}
    most = max(besides.values(), default=0)
    return next((a for a, n in besides.items() if n == most > 0), -1)


@given(contexts(), st.sampled_from([1, 2]))
@settings(max_examples=examples(150), deadline=None)
def test_every_risk_agrees_with_the_lattice(drawn, n_threads):
    rows, universe = drawn
    context, row_of_record = packed(rows, universe)
    measures = measure_rows(context, n_threads)
    risks = search_semantic_risks(context, measures, n_threads).risks
    lattice = reference.concepts(rows, universe)
    basic = reference.basic_semantic_risk(rows, universe, lattice)
    assert [Fraction(1, int(d)) for d in measures.differences[row_of_record]] == basic
    assert measures.differences[row_of_record].tolist() == reference.differences(rows, universe)
    assert measures.extents[row_of_record].tolist() == [len(reference.extent(rows, row)) for row in rows]
    semantic = reference.semantic_risk(rows, universe, lattice)
    assert risks[row_of_record] == pytest.approx([float(risk) for risk in semantic], rel=1e-14)
    assert measures.lacked[row_of_record].tolist() == [lacked_attribute(rows, universe, row) for row in rows]
    for g, (own, risk) in enumerate(zip(basic, semantic, strict=True)):
        ladder = [Fraction(1, int(measures.extents[row_of_record[g]])), own, reference.classical_risk(rows, g)]
        assert ladder == sorted(ladder)
        assert risk <= own


@given(contexts(), st.integers(1, 5), st.sampled_from([1, 2]))
@settings(max_examples=examples(120), deadline=None)
def test_what_is_kept_is_the_greatest_acceptable_subset(drawn, k, n_threads):
    rows, universe = drawn
    context, row_of_record = packed(rows, universe)
    rounds = []
    found = find_greatest_subset(context, measure_rows(context), k, n_threads, rounds.append)
    kept = frozenset(np.flatnonzero(found.is_kept[row_of_record]).tolist())
    greatest, acceptable = reference.greatest_acceptable_subset(rows, universe, k)
    assert kept == greatest
    assert kept in acceptable
    own = [rows[g] for g in sorted(kept)]
    assert found.differences[row_of_record][sorted(kept)].tolist() == reference.differences(own, universe)
    assert rounds == list(found.rounds)
    assert len(rows) - sum(one.n_removed for one in found.rounds) == found.rounds[-1].n_records == len(kept)


@given(contexts(), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_a_difference_never_falls_when_records_are_added(drawn, data):
    rows, universe = drawn
    added = data.draw(st.lists(st.frozensets(st.sampled_from(sorted(universe))), max_size=4))
    before, row_before = packed(rows, universe)
    after, row_after = packed(rows + added, universe)
    d_before, d_after = measure_rows(before).differences, measure_rows(after).differences
    assert (d_after[row_after[: len(rows)]] >= d_before[row_before]).all()


@given(contexts(), st.integers(1, 5), st.randoms(use_true_random=False))
@settings(max_examples=examples(100), deadline=None)
def test_any_order_of_removal_ends_at_the_same_records(drawn, k, random):
    rows, universe = drawn
    context, row_of_record = packed(rows, universe)
    kept = np.flatnonzero(find_greatest_subset(context, measure_rows(context), k).is_kept[row_of_record]).tolist()
    left = list(range(len(rows)))
    while True:
        ds = reference.differences([rows[g] for g in left], universe)
        bad = [g for g, d in zip(left, ds, strict=True) if d < k]
        if not bad:
            break
        left.remove(random.choice(bad))
    assert left == kept


@pytest.mark.parametrize(("n_records", "n_attributes", "share"), [(400, 70, 0.04), (300, 130, 0.02), (500, 12, 0.6)])
def test_wide_contexts_agree_with_the_formula(n_records, n_attributes, share):
    rows = random_rows(1, n_records, n_attributes, share)
    universe = frozenset(range(n_attributes))
    context, row_of_record = packed(rows, universe)
    measures = measure_rows(context, 2)
    assert measures.differences[row_of_record].tolist() == reference.differences(rows, universe)
    including = [sum(row <= other for other in set(rows)) for row in rows]
    assert measures.n_including[row_of_record].tolist() == including


def test_only_the_end_of_a_chain_goes_if_the_others_are_pairs():
    rows = [frozenset(range(n)) for n in range(8) for _ in range(1 if n == 7 else 2)]
    context, row_of_record = packed(rows, frozenset(range(7)))
    found = find_greatest_subset(context, measure_rows(context), 2)
    assert [one.n_removed for one in found.rounds] == [1, 0]
    assert found.is_kept[row_of_record].tolist() == [True] * 14 + [False]


@pytest.mark.parametrize("max_words", [40, 1_000, 4_000, 10**9])
def test_a_search_beyond_its_bound_says_so_and_finds_the_same_on_any_threads(max_words):
    rows = [*random_rows(0, 60, 12, 0.5), frozenset()]
    context, row_of_record = packed(rows, frozenset(range(12)))
    measures = measure_rows(context)
    exact = search_semantic_risks(context, measures)
    bounded = [search_semantic_risks(context, measures, n, max_words) for n in (1, 2, 3)]
    is_open = np.isnan(bounded[0].risks)
    assert is_open[row_of_record[-1]] == (max_words < 10**9)
    assert not is_open[measures.n_including == 1].any()
    assert (bounded[0].risks[~is_open] == exact.risks[~is_open]).all()
    assert 0 < bounded[0].words_read <= max_words
    for other in bounded[1:]:
        assert (np.isnan(other.risks) == is_open).all()
        assert other.words_read == bounded[0].words_read


def test_a_larger_bound_finds_no_fewer_rows_and_repeats_only_what_did_not_end(monkeypatch):
    monkeypatch.setattr(search, "FIRST_WORDS", 100)
    context, _ = packed(random_rows(1, 60, 12, 0.5), frozenset(range(12)))
    measures = measure_rows(context)
    needed = search_semantic_risks(context, measures).words_read
    bounds = (needed // 32, needed // 8, needed // 2, 2 * needed)
    found = [(~np.isnan(search_semantic_risks(context, measures, 1, bound).risks)).sum() for bound in bounds]
    assert found == sorted(set(found))
    assert found[-1] == len(context.rows)


def test_a_search_ends_when_it_is_interrupted(monkeypatch):
    monkeypatch.setattr(slices, "SECONDS_BETWEEN_REPORTS", 0)
    steps = np.random.default_rng(0).integers(0, 40, (60, 3)).tolist()
    rows = [frozenset(40 * column + place for column in range(3) for place in range(step[column])) for step in steps]
    context, _ = packed([*rows, frozenset()], frozenset(range(120)))
    reports = []

    def interrupt(n_done, n_rows):
        reports.append((n_done, n_rows))
        raise KeyboardInterrupt

    measures = measure_rows(context)
    for n_threads in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            search_semantic_risks(context, measures, n_threads, 1 << 60, interrupt)
    n_rows = int((measures.n_including > 1).sum())
    assert [n for _, n in reports] == [n_rows] * 2
    assert all(0 <= n_done < n_rows for n_done, _ in reports)


@given(contexts(max_attributes=6), st.integers(60, 66))
@settings(max_examples=examples(60), deadline=None)
def test_packing_keeps_every_attribute(drawn, n_before):
    rows, universe = drawn
    distinct = sorted(set(rows), key=sorted)
    own = np.array([[a in row for a in sorted(universe)] for row in distinct], bool)
    first = np.zeros((1, n_before), bool)
    words = pack_patterns([np.zeros(len(own), np.int64), np.arange(len(own))], [first, own])
    context, order = make_context(words, np.ones(len(own), np.int64), n_before + len(universe))
    assert (unpack_rows(context.rows, n_before + len(universe))[:, n_before:] == own[order]).all()
    assert (np.diff(own[order].sum(axis=1)) <= 0).all()
    for a in range(len(universe)):
        begin, stop = context.first[n_before + a : n_before + a + 2]
        assert context.holders[begin:stop].tolist() == np.flatnonzero(own[order][:, a]).tolist()
