"""Hierarchies: coarser values by level."""

from __future__ import annotations

import csv
import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from itertools import accumulate, pairwise
from math import isfinite
from operator import mul
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import as_objects
from privacy_assets.columns.leveled_column import Labels, Leaves, LeveledColumn, level_column, number_of_text
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import is_integer, is_number, local_path

DATE_LEVELS = ("day", "month", "year", "decade")
EDGE_DECIMALS = 10
_SETTINGS = ("intervals", "prefixes", "dates", "tree", "arx_csv")


class Hierarchy(ABC):
    """Ancestors of values by level: level 0 has the values, the last level is one node.

    Made by :meth:`from_mapping`, :meth:`from_arx_csv`, :meth:`from_settings`, or by a rule that does not need a list of
    values: :meth:`intervals`, :meth:`prefixes`, :meth:`dates`. If the last level is not one node, a level ``*`` is
    added. A missing value is a separate leaf, labeled ``missing`` below the top. For rules the top is then always
    ``*``, because ``[20, 29]`` would be wrong. For lists, it is the node above all listed values, with its name from
    the list, else ``*``.
    """

    @staticmethod
    def from_mapping(mapping: Mapping[Any, Any], name: str = "The hierarchy") -> Hierarchy:
        """Read a tree of nested mappings whose innermost values are lists of leaves.

        Parameters
        ----------
        mapping : mapping
            Such as ``{"Europe": {"West": ["France", "Spain"], "East": ["Poland"]}}``, as in YAML. All leaves must be at
            the same depth.
        name : str
            Name used in messages.

        Raises
        ------
        InvalidSettingError
            If leaves are at different depths, a node has two parents, or the tree does not consist of mappings and
            lists.
        """
        paths: list[tuple[str, ...]] = []
        _collect(mapping, (), paths, name)
        return ListedHierarchy(paths, name)

    @staticmethod
    def from_arx_csv(path: str | Path, separator: str | None = None) -> Hierarchy:
        """Read a file in the ARX format [1]_: one row per value, its levels from left to right, no header.

        Parameters
        ----------
        path : path
            UTF-8 text, a row per line.
        separator : str, optional
            One character. Default: ``;`` if the first row has one outside of quotes, else ``,``.

        Raises
        ------
        InvalidSettingError
            If the file does not exist, rows cannot be read or differ in length, cells are empty, or a node has two
            parents.

        References
        ----------
        .. [1] F. Prasser, F. Kohlmayer, ARX data anonymization tool, https://arx.deidentifier.org.
        """
        name = f"The hierarchy in {str(path)!r}"
        return ListedHierarchy(read_arx_csv(path, separator, name), name)

    @staticmethod
    def intervals(widths: Sequence[float], origin: float = 0) -> Hierarchy:
        """Group numbers into intervals, each level wider than the previous one.

        Parameters
        ----------
        widths : sequence of float
            Above 0, ascending, each a multiple of the previous one.
        origin : float
            Start of an interval on every level.

        Notes
        -----
        ``[20, 24]`` includes both ends (whole numbers and widths), ``[0.2, 0.4)`` excludes the upper one.
        """
        return IntervalHierarchy(widths, origin)

    @staticmethod
    def prefixes(lengths: Sequence[int]) -> Hierarchy:
        """Keep the first characters of codes: ``prefixes([4, 3])`` turns ``81667`` into ``8166*`` and ``816*``.

        Parameters
        ----------
        lengths : sequence of int
            Numbers of characters to keep, descending, above 0. A code that is not longer stays unchanged on that level.
        """
        return PrefixHierarchy(lengths)

    @staticmethod
    def dates(levels: Sequence[str] = DATE_LEVELS) -> Hierarchy:
        """Truncate dates and times to day, month, year, decade (some of these, in this order), in local time."""
        return DateHierarchy(levels)

    @staticmethod
    def from_settings(settings: Mapping[str, Any]) -> Hierarchy:
        """Build a hierarchy from one entry of a YAML file.

        Parameters
        ----------
        settings : mapping
            One of ``{"intervals": [5, 10]}`` (or ``{"intervals": {"widths": [5, 10], "origin": 1}}``), ``{"prefixes":
            [4, 3]}``, ``{"dates": ["month", "year"]}``, ``{"tree": {...}}``, ``{"arx_csv": "path"}``.
        """
        if not isinstance(settings, Mapping) or len(settings) != 1 or next(iter(settings)) not in _SETTINGS:
            # Keys are not shown: they may be values and their parents.
            found = f"a mapping of {len(settings)} keys" if isinstance(settings, Mapping) else type(settings).__name__
            raise InvalidSettingError(f"A hierarchy is given as {found}. Expected one key of {list(_SETTINGS)}.")
        kind, value = next(iter(settings.items()))
        if kind == "intervals" and isinstance(value, Mapping):
            unknown = sorted(set(map(str, value)) - {"widths", "origin"})
            if unknown or "widths" not in value:
                raise InvalidSettingError(
                    f"intervals has {sorted(map(str, value))}. Expected widths, and optionally origin."
                )
            return Hierarchy.intervals(**value)
        builders: dict[str, Callable[[Any], Hierarchy]] = {
            "intervals": Hierarchy.intervals,
            "prefixes": Hierarchy.prefixes,
            "dates": Hierarchy.dates,
            "tree": Hierarchy.from_mapping,
            "arx_csv": Hierarchy.from_arx_csv,
        }
        return builders[kind](value)

    def apply(self, column: pd.Series[Any], name: str) -> LeveledColumn:
        """Find the node of each value of a column on each level.

        Raises
        ------
        InvalidTableError
            If the hierarchy lacks or cannot take some values, which are counted, or a label has two meanings.
        """
        leaves = Leaves.read(column, f"Column {name!r}")
        if leaves.column.kind == "missing":
            return level_column(leaves, [np.zeros(0, object)], np.zeros(0, np.int64))
        return self._apply(leaves)

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return a description as JSON values: the rule, or the size and digest of the list."""

    @abstractmethod
    def _apply(self, leaves: Leaves) -> LeveledColumn:
        """Find the nodes for a column that has a value."""


class ListedHierarchy(Hierarchy):
    """A hierarchy given value by value: each path is a leaf and its ancestors."""

    def __init__(self, paths: Sequence[tuple[str, ...]], name: str) -> None:
        paths = list(dict.fromkeys(paths))
        counts = Counter(map(len, paths))
        n_empty = sum(cell == "" for path in paths for cell in path)
        problems = []
        if not paths:
            problems.append("it has no values")
        if len(counts) > 1:
            by_depth = dict(sorted(counts.items()))
            problems.append(f"its values have different numbers of levels (values by levels: {by_depth})")
        if n_empty:
            problems.append(f"{n_empty} of its nodes have no label")
        if len(counts) == 1:
            for level in range(len(paths[0]) - 1):
                parents = Counter(child for child, _ in {path[level : level + 2] for path in paths})
                n_twice = sum(n > 1 for n in parents.values())
                if n_twice:
                    problems.append(f"{n_twice} nodes of level {level} have more than one parent")
        if problems:
            raise InvalidSettingError(
                f"{name} is not a hierarchy: {'; '.join(problems)}. Expected one path of labels per value, all of the "
                "same length, and one parent per node. Correct it."
            )
        self._levels = [as_objects(list(level)) for level in zip(*paths, strict=True)]
        self._leaf_of_label = {label: leaf for leaf, label in enumerate(self._levels[0])}

    def described(self) -> dict[str, Any]:
        """Return the numbers of values and levels, and an order-independent digest of all paths."""
        paths = sorted(zip(*self._levels, strict=True))
        digest = sha256(json.dumps(paths, ensure_ascii=False).encode()).hexdigest()
        return {"tree": {"n_values": len(paths), "n_levels": len(self._levels), "sha256": digest}}

    @property
    def levels(self) -> list[Labels]:
        """Label of the node of each leaf on each level, the leaves themselves first."""
        return self._levels

    def find(self, leaves: Leaves) -> NDArray[np.int64]:
        """Find the leaf of each value of a column, or -1.

        Numbers match in any notation; several leaves that are the same number are refused.
        """
        if leaves.column.kind != "number":
            return np.array([self._leaf_of_label.get(label, -1) for label in leaves.labels], np.int64)
        numbers = [number_of_text(label) for label in self._levels[0]]
        leaf_of_number: dict[Decimal | None, int] = {
            number: leaf for leaf, number in enumerate(numbers) if number is not None
        }
        n_twice = sum(number is not None for number in numbers) - len(leaf_of_number)
        if n_twice:
            raise InvalidTableError(
                f"{leaves.where} has numbers, and {n_twice} values of its hierarchy are the same number as another "
                "value (to 10 decimals). Expected each number once. Correct the hierarchy, or "
                "convert the column to text."
            )
        return np.array([leaf_of_number.get(number_of_text(label), -1) for label in leaves.labels], np.int64)

    def _apply(self, leaves: Leaves) -> LeveledColumn:
        leaf_of_value = self.find(leaves)
        lacks = leaf_of_value < 0
        if lacks.any():
            raise InvalidTableError(
                f"{leaves.where} has {int(lacks.sum())} values (in {leaves.count_rows(lacks)} rows) that its hierarchy "
                f"of {len(self._levels[0])} values lacks. Expected every value in it. Add them, or clean the column."
            )
        return level_column(leaves, self._levels, leaf_of_value)


class IntervalHierarchy(Hierarchy):
    """See :meth:`Hierarchy.intervals`."""

    def __init__(self, widths: Sequence[float], origin: float = 0) -> None:
        numbers = _items(widths)
        if not numbers or not all(map(is_number, [*numbers, origin])) or min(numbers) < 10.0**-EDGE_DECIMALS:
            raise InvalidSettingError(
                "intervals needs widths that are numbers above 0 (at least 1e-10), and a numeric origin, all within "
                "1.8e308."
            )
        steps = [_n_parts(lower, upper) for lower, upper in pairwise(numbers)]
        if any(step < 2 for step in steps):
            raise InvalidSettingError(
                f"intervals has the widths {numbers}. Expected each to be a multiple of the previous one, so that "
                "every interval has one parent. Change the widths."
            )
        self.widths = numbers
        self.origin = origin
        self._steps = [*accumulate(steps, mul, initial=1)]

    def described(self) -> dict[str, Any]:
        """Return widths and origin."""
        return {"intervals": {"widths": [float(width) for width in self.widths], "origin": float(self.origin)}}

    def _apply(self, leaves: Leaves) -> LeveledColumn:
        _require_kind(leaves, ("number",), "numbers", "intervals")
        raw = leaves.raw()
        is_whole = all(float(number).is_integer() for number in (self.origin, self.widths[0]))
        is_whole &= raw.dtype.kind != "f" or bool((raw == np.floor(raw)).all())
        if is_whole:
            width, origin = int(self.widths[0]), int(self.origin)
            cells = (_whole(raw, abs(origin), width * self._steps[-1]) - origin) // width
            labels = [self._whole_labels(cells // step, width * step, origin) for step in self._steps]
        else:
            cells = self._cells(raw.astype(np.float64))
            self._require_ends(raw, cells, leaves)
            labels = [self._labels(cells // step, step) for step in self._steps]
        return level_column(leaves, [leaves.labels, *labels], np.arange(len(raw)), is_rule=True)

    @staticmethod
    def _whole_labels(cells: NDArray[Any], width: int, origin: int) -> Labels:
        number, distinct = pd.factorize(cells)
        lows = [int(cell) * width + origin for cell in distinct]
        return as_objects([f"[{low}, {low + width - 1}]" if width > 1 else str(low) for low in lows])[number]

    def _edges(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Lower ends of the finest intervals, as printed."""
        with np.errstate(over="ignore", invalid="ignore"):
            exact = self.origin + cells * self.widths[0]
            rounded = np.round(exact, EDGE_DECIMALS) + 0.0
        # Numbers too large to be rounded do not have decimals.
        return np.asarray(np.where(np.isfinite(rounded), rounded, exact))

    def _cells(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Finest interval of each number, so that it is between the printed ends."""
        # 0.3 / 0.1 is 2.9999999999999996: the quotient alone would put 0.3 below [0.3, 0.4).
        with np.errstate(over="ignore"):
            cells = np.asarray(np.floor((numbers - self.origin) / self.widths[0]))
        cells += numbers >= self._edges(cells + 1)
        cells -= numbers < self._edges(cells)
        return cells

    def _require_ends(self, raw: NDArray[Any], cells: NDArray[np.float64], leaves: Leaves) -> None:
        """Refuse numbers that are not between two ends, because floats are too coarse or overflow."""
        # Integers are compared exactly, not as floats.
        numbers = raw if raw.dtype.kind == "f" else as_objects(raw.tolist())
        is_lost = np.zeros(len(raw), np.bool_)
        for step in self._steps:
            with np.errstate(over="ignore", invalid="ignore"):
                low, high = self._edges(cells // step * step), self._edges((cells // step + 1) * step)
            is_lost |= ~((low <= numbers) & (numbers < high)) | ~np.isfinite(high)
        if is_lost.any():
            raise InvalidTableError(
                f"{leaves.where} has {int(is_lost.sum())} values (in {leaves.count_rows(is_lost)} rows) too large for "
                f"the ends of intervals of the widths {self.widths}. Expected ends within 1.8e308 that floats with 16 "
                "digits can distinguish. Set larger widths, round the column to whole numbers, or clean it."
            )

    def _labels(self, cells: NDArray[np.float64], step: int) -> Labels:
        number, distinct = pd.factorize(cells)
        lows, highs = self._edges(distinct * step), self._edges((distinct + 1) * step)
        ends = zip(lows.tolist(), highs.tolist(), strict=True)
        return as_objects([f"[{low!r}, {high!r})" for low, high in ends])[number]


class PrefixHierarchy(Hierarchy):
    """See :meth:`Hierarchy.prefixes`."""

    def __init__(self, lengths: Sequence[int]) -> None:
        numbers = _items(lengths)
        is_descending = all(longer > shorter for longer, shorter in pairwise(numbers))
        if not numbers or not all(is_integer(number, 1) for number in numbers) or not is_descending:
            raise InvalidSettingError(f"prefixes has the lengths {lengths!r}. Expected integers above 0, descending.")
        self.lengths = numbers

    def described(self) -> dict[str, Any]:
        """Return the lengths."""
        return {"prefixes": [int(length) for length in self.lengths]}

    def _apply(self, leaves: Leaves) -> LeveledColumn:
        _require_kind(leaves, ("text", "number"), "text or numbers", "prefixes")
        levels = [
            as_objects([text if len(text) <= length else f"{text[:length]}*" for text in leaves.labels])
            for length in self.lengths
        ]
        return level_column(leaves, [leaves.labels, *levels], np.arange(len(leaves.labels)), is_rule=True)


class DateHierarchy(Hierarchy):
    """See :meth:`Hierarchy.dates`."""

    def __init__(self, levels: Sequence[str] = DATE_LEVELS) -> None:
        names = _items(levels)
        if not names or names != [name for name in DATE_LEVELS if name in names]:
            raise InvalidSettingError(
                f"dates has the levels {levels!r}. Expected some of {list(DATE_LEVELS)}, in order."
            )
        self.levels = names

    def described(self) -> dict[str, Any]:
        """Return the levels."""
        return {"dates": list(self.levels)}

    def _apply(self, leaves: Leaves) -> LeveledColumn:
        _require_kind(leaves, ("datetime", "aware datetime"), "dates", "dates")
        moments = leaves.raw()
        texts = {
            "day": np.datetime_as_string(moments.astype("datetime64[D]")),
            "month": np.datetime_as_string(moments.astype("datetime64[M]")),
            "year": np.datetime_as_string(moments.astype("datetime64[Y]")),
        }
        decades = (moments.astype("datetime64[Y]").astype(np.int64) + 1970) // 10 * 10
        levels = [
            as_objects([f"{decade}s" for decade in decades]) if name == "decade" else texts[name].astype(object)
            for name in self.levels
        ]
        return level_column(leaves, [leaves.labels, *levels], np.arange(len(leaves.labels)), is_rule=True)


def _require_kind(leaves: Leaves, kinds: Sequence[str], words: str, builder: str) -> None:
    if leaves.column.kind not in kinds:
        raise InvalidTableError(
            f"{leaves.where} has {leaves.column.description} values. The hierarchy of {builder} expects {words}. "
            "Convert the column, or give it another hierarchy."
        )


def _collect(mapping: Any, above: tuple[str, ...], paths: list[tuple[str, ...]], name: str) -> None:
    """Add a path for each leaf below a node."""
    if isinstance(mapping, Mapping):
        for label, below in mapping.items():
            _collect(below, (str(label), *above), paths, name)
        return
    leaves = mapping if isinstance(mapping, list | tuple | set | frozenset) else None
    if leaves is None or any(isinstance(leaf, Mapping | list | tuple | set) for leaf in leaves):
        raise InvalidSettingError(
            f"{name} has a node at depth {len(above)} that is neither a mapping of nodes nor a list of values. "
            "Expected nested mappings whose innermost values are lists. Correct it."
        )
    paths.extend((str(leaf), *above) for leaf in leaves)


def _items(value: object) -> list[Any]:
    """Return the items of a list or tuple; empty for anything else."""
    return [*value] if isinstance(value, list | tuple) else []


def _n_parts(lower: float, upper: float) -> int:
    """Return the number of intervals of one width in an interval of another width; 0 if they do not fit."""
    is_exact = float(upper) < 2.0**53 or isinstance(upper, int | np.integer)
    if is_exact and float(lower).is_integer() and float(upper).is_integer():
        n, rest = divmod(int(upper), int(lower))
        return 0 if rest else n
    ratio = float(upper) / float(lower)
    if not isfinite(ratio) or abs(ratio - round(ratio)) > 1e-9 * ratio:
        return 0
    return round(ratio)


def _whole(raw: NDArray[Any], *others: int) -> NDArray[Any]:
    """Return whole numbers as int64 if sums fit, else as integers of any size."""
    if max(abs(int(raw.min())), abs(int(raw.max())), *others) < 2**62:
        return raw.astype(np.int64)
    return as_objects([int(number) for number in raw])


_NO_SEPARATORS = ('"', "\n", "\r")
# A quoted cell, after the start of a row or a separator.
_QUOTED = re.compile(r'(?:^|(?<=[;,]))"(?:[^"]|"")*"')


def read_arx_csv(path: str | PathLike[str], separator: str | None, name: str) -> list[tuple[str, ...]]:
    """Read the rows of a file of UTF-8 text.

    The default separator is ``;`` if the first row has one outside of quotes, else ``,``. Rows that cannot be read are
    counted, and refused.
    """
    if not isinstance(path, str | PathLike):
        raise InvalidSettingError(f"arx_csv is of the type {type(path).__name__}. Expected the path of a file.")
    is_character = isinstance(separator, str) and len(separator) == 1 and separator not in _NO_SEPARATORS
    if separator is not None and not is_character:
        raise InvalidSettingError(
            f"The separator of a hierarchy is {separator!r}. Expected one character other than a quote or line end, "
            "such as ';'."
        )
    file = local_path(path, "arx_csv")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InvalidSettingError(f"{name} cannot be read: {type(error).__name__}. Check the path.") from None
    lines = [line for line in text.split("\n") if line.strip()]
    if separator is None:
        separator = ";" if lines and ";" in _QUOTED.sub("", lines[0]) else ","
    rows, n_unread = [], 0
    for line in lines:
        # One by one, because an unclosed quote would include the following rows.
        try:
            row = next(csv.reader([line], delimiter=separator, strict=True))
        except csv.Error:
            n_unread += 1
        else:
            rows.append(tuple(cell.strip() for cell in row))
    if n_unread:
        raise InvalidSettingError(
            f"{name} has {n_unread} rows of {len(lines)} that cannot be read: a quote that is not closed in its row, "
            f"text after a closing quote, or a cell of more than {csv.field_size_limit()} characters. Expected a row "
            "per line. Close the quotes, double quotes inside values, and remove line ends from values."
        )
    return rows
