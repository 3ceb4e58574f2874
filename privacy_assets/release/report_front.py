"""The first page of a report, to be signed: its declarations, the origin of its limits, its rating."""

from collections.abc import Mapping, Sequence
from typing import Any

from privacy_assets.display.numbers import percent
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release.gate import Verdict
from privacy_assets.release.metrics import METRICS, MPUCC
from privacy_assets.release.policy import CERTAIN_VALUES_WARN, SMALLEST_CLASSES, USE_CASES, Policy
from privacy_assets.release.ratings import rate_identification, rate_score

DECLARED: Mapping[str, str] = {
    "purpose": "Purpose",
    "recipient": "Recipient",
    "legal_basis": "Legal basis",
    "retention": "Retention",
    "roles_decided_by": "Roles of the columns decided by",
}
"""The possible declarations about a release, with their names in the report."""
NOT_DECLARED = "not stated"
LONGEST_DECLARED = 500
HEADINGS_OF_LIMITS = ("Limit", "Origin")
MOST = 0.5
"""Warnings about a larger share of the records are in the headline."""
SMALL_SCORE = 0.3
"""Scores above this are rated worse than acceptable for internal use."""


def require_declaration(declared: Mapping[str, str]) -> dict[str, str]:
    """Return the declarations about a release; raise InvalidSettingError for unknown keys and empty or long texts."""
    if not isinstance(declared, Mapping):
        raise InvalidSettingError(f"declaration is not a mapping. Expected a mapping with some of {list(DECLARED)}.")
    unknown = sorted(str(name) for name in set(declared) - set(DECLARED))
    if unknown:
        raise InvalidSettingError(f"declaration has {unknown}; expected some of {list(DECLARED)}.")
    wrong = sorted(
        name
        for name, value in declared.items()
        if not isinstance(value, str) or not 0 < len(value.strip()) <= LONGEST_DECLARED
    )
    if wrong:
        raise InvalidSettingError(
            f"declaration has no text, or one of more than {LONGEST_DECLARED} characters, for {wrong}. Expected a "
            "sentence for each."
        )
    return {name: declared[name].strip() for name in DECLARED if name in declared}


def finding(verdict: Verdict) -> str:
    """Return the finding of a verdict, in words for people who do not know the names of the figures."""
    if verdict.metric is None:
        return verdict.reason
    reason = verdict.reason.replace(verdict.metric, verdict.metric.replace("_", " "), 1)
    share = _share_concerned(verdict)
    return f"{share}: {reason}" if share else reason


def concerns_most(failed: Sequence[Verdict]) -> str:
    """Describe the failed verdicts that concern more than half of the records; empty if there are none."""
    shares = [_share_concerned(each) for each in failed if each.value is not None and each.value > MOST]
    return "; ".join(filter(None, shares))


def _share_concerned(verdict: Verdict) -> str:
    words = "" if verdict.metric is None else METRICS[verdict.metric].concerned
    return "" if not words or verdict.value is None else f"{percent(verdict.value, verdict.limit)} {words}"


def changes_in_words(changes: Sequence[str]) -> str:
    """Describe the changes of a policy from its preset."""
    return ", ".join(map(_change, changes))


def _change(name: str) -> str:
    if name == "known":
        return "the columns that an attacker knows"
    if name.startswith("required."):
        return f"the required {name.removeprefix('required.').replace('_', ' ')}"
    return f"the limit on {name.replace('_', ' ')}"


def declared_rows(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the declarations of a manifest in words, including those that are missing."""
    declared = manifest.get("declaration", {})
    return [(words, str(declared.get(name, NOT_DECLARED))) for name, words in DECLARED.items()]


def origins_of_limits(policy: Mapping[str, Any], limited: Sequence[str]) -> list[tuple[str, str]]:
    """Return the origin of the limit on each figure: a preset and its source, or only this release."""
    use_case, changed = policy["use_case"], set(policy["changes"])
    preset = {limit.metric for limit in Policy.for_use_case(use_case).limits} if use_case in USE_CASES else set()
    return [
        (metric.replace("_", " "), _origin(metric, use_case, is_preset=metric in preset - changed))
        for metric in limited
    ]


def _origin(metric: str, use_case: str | None, *, is_preset: bool) -> str:
    if use_case is None or not is_preset:
        return "set for this release"
    words, k = use_case.replace("_", " "), SMALLEST_CLASSES[use_case]
    sources = {
        "privacy_risk_score": "PETsARD's documentation of mpUCCs, risk threshold recommendations",
        "smallest_class": f"the right person out of {k} is picked with a probability of at most 1/{k}",
        "max_reidentification_probability": f"follows from the smallest class: 1/{k}",
        "share_in_homogeneous_classes": "no sensitive value should be certain; a warning under this preset"
        if use_case in CERTAIN_VALUES_WARN
        else f"a sensitive value must not be certain more often than the right person is picked, 1/{k}",
        "rare_values_released": f"a value that fewer than {k} people share may show that one of them is in the source",
        "leakage_detected": "beyond chance, originals must not be revealed more than people the synthesizer never saw",
    }
    source = sources.get(metric)
    return f"preset {words}" + ("" if source is None else f": {source}")


def rated_poorly(figures: Mapping[str, Any]) -> str:
    """Explain the poor rating of a release that the policy admits; empty if the rating is not poor."""
    scores, poor = figures.get(MPUCC, {}), []
    rate, score = scores.get("identification_rate"), scores.get("privacy_risk_score")
    if rate is not None and rate_identification(rate) == "poor":
        poor.append("the share of identified records is rated poor")
    if score is not None and score > SMALL_SCORE:
        poor.append(f"the privacy risk score is rated {rate_score(score)}")
    if not poor:
        return ""
    return (
        f"The policy admits these records, but {' and '.join(poor)}. The rating is a general scale for synthetic "
        "records; the limits are those that the owner of this policy decided to accept. Anyone who signs should know "
        "why they differ."
    )
