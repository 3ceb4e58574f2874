"""Bases, bounds of confidence, forgetting and chains: the published figures, and what must hold of any context."""

import json
from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError
from privacy_assets.semantic_risk import concept_lattice, implications
from privacy_assets.semantic_risk.concept_lattice import (
    close_attributes,
    describe_neighborhood,
    read_concepts,
    records_with,
)
from privacy_assets.semantic_risk.forgetting import forget_attributes, forget_in_basis, resolve
from privacy_assets.semantic_risk.formal_context import read_formal_context
from privacy_assets.semantic_risk.implications import confidence_bound, luxenburger_basis, stem_basis
from privacy_assets.semantic_risk.risk_chains import columns_of_chains, find_risk_chains
from privacy_assets.semantic_risk.row_measures import measure_context
from tests.examples import examples
from tests.random_contexts import as_context, contexts, names, numbers
from tests.reference import formal_concepts as reference
from tests.running_example import ATTRIBUTES, CONTEXT
from tests.shared_data import golden_file

KSTAR = read_formal_context(CONTEXT, "binary")
GOLDEN = ["kstar", "fig4_transcript", "closed"]
FORGOTTEN = ["S:F", "Date:1965-85", "Date:1975-95"]


def golden(name):
    return json.loads(golden_file("fca", f"{name}.json").read_text())


def golden_context(name):
    return read_formal_context(pd.read_csv(golden_file("fca", f"{name}_context.csv"), index_col="id"), "binary")


def small_context(example):
    table = pd.DataFrame(
        [[name in row for name in example["attributes"]] for row in example["rows"]], columns=example["attributes"]
    )
    return read_formal_context(table, "binary")


def rules_of(frame, *columns):
    """Rules as sets, with some columns."""
    parts = [frame["premise"].map(frozenset), frame["conclusion"].map(frozenset), *(frame[own] for own in columns)]
    return sorted(
        zip(*(part.tolist() for part in parts), strict=True), key=lambda rule: (sorted(rule[0]), sorted(rule[1]))
    )


def expected_rules(rules, *keys):
    own = [
        (frozenset(rule["premise"]), frozenset(rule.get("conclusion", rule.get("added"))), *(rule[key] for key in keys))
        for rule in rules
    ]
    return sorted(own, key=lambda rule: (sorted(rule[0]), sorted(rule[1])))


def numbered(frame, *columns):
    return [(numbers(premise), numbers(conclusion), *rest) for premise, conclusion, *rest in rules_of(frame, *columns)]


@pytest.mark.parametrize("name", GOLDEN)
def test_concepts_covers_and_extents_are_those_of_the_running_example(name):
    expected, context = golden(f"running_example_{name}"), golden_context(f"running_example_{name}")
    lattice = read_concepts(context)
    own = [frozenset(attributes) for attributes in lattice.concepts["attributes"]]
    assert sorted(map(sorted, own)) == sorted(sorted(concept["intent"]) for concept in expected["concepts"])
    for concept in expected["concepts"]:
        assert (records_with(context, concept["intent"]) + 1).tolist() == concept["extent"]
        assert set(close_attributes(context, concept["intent"])) == set(concept["intent"])
    risk_of = dict(zip(own, lattice.concepts["semantic_risk"], strict=True))
    for concept in expected["concepts"]:
        risk = risk_of[frozenset(concept["intent"])]
        assert np.isnan(risk) if concept["r_L"] is None else np.isclose(risk, concept["r_L"]["float"], rtol=1e-14)
    assert "semantic_risk" not in read_concepts(context, min_support=2).concepts
    intent_of = {concept["id"]: frozenset(concept["intent"]) for concept in expected["concepts"]}
    pairs = {(own[low], own[u]) for u, low in lattice.covers.itertuples(index=False)}
    assert pairs == {(intent_of[low], intent_of[u]) for low, u in expected["covers_lower_upper"]}


