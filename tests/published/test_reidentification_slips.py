"""What the text of Torra and Stokes prints, against what its own definitions give.

Source: ``tests/golden/reidentification/torra_stokes.json``; V. Torra, K. Stokes, "A formalization of
re-identification in terms of compatible probabilities" (2013), Section 2.2, Examples 9, 21, 23 and 24, Lemma 17.
"""

import json
from fractions import Fraction
from itertools import product
from math import fsum, log

import pandas as pd
import pytest

from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.errors import InvalidSettingError
from privacy_assets.linkage.compatibility import is_compatible
from privacy_assets.reidentification.belief import BeliefFunction
from privacy_assets.reidentification.candidate_index import CandidateIndex
from tests.reference import reidentification as reference
from tests.shared_data import golden_file

KNOWN = json.loads(golden_file("reidentification", "torra_stokes.json").read_text())


def records(first, last):
    return frozenset(range(first, last + 1))


def test_entropies_of_the_masses_as_they_are_printed():
    """Eight digits of each mass, which add up to a little less than 1."""
    unit, moved, tenth, twelfth = 0.07692307, 0.038461544, 0.08333332, 0.10416665
    printed = [
        {records(1, 5): unit * 5, records(1, 8): unit * 8},
        {records(1, 2): moved * 8, records(1, 5): unit * 5, records(1, 8): (unit - moved) * 8},
        {records(1, 10): tenth * 10, records(1, 2): tenth * 2},
        {records(3, 10): twelfth * 8, records(1, 2): tenth * 2},
    ]
    exact = [KNOWN[example][name] for example in ("example_23", "example_24") for name in ("Bel", "Bel_prime")]
    for masses, entropy, own in zip(printed, KNOWN["with_printed_digits"], exact, strict=True):
        assert BeliefFunction(masses).entropy() == pytest.approx(entropy, abs=1e-14)
        assert entropy == pytest.approx(own["entropy_natural"], abs=1e-6)
        assert sum(Fraction(share) for share in own["pignistic"].values()) == Fraction(own["pignistic_sum"])


def test_the_pignistic_probability_that_is_printed_adds_up_to_no_1():
    printed = KNOWN["example_23"]["printed_P_Bel_prime"]
    values = printed["values"]
    assert fsum(values) == pytest.approx(printed["sum"], abs=1e-14)
    assert -fsum(p * log(p) for p in values) == pytest.approx(printed["entropy"], abs=1e-14)
    with pytest.raises(InvalidSettingError, match="sum to 0.769231"):
        BeliefFunction({frozenset([x]): p for x, p in enumerate(values)})
    masses = {"1,2": "4/13", "1,2,3,4,5": "5/13", "1,2,3,4,5,6,7,8": "4/13"}
    assert KNOWN["example_23"]["Bel_prime"]["mass"] == masses
    focal = {frozenset(map(int, names.split(","))): float(Fraction(mass)) for names, mass in masses.items()}
    own = BeliefFunction(focal).pignistic()
    assert own[1] == own[2] == pytest.approx(float(Fraction(printed["correct_x1_x2"])))


def test_intervals_of_section_2_2_hold_three_values_each():
    known = KNOWN["section_2_2"]
    values = known["values"]
    labels = ["[15,19]" if value <= 19 else "[20,25]" for value in values]
    index = CandidateIndex(
        ReleaseModel.from_labels(["V1"]), pd.DataFrame({"V1": values}), pd.DataFrame({"V1": labels}), range(6)
    )
    assert index.sizes(["V1"]).tolist() == [known[label] for label in labels]


def test_less_knowledge_lowers_the_probability_of_candidates_only():
    """Example 9 claims P >= r for all records; Example 15 has it for candidates."""
    known = KNOWN["example_9_inequality"]
    original = pd.DataFrame({"a": [1, 1], "b": [1, 2]}, index=["x1", "x2"])
    index = CandidateIndex(ReleaseModel.from_labels([], exact=["a", "b"]), original, original[:1], [0])
    found = {}
    for name, columns in {"P": ["a", "b"], "r": ["a"]}.items():
        own = index.belief(0, columns).pignistic()
        found[name] = {record: own.get(place, 0.0) for place, record in enumerate(original.index)}
        assert found[name] == {record: float(Fraction(share)) for record, share in known[name].items()}
    holds = {record: found["P"][record] >= found["r"][record] for record in original.index}
    assert all(holds.values()) is known["claim P>=r for all x"]
    assert all(holds[original.index[x]] for x in index.members(0, ["a", "b"])) is known["true for candidates only"]


