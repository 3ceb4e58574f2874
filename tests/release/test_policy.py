import dataclasses
import math
import re

import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.policy import (
    KNOWN_ROWS,
    TOTAL_EPSILON,
    USE_CASES,
    Limit,
    Policy,
    RequiredSettings,
    follows_from_class_size,
)
from privacy_assets.synthesis.synthesize import SYNTHESIZERS


@pytest.mark.parametrize(
    ("use_case", "value", "k", "refuses_rare_values"),
    [
        ("public_release", 0.05, 11, True),
        ("research_sharing", 0.10, 5, True),
        ("internal_analytics", 0.20, 3, False),
        ("development", 0.30, 2, False),
        ("high_risk_data", 0.01, 20, True),
    ],
)
def test_presets_have_the_published_limits_and_refuse_detected_leakage(use_case, value, k, refuses_rare_values):
    policy = Policy.for_use_case(use_case)
    limits = {limit.metric: limit for limit in policy.limits}
    assert limits["privacy_risk_score"].value == value
    assert limits["privacy_risk_score"].direction == "below"
    assert limits["leakage_detected"].holds_for(0.0)
    assert not limits["leakage_detected"].holds_for(1.0)
    assert limits["smallest_class"].holds_for(k)
    assert not limits["smallest_class"].holds_for(k - 1)
    assert limits["max_reidentification_probability"].holds_for(1 / k)
    assert not limits["max_reidentification_probability"].holds_for(1 / (k - 1))
    warned = [] if refuses_rare_values else ["rare_values_released", "share_in_homogeneous_classes"]
    # Only if one row is known does it only warn.
    warned += ["share_certain_by_rows"] if policy.known_rows == 1 else []
    assert [name for name, limit in limits.items() if limit.severity == "warn"] == warned
    assert limits["rare_values_released"].holds_for(0.0)
    assert not limits["rare_values_released"].holds_for(1.0)
    assert policy.people_per_value == k
    # The use cases that refuse do so where a value is certain for more people than may be picked: one of k.
    bound = 1 / k if refuses_rare_values else 0.0
    for metric in ("share_in_homogeneous_classes", "share_certain_by_rows"):
        assert limits[metric].holds_for(bound)
        assert not limits[metric].holds_for(bound + 1e-6)


def test_a_limit_belongs_to_the_side_that_it_is_about():
    policy = Policy.for_use_case("development").with_limit(Limit("l_diversity", 2))
    assert [limit.metric for limit in policy.limits_of("synthetic")] == [
        "privacy_risk_score",
        "originals_singled_out",
        "leakage_detected",
        "copies_beyond_people",
        "rare_values_released",
        "exposed_share",
    ]
    assert [limit.metric for limit in policy.limits_of("anonymized")] == [
        "smallest_class",
        "max_reidentification_probability",
        "share_in_homogeneous_classes",
        "share_certain_by_rows",
        "l_diversity",
    ]
    assert policy.limit_on("l_diversity").value == 2
    assert policy.limit_on("t_closeness") is None


def test_a_limit_that_asks_for_more_risk_is_refused():
    for metric, direction in (("smallest_class", "at_most"), ("privacy_risk_score", "above"), ("t_closeness", "above")):
        with pytest.raises(InvalidSettingError, match="would require more risk"):
            Limit(metric, 0.5 if metric != "smallest_class" else 5, direction)


def test_semantic_risk_never_stands_alone():
    with pytest.raises(InvalidSettingError, match="never stricter than the size of the classes"):
        Policy((Limit("privacy_risk_score", 0.1), Limit("maximum_semantic_risk", 0.2)))
    Policy((Limit("smallest_class", 5), Limit("maximum_semantic_risk", 0.2)))


@pytest.mark.parametrize("metric", ["maximum_semantic_risk", "medium_semantic_risk"])
def test_a_semantic_risk_of_nothing_is_refused(metric):
    for direction in ("at_most", "below"):
        with pytest.raises(InvalidSettingError, match=f"The limit on '{metric}' requires .* 0, which is never met"):
            Limit(metric, 0, direction)


