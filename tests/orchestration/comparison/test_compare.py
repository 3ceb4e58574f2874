"""Candidate releases of one table: made, judged and chosen without Dagster."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import (
    AnonymizationSettings,
    Candidate,
    LDiversity,
    Limit,
    Policy,
    ReleaseOptions,
    RequiredSettings,
    Synthesis,
    anonymize,
    assess_utility,
    compare_releases,
    split_records,
    synthesize,
)
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.comparison import making
from privacy_assets.orchestration.settings.options import STANDARD, OptionsSettings
from privacy_assets.pipeline.choice import best_of, risk_that_decides, table_of
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.synthesis.cart import Cart
from privacy_assets.utility import assess
from tests.extras import NEEDS_TREES

CONTRACT = {
    "columns": {
        "patient": {"type": "text", "role": "direct_identifier", "person": True},
        "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120},
        "plan": {"type": "text", "role": "quasi_identifier"},
        "cost": {"type": "integer", "role": "sensitive"},
    }
}
POLICY = Policy(
    (Limit("privacy_risk_score", 0.9), Limit("leakage_detected", 0), Limit("smallest_class", 5)),
    RequiredSettings(control_records=40, detectable_share=None),
)
COLUMNS = ["age", "plan", "cost"]
SECRET = "Zaphodine-Quxington"


class Broken:
    """A synthesizer whose errors have a cell in them."""

    name = "broken"
    settings = {}  # noqa: RUF012

    def fit(self, table, *, seed):
        raise ValueError(SECRET)

    def sample(self, n_records, *, seed):
        raise AssertionError


class Resampled:
    """Records drawn from the table."""

    name = "resampled"
    settings = {}  # noqa: RUF012

    def fit(self, table, *, seed):
        self.table = table
        return self

    def sample(self, n_records, *, seed):
        return self.table.sample(n_records, replace=True, random_state=seed % 2**32, ignore_index=True)


def people(n_records=1_700, seed=1):
    random = np.random.default_rng(seed)
    age = random.integers(20, 60, n_records)
    return pd.DataFrame(
        {
            "patient": [f"patient-{number}" for number in range(n_records)],
            "age": age,
            "plan": np.where(age + random.integers(-9, 9, n_records) < 40, "single", "family"),
            "cost": age * 4 + random.integers(0, 40, n_records),
        }
    )


@pytest.fixture(autouse=True)
def few_queries(monkeypatch):
    monkeypatch.setattr(assess, "N_QUERIES", 200)


CANDIDATES = (
    Candidate(anonymized=AnonymizationSettings(k=2)),
    Candidate(anonymized=AnonymizationSettings(k=5)),
    Candidate(anonymized=AnonymizationSettings(k=5, max_suppression=0.02), name="suppressing"),
    Candidate(synthetic=Synthesis()),
    Candidate(synthetic=Synthesis(), generalize_synthetic=AnonymizationSettings(k=3)),
    Candidate(synthetic=Synthesis(method=Broken())),
    Candidate(anonymized=AnonymizationSettings(k=2_000)),
)


@pytest.fixture(scope="module")
def options():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(assess, "N_QUERIES", 200)
        return compare_releases(people(), CONTRACT, POLICY, candidates=CANDIDATES, seed=4)


def row_of(options, name):
    return options.table.set_index("candidate").loc[name]


def test_figures_are_those_of_the_functions_that_a_release_uses(options):
    table, seeds = people()[COLUMNS], OptionsSettings(seed=4).seeds
    released = anonymize(table, quasi_identifiers=["age", "plan"], sensitive=["cost"], k=5)
    half = split_records(table, train_fraction=0.5, seed=seeds.judge).control
    expected = assess_utility(table, released.table, half, released, seed=seeds.judge)
    found = row_of(options, "k=5")
    assert found["utility"] == pytest.approx(expected.scores["utility"], abs=0.02)
    assert found["smallest_class"] == released.stats["smallest_class"] >= 5
    assert found["max_reidentification_probability"] == 1 / found["smallest_class"]
    assert found["n_made"] == 1

    original, control = split_records(table, seed=seeds.split)
    runs = options.runs[options.runs["candidate"] == "smooth_cart"]
    worth = [
        assess_utility(original, synthesize(original, seed=seed), control, seed=seeds.judge).scores["utility"]
        for seed in seeds.repeats
    ]
    assert runs["utility"].tolist() == pytest.approx(worth)
    assert len(set(worth)) == 2
    assert row_of(options, "smooth_cart")["utility"] == pytest.approx(np.mean(worth))


def test_a_candidate_that_cannot_be_made_is_listed_with_its_reason_and_the_others_go_on(options):
    assert options.table["candidate"].tolist() == [each.name for each in CANDIDATES]
    broken = row_of(options, CANDIDATES[5].name)
    assert broken["reason"].startswith("cannot be made: ValueError")
    assert SECRET not in options.table.to_string() + options.runs.to_string() + json.dumps(options.settings)
    assert broken["n_made"] == 0
    assert math.isnan(broken["utility"])
    assert "InvalidSettingError: k is 2000, but the table has 1700 people" in row_of(options, "k=2000")["reason"]
    assert row_of(options, "k=5")["is_proposed"]


def test_the_policy_refuses_here_what_it_would_refuse_there(options):
    refused = row_of(options, "k=2")
    assert not refused["is_admitted"]
    assert refused["reason"] == f"smallest_class is {refused['smallest_class']:g}; expected at least 5"
    assert refused["utility"] > 0.9
    assert options.best("anonymized") in ("k=5", "suppressing")
    assert row_of(options, "smooth_cart k=3")["n_made"] == 2


def test_the_settings_to_paste_have_new_seeds_and_are_yaml(options):
    pasted = [yaml.safe_load(options.yaml("smooth_cart k=3")) for _ in range(2)]
    assert pasted[0]["synthetic"]["seed"] != pasted[1]["synthetic"]["seed"]
    assert pasted[0]["split"]["seed"] != pasted[1]["split"]["seed"]
    assert not OptionsSettings(seed=4).are_seeds_of(pasted[0]["synthetic"]["seed"], pasted[0]["split"]["seed"])
    for each in pasted:
        del each["synthetic"]["seed"], each["split"]["seed"]
    assert pasted[0] == {
        "split": {"train_fraction": 0.8},
        "synthetic": {"method": "smooth_cart"},
        "generalize_synthetic": {"k": 3},
    }
    assert yaml.safe_load(options.yaml("suppressing")) == {"anonymized": {"k": 5, "max_suppression": 0.02}}
    with pytest.raises(InvalidSettingError, match="There is no candidate 'k=7'"):
        options.yaml("k=7")
    with pytest.raises(InvalidSettingError, match="side is 'both'"):
        options.best("both")


def test_results_are_taken_from_an_earlier_comparison_of_the_same_table_and_settings(options, monkeypatch):
    made = []
    measure = making.Bench.measure
    monkeypatch.setattr(making.Bench, "measure", lambda *each: made.append(each[1].name) or measure(*each))
    more = (*CANDIDATES[:5], Candidate(anonymized=AnonymizationSettings(k=4)))

    def again(table, policy=POLICY, seed=4, candidates=more):
        made.clear()
        return compare_releases(table, CONTRACT, policy, candidates=candidates, seed=seed, earlier=options)

    found = again(people())
    assert made == ["k=4"]
    pd.testing.assert_frame_equal(found.runs[:7], options.runs[:7])
    again(people(), candidates=[replace(CANDIDATES[0], name="another name")])
    assert made == []
    again(people(seed=2), candidates=more[:1])
    assert made == ["k=2"]
    again(people(), seed=5, candidates=more[:1])
    assert made == ["k=2"]
    again(people(), policy=POLICY.with_limit(Limit("smallest_class", 2)), candidates=more[:1])
    assert made == ["k=2"]


def test_time_ends_with_what_was_done(monkeypatch):
    clock = iter(range(0, 10_000, 40))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    begun = []
    found = compare_releases(
        people(300), CONTRACT, POLICY, candidates=CANDIDATES[:4], limit_seconds=300, progress=begun.append
    )
    assert begun[0] == ("k=2", 0, 4)
    assert len(begun) == 4
    made = found.table["n_made"].tolist()
    assert made[0] == 1
    assert made[-1] == 0
    assert "time" in found.table["reason"].iloc[-1]
    assert not found.table["is_proposed"].iloc[-1]


@pytest.fixture
def clock(monkeypatch):
    """Return the clock of the comparison, which only moves when it is told to."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


