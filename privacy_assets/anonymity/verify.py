"""Measurement of the protection of any table, from the table alone: k, alpha, l, t, beta and delta.

It uses nothing from the step that made the table: classes are sets of rows with equal quasi-identifiers, as a reader of
the table would find them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymity.divided_measures import measure_by
from privacy_assets.anonymity.kernels.measures import LARGEST_RECURSIVE_L, group_by_class
from privacy_assets.anonymity.report import AnonymityReport, ClassSizes, SensitiveReport
from privacy_assets.anonymity.worst_classes import CodedValues, MeasuredClasses, WorstClass, measure_all
from privacy_assets.columns.coding import (
    ORDERED_KINDS,
    ColumnValues,
    compact,
    count_codes,
    group_rows_of,
    numbers_of_people,
    read_column,
)
from privacy_assets.columns.column_names import require_unique_names
from privacy_assets.columns.safe_names import type_name
from privacy_assets.columns.spelling import spelled_alike
from privacy_assets.engine.protocol import Engine
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.kernels.numbers import number_type
from privacy_assets.setting_checks import is_integer
from privacy_assets.storage.coded_columns import code_stored, code_texts
from privacy_assets.storage.table import StoredTable, Table

# Entropies of equal shares differ from log(l) in their last bits; rounded to this, they give l.
ENTROPY_DECIMALS = 9
# Placeholders for booleans among labels of other kinds.
_TRUE, _FALSE = object(), object()
_Numbers: TypeAlias = "tuple[NDArray[np.signedinteger[Any]], int]"
"""A number from 0 for each row, and how many numbers there may be."""


def verify_anonymity(
    table: Table,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    *,
    subject: str | None = None,
    recursive_l: int = LARGEST_RECURSIVE_L,
    engine: Engine | None = None,
) -> AnonymityReport:
    """Measure the protection of a table, regardless of who anonymized it.

    Parameters
    ----------
    table : DataFrame
        Rows as released; the index is ignored. Omit suppressed rows: a pool of rows with ``*`` would count as a class.
    quasi_identifiers : sequence of str
        Columns that a reader may know about somebody, as released: numbers, text labels, categories, dates, or a mix,
        such as 1.5 and ``*``.
    sensitive : sequence of str
        Columns that must not become known.
    subject : str, optional
        Column with the person of each row; then people are counted as well as rows. All rows without a person count as
        one person.
    recursive_l : int
        Largest l for which recursive (c, l)-diversity is measured, at least 1.
    engine : LocalEngine or SparkEngine, optional
        Where classes are measured, each by one task; the result does not depend on it. Default: in this process, where
        rows get their classes in any case. If a sensitive column has as many values as a task has rows, all are
        measured in this process.

    Raises
    ------
    InvalidTableError
        If columns are missing, the table has no rows, or values cannot be compared.
    InvalidSettingError
        If no quasi-identifier is given, a column has two roles, or ``recursive_l`` is below 1.

    Notes
    -----
    Labels are compared exactly (0.1 + 0.2 differs from 0.3, as a reader can see; 0.0 equals -0.0). A missing value is
    only equal to itself. Unused categories are ignored. Sensitive texts are compared in one spelling: ``Flu`` and
    ``flu`` do not hide each other. l and t are computed for each sensitive column and count rows. All measures are
    necessary, not sufficient: they do not depend on how the table was made.
    """
    roles = {
        "quasi_identifiers": column_names(quasi_identifiers, "quasi_identifiers"),
        "sensitive": column_names(sensitive, "sensitive"),
    }
    check_roles(table, {**roles, "subject": () if subject is None else (subject,)})
    if not is_integer(recursive_l, 1):
        raise InvalidSettingError(
            f"`recursive_l` is {recursive_l!r}. Expected a whole number of at least 1. Nothing was computed."
        )
    grouped, values, (person, n_people) = _read(table, roles["quasi_identifiers"], roles["sensitive"], subject)
    coded = (column.coded(recursive_l) for column in values.values())
    if engine is None or not _can_divide(engine, list(values.values())):
        classes = group_by_class(*grouped)
        del grouped
        found = measure_all(classes, coded, person, n_people)
    else:
        found = measure_by(engine, *grouped, list(coded), person)
    return _report(found, values, roles["quasi_identifiers"], subject)


def _can_divide(engine: Engine, sensitive: Sequence[MeasuredColumn]) -> bool:
    """Return whether the counts of the values, which every task receives, are fewer than the rows of a task."""
    most = max((len(column.values.distinct) for column in sensitive), default=0)  # noqa: PD011 - not of pandas
    return engine.rows_per_task is not None and most < engine.rows_per_task


def _report(
    found: MeasuredClasses,
    values: Mapping[str, MeasuredColumn],
    quasi_identifiers: tuple[str, ...],
    subject: str | None,
) -> AnonymityReport:
    sizes, people, is_homogeneous, worst = found
    n_rows = int(sizes.sum())
    columns = {
        name: _figures(own, n_rows, is_ordered=column.is_ordered)
        for (name, column), own in zip(values.items(), worst, strict=True)
    }
    return AnonymityReport(
        quasi_identifiers,
        subject,
        n_rows,
        len(sizes),
        int(sizes.min()),
        None if people is None else int(people.min()),
        ClassSizes.of(sizes),
        None if people is None else ClassSizes.of(people),
        float(sizes[is_homogeneous].sum() / n_rows) if columns else None,
        columns,
    )


def _figures(worst: WorstClass, n_rows: int, *, is_ordered: bool) -> SensitiveReport:
    l_distinct = int(worst.n_values)
    largest_l = min(l_distinct, len(worst.recursive_c) - 1)
    return SensitiveReport(
        worst.largest_share,
        l_distinct,
        round(exp(worst.entropy), ENTROPY_DECIMALS),
        {l_: float(worst.recursive_c[l_]) for l_ in range(2, largest_l + 1)},
        worst.distance,
        "ordered" if is_ordered else "equal",
        worst.beta,
        worst.enhanced_beta,
        worst.delta,
        int(worst.n_incomplete),
        float(worst.n_homogeneous / n_rows),
        int(worst.n_values_of_table),
    )


@dataclass(frozen=True)
class MeasuredColumn:
    """A column as codes in the order of its values."""

    values: ColumnValues
    is_ordered: bool

    @classmethod
    def read(cls, column: pd.Series[Any], where: str) -> MeasuredColumn:
        """Read a sensitive column, texts in one spelling.

        Numbers, times, durations, periods, intervals and ordered categories are ordered.
        """
        values = read_column(spelled_alike(column), where)
        is_ordered = values.kind in ORDERED_KINDS
        if values.is_ranked:
            is_ordered = True
            values = ColumnValues("number", values.codes, np.arange(len(values.distinct)))
        if isinstance(column.dtype, pd.CategoricalDtype) and column.dtype.ordered:
            is_ordered = True
            # The codes are in the order of the categories.
            values = ColumnValues("number", values.codes, np.arange(len(values.distinct)))
        return cls(values, is_ordered)

    @classmethod
    def of(cls, table: Table, name: str) -> MeasuredColumn:
        """Read a column of a table; of a stored one, its values, and the code of each row."""
        if not isinstance(table, StoredTable):
            return cls.read(table[name], f"Column {name!r}")
        coded = code_stored(table, name)
        read = cls.read(coded.distinct, f"Column {name!r}")
        code_of = read.values.codes.astype(np.min_scalar_type(-1 - len(read.values.distinct)))  # noqa: PD011
        return replace(read, values=replace(read.values, codes=code_of[coded.codes]))

    @property
    def exact(self) -> tuple[NDArray[np.signedinteger[Any]], int]:
        """Consecutive codes from 0, missing last, and their number."""
        return compact(self.values.codes, len(self.values.distinct))

    @property
    def in_order(self) -> tuple[NDArray[np.signedinteger[Any]], int]:
        """As ``exact``, in the order of the values."""
        if not self.is_ordered:
            return self.exact
        distinct = self.values.distinct
        if self.values.offsets is not None:
            distinct = distinct - self.values.offsets.astype("timedelta64[s]")
        rank = np.empty(len(distinct) + 1, np.min_scalar_type(-1 - len(distinct)))
        rank[np.argsort(distinct, kind="stable")] = np.arange(len(distinct))
        rank[-1] = -1
        return compact(rank[self.values.codes], len(distinct))

    def coded(self, recursive_l: int) -> CodedValues:
        """Return the codes ``in_order``, and the other inputs for measures of classes with l up to ``recursive_l``."""
        codes, n_values = self.in_order
        totals = count_codes(codes, n_values)
        return CodedValues(codes, totals, self.is_ordered, min(int(recursive_l), n_values))


def _read(
    table: Table, quasi_identifiers: Sequence[str], sensitive: Sequence[str], subject: str | None
) -> tuple[_Numbers, dict[str, MeasuredColumn], _Numbers | tuple[None, int]]:
    """Read all columns, and group the rows by their labels; report all columns that cannot be compared at once.

    Returns the class of each row, the sensitive columns, and the person of each row if there is a subject.
    """
    values, problems = {}, []

    def labels() -> Iterator[_Numbers]:
        for name in quasi_identifiers:
            try:
                yield _label_codes(table, name)
            except InvalidTableError as error:
                problems.append(str(error))

    class_of_row, n_classes = group_rows_of(labels(), len(table))
    class_of_row = class_of_row.astype(number_type(len(table)), copy=False)
    people: _Numbers | tuple[None, int] = (None, 0)
    for name in [*sensitive, *([] if subject is None else [subject])]:
        try:
            if name == subject:
                people = _people_of(table, name)
            else:
                values[name] = MeasuredColumn.of(table, name)
        except InvalidTableError as error:
            problems.append(str(error))
    if problems:
        raise InvalidTableError(" ".join(problems))
    return (class_of_row, n_classes), values, people


def _people_of(table: Table, subject: str) -> _Numbers:
    """Return the number of the person of each row, and a number above all of them."""
    return numbers_of_people(table[subject]) or MeasuredColumn.of(table, subject).exact


def _label_codes(table: Table, name: str) -> _Numbers:
    """Give equal labels the same code; of a stored table, labels are compared once for all rows that have them."""
    if not isinstance(table, StoredTable):
        return _codes_of_labels(table[name], name)
    texts = code_texts(table, name)
    if texts is not None:
        return texts.codes, len(texts.texts) + 1
    coded = code_stored(table, name)
    codes, n_codes = _codes_of_labels(coded.distinct, name)
    return codes.astype(np.min_scalar_type(-1 - n_codes))[coded.codes], n_codes


def _codes_of_labels(column: pd.Series[Any], name: str) -> _Numbers:
    """Give equal labels the same code; a column may mix kinds, such as 1.5 or a date and ``*``."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return compact(column.cat.codes.to_numpy(), len(column.cat.categories))
    if column.dtype == object and pd.api.types.infer_dtype(column, skipna=True) in ("mixed", "mixed-integer"):
        labels = column.to_numpy(copy=True)
        for i, label in enumerate(labels):
            if isinstance(label, bool | np.bool_):
                labels[i] = _TRUE if label else _FALSE  # True is 1 to Python, but not to a reader
        try:
            codes, distinct = pd.factorize(labels)
        except TypeError:
            pass  # lists and the like, which the coding step refuses
        else:
            return compact(codes, len(distinct))
    values = read_column(column, f"Column {name!r}")
    return compact(values.codes, len(values.distinct))


