"""The settings of an anonymization, with their checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from functools import partial
from math import floor
from typing import Any, Literal, get_args

from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import REQUIRED, is_integer, is_number, one_of, setting
from privacy_assets.setting_checks import require as require_setting
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of

require = partial(require_setting, consequence="Nothing was anonymized.")

Method = Literal["mondrian", "lattice"]
Criterion = Literal["gain", "range"]
Normalization = Literal["best", "rank", "range"]
Output = Literal["labels", "centroid"]
Bounds = Literal["tight", "cell"]
DiversityKind = Literal["distinct", "entropy", "recursive"]


@dataclass(frozen=True)
class LDiversity:
    """A lower limit on the diversity of a sensitive column in every class.

    Parameters
    ----------
    least : float
        The l, at least 1; whole for the kinds "distinct" and "recursive".
    kind : {"distinct", "entropy", "recursive"}
        "distinct": at least l values. "entropy": entropy of at least log(l). "recursive": the most frequent value has
        fewer than c times the rows of the l-th most frequent and all rarer ones together.
    c : float
        The c of the recursive kind, above 0; ignored by the others.
    """

    least: float = setting(REQUIRED, "The l, at least 1.", 2, at_least=1)
    kind: DiversityKind = setting("distinct", "distinct, entropy or recursive.", "entropy")
    c: float = setting(1.0, "The c of the recursive kind.", 3, above=0)

    def check(self, setting: str) -> None:
        """Raise InvalidSettingError if the diversity is not valid."""
        require(self.kind in get_args(DiversityKind), f"{setting}.kind", self.kind, one_of(get_args(DiversityKind)))
        is_whole = self.kind == "entropy" or (is_number(self.least) and float(self.least).is_integer())
        require(
            is_number(self.least, 1) and is_whole,
            f"{setting}.least",
            self.least,
            "a number of at least 1, whole unless the kind is entropy",
        )
        require(is_number(self.c) and self.c > 0, f"{setting}.c", self.c, "a number above 0")


DiversitySetting = int | LDiversity | Mapping[str, int | LDiversity] | None
ClosenessSetting = float | Mapping[str, float] | None


@dataclass(frozen=True, kw_only=True)
class MethodSettings:
    """How classes are made, independent of the columns; :func:`~.anonymize.anonymize` explains each setting."""

    method: Method = setting("mondrian", "mondrian (classes by cuts) or lattice (classes by hierarchies).", "lattice")
    criterion: Criterion = setting(
        "gain",
        "Which cut mondrian takes: where most information is lost (gain), or the widest column (range).",
        "range",
    )
    relaxed: bool = setting(False, "Whether a cut may divide records with equal values.", True)
    normalize: Normalization = setting(
        "best", "Whether mondrian compares columns by rank, by range, or by the one that loses less (best).", "range"
    )
    max_suppression: float = setting(
        0.0,
        "Share of records that may be left out where this reduces the loss of the others.",
        0.02,
        at_least=0,
        below=1,
    )
    output: Output = setting("labels", "labels (ranges and sets), or centroid (the center of each class).", "labels")
    bounds: Bounds = setting(
        "tight", "Whether ranges end at values of the class (tight) or where space was cut (cell).", "cell"
    )

    @property
    def method_settings(self) -> dict[str, Any]:
        """These settings, without those that a subclass adds."""
        return {each.name: getattr(self, each.name) for each in fields(MethodSettings)}


@dataclass(frozen=True, kw_only=True)
class AnonymizeSettings(MethodSettings):
    """All settings that affect an anonymization, except the table; :func:`~.anonymize.anonymize` explains each."""

    quasi_identifiers: tuple[str, ...]
    k: int
    sensitive: tuple[str, ...] = ()
    subject: str | None = None
    direct_identifiers: tuple[str, ...] = ()
    l_diversity: Mapping[str, LDiversity] = field(default_factory=dict)
    t_closeness: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0

    @property
    def needs_values(self) -> bool:
        """Whether there is any l or t."""
        return bool(self.l_diversity or self.t_closeness)

    @property
    def unit(self) -> str:
        """The unit of k."""
        return "rows" if self.subject is None else "people"

    def most_suppressed(self, n_rows: int) -> int:
        """Return how many rows may be left out: 0.29 of 100 are 29, although 0.29 * 100 is below 29 in floats."""
        return floor(Fraction(repr(float(self.max_suppression))) * n_rows)

    def described(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        described = {ALGORITHM: algorithm_of("anonymization"), **asdict(self)}
        for name in ("quasi_identifiers", "sensitive", "direct_identifiers"):
            described[name] = list(described[name])
        for name in ("k", "seed"):
            described[name] = int(described[name])
        described["max_suppression"] = float(self.max_suppression)
        described["t_closeness"] = {name: float(t) for name, t in self.t_closeness.items()}
        described["l_diversity"] = {
            name: {**asdict(l_), "least": float(l_.least)} for name, l_ in self.l_diversity.items()
        }
        return described

    def check(self) -> None:
        """Raise InvalidSettingError for a setting out of its range, or conflicting roles."""
        require(is_integer(self.k, 1), "k", self.k, "a whole number of at least 1 (1 gives no protection)")
        require(is_integer(self.seed, 0), "seed", self.seed, "a whole number of at least 0")
        for name, choices in (
            ("method", Method),
            ("criterion", Criterion),
            ("normalize", Normalization),
            ("output", Output),
            ("bounds", Bounds),
        ):
            value = getattr(self, name)
            require(value in get_args(choices), name, value, one_of(get_args(choices)))
        require(isinstance(self.relaxed, bool), "relaxed", self.relaxed, "True or False")
        share = self.max_suppression
        require(is_number(share, 0, 1) and share < 1, "max_suppression", share, "a share from 0 to below 1")
        for column, diversity in self.l_diversity.items():
            diversity.check(f"l_diversity of {column!r}")
        for column, limit in self.t_closeness.items():
            require(is_number(limit, 0, 1), f"t_closeness of {column!r}", limit, "a number from 0 to 1")
        self._check_roles()
        self._check_method()

    def _check_method(self) -> None:
        """Refuse settings of cuts for a method that does not cut."""
        if self.method != "lattice":
            return
        of_cuts = {"criterion": "gain", "relaxed": False, "normalize": "best", "bounds": "tight"}
        unused = {name: getattr(self, name) for name, default in of_cuts.items() if getattr(self, name) != default}
        if unused:
            raise InvalidSettingError(
                f"method is 'lattice', which makes no cuts, but settings of cuts are given: {unused}. Expected their "
                "defaults. Leave them out, or use the method 'mondrian'. Nothing was anonymized."
            )

    def _check_roles(self) -> None:
        if not self.quasi_identifiers:
            raise InvalidSettingError(
                "quasi_identifiers names no column. Expected at least one column that an outsider may know. Nothing "
                "was anonymized."
            )
        subject = () if self.subject is None else (self.subject,)
        roles = {
            "quasi_identifiers": self.quasi_identifiers,
            "sensitive": self.sensitive,
            "direct_identifiers": self.direct_identifiers,
            "subject": subject,
        }
        problems = [
            f"{role} names columns twice: {sorted({c for c in columns if columns.count(c) > 1})}."
            for role, columns in roles.items()
            if len(set(columns)) < len(columns)
        ]
        names = list(roles)
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                both = sorted(set(roles[first]) & set(roles[second]))
                # The person column is always a direct identifier; naming it as one changes nothing.
                if both and (first, second) != ("direct_identifiers", "subject"):
                    problems.append(f"{first} and {second} both name {both}.")
        if problems:
            raise InvalidSettingError(
                f"{' '.join(problems)} Expected each column in one role. Remove it from the others. Nothing was "
                "anonymized."
            )


def spread(setting: Any, sensitive: Sequence[str], name: str) -> dict[str, Any]:
    """Give a limit that is not set by column to every sensitive column."""
    if setting is None:
        return {}
    if isinstance(setting, Mapping):
        unknown = [str(column) for column in setting if column not in sensitive]
        if unknown:
            raise InvalidSettingError(
                f"{name} names columns that are not sensitive: {unknown}. The sensitive columns are {list(sensitive)}. "
                "Add them there. Nothing was anonymized."
            )
        return dict(setting)
    if not sensitive:
        raise InvalidSettingError(
            f"{name} is set, but `sensitive` names no column. Expected the columns that it protects. Nothing was "
            "anonymized."
        )
    return dict.fromkeys(sensitive, setting)


def as_names(names: Sequence[str], setting: str) -> tuple[str, ...]:
    """Return the names as a tuple; refuse anything else, such as a single text."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise InvalidSettingError(f"{setting} is not a sequence of column names. Expected one, such as a list of text.")
    return tuple(names)


def diversities(setting: DiversitySetting, sensitive: Sequence[str]) -> dict[str, LDiversity]:
    """Give every sensitive column its diversity, if it has one."""
    return {name: as_diversity(value, name) for name, value in spread(setting, sensitive, "l_diversity").items()}


def as_diversity(value: object, column: str) -> LDiversity:
    """Turn a plain number into distinct l-diversity."""
    if isinstance(value, LDiversity):
        return value
    require(is_integer(value, 1), f"l_diversity of {column!r}", value, "a whole number of at least 1, or an LDiversity")
    return LDiversity(int(value))  # type: ignore[call-overload]
