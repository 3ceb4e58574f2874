"""Masks: constraints of a released column on the original value.

All masks: ``docs/design/reidentification.md``, section "Masks".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Literal

import numpy as np
import pandas as pd

from privacy_assets.errors import InvalidSettingError


@dataclass(frozen=True)
class Exact:
    """The released value is the original value."""

    column: str


@dataclass(frozen=True)
class Interval:
    """The original is between two released values.

    Attributes
    ----------
    low, high : str
        Columns of the ends; both are missing if the original is a missing value.
    includes_high : bool
        Whether the upper end itself is possible.
    missing : str or None
        Column that shows whether the original may be a missing value; None if it is never missing.
    """

    low: str
    high: str
    includes_high: bool
    missing: str | None = None


@dataclass(frozen=True)
class ValueSet:
    """The original is one of several values: those of a JSON array in ``column``, where null is the missing value."""

    column: str


@dataclass(frozen=True)
class HierarchyMapping:
    """The released value is the node of the original value in a hierarchy, on a level or, if None, on any level."""

    column: str
    hierarchy: str
    level: int | None = None


@dataclass(frozen=True)
class Suppressed:
    """The original is not released."""


@dataclass(frozen=True)
class Label:
    """Each released cell is a label of the original, for tables that were anonymized elsewhere.

    A cell is an original value, or in one of the forms of ARX, sdcMicro and this package, listed in
    :mod:`~privacy_assets.reidentification.mask_labels`: ``[20, 29]``, ``[20, 30[``, ``(20,30]``, ``20-29``, ``>=65``,
    ``{a, b}``, ``816**``, ``*``.

    Attributes
    ----------
    column : str
        The released column.
    missing_means : {"suppressed", "missing"}
        Whether a missing cell is suppressed, as in local suppression of sdcMicro, or means that the original is a
        missing value.
    """

    column: str
    missing_means: Literal["suppressed", "missing"] = "suppressed"


@dataclass(frozen=True)
class BoundedNoise:
    """The released value differs from the original by at most ``width``; a missing value stays missing.

    Attributes
    ----------
    column : str
        The released column.
    width : float, str or timedelta
        A number for numbers. For dates and durations a ``Timedelta`` or ISO 8601 text such as ``"P2D"`` or ``"PT12H"``;
        it is kept as this text. Times with a time zone differ by the time that passed between them, even if clocks
        changed.
    """

    column: str
    width: float | str | timedelta

    def __post_init__(self) -> None:
        """Keep a duration as text, so that a model is JSON."""
        if isinstance(self.width, timedelta | np.timedelta64):
            duration = pd.Timedelta(self.width)
            object.__setattr__(self, "width", "NaT" if pd.isna(duration) else duration.isoformat())


@dataclass(frozen=True)
class RankWindow:
    """The released value is that of a record whose rank is at most ``p`` percent of the records away (rank swapping).

    Equal values share all their ranks; missing values stay in place.
    """

    column: str
    p: float


@dataclass(frozen=True)
class SimilarText:
    """The released text is the original one with few typing errors; a missing value stays missing.

    Attributes
    ----------
    column : str
        The released column.
    edits : int
        Largest number of insertions, deletions and substitutions of one character (Levenshtein's distance), 0 to 10.
        Two exchanged neighbors are two edits. Case, accents and spaces count.
    """

    column: str
    edits: int


@dataclass(frozen=True)
class Microaggregated:
    """The released value is the mean, or another aggregate, of a group of records.

    Groups are the released records with equal cells in all of ``together``. An original fits if a record of the group
    has its values in all known columns among them: anyone who knows these, and how groups were made, can repeat the
    grouping.

    Attributes
    ----------
    column : str
        The released column.
    together : sequence of str
        The released columns that were aggregated over the same groups, this one included.
    """

    column: str
    together: Sequence[str]

    def __post_init__(self) -> None:
        """Keep a list as a tuple."""
        object.__setattr__(
            self, "together", (self.together,) if isinstance(self.together, str) else tuple(self.together)
        )


@dataclass(frozen=True)
class GaussianNoise:
    """A number with normally distributed noise of mean 0; a missing value stays missing.

    It makes originals more or less probable and does not exclude any, so it can only be weighed
    (:class:`~privacy_assets.reidentification.WeightedCandidates`).

    Attributes
    ----------
    column : str
        The released column.
    sd : float
        Standard deviation of the noise, above 0, in the unit of the column.
    """

    column: str
    sd: float


@dataclass(frozen=True)
class Pram:
    """A value exchanged at random with known probabilities (post-randomization); a missing value stays missing.

    It makes originals more or less probable, so it can only be weighed
    (:class:`~privacy_assets.reidentification.WeightedCandidates`).

    Attributes
    ----------
    column : str
        The released column, of text, categories, booleans or numbers.
    transitions : mapping of str to mapping of str to float, or DataFrame
        For each original value, the probability of each released value; omitted ones have 0, and those of one original
        value sum to 1. In a frame, rows are original values and columns released ones. Kept as text: ``True`` is
        ``"True"``, and 1.0 is ``"1"``.
    """

    column: str
    transitions: Mapping[str, Mapping[str, float]]

    def __post_init__(self) -> None:
        """Keep values as text, so that a model is JSON."""
        rows: Any = self.transitions
        if isinstance(rows, pd.DataFrame):
            rows = rows.to_dict("index")
        if isinstance(rows, Mapping) and all(isinstance(row, Mapping) for row in rows.values()):
            texts = {_text(x): {_text(y): share for y, share in row.items()} for x, row in rows.items()}
            object.__setattr__(self, "transitions", texts)


@dataclass(frozen=True)
class RankBuckets:
    """The value was swapped by rank, within or between buckets (rank swapping p-buckets); missing values stay in place.

    The sorted values form buckets of equally many records. From the first bucket on, each record that was not swapped
    takes a partner of a bucket s, its own one or a later one, with a probability proportional to 1 / 2^s, and at random
    within the bucket. It makes originals more or less probable, so it can only be weighed
    (:class:`~privacy_assets.reidentification.WeightedCandidates`).

    Attributes
    ----------
    column : str
        The released column.
    n_buckets : int
        Number of buckets, at least 2, each with at least 20 values that are not missing.

    References
    ----------
    J. Nin, J. Herranz, V. Torra (2008), "Rethinking rank swapping to decrease disclosure risk", Data & Knowledge
    Engineering 64, 346-364.
    """

    column: str
    n_buckets: int


def _text(value: object) -> str:
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value) if is_whole else value)  # type: ignore[call-overload]


WeighingMask = GaussianNoise | Pram | RankBuckets
"""Masks that make originals more or less probable; all others only determine which are possible."""
Mask = (
    Exact
    | Interval
    | ValueSet
    | HierarchyMapping
    | Suppressed
    | Label
    | BoundedNoise
    | RankWindow
    | SimilarText
    | Microaggregated
    | GaussianNoise
    | Pram
    | RankBuckets
)
_KINDS: dict[str, type[Any]] = {
    "exact": Exact,
    "interval": Interval,
    "value_set": ValueSet,
    "mapping": HierarchyMapping,
    "suppressed": Suppressed,
    "label": Label,
    "bounded_noise": BoundedNoise,
    "rank_window": RankWindow,
    "similar_text": SimilarText,
    "microaggregated": Microaggregated,
    "gaussian_noise": GaussianNoise,
    "pram": Pram,
    "rank_buckets": RankBuckets,
}


def columns_of(mask: Mask) -> tuple[str, ...]:
    """Return the released columns that a mask reads."""
    if isinstance(mask, Suppressed):
        return ()
    if isinstance(mask, Interval):
        return (mask.low, mask.high, *(() if mask.missing is None else (mask.missing,)))
    if isinstance(mask, Microaggregated):
        return tuple(dict.fromkeys((mask.column, *mask.together)))
    return (mask.column,)


@dataclass(frozen=True)
class ReleaseModel:
    """One mask per column of the original table.

    ``anonymize`` returns a model. For a table anonymized elsewhere, write it by hand or use :meth:`from_labels`.
    """

    masks: Mapping[str, Mask]

    @classmethod
    def from_labels(
        cls, labels: Sequence[str], *, exact: Sequence[str] = (), suppressed: Sequence[str] = ()
    ) -> ReleaseModel:
        """Return the masks of columns that keep the names of the original: labels, exact or suppressed.

        Parameters
        ----------
        labels : sequence of str
            Generalized columns, with cells read as :class:`Label`.
        exact : sequence of str
            Columns released unchanged.
        suppressed : sequence of str
            Columns of the original that were not released.
        """
        names = [*labels, *exact, *suppressed]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated or any(isinstance(part, str) for part in (labels, exact, suppressed)):
            raise InvalidSettingError(
                f"labels, exact and suppressed repeat these columns: {repeated}. Expected three disjoint lists."
            )
        masks: dict[str, Mask] = {name: Label(name) for name in labels}
        masks.update({name: Exact(name) for name in exact})
        masks.update({name: Suppressed() for name in suppressed})
        return cls(masks)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Return the masks as JSON values."""
        names = {kind: name for name, kind in _KINDS.items()}
        return {column: {"kind": names[type(mask)], **asdict(mask)} for column, mask in self.masks.items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Mapping[str, Any]]) -> ReleaseModel:
        """Read the output of :meth:`to_json`."""
        unknown = sorted({str(mask.get("kind")) for mask in value.values()} - set(_KINDS))
        if unknown:
            raise InvalidSettingError(
                f"A release model names masks that do not exist: {unknown}. Expected some of {list(_KINDS)}."
            )
        masks = {}
        for column, mask in value.items():
            settings = {name: part for name, part in mask.items() if name != "kind"}
            masks[column] = _KINDS[mask["kind"]](**settings)
        return cls(masks)