@NEEDS_TREES
def test_time_ends_a_built_in_synthesizer_between_two_columns(clock, monkeypatch):
    learned = []

    def slowly(self, trees, position, *_):
        learned.append(position)
        clock[0] += 100
        return Cart._grow_at_once(self, trees, position, *_)

    monkeypatch.setattr(Cart, "_grow_at_once", Cart._grow, raising=False)
    monkeypatch.setattr(Cart, "_grow", slowly)
    found = compare_releases(
        people(), CONTRACT, POLICY, candidates=[Candidate(synthetic=Synthesis("cart"))], limit_seconds=150
    )
    assert learned == [0, 1]
    assert found.table["reason"].tolist() == ["not finished: time ran out"]


def test_a_synthesizer_that_would_take_longer_than_what_is_left_is_not_begun_again(clock):
    learned = []

    class Slow(Resampled):
        def fit(self, table, *, seed):
            learned.append(seed)
            clock[0] += 60
            return super().fit(table, seed=seed)

    def compared(limit_seconds):
        learned.clear()
        clock[0] = 0.0
        slow = Candidate(synthetic=Synthesis(method=Slow()))
        found = compare_releases(people(), CONTRACT, POLICY, candidates=[slow], limit_seconds=limit_seconds)
        return len(learned), found.runs["problem"].tolist()

    assert compared(119) == (1, ["", "not made again: the first time took longer than the remaining time"])
    assert compared(121) == (2, ["", ""])


