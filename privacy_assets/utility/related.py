"""The utility of related tables: that of each view, of which the lowest counts, and what no view shows by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import kind_of_dtype
from privacy_assets.contract.related import RelatedTables
from privacy_assets.contract.views import related_views
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.utility.result import UtilityAssessment

OF_ORIGINALS = " of originals"


def assess_related(
    original: RelatedTables,
    released: RelatedTables,
    control: RelatedTables,
    *,
    judge: Callable[[pd.DataFrame, pd.DataFrame, pd.DataFrame], UtilityAssessment],
    seed: int,
) -> UtilityAssessment:
    """Let ``judge`` judge each view, and compare rows per person and consecutive rows."""
    tables = {"original": original, "released": released, "control": control}
    for words, own in tables.items():
        if not isinstance(own, RelatedTables) or list(own.children) != list(original.children):
            raise InvalidTableError(
                f"The {words} tables are not RelatedTables with the children {list(original.children)}. Expected the "
                "same tables on all sides. Nothing was assessed."
            )
    views = {words: related_views(own) for words, own in tables.items()}
    found: dict[str, UtilityAssessment] = {}
    notes, is_complete = [], True
    for view in views["original"]:
        frames = {words: own[view].drop(columns=tables[words].person) for words, own in views.items()}
        empty = [words for words, frame in frames.items() if not len(frame) or not frame.shape[1]]
        if empty:
            notes.append(f"View {view!r} cannot be judged: it has no rows in the {' and the '.join(empty)} tables.")
            is_complete &= empty != ["released"]
        else:
            found[view] = judge(frames["original"], frames["released"], frames["control"])
    judged = {view: own for view, own in found.items() if own.scores["utility"] is not None}
    lowest = min(judged, key=lambda view: judged[view].scores["utility"] or 0.0, default=next(iter(found)))
    scores = dict(found[lowest].scores)
    if not is_complete:
        scores = dict.fromkeys(scores)
    scores |= {f"utility of {view}": own.scores["utility"] for view, own in found.items()}
    for name in original.children:
        scores |= _errors_of_rows(released, control, name)
        best = _errors_of_rows(original, control, name)
        scores |= {figure + OF_ORIGINALS: value for figure, value in best.items()}
    notes += [f"View {view!r}: {note}" for view, own in found.items() for note in own.notes]
    return replace(
        found[lowest],
        scores=scores,
        columns=_of_views(found, "columns", ["column"]),
        pairs=_of_views(found, "pairs", ["one", "other"]),
        notes=tuple(notes),
        settings={
            ALGORITHM: algorithm_of("utility_assessment"),
            "seed": seed,
            "lowest_view": lowest,
            "views": {view: dict(own.settings) for view, own in found.items()},
        },
    )


def _of_views(found: Mapping[str, UtilityAssessment], what: str, names: list[str]) -> pd.DataFrame:
    """Return the rows of all views, with the view before the names of columns; the worst first."""
    frames = []
    for view, own in found.items():
        frame = getattr(own, what)
        frames.append(frame.assign(**{name: f"{view}: " + frame[name] for name in names}))
    joined = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
    by_loss = ["lost"] if "lost" in joined else names
    ordered: pd.DataFrame = joined.sort_values(by_loss, ascending=by_loss != ["lost"], kind="stable", ignore_index=True)
    return ordered


def _errors_of_rows(tables: RelatedTables, control: RelatedTables, name: str) -> dict[str, float | None]:
    """Compare the rows of a child with the control's.

    The total variation distance of rows per person; with an order also the mean difference of the rank correlations of
    numbers, and of the shares of unchanged other values, between consecutive rows of a person.
    """
    counts = [np.bincount(own.whose[name], minlength=len(own.people)) for own in (tables, control)]
    n_most = max(int(own.max()) for own in counts) + 1
    shares, of_control = (np.bincount(own, minlength=n_most) / len(own) for own in counts)
    found: dict[str, float | None] = {
        f"rows_per_person_distance of {name}": float(np.abs(shares - of_control).sum() / 2)
    }
    if tables.children[name].order is not None:
        own, judge = consecutive(tables, control, name), consecutive(control, control, name)
        for figure, is_number in (("lag_1_error", True), ("unchanged_error", False)):
            errors = [abs(own[key] - judge[key]) for key in judge if key[1] == is_number]
            found[f"{figure} of {name}"] = float(np.mean(errors)) if errors else None
    return found


def consecutive(tables: RelatedTables, like: RelatedTables, name: str) -> dict[tuple[str, bool], float]:
    """Return by column and whether it has numbers how consecutive rows of a person depend on each other."""
    content = tables.children[name].table.drop(columns=tables.children[name].numbers)
    order = tables.in_order(name)
    whose, found = tables.whose[name][order], {}
    is_next = whose[1:] == whose[:-1]
    for column in tables.children[name].columns:
        own, known = content[column].iloc[order], like.children[name].table[column]
        if kind_of_dtype(known.dtype) in ("number", "datetime"):
            found[column, True] = _rank_correlation(_numbers(own), np.sort(_numbers(known.dropna())), is_next)
        else:
            codes = pd.factorize(own)[0]
            found[column, False] = float((codes[1:] == codes[:-1])[is_next].mean()) if is_next.any() else 0.0
    return found


def _numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    if kind_of_dtype(column.dtype) == "datetime":
        column = column.astype("int64").where(column.notna())
    return column.to_numpy(np.float64, na_value=np.nan)


def _rank_correlation(values: NDArray[np.float64], known: NDArray[np.float64], is_next: NDArray[np.bool_]) -> float:
    """Return the correlation of the ranks, among known values, of consecutive values; 0 if they do not vary."""
    ranks = np.searchsorted(known, values, "left") + np.searchsorted(known, values, "right").astype(np.float64)
    ranks[np.isnan(values)] = np.nan
    is_known = is_next & ~np.isnan(ranks[:-1]) & ~np.isnan(ranks[1:])
    before, after = ranks[:-1][is_known], ranks[1:][is_known]
    if len(before) < 2 or not np.ptp(before) or not np.ptp(after):
        return 0.0
    return float(np.corrcoef(before, after)[0, 1])
