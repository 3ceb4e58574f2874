"""A table as a formal context: records, attributes, and their incidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.column_names import require_unique_names, require_unique_text_names
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import HierarchyMapping, Interval, Mask, ReleaseModel, ValueSet, columns_of
from privacy_assets.columns.safe_names import type_name
from privacy_assets.columns.scales import Ancestors, ConceptualScale, Generalized, Nominal, read_scale
from privacy_assets.display.notebook import ShowsFigures
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.kernels.bit_sets import BITS
from privacy_assets.semantic_risk.kernels.formal_context import (
    PackedContext,
    make_context,
    number_rows,
    pack_patterns,
    select_attributes,
    unpack_rows,
)
from privacy_assets.semantic_risk.scaled_column import MAX_ATTRIBUTES, ScaledColumn, scale_column
from privacy_assets.storage.table import Table

Scales = Mapping[str, Any] | Literal["binary"]

# 1 GiB of bits.
MAX_WORDS = 2**27
SETS_AT_ONCE = 4096


@dataclass(frozen=True)
class Attribute:
    """An attribute of a context.

    Its name is the column and a number, such as ``age #3``, or the column of a binary one, and does not contain values
    of the table. Its label, such as ``age >= 40``, does, and is private.
    """

    name: str
    column: str
    label: str


@dataclass(frozen=True, eq=False, repr=False)
class FormalContext(ShowsFigures):
    """Records and the attributes that they have.

    Attributes
    ----------
    packed : PackedContext
        Distinct rows with their numbers of records.
    row_of_record : ndarray of shape (n_records,), dtype=int64
        Distinct row of each record, in the order of the table.
    attributes : tuple of Attribute
        The attributes, column by column.
    scales : dict of str to str
        Kind of the scale of each column.
    conceivable : dict of str to ndarray of shape (n_conceivable, n_own_attributes), dtype=bool
        Attributes of every value that the scale of a column admits, whether it occurs or not.
    """

    main_figures = ("records", "distinct_rows", "attributes")

    packed: PackedContext
    row_of_record: NDArray[np.int64]
    attributes: tuple[Attribute, ...]
    scales: dict[str, str]
    conceivable: dict[str, NDArray[np.bool_]]

    def _figures(self) -> Mapping[str, object]:
        return {
            "records": self.n_records,
            "distinct_rows": self.n_rows,
            "attributes": len(self.attributes),
            "attributes_by_column": self.attributes_by_column(),
            "scales": self.scales,
        }

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self.row_of_record)

    @property
    def n_rows(self) -> int:
        """Number of distinct rows."""
        return len(self.packed.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes, without values."""
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that the attributes were made from."""
        return tuple(self.scales)

    def attributes_by_column(self) -> dict[str, int]:
        """Return the number of attributes of each column."""
        counts = dict.fromkeys(self.columns, 0)
        for attribute in self.attributes:
            counts[attribute.column] += 1
        return counts

    def columns_that_tell_nobody_apart(self) -> tuple[str, ...]:
        """Return the columns whose attributes all records have, or none has."""
        differs = np.bitwise_or.reduce(self.packed.rows ^ self.packed.rows[0], axis=0)
        telling = set(self.names_in(differs))
        columns = {attribute.column for attribute in self.attributes if attribute.name in telling}
        return tuple(column for column in self.columns if column not in columns)

    def incidence(self) -> NDArray[np.bool_]:
        """Return the incidence of distinct rows and attributes, of shape (n_rows, n_attributes)."""
        return unpack_rows(self.packed.rows, len(self.attributes))

    def names_in(self, words: NDArray[np.uint64]) -> tuple[str, ...]:
        """Return the names of a set of attributes given as bits."""
        has = unpack_rows(words[np.newaxis], len(self.attributes))[0]
        return tuple(name for name, is_in in zip(self.names, has.tolist(), strict=True) if is_in)

    def words_of(self, names: Sequence[str]) -> NDArray[np.uint64]:
        """Return a set of attributes, given by name, as bits.

        Raises
        ------
        InvalidSettingError
            If there is no such attribute.
        """
        place = {name: number for number, name in enumerate(self.names)}
        unknown = [name for name in names if name not in place]
        if unknown:
            raise InvalidSettingError(
                f"The context has no attributes {unknown}. It has {len(place)}, named after the columns "
                f"{list(self.columns)}."
            )
        words = np.zeros(self.packed.rows.shape[1], np.uint64)
        for name in names:
            words[place[name] // BITS] |= np.uint64(1) << np.uint64(place[name] % BITS)
        return words

    def of_records(self, is_kept: NDArray[np.bool_]) -> FormalContext:
        """Return the context of some of the records, with the same attributes."""
        rows = self.row_of_record[is_kept]
        if len(rows) == 0:
            raise InvalidTableError("No record is kept. Expected at least one; an empty context has no concepts.")
        own, row_of_record = np.unique(rows, return_inverse=True)
        return _assemble(self.packed.rows[own], row_of_record.ravel(), self.attributes, self.scales, self.conceivable)

    def without(self, forgotten: Sequence[str]) -> FormalContext:
        """Return the context of the same records without some attributes, given by name."""
        self.words_of(forgotten)
        gone = set(forgotten)
        kept = [number for number, attribute in enumerate(self.attributes) if attribute.name not in gone]
        rows = select_attributes(self.packed.rows, np.array(kept, np.int64))
        row_of_row, first = number_rows(rows)
        attributes = tuple(self.attributes[number] for number in kept)
        columns = {attribute.column for attribute in attributes}
        conceivable = {}
        for column, (begin, stop) in self._slices().items():
            is_kept = [attribute.name not in gone for attribute in self.attributes[begin:stop]]
            if any(is_kept):
                conceivable[column] = self.conceivable[column][:, is_kept]
        return _assemble(
            rows[first],
            row_of_row[self.row_of_record],
            attributes,
            {column: kind for column, kind in self.scales.items() if column in columns},
            conceivable,
        )

    def close_by_scales(self, sets: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Add to sets of attributes, given as bits, the attributes that their scales imply for any records.

        Examples are at least 40 from at least 41, and a region from a town. If no cell has the set, all attributes are
        added.
        """
        closed = [self._closed(sets[i : i + SETS_AT_ONCE]) for i in range(0, len(sets), SETS_AT_ONCE)]
        return np.concatenate(closed) if closed else sets.copy()

    def _closed(self, sets: NDArray[np.uint64]) -> NDArray[np.uint64]:
        has = unpack_rows(sets, len(self.attributes))
        for column, (begin, stop) in self._slices().items():
            own, number = np.unique(has[:, begin:stop], axis=0, return_inverse=True)
            for i in np.flatnonzero(own.any(axis=1)):
                possible = self.conceivable[column]
                possible = possible[possible[:, own[i]].all(axis=1)]
                which = number.ravel() == i
                if len(possible):
                    has[which, begin:stop] = possible.all(axis=0)
                else:
                    has[which] = True
        return pack_patterns([np.arange(len(has))], [has])

    def _slices(self) -> dict[str, tuple[int, int]]:
        """Return the first attribute of each column and the one after its last."""
        slices, begin = {}, 0
        for column, n_own in self.attributes_by_column().items():
            slices[column] = (begin, begin + n_own)
            begin += n_own
        return slices