@pytest.mark.parametrize("name", GOLDEN)
def test_both_bases_are_those_of_the_running_example(name):
    expected, context = golden(f"running_example_{name}"), golden_context(f"running_example_{name}")
    stem = stem_basis(context)
    assert rules_of(stem, "rule_support") == expected_rules(expected["stem_basis"], "support")
    assert (stem["premise_support"] == stem["rule_support"]).all()
    partial = luxenburger_basis(context, min_confidence=0).iloc[: len(expected["cover_rules"])]
    own = expected_rules(expected["cover_rules"], "premise_support", "rule_support")
    assert rules_of(partial, "premise_support", "rule_support") == own
    assert (partial["confidence"] == partial["rule_support"] / partial["premise_support"]).all()


def test_figure_8_is_reproduced():
    printed = golden("figures_8_9_printed")["figure8_stem"]
    assert rules_of(stem_basis(KSTAR), "rule_support") == expected_rules(printed, "support")
    assert len(stem_basis(KSTAR, min_support=1)) == 4


def test_figure_9_is_reproduced():
    printed = golden("figures_8_9_printed")["figure9_partial"]
    found = luxenburger_basis(KSTAR, min_confidence=0.75)
    partial = found[found["confidence"] < 1]
    assert rules_of(partial, "premise_support", "rule_support") == expected_rules(
        printed, "premise_support", "rule_support"
    )
    percent = {(frozenset(rule["premise"]), frozenset(rule["added"])): rule["confidence_pct"] for rule in printed}
    for premise, conclusion, confidence in rules_of(partial, "confidence"):
        assert round(100 * confidence) == percent[premise, conclusion]
    assert len(found) == 18
    assert partial["confidence"].is_monotonic_decreasing


def test_figure_3_and_the_fish_are_reproduced():
    examples = golden("small_examples")
    for name in ("live_beings", "fish_reconstructed"):
        found = stem_basis(small_context(examples[name]))
        premises = [
            {**rule, "conclusion": set(rule["conclusion"]) - set(rule["premise"])}
            for rule in examples[name]["stem_basis"]
        ]
        assert rules_of(found, "rule_support") == expected_rules(premises, "support")
    fish = examples["fish_reconstructed"]
    found = luxenburger_basis(small_context(fish), min_confidence=0)
    assert rules_of(found[found["confidence"] < 1]) == expected_rules(fish["cover_rules"])
    confidences = {
        (frozenset(rule["premise"]), frozenset(rule["added"])): rule["confidence"]["float"]
        for rule in fish["cover_rules"]
    }
    for premise, conclusion, confidence in rules_of(found[found["confidence"] < 1], "confidence"):
        assert confidence == confidences[premise, conclusion]


def test_figure_8_of_what_is_left_is_reproduced_both_ways():
    expected = golden("forgetting_kstar")
    assert expected["forgotten"] == FORGOTTEN
    basis = stem_basis(KSTAR)
    left = expected_rules(expected["canonical_L0_(stem_basis_of_reduced_context)"])
    assert rules_of(forget_attributes(KSTAR, FORGOTTEN)) == left
    assert rules_of(forget_in_basis(basis, FORGOTTEN)) == left
    place = {name: 1 << number for number, name in enumerate(ATTRIBUTES)}
    units = {
        (sum(place[name] for name in premise), place[head])
        for premise, conclusion in zip(basis["premise"], basis["conclusion"], strict=True)
        for head in conclusion
    }
    wanted = sum(place[name] for name in FORGOTTEN)
    for key, is_reduced in (("raw_resolution", False), ("printed_L0", False), ("minimised_resolution", True)):
        found = {
            (
                frozenset(n for n in ATTRIBUTES if premise & place[n]),
                frozenset(n for n in ATTRIBUTES if head == place[n]),
            )
            for premise, head in resolve(units, wanted, is_reduced=is_reduced)
        }
        assert found == set(expected_rules(expected[key]))


def test_a_bound_of_confidence_is_met_exactly_by_record_5():
    measures = measure_context(KSTAR)
    row = KSTAR.row_of_record[4]
    risk = 1 / measures.differences[row]
    rule = luxenburger_basis(KSTAR, min_confidence=0.75)
    own = rule[[set(premise) == {"S:F", "Date:1935-55"} for premise in rule["premise"]]]
    assert own["confidence"].max() == confidence_bound(risk, int(measures.extents[row])) == 0.75


