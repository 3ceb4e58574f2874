"""The release policy: limits on the figures of assessments, and the settings that assessments must have."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any, Final, Literal, TypeGuard

from privacy_assets.contract.rule_violations import RULE_VIOLATIONS
from privacy_assets.disclosure.rare_values import RARE_VALUES_RELEASED
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release.declaration import DECLARED, REVIEW_BY
from privacy_assets.release.metrics import (
    ANONYMITY,
    DIRECTIONS,
    METRICS,
    MPUCC,
    SAFE_SIDES,
    SEMANTIC,
    SEVERITIES,
    SIDES,
    Direction,
    Severity,
    shown_figure,
)
from privacy_assets.setting_checks import REQUIRED, described, is_integer, is_number, setting

USE_CASES: Mapping[str, float] = {
    "public_release": 0.05,
    "research_sharing": 0.10,
    "internal_analytics": 0.20,
    "development": 0.30,
    "high_risk_data": 0.01,
}
"""Limit of ``privacy_risk_score`` by use case (PETsARD's documentation of mpUCCs, "Risk Threshold Recommendations")."""

SMALLEST_CLASSES: Mapping[str, int] = {
    "public_release": 11,
    "research_sharing": 5,
    "internal_analytics": 3,
    "development": 2,
    "high_risk_data": 20,
}
"""People in the smallest class by use case; 1 / k is the largest chance of picking the right one out of k."""
CERTAIN_VALUES_WARN: frozenset[str] = frozenset({"internal_analytics", "development"})
"""Use cases in which certain sensitive values only cause a warning.

The others refuse more than 1 / k of the records in such classes: a random person's sensitive value must not be learned
more often than the policy allows a random person's record to be picked.
"""
ALL_ROWS: Final = "all"
KNOWN_ROWS: Mapping[str, int | Literal["all"]] = {
    "public_release": ALL_ROWS,
    "research_sharing": 4,
    "internal_analytics": 2,
    "development": 1,
    "high_risk_data": ALL_ROWS,
}
"""Rows of a person that an attacker knows by use case; four points of a trace single out 95 % of the people [1]_.

.. [1] Y.-A. de Montjoye et al. (2013), "Unique in the Crowd: The privacy bounds of human mobility",
   doi:10.1038/srep01376.
"""
PEOPLE_PER_VALUE = 3
"""Fewest people who may share a released value, for policies that set neither this number nor the size of classes."""
RARE_VALUES_WARN: frozenset[str] = frozenset({"internal_analytics", "development"})
"""Use cases in which rare values only cause a warning."""

DECLARATION: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("public_release", "research_sharing", "high_risk_data"), ("purpose", "recipient", "roles_decided_by", REVIEW_BY)
)
"""What must be declared, by use case; others demand nothing."""

WORTH_WARNINGS: Mapping[str, float] = {"utility": 0.80, "utility_columns": 0.90}
"""Least worth; below it, the policy of a use case warns if worth is assessed."""

TOTAL_EPSILON = 3.0
"""Largest epsilon that may be spent on a population if the policy sets no limit."""

INSTEAD: Final = "exposed_share"
"""The figure that is limited where people never seen fail a limit, too, so that no records can meet it."""
OF_STRANGERS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "privacy_risk_score": (
        ("privacy_risk_score", "score_of_strangers"),
        ("score_of_related_columns", "score_of_strangers_on_related_columns"),
    ),
    "originals_singled_out": (("originals_singled_out", "originals_singled_out_by_strangers"),),
}
"""By figure whose limit can be decided by another, the figures that must meet it, each with that of strangers."""

SINGLED_OUT_ADVICE = "Coarsen or drop the columns that single people out."
LEAKAGE_ADVICE = (
    "The synthetic records resemble the originals more than they resemble people whom the synthesizer never saw, so "
    "it copies. "
    "Use a smoother synthesizer or larger leaves, remove the cause of verbatim copies, then assess again."
)