def _assemble(
    rows: NDArray[np.uint64],
    row_of_record: NDArray[np.int64],
    attributes: tuple[Attribute, ...],
    scales: Mapping[str, str],
    conceivable: Mapping[str, NDArray[np.bool_]],
) -> FormalContext:
    """Assemble a context from distinct rows, all of which occur."""
    weights = np.bincount(row_of_record, minlength=len(rows))
    packed, order = make_context(rows, weights.astype(np.int64), len(attributes))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return FormalContext(packed, place[row_of_record], attributes, dict(scales), dict(conceivable))


def read_formal_context(table: pd.DataFrame, scales: Scales, model: ReleaseModel | None = None) -> FormalContext:
    """Turn a table into a formal context.

    Parameters
    ----------
    table : DataFrame
        One row per record; the index is ignored.
    scales : mapping of str to scale, or "binary"
        Scale of each column that an outsider may know, see
        :func:`~privacy_assets.columns.scales.read_scale`; other columns are ignored.
        ``"binary"``: the table is already a context, with boolean columns.
    model : ReleaseModel, optional
        For a table that :func:`~privacy_assets.anonymization.anonymize.anonymize` released: scales name the original
        columns, and a generalized cell has the attributes shared by all its values.

    Raises
    ------
    InvalidTableError, InvalidSettingError
        If there are no records, no attributes or too many, or columns are missing or do not fit their scale.
    """
    read = _read_scales(table, scales)
    masks: Mapping[str, Mask] = {} if model is None else model.masks
    _require_columns(table, read, masks)
    columns: dict[str, ScaledColumn] = {}
    problems: list[InvalidTableError | InvalidSettingError] = []
    for name, scale in read.items():
        try:
            columns[name] = scale_column(table, name, scale, masks.get(name))
        except (InvalidTableError, InvalidSettingError) as error:
            problems.append(error)
    if problems:
        raise type(problems[0])(" ".join(str(problem) for problem in problems)) from None
    return _join(columns, {name: scale.kind for name, scale in read.items()})


