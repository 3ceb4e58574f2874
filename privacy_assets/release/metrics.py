"""The figures that a policy can limit: everything that the package knows of each is said here, once."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

from privacy_assets.contract.rule_violations import RULE_VIOLATIONS, RULES
from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.disclosure.rare_values import RARE_VALUES, RARE_VALUES_RELEASED
from privacy_assets.display.numbers import against, yes_or_no

Direction = Literal["below", "at_most", "above", "at_least"]
Severity = Literal["error", "warn"]
DIRECTIONS: tuple[Direction, ...] = ("below", "at_most", "above", "at_least")
SEVERITIES: tuple[Severity, ...] = ("error", "warn")

Own = Mapping[str, Any]
"""The figures of one assessment, as a manifest has them."""


class Demands(Protocol):
    """The required settings of a policy on which a figure depends."""

    @property
    def detectable_share(self) -> float | None:
        """The share of the originals of whom copies may go unnoticed."""


@dataclass(frozen=True)
class Reading:
    """How a figure is read from the ``figures`` of a manifest: the only definition of it as a number.

    ``place`` is the part of the figures that has it, or ``place_elsewhere`` on the other side of a release; ``value``
    returns it, given what the policy requires, and ``interval`` its 95 % interval, as two numbers or None.
    """

    place: str
    value: Callable[[Own, Demands | None], Any]
    interval: Callable[[Own], Any] | None = None
    place_elsewhere: str = ""

    def of(self, figures: Mapping[str, Any], required: Demands | None = None) -> float | None:
        """Return the figure of a manifest, or of an assessment that is not released yet."""
        own = self._own(figures)
        found = None if not own else self.value(own, required)
        return None if found is None else float(found)

    def interval_of(self, figures: Mapping[str, Any]) -> tuple[float, float] | None:
        """Return its interval; None if it has none."""
        own = self._own(figures)
        found = self.interval(own) if own and self.interval is not None else None
        return None if found is None or None in found else (float(found[0]), float(found[1]))

    def _own(self, figures: Mapping[str, Any]) -> Any:
        return figures.get(self.place) or figures.get(self.place_elsewhere)


class Range(NamedTuple):
    """The safe side of a figure, its smallest value, and its largest."""

    direction: Direction
    low: float
    high: float


RISK, SHARE, EXCESS = Range("below", 0, 1), Range("at_most", 0, 1), Range("below", -1, 1)
BEYOND = Range("at_most", -1, 1)
PROTECTION, WORTH = Range("above", 0, 1), Range("at_least", 0, 1)
COUNT, SIZE = Range("at_most", 0, math.inf), Range("at_least", 1, math.inf)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A figure that a policy can limit.

    Attributes
    ----------
    reading : Reading
        By default, the figure of its own name in its assessment.
    sentence : str, optional
        Name of its asset check; by default made of name and direction.
    severity, advice
        Default severity of a limit, and what helps if it fails.
    protects_from : float, optional
        The loosest bound that still prevents a record from being singled out, for figures of anonymized records.
    worst_for_copies : bool
        Whether it is worst for a copy of the originals, regardless of its size; then a limit protects people.
    needs_control, needs_baseline, needs_sensitive : bool
        Whether it has no value, or no meaning, without a control, with ``calculate_baseline=False``, or without
        sensitive columns.
    is_yes_no : bool
        Whether it is 1 for yes and 0 for no, and shown as these.
    concerned : str
        The records whose share it is, in words.
    assessment, assessment_elsewhere : str
        The assessment that has it, and, if both sides have it, that of the other side.
    """

    range: Range
    meaning: str
    reading: Reading | None = None
    sentence: str | None = None
    severity: Severity = "error"
    advice: str | None = None
    protects_from: float | None = None
    worst_for_copies: bool = False
    needs_control: bool = False
    needs_baseline: bool = False
    needs_sensitive: bool = False
    is_yes_no: bool = False
    concerned: str = ""
    assessment: str = ""
    assessment_elsewhere: str = ""

    @property
    def assessments(self) -> tuple[str, ...]:
        """The assessments that have it."""
        return tuple(filter(None, (self.assessment, self.assessment_elsewhere)))

    @property
    def is_on_both_sides(self) -> bool:
        """Whether the records of every side that is released have it."""
        return self.assessment in ON_BOTH_SIDES or len(self.assessments) > 1

    def assessment_on(self, side: str) -> str:
        """Return the assessment that has it on a side."""
        return next((each for each in self.assessments if SIDES[each] == side), self.assessment)

    @property
    def direction(self) -> Direction:
        """The safe side."""
        return self.range.direction

    @property
    def low(self) -> float:
        """The smallest value."""
        return self.range.low

    @property
    def high(self) -> float:
        """The largest value."""
        return self.range.high

    def of(self, figures: Mapping[str, Any], required: Demands | None = None) -> float | None:
        """Return the figure, as `Reading.of`."""
        return None if self.reading is None else self.reading.of(figures, required)

    def interval_of(self, figures: Mapping[str, Any]) -> tuple[float, float] | None:
        """Return its interval, as `Reading.interval_of`."""
        return None if self.reading is None else self.reading.interval_of(figures)