@given(contexts(max_attributes=6))
@settings(max_examples=examples(100), deadline=None)
def test_the_bounds_of_confidence_hold(drawn):
    rows, universe = drawn
    context = as_context(rows, universe)
    rules = luxenburger_basis(context, min_confidence=0)
    partial = rules[rules["confidence_bound"].notna()]
    assert (partial["confidence"] <= partial["confidence_bound"] + 1e-12).all()
    largest = 1 / measure_context(context).differences.min()
    sets = list(reference.subsets(universe))
    for premise in sets[::3]:
        own = reference.extent(rows, premise)
        implied = reference.closure(rows, premise, universe)
        for conclusion in sets[::5]:
            if own and not conclusion <= implied:
                confidence = len(reference.extent(rows, premise | conclusion)) / len(own)
                assert confidence <= confidence_bound(largest, len(own)) + 1e-12
    risks = reference.basic_semantic_risk(rows, universe)
    for own, risk in zip(rows, risks, strict=True):
        size = len(reference.extent(rows, own))
        for premise, _, confidence in numbered(partial, "confidence"):
            if premise == own:
                assert confidence <= confidence_bound(float(risk), size) + 1e-12


@given(contexts(max_attributes=6), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_forgetting_is_sound_complete_and_order_independent(drawn, data):
    rows, universe = drawn
    context = as_context(rows, universe)
    forgotten = data.draw(st.frozensets(st.sampled_from(sorted(universe)), max_size=3))
    left = universe - forgotten
    reduced = [row - forgotten for row in rows]
    expected = {rule[:2] for rule in reference.stem_basis(reduced, left)}
    basis = stem_basis(context)
    assert set(numbered(forget_attributes(context, names(forgotten)))) == expected
    for order in permutations(names(forgotten)):
        one_by_one = basis
        for name in order:
            one_by_one = forget_in_basis(one_by_one, [name])
        assert set(numbered(one_by_one)) == set(numbered(forget_in_basis(basis, order))) == expected


@given(contexts(max_attributes=6))
@settings(max_examples=examples(60), deadline=None)
def test_the_canonical_form_of_any_complete_set_of_rules_is_the_stem_basis(drawn):
    rows, universe = drawn
    basis = stem_basis(as_context(rows, universe))
    closures = [(own, reference.closure(rows, own, universe)) for own in reference.subsets(universe)]
    rules = pd.DataFrame(
        {"premise": [tuple(names(p)) for p, _ in closures], "conclusion": [tuple(names(c)) for _, c in closures]}
    )
    assert numbered(forget_in_basis(rules, [])) == numbered(basis)


@pytest.mark.parametrize("name", GOLDEN)
def test_chains_are_those_of_the_running_example(name):
    expected, context = golden(f"running_example_{name}"), golden_context(f"running_example_{name}")

    def extents(risk_limit):
        found = find_risk_chains(context, risk_limit)
        assert found.is_complete
        for _, own in found.chains.groupby("chain"):
            assert own["records"].tolist() == own["added"].cumsum().tolist()
        return sorted(
            [(records_with(context, names) + 1).tolist() for names in own["attributes"]]
            for _, own in found.chains.groupby("chain")
        )

    unique = expected["unique_record_identifier_chains_maximal"]
    assert extents(1.0) == sorted([concept["extent"] for concept in chain] for chain in unique)
    assert extents(0.35) == sorted(expected["identification_chains_lambda_0.35_as_risk"])


@given(contexts(max_attributes=6), st.integers(1, 4))
@settings(max_examples=examples(100), deadline=None)
def test_chains_are_those_of_the_lattice(drawn, largest):
    rows, universe = drawn
    found = find_risk_chains(as_context(rows, universe), 1 / largest, max_chains=10_000)
    own = [
        [reference.extent(rows, numbers(attributes)) for attributes in chain["attributes"]]
        for _, chain in found.chains.groupby("chain")
    ]
    expected = reference.chains(reference.concepts(rows, universe), largest)
    assert sorted(map(str, ([sorted(e) for e in chain] for chain in own))) == sorted(
        map(str, ([sorted(e) for e in chain] for chain in expected))
    )
    # r_C of Definition 3.2: of the first concept, and of those that each next one adds.
    of_chains = [1 / len(upper - lower) for chain in own for lower, upper in zip([frozenset(), *chain], chain)]  # noqa: B905
    assert found.chains["risk"].tolist() == of_chains


def test_chains_beyond_the_number_wanted_are_counted_not_listed():
    found = find_risk_chains(KSTAR, 1.0, max_chains=2)
    assert (found.chains["chain"].nunique(), found.n_starts, found.is_complete) == (2, 4, False)
    whole = find_risk_chains(KSTAR, 1.0)
    counts = columns_of_chains(KSTAR, whole.chains)
    assert counts["chains"].sum() == 5
    assert counts["columns"][0] == ("S:F", "Date:1965-85", "Date:1975-95")


def test_the_neighborhood_is_that_of_the_riskiest_concept():
    found = describe_neighborhood(KSTAR, measure_context(KSTAR))
    own = found[found["place"] == "concept"].iloc[0]
    assert (set(own["attributes"]), own["records"]) == ({"S:F", "Date:1935-55"}, 4)
    above = found[found["place"] == "above"]
    assert dict(zip(above["attributes"], above["records"], strict=True)) == {
        ("S:F",): 5,
        ("Date:1935-55",): 13,
    }
    below = found[found["place"] == "below"]
    assert list(zip(below["attributes"], below["records"], strict=True)) == [(("Date:1945-65",), 3)]


def test_a_lattice_that_is_too_large_says_what_to_reduce():
    for call in (
        lambda: read_concepts(KSTAR, max_concepts=5),
        lambda: stem_basis(KSTAR, max_concepts=5),
        lambda: luxenburger_basis(KSTAR, min_confidence=0.5, max_concepts=5),
    ):
        with pytest.raises(
            InvalidSettingError, match="11 distinct rows and 7 attributes has more than 5 .* Raise min_support"
        ):
            call()
    basis = stem_basis(KSTAR)
    for forgotten in (FORGOTTEN, []):
        with pytest.raises(InvalidSettingError, match="more than 1 implications, given or derived"):
            forget_in_basis(basis, forgotten, max_implications=1)
    with pytest.raises(InvalidSettingError, match="more than 34 implications"):
        forget_in_basis(basis, [], max_implications=34)
    assert len(forget_in_basis(basis, [], max_implications=35)) == 10


def test_a_lattice_that_takes_too_long_says_what_to_reduce(monkeypatch):
    for module in (concept_lattice, implications):
        monkeypatch.setattr(module, "WORDS_READ", 100)
    for call in (read_concepts, stem_basis, lambda context: luxenburger_basis(context, min_confidence=0.5)):
        with pytest.raises(InvalidSettingError, match="reads more than 1e[+]02 words.* Raise min_support, use coarser"):
            call(KSTAR)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: luxenburger_basis(KSTAR, min_confidence=1.5), "min_confidence is 1.5. Expected a number from 0 to 1"),
        (lambda: luxenburger_basis(KSTAR, min_confidence=True), "min_confidence is True"),
        (lambda: stem_basis(KSTAR, min_support=-1), "min_support is -1"),
        (lambda: read_concepts(KSTAR, max_concepts=0), "max_concepts is 0"),
        (lambda: forget_attributes(KSTAR, ["Date"]), r"no attributes \['Date'\]"),
        (lambda: find_risk_chains(KSTAR, 0), "risk_limit is 0"),
        (lambda: find_risk_chains(KSTAR, max_chains=0), "max_chains is 0"),
        (lambda: forget_in_basis(pd.DataFrame({"premise": []}), []), r"no columns \['conclusion'\]"),
    ],
)
def test_settings_that_cannot_be_are_refused(call, message):
    with pytest.raises(InvalidSettingError, match=message):
        call()


def test_a_basis_of_nothing_is_empty():
    alone = read_formal_context(pd.DataFrame({"a": [True, False]}), "binary")
    assert len(stem_basis(alone)) == 0
    assert len(forget_in_basis(stem_basis(alone), ["a"])) == 0
    assert len(forget_attributes(alone, ["a"])) == 0
    assert len(read_concepts(alone).concepts) == 2
    assert np.isclose(confidence_bound(float(Fraction(1, 2)), 4), 0.5)