@pytest.mark.parametrize("known", ["age", ["age"], [["age"], []], 5])
def test_what_an_attacker_knows_is_a_list_of_lists(known):
    with pytest.raises(InvalidSettingError, match="must be a list of non-empty lists of columns"):
        Policy((Limit("smallest_class", 5),), known=known)


@pytest.mark.parametrize("known_rows", [0, -1, 2.5, True, "most", "ALL", None, [4], math.nan])
def test_known_rows_are_a_number_of_rows_or_all(known_rows):
    with pytest.raises(InvalidSettingError, match="known_rows` of the policy is .*; expected the number of rows"):
        Policy((Limit("smallest_class", 5),), known_rows=known_rows)


def test_known_rows_follow_the_use_case_and_are_all_without_one():
    presets = {name: Policy.for_use_case(name).known_rows for name in USE_CASES}
    assert presets == KNOWN_ROWS
    assert (presets["research_sharing"], presets["high_risk_data"], presets["development"]) == (4, "all", 1)
    policy = Policy((Limit("smallest_class", 5),), known_rows=10**6)
    assert (policy.to_json()["known_rows"], policy.changes) == (10**6, ())
    assert Policy(policy.limits).known_rows == "all"
    changed = dataclasses.replace(Policy.for_use_case("public_release"), known_rows=3)
    assert changed.changes == ("known_rows",)
    assert changed.with_limit(Limit("verbatim_copies", 0)).known_rows == 3


def test_a_loss_warns_by_default_and_a_class_size_blocks():
    assert Limit("information_loss", 0.2).severity == "warn"
    assert Limit("information_loss", 0.2, severity="error").blocks
    assert Limit("smallest_class", 5).blocks