@described
@dataclass(frozen=True)
class Limit:
    """A bound on one figure.

    By default `severity` is ``"warn"`` for `share_in_homogeneous_classes` and `information_loss`, else ``"error"``;
    `advice` is by default that of the metric.

    Raises
    ------
    InvalidSettingError
        If the metric, direction or severity is unknown, or the metric always or never meets the bound.
    """

    metric: str = setting(REQUIRED, "The figure that is limited.", "privacy_risk_score")
    value: float = setting(REQUIRED, "The bound, in the unit of the figure.", 0.1)
    direction: Direction | None = setting(None, "Where the figure must be; by default on its safe side.", "below")
    severity: Severity | None = setting(
        None, "error blocks the release, warn is only shown; the default depends on the metric.", "warn"
    )
    advice: str | None = setting(None, "What to do when the limit fails.", "Ask the data office.")
    beyond: str | None = setting(
        None,
        "The figure that decides where real people whom the synthesizer never saw fail the limit, too: exposed_share.",
        INSTEAD,
    )

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise InvalidSettingError(f"There is no metric {self.metric!r}. The metrics are: {', '.join(METRICS)}.")
        metric = METRICS[self.metric]
        if self.direction is None:
            object.__setattr__(self, "direction", metric.direction)
        if self.severity is None:
            object.__setattr__(self, "severity", metric.severity)
        if self.direction not in DIRECTIONS:
            raise InvalidSettingError(
                f"The limit on {self.metric!r} has direction {self.direction!r}; expected one of {DIRECTIONS}."
            )
        unsafe = next(side for side in SAFE_SIDES if metric.direction not in side)
        if self.direction in unsafe:
            safe = " or ".join(repr(each) for side in SAFE_SIDES if side != unsafe for each in side)
            raise InvalidSettingError(
                f"The limit on {self.metric!r} has direction {self.direction!r}, which would require more risk. "
                f"Expected {safe}."
            )
        if self.beyond is not None and (
            self.beyond != INSTEAD or self.metric not in OF_STRANGERS or self.severity != "error"
        ):
            raise InvalidSettingError(
                f"The limit on {self.metric!r} has beyond {self.beyond!r} and severity {self.severity!r}. Expected "
                f"{INSTEAD!r}, for a limit of severity 'error' on one of {list(OF_STRANGERS)}."
            )
        if self.severity not in SEVERITIES:
            raise InvalidSettingError(
                f"The limit on {self.metric!r} has severity {self.severity!r}; expected one of {SEVERITIES}."
            )
        if not is_number(self.value, metric.low, metric.high, plain=True):
            raise InvalidSettingError(
                f"The limit on {self.metric!r} is {self.value!r}; expected a finite number from {metric.low} to "
                f"{metric.high}."
            )
        always = {"at_most": metric.high, "at_least": metric.low}.get(str(self.direction))
        never = {"below": metric.low, "above": metric.high}.get(str(self.direction))
        if self.assessment == SEMANTIC and self.value == 0:
            never = 0  # The risk is one in a number of records.
        if self.value in (always, never):
            raise InvalidSettingError(
                f"The limit on {self.metric!r} requires {str(self.direction).replace('_', ' ')} {self.value:g}, which "
                f"is {'always' if self.value == always else 'never'} met: the metric ranges from {metric.low} to "
                f"{metric.high}."
            )

    @property
    def assessment(self) -> str:
        """The assessment that computes the figure."""
        return METRICS[self.metric].assessment

    @property
    def side(self) -> str:
        """The side of a release that the figure was made for: ``"synthetic"`` or ``"anonymized"``."""
        return SIDES[self.assessment]

    def is_on(self, side: str) -> bool:
        """Whether the limit applies to a side; limits on worth and on membership apply to both."""
        return side == self.side or METRICS[self.metric].is_on_both_sides

    def assessment_on(self, side: str) -> str:
        """Return the assessment that computes the figure on a side."""
        return METRICS[self.metric].assessment_on(side)

    @property
    def blocks(self) -> bool:
        """Whether a failure refuses the release."""
        return self.severity == "error"

    @property
    def protects(self) -> bool:
        """Whether a release that meets the limit singles out no record, or is not just a copy of the originals.

        The first applies to anonymized records. The second applies to synthetic records, whose limit must be on a
        figure that compares them with the originals.
        """
        loosest = METRICS[self.metric].protects_from
        if not self.blocks:
            return False
        if self.side == SIDES[MPUCC]:
            return METRICS[self.metric].worst_for_copies
        if loosest is None:
            return False
        at_bound = {"above": self.value + 1, "at_least": self.value}.get(str(self.direction), self.value)
        return at_bound >= loosest if METRICS[self.metric].direction == "at_least" else at_bound <= loosest

    @property
    def bound(self) -> str:
        """The bound in words: ``at most 0.2``, or ``no`` for a yes/no figure."""
        return shown_figure(self.metric, str(self.direction), self.value, self.value)[1]

    @property
    def needs_control(self) -> bool:
        """Whether the decision compares with the control."""
        return METRICS[self.metric].needs_control or self.beyond is not None

    @property
    def check_name(self) -> str:
        """A sentence that is true if the limit is met; the name of the asset check."""
        return METRICS[self.metric].sentence or f"{self.metric}_is_{self.direction}_its_limit"

    def holds_for(self, value: float | None) -> bool:
        """Return whether a value meets the bound; a missing or NaN value never does."""
        if value is None or math.isnan(value):
            return False
        return {
            "below": value < self.value,
            "at_most": value <= self.value,
            "above": value > self.value,
            "at_least": value >= self.value,
        }[str(self.direction)]

    def outcome(self, figures: Mapping[str, float | None]) -> Literal["met", "not met", "beyond"]:
        """Decide the limit on all figures of a side, by their metric.

        It is ``"beyond"`` if people never seen fail the limit wherever the records do: then another figure decides.
        """
        pairs = OF_STRANGERS[self.metric] if self.beyond is not None else ((self.metric, ""),)
        if not all(_is_known(figures.get(own)) for own, _ in pairs):
            return "not met"
        failed = [other for own, other in pairs if not self.holds_for(figures[own])]
        if not failed:
            return "met"
        of_others = [figures.get(other) for other in failed]
        can_be_met = any(not _is_known(value) or self.holds_for(value) for value in of_others)
        return "not met" if self.beyond is None or can_be_met else "beyond"

    @property
    def default_advice(self) -> str:
        """The advice on a value that fails, if the evidence has none."""
        if self.advice is not None:
            return self.advice
        own = METRICS[self.metric].advice
        if own is not None:
            return own
        if METRICS[self.metric].needs_control:
            return LEAKAGE_ADVICE
        return SINGLED_OUT_ADVICE