def test_it_is_stored_and_drawn(options, tmp_path):
    write_artifact(tmp_path / "options", options.to_artifact())
    read = ReleaseOptions.from_artifact(read_artifact(tmp_path / "options"))
    pd.testing.assert_frame_equal(read.table, options.table)
    assert read.candidates == options.candidates
    assert read.recommended == options.recommended
    assert read.picture().startswith(b"\x89PNG")
    assert "candidates with anonymized records" in read.map()
    assert read.plot().axes
    assert len(read.map()) < 90_000


@pytest.mark.parametrize(
    ("table", "message", "recommended"),
    [
        (people(1), "InvalidTableError|but the table has 1 p", {}),
        # Without worth, the first that is admitted.
        (people(30), "", {"anonymized": "k=5"}),
        (people(600).assign(plan="one", age=40, cost=1), "", {"anonymized": "k=2"}),
    ],
    ids=["one person", "a small control", "constant columns"],
)
def test_tables_that_nothing_can_be_made_or_judged_of(table, message, recommended):
    found = compare_releases(table, CONTRACT, POLICY, candidates=CANDIDATES[:5])
    assert len(found.table) == 5
    assert found.table["utility"].isna().all()
    assert found.table["reason"].str.contains(message).all()
    assert found.recommended == recommended
    assert found.picture().startswith(b"\x89PNG")


def test_a_table_of_one_column_and_one_without_records():
    contract = {"one_row_per_person": True, "columns": {"age": CONTRACT["columns"]["age"]}}
    found = compare_releases(people(700)[["age"]], contract, POLICY, candidates=CANDIDATES[:4])
    assert found.table["utility"].isna().all()
    assert len(found.table) == 4
    with pytest.raises((InvalidTableError, Exception), match="record"):
        compare_releases(people(0), CONTRACT, POLICY)


