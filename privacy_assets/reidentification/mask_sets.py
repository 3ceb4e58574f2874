"""Conversion of masks to sets of codes: the possible original values of each released cell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from math import floor, isfinite
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.labels import texts_of
from privacy_assets.anonymization.quasi_identifiers import Scale
from privacy_assets.columns.coding import ColumnValues
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import (
    BoundedNoise,
    Exact,
    HierarchyMapping,
    Interval,
    Label,
    Mask,
    RankWindow,
    SimilarText,
    ValueSet,
)
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.reidentification.code_sets import CodeSets, from_lists
from privacy_assets.reidentification.mask_labels import (
    ANY_LABEL,
    ANYTHING,
    MISSING,
    Meaning,
    Range,
    read_label,
    read_number_label,
)
from privacy_assets.reidentification.released_values import (
    TEXT_KINDS,
    Original,
    as_categories,
    codes_among,
    places_among,
    plain_values,
    read_released,
    refuse,
    rows_of_values,
    value_texts,
)
from privacy_assets.reidentification.similar_texts import SimilarTexts
from privacy_assets.setting_checks import is_integer, is_number

TIME_KINDS = ("datetime", "aware datetime", "duration")
NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
# Floats deviate from their number by a few units in the last place. If that is not small compared with the width of the
# noise, whole numbers outside the width would count as inside.
ROUNDED_BY = 4 * float(np.finfo(np.float64).eps)
LARGEST_SLACK = 1 / 8
MOST_EDITS = 10


def read_mask(original: Original, released: pd.DataFrame, mask: Mask, hierarchies: Mapping[str, Hierarchy]) -> CodeSets:
    """Find the possible values of an original column for each released row; those that cannot be read are counted."""
    if isinstance(mask, Interval):
        return _interval(original, released, mask)
    assert not isinstance(mask, Interval) and hasattr(mask, "column")  # noqa: S101 - suppressed columns have no cells
    column = released[mask.column]
    if isinstance(mask, HierarchyMapping):
        return _mapping(original, column, mask, hierarchies)
    readers: dict[type[Any], Callable[[Original, pd.Series[Any], Any], CodeSets]] = {
        Exact: _exact,
        ValueSet: _value_set,
        Label: _label,
        BoundedNoise: _bounded_noise,
        RankWindow: _rank_window,
        SimilarText: _similar_text,
    }
    return readers[type(mask)](original, column, mask)


def _exact(original: Original, column: pd.Series[Any], mask: Exact) -> CodeSets:  # noqa: ARG001
    read, values = read_released(original, column)
    codes = codes_among(original.scale, values)
    return original.ranges_of_values(read, np.where(codes < 0, 1, codes), np.where(codes < 0, 0, codes))


def _interval(original: Original, released: pd.DataFrame, mask: Interval) -> CodeSets:
    scale = original.scale
    if not scale.is_ordered and scale.kind != "missing":
        raise InvalidSettingError(
            f"{original.where} has an interval mask, but {scale.kind} values, which are not ordered. Expected "
            "numbers, times or ordered categories. Use another mask."
        )
    ends = []
    for name, is_high in ((mask.low, False), (mask.high, True)):
        end, values = _read_ends(original, released[name])
        if scale.kind == "category":
            codes = codes_among(scale, values)
            refuse(original, codes < 0, end.codes, "are categories that the original lacks", "its categories")
            places = codes - (is_high and not mask.includes_high)
        else:
            places = places_among(scale, values, "right" if is_high and mask.includes_high else "left") - is_high
        ends.append((np.append(places, -1)[end.codes], end.codes < 0))
    (low, low_is_missing), (high, high_is_missing) = ends
    n_half = int((low_is_missing != high_is_missing).sum())
    if n_half:
        raise InvalidTableError(
            f"{original.where}: {n_half} released rows have only one end of an interval. Expected both ends or "
            "neither. Correct the release."
        )
    may_be_missing = np.zeros(len(released), np.bool_)
    if mask.missing is not None:
        may_be_missing = _truth_values(original, released[mask.missing])
    low, high = np.where(low_is_missing, 1, low), np.where(low_is_missing, 0, high)
    return original.ranges(low, high, may_be_missing, np.arange(len(released)))


def _read_ends(original: Original, column: pd.Series[Any]) -> tuple[ColumnValues, NDArray[Any]]:
    """Read the ends of intervals; those of large integers are text."""
    scale = original.scale
    if scale.known.dtype.kind == "O" and scale.kind == "number":
        read = original.read(column)
        if read.kind == "text":
            try:
                whole = [int(text) for text in read.distinct]
            except ValueError:
                whole = []
            refuse(original, np.full(len(read.distinct), not whole), read.codes, "are not whole numbers", "digits")
            values = np.empty(len(whole), object)
            values[:] = whole
            return read, values
    return read_released(original, column)


def _truth_values(original: Original, column: pd.Series[Any]) -> NDArray[np.bool_]:
    read = original.read(column)
    if read.kind != "boolean" or (read.codes < 0).any():
        raise InvalidTableError(
            f"{original.where}: the released column for missing values has {read.description} values. Expected true "
            "or false in every row. Correct the release."
        )
    return np.asarray(read.distinct[read.codes], np.bool_)


def _value_set(original: Original, column: pd.Series[Any], mask: ValueSet) -> CodeSets:  # noqa: ARG001
    read = original.read(column)
    code_of: dict[str | None, int] = {text: code for code, text in enumerate(texts_of(original.scale))}
    code_of[None] = original.scale.n_known
    lists, is_refused = [], np.zeros(len(read.distinct), np.bool_)
    for i, text in enumerate(read.distinct):
        try:
            values = json.loads(text) if isinstance(text, str) else None
        except ValueError:
            values = None
        if not isinstance(values, list) or not all(value is None or isinstance(value, str) for value in values):
            is_refused[i] = True
            values = []
        lists.append(np.unique(np.array([code_of[v] for v in values if v in code_of], np.int64)))
    rows = rows_of_values(read)
    refuse(
        original, np.append(is_refused, (read.codes < 0).any()), rows, "are not sets", "JSON arrays of text and null"
    )
    return from_lists(lists, rows)


def _mapping(
    original: Original, column: pd.Series[Any], mask: HierarchyMapping, hierarchies: Mapping[str, Hierarchy]
) -> CodeSets:
    if mask.hierarchy not in hierarchies:
        raise InvalidSettingError(
            f"{original.where} has a mask with the hierarchy {mask.hierarchy!r}, which is missing. There are "
            f"{sorted(hierarchies)}. Pass it in `hierarchies`."
        )
    if mask.level is not None and not is_integer(mask.level, 0):
        raise InvalidSettingError(f"{original.where}: the level is {mask.level!r}. Expected None, or 0 or more.")
    leveled = hierarchies[mask.hierarchy].apply(original.column, original.name)
    levels = leveled.nodes if mask.level is None else leveled.nodes[: mask.level + 1][-1:]
    # Hierarchies compare floats to 10 decimals, so one of their values may have several codes.
    pairs = np.sort(pd.unique(leveled.codes * original.n_values + original.dimension.codes))
    members: dict[str, set[int]] = {ANY_LABEL: set(range(original.n_values))}
    for nodes in levels:
        for value, code in zip(*(part.tolist() for part in np.divmod(pairs, original.n_values)), strict=True):
            label = str(leveled.labels[nodes[value]])
            members.setdefault(label, set()).add(code)
    read = original.read(column)
    texts = [str(value) for value in plain_values(read)]
    is_refused = np.array([*(text not in members for text in texts), (read.codes < 0).any()], np.bool_)
    rows = rows_of_values(read)
    refuse(original, is_refused, rows, f"are not nodes of {mask.hierarchy!r} above an original value", "its labels")
    lists = [np.array(sorted(members[text]), np.int64) for text in texts]
    return from_lists(lists, rows)


def _bounded_noise(original: Original, column: pd.Series[Any], mask: BoundedNoise) -> CodeSets:
    scale = original.scale
    if scale.kind in TIME_KINDS or (scale.kind == "missing" and isinstance(mask.width, str)):
        return _noise_in_time(original, column, mask)
    if not is_number(mask.width, 0, np.inf):
        raise InvalidSettingError(
            f"{original.where}: the width of its noise is {mask.width!r}. Expected at least 0, a number for numbers."
        )
    if scale.kind not in ("number", "missing"):
        raise InvalidSettingError(
            f"{original.where} has a noise mask, but {scale.kind} values. Expected numbers or times."
        )
    read, values = read_released(original, column)
    if read.kind not in ("number", "missing"):
        raise InvalidTableError(
            f"{original.where} has a noise mask, but {read.description} in the release. Expected numbers. Convert the "
            "column, or use another mask."
        )
    if {scale.known.dtype.kind, values.dtype.kind} <= {"i", "O"}:
        # Integers stay integers, because floats merge those beyond 2**53; a fraction below 1 does not increase the
        # width.
        known, numbers, width = scale, values.astype(object), floor(float(mask.width))
        lowest, highest = numbers - width, numbers + width
    else:
        known = Scale(scale.name, scale.kind, True, scale.known.astype(np.float64), scale.has_missing)
        numbers, asked = values.astype(np.float64), float(mask.width)
        # The released number and the ends were rounded to floats; the rounding error must not exclude an original.
        slack = ROUNDED_BY * np.maximum(np.abs(numbers), asked)
        width = asked + np.minimum(slack, asked * LARGEST_SLACK)
        with np.errstate(over="ignore"):
            lowest, highest = numbers - width, numbers + width
    low, high = places_among(known, lowest, "left"), places_among(known, highest, "right") - 1
    return original.ranges_of_values(read, low, high)


def _noise_in_time(original: Original, column: pd.Series[Any], mask: BoundedNoise) -> CodeSets:
    width = _nanoseconds_of(mask.width)
    if width is None or width < 0:
        raise InvalidSettingError(
            f"{original.where} has {original.scale.kind} values, and the width of its noise is {mask.width!r}. "
            'Expected a Timedelta of at least 0, or ISO 8601 text such as "P2D".'
        )
    read, values = read_released(original, column)
    if read.kind not in (*TIME_KINDS, "missing"):
        raise InvalidTableError(
            f"{original.where} has a noise mask, but {read.description} in the release. Expected times. Convert the "
            "column, or use another mask."
        )
    # Python's integers, as nanoseconds of far dates exceed 64 bits.
    known, numbers = _nanoseconds(original.scale.known), _nanoseconds(values)
    low, high = np.searchsorted(known, numbers - width), np.searchsorted(known, numbers + width, side="right") - 1
    return original.ranges_of_values(read, low, high)


def _nanoseconds_of(width: object) -> int | None:
    """Return a duration in ISO 8601 as nanoseconds; None if it is not a duration."""
    if not isinstance(width, str) or not width.lstrip("-").startswith("P"):
        return None
    try:
        return int(pd.Timedelta(width).value)
    except (ValueError, OverflowError):
        return None


def _nanoseconds(times: NDArray[Any]) -> NDArray[np.object_]:
    if times.dtype.kind not in "mM":
        return np.zeros(0, object)
    unit, count = np.datetime_data(times.dtype)
    return times.astype(np.int64).astype(object) * (count * NANOSECONDS[unit])


def _rank_window(original: Original, column: pd.Series[Any], mask: RankWindow) -> CodeSets:
    scale = original.scale
    if not is_number(mask.p, 0, 100):
        raise InvalidSettingError(f"{original.where}: the window of ranks is {mask.p!r} percent. Expected 0 to 100.")
    if not scale.is_ordered and scale.kind != "missing":
        raise InvalidSettingError(f"{original.where} has a rank mask, but {scale.kind} values.")
    read, values = read_released(original, column)
    codes = codes_among(scale, values)
    refuse(original, codes < 0, read.codes, "are not original values", "values moved by rank swapping, not new ones")
    counts = np.bincount(original.dimension.codes, minlength=scale.n_known)[: scale.n_known]
    last_rank = np.cumsum(counts) - 1
    first_rank = last_rank - counts + 1
    # From the decimal text of the percentage: as a product of floats, 29 % of 100 would be 28.
    window = floor(Fraction(repr(float(mask.p))) * int(counts.sum()) / 100)
    low = np.searchsorted(last_rank, first_rank[codes] - window)
    high = np.searchsorted(first_rank, last_rank[codes] + window, side="right") - 1
    return original.ranges_of_values(read, low, high)


def _similar_text(original: Original, column: pd.Series[Any], mask: SimilarText) -> CodeSets:
    if not is_integer(mask.edits, 0, MOST_EDITS):
        raise InvalidSettingError(
            f"{original.where}: the number of edits is {mask.edits!r}. Expected a whole number from 0 to {MOST_EDITS}."
        )
    if original.scale.kind not in (*TEXT_KINDS, "missing"):
        raise InvalidSettingError(
            f"{original.where} has a mask of similar texts, but {original.scale.kind} values. Expected text."
        )
    read = original.read(column)
    if read.kind not in (*TEXT_KINDS, "missing"):
        raise InvalidTableError(
            f"{original.where} has a mask of similar texts, but {read.description} in the release. Expected text."
        )
    similar = SimilarTexts(texts_of(original.scale), int(mask.edits))
    lists = [similar.near(str(text)) for text in read.distinct.tolist()]
    return from_lists([*lists, np.array([original.scale.n_known])], rows_of_values(read))


def _label(original: Original, column: pd.Series[Any], mask: Label) -> CodeSets:
    if mask.missing_means not in ("suppressed", "missing"):
        raise InvalidSettingError(
            f"{original.where}: missing_means is {mask.missing_means!r}. Expected 'suppressed' or 'missing'."
        )
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True).startswith("mixed"):
        # The column reader refuses cells that are not single values, such as lists.
        is_value = pd.api.types.is_scalar
        column = column.map(lambda value: str(value) if is_value(value) and not pd.isna(value) else value)
    read = original.read(column)
    reader = _LabelReader(original)
    found: list[NDArray[np.int64] | None]
    if read.kind == original.scale.kind and read.kind not in TEXT_KINDS:
        codes = codes_among(original.scale, read_released(original, column)[1])
        found = [None if code < 0 else np.array([code]) for code in codes]
    else:
        is_ranked = original.scale.kind == "category"
        values = as_categories(original.scale, read).tolist() if is_ranked else plain_values(read)
        found = [reader.codes_of(str(value)) for value in values]
    refuse(
        original,
        np.array([codes is None for codes in found], np.bool_),
        read.codes,
        "are neither a value of the original nor a label that can be read",
        "intervals, sets, stars, or values",
    )
    found.append(reader.of_meaning(ANYTHING if mask.missing_means == "suppressed" else MISSING))
    return from_lists([codes for codes in found if codes is not None], rows_of_values(read))


class _LabelReader:
    """Finds the codes of labels on the scale of a column."""

    def __init__(self, original: Original) -> None:
        self.original, self.scale = original, original.scale
        self.texts = value_texts(self.scale)
        self.code_of = {text: code for code, text in enumerate(self.texts)}
        self.everything = np.arange(original.n_values)

    def codes_of(self, text: str) -> NDArray[np.int64] | None:
        """Return the possible codes of a label; None if it cannot be read."""
        meaning = read_label(text)
        if not meaning.is_anything and meaning != MISSING:
            # Original values may have surrounding spaces, which labels lack.
            for own in (text, text.strip()):
                if own in self.code_of:
                    return np.array([self.code_of[own]])
        if self.scale.is_ordered and meaning.texts:
            meaning = read_number_label(text) or meaning
        return self.of_meaning(meaning)

    def of_meaning(self, meaning: Meaning) -> NDArray[np.int64] | None:
        """Return the codes that match a label; None if a part of it does not match any value."""
        if meaning.is_anything:
            return self.everything
        codes: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        if meaning.may_be_missing:
            codes.append(self.everything[-1:])
        if meaning.pattern is not None:
            pattern = re.compile(meaning.pattern, re.DOTALL)
            own = [code for code, text in enumerate(self.texts) if pattern.fullmatch(text)]
            return np.array(own, np.int64) if own else None
        for each in meaning.ranges:
            ends = self._range(each)
            if ends is None:
                return None
            codes.append(np.arange(ends[0], ends[1] + 1))
        for value in meaning.texts:
            code = self._code(value)
            if code is None:
                return None
            codes.append(np.array([code]))
        return np.unique(np.concatenate(codes))

    def _code(self, text: str) -> int | None:
        if text in self.code_of:
            return self.code_of[text]
        value = self._value(text)
        if value is None:
            return None
        code = int(codes_among(self.scale, value)[0])
        return code if code >= 0 else None

    def _range(self, ends: Range) -> tuple[int, int] | None:
        """Return the first and the last code of an interval; None if its ends cannot be read."""
        if not self.scale.is_ordered:
            return None
        low, high = 0, self.scale.n_known - 1
        for text, includes, is_high in ((ends.low, ends.includes_low, False), (ends.high, ends.includes_high, True)):
            if text is None:
                continue
            if self.scale.kind == "category":
                code = self.code_of.get(text)
                if code is None:
                    return None
                low, high = (low, code - (not includes)) if is_high else (code + (not includes), high)
                continue
            value = self._value(text)
            if value is None:
                return None
            place = int(places_among(self.scale, value, "right" if includes == is_high else "left")[0])
            low, high = (low, place - 1) if is_high else (place, high)
        return low, high

    def _value(self, text: str) -> NDArray[Any] | None:
        """Read text as a value of the kind of the scale; None if it is not one."""
        kind, known = self.scale.kind, self.scale.known
        try:
            if kind == "number" and known.dtype.kind == "f":
                return np.array([float(text)]) if isfinite(float(text)) else None
            if kind == "number":
                return _exact_number(Decimal(text))
            if kind == "duration":
                return _one(pd.Timedelta(text))
            if kind == "datetime":
                return _one(pd.Timestamp(text))
            if kind == "aware datetime":
                moment = pd.Timestamp(text)
                moment = moment.tz_localize(self.scale.time_zone) if moment.tzinfo is None else moment
                return _one(moment.tz_convert("UTC").tz_localize(None))
        except Exception:  # noqa: BLE001 - pandas raises various errors for text that is not a time
            return None
        return None


def _exact_number(number: Decimal) -> NDArray[Any] | None:
    """Return a number that compares exactly with integers; floats would merge those beyond 2**53."""
    if not number.is_finite():
        return None
    if -(2**63) <= number < 2**63 and number == int(number):
        return np.array([int(number)], np.int64)
    if -(2**52) < number < 2**52:
        # All numbers between two integers compare equally with integers, and their midpoint is a float.
        return np.array([floor(number) + 0.5])
    return np.array([number], object)


def _one(moment: pd.Timestamp | pd.Timedelta) -> NDArray[Any] | None:
    return None if pd.isna(moment) else np.array([moment.to_numpy()])
