"""Conceptual scales: conversion of a column to attributes of records."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.errors import InvalidSettingError

Closed = Literal["both", "left", "right", "neither"]
CLOSED: tuple[Closed, ...] = ("both", "left", "right", "neither")
SCALE_WORDS = ("nominal", "ordinal", "binary", "generalized")
SCALE_KEYS = ("ordinal", "interval", "hierarchy")


@dataclass(frozen=True)
class Nominal:
    """One attribute per value. A missing cell and the cell ``*`` have no attributes."""

    kind = "nominal"


@dataclass(frozen=True)
class Binary:
    """A boolean column, or one of 1 and 0, is one attribute with the name of the column."""

    kind = "binary"


@dataclass(frozen=True)
class Generalized:
    """One attribute per label that :func:`~privacy_assets.anonymization.anonymize.anonymize` released.

    A cell has the attribute of every label that contains it: ``[20, 24]`` also has ``[20, 29]``.
    """

    kind = "generalized"


@dataclass(frozen=True)
class Ordinal:
    """One attribute ``>= threshold`` per threshold, ascending. By default these are all values that occur."""

    thresholds: tuple[Any, ...] | None = None
    kind = "ordinal"


@dataclass(frozen=True)
class Windows:
    """One attribute per window; windows may overlap.

    ``closed`` are the ends that belong to a window: "both", "left", "right" or "neither".
    """

    windows: tuple[tuple[Any, Any], ...]
    closed: Closed = "both"
    kind = "interval"


@dataclass(frozen=True)
class Ancestors:
    """One attribute per node of a hierarchy: a cell has its own node and the nodes above it, except ``*``."""

    hierarchy: Hierarchy
    kind = "hierarchy"


ConceptualScale = Nominal | Binary | Generalized | Ordinal | Windows | Ancestors


def read_scale(setting: Any) -> ConceptualScale:
    """Read a scale from settings.

    These are ``"nominal"``, ``"ordinal"``, ``"binary"``, ``"generalized"``; ``{"ordinal": [18, 30, 65]}``;
    ``{"interval": [[1935, 1955], [1945, 1965]]}``, or ``{"interval": {"windows": [...], "closed": "left"}}``;
    ``{"hierarchy": ...}`` with a :class:`~privacy_assets.columns.hierarchy.Hierarchy` or its settings. Thresholds
    ascend, and the lower end of a window is below its upper end.
    """
    words: dict[str, ConceptualScale] = {
        "nominal": Nominal(),
        "ordinal": Ordinal(),
        "binary": Binary(),
        "generalized": Generalized(),
    }
    if isinstance(setting, ConceptualScale):
        return _checked(setting)
    if isinstance(setting, str) and setting in words:
        return words[setting]
    if isinstance(setting, Mapping) and len(setting) == 1:
        kind, value = next(iter(setting.items()))
        if kind == "ordinal":
            return _checked(Ordinal(tuple(_items(value, "An ordinal scale", "a list of thresholds"))))
        if kind == "interval":
            return _checked(_windows(value))
        if kind == "hierarchy":
            return Ancestors(value if isinstance(value, Hierarchy) else Hierarchy.from_settings(value))
    found = repr(setting) if isinstance(setting, str) else type(setting).__name__
    if isinstance(setting, Mapping):
        # Its keys may be values, for example of a hierarchy given in place of a scale.
        found = f"a mapping with {len(setting)} keys, {len(set(map(str, setting)) - set(SCALE_KEYS))} of them unknown"
    raise InvalidSettingError(
        f"The scale is {found}. Expected one of {list(SCALE_WORDS)}, or a mapping with one of the keys "
        f"{list(SCALE_KEYS)}."
    )


def _windows(value: Any) -> Windows:
    closed: Any = "both"
    if isinstance(value, Mapping):
        n_unknown = len(set(map(str, value)) - {"windows", "closed"})
        if n_unknown or "windows" not in value:
            lacks = "" if "windows" in value else " and no windows"
            raise InvalidSettingError(
                f"An interval scale has {n_unknown} unknown keys{lacks}. Expected windows, and optionally closed."
            )
        closed, value = value.get("closed", closed), value["windows"]
    windows = []
    for window in _items(value, "An interval scale", "a list of windows"):
        ends = _items(window, "A window", "a lower and an upper end")
        if len(ends) != 2:
            raise InvalidSettingError(f"A window has {len(ends)} ends. Expected a lower and an upper end.")
        windows.append((ends[0], ends[1]))
    return Windows(tuple(windows), closed)


def _items(value: Any, subject: str, expected: str) -> list[Any]:
    if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
        raise InvalidSettingError(f"{subject} is a {type(value).__name__}. Expected {expected}.")
    return list(value)


def _checked(scale: ConceptualScale) -> ConceptualScale:
    """Refuse impossible scales; ends and thresholds are compared as given."""
    if isinstance(scale, Windows):
        if not scale.windows:
            raise InvalidSettingError("An interval scale has no window. Expected at least one.")
        if scale.closed not in CLOSED:
            raise InvalidSettingError(f"closed is {scale.closed!r}. Expected one of {list(CLOSED)}.")
        for lower, upper in scale.windows:
            if not _is_below(lower, upper):
                raise InvalidSettingError(
                    f"An interval scale has the window [{lower}, {upper}], which contains at most one value. Expected "
                    "the lower end below the upper end."
                )
    if isinstance(scale, Ordinal) and scale.thresholds is not None:
        if not scale.thresholds:
            raise InvalidSettingError(
                "An ordinal scale has an empty list of thresholds. Expected at least one threshold, or no list."
            )
        pairs = zip(scale.thresholds[:-1], scale.thresholds[1:], strict=True)
        if not all(_is_below(lower, upper) for lower, upper in pairs):
            raise InvalidSettingError(
                "The thresholds of an ordinal scale do not ascend. Put them in order; list categories that are "
                "numbers in another order as text."
            )
    return scale


def _is_below(lower: Any, upper: Any) -> bool:
    """Whether an end is below another one; dates and categories given as text are compared later."""
    if isinstance(lower, str) and isinstance(upper, str):
        return True
    try:
        return bool(lower < upper)
    except TypeError:
        raise InvalidSettingError(
            f"An end or threshold is a {type(lower).__name__} and another one a {type(upper).__name__}. Expected one "
            "kind."
        ) from None


def scale_digests(scales: Mapping[str, Any]) -> dict[str, str]:
    """Return kind and SHA-256 of each scale, by column; equal for equal scales."""
    return {name: _digest(read_scale(scale)) for name, scale in sorted(scales.items())}


def _digest(scale: ConceptualScale) -> str:
    parts = []
    for field in fields(scale):
        value = getattr(scale, field.name)
        parts.append((field.name, value.described() if isinstance(value, Hierarchy) else value))
    return f"{scale.kind} {hashlib.sha256(repr(parts).encode()).hexdigest()}"