def column_names(names: Sequence[str], argument: str) -> tuple[str, ...]:
    """Return names as a tuple; refuse a string, whose letters would be taken as names."""
    if isinstance(names, str):
        raise InvalidSettingError(f"`{argument}` is a string. Expected a list of column names. Nothing was computed.")
    return tuple(names)


def check_roles(table: Table, roles: Mapping[str, Sequence[str]]) -> None:
    """Check that a table has rows and all named columns, each in one role; the first argument names at least one."""
    if not isinstance(table, Table):
        raise InvalidTableError(f"The table is a {type_name(table)}. Expected a pandas DataFrame. Convert it first.")
    require_unique_names(list(table.columns))
    first = next(iter(roles))
    if not roles[first]:
        raise InvalidSettingError(f"`{first}` is empty. Expected at least one column. Nothing was computed.")
    for role, names in roles.items():
        unknown = [name for name in names if name not in table.columns]
        if unknown:
            raise InvalidTableError(
                f"`{role}` names columns the table does not have: {unknown}. It has {list(table.columns)}. Nothing was "
                "computed."
            )
    named = [name for names in roles.values() for name in names]
    repeated = sorted(name for name, n in Counter(named).items() if n > 1)
    if repeated:
        found = {name: [role for role, names in roles.items() for own in names if own == name] for name in repeated}
        raise InvalidSettingError(
            f"Columns are named more than once: {found}. Expected every column in one role. Nothing was computed."
        )
    if len(table) == 0:
        raise InvalidTableError("The table has no rows. Expected at least one row; an empty table has no classes.")
