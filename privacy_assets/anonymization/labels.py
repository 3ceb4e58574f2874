"""Typed columns and unambiguous text for generalized values.

An ordered column ``age`` becomes ``age`` (text), ``age_low`` and ``age_high`` in the type of the column, and
``age_missing`` if it has missing values. A set ``job`` becomes ``job`` (text) and ``job_values``, a JSON array: CSV
files and fingerprints do not support columns of lists.

Text: a single value is written as such; ``[20, 29]`` includes both ends (whole numbers, dates, times, categories),
``[0.1, 0.4)`` excludes the upper one (numbers with decimals); ``{a, b}`` is a set; ``missing`` is the missing value,
and ``[20, 29] or missing`` includes it. Ambiguous text is in JSON quotes: ``{"a, b", c}``.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.generalization import Generalization
from privacy_assets.anonymization.quasi_identifiers import Scale
from privacy_assets.errors import InvalidSettingError

MISSING_LABEL = "missing"
LOW, HIGH, MISSING, VALUES = "_low", "_high", "_missing", "_values"
# Without separators, brackets or quotes, and without spaces at the ends.
_PLAIN_TEXT = re.compile(r"[^\s,\[\](){}\"\\*](?:[^,\[\](){}\"\\*\n\r\t]*[^\s,\[\](){}\"\\*])?")
# Larger floats than this are divided before they are summed.
FAR = 1e290
_QUOTED_CHARACTERS = frozenset(',[](){}"\\*\r\t')
_RESERVED = re.compile(rf"{MISSING_LABEL}|.* or {MISSING_LABEL}")


def label_columns(scale: Scale) -> tuple[str, ...]:
    """Return the names of the columns of a generalized column."""
    if not scale.is_ordered:
        return (scale.name, scale.name + VALUES)
    missing = (scale.name + MISSING,) if scale.has_missing else ()
    return (scale.name, scale.name + LOW, scale.name + HIGH, *missing)


def require_free_names(scales: list[Scale], others: list[str]) -> None:
    """Refuse tables in which a new column would have the name of another column."""
    names = [name for scale in scales for name in label_columns(scale)] + others
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidSettingError(
            f"The released table would have several columns named {repeated}: generalized columns get additional "
            f"columns ending in {LOW}, {HIGH}, {MISSING} or {VALUES}. Rename the columns of the table. Nothing was "
            "anonymized."
        )


def quote(text: str) -> str:
    """Write a value as unambiguous text."""
    if _PLAIN_TEXT.fullmatch(text) and not _RESERVED.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=False)


def quote_all(texts: list[str]) -> list[str]:
    """Quote many texts; all at once if no text has anything to quote."""
    together = "\n".join(["", *texts, ""])
    characters = set(together)
    at_ends = {pair for c in characters if c.isspace() for pair in (f"\n{c}", f"{c}\n")}
    is_plain = (
        together.count("\n") == len(texts) + 1
        and characters.isdisjoint(_QUOTED_CHARACTERS)
        and not any(pair in together for pair in at_ends)
        and MISSING_LABEL not in together
    )
    return texts if is_plain else [quote(text) for text in texts]


def texts_of(scale: Scale) -> list[str]:
    """Return each known value of a scale as text."""
    values = scale.known
    if scale.kind == "boolean":
        return [str(bool(value)) for value in values]
    if scale.kind == "number":
        whole = values.dtype.kind == "f" and scale.decimals == 0
        return [str(int(value)) if whole else str(value) for value in values.tolist()]
    if scale.kind == "aware datetime":
        moments = pd.DatetimeIndex(values).tz_localize("UTC").tz_convert(scale.time_zone)
        return [moment.isoformat() for moment in moments]
    if values.dtype.kind == "M":
        return [str(text) for text in np.datetime_as_string(values.astype(f"datetime64[{scale.unit or 'D'}]"))]
    if values.dtype.kind == "m":
        return [str(pd.Timedelta(value)) for value in values]
    return values.tolist() if scale.kind == "text" else [str(value) for value in values]


def widened(own: Generalization, low: NDArray[np.int64], high: NDArray[np.int64]) -> Generalization:
    """Return the values in the region of each class, in place of those that occur in it."""
    has_known = own.has_known
    high = np.minimum(high, own.scale.n_known - 1)
    low, high = (
        np.where(has_known, np.minimum(low, own.low), own.low),
        np.where(has_known, np.maximum(high, own.high), -1),
    )
    return Generalization(own.scale, low, high, own.has_missing, own.first, own.values)


def interval_ends(
    scale: Scale, low: NDArray[np.int64], high: NDArray[np.int64], *, is_cell: bool
) -> tuple[NDArray[Any], NDArray[Any], list[str], list[str]]:
    """Return the ends of intervals of codes as values and as text."""
    if scale.kind == "category" or scale.known.dtype.kind == "O":
        plain = np.array(texts_of(scale), object)
        # Times of day in whole minutes are labeled without seconds.
        quoted = np.array([quote(text[:-3] if scale.unit == "m" else text) for text in plain], object)
        return plain[low], plain[high], quoted[low].tolist(), quoted[high].tolist()
    values = scale.known
    lows = values[low]
    following = values[np.minimum(high + 1, scale.n_known - 1)]
    is_inner = is_cell & (high < scale.n_known - 1)
    if not scale.is_closed:
        above = just_above(values[high], scale.decimals)
        # If the next decimal is beyond the next value, the end is that value, so that intervals of classes are
        # disjoint.
        is_beyond = is_inner | ((high < scale.n_known - 1) & (following < above))
        highs = np.where(is_beyond, following, above)
        return lows, highs, [repr(v) for v in lows.tolist()], [repr(v) for v in highs.tolist()]
    step: Any = 1
    if scale.unit:
        # Nanoseconds cannot represent a medieval date, so the step is made in the unit of the values.
        step = np.ones(1, f"timedelta64[{scale.unit}]").astype(f"timedelta64[{np.datetime_data(values.dtype)[0]}]")
    before = following - step
    # Whole numbers beyond 2**53 in floats have no predecessor at distance 1: the interval then ends at its largest
    # value.
    highs = np.where(is_inner & (before < following), before, values[high])
    ends = np.concatenate([lows, highs])
    texts = texts_of(Scale(scale.name, scale.kind, True, ends, False, 0, scale.unit, scale.time_zone))
    return lows, highs, texts[: len(lows)], texts[len(lows) :]


def just_above(values: NDArray[np.float64], decimals: int | None) -> NDArray[np.float64]:
    """Return the next number with this many decimals, or the next float if floats are farther apart."""
    with np.errstate(over="ignore"):
        nearest = np.nextafter(values, np.inf)
        if decimals is None:
            return nearest
        above = np.round(values + 10.0**-decimals, decimals)
    return np.asarray(np.where(np.isfinite(above), np.maximum(above, nearest), nearest), np.float64)


def typed_ends(
    scale: Scale, ends: NDArray[Any], has_known: NDArray[np.bool_], group: NDArray[np.int64]
) -> pd.Series[Any]:
    """Convert ends of intervals to the type of the column, with a missing value if there is no end."""
    if scale.kind == "category" or ends.dtype.kind == "O":
        return repeated_text([str(end) for end in ends], np.where(has_known[group], group, -1))
    if ends.dtype.kind in "mM":
        unit = "us" if np.datetime_data(ends.dtype)[0] != "ns" or scale.unit not in ("ns",) else "ns"
        ends = ends.astype(f"{'datetime' if ends.dtype.kind == 'M' else 'timedelta'}64[{unit}]").copy()
        ends[~has_known] = np.array("NaT", ends.dtype)
        column = pd.Series(ends[group])
        if scale.kind == "aware datetime":
            return column.dt.tz_localize("UTC").dt.tz_convert(scale.time_zone)
        return column
    if scale.is_closed:
        # Whole numbers in a float column because of missing values.
        whole = ends if ends.dtype.kind == "i" else None
        if whole is None and np.abs(ends).max(initial=0.0) < 2.0**63:
            whole = ends.astype(np.int64)
        if whole is not None:
            if has_known.all():
                return pd.Series(whole[group])
            return pd.Series(pd.arrays.IntegerArray(whole[group], ~has_known[group]))
    return pd.Series(np.where(has_known, ends, np.nan)[group])


def repeated_text(labels: list[str], codes: NDArray[np.int64]) -> pd.Series[Any]:
    """Make a column of repeated text; equal labels become one category."""
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    if len(numbers) == len(labels):
        number_of = np.append(np.arange(len(labels)), -1)
    else:
        number_of = np.array([numbers[label] for label in labels] + [-1], np.int64)
    categories = pd.Index(list(numbers), dtype=object if not numbers else None)
    dtype = pd.CategoricalDtype(categories)
    return pd.Series(pd.Categorical.from_codes(number_of[codes], dtype=dtype, validate=False), copy=False)


def centroid_column(
    generalization: Generalization, codes: NDArray[np.integer[Any]], edges: NDArray[np.int64], rows: NDArray[np.int64]
) -> pd.Series[Any]:
    """Give every row the center of its class: mean, median category, or most frequent value (the first of several).

    ``codes`` are sorted by class, between ``edges``. Missing values count only in classes without other values.
    """
    scale = generalization.scale
    if scale.n_known == 0:
        return pd.Series(np.full(len(rows), None, object))
    sizes = np.diff(edges)
    class_of_code = np.repeat(np.arange(len(sizes)), sizes)
    is_known = codes < scale.n_known
    if scale.is_ordered:
        # Sorted, so that sums do not depend on the order of the rows.
        order = np.lexsort((codes, class_of_code))
        in_order, n_known = codes[order].astype(np.int64), np.bincount(class_of_code[is_known], minlength=len(sizes))
        if scale.kind != "category" and scale.known.dtype.kind != "O":
            kept = is_known[order]
            return _means(generalization, in_order[kept], class_of_code[kept], rows)
        centres = in_order[edges[:-1] + np.maximum(n_known - 1, 0) // 2]
    else:
        keys, counts = np.unique(class_of_code * scale.n_values + codes, return_counts=True)
        order = np.lexsort((keys, -counts, keys % scale.n_values == scale.n_known, keys // scale.n_values))
        classes = keys[order] // scale.n_values
        centres = keys[order][np.searchsorted(classes, np.arange(len(sizes)))] % scale.n_values
    return repeated_text(texts_of(scale), np.where(centres < scale.n_known, centres, -1)[rows])


def _means(
    generalization: Generalization, codes: NDArray[np.int64], class_of_code: NDArray[np.int64], rows: NDArray[np.int64]
) -> pd.Series[Any]:
    """Give every row the mean of its class; ``codes`` are those of known values, sorted by class."""
    scale, has_known = generalization.scale, generalization.has_known
    values = scale.known.astype(np.int64) if scale.known.dtype.kind in "mM" else scale.known
    lows = values[np.where(has_known, generalization.low, 0)]
    highs = values[np.where(has_known, generalization.high, 0)]
    n_known = np.maximum(np.bincount(class_of_code, minlength=len(lows)), 1)

    def mean_of(offsets: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(class_of_code, weights=offsets, minlength=len(lows)) / n_known

    # Relative to the smallest value of the class, so that means of times and of large integers stay exact enough.
    if values.dtype.kind == "i":
        # Differences of int64 may need one bit more, which unsigned integers have.
        offsets = mean_of(values.view(np.uint64)[codes] - lows.view(np.uint64)[class_of_code])
        if scale.kind != "number":
            moments = (lows.view(np.uint64) + np.round(offsets).astype(np.uint64)).view(scale.known.dtype)
            return typed_ends(scale, moments, has_known, rows)
        means = lows + offsets
    else:
        # Sums of the largest floats overflow; divided by a power of two they keep all digits.
        part = 2.0 ** -np.ceil(np.log2(2 * len(codes) + 1)) if np.abs(values).max() > FAR else 1.0
        means = (lows * part + mean_of((values * part)[codes] - (lows * part)[class_of_code])) / part
    means = np.clip(means, lows.astype(np.float64), highs.astype(np.float64))
    return pd.Series(np.where(has_known, means, np.nan)[rows])
