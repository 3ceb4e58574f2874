"""The utility of a release by group: whether relations between columns hold within each region, clinic or year.

Definitions: ``docs/utility.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.errors import InvalidSettingError
from privacy_assets.utility.counted import ALL_AND_WITHOUT_ONE, N_GROUPS, Pair

MOST_VALUES = 200
"""Most values of the column that names the group."""
FEWEST_OF_GROUP = 100
"""Fewest people of the control in a group; smaller groups are pooled."""
POOLED = "small groups"


class Tables(NamedTuple):
    """Something of the originals, the release and the control."""

    original: Any
    released: Any
    control: Any


class ErrorsWithin(NamedTuple):
    """Squared errors against the control within each group, of shape (n_variants, n_groups); its people.

    ``nothing`` is the error of a release in which every group has the overall shares of the originals.
    """

    released: NDArray[np.float64]
    original: NDArray[np.float64]
    nothing: NDArray[np.float64]
    people: NDArray[np.int64]


def require_group(group: str, original: pd.DataFrame, control: pd.DataFrame) -> None:
    """Refuse a group column that the originals lack, or that has too many values."""
    if not isinstance(group, str) or group not in original.columns:
        raise InvalidSettingError(
            f"group is {group!r}. Expected one of the columns that are judged: {list(original.columns)}. "
            "Nothing was assessed."
        )
    n_values = len(np.unique(_codes_of(group, original, control)[0]))
    if n_values > MOST_VALUES:
        raise InvalidSettingError(
            f"group names the column {group!r}, which has {n_values:,} values. Expected at most {MOST_VALUES}: coarsen "
            "it, or name another column. Nothing was assessed."
        )


def groups_of(group: str, tables: Tables) -> tuple[Tables, list[str]]:
    """Return the group of each row of each table, and the names of the groups, largest first.

    Groups with few people in the control are pooled, as are those that no original has. A row whose value neither an
    original nor a person of the control has is in no group, -1.
    """
    codes, names = _codes_of(group, *tables)
    ends = np.cumsum([len(table) for table in tables])[:-1]
    parts = Tables(*np.split(codes, ends))
    n_original, n_control = (np.bincount(part, minlength=len(names)) for part in (parts.original, parts.control))
    is_large = (n_control >= FEWEST_OF_GROUP) & (n_original > 0)
    large = [code for code in np.argsort(-n_control, kind="stable").tolist() if is_large[code]]
    place = np.where((n_original > 0) | (n_control > 0), len(large), -1)
    place[large] = np.arange(len(large))
    has_small = bool((place[parts.control] == len(large)).any())
    return Tables(*(place[part] for part in parts)), [*(names[code] for code in large), *[POOLED] * has_small]


def errors_within(
    codes: Tables, row_groups: Tables, of: Tables, n_groups: int, n_bins: NDArray[np.int64], pairs: Sequence[Pair]
) -> ErrorsWithin:
    """Sum the squared errors of the shares of all cells of all pairs of columns, within each group.

    ``codes`` are of shape (n_columns, n_rows), ``row_groups`` the groups of the jackknife, and ``of`` the groups of the
    rows, those without a group below 0 or at ``n_groups``. A group without rows has the overall shares.
    """
    kept = [(own >= 0) & (own < n_groups) for own in of]
    places = [
        (rows[is_kept] * n_groups + own[is_kept]) for rows, own, is_kept in zip(row_groups, of, kept, strict=True)
    ]
    binned = [own[:, is_kept] for own, is_kept in zip(codes, kept, strict=True)]
    people = ALL_AND_WITHOUT_ONE @ np.bincount(places[2], minlength=N_GROUPS * n_groups).reshape(N_GROUPS, n_groups)
    errors = np.zeros((3, *people.shape))
    for one, other in pairs:
        n_one, n_other = int(n_bins[one]), int(n_bins[other])
        counts = [
            ALL_AND_WITHOUT_ONE
            @ np.bincount(
                (place * n_one + own[one]) * n_other + own[other], minlength=N_GROUPS * n_groups * n_one * n_other
            ).reshape(N_GROUPS, -1)
            for place, own in zip(places, binned, strict=True)
        ]
        within = [own.reshape(*people.shape, n_one * n_other) for own in counts]
        together = within[0].sum(axis=1, keepdims=True)
        overall = together / np.maximum(together.sum(axis=2, keepdims=True), 1)
        original, released, judged = (_shares(own, overall) for own in within)
        for place, shares in enumerate((released, original, overall)):
            difference = shares - judged
            errors[place] += np.einsum("vgc,vgc->vg", difference, difference)
    return ErrorsWithin(errors[0], errors[1], errors[2], people)


def _shares(counts: NDArray[np.int64], overall: NDArray[np.float64]) -> NDArray[np.float64]:
    n_rows = counts.sum(axis=2, keepdims=True)
    return np.where(n_rows > 0, counts / np.maximum(n_rows, 1), overall)


def _codes_of(group: str, *tables: pd.DataFrame) -> tuple[NDArray[np.int64], list[str]]:
    """Return the code of the group of each row of all tables, from 0 in their order, and its name by code."""
    values = pd.concat(
        [
            table[group].astype(object) if group in table.columns else pd.Series([None] * len(table), dtype=object)
            for table in tables
        ],
        ignore_index=True,
    )
    codes, known = pd.factorize(values)
    return np.where(codes < 0, len(known), codes), [*map(str, known), "missing"]
