"""The figures of a disclosure assessment that a policy can limit, their origin, and advice."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from privacy_assets.disclosure.criteria import CRITERIA, criteria_in_words, telling
from privacy_assets.disclosure.result import UNLUCKY
from privacy_assets.display.numbers import number, percent
from privacy_assets.release.metrics import DISCLOSURE, LEAKAGE_DETECTED, figures_of
from privacy_assets.release.policy import RequiredSettings

ANSWERABLE_SHARE = 0.05
"""Where copies of a larger share of the originals would go unnoticed, pages say that nothing was answered."""
NOT_ANSWERABLE = "not answerable with this control"
LEVEL = 0.05
"""Level of the joint test of all criteria, with which adjusted p values are compared."""
TOO_LITTLE_SEEN = (
    "Keep more people as control (a smaller train_fraction), use more records, or let the policy accept that copies of "
    "more people go unnoticed (required.detectable_share)."
)
SPLIT_DIFFERS = (
    "Divide the people at random (split.train_fraction); originals and control of different years or places differ "
    "even if nothing leaks."
)
MOST_CRITERIA = (
    "All attacks succeed more often on the people the records were made of: the synthesizer copies or interpolates. "
    "Use another one, larger leaves, or noise."
)


class LeakageFigures(NamedTuple):
    """Figures for limits, the origin of the decision, and advice."""

    metrics: Mapping[str, float | None]
    remark: str
    advice: str


def figures_of_disclosure(scores: Mapping[str, Any], required: RequiredSettings) -> LeakageFigures:
    """Decide what the scores of a disclosure assessment mean under a policy, which may accept unseen copies of a share.

    ``leakage_detected`` is None, which fails every limit, if nothing was found but copies of more people might have
    gone unnoticed, or if their number is unknown.
    """
    metrics = figures_of(DISCLOSURE, {DISCLOSURE: scores}, required)
    decided, share = metrics[LEAKAGE_DETECTED], scores.get("detectable_share")
    allowed = 1.0 if required.detectable_share is None else required.detectable_share
    is_answered = share is not None and share <= allowed
    failed = failed_criteria(scores)
    unseen = unseen_in_people(scores)
    if decided == 1.0:
        found = f"{criteria_in_words(failed)}; adjusted p value {number(scores['adjusted_p_value'])}"
        if (split := scores.get("split_p_value", 1.0)) <= UNLUCKY:
            found += f"; the split is unlucky: originals and control differ without these records (p {number(split)})"
        return LeakageFigures(metrics, found, advice(failed, list(_asked(scores))))
    if decided is None and is_answered:
        return LeakageFigures(metrics, "originals and control differ even without leakage", SPLIT_DIFFERS)
    if decided is None:
        return LeakageFigures(metrics, f"{unseen}; the policy accepts {percent(allowed)}", TOO_LITTLE_SEEN)
    return LeakageFigures(metrics, unseen, "")


def failed_criteria(scores: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the criteria by which the records reveal more about originals than about the control."""
    return tuple(name for name in _asked(scores) if _at_most(scores[f"{name}_adjusted_p_value"], LEVEL))


def _asked(scores: Mapping[str, Any]) -> Iterator[str]:
    return (name for name in CRITERIA if f"{name}_adjusted_p_value" in scores)


def advice(failed: Sequence[str], asked: Sequence[str]) -> str:
    """Return advice against the failed ones of the criteria that were asked."""
    of_copies = [name for name in asked if CRITERIA[name].finds_copies]
    if len({*failed} & {*of_copies}) >= len(of_copies) - 1:
        return MOST_CRITERIA
    return " ".join(f"{CRITERIA[name].words.capitalize()}: {CRITERIA[name].what_helps}" for name in telling(failed))


def unseen_in_people(scores: Mapping[str, Any]) -> str:
    """Describe how many people's copies might have gone unnoticed."""
    people, share = scores.get("detectable_people"), scores.get("detectable_share")
    if people is None or share is None:
        return "even copies of all originals would have gone unnoticed"
    whose = f"fewer than {people:,} people ({percent(share)} of the originals)"
    return f"copies of whole records of {whose} might have gone unnoticed; copies of parts of records, of more people"


def is_answerable(share: float | None) -> bool:
    """Return whether copies of few enough of the originals would have gone unnoticed to say that there are none."""
    return share is not None and share <= ANSWERABLE_SHARE


def _at_most(value: Any, bound: float) -> bool:
    return isinstance(value, int | float) and value <= bound