SAFE_SIDES: tuple[tuple[Direction, Direction], ...] = (("below", "at_most"), ("above", "at_least"))
MPUCC = "mpucc_assessment"
ANONYMITY = "anonymity"
REIDENTIFICATION = "reidentification_assessment"
SEMANTIC = "semantic_assessment"
UTILITY = "utility_assessment"
DISCLOSURE = "disclosure_assessment"
PRIVACY_BUDGET = "privacy_budget"
CONTROL = "control"
STATISTICS = "statistics"
LEAKAGE_DETECTED = "leakage_detected"
SIDES: Mapping[str, str] = {
    MPUCC: "synthetic",
    DISCLOSURE: "synthetic",
    RARE_VALUES: "synthetic",
    RULES: "synthetic",
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
CERTAIN_BY_ROWS_ADVICE = (
    "Release such a column in a table with one row per person: l_diversity and larger k help little if the rows of a "
    "person repeat a value."
)
STRANGERS_ADVICE = "Coarsen or drop columns: other real people single out as many, so the columns alone cause it."
EXPOSED_ADVICE = (
    "Use a smoother synthesizer, or more people on both sides of the split: the fewer there are, the larger the share "
    "that cannot be excluded."
)
CANDIDATES_ADVICE = (
    "Anonymize with a larger k or fewer quasi-identifiers; if another release of the same people causes the risk, "
    "use its classes here, too, or leave out the column that links the two."
)
MEMBERSHIP_ADVICE = (
    "Release the records of a random share of the people, which multiplies the advantage by about that share; "
    "generalize or band sensitive columns with many values, or use a larger k; let synthetic records copy less."
)
SEMANTIC_ADVICE = (
    "Leave out or coarsen the columns in the advice table of the assessment, or withhold the records at risk "
    "(semantic_risk: withhold)."
)
RARE_VALUES_ADVICE = (
    "Coarsen or drop the named columns, or let the synthesizer redraw their rare values: the built-in synthesizers "
    "do so if `min_atom` in their settings is at least the number of people that the policy requires."
)
RULES_ADVICE = (
    "Make records that keep the rules of the contract, as the built-in synthesizers do (the manifest has the number of "
    "records that they could not draw again), or correct the rules."
)
COPIES_ADVICE = (
    "The records repeat people: use a synthesizer that copies less, such as smooth_cart, and no records of the source."
)
UTILITY_ADVICE = (
    "Use a synthesizer that preserves more of the relations between columns (smooth_cart; cart, with the extra "
    "trees, preserves even more, but copies), a smaller k or fewer quasi-identifiers, or more records, and leave out "
    "columns that nobody analyzes. The assessment names the pairs that lost most."
)


def _by_name(place: str, name: str) -> Reading:
    """Read a figure by its name, and its interval, if there is one, by the names of its ends."""
    ends = (f"{name}_interval_low", f"{name}_interval_high")
    return Reading(place, lambda own, _: own.get(name), lambda own: [own.get(end) for end in ends])


def _of(assessment: str, **metrics: Metric) -> dict[str, Metric]:
    return {
        name: replace(own, assessment=assessment, reading=own.reading or _by_name(assessment, name))
        for name, own in metrics.items()
    }


def _compared(name: str, *, interval: str | None = None) -> Reading:
    """Read a figure of the comparison with a control."""
    return Reading(CONTROL, lambda own, _: own.get(name), None if interval is None else lambda own: own.get(interval))


def _excess(interval: str, meaning: str) -> Metric:
    """Describe a figure of the disclosure test whose upper end is limited."""
    return Metric(
        range=EXCESS,
        meaning=f"upper end of the 95 % interval of the {meaning}",
        reading=Reading(DISCLOSURE, lambda own, _: (own.get(interval) or [None])[-1], lambda own: own.get(interval)),
        needs_control=True,
    )


def _worth(name: str, meaning: str) -> Metric:
    """Describe a figure of worth, whose lower end is limited."""
    low, high = f"{name}_lower", f"{name}_upper"
    return Metric(
        range=WORTH,
        meaning=f"lower end of the 95 % interval of {meaning}",
        reading=Reading(UTILITY, lambda own, _: own.get(low), lambda own: [own.get(low), own.get(high)]),
        severity="warn",
        advice=UTILITY_ADVICE,
    )


def _is_detected(own: Own, required: Demands | None) -> float | None:
    """Return 1 or 0; None if nothing was found, but copies of more people than are accepted might have been unseen."""
    detected, share = own.get(LEAKAGE_DETECTED), own.get("detectable_share")
    accepted = None if required is None else required.detectable_share
    is_answered = share is not None and share <= (1.0 if accepted is None else accepted)
    return 1.0 if detected is True else 0.0 if detected is False and is_answered else None


def _certain_by_rows(own: Own, _: Demands | None) -> Any:
    # No sensitive column is the same in the rows of a person: no value is certain. NaN meets no limit.
    return own.get("share_certain_by_rows", math.nan) or 0.0


def _smallest_class(own: Own, _: Demands | None) -> Any:
    return own["k"] if own.get("k_people") is None else own["k_people"]


def _of_worst_column(choose: Callable[..., Any], name: str) -> Reading:
    """Read a figure of the sensitive column for which it is worst."""
    return Reading(ANONYMITY, lambda own, _: choose((each[name] for each in own["sensitive"].values()), default=None))


METRICS: Mapping[str, Metric] = {
    **_of(
        MPUCC,
        privacy_risk_score=Metric(
            range=RISK, meaning="1 - overall_protection", needs_baseline=True, worst_for_copies=True
        ),
        score_of_lone_people=Metric(
            range=RISK,
            meaning="the same if nobody is singled out whose record three or more originals have on all columns",
            needs_baseline=True,
        ),
        **{
            name: Metric(range=RISK, meaning=meaning, advice=STRANGERS_ADVICE, needs_control=True, needs_baseline=True)
            for name, meaning in (
                ("score_of_strangers", "privacy_risk_score of as many other real people in place of the records"),
                (
                    "score_of_related_columns",
                    "privacy_risk_score of columns that depend on no others, where it exceeds that of strangers most",
                ),
                ("score_of_strangers_on_related_columns", "the same of other real people in place of the records"),
                (
                    "originals_singled_out_by_strangers",
                    "share of originals whom as many other real people would single out in place of the records",
                ),
            )
        },
        overall_protection=Metric(
            range=PROTECTION,
            meaning="main protection over baseline protection, at most 1",
            needs_baseline=True,
            worst_for_copies=True,
        ),
        main_protection=Metric(range=PROTECTION, meaning="1 - identification_rate", worst_for_copies=True),
        baseline_protection=Metric(
            range=PROTECTION, meaning="1 - 1 / product of the distinct values of the columns", needs_baseline=True
        ),
        identification_rate=Metric(
            range=RISK,
            meaning="share of synthetic records that single out an original",
            concerned="of the synthetic records single out an original",
            worst_for_copies=True,
        ),
        total_identified=Metric(range=COUNT, meaning="synthetic records that single out an original"),
        originals_singled_out=Metric(
            range=RISK,
            meaning="share of originals whom some synthetic record singles out; all that are published count",
            worst_for_copies=True,
        ),
        copies_beyond_people=Metric(
            range=BEYOND,
            meaning="lower end of the 95 % interval of the share of unique records of people that as many released "
            "records have, minus the share that as many other people have; needs no control",
            reading=Reading(
                MPUCC,
                lambda own, _: own.get("copies_beyond_people_interval_low"),
                lambda own: [own.get(f"copies_beyond_people_interval_{end}") for end in ("low", "high")],
            ),
            advice=COPIES_ADVICE,
        ),
        excess_identification_rate=Metric(
            range=EXCESS,
            meaning="identification rate beyond that of the control",
            reading=_compared("excess_identification_rate", interval="excess_identification_interval"),
            needs_control=True,
        ),
        verbatim_rate=Metric(
            range=RISK,
            meaning="share of identified pairs that agree on every column",
            reading=_compared("verbatim_rate"),
            needs_control=True,
        ),
        excess_verbatim_rate=Metric(
            range=EXCESS,
            meaning="verbatim rate beyond that of the control",
            reading=_compared("excess_verbatim_rate", interval="excess_verbatim_interval"),
            needs_control=True,
        ),
        verbatim_copies=Metric(
            range=COUNT,
            meaning="synthetic records equal to an original on all columns",
            reading=_compared("verbatim_copies"),
            needs_control=True,
        ),
        excess_copy_rate=Metric(
            range=EXCESS,
            meaning="share of synthetic records that copy, beyond the control's",
            reading=_compared("excess_copy_rate", interval="excess_copy_interval"),
            needs_control=True,
        ),
    ),
    **_of(
        DISCLOSURE,
        leakage_detected=Metric(
            range=SHARE,
            meaning="yes if the records reveal more about the originals than about people of the control, beyond "
            "chance; no value if copies of more people than the policy allows might have gone unnoticed",
            reading=Reading(DISCLOSURE, _is_detected),
            sentence="no_leakage_is_detected",
            worst_for_copies=True,
            needs_control=True,
            is_yes_no=True,
        ),
        **{
            f"{name}_excess": _excess(f"{name}_interval", f"share of originals {share} beyond that of the control")
            for name, criterion in CRITERIA.items()
            if (share := criterion.share_of)
        },
        exposed_share=Metric(
            range=RISK,
            meaning="upper 95 % end of the share of the originals of whom the records could hold copies, if they were "
            "drawn at random",
            advice=EXPOSED_ADVICE,
            needs_control=True,
        ),
        exposed_share_of_least_visible=Metric(
            range=RISK,
            meaning="the same if only the tenth of the people were copied whose copies show least",
            severity="warn",
            advice=EXPOSED_ADVICE,
            needs_control=True,
        ),
        smallest_shared_cell=Metric(
            range=Range("at_least", 0, math.inf),
            meaning="originals (or people) who equal a synthetic record on all columns, for the record with the fewest",
        ),
        share_in_homogeneous_cells=Metric(
            range=SHARE,
            meaning="share of the synthetic records whose quasi-identifiers only records with the same value of a "
            "sensitive column have",
            severity="warn",
            advice="Coarsen the quasi-identifiers, or leave out the sensitive column.",
            needs_sensitive=True,
        ),
        inference_excess=_excess(
            "inference_interval",
            "share of originals' values that are guessed right from the nearest record, beyond that of the control",
        ),
        membership_advantage_upper=Metric(
            range=SHARE,
            meaning="larger end, without its sign, of the 95 % interval of the membership advantage: the share of the "
            "people in the source who seem to be in it minus that of others",
            reading=Reading(
                DISCLOSURE,
                lambda own, _: own.get("membership_advantage_upper"),
                lambda own: own.get("membership_advantage_interval"),
                REIDENTIFICATION,
            ),
            severity="warn",
            advice=MEMBERSHIP_ADVICE,
            assessment_elsewhere=REIDENTIFICATION,
        ),
    ),
    **_of(
        RARE_VALUES,
        **{
            RARE_VALUES_RELEASED: Metric(
                range=COUNT,
                meaning="released text and category values that the source has, but for fewer people than the policy "
                "requires",
                advice=RARE_VALUES_ADVICE,
            )
        },
    ),
    **_of(
        RULES,
        **{
            RULE_VIOLATIONS: Metric(
                range=SHARE,
                meaning="share of the synthetic records that violate a rule of the contract; rules on generalized "
                "columns are not judged",
                advice=RULES_ADVICE,
                concerned="of the synthetic records violate a rule of the contract",
            )
        },
    ),
    **_of(
        PRIVACY_BUDGET,
        epsilon=Metric(
            range=COUNT,
            meaning="epsilon of the noisy model that the records were drawn from; no value for a method without one",
            advice="Use the method mst with this epsilon or a smaller one.",
        ),
        total_epsilon=Metric(
            range=COUNT,
            meaning="total epsilon of all fits on the same people, including unused fits; no value for other methods",
            advice="Draw from the existing noisy model. The spent budget stays spent.",
        ),
        delta=Metric(
            range=SHARE,
            meaning="the larger delta of those for which epsilon and total_epsilon are stated; no value for other "
            "methods",
            advice="Use a smaller delta, in the settings of mst and in privacy_budget.",
        ),
    ),
    **_of(
        UTILITY,
        utility=_worth("utility", "the worth of the records: 1 as much as the originals, 0 as shuffled columns"),
        utility_columns=_worth("utility_columns", "the worth of single columns: 1 as the originals, 0 uniform"),
        utility_pairs=_worth("utility_pairs", "the worth of the relations in pairs of columns"),
        utility_counts=_worth("utility_counts", "the worth of counts on two or three columns"),
        utility_prediction=_worth("utility_prediction", "the worth of predicting each column from the others"),
        utility_by_group=_worth(
            "utility_by_group",
            "the worth of relations within the groups of utility.group: 0 as if that column were shuffled",
        ),
        utility_worst_group=_worth("utility_worst_group", "utility_by_group in the group where it is worst"),
    ),
    **_of(
        ANONYMITY,
        smallest_class=Metric(
            range=SIZE,
            meaning="people in the smallest class; records if the contract has no person column",
            reading=Reading(ANONYMITY, _smallest_class),
            advice="Anonymize with a larger k, fewer quasi-identifiers, or more records.",
            protects_from=2,
        ),
        l_diversity=Metric(
            range=SIZE,
            meaning="smallest number of values of a sensitive column in a class",
            reading=_of_worst_column(min, "l_distinct"),
            advice=CERTAIN_ADVICE,
            protects_from=2,
            needs_sensitive=True,
        ),
        t_closeness=Metric(
            range=SHARE,
            meaning="largest distance between the sensitive values of a class and of the table",
            reading=_of_worst_column(max, "t"),
            advice="Require t_closeness of the anonymization, or a larger k.",
            needs_sensitive=True,
        ),
        suppressed_share=Metric(
            range=SHARE,
            meaning="share of the records that were left out",
            reading=_by_name(STATISTICS, "suppressed_share"),
            advice="Lower max_suppression, l or k: counts in a table that lacks many records are misleading.",
            concerned="of the records were left out",
        ),
        share_in_homogeneous_classes=Metric(
            range=SHARE,
            meaning="share of the records in classes where a sensitive value is certain",
            # Without sensitive columns, no value is certain.
            reading=Reading(ANONYMITY, lambda own, _: own["share_in_homogeneous_classes"] or 0.0),
            severity="warn",
            advice=CERTAIN_ADVICE,
            needs_sensitive=True,
            concerned="of the records are in classes where a sensitive value is certain",
        ),
        information_loss=Metric(
            range=SHARE,
            meaning="mean loss over all cells of the quasi-identifiers (GCP)",
            reading=_by_name(STATISTICS, "information_loss"),
            severity="warn",
            advice="Lower k, release fewer quasi-identifiers, or use more records.",
        ),
    ),
    **_of(
        REIDENTIFICATION,
        max_reidentification_probability=Metric(
            range=SHARE,
            meaning="1 / people that a released record can come from, for the record with the fewest candidates",
            advice=CANDIDATES_ADVICE,
            protects_from=0.5,
        ),
        mean_reidentification_probability=Metric(
            range=SHARE, meaning="expected share of correct links over all records", advice=CANDIDATES_ADVICE
        ),
        share_of_singletons=Metric(
            range=SHARE,
            meaning="share of the records with a single candidate",
            advice=CANDIDATES_ADVICE,
            concerned="of the records have a single candidate",
        ),
        share_certain_by_rows=Metric(
            range=SHARE,
            meaning="share of the people whose value of a sensitive column is certain for somebody who knows "
            "known_rows of their rows, because it is the same in all of them",
            reading=Reading(REIDENTIFICATION, _certain_by_rows),
            advice=CERTAIN_BY_ROWS_ADVICE,
            needs_sensitive=True,
            concerned="of the people have a sensitive value that several of their rows make certain",
        ),
    ),
    **_of(
        SEMANTIC,
        maximum_semantic_risk=Metric(
            range=SHARE,
            meaning="1 / remaining records for an attacker who knows all attributes of a record and one that it lacks; "
            "records are counted, so each must belong to a different person",
            advice=SEMANTIC_ADVICE,
        ),
        medium_semantic_risk=Metric(
            range=SHARE,
            meaning="mean of the basic semantic risk over all records; each must belong to a different person",
            advice=SEMANTIC_ADVICE,
        ),
    ),
}


def figures_of(assessment: str, figures: Mapping[str, Any], required: Demands | None = None) -> dict[str, float | None]:
    """Read every figure of an assessment that a policy can limit, from the ``figures`` of a manifest or parts of them.

    Without requirements, copies of any number of people may go unnoticed.
    """
    return {name: own.of(figures, required) for name, own in METRICS.items() if assessment in own.assessments}


def measured_in(place: str) -> frozenset[str]:
    """Return the figures that are read from one part of the figures, such as those that a table alone has."""
    return frozenset(name for name, own in METRICS.items() if own.reading is not None and own.reading.place == place)


def shown_figure(metric: str, direction: str, value: float, limit: float, *, exact: bool = False) -> tuple[str, str]:
    """Format a figure and its bound, such as ``0.171`` and ``at most 0.2``, or ``yes`` and ``no``."""
    if METRICS[metric].is_yes_no:
        return yes_or_no(value), "no"
    found, bound = against(value, limit, exact=exact)
    return found, f"{direction.replace('_', ' ')} {bound}"
