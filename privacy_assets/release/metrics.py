"""The figures that a policy can limit: their meaning, range, safe side and display."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

from privacy_assets.disclosure.rare_values import RARE_VALUES, RARE_VALUES_RELEASED
from privacy_assets.display.numbers import against, yes_or_no

Direction = Literal["below", "at_most", "above", "at_least"]
Severity = Literal["error", "warn"]
DIRECTIONS: tuple[Direction, ...] = ("below", "at_most", "above", "at_least")
SEVERITIES: tuple[Severity, ...] = ("error", "warn")


class Metric(NamedTuple):
    """A figure that a policy can limit."""

    assessment: str
    direction: Direction
    low: float
    high: float
    meaning: str
    sentence: str | None = None
    severity: Severity = "error"
    advice: str | None = None
    protects_from: float | None = None
    """The loosest bound that still prevents a record from being singled out, for figures that can."""


SAFE_SIDES: tuple[tuple[Direction, Direction], ...] = (("below", "at_most"), ("above", "at_least"))
MPUCC = "mpucc_assessment"
ANONYMITY = "anonymity"
REIDENTIFICATION = "reidentification_assessment"
SEMANTIC = "semantic_assessment"
UTILITY = "utility_assessment"
DISCLOSURE = "disclosure_assessment"
PRIVACY_BUDGET = "privacy_budget"
LEAKAGE_DETECTED = "leakage_detected"
SIDES: Mapping[str, str] = {
    MPUCC: "synthetic",
    DISCLOSURE: "synthetic",
    RARE_VALUES: "synthetic",
    PRIVACY_BUDGET: "synthetic",
    UTILITY: "synthetic",
    ANONYMITY: "anonymized",
    REIDENTIFICATION: "anonymized",
    SEMANTIC: "anonymized",
}
"""The side of a release that an assessment covers: its synthetic or its anonymized records."""
ON_BOTH_SIDES = frozenset({UTILITY})
"""Assessments whose limits are on the records of every side that is released."""

CERTAIN_ADVICE = (
    "Require l_diversity or t_closeness in the anonymization: k alone does not prevent a sensitive value from being "
    "certain."
)
CANDIDATES_ADVICE = (
    "Anonymize with a larger k or fewer quasi-identifiers; if another release of the same people causes the risk, "
    "use its classes here, too, or leave out the column that links the two."
)
SEMANTIC_ADVICE = (
    "Leave out or coarsen the columns in the advice table of the assessment, or withhold the records at risk "
    "(semantic_risk: withhold)."
)
RARE_VALUES_ADVICE = (
    "Coarsen or drop the named columns, or let the synthesizer redraw their rare values: the built-in synthesizers "
    "do so if `min_atom` in their settings is at least the number of people that the policy requires."
)
UTILITY_ADVICE = (
    "Use a synthesizer that preserves more of the relations between columns (smooth_cart, with the extra trees; cart "
    "preserves even more, but copies), a smaller k or fewer quasi-identifiers, or more records, and leave out columns "
    "that nobody analyzes. The assessment names the pairs that lost most."
)


def _of_utility(meaning: str) -> Metric:
    return Metric(
        UTILITY,
        "at_least",
        0,
        1,
        f"lower end of the 95 % interval of {meaning}",
        severity="warn",
        advice=UTILITY_ADVICE,
    )


def _of_disclosure(meaning: str) -> Metric:
    return Metric(DISCLOSURE, "below", -1, 1, f"upper end of the 95 % interval of the {meaning}")


METRICS: Mapping[str, Metric] = {
    "privacy_risk_score": Metric(MPUCC, "below", 0, 1, "1 - overall_protection"),
    "score_of_control": Metric(
        MPUCC,
        "below",
        0,
        1,
        "privacy_risk_score of other real people in place of the synthetic records",
        advice="Coarsen or drop columns: other real people single out as many, so the columns alone cause the score.",
    ),
    "score_beyond_control": Metric(
        MPUCC, "below", -1, 1, "score beyond that of as many other real people, as a share of the difference to 1"
    ),
    "overall_protection": Metric(MPUCC, "above", 0, 1, "main protection over baseline protection, at most 1"),
    "main_protection": Metric(MPUCC, "above", 0, 1, "1 - identification_rate"),
    "baseline_protection": Metric(MPUCC, "above", 0, 1, "1 - 1 / product of the distinct values of the columns"),
    "identification_rate": Metric(MPUCC, "below", 0, 1, "share of synthetic records that single out an original"),
    "total_identified": Metric(MPUCC, "at_most", 0, math.inf, "synthetic records that single out an original"),
    "originals_singled_out": Metric(
        MPUCC,
        "below",
        0,
        1,
        "share of originals whom some synthetic record singles out; all that are published count",
    ),
    "excess_identification_rate": Metric(MPUCC, "below", -1, 1, "identification rate beyond that of the control"),
    "verbatim_rate": Metric(MPUCC, "below", 0, 1, "share of identified pairs that agree on every column"),
    "excess_verbatim_rate": Metric(MPUCC, "below", -1, 1, "verbatim rate beyond that of the control"),
    "verbatim_copies": Metric(MPUCC, "at_most", 0, math.inf, "synthetic records equal to an original on all columns"),
    "excess_copy_rate": Metric(MPUCC, "below", -1, 1, "share of synthetic records that copy, beyond the control's"),
    LEAKAGE_DETECTED: Metric(
        DISCLOSURE,
        "at_most",
        0,
        1,
        "yes if the records reveal more about the originals than about people of the control, beyond chance; no value "
        "if copies of more people than the policy allows might have gone unnoticed",
        "no_leakage_is_detected",
    ),
    "singling_out_excess": _of_disclosure("share of originals singled out beyond that of the control"),
    "linkability_excess": _of_disclosure("share of originals whose records can be linked beyond that of the control"),
    "inference_excess": _of_disclosure(
        "share of originals' values that are guessed right from the nearest record, beyond that of the control"
    ),
    "near_copies_excess": _of_disclosure("share of originals with a near copy beyond that of the control"),
    RARE_VALUES_RELEASED: Metric(
        RARE_VALUES,
        "at_most",
        0,
        math.inf,
        "released text and category values that the source has, but for fewer people than the policy requires",
        advice=RARE_VALUES_ADVICE,
    ),
    "epsilon": Metric(
        PRIVACY_BUDGET,
        "at_most",
        0,
        math.inf,
        "epsilon of the noisy model that the records were drawn from; no value for a method without one",
        advice="Use the method mst with this epsilon or a smaller one.",
    ),
    "total_epsilon": Metric(
        PRIVACY_BUDGET,
        "at_most",
        0,
        math.inf,
        "total epsilon of all fits on the same people, including unused fits; no value for other methods",
        advice="Draw from the existing noisy model. The spent budget stays spent.",
    ),
    "delta": Metric(
        PRIVACY_BUDGET,
        "at_most",
        0,
        1,
        "the larger delta of those for which epsilon and total_epsilon are stated; no value for other methods",
        advice="Use a smaller delta, in the settings of mst and in privacy_budget.",
    ),
    "utility": _of_utility("the worth of the records: 1 as much as the originals, 0 as shuffled columns"),
    "utility_columns": _of_utility("the worth of single columns: 1 as the originals, 0 uniform"),
    "utility_pairs": _of_utility("the worth of the relations in pairs of columns"),
    "utility_counts": _of_utility("the worth of counts on two or three columns"),
    "utility_prediction": _of_utility("the worth of predicting each column from the others"),
    "smallest_class": Metric(
        ANONYMITY,
        "at_least",
        1,
        math.inf,
        "people in the smallest class; records if the contract has no person column",
        advice="Anonymize with a larger k, fewer quasi-identifiers, or more records.",
        protects_from=2,
    ),
    "l_diversity": Metric(
        ANONYMITY,
        "at_least",
        1,
        math.inf,
        "smallest number of values of a sensitive column in a class",
        advice=CERTAIN_ADVICE,
        protects_from=2,
    ),
    "t_closeness": Metric(
        ANONYMITY,
        "at_most",
        0,
        1,
        "largest distance between the sensitive values of a class and of the table",
        advice="Require t_closeness of the anonymization, or a larger k.",
    ),
    "suppressed_share": Metric(
        ANONYMITY,
        "at_most",
        0,
        1,
        "share of the records that were left out",
        advice="Lower max_suppression, l or k: counts in a table that lacks many records are misleading.",
    ),
    "share_in_homogeneous_classes": Metric(
        ANONYMITY,
        "at_most",
        0,
        1,
        "share of the records in classes where a sensitive value is certain",
        severity="warn",
        advice=CERTAIN_ADVICE,
    ),
    "information_loss": Metric(
        ANONYMITY,
        "at_most",
        0,
        1,
        "mean loss over all cells of the quasi-identifiers (GCP)",
        severity="warn",
        advice="Lower k, release fewer quasi-identifiers, or use more records.",
    ),
    "max_reidentification_probability": Metric(
        REIDENTIFICATION,
        "at_most",
        0,
        1,
        "1 / people that a released record can come from, for the record with the fewest candidates",
        advice=CANDIDATES_ADVICE,
        protects_from=0.5,
    ),
    "mean_reidentification_probability": Metric(
        REIDENTIFICATION, "at_most", 0, 1, "expected share of correct links over all records", advice=CANDIDATES_ADVICE
    ),
    "share_of_singletons": Metric(
        REIDENTIFICATION,
        "at_most",
        0,
        1,
        "share of the records with a single candidate",
        advice=CANDIDATES_ADVICE,
    ),
    "max_basic_semantic_risk": Metric(
        SEMANTIC,
        "at_most",
        0,
        1,
        "1 / remaining records for an attacker who knows all attributes of a record and one that it lacks; records are "
        "counted, so each must belong to a different person",
        advice=SEMANTIC_ADVICE,
    ),
    "mean_basic_semantic_risk": Metric(
        SEMANTIC,
        "at_most",
        0,
        1,
        "mean of the basic semantic risk over all records; each must belong to a different person",
        advice=SEMANTIC_ADVICE,
    ),
}

SENSITIVE_METRICS = frozenset({"l_diversity", "t_closeness", "share_in_homogeneous_classes"})
PROTECTING_METRICS = frozenset(
    {
        "privacy_risk_score",
        "overall_protection",
        "main_protection",
        "identification_rate",
        "originals_singled_out",
        LEAKAGE_DETECTED,
    }
)
"""Figures of synthetic records that are worst for a copy of the originals, regardless of its size."""
BASELINE_METRICS = frozenset(
    {"privacy_risk_score", "overall_protection", "baseline_protection", "score_of_control", "score_beyond_control"}
)
"""Figures that an assessment with `calculate_baseline=False` does not have."""
YES_NO_METRICS = frozenset({LEAKAGE_DETECTED})
"""Figures that are 1 for yes and 0 for no, and are shown as yes and no."""
LEAKAGE_METRICS = frozenset(
    name for name in METRICS if any(word in name for word in ("excess", "verbatim", "leakage", "_control"))
)


def shown_figure(metric: str, direction: str, value: float, limit: float, *, exact: bool = False) -> tuple[str, str]:
    """Format a figure and its bound, such as ``0.171`` and ``at most 0.2``, or ``yes`` and ``no``."""
    if metric in YES_NO_METRICS:
        return yes_or_no(value), "no"
    found, bound = against(value, limit, exact=exact)
    return found, f"{direction.replace('_', ' ')} {bound}"
