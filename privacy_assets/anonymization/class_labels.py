"""Labels that are made for some classes at a time, so that the labels of all classes need not be in memory at once.

Only positions are kept per class: those of the ends of an interval among the ends that occur, and those of the values
of a set. Arrow joins the texts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, Protocol, Self

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy_assets.anonymization.generalization import Generalization
from privacy_assets.anonymization.labels import (
    HIGH,
    LOW,
    MISSING,
    MISSING_LABEL,
    VALUES,
    interval_ends,
    quote_all,
    texts_of,
    typed_ends,
    widened,
)
from privacy_assets.anonymization.quasi_identifiers import Scale

CLASSES_AT_A_TIME = 2**16


class ClassLabels(Protocol):
    """The released columns of one quasi-identifier."""

    def columns(self, classes: NDArray[np.integer[Any]]) -> dict[str, pd.Series[Any]]:
        """Return the released columns of these classes, one row for each."""
        ...


@dataclass(frozen=True, eq=False)
class GivenLabels:
    """Columns with one row per class, for labels without texts of their own, such as centers of classes."""

    of_class: dict[str, pd.Series[Any]]

    def columns(self, classes: NDArray[np.integer[Any]]) -> dict[str, pd.Series[Any]]:
        """Take the rows of these classes."""
        return {name: pd.Series(own.array.take(classes), copy=False) for name, own in self.of_class.items()}


@dataclass(frozen=True, eq=False)
class _Ends:
    """One end of the interval of each class.

    ``place`` is its position among the ends that occur; classes without a known value have the last one. ``code``
    (int64) has the codes of these ends, ascending, ``typed`` their values in the type of the column.
    """

    place: NDArray[np.unsignedinteger[Any]]
    code: NDArray[np.int64]
    typed: pd.Series[Any]
    texts: pa.Array


@dataclass(frozen=True, eq=False)
class IntervalLabels:
    """Labels of an ordered column; make them with `of`."""

    scale: Scale
    low: _Ends
    high: _Ends
    has_known: NDArray[np.bool_]
    has_missing: NDArray[np.bool_]
    is_cell: bool

    @classmethod
    def of(cls, own: Generalization, cells: tuple[NDArray[np.int64], NDArray[np.int64]] | None) -> Self:
        """Prepare the labels of classes.

        With ``cells``, the smallest and largest code of the region of each class are released instead of the values
        that occur in it.
        """
        if cells is not None:
            own = widened(own, *cells)
        scale, has_known = own.scale, own.has_known
        low, low_place = _places(own.low, has_known, scale.n_known, max(scale.n_known - 1, 0))
        high, high_place = _places(own.high, has_known, scale.n_known, 0)
        lows, highs, low_texts, high_texts = interval_ends(scale, low, high, is_cell=cells is not None)
        return cls(
            scale,
            _Ends(low_place, low, _typed(scale, lows, has_known), _texts(low_texts)),
            _Ends(high_place, high, _typed(scale, highs, has_known), _texts(high_texts)),
            has_known,
            own.has_missing,
            cells is not None,
        )

    def columns(self, classes: NDArray[np.integer[Any]]) -> dict[str, pd.Series[Any]]:
        """Return text, low and high ends of these classes, and whether a value is missing if the column has any."""
        low, high = self.low.place[classes], self.high.place[classes]
        has_known, has_missing = self.has_known[classes], self.has_missing[classes]
        # Many classes have the same label.
        of_label = low.astype(np.int64) * len(self.high.code) + high
        of_label = (of_label * 2 + has_known) * 2 + has_missing
        place, distinct = pd.factorize(of_label)
        first = np.empty(len(distinct), np.int64)
        first[place[::-1]] = np.arange(len(place))[::-1]
        texts = self._labels(low[first], high[first], has_known[first], has_missing[first])
        name = self.scale.name
        columns = {
            name: _as_categories(texts, place),
            name + LOW: pd.Series(self.low.typed.array.take(low), copy=False),
            name + HIGH: pd.Series(self.high.typed.array.take(high), copy=False),
        }
        if self.scale.has_missing:
            columns[name + MISSING] = pd.Series(has_missing)
        return columns

    def _labels(
        self,
        low: NDArray[np.unsignedinteger[Any]],
        high: NDArray[np.unsignedinteger[Any]],
        has_known: NDArray[np.bool_],
        has_missing: NDArray[np.bool_],
    ) -> pa.Array:
        low_texts, high_texts = self.low.texts.take(pa.array(low)), self.high.texts.take(pa.array(high))
        closing = "]" if self.scale.is_closed else ")"
        labels = _joined("[", low_texts, ", ", high_texts, closing)
        is_single = pc.equal(low_texts, high_texts)
        if not self.is_cell:
            is_single = pc.or_(is_single, pa.array(self.low.code[low] == self.high.code[high]))
        labels = pc.if_else(is_single, low_texts, labels)
        if has_missing.any():
            with_missing = pc.if_else(
                pa.array(has_known), _joined(labels, f" or {MISSING_LABEL}"), _scalar(MISSING_LABEL)
            )
            labels = pc.if_else(pa.array(has_missing), with_missing, labels)
        return labels


@dataclass(frozen=True, eq=False)
class SetLabels:
    """Labels of a set; make them with `of`.

    ``quoted`` and ``dumped`` have each value as written in a label, and in a JSON array; the missing value is the last.
    ``first`` and ``values`` are those of `Generalization`; ``example`` is a class for each distinct set, and ``place``
    the position of the set of each class among them.
    """

    scale: Scale
    example: NDArray[np.int64]
    place: NDArray[np.integer[Any]]
    first: NDArray[np.int64]
    values: NDArray[np.integer[Any]]
    quoted: pa.Array
    dumped: pa.Array

    @classmethod
    def of(cls, own: Generalization) -> Self:
        """Prepare the labels of classes."""
        texts = texts_of(own.scale)
        quoted = _texts([*quote_all(texts), MISSING_LABEL])
        example, place = own.distinct()
        place = place.astype(np.min_scalar_type(len(example)))
        return cls(
            own.scale, example, place, own.first, own.values, quoted, _texts([*map(encode_basestring, texts), "null"])
        )

    def columns(self, classes: NDArray[np.integer[Any]]) -> dict[str, pd.Series[Any]]:
        """Return text and JSON array of these classes."""
        place, distinct = pd.factorize(self.place[classes])
        classes = self.example[distinct]
        begins = self.first[classes]
        sizes = self.first[classes + 1] - begins
        edges = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        codes = pa.array(self.values[np.arange(edges[-1]) + np.repeat(begins - edges[:-1], sizes)])
        joined = _joined_lists(self.quoted.take(codes), edges)
        labels = pc.if_else(pa.array(sizes == 1), joined, _joined("{", joined, "}"))
        lists = _joined("[", _joined_lists(self.dumped.take(codes), edges), "]")
        name = self.scale.name
        return {name: _as_categories(labels, place), name + VALUES: _as_categories(lists, place)}


def labels_in_blocks(labels: ClassLabels, n_classes: int) -> Iterator[dict[str, pd.Series[Any]]]:
    """Yield the columns of all classes, some classes at a time."""
    for begin in range(0, n_classes, CLASSES_AT_A_TIME):
        yield labels.columns(np.arange(begin, min(begin + CLASSES_AT_A_TIME, n_classes)))


def _places(
    ends: NDArray[np.integer[Any]], has_known: NDArray[np.bool_], n_known: int, other: int
) -> tuple[NDArray[np.int64], NDArray[np.unsignedinteger[Any]]]:
    """Return the codes that occur as an end, ``other`` last if a class lacks one, and the positions of the classes."""
    occurs = np.zeros(n_known, np.bool_)
    occurs[ends if has_known.all() else ends[has_known]] = True
    used = np.flatnonzero(occurs)
    place_of = np.zeros(n_known, np.min_scalar_type(len(used)))
    place_of[used] = np.arange(len(used))
    if has_known.all():
        return used, place_of[ends]
    place = np.full(len(ends), len(used), place_of.dtype)
    place[has_known] = place_of[ends[has_known]]
    return np.append(used, other), place


def _as_categories(texts: pa.Array, places: NDArray[np.integer[Any]]) -> pd.Series[Any]:
    """Return the text at each place, as categories, because texts repeat."""
    coded = texts.dictionary_encode()
    return pd.Series(
        pd.Categorical.from_codes(coded.indices.to_numpy()[places], pd.Index(coded.dictionary.to_pandas()))
    )


def _typed(scale: Scale, ends: NDArray[Any], has_known: NDArray[np.bool_]) -> pd.Series[Any]:
    is_known = np.ones(len(ends), np.bool_)
    is_known[-1] = bool(has_known.all())
    return typed_ends(scale, ends, is_known, np.arange(len(ends)))


def _texts(texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.large_string())


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _joined(*parts: pa.Array | str) -> pa.Array:
    """Join texts row by row."""
    arrays = [_scalar(part) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*arrays, _scalar(""))


def _joined_lists(texts: pa.Array, edges: NDArray[np.int64]) -> pa.Array:
    """Join the texts between edges."""
    return pc.binary_join(pa.LargeListArray.from_arrays(pa.array(edges), texts), _scalar(", "))
