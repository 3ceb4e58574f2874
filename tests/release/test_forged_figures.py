"""A manifest in which one figure or one verdict was changed does not verify, although its digest is right."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.release.files import ReleaseRecord, write_release
from privacy_assets.release.gate import Verdict
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.metrics import (
    ANONYMITY,
    METRICS,
    RARE_VALUES,
    REIDENTIFICATION,
    RULES,
    SEMANTIC,
    SIDES,
    STATISTICS,
    UTILITY,
    figures_of,
)
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.agreeing import agreeing, written

SYNTHETIC = pd.DataFrame({"age": [31, 42], "plan": ["free", None]})
ROLES = [{"column": "age", "role": "quasi_identifier"}, {"column": "plan", "role": "other"}]


def loose(metric):
    """Return a limit that the figures here meet."""
    if METRICS[metric].is_yes_no:
        return Limit(metric, 0)
    low, high = METRICS[metric].low, METRICS[metric].high
    if METRICS[metric].direction in ("above", "at_least"):
        return Limit(metric, low + 0.1)
    return Limit(metric, 1e6 if high == float("inf") else high - 0.01)


def people():
    random = np.random.default_rng(0)
    return pd.DataFrame({"age": random.integers(20, 60, 80), "ill": random.choice(list("xyz"), 80)})


def anonymized():
    """Return anonymized records, their columns, and the figures that a manifest has of them."""
    found = anonymize(people(), quasi_identifiers=["age"], sensitive=["ill"], k=5)
    report = verify_anonymity(found.table, [name for name in found.table if name != "ill"], ["ill"])
    columns = [{"column": name, "role": "sensitive" if name == "ill" else "quasi_identifier"} for name in found.table]
    figures = {ANONYMITY: report.to_header(), STATISTICS: found.stats, "model": found.model.to_json()}
    semantic = {"maximum_semantic_risk": 0.5, "medium_semantic_risk": 0.5}
    figures |= {REIDENTIFICATION: {"fewest_candidates": 2}, SEMANTIC: semantic}
    return found.table, columns, figures


def released(directory, metric):
    """Write a release with a limit on the metric, whose figure is 0.5, or that of the records."""
    stage = SIDES[METRICS[metric].assessment]
    worth = {UTILITY: {metric: 0.6, f"{metric}_upper": 0.7}} if METRICS[metric].assessment == UTILITY else {}
    table, columns, figures = (SYNTHETIC, ROLES, worth) if stage == "synthetic" else anonymized()
    protecting = {
        "synthetic": ("main_protection", "identification_rate"),
        "anonymized": ("smallest_class", "l_diversity"),
    }
    beside = next(each for each in protecting[stage] if each != metric)
    own = {beside: 0.5} | (figures_of(ANONYMITY, figures) if stage == "anonymized" else {})
    value = own.get(metric, 0.0 if METRICS[metric].is_yes_no else 0.5)
    if METRICS[metric].assessment == RARE_VALUES:
        value = 0.0
        counts = {"plan": {"n_values": 0, "n_records": 0}}
        figures = {RARE_VALUES: {"people_per_value": 3, metric: 0, "records_with_rare_values": 0, "by_column": counts}}
    if METRICS[metric].assessment == RULES:
        by_rule = {"known": {"rule": "not missing(plan)", "synthetic": 1}}
        figures = {RULES: {metric: 0.5, "records_with_violations": 1, "by_rule": by_rule, "not_judged": []}}
    policy = Policy((loose(metric), loose(beside)), RequiredSettings(detectable_share=None))
    verdicts = [Verdict(f"{stage}_is_as_recorded", True, "error", "as recorded")]
    for each in policy.limits_of(stage):
        found = value if each.metric == metric else own[each.metric]
        decided = each.check_name, each.holds_for(found), each.severity, "", "", each.metric, found, each.value
        verdicts.append(Verdict(*decided, each.direction))
    settings = {"anonymized": {"subject": None}}
    record = ReleaseRecord("p", stage, None, "run", policy, tuple(verdicts), settings, figures, columns, 0)
    return write_release(directory / "p", table, fingerprint(table), agreeing(record), ("parquet",)), value


def forged(release, change):
    path = release / "manifest.json"
    kept = path.read_text()
    manifest = json.loads(kept)
    changed = copy.deepcopy(manifest)
    change(changed)
    assert changed != manifest
    changed["digest"] = digest_of(changed)
    path.write_text(json.dumps(changed))
    problems = verify_release(release, max_bytes=None).problems
    path.write_text(kept)
    return problems


@pytest.mark.parametrize("metric", METRICS)
def test_a_forged_figure_or_verdict_does_not_verify(metric, tmp_path):
    release, value = released(tmp_path, metric)
    assert verify_release(release, max_bytes=None).verified
    other = 1.0 if METRICS[metric].is_yes_no else value + 0.25

    def forge_verdict(manifest, told=other):
        for verdict in manifest["verdicts"]:
            if verdict["metric"] == metric:
                verdict["value"] = told

    def forge_figure(manifest):
        place = METRICS[metric].reading.place
        manifest["figures"][place] |= written(metric, other, place)

    for change in (forge_verdict, lambda manifest: forge_verdict(manifest, None)):
        assert metric in " ".join(forged(release, change))
    problems = forged(release, forge_figure)
    if METRICS[metric].reading.place == ANONYMITY and metric in ("l_diversity", "t_closeness"):
        return  # Their figures by column are measured again.
    assert problems != ()


def test_a_verdict_on_a_figure_that_nobody_reads_does_not_verify(tmp_path):
    release, _ = released(tmp_path, "privacy_risk_score")

    def forge(manifest):
        manifest["verdicts"].append(manifest["verdicts"][1] | {"metric": "a figure of the future"})

    assert forged(release, forge) != ()
