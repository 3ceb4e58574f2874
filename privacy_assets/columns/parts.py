"""Columns that are parts of one, such as the year, month and day of a date: an attacker who knows one knows all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np

from privacy_assets.columns.coding import EncodedColumn, Kind, group_rows
from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import require

Parts = Mapping[str, Sequence[str]]
"""Columns that are parts of one, by a name for it."""


def check_parts(parts: Parts | None, columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the parts by the name of their column; refuse parts that are no column or named twice, or a single one."""
    groups = parts or {}
    is_read = isinstance(groups, Mapping) and all(isinstance(own, list | tuple) for own in groups.values())
    require(is_read, "parts", parts, "lists of columns by a name for what they are parts of")
    problems = part_problems(groups, columns)
    if problems:
        raise InvalidSettingError(
            f"parts has {'; '.join(problems)}. Expected a new name for two or more columns, each of which is part of "
            "one."
        )
    return {name: tuple(own) for name, own in groups.items()}


def part_problems(parts: Parts, columns: Sequence[str]) -> list[str]:
    """Describe what is wrong with the names of parts; empty if nothing is."""
    every = [part for own in parts.values() for part in own]
    problems = {
        "names that are no columns": [part for part in every if part not in columns],
        "columns that are parts twice": [part for part in every if every.count(part) > 1],
        "names with fewer than two parts": [name for name, own in parts.items() if len(own) < 2],
        "names of other columns": [name for name, own in parts.items() if name in columns and name not in own],
    }
    return [f"{what}: {list(dict.fromkeys(names))}" for what, names in problems.items() if names]


def names_with_parts(columns: Sequence[str], parts: Parts) -> tuple[str, ...]:
    """Return the columns with one name for all parts of a column, in the place of the first of them."""
    name_of = {part: name for name, own in parts.items() for part in own}
    return tuple(dict.fromkeys(name_of.get(column, column) for column in columns))


def join_parts(columns: Mapping[str, EncodedColumn], parts: Parts) -> dict[str, EncodedColumn]:
    """Return the columns with the parts of each column as one, with a code for each combination of their values."""
    joined = {name: _joined([columns[part] for part in own]) for name, own in parts.items()}
    return {name: joined.get(name) or columns[name] for name in names_with_parts(tuple(columns), parts)}


def _joined(parts: Sequence[EncodedColumn]) -> EncodedColumn:
    codes = [np.concatenate(part.codes) for part in parts]
    groups, n_groups = group_rows(codes, [len(part.labels) for part in parts])
    example = np.zeros(n_groups, np.int64)
    example[groups] = np.arange(len(groups))
    texts = zip(*(part.labels[own[example]] for part, own in zip(parts, codes, strict=True)), strict=True)
    labels = np.array([None if set(own) == {None} else json.dumps(own, ensure_ascii=False) for own in texts], object)
    # The code of missing values is the last.
    order = np.argsort([label is None for label in labels], kind="stable")
    code_of = np.argsort(order).astype(np.min_scalar_type(max(n_groups - 1, 0)))
    ends = np.cumsum([len(own) for own in parts[0].codes])[:-1]
    kind: Kind = "missing" if {part.kind for part in parts} == {"missing"} else "text"
    own = code_of[groups]
    column = EncodedColumn(tuple(np.split(own, ends)), labels[order], kind, None)
    if all(part.key_of is None for part in parts):
        return column
    alike = group_rows([np.concatenate(part.all_spelled) for part in parts], [len(part.labels) for part in parts])[0]
    keys = np.zeros(n_groups, np.int64)
    keys[own] = alike
    return column.with_keys(keys.tolist())