def test_standard_candidates_fit_the_sides_and_the_table():
    def names(contract=CONTRACT, policy=POLICY, n=300):
        # Nothing is made: time has ended before it began.
        found = compare_releases(people(n)[list(contract["columns"])], contract, policy, limit_seconds=1e-9)
        return found.table["candidate"].tolist()

    whole = names()
    assert len(whole) >= 20
    assert {"k=2", "k=50", "k=5 l=2", "k=5 t=0.3", "gaussian_copula", "cart leaf=100", "cart leaf=100 k=10"} <= {*whole}
    assert "k=50" not in names(n=90)
    known = {"columns": {name: each for name, each in CONTRACT["columns"].items() if name != "cost"}}
    assert not [name for name in names(known) if "l=" in name or "t=" in name]
    synthetic = Policy((Limit("privacy_risk_score", 0.9),))
    assert all("cart" in name or "copula" in name for name in names(policy=synthetic))
    of_records = Policy((Limit("smallest_class", 3),))
    assert all(name.startswith("k=") for name in names(policy=of_records))
    hierarchies = {"age": {"intervals": [5, 10]}, "plan": {"tree": {"all": ["single", "family"]}}}
    columns = {
        name: each | ({"hierarchy": hierarchies[name]} if name in hierarchies else {})
        for name, each in CONTRACT["columns"].items()
    }
    assert "lattice k=5" in names({"columns": columns}, of_records)


def test_a_policy_that_no_candidate_fits_is_refused():
    contract = {"one_row_per_person": True, "columns": {"cost": CONTRACT["columns"]["cost"]}}
    with pytest.raises(InvalidSettingError, match="no standard candidate"):
        compare_releases(people(50)[["cost"]], contract, Policy((Limit("smallest_class", 3),)))


def test_candidates_are_named_by_their_settings_and_wrong_ones_are_refused():
    assert Candidate(anonymized=AnonymizationSettings(k=3, l_diversity=LDiversity(2, "entropy"))).name == (
        "k=3 entropy l=2"
    )
    for wrong, message in (
        ({}, "this one has neither"),
        ({"synthetic": Synthesis(), "anonymized": AnonymizationSettings(k=2)}, "this one has both"),
        ({"anonymized": AnonymizationSettings(k=2), "generalize_synthetic": AnonymizationSettings(k=2)}, "no `synthe"),
        ({"synthetic": Synthesis(seed=1)}, "leave the seed out"),
        ({"synthetic": "cart"}, "is a str; expected Synthesis"),
        ({"synthetic": Synthesis(), "name": ""}, "printable text of 1 to 80"),
    ):
        with pytest.raises(InvalidSettingError, match=message):
            Candidate(**wrong)
    twice = [Candidate(synthetic=Synthesis(), name="a"), Candidate(anonymized=AnonymizationSettings(k=2), name="a")]
    for settings_, message in (
        ({"candidates": twice}, r"Several candidates are called \['a'\]"),
        ({"candidates": []}, "a list of 1 to"),
        ({"candidates": "all"}, "'standard' or a list"),
        ({"n_seeds": 1}, "one draw alone does not show"),
        ({"seed": -1}, "options.seed"),
        ({"limit_seconds": 0}, "options.limit_seconds"),
    ):
        with pytest.raises(InvalidSettingError, match=message):
            OptionsSettings(**settings_)
    assert OptionsSettings().candidates == STANDARD


# The choice, against the definition.