def _read_scales(table: pd.DataFrame, scales: Scales) -> dict[str, ConceptualScale]:
    require_unique_text_names(table)
    if isinstance(scales, str) and scales == "binary":
        scales = dict.fromkeys(table.columns, "binary")
    given: object = scales
    if not isinstance(given, Mapping):
        found = repr(given) if isinstance(given, str) else type_name(given)
        raise InvalidSettingError(f"scales is {found}. Expected a mapping of columns to scales, or 'binary'.")
    if not scales:
        raise InvalidSettingError("scales is empty. Expected at least one column.")
    read, problems = {}, []
    for name, setting in scales.items():
        try:
            read[name] = read_scale(setting)
        except InvalidSettingError as error:
            problems.append(f"Column {name!r}: {error}")
    if problems:
        raise InvalidSettingError(" ".join([*problems, "Nothing was assessed."]))
    return read


def _require_columns(table: pd.DataFrame, scales: Mapping[str, ConceptualScale], masks: Mapping[str, Mask]) -> None:
    needed = set(scales)
    for name in scales:
        mask = masks.get(name)
        if isinstance(mask, Interval | ValueSet):
            needed |= set(columns_of(mask))
    lacks = sorted(map(str, needed - set(table.columns)))
    if lacks:
        raise InvalidTableError(
            f"The scales and the release model name columns that the table does not have: {lacks}. It has "
            f"{list(table.columns)}. Nothing was assessed."
        )
    if len(table) == 0:
        raise InvalidTableError("The table has no rows. Expected at least one; an empty context has no concepts.")


def _join(columns: Mapping[str, ScaledColumn], scales: Mapping[str, str]) -> FormalContext:
    attributes = [
        Attribute(name if scales[name] == "binary" else f"{name} #{number}", name, label)
        for name, column in columns.items()
        for number, label in enumerate(column.labels, 1)
    ]
    n_of_column = {name: len(column.labels) for name, column in columns.items()}
    if not attributes:
        raise InvalidTableError(
            f"All cells of the columns {list(columns)} are missing, so the context has no attribute. Expected at "
            "least one cell that is not missing. Nothing was assessed."
        )
    if len(attributes) > MAX_ATTRIBUTES:
        largest = dict(sorted(n_of_column.items(), key=lambda item: -item[1])[:5])
        raise InvalidSettingError(
            f"The scales give {len(attributes)} attributes. Expected at most {MAX_ATTRIBUTES}. Most come from "
            f"{largest}: give these columns thresholds, windows or a hierarchy, or remove them. Nothing was assessed."
        )
    names = [attribute.name for attribute in attributes]
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise InvalidSettingError(
            f"Attributes would have the repeated names {repeated}: an attribute is named after its column, with a "
            "number. "
            "Rename the columns."
        )
    groups, n_rows = group_rows(
        [column.codes for column in columns.values()], [len(column.patterns) for column in columns.values()]
    )
    n_words = n_rows * (-(-len(attributes) // BITS))
    if n_words > MAX_WORDS:
        raise InvalidSettingError(
            f"The context has {n_rows} distinct rows of {len(attributes)} attributes, which take "
            f"{n_words * 8 / 2**30:.1f} GiB. Expected at most {MAX_WORDS * 8 / 2**30:.0f} GiB. Use coarser scales, or "
            "fewer columns. Nothing was assessed."
        )
    example = np.zeros(n_rows, np.int64)
    example[groups[::-1]] = np.arange(len(groups))[::-1]
    rows = pack_patterns(
        [column.codes[example] for column in columns.values()], [column.patterns for column in columns.values()]
    )
    conceivable = {name: column.conceivable for name, column in columns.items()}
    return _assemble(rows, groups, tuple(attributes), scales, conceivable)


def released_scales(
    table: Table,
    quasi_identifiers: Sequence[str],
    model: ReleaseModel,
    hierarchies: Mapping[str, Hierarchy] | None = None,
) -> dict[str, ConceptualScale]:
    """Return the scales that fit a released table: generalized for intervals and sets, hierarchies for nodes.

    Parameters
    ----------
    table : DataFrame
        Table released by :func:`~privacy_assets.anonymization.anonymize.anonymize`.
    quasi_identifiers : sequence of str
        Original columns that an outsider may know.
    model : ReleaseModel
        The model of the table.
    hierarchies : mapping of str to Hierarchy, optional
        Hierarchies of the release, by the names in the model.

    Notes
    -----
    All others are nominal, including nodes without a given hierarchy and intervals of ordered categories, which are
    released as text without order. An ordinal scale that lists all categories restores the order.
    """
    require_unique_names(list(table.columns))
    scales: dict[str, ConceptualScale] = {}
    for name in quasi_identifiers:
        mask = model.masks.get(name)
        has_order = isinstance(mask, Interval) and not isinstance(table[mask.low].dtype, pd.CategoricalDtype)
        scales[name] = Generalized() if has_order or isinstance(mask, ValueSet) else Nominal()
        if isinstance(mask, HierarchyMapping) and mask.hierarchy in (hierarchies or {}):
            scales[name] = Ancestors((hierarchies or {})[mask.hierarchy])
    return scales