@dataclass(frozen=True)
class LimitInstead(Limit):
    """A limit on what decides where people never seen fail the limits ``of``, too: exposed_share, or no leakage.

    Both are met if every synthetic record equals at least ``people`` originals on all columns, and at most the share
    ``most_certain`` of the records (None: any share) is in cells where a sensitive value is certain: then nobody can be
    singled out, and copies need not be visible. Leakage that was found stays found.
    """

    of: tuple[Limit, ...] = ()
    people: int = PEOPLE_PER_VALUE
    most_certain: float | None = None

    def outcome(self, figures: Mapping[str, float | None]) -> Literal["met", "not met", "beyond"]:
        """Decide the limit; exposed_share is met, too, if the other limits are decided by their own figures."""
        if self.metric == INSTEAD and not self.is_asked(figures):
            return "met"
        own = super().outcome(figures)
        return "met" if figures.get("leakage_detected") != 1 and self.is_shared(figures) else own

    def is_asked(self, figures: Mapping[str, float | None]) -> bool:
        """Whether people never seen fail one of the limits wherever the records do."""
        return any(limit.outcome(figures) == "beyond" for limit in self.of)

    def is_shared(self, figures: Mapping[str, float | None]) -> bool:
        """Return whether every record is that of enough originals, and sensitive values are not certain."""
        shared, certain = figures.get("smallest_shared_cell"), figures.get("share_in_homogeneous_cells")
        is_certain = self.most_certain is not None and (certain is None or not certain <= self.most_certain)
        return shared is not None and shared >= self.people and not is_certain


def is_decided_instead(limit: Limit) -> TypeGuard[LimitInstead]:
    """Whether it is the limit on `INSTEAD` that follows from others."""
    return isinstance(limit, LimitInstead) and limit.metric == INSTEAD