def runs_of(scores, n_seeds, worth=0.9):
    return pd.DataFrame(
        [
            {
                "candidate": f"c{place}",
                "side": "synthetic",
                "problem": "",
                "failed": "",
                "seconds": 1.0,
                "utility": worth,
                "utility_lower": worth - 0.02,
                "utility_upper": worth + 0.02,
                "worth_in_people": 10.0,
                "n_originals": 100.0,
                "utility_limited": float("nan"),
                "privacy_risk_score": score,
                "leakage_detected": 0.0,
            }
            for place, own in enumerate(scores)
            for score in own[:n_seeds]
        ]
    )


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.floats(0, 0.5, allow_subnormal=False), min_size=2, max_size=2), min_size=1, max_size=5))
def test_only_candidates_two_deviations_inside_their_limits_are_proposed(scores):
    limit = Limit("privacy_risk_score", 0.3)
    candidates = {f"c{place}": {"side": "synthetic", "settings": {}} for place in range(len(scores))}
    table = table_of(runs_of(scores, 2), candidates, {"synthetic": [limit], "anonymized": []}, 2)
    common = math.sqrt(sum((a - b) ** 2 / 2 for a, b in scores) / len(scores))
    for (a, b), proposed in zip(scores, table["is_proposed"], strict=True):
        inside = 0.3 - (a + b) / 2 - 2 * max(common, abs(a - b) / math.sqrt(2))
        if abs(inside) > 1e-9:
            assert proposed == (inside > 0)


def test_leakage_in_one_draw_is_enough_even_if_the_policy_does_not_limit_it():
    runs = runs_of([[0.1, 0.1], [0.1, 0.1]], 2)
    runs.loc[3, "leakage_detected"] = 1.0
    candidates = {name: {"side": "synthetic", "settings": {}} for name in ("c0", "c1")}
    limits = {"synthetic": [Limit("privacy_risk_score", 0.3)], "anonymized": []}
    table = table_of(runs, candidates, limits, 2)
    assert table["is_proposed"].tolist() == [True, False]
    assert table["is_admitted"].tolist() == [True, True]
    assert table["reason"].tolist() == ["", "leakage was detected"]
    once = table_of(runs[:3], candidates, limits, 2)
    assert once["reason"].tolist()[1] == "made 1 of 2 times in time"
    assert not once["is_admitted"].tolist()[1]


def test_generalized_records_differ_more_and_do_not_count_for_the_others():
    runs = runs_of([[0.28, 0.28], [0.1, 0.2]], 2)
    limits = {"synthetic": [Limit("privacy_risk_score", 0.3)], "anonymized": []}
    plain = {"side": "synthetic", "settings": {}}
    generalized = {"side": "synthetic", "settings": {"generalize_synthetic": {"k": 3}}}
    assert table_of(runs, {"c0": plain, "c1": generalized}, limits, 2)["is_proposed"].tolist() == [True, True]
    assert table_of(runs, {"c0": plain, "c1": plain}, limits, 2)["is_proposed"].tolist() == [False, True]


BEYOND = Policy(
    (
        Limit("privacy_risk_score", 0.3, beyond="exposed_share"),
        Limit("leakage_detected", 0),
        Limit("originals_singled_out", 0.3, beyond="exposed_share"),
    )
)


def wide_runs(scores, exposed, of_strangers=0.8):
    """Return two draws per candidate, whose scores and exposed shares are given as pairs."""
    own = {
        "score_of_related_columns": runs_of(scores, 2)["privacy_risk_score"],
        "score_of_strangers": of_strangers,
        "score_of_strangers_on_related_columns": of_strangers,
        "originals_singled_out": 0.01,
        "originals_singled_out_by_strangers": 0.01,
        "exposed_share": [value for pair in exposed for value in pair],
    }
    return runs_of(scores, 2).assign(**own)


def decided(scores, exposed, **more):
    limits = {"synthetic": BEYOND.limits_of("synthetic"), "anonymized": []}
    candidates = {f"c{place}": {"side": "synthetic", "settings": {}} for place in range(len(scores))}
    table = table_of(wide_runs(scores, exposed, **more), candidates, limits, 2)
    return table["is_proposed"].tolist(), table["reason"].tolist()


