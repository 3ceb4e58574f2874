"""How each column of a released table constrains the original value: the masks of ``design/reidentification.md``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from privacy_assets.tables.errors import InvalidSettingError


@dataclass(frozen=True)
class Exact:
    """The released value is the original one."""

    column: str


@dataclass(frozen=True)
class Interval:
    """The original lies between two released values.

    Attributes
    ----------
    low, high : str
        Columns of the ends; both are missing in a row whose original is a missing value.
    includes_high : bool
        Whether the upper end itself is possible.
    missing : str or None
        Column that says whether the original may be a missing value; None if it never is.
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
    """The released value is the original one mapped to a node of a hierarchy, at a level or, if None, at any."""

    column: str
    hierarchy: str
    level: int | None = None


@dataclass(frozen=True)
class Suppressed:
    """The release says nothing of the original."""


Mask = Exact | Interval | ValueSet | HierarchyMapping | Suppressed
_KINDS: dict[str, type[Any]] = {
    "exact": Exact,
    "interval": Interval,
    "value_set": ValueSet,
    "mapping": HierarchyMapping,
    "suppressed": Suppressed,
}


@dataclass(frozen=True)
class ReleaseModel:
    """One mask per column of the original table."""

    masks: Mapping[str, Mask]

    def to_json(self) -> dict[str, dict[str, Any]]:
        """Return the masks as JSON values."""
        names = {kind: name for name, kind in _KINDS.items()}
        return {column: {"kind": names[type(mask)], **asdict(mask)} for column, mask in self.masks.items()}

    @classmethod
    def from_json(cls, value: Mapping[str, Mapping[str, Any]]) -> ReleaseModel:
        """Read back what :meth:`to_json` wrote."""
        unknown = sorted({str(mask.get("kind")) for mask in value.values()} - set(_KINDS))
        if unknown:
            raise InvalidSettingError(
                f"A release model names masks that do not exist: {unknown}. There are {list(_KINDS)}."
            )
        masks = {}
        for column, mask in value.items():
            settings = {name: part for name, part in mask.items() if name != "kind"}
            masks[column] = _KINDS[mask["kind"]](**settings)
        return cls(masks)