@described
@dataclass(frozen=True)
class RequiredSettings:
    """The settings that assessments of synthetic records must have, and what a release must have besides its figures.

    The default of `max_baseline_cols` is the start that the source of the limits recommends; tables with fewer columns
    need all of them. Coarser rounding than that of the originals hides matches, as does ``deduplicate=False``,
    because a repeated record cannot be unique. The fewer control records there are, and the wider the intervals, the
    less leakage can be distinguished from chance.
    """

    exact_search: bool = setting(True, "Refuse a heuristic search, which may under-report.", False)
    max_baseline_cols: int | None = setting(
        3, "Combinations of at least this many columns must have been searched; null: of all.", 4, at_least=1
    )
    default_precision: bool = setting(True, "Refuse a precision other than the originals' or the contract's.", False)
    deduplicated: bool = setting(True, "Refuse an assessment of repeated records.", False)
    control_records: int = setting(
        100, "Fewest people (or records) in the control if leakage is limited.", 200, at_least=0
    )
    confidence_level: float = setting(
        0.95, "Highest confidence of the intervals if leakage is limited.", 0.9, above=0, below=1
    )
    detectable_share: float | None = setting(
        0.01,
        "Largest share of the originals of whom copies may go unnoticed for leakage_detected to be no; null: any share "
        "below 1.",
        0.02,
        above=0,
        at_most=1,
    )
    signature: bool = setting(False, "Refuse a release that is not signed (signing).", True)
    people_per_value: int | None = setting(
        None,
        "Fewest people who may share a released text or category value if rare_values_released is limited; by default "
        "as many as smallest_class requires, else as in the use case, else 3.",
        10,
        at_least=1,
    )
    declaration: Sequence[str] = setting(
        (), "Fields of the declaration; a release waits for those that are missing.", ["purpose", "recipient"]
    )
    approvals: int = setting(0, "So many approvers must approve a release, which waits for them.", 1, at_least=0)
    signed_waivers: bool = setting(False, "Apply only waivers that an approver signed.", True)

    def __post_init__(self) -> None:
        declared = self.declaration
        are_names = isinstance(declared, list | tuple) and all(name in DECLARED for name in map(str, declared))
        columns, confidence = self.max_baseline_cols, self.confidence_level
        share, people = self.detectable_share, self.people_per_value
        is_share = is_number(share, plain=True) and 0 < share <= 1
        for name, is_right, expected in (
            (
                "max_baseline_cols",
                columns is None or is_integer(columns, 1, plain=True),
                "a whole number from 1, or None for all",
            ),
            *(
                (name, isinstance(getattr(self, name), bool), "True or False")
                for name in ("exact_search", "default_precision", "deduplicated", "signature", "signed_waivers")
            ),
            *(
                (name, is_integer(getattr(self, name), 0, plain=True), "a whole number from 0")
                for name in ("control_records", "approvals")
            ),
            (
                "confidence_level",
                is_number(confidence, plain=True) and 0 < confidence < 1,
                "a number between 0 and 1",
            ),
            ("detectable_share", share is None or is_share, "a number above 0 and at most 1, or None"),
            ("declaration", are_names, f"some of {list(DECLARED)}"),
            (
                "people_per_value",
                people is None or is_integer(people, 1, plain=True),
                "a whole number from 1, or None for as many as in the smallest class",
            ),
        ):
            if not is_right:
                raise InvalidSettingError(f"The policy requires {name}={getattr(self, name)!r}; expected {expected}.")
        object.__setattr__(self, "declaration", tuple(self.declaration))