def test_where_people_never_seen_fail_the_limit_the_margin_is_that_of_what_decides_instead():
    far, near = [0.1, 0.1], [0.24, 0.29]
    # The score may vary, because it is beyond its limit in every draw; what decides may not come near to it.
    assert decided([[0.5, 0.9]], [far]) == ([True], [""])
    proposed, [reason] = decided([[0.5, 0.9]], [near])
    assert not proposed[0]
    assert reason == "exposed_share is 0.265, within two standard deviations (0.0354) of its limit"
    # A score just inside its limit could be beyond it in the next draw, where the other figure decides.
    assert decided([[0.28, 0.298]], [far]) == ([True], [""])
    assert decided([[0.28, 0.298]], [near])[1][0].startswith("exposed_share is 0.265")
    # If strangers meet the limit, the score alone decides, and what would decide instead is not asked.
    assert decided([[0.1, 0.11]], [near], of_strangers=0.2) == ([True], [""])
    assert decided([[0.28, 0.298]], [far], of_strangers=0.2)[1][0].startswith("privacy_risk_score is 0.289")


def test_the_risk_of_candidates_is_what_decided_on_them():
    limits = BEYOND.limits_of("synthetic")
    narrow, wide = wide_runs([[0.1, 0.1]], [[0.2, 0.2]]), wide_runs([[0.9, 0.9]], [[0.2, 0.2]])
    assert risk_that_decides(narrow, limits, "privacy_risk_score") == "privacy_risk_score"
    assert risk_that_decides(wide, limits, "privacy_risk_score") == "exposed_share"
    assert risk_that_decides(wide.assign(failed="refused"), limits, "privacy_risk_score") == "privacy_risk_score"
    assert risk_that_decides(wide, [Limit("privacy_risk_score", 0.3)], "privacy_risk_score") == "privacy_risk_score"


def test_it_ends_on_each_side_at_the_first_candidate_that_is_good_enough():
    copula = Candidate(synthetic=Synthesis("gaussian_copula"))
    candidates = [*CANDIDATES[:3], copula, CANDIDATES[3], replace(copula, name="again")]
    every = compare_releases(people(), CONTRACT, POLICY, candidates=candidates, seed=4)
    worth = every.table.set_index("candidate")["utility"]
    until = min(worth["k=5"], worth["smooth_cart"]) - 0.001
    assert worth["gaussian_copula"] < until < 1
    found = compare_releases(people(), CONTRACT, POLICY, candidates=candidates, seed=4, until=until, earlier=every)
    assert not row_of(found, "k=2")["is_admitted"]
    for name in ("k=5", "gaussian_copula", "smooth_cart"):
        assert row_of(found, name)["is_proposed"]
    for name, first in (("suppressing", "k=5"), ("again", "smooth_cart")):
        row = row_of(found, name)
        assert row["reason"] == f"not tried: {first} can be proposed, and its worth is at least {until:g}"
        assert not row["is_admitted"]
        assert row["n_made"] == 0
    assert found.recommended == {"anonymized": "k=5", "synthetic": "smooth_cart"}
    assert found.settings["digest"] != every.settings["digest"]


def test_the_least_risky_of_those_that_are_worth_as_much_is_recommended():
    table = pd.DataFrame(
        {
            "candidate": ["best", "as good", "as good, riskier", "worse", "refused"],
            "side": "anonymized",
            "is_proposed": [True, True, True, True, False],
            "utility": [0.95, 0.94, 0.935, 0.90, 0.99],
            "utility_lower": [0.93, 0.92, 0.91, 0.88, 0.98],
            "utility_upper": [0.97, 0.96, 0.95, 0.92, 1.0],
            "risk": [0.5, 0.2, 0.3, 0.1, 0.0],
        }
    )
    assert best_of(table, "anonymized", "risk") == "as good"
    assert best_of(table, "synthetic", "risk") is None
    unjudged = table.assign(utility=np.nan, utility_lower=np.nan, utility_upper=np.nan)
    assert best_of(unjudged, "anonymized", "risk") == "best"
