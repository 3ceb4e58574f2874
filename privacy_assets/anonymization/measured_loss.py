"""Information loss of a generalized table, measured on the released labels, the source and its hierarchies alone.

The definitions are those of `information_loss`, applied to labels: the width of a class is that of its label, from the
smallest to the largest value that the label admits at the precision of the column, as a share of the values of the
source. Centers of classes have no label; their loss is the span of their records in the source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from math import fsum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.generalization import generalize
from privacy_assets.anonymization.information_loss import class_widths
from privacy_assets.anonymization.labels import just_above, texts_of
from privacy_assets.anonymization.quasi_identifiers import Scale, read_dimension, read_scale
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import HierarchyMapping, Interval, ValueSet, columns_of
from privacy_assets.display.numbers import apart, number
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.coded_columns import code_stored
from privacy_assets.storage.table import ROWS_PER_BATCH, StoredTable, Table, batches_of

NOISE = 1e-9
"""Sums of the same losses in different orders differ by less than this."""


def measure_losses(
    anonymization: Anonymization, made_of: Table, hierarchies: Mapping[str, Hierarchy] | None = None
) -> dict[str, float]:
    """Measure the loss of each quasi-identifier (NCP): mean over the rows of the source; suppressed rows lose 1.

    The figures of the anonymization are not used. Labels that cannot be read, or do not belong to the values of the
    source or to the hierarchies (needed for nodes), are refused.
    """
    n_suppressed = len(made_of) - len(anonymization.table)
    losses = {}
    for name in anonymization.settings["quasi_identifiers"]:
        lost: Iterable[NDArray[np.float64]]
        mask = anonymization.model.masks[name]
        if isinstance(mask, HierarchyMapping):
            lost = [_lost_under_nodes(anonymization.table[mask.column], made_of[name], (hierarchies or {}).get(name))]
        elif isinstance(mask, Interval):
            scale, ends = read_scale(made_of, name), list(columns_of(mask))
            lost = (label_widths(rows, mask, scale) for rows in batches_of(anonymization.table, ends))
        elif isinstance(mask, ValueSet):
            lost = _lost_in_sets(anonymization.table, mask, read_scale(made_of, name))
        else:
            lost = [_lost_by_members(anonymization, made_of[name])]
        # An exact sum does not depend on the size of the batches.
        losses[name] = (fsum(chain.from_iterable(own.tolist() for own in lost)) + n_suppressed) / len(made_of)
    return losses


def require_measured(
    anonymization: Anonymization, made_of: Table, hierarchies: Mapping[str, Hierarchy] | None = None
) -> dict[str, float]:
    """Measure losses by `measure_losses`; refuse a table whose stored figures differ by more than rounding errors."""
    stats = anonymization.stats
    losses = measure_losses(anonymization, made_of, hierarchies)
    measured = {
        "information_loss": (stats["information_loss"], mean_loss(losses)),
        "suppressed_share": (stats["suppressed_share"], 1 - len(anonymization.table) / len(made_of)),
    }
    # If records were withheld, figures by column are omitted.
    stored = stats.get("certainty_penalty", losses)
    measured |= {f"loss of {name!r}": (stored.get(name), loss) for name, loss in losses.items()}
    wrong = [
        f"{what} is missing, measured {number(loss)}"
        if was is None
        else "{} is {}, measured {}".format(what, *apart(was, loss))
        for what, (was, loss) in measured.items()
        # NaN is not equal to anything.
        if was is None or not abs(was - loss) <= NOISE
    ]
    if wrong:
        raise InvalidTableError(
            f"The stored figures differ from those of the table that would be released: {'; '.join(wrong)}. "
            "Materialize it again."
        )
    return losses


def mean_loss(losses: Mapping[str, float]) -> float:
    """Return the mean over the quasi-identifiers (GCP)."""
    return float(np.mean(list(losses.values())))


def label_widths(labels: Mapping[str, pd.Series[Any]] | Table, mask: Any, scale: Scale) -> NDArray[np.float64]:
    """Return the NCP of labels, from 0 to 1.

    ``labels`` has the columns of the mask, an interval or a set, and ``scale`` the values of the original column.
    """
    if isinstance(mask, ValueSet):
        return np.concatenate([np.zeros(0), *_lost_in_sets(labels, mask, scale)])
    low, high = labels[mask.low], labels[mask.high]
    has_known = low.notna().to_numpy()
    n_wrong = int((high.notna().to_numpy() != has_known).sum())
    if n_wrong:
        raise _unreadable(scale, n_wrong)
    widths = np.zeros(len(low))
    if has_known.any():
        lows, highs = _read_ends(low[has_known], scale), _read_ends(high[has_known], scale)
        if not scale.is_closed:
            highs = _largest_below(highs, scale)
        widths[has_known] = _places(highs, scale) - _places(lows, scale)
    n_wrong = int((widths < 0).sum())
    if n_wrong:
        raise _unreadable(scale, n_wrong)
    if mask.missing is None:
        return widths
    has_missing = labels[mask.missing].to_numpy(dtype=bool)
    return np.asarray(np.where(has_known & has_missing, 1.0, widths), np.float64)


def _lost_in_sets(
    labels: Mapping[str, pd.Series[Any]] | Table, mask: ValueSet, scale: Scale
) -> Iterator[NDArray[np.float64]]:
    """Yield the NCP of sets of values, of some rows after the others; each set is read once."""
    code: NDArray[np.integer[Any]]
    if isinstance(labels, StoredTable):
        coded = code_stored(labels, mask.column)
        code, distinct = coded.codes, pd.Index(coded.distinct)
    else:
        code, distinct = pd.factorize(labels[mask.column], use_na_sentinel=False)
    known = {*texts_of(scale), *([None] if scale.has_missing else [])}
    is_missing = pd.isna(distinct)
    if is_missing.any():
        raise _unreadable(scale, int(is_missing[code].sum()))
    n_values = np.array([_n_values(text, known, scale) for text in distinct], np.float64)
    loss = (n_values - 1) / max(scale.n_values - 1, 1)
    for begin in range(0, len(code), ROWS_PER_BATCH):
        yield loss[code[begin : begin + ROWS_PER_BATCH]]


def _lost_under_nodes(
    labels: pd.Series[Any], source: pd.Series[Any], hierarchy: Hierarchy | None
) -> NDArray[np.float64]:
    name = source.name
    if hierarchy is None:
        raise InvalidTableError(
            f"Column {name!r} is released as nodes of a hierarchy that is missing, so its loss cannot be measured. "
            "Give the hierarchies that were used, or materialize it again."
        )
    leveled = hierarchy.apply(source, str(name))
    place = pd.Index(leveled.labels).get_indexer(pd.Index(labels.astype(object)))
    n_unknown = int((place < 0).sum())
    if n_unknown:
        raise InvalidTableError(
            f"Column {name!r} has {n_unknown} labels that are not nodes of its hierarchy over the source. Materialize "
            "it again."
        )
    return np.asarray(leveled.loss[place], np.float64)


def _lost_by_members(anonymization: Anonymization, source: pd.Series[Any]) -> NDArray[np.float64]:
    dimension = read_dimension(source)
    classes, class_of_row = np.unique(anonymization.members["class"].to_numpy(), return_inverse=True)
    order = np.argsort(class_of_row, kind="stable")
    edges = np.concatenate([[0], np.cumsum(np.bincount(class_of_row, minlength=len(classes)))]).astype(np.int64)
    codes = dimension.codes[anonymization.members["row"].to_numpy()[order]]
    return class_widths(generalize(dimension.scale, codes, edges))[class_of_row]


def _n_values(text: str, known: set[str | None], scale: Scale) -> int:
    try:
        values = json.loads(text)
        distinct = set(values)
    except (ValueError, TypeError, RecursionError):
        raise _unreadable(scale, 1) from None
    if not isinstance(values, list) or not values or len(distinct) < len(values) or not distinct <= known:
        raise _unreadable(scale, 1)
    return len(values)


def _read_ends(ends: pd.Series[Any], scale: Scale) -> NDArray[Any]:
    """Read ends of intervals in the storage type of the scale; ordered categories as their positions."""
    try:
        if scale.kind == "category":
            codes = pd.Index(scale.known).get_indexer(pd.Index(ends.astype(object)))
            if (codes < 0).any():
                raise ValueError
            return np.asarray(codes, np.float64)
        if scale.known.dtype.kind == "O":
            whole = np.empty(len(ends), object)
            whole[:] = [int(text) for text in ends.astype(object)]
            return whole
        if scale.known.dtype.kind in "mM":
            if isinstance(ends.dtype, pd.DatetimeTZDtype):
                ends = ends.dt.tz_convert("UTC").dt.tz_localize(None)
            return np.asarray(ends.to_numpy().astype(scale.known.dtype).view(np.int64))
        return np.asarray(ends.to_numpy(dtype=scale.known.dtype))
    except (ValueError, TypeError, OverflowError):
        raise _unreadable(scale, len(ends)) from None


def _largest_below(highs: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    """Return the largest value with the decimals of the scale below open ends of intervals."""
    known = scale.known
    below = np.nextafter(highs, -np.inf)
    if scale.decimals is not None:
        # The largest floats are whole, and the powers of ten used for rounding would overflow.
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.round(highs - 10.0**-scale.decimals, scale.decimals)
        below = np.where(np.isfinite(rounded), np.minimum(rounded, below), below)
    # An interval that ends right above a value of the source includes values up to that value.
    code = np.maximum(np.searchsorted(known, highs, side="left") - 1, 0)
    ends_there = highs <= just_above(known[code], scale.decimals)
    return np.asarray(np.where(ends_there, known[code], below), np.float64)


def _places(values: NDArray[Any], scale: Scale) -> NDArray[np.float64]:
    """Map values to the line from the smallest value of a scale (0) to its largest (1)."""
    if scale.n_known < 2:
        return np.zeros(len(values))
    if scale.kind == "category":
        return np.asarray(values / (scale.n_known - 1), np.float64)
    known = scale.known.view(np.int64) if scale.known.dtype.kind in "mM" else scale.known
    first, last = known[0], known[-1]
    if known.dtype.kind == "O":
        return np.array([float((min(max(v, first), last) - first) / (last - first)) for v in values], np.float64)
    within = np.clip(values, first, last)
    if known.dtype.kind in "iu":
        # Differences of int64 may need one bit more, which unsigned integers have.
        offsets = within.view(np.uint64) - known[:1].view(np.uint64)
        return np.asarray(offsets / float(int(last) - int(first)), np.float64)
    if last / 2 - first / 2 > np.finfo(np.float64).max / 2:
        within, first, last = within / 2, first / 2, last / 2  # their distance is infinite
    return np.asarray((within - first) / (last - first), np.float64)


def _unreadable(scale: Scale, n_labels: int) -> InvalidTableError:
    return InvalidTableError(
        f"Column {scale.name!r} has {n_labels} labels that are not values of its source. Materialize it again."
    )
