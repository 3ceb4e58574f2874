"""Concepts, covers and bases agree with the closures of all sets of attributes, and with the library `concepts`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.semantic_risk.kernels.concepts import (
    close_sets,
    full_set,
    list_concepts,
    lower_neighbors,
    upper_neighbors,
    words_to_close,
)
from privacy_assets.semantic_risk.kernels.stem_basis import find_stem_basis
from tests.examples import examples
from tests.random_contexts import as_context, as_table, contexts, names, numbers, random_rows
from tests.reference import formal_concepts as reference


def sets_in(context, words):
    return [numbers(context.names_in(own)) for own in words]


def listed(context, min_support=0):
    """Supports by intent, and covers as pairs of intents."""
    found = list_concepts(context.packed, min_support)
    intents = sets_in(context, found.intents)
    assert len(set(intents)) == len(intents)
    pairs = [(intents[u], intents[low]) for u, low in zip(found.upper, found.lower, strict=True)]
    assert len(set(pairs)) == len(pairs)
    return dict(zip(intents, found.supports.tolist(), strict=True)), set(pairs)


def basis_of(context, min_support=0):
    found = find_stem_basis(context.packed, min_support)
    rules = zip(sets_in(context, found.premises), sets_in(context, found.conclusions), strict=True)
    return [
        (premise, conclusion - premise, support)
        for (premise, conclusion), support in zip(rules, found.supports.tolist(), strict=True)
    ]


@given(contexts(), st.integers(0, 4))
@settings(max_examples=examples(120), deadline=None)
def test_concepts_and_covers_are_those_of_brute_force(drawn, min_support):
    rows, universe = drawn
    context = as_context(rows, universe)
    lattice = reference.concepts(rows, universe)
    concepts, covers = listed(context, min_support)
    assert concepts == {own: len(extent) for extent, own in lattice if len(extent) >= min_support}
    expected = {(u[1], low[1]) for u, low in reference.covers(lattice) if len(low[0]) >= min_support}
    assert covers == expected


@given(contexts(), st.integers(0, 4))
@settings(max_examples=examples(120), deadline=None)
def test_the_stem_basis_is_that_of_brute_force(drawn, min_support):
    rows, universe = drawn
    found = basis_of(as_context(rows, universe), min_support)
    assert len(set(found)) == len(found)
    assert set(found) == {rule for rule in reference.stem_basis(rows, universe) if rule[2] >= min_support}


@given(contexts())
@settings(max_examples=examples(80), deadline=None)
def test_the_stem_basis_is_sound_complete_and_has_no_rule_too_many(drawn):
    rows, universe = drawn
    rules = [(premise, conclusion) for premise, conclusion, _ in basis_of(as_context(rows, universe))]
    assert all(not premise <= row or conclusion <= row for premise, conclusion in rules for row in rows)
    for own in reference.subsets(universe):
        assert reference.entails(rules, own, reference.closure(rows, own, universe))
    for rule in rules:
        assert not reference.entails([other for other in rules if other != rule], *rule)


@given(contexts())
@settings(max_examples=examples(80), deadline=None)
def test_neighbors_are_those_of_the_lattice(drawn):
    rows, universe = drawn
    context = as_context(rows, universe)
    concepts, covers = listed(context)
    for own, support in concepts.items():
        words = context.words_of(names(own))
        above, added = upper_neighbors(context.packed, words)
        expected = {(u, concepts[u] - support) for u, low in covers if low == own}
        assert set(zip(sets_in(context, above), added.tolist(), strict=True)) == expected
        below, supports = lower_neighbors(context.packed, words)
        expected = {(low, concepts[low]) for u, low in covers if u == own and concepts[low]}
        assert set(zip(sets_in(context, below), supports.tolist(), strict=True)) == expected


@given(contexts())
@settings(max_examples=examples(60), deadline=None)
def test_closures_are_those_of_the_definition(drawn):
    rows, universe = drawn
    context = as_context(rows, universe)
    packed = context.packed
    own = list(reference.subsets(universe))
    words = np.array([context.words_of(names(one)) for one in own])
    everything = full_set(len(universe), packed.rows.shape[1])
    found = close_sets(packed.rows, packed.first, packed.holders, words, everything)
    assert sets_in(context, found) == [reference.closure(rows, one, universe) for one in own]


@given(contexts())
@settings(max_examples=examples(60), deadline=None)
def test_small_concepts_covers_and_bases_are_those_of_another_library(drawn):
    oracle = pytest.importorskip("concepts")
    rows, universe = drawn
    table = as_table(rows, universe)
    other = oracle.Context([f"g{g}" for g in range(len(rows))], list(table.columns), table.to_numpy().tolist())
    context = as_context(rows, universe)
    found, covers = listed(context)
    assert found == {numbers(one.intent): len(one.extent) for one in other.lattice}
    assert covers == {
        (numbers(one.intent), numbers(low.intent)) for one in other.lattice for low in one.lower_neighbors
    }
    closures = {}
    for own in reference.subsets(universe):
        records = other.extension(names(own))
        closures[own] = (numbers(other.intension(records)), len(records))
    pseudo = []
    for own, (closed, _) in closures.items():
        if closed != own and all(closures[p][0] <= own for p in pseudo if p < own):
            pseudo.append(own)
    assert set(basis_of(context)) == {(own, closures[own][0] - own, closures[own][1]) for own in pseudo}


@pytest.mark.parametrize(("n_records", "n_attributes", "share"), [(60, 12, 0.4), (80, 70, 0.05), (40, 10, 0.8)])
def test_concepts_and_covers_are_those_of_another_library(n_records, n_attributes, share):
    oracle = pytest.importorskip("concepts")
    rows = random_rows(2, n_records, n_attributes, share)
    universe = frozenset(range(n_attributes))
    found, covers = listed(as_context(rows, universe))
    table = as_table(rows, universe)
    labels = [f"g{g}" for g in range(n_records)]
    lattice = oracle.Context(labels, list(table.columns), table.to_numpy().tolist()).lattice
    assert found == {numbers(one.intent): len(one.extent) for one in lattice}
    expected = {(numbers(one.intent), numbers(low.intent)) for one in lattice for low in one.lower_neighbors}
    assert covers == expected


def test_more_concepts_than_allowed_are_not_listed():
    rows = [frozenset({a, b}) for a in range(6) for b in range(a)]
    packed = as_context(rows, frozenset(range(6))).packed
    n_concepts = len(list_concepts(packed).intents)
    assert len(list_concepts(packed, max_concepts=n_concepts).intents) == n_concepts
    assert list_concepts(packed, max_concepts=n_concepts - 1) is None
    assert list_concepts(packed, max_concepts=3) is None
    assert list_concepts(packed, max_words=100) is None
    assert find_stem_basis(packed, max_sets=3) is None
    assert find_stem_basis(packed, max_words=100) is None
    assert len(find_stem_basis(packed, min_support=16).supports) == 0


def test_the_words_read_for_a_basis_count_every_attribute_that_is_looked_at():
    """On ordinal scales most attributes follow from others: they are looked at, and their records are not."""
    random = np.random.default_rng(5)
    ages = random.integers(0, 20, (150, 2))
    rows = [frozenset([*range(a), *range(20, 20 + b)]) for a, b in ages.tolist()]
    context = as_context(rows, frozenset(range(40)))
    found = find_stem_basis(context.packed)
    distinct = [frozenset(row) for row in set(rows)]
    # For each closed set, the attributes that its distinct rows have besides.
    besides = sum(len(row - own) for own in listed(context)[0] for row in distinct if own <= row)
    assert found.words_read >= besides
    assert find_stem_basis(context.packed, max_words=found.words_read).words_read == found.words_read
    assert find_stem_basis(context.packed, max_words=besides) is None


def test_the_words_of_closing_sets_are_those_of_their_rarest_attribute():
    rows = [frozenset({0, 1}), frozenset({0}), frozenset({0, 1, 2}), frozenset({2})]
    packed = as_context(rows, frozenset(range(3))).packed
    sets = np.array([[0b000], [0b001], [0b011], [0b110]], np.uint64)
    each = [words_to_close(4, packed.first, packed.holders, own[np.newaxis]) for own in sets]
    assert each == [4, 3, 2, 2]
    assert words_to_close(4, packed.first, packed.holders, sets) == 11
