"""A limit that people never seen fail, too, is decided by the exposed share; everything else is decided as before."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.errors import InvalidSettingError
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.release.evidence import Evidence
from privacy_assets.release.files import ReleaseRecord, write_release
from privacy_assets.release.gate import Verdict, is_admitted, limit_verdict, verdicts
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.metrics import DISCLOSURE, MPUCC
from privacy_assets.release.policy import OF_STRANGERS, Limit, Policy, RequiredSettings
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.examples import examples
from tests.release.test_gate import POLICY, with_metrics

NAMES = (
    "privacy_risk_score",
    "score_of_strangers",
    "score_of_related_columns",
    "score_of_strangers_on_related_columns",
    "originals_singled_out",
    "originals_singled_out_by_strangers",
    "leakage_detected",
    "exposed_share",
)
LIMITS = [0.01, 0.05, 0.1, 0.2, 0.3]
figure = st.none() | st.just(float("nan")) | st.sampled_from([0.0, *LIMITS]) | st.floats(0, 1)


def is_below(value, limit):
    """Whether there is such a figure, and it is below the limit; NaN is below nothing."""
    return value is not None and value < limit


def is_at_least(value, limit):
    return value is not None and value >= limit


def of_pair(own, of_strangers, limit):
    """What has no value is never excused, nor is what strangers are not known to fail."""
    if is_below(own, limit):
        return "met"
    return "exposed share" if is_at_least(own, limit) and is_at_least(of_strangers, limit) else "refused"


def rule(figures, limit):
    """Decide in four steps: a verdict for each of the figures, and whether all is admitted."""
    decided = {}
    for name, pairs in {
        "privacy_risk_score": [
            ("privacy_risk_score", "score_of_strangers"),
            ("score_of_related_columns", "score_of_strangers_on_related_columns"),
        ],
        "originals_singled_out": [("originals_singled_out", "originals_singled_out_by_strangers")],
    }.items():
        of_each = [of_pair(figures[own], figures[other], limit) for own, other in pairs]
        # Step 2: the records meet the limit; step 3: strangers would, where the records do not; step 4: nobody can.
        decided[name] = next(outcome for outcome in ("refused", "exposed share", "met") if outcome in of_each)
    is_asked = "exposed share" in decided.values()
    decided["exposed_share"] = "met" if not is_asked or is_below(figures["exposed_share"], limit) else "refused"
    # Step 1: nothing leaks.
    decided["leakage_detected"] = "met" if figures["leakage_detected"] == 0 else "refused"
    return decided, "refused" not in decided.values()


def policy_of(limit, beyond="exposed_share"):
    preset = Policy.for_use_case("research_sharing")
    for name in OF_STRANGERS:
        preset = preset.with_limit(Limit(name, limit, beyond=beyond))
    return preset


drawn = st.fixed_dictionaries(
    {**dict.fromkeys(NAMES, figure), "leakage_detected": st.sampled_from([0.0, 0.0, 0.0, 1.0, None])}
)


@given(drawn, st.sampled_from(LIMITS))
@settings(max_examples=examples(600), deadline=None)
def test_the_gate_decides_by_the_four_steps(figures, limit):
    policy, evidence = policy_of(limit), with_metrics(**figures)
    decided, admitted = rule(figures, limit)
    found = verdicts(policy, evidence, "s")
    assert is_admitted(found) == admitted
    by_metric = {verdict.metric: verdict for verdict in found if verdict.metric in decided}
    assert by_metric.keys() == decided.keys()
    for name, expected in decided.items():
        verdict = by_metric[name]
        assert verdict.passed == (expected == "met"), name
        assert verdict.blocks == (expected == "refused"), name
        assert (verdict.severity == "warn") == (expected == "exposed share"), name
        assert verdict.limit == (0 if name == "leakage_detected" else limit)


@given(drawn, st.sampled_from(LIMITS))
@settings(max_examples=examples(300), deadline=None)
def test_nothing_is_looser_where_strangers_meet_the_limit(figures, limit):
    narrow = figures | {name: 0.9 * limit for name in figures if "strangers" in name}
    own = is_admitted(verdicts(policy_of(limit), with_metrics(**narrow), "s"))
    assert own <= is_admitted(verdicts(policy_of(limit, beyond=None), with_metrics(**narrow), "s"))
    # Where no columns are apart, the verdict is exactly that of an absolute limit.
    narrow["score_of_related_columns"] = narrow["privacy_risk_score"]
    for name in ("privacy_risk_score", "originals_singled_out", "leakage_detected"):
        one, other = (
            limit_verdict(policy_of(limit, beyond).limit_on(name), with_metrics(**narrow))
            for beyond in ("exposed_share", None)
        )
        assert (one.passed, one.severity, one.value) == (other.passed, other.severity, other.value)
    one, other = (
        is_admitted(verdicts(policy_of(limit, beyond), with_metrics(**narrow), "s"))
        for beyond in ("exposed_share", None)
    )
    assert one == other


@given(drawn, st.sampled_from(LIMITS))
@settings(max_examples=examples(200), deadline=None)
def test_a_stricter_limit_never_admits_more_where_the_figures_of_the_rule_are_known(figures, limit):
    known = {name: 0.5 if value is None or np.isnan(value) else value for name, value in figures.items()}
    known["leakage_detected"] = 0.0
    stricter = is_admitted(verdicts(policy_of(limit / 2), with_metrics(**known), "s"))
    if stricter and not is_admitted(verdicts(policy_of(limit), with_metrics(**known), "s")):
        # Only where strangers meet the looser limit, and fail the stricter one, does a stricter limit admit more.
        others = [name for name in known if "strangers" in name]
        assert any(limit / 2 <= known[name] < limit for name in others)


def small_tables(seed):
    """Four narrow tables of a few columns with few values, with honest records, noise and copies in turn."""
    random = np.random.default_rng(seed)

    def people(n):
        age = random.integers(18, 90, n) // 20
        return pd.DataFrame({"age": age, "town": random.integers(0, 5, n), "job": (age + random.integers(0, 3, n)) % 4})

    original, control, released = people(150), people(150), people(150)
    n_copied = (0, 8, 30, 150)[seed % 4]
    released.iloc[:n_copied] = original.iloc[:n_copied].to_numpy()
    return original, released, control


def test_forty_narrow_tables_are_decided_as_by_absolute_limits():
    outcomes = set()
    for seed in range(40):
        original, released, control = small_tables(seed)
        scores = assess_mpuccs(original, released, control, max_baseline_cols=3).scores
        leakage = assess_disclosure(original, released, control, n_permutations=999, max_known=1, n_threads=1).scores
        figures = {name: scores[name] for name in NAMES[:6]}
        found = leakage["leakage_detected"]
        figures |= {
            "leakage_detected": None if found is None else float(found),
            "exposed_share": leakage["exposed_share"],
        }
        evidence = with_metrics(**figures)
        # Just above what strangers reach, and what is usual.
        for limit in (min(max(figures[name] for name in NAMES[1:6:2]) + 0.01, 1), 0.05, 0.3):
            if max(figures[name] for name in NAMES[1:6:2]) >= limit:
                continue
            one, other = (
                is_admitted(verdicts(policy_of(limit, own), evidence, "s")) for own in ("exposed_share", None)
            )
            assert one == other, (seed, limit, figures)
            outcomes.add(one)
    assert outcomes == {True, False}


def test_the_verdicts_say_which_figure_decides():
    wide = {"privacy_risk_score": 0.99, "score_of_strangers": 0.98, "score_of_related_columns": 0.99}
    wide |= {"score_of_strangers_on_related_columns": 0.98}
    found = {each.metric: each for each in verdicts(POLICY, with_metrics(**wide), "s")}
    assert found["privacy_risk_score"].reason.endswith(
        "; real people whom the synthesizer never saw would have at least 0.98 in their place: even records that copy "
        "nobody fail the limit, so it only warns, and the one on exposed_share decides"
    )
    assert found["exposed_share"].reason == "exposed_share is 0.02; expected below 0.1"
    unasked = {each.metric: each for each in verdicts(POLICY, with_metrics(exposed_share=0.4), "s")}["exposed_share"]
    assert unasked.passed
    assert "it is not asked, because the limits that it could decide are decided by their own figures" in unasked.reason
    of_related = {"score_of_related_columns": 0.3}
    found = {each.metric: each for each in verdicts(POLICY, with_metrics(**of_related), "s")}["privacy_risk_score"]
    assert found.blocks
    assert "would have 0.04 in their place on columns that depend on no others, where they have 0.3" in found.reason


@pytest.mark.parametrize("use_case", ["public_release", "research_sharing", "internal_analytics", "development"])
def test_every_preset_limits_both_figures_beyond_and_the_strictest_is_that_of_the_exposed_share(use_case):
    policy = Policy.for_use_case(use_case)
    assert {limit.metric for limit in policy.limits if limit.beyond is not None} == set(OF_STRANGERS)
    (instead,) = [limit for limit in policy.limits_of("synthetic") if limit.metric == "exposed_share"]
    assert (instead.value, instead.severity) == (policy.limit_on("privacy_risk_score").value, "error")
    stricter = policy.with_limit(Limit("originals_singled_out", 0.01, beyond="exposed_share"))
    assert stricter.limits_of("synthetic")[-1].value == 0.01
    assert not [limit for limit in policy.limits_of("anonymized") if limit.metric == "exposed_share"]
    absolute = policy.with_limit(Limit("privacy_risk_score", 0.1)).with_limit(Limit("originals_singled_out", 0.1))
    assert not [limit for limit in absolute.limits_of("synthetic") if limit.metric == "exposed_share"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"metric": "privacy_risk_score", "beyond": "leakage_detected"},
        {"metric": "privacy_risk_score", "beyond": True},
        {"metric": "identification_rate", "beyond": "exposed_share"},
        {"metric": "smallest_class", "value": 5, "beyond": "exposed_share"},
        {"metric": "privacy_risk_score", "beyond": "exposed_share", "severity": "warn"},
    ],
)
def test_another_limit_cannot_be_decided_by_another_figure(wrong):
    with pytest.raises(
        InvalidSettingError, match=r"has beyond .*Expected 'exposed_share', for a limit of severity 'error'"
    ):
        Limit(**{"value": 0.1, **wrong})


def test_a_policy_with_beyond_needs_the_test_of_leakage_and_no_second_limit():
    own = Limit("privacy_risk_score", 0.1, beyond="exposed_share")
    for others in ((), (Limit("leakage_detected", 0, severity="warn"),)):
        with pytest.raises(InvalidSettingError, match="Add a limit of severity 'error' on leakage_detected"):
            Policy((own, *others))
    leakage = Limit("leakage_detected", 0)
    with pytest.raises(InvalidSettingError, match="limits 'exposed_share', which the limit on 'privacy_risk_score'"):
        Policy((own, leakage, Limit("exposed_share", 0.2)))
    assert Policy((Limit("privacy_risk_score", 0.1), leakage, Limit("exposed_share", 0.2))).limit_on("exposed_share")
    policy = Policy((own, leakage))
    assert own.needs_control
    assert policy.to_json()["limits"][0]["beyond"] == "exposed_share"


def released(directory, **changes):
    """Write a wide release that the exposed share admits."""
    figures = {
        MPUCC: {
            "privacy_risk_score": 0.99,
            "score_of_strangers": 0.98,
            "score_of_related_columns": 0.99,
            "score_of_strangers_on_related_columns": 0.98,
        },
        DISCLOSURE: {"leakage_detected": False, "detectable_share": 0.005, "exposed_share": 0.02},
    }
    for place, own in changes.items():
        figures[place] |= own
    policy = Policy(
        (Limit("privacy_risk_score", 0.1, beyond="exposed_share"), Limit("leakage_detected", 0)), RequiredSettings()
    )
    measured = {name: dict(own) for name, own in figures.items()}
    measured[DISCLOSURE]["leakage_detected"] = 0.0
    evidence = Evidence("synthetic", "synthetic", (), {}, {}, measured=measured)
    decided = [limit_verdict(limit, evidence) for limit in policy.limits_of("synthetic")]
    condition = Verdict("synthetic_is_as_recorded", True, "error", "as recorded")
    table = pd.DataFrame({"age": [31, 42]})
    columns = [{"column": "age", "role": "quasi_identifier"}]
    record = ReleaseRecord("p", "synthetic", None, "run", policy, (condition, *decided), {}, figures, columns, 0)
    return write_release(directory / "p", table, fingerprint(table), record, ("parquet",))


def test_a_release_that_the_exposed_share_admits_verifies_and_its_verdicts_say_so(tmp_path):
    release = released(tmp_path)
    assert verify_release(release, max_bytes=None).verified
    found = {each["metric"]: each for each in json.loads((release / "manifest.json").read_text())["verdicts"]}
    assert (found["privacy_risk_score"]["passed"], found["privacy_risk_score"]["severity"]) == (False, "warn")
    assert (found["exposed_share"]["passed"], found["exposed_share"]["limit"]) == (True, 0.1)


FORGED = {
    "strangers would meet the limit": (MPUCC, "score_of_strangers", 0.06),
    "strangers are unknown": (MPUCC, "score_of_strangers", None),
    "strangers on related columns": (MPUCC, "score_of_strangers_on_related_columns", 0.06),
    "score": (MPUCC, "privacy_risk_score", 0.05),
    "score is unknown": (MPUCC, "privacy_risk_score", None),
    "related score is unknown": (MPUCC, "score_of_related_columns", None),
    "exposed share": (DISCLOSURE, "exposed_share", 0.2),
    "exposed share is unknown": (DISCLOSURE, "exposed_share", None),
}


@pytest.mark.parametrize("forged", FORGED)
def test_an_altered_figure_does_not_verify(forged, tmp_path):
    release = released(tmp_path)
    place, name, value = FORGED[forged]
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["figures"][place][name] = value
    manifest["digest"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))
    found = verify_release(release, max_bytes=None)
    assert not found.verified
    assert any("is not decided as recorded" in each or "differ" in each for each in found.problems), found.problems


@pytest.mark.parametrize(
    ("metric", "changed"),
    [
        ("privacy_risk_score", {"severity": "error"}),
        ("privacy_risk_score", {"passed": True}),
        ("privacy_risk_score", {"passed": True, "severity": "error"}),
        ("privacy_risk_score", {"limit": 1.0}),
        ("exposed_share", {"severity": "warn"}),
        ("exposed_share", {"limit": 0.5}),
        ("exposed_share", {"passed": False}),
    ],
)
def test_an_altered_verdict_does_not_verify(metric, changed, tmp_path):
    release = released(tmp_path)
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    (own,) = [verdict for verdict in manifest["verdicts"] if verdict["metric"] == metric]
    own |= changed
    manifest["digest"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))
    assert not verify_release(release, max_bytes=None).verified


def test_without_its_verdict_on_the_exposed_share_a_release_does_not_verify(tmp_path):
    release = released(tmp_path)
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["verdicts"] = [verdict for verdict in manifest["verdicts"] if verdict["metric"] != "exposed_share"]
    manifest["digest"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))
    assert "'exposed_share' is not decided as recorded" in " ".join(verify_release(release, max_bytes=None).problems)


def test_a_beyond_that_only_the_manifest_takes_away_does_not_verify(tmp_path):
    release = released(tmp_path)
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["policy"]["limits"][0]["beyond"] = None
    manifest["digest"] = digest_of(manifest)
    path.write_text(json.dumps(manifest))
    assert not verify_release(release, max_bytes=None).verified


def test_a_limit_beyond_can_be_replaced_field_by_field():
    own = Limit("privacy_risk_score", 0.1, beyond="exposed_share")
    assert replace(own, beyond=None).outcome({"privacy_risk_score": 0.2, "score_of_strangers": 0.9}) == "not met"
    assert replace(own, value=0.3).beyond == "exposed_share"