def posterior(sign, alphas):
    """Whose record 000 is, if y = x + sign * alpha * e_beta; all alike before. None if nobody's."""
    weights = dict.fromkeys(("000", "100", "010", "001"), Fraction(0))
    for x, alpha, beta in product(weights, alphas, range(3)):
        y = [int(digit) + sign * alpha * (place == beta) for place, digit in enumerate(x)]
        weights[x] += y == [0, 0, 0]
    total = sum(weights.values())
    return {x: weight / total for x, weight in weights.items()} if total else None


def fractions(values):
    return None if values is None else {name: Fraction(value) for name, value in values.items()}


def test_example_21_needs_a_minus_sign_and_a_known_alpha():
    known = KNOWN["example_21"]
    for sign, words in ((1, "as_printed"), (-1, "corrected")):
        unknown = f"{words}_y=x{'+' if sign > 0 else '-'}alpha*e, y=000"
        for name, alphas in {unknown: (0, 1), f"{words}_alpha=0": (0,), f"{words}_alpha=1": (1,)}.items():
            assert posterior(sign, alphas) == fractions(known[name]), name
    masses = {
        frozenset(int(x) for x in names.strip("{}").replace("x", "").split(",")): float(Fraction(mass))
        for names, mass in known["belief_mass"].items()
    }
    belief = BeliefFunction(masses)
    assert belief.pignistic() == pytest.approx({int(x): float(Fraction(p)) for x, p in known["pignistic"].items()})
    # Which alpha was drawn, the belief leaves open: it is compatible with either, and with not knowing.
    for alphas in ((0, 1), (0,), (1,)):
        truth = [float(p) for p in posterior(-1, alphas).values()]
        assert belief.is_compatible_with(dict(enumerate(truth)))
        assert is_compatible(pd.Series(truth).to_numpy(), pd.Series(belief.pignistic()).to_numpy())


def test_lemma_17_holds_in_one_direction():
    known = KNOWN["lemma_17_only_if_false"]
    assert known["P"] == "delta(x0)" and known["m"] == {"{x0,x1}": "1"}
    belief = BeliefFunction.categorical([0, 1])
    assert belief.masses.get(frozenset([0]), 0) == known["m({x0})"]
    assert (belief.plausibility([0]) > 0) is known["{x0} meets {x0}"]
    assert belief.is_compatible_with({0: 1.0, 1: 0.0}) is known["compatible"]


def test_dempsters_rule_of_a_probability_with_itself_is_surer_than_the_truth():
    known = KNOWN["dempster_not_acceptable"]
    truth = fractions(known["P"])
    assert known["Bel1=Bel2=P"] is True
    squares = {x: p * p for x, p in truth.items()}
    combined = {x: square / sum(squares.values()) for x, square in squares.items()}
    assert combined == fractions(known["dempster"])
    belief = BeliefFunction({frozenset([int(x)]): float(p) for x, p in combined.items()})
    assert belief.is_compatible_with({int(x): float(p) for x, p in truth.items()}) is known["compatible"]


def test_propositions_12_and_19_as_they_are_recorded():
    candidates = KNOWN["proposition_12"]["candidate_set"]
    truth = dict.fromkeys(candidates, 1 / len(candidates))
    exact, wider = (BeliefFunction.categorical(own) for own in (candidates, [*candidates, 3]))
    assert exact.is_compatible_with(truth) is KNOWN["proposition_12"]["exact_mass_compatible"]
    assert wider.is_compatible_with(truth) is KNOWN["proposition_12"]["superset_mass_compatible"]
    for k, known in KNOWN["proposition_19"].items():
        truth = {0: float(Fraction(known["true_prob_x0"])), **dict.fromkeys(range(1, int(k) + 1), 1 / int(k))}
        masses = {frozenset([0, x]): 1 / int(k) for x in range(1, int(k) + 1)}
        assert BeliefFunction(masses).is_compatible_with(truth) is known["compatible"]
        assert reference.pignistic(masses)[0] == pytest.approx(float(Fraction(known["pignistic_x0"])))