def test_an_unknown_use_case_is_refused_with_those_that_exist():
    with pytest.raises(InvalidSettingError, match="no use case 'public'.*public_release, research_sharing"):
        Policy.for_use_case("public")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "privacy_score", "value": 0.1}, "no metric 'privacy_score'.*privacy_risk_score"),
        ({"metric": "privacy_risk_score", "value": 1.5}, "is 1.5; expected a finite number from 0 to 1"),
        ({"metric": "smallest_class", "value": math.inf}, "is inf; expected a finite number"),
        ({"metric": "total_identified", "value": 10**400}, "expected a finite number"),
        ({"metric": "privacy_risk_score", "value": math.nan}, "is nan; expected"),
        ({"metric": "privacy_risk_score", "value": "0.1"}, "is '0.1'; expected a finite number"),
        ({"metric": "privacy_risk_score", "value": 0.1, "direction": "under"}, "direction 'under'"),
        ({"metric": "privacy_risk_score", "value": 0.1, "severity": "fatal"}, "severity 'fatal'"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(InvalidSettingError, match=message):
        Limit(**arguments)


@pytest.mark.parametrize(
    ("direction", "below", "equal", "above"),
    [
        ("below", True, False, False),
        ("at_most", True, True, False),
        ("above", False, False, True),
        ("at_least", False, True, True),
    ],
)
def test_a_limit_holds_on_its_own_side_only_and_never_for_nan(direction, below, equal, above):
    metric = "privacy_risk_score" if direction in ("below", "at_most") else "overall_protection"
    limit = Limit(metric, 0.5, direction)
    assert [limit.holds_for(value) for value in (0.4, 0.5, 0.6)] == [below, equal, above]
    assert not limit.holds_for(math.nan)
    assert not limit.holds_for(None)


def test_a_policy_that_blocks_nothing_is_refused():
    with pytest.raises(InvalidSettingError, match="would admit everything"):
        Policy((Limit("privacy_risk_score", 0.1, severity="warn"),))
    with pytest.raises(InvalidSettingError, match="would admit everything"):
        Policy(())


def test_a_metric_is_limited_once_and_can_be_overridden():
    policy = Policy.for_use_case("development")
    with pytest.raises(InvalidSettingError, match="more than once.*privacy_risk_score"):
        Policy((*policy.limits, Limit("privacy_risk_score", 0.1)))
    stricter = policy.with_limit(Limit("privacy_risk_score", 0.1)).with_limit(Limit("verbatim_copies", 0))
    assert [(limit.metric, limit.value) for limit in stricter.limits] == [
        ("privacy_risk_score", 0.1),
        ("originals_singled_out", 0.3),
        ("leakage_detected", 0),
        ("copies_beyond_people", 0),
        ("rare_values_released", 0),
        ("smallest_class", 2),
        ("max_reidentification_probability", 0.5),
        ("share_in_homogeneous_classes", 0),
        ("share_certain_by_rows", 0),
        ("verbatim_copies", 0),
    ]


@pytest.mark.parametrize("columns", [0, -1, True, 2.5])
def test_required_columns_are_a_whole_number_from_one(columns):
    with pytest.raises(InvalidSettingError, match="whole number from 1"):
        RequiredSettings(max_baseline_cols=columns)


def test_advice_on_a_limit_is_its_own_or_that_of_the_metric_and_never_a_list():
    assert Limit("privacy_risk_score", 0.1, advice="Ask us.").default_advice == "Ask us."
    for metric in METRICS:
        advice = Limit(metric, METRICS[metric].low + 0.5).default_advice
        assert advice.strip().endswith(".")
        # Larger classes do nothing for synthetic records.
        assert METRICS[metric].assessment != "mpucc_assessment" or "k-anonymity" not in advice, metric


@pytest.mark.parametrize("metric", ["utility", "utility_columns"])
def test_advice_for_more_utility_names_the_synthesizer_that_does_not_copy_first(metric):
    words = re.findall(r"\w+", Limit(metric, 0.8).default_advice)
    named = [word for word in words if word in SYNTHESIZERS]
    assert named == ["smooth_cart", "cart"]
    assert {"trees", "copies"} < {*words}


@pytest.mark.parametrize(
    ("limit", "protects"),
    [
        (Limit("privacy_risk_score", 0.999), True),
        (Limit("privacy_risk_score", 1), True),  # below 1: that of a copy is 1
        (Limit("main_protection", 0), True),
        (Limit("leakage_detected", 0), True),
        (Limit("identification_rate", 0.5, severity="warn"), False),
        # The same for whatever synthetic records there are, or of any size.
        (Limit("baseline_protection", 0.5), False),
        (Limit("total_identified", 10**12), False),
        (Limit("verbatim_copies", 10**9), False),
        # Copies of originals whose values are all frequent meet it.
        (Limit("rare_values_released", 0), False),
        (Limit("excess_copy_rate", 0.999), False),
    ],
)
def test_a_limit_that_copies_of_originals_can_meet_protects_nobody(limit, protects):
    assert limit.protects == protects


@pytest.mark.parametrize(
    ("limit", "protects"),
    [
        (Limit("smallest_class", 2), True),
        (Limit("smallest_class", 1.9), False),
        (Limit("smallest_class", 1, "above"), True),
        (Limit("smallest_class", 5, severity="warn"), False),
        (Limit("l_diversity", 2), True),
        (Limit("l_diversity", 1.5), False),
        (Limit("max_reidentification_probability", 0.5), True),
        (Limit("max_reidentification_probability", 0.51), False),
        (Limit("max_reidentification_probability", 0.5, severity="warn"), False),
        (Limit("information_loss", 0.5, severity="error"), False),
    ],
)
def test_a_limit_that_lets_single_people_out_protects_nobody(limit, protects):
    assert limit.protects == protects
    policy = Policy((limit, Limit("privacy_risk_score", 0.1)))
    assert policy.protects("anonymized") == protects
    assert policy.protects("synthetic")


@pytest.mark.parametrize(
    ("limits", "is_added"),
    [
        ((), True),
        ((Limit("max_reidentification_probability", 0.2),), True),
        ((Limit("l_diversity", 2),), False),
        ((Limit("t_closeness", 0.5, severity="warn"),), False),
        ((Limit("share_in_homogeneous_classes", 0.5),), False),
    ],
)
def test_certain_values_are_warned_of_unless_the_policy_limits_sensitive_values(limits, is_added):
    own = (Limit("smallest_class", 5), *limits)
    found = Policy(own).limits_of("anonymized")
    assert found[: len(own)] == own
    assert found[len(own) :] == ((Limit("share_in_homogeneous_classes", 0),) if is_added else ())
    assert Policy((*own, Limit("privacy_risk_score", 0.1))).limits_of("synthetic") == (
        Limit("privacy_risk_score", 0.1),
    )


@pytest.mark.parametrize(
    ("smallest", "limit", "follows"),
    [
        (Limit("smallest_class", 5), Limit("max_reidentification_probability", 0.2), True),
        (Limit("smallest_class", 5), Limit("max_reidentification_probability", 0.19), False),
        (Limit("smallest_class", 5), Limit("max_reidentification_probability", 0.2, "below"), False),
        # More than four is five at least.
        (Limit("smallest_class", 4, "above"), Limit("max_reidentification_probability", 0.2), True),
        (Limit("smallest_class", 4, "above"), Limit("max_reidentification_probability", 0.19), False),
        (Limit("smallest_class", 5, severity="warn"), Limit("max_reidentification_probability", 0.2), False),
        (Limit("l_diversity", 5), Limit("max_reidentification_probability", 0.2), False),
        (Limit("smallest_class", 5), Limit("mean_reidentification_probability", 0.2), False),
    ],
)
def test_a_probability_follows_from_the_size_of_classes_that_is_held(smallest, limit, follows):
    assert follows_from_class_size(limit, (limit, smallest)) == follows


def test_a_budget_that_only_warns_is_refused_and_one_that_blocks_stays():
    policy = Policy.for_use_case("public_release")
    assert policy.with_total_epsilon().limit_on("total_epsilon") == Limit("total_epsilon", TOTAL_EPSILON)
    own = policy.with_limit(Limit("total_epsilon", 1.0))
    assert own.with_total_epsilon() == own
    with pytest.raises(InvalidSettingError, match="'total_epsilon' only warns, so the budget would be unlimited"):
        policy.with_limit(Limit("total_epsilon", 1.0, severity="warn")).with_total_epsilon()


def test_a_preset_that_was_changed_says_so():
    preset = Policy.for_use_case("public_release")
    assert preset.changes == ()
    assert preset.with_limit(Limit("verbatim_copies", 0)).changes == ()
    changed = preset.with_limit(Limit("smallest_class", 2)).with_required(exact_search=False)
    assert changed.changes == ("smallest_class", "required.exact_search")
    assert changed.to_json()["changes"] == ["smallest_class", "required.exact_search"]
    fewer = Policy(preset.limits[:3], use_case="public_release", known=(("age",),))
    assert fewer.changes[-1] == "known"
    assert "smallest_class" in fewer.changes
    assert Policy((Limit("smallest_class", 2),)).changes == ()


@pytest.mark.parametrize(
    ("required", "message"),
    [
        ({"exact_search": 1}, "exact_search=1; expected True or False"),
        ({"deduplicated": "no"}, "deduplicated='no'; expected True or False"),
        ({"control_records": -5}, "control_records=-5; expected a whole number from 0"),
        ({"confidence_level": 7}, "confidence_level=7; expected a number between 0 and 1"),
        ({"detectable_share": 0}, "detectable_share=0; expected a number above 0 and at most 1, or None"),
        ({"detectable_share": 1.5}, "detectable_share=1.5; expected a number above 0"),
        ({"detectable_share": True}, "detectable_share=True; expected a number above 0"),
        ({"detectable_share": float("nan")}, "detectable_share=nan; expected a number above 0"),
        ({"people_per_value": 0}, "people_per_value=0; expected a whole number from 1, or None"),
        ({"people_per_value": True}, "people_per_value=True; expected a whole number from 1, or None"),
        ({"people_per_value": 2.5}, "people_per_value=2.5; expected a whole number from 1, or None"),
    ],
)
def test_required_settings_that_make_no_sense_are_refused(required, message):
    with pytest.raises(InvalidSettingError, match=re.escape(message)):
        RequiredSettings(**required)


@pytest.mark.parametrize(
    ("policy", "people"),
    [
        (Policy((Limit("privacy_risk_score", 0.1),)), 3),
        (Policy((Limit("smallest_class", 7),)), 7),
        (Policy((Limit("smallest_class", 6.5),)), 7),
        (Policy((Limit("smallest_class", 6, "above"),)), 7),
        (Policy((Limit("smallest_class", 7, severity="warn"), Limit("privacy_risk_score", 0.1))), 3),
        (Policy((Limit("smallest_class", 7),), RequiredSettings(people_per_value=4)), 4),
        (Policy.for_use_case("public_release").with_limit(Limit("smallest_class", 20)), 20),
        (Policy.for_use_case("public_release").with_limit(Limit("smallest_class", 2, severity="warn")), 11),
    ],
)
def test_a_value_is_rare_as_a_class_is_small_unless_the_policy_says_otherwise(policy, people):
    assert policy.people_per_value == people


def test_a_policy_by_hand_has_no_limit_on_rare_values():
    assert Policy((Limit("privacy_risk_score", 0.1),)).limit_on("rare_values_released") is None


@pytest.mark.parametrize(
    ("limit", "bound"),
    [
        (Limit("rare_values_released", 2_000_000), "at most 2,000,000"),
        (Limit("smallest_class", 1_000_000), "at least 1,000,000"),
        (Limit("privacy_risk_score", 0.2), "below 0.2"),
        (Limit("leakage_detected", 0), "no"),
    ],
)
def test_a_bound_reads_as_people_write_it(limit, bound):
    assert limit.bound == bound


@pytest.mark.parametrize("metric", ["smallest_class", "max_reidentification_probability"])
def test_what_counts_people_says_so(metric):
    assert "people" in METRICS[metric].meaning


def test_a_limit_on_worth_is_on_both_sides_and_protects_neither():
    worth = Limit("utility", 0.8)
    policy = Policy((Limit("privacy_risk_score", 0.1), Limit("smallest_class", 3), worth))
    assert worth.severity == "warn"
    for side in ("synthetic", "anonymized"):
        assert worth in policy.limits_of(side)
        assert not Policy((Limit("utility", 0.8, severity="error"),)).protects(side)
    assert not worth.protects
    assert not Limit("smallest_class", 3).is_on("synthetic")


def test_presets_warn_of_records_that_are_worth_little_where_it_is_assessed():
    preset = Policy.for_use_case("research_sharing")
    assert preset.limit_on("utility") is None
    warned = preset.with_worth_warnings()
    assert {limit.metric: (limit.value, limit.direction, limit.severity) for limit in warned.limits[-2:]} == {
        "utility": (0.8, "at_least", "warn"),
        "utility_columns": (0.9, "at_least", "warn"),
    }
    assert warned.limits[:-2] == preset.limits
    assert warned.changes == ()
    assert warned.with_worth_warnings() == warned


def test_a_limit_on_worth_of_its_own_stays_and_a_policy_by_hand_gets_no_warnings():
    own = Limit("utility", 0.5, severity="error")
    warned = Policy.for_use_case("development").with_limit(own).with_worth_warnings()
    assert warned.limit_on("utility") == own
    assert warned.limit_on("utility_columns").severity == "warn"
    by_hand = Policy((Limit("privacy_risk_score", 0.1),))
    assert by_hand.with_worth_warnings() is by_hand