@dataclass(frozen=True)
class Policy:
    """Limits that a table must meet to be released.

    Parameters
    ----------
    limits : sequence of Limit
        At least one of severity ``"error"``; one per metric.
    required : RequiredSettings
        Settings that the assessment must have, and whether a release must be signed.
    use_case : str, optional
        Name of the preset that the policy started from; ``changes`` lists the differences.
    known : sequence of sequence of str
        Sets of columns that an attacker is assumed to know, for the limits on re-identification; the worst set counts.
        By default one set with all quasi-identifiers.
    known_rows : int or "all"
        Rows of a person that an attacker is assumed to know, for the limits on re-identification; the worst number of
        rows up to it counts. More rows than a person has are all of them. It matters if released rows are linked
        (``links_rows``), or a sensitive value of a person is the same in all of them.

    Raises
    ------
    InvalidSettingError
        If no limit blocks, a metric is limited twice, ``known`` or ``known_rows`` is neither of these, or only semantic
        risk would limit anonymized records.
    """

    limits: tuple[Limit, ...]
    required: RequiredSettings = field(default_factory=RequiredSettings)
    use_case: str | None = None
    known: tuple[tuple[str, ...], ...] = ()
    known_rows: int | Literal["all"] = ALL_ROWS

    def __post_init__(self) -> None:
        object.__setattr__(self, "limits", tuple(self.limits))
        _check_known(self.known)
        object.__setattr__(self, "known", tuple(tuple(columns) for columns in self.known))
        if self.known_rows != ALL_ROWS and not is_integer(self.known_rows, 1, plain=True):
            raise InvalidSettingError(
                f"`known_rows` of the policy is {self.known_rows!r}; expected the number of rows of a person that an "
                "attacker knows, a whole number from 1, or 'all'."
            )
        if not any(limit.blocks for limit in self.limits):
            raise InvalidSettingError(
                "The policy has no limit of severity 'error' and would admit everything. Add one, for example "
                "Limit('privacy_risk_score', 0.1)."
            )
        metrics = [limit.metric for limit in self.limits]
        repeated = sorted({metric for metric in metrics if metrics.count(metric) > 1})
        if repeated:
            raise InvalidSettingError(f"The policy limits a metric more than once: {repeated}. Keep one limit each.")
        self._check_beyond()
        blocking = {limit.assessment for limit in self.limits if limit.side == SIDES[SEMANTIC] and limit.blocks}
        if blocking == {SEMANTIC}:
            raise InvalidSettingError(
                "The policy limits only the semantic risk of anonymized records, which is never stricter than the "
                "size of the classes. Add a limit on smallest_class, or on max_reidentification_probability."
            )

    def _check_beyond(self) -> None:
        beyond = [limit for limit in self.limits if limit.beyond is not None]
        leakage, own = self.limit_on("leakage_detected"), self.limit_on(INSTEAD)
        if beyond and (leakage is None or not leakage.blocks):
            raise InvalidSettingError(
                f"The limit on {beyond[0].metric!r} can be decided by {INSTEAD}, which says nothing about records that "
                "leak. Add a limit of severity 'error' on leakage_detected, or leave out `beyond`."
            )
        if beyond and own is not None:
            raise InvalidSettingError(
                f"The policy limits {INSTEAD!r}, which the limit on {beyond[0].metric!r} limits already, to its own "
                "value. Leave out one of them."
            )

    @classmethod
    def for_use_case(cls, use_case: str) -> "Policy":
        """Return the preset of a use case.

        Synthetic side: a limit on ``privacy_risk_score`` and on ``originals_singled_out``, or on ``exposed_share``
        where people never seen fail these, too; no detected leakage, no more copies of people than people are of each
        other, and no text or category value that fewer than k people share (only a warning in `RARE_VALUES_WARN`).
        Anonymized side: a ``smallest_class`` of k, a ``max_reidentification_probability`` of 1 / k, and a warning if a
        sensitive value is certain for anybody, which is an error if several rows of a person make it certain.

        Raises
        ------
        InvalidSettingError
            If the use case is not a key of `USE_CASES`.
        """
        if use_case not in USE_CASES:
            raise InvalidSettingError(f"There is no use case {use_case!r}. The use cases are: {', '.join(USE_CASES)}.")
        most_certain = 0 if use_case in CERTAIN_VALUES_WARN else 1 / SMALLEST_CLASSES[use_case]
        knows_one_row = KNOWN_ROWS[use_case] == 1
        limits = (
            *(Limit(metric, USE_CASES[use_case], beyond=INSTEAD) for metric in OF_STRANGERS),
            Limit("leakage_detected", 0),
            Limit("copies_beyond_people", 0),
            Limit(RARE_VALUES_RELEASED, 0, severity="warn" if use_case in RARE_VALUES_WARN else "error"),
            Limit("smallest_class", SMALLEST_CLASSES[use_case]),
            Limit("max_reidentification_probability", 1 / SMALLEST_CLASSES[use_case]),
            Limit(
                "share_in_homogeneous_classes",
                most_certain,
                severity="warn" if use_case in CERTAIN_VALUES_WARN else "error",
            ),
            Limit("share_certain_by_rows", most_certain, severity="warn" if knows_one_row else "error"),
        )
        required = RequiredSettings(declaration=DECLARATION.get(use_case, ()))
        return cls(limits, required, use_case, known_rows=KNOWN_ROWS[use_case])

    def limits_of(self, side: str) -> tuple[Limit, ...]:
        """Return the limits on one side of a release, in order.

        On the anonymized side a warning on certain sensitive values is added, unless the policy itself limits sensitive
        values.
        """
        limits = tuple(limit for limit in self.limits if limit.is_on(side))
        beyond = tuple(limit for limit in limits if limit.beyond is not None)
        if beyond:
            strictest = min(beyond, key=lambda limit: (limit.value, limit.direction != "below"))
            certain = self.limit_on("share_in_homogeneous_classes")
            most_certain = certain.value if certain is not None and certain.blocks else None
            shared: dict[str, Any] = {"of": beyond, "people": self.people_per_value, "most_certain": most_certain}
            limits = tuple(
                LimitInstead(*astuple(limit), **shared) if limit.metric == "leakage_detected" else limit
                for limit in limits
            )
            limits += (LimitInstead(INSTEAD, strictest.value, strictest.direction, **shared),)
        if side == SIDES[ANONYMITY] and not any(METRICS[limit.metric].needs_sensitive for limit in limits):
            return (*limits, Limit("share_in_homogeneous_classes", 0))
        return limits

    def protects(self, side: str) -> bool:
        """Whether a limit on this side refuses records that would single people out."""
        return any(limit.protects for limit in self.limits if limit.side == side)

    def limit_on(self, metric: str) -> Limit | None:
        """Return the limit on a metric, if there is one."""
        return next((limit for limit in self.limits if limit.metric == metric), None)

    @property
    def people_per_value(self) -> int:
        """Fewest people who may share a released text or category value, for the limit on `rare_values_released`."""
        required = self.required.people_per_value
        return self.people_per_class if required is None else required

    @property
    def people_per_class(self) -> int:
        """Fewest people among whom a person must be hidden: the limit on `smallest_class`, or that of the use case."""
        smallest = self.limit_on("smallest_class")
        if smallest is not None and smallest.blocks:
            return math.floor(smallest.value) + 1 if smallest.direction == "above" else math.ceil(smallest.value)
        return SMALLEST_CLASSES.get(str(self.use_case), PEOPLE_PER_VALUE)

    def with_limit(self, limit: Limit) -> "Policy":
        """Return a policy with this limit added; it replaces a limit on the same metric."""
        return replace(
            self, limits=tuple(({each.metric: each for each in self.limits} | {limit.metric: limit}).values())
        )

    def with_worth_warnings(self) -> "Policy":
        """Return the policy of a use case with warnings below `WORTH_WARNINGS`; its own limits on these metrics stay.

        A policy without a use case is returned unchanged. Called only for a release with `utility`; otherwise presets
        would require an assessment of the worth of every table.
        """
        if self.use_case is None:
            return self
        missing = [name for name in WORTH_WARNINGS if self.limit_on(name) is None]
        return replace(self, limits=(*self.limits, *(Limit(name, WORTH_WARNINGS[name]) for name in missing)))

    def with_total_epsilon(self) -> "Policy":
        """Return a policy with a limit on `total_epsilon`, by default `TOTAL_EPSILON`.

        Called for a release with differentially private records, because a budget without a limit is no budget.

        Raises
        ------
        InvalidSettingError
            If the policy's own limit on it only warns.
        """
        own = self.limit_on("total_epsilon")
        if own is not None and not own.blocks:
            raise InvalidSettingError(
                "The policy's limit on 'total_epsilon' only warns, so the budget would be unlimited. Expected "
                "severity 'error'."
            )
        return self if own is not None else self.with_limit(Limit("total_epsilon", TOTAL_EPSILON))

    def with_rules(self, *, has_rules: bool) -> "Policy":
        """Return a policy for a contract with rules across columns, none of which a record may violate.

        Its own limit on `rule_violations` stays.

        Raises
        ------
        InvalidSettingError
            If there is such a limit, but no rule.
        """
        own = self.limit_on(RULE_VIOLATIONS)
        if own is not None and not has_rules:
            raise InvalidSettingError(
                f"The policy limits {RULE_VIOLATIONS!r}, but the contract has no `rules`. Write some, or leave the "
                "limit out."
            )
        return self if own is not None or not has_rules else self.with_limit(Limit(RULE_VIOLATIONS, 0))

    def for_related_tables(self) -> "Policy":
        """Return the policy for related tables: their gate decides by `INSTEAD` and leakage, in all views at once.

        Views are so wide that people never seen fail the limits of the preset on figures of one table, too. They are
        left out, and their strictest value limits `INSTEAD`.

        Raises
        ------
        InvalidSettingError
            If the policy has other limits on figures of one table.
        """
        of_one = [limit for limit in self.limits if limit.assessment == MPUCC]
        preset = Policy.for_use_case(self.use_case).limits if self.use_case is not None else ()
        others = [limit.metric for limit in of_one if limit.beyond is None and limit not in preset]
        if others:
            raise InvalidSettingError(
                f"The policy limits {others}, which are figures of one table. Expected limits on leakage_detected and "
                f"{INSTEAD}, which are tested on all views of related tables at once. Nothing was read."
            )
        policy, beyond = self, [limit for limit in of_one if limit.beyond is not None]
        if of_one:
            policy = replace(self, limits=tuple(limit for limit in self.limits if limit not in of_one))
        if not beyond or policy.limit_on(INSTEAD) is not None:
            return policy
        strictest = min(beyond, key=lambda limit: (limit.value, limit.direction != "below"))
        return policy.with_limit(Limit(INSTEAD, strictest.value, strictest.direction))

    def with_required(self, **settings: Any) -> "Policy":
        """Return a policy with some of the required settings changed."""
        return replace(self, required=replace(self.required, **settings))

    @property
    def changes(self) -> tuple[str, ...]:
        """Differences from the preset of the policy; added limits do not count.

        Names of metrics, of required settings (``required.exact_search``), ``known`` and ``known_rows``; empty without
        a preset.
        """
        if self.use_case is None:
            return ()
        preset = Policy.for_use_case(self.use_case)
        changed = [limit.metric for limit in preset.limits if self.limit_on(limit.metric) != limit]
        own = asdict(self.required)
        changed += [f"required.{name}" for name, value in asdict(preset.required).items() if own[name] != value]
        changed += [name for name in ("known", "known_rows") if getattr(self, name) != getattr(preset, name)]
        return tuple(changed)

    def to_json(self) -> dict[str, Any]:
        """Return the policy as JSON values for the manifest, with its changes from the preset."""
        return asdict(self) | {"limits": [asdict(limit) for limit in self.limits], "changes": list(self.changes)}


def _is_known(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def follows_from_class_size(limit: Limit, limits: Sequence[Limit]) -> bool:
    """Return whether a limit on re-identification is met whenever the limit on the smallest class is met."""
    smallest = next((each for each in limits if each.metric == "smallest_class" and each.blocks), None)
    if limit.metric != "max_reidentification_probability" or smallest is None:
        return False
    return limit.holds_for(1 / (smallest.value + (smallest.direction == "above")))


def resolve_policy(policy: Policy | str) -> Policy:
    """Return the given policy, or that of the given use case; raise InvalidSettingError for anything else."""
    if not isinstance(policy, Policy | str):
        raise InvalidSettingError(
            f"The policy is a {type(policy).__name__}; expected the name of a use case, limits, or a Policy."
        )
    return Policy.for_use_case(policy) if isinstance(policy, str) else policy


def _check_known(known: object) -> None:
    is_sequence = isinstance(known, Sequence) and not isinstance(known, str)
    if not is_sequence or any(isinstance(columns, str) or not columns for columns in known):  # type: ignore[attr-defined]
        raise InvalidSettingError(
            "`known` of the policy must be a list of non-empty lists of columns, such as [['age', 'sex']]."
        )
