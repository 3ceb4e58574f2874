"""The public domain of a table: the values that a column can have, known without looking at any record.

It comes from the contract alone: categories, lists of values, and ranges, which the owner of the table declares. A
value that occurs in the table must not change the domain, or the domain would reveal it. Numbers and datetimes are
divided into bins of equal width, or at declared values. A missing value is a separate code.

Every value has a code: a value outside the domain is moved to its nearest end or its first category. An error would
reveal that such a record exists.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import pandera.pandas as pa
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.conversion import TEXT_DTYPE
from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import is_integer, is_number

DEFAULT_BINS: Final = 32
MAX_BINS: Final = 10_000
MAX_VALUES: Final = 20_000
LARGEST_WHOLE: Final = 2**62
UNDONE: Final = "No record was read."

DomainKind = Literal["values", "integer", "float", "datetime"]


@dataclass(frozen=True)
class PublicColumn:
    """Codes and values of one column.

    ``kind`` is ``"values"`` for a list of ``values``, else the kind of the numbers in the bins between ``edges``,
    ascending. The last end is in the last bin for floats, but not for integers and datetimes (microseconds since 1970
    in UTC). If ``nullable``, the last code is that of a missing value.
    """

    name: str
    kind: DomainKind
    dtype: Any
    values: tuple[Any, ...]
    edges: tuple[float, ...]
    decimals: int | None
    nullable: bool

    @property
    def n_present(self) -> int:
        """Number of codes of values that are not missing."""
        return len(self.values) if self.kind == "values" else len(self.edges) - 1

    @property
    def n_codes(self) -> int:
        """Number of codes."""
        return self.n_present + self.nullable

    def encode(self, column: pd.Series) -> NDArray[np.int64]:
        """Return the code of each value; never raises for any value."""
        if self.kind == "values":
            codes = self._encode_values(column)
        else:
            numbers = self._as_numbers(column)
            places = np.searchsorted(np.asarray(self.edges, dtype=np.float64), numbers, side="right") - 1
            codes = np.where(np.isnan(numbers), -1, np.clip(places, 0, self.n_present - 1))
        missing = codes < 0
        return np.where(missing, self.n_present if self.nullable else 0, codes).astype(np.int64)

    def decode(self, codes: NDArray[np.int64], random: np.random.Generator) -> pd.Series:
        """Return a value for each code: within a bin, all are equally likely."""
        missing = codes >= self.n_present
        present = np.where(missing, 0, codes)
        if self.kind == "values":
            if isinstance(self.dtype, pd.CategoricalDtype):
                return pd.Series(pd.Categorical.from_codes(np.where(missing, -1, codes), dtype=self.dtype))
            values = pd.Series(np.array([*self.values, None], dtype=object)[np.where(missing, -1, codes)])
            return values.astype(self.dtype)
        edges = np.asarray(self.edges)
        low, high = edges[present], edges[present + 1]
        if self.kind == "float":
            drawn = low + (high - low) * random.random(len(codes))
            drawn = drawn if self.decimals is None else np.round(drawn, self.decimals)
            clipped = pd.Series(np.clip(drawn, edges[0], edges[-1]))
            return clipped.mask(missing).astype(self.dtype)
        whole = pd.Series(random.integers(low, high))
        if self.kind == "integer":
            return whole.astype("Int64").mask(missing).astype(self.dtype)
        zone = getattr(self.dtype, "tz", None)
        times = pd.Series(whole.to_numpy().astype("datetime64[us]")).mask(missing)
        return times.astype(self.dtype) if zone is None else times.dt.tz_localize("UTC").astype(self.dtype)

    def _encode_values(self, column: pd.Series) -> NDArray[np.int64]:
        """Return the position of each value in `values`, -1 for a missing one, 0 for one that is not among them."""
        place = {value: code for code, value in enumerate(self.values)}

        def code_of(value: object) -> int:
            try:
                return place.get(value, 0)
            except TypeError:
                return 0

        if isinstance(column.dtype, pd.CategoricalDtype):
            of_categories = np.array([*map(code_of, column.cat.categories), -1], dtype=np.int64)
            return of_categories[column.cat.codes.to_numpy()]
        missing = column.isna().to_numpy(dtype=bool)
        codes = np.fromiter(map(code_of, column.astype(object)), dtype=np.int64, count=len(column))
        return np.where(missing, -1, codes)

    def _as_numbers(self, column: pd.Series) -> NDArray[np.float64]:
        """Return numbers, or microseconds since 1970 in UTC; NaN for all other values."""
        if self.kind != "datetime":
            return pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        if not types.is_datetime64_any_dtype(column.dtype):
            values = column.astype(object)
            column = values.where(values.map(lambda value: isinstance(value, str | dt.date | np.datetime64)), None)
        # Without a format, the first text would determine how the texts of all other people are read.
        times = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True).astype("datetime64[us, UTC]")
        micros = times.dt.tz_localize(None).to_numpy(dtype="datetime64[us]").astype(np.int64).astype(np.float64)
        return np.where(times.isna().to_numpy(dtype=bool), np.nan, micros)


@dataclass(frozen=True)
class PublicDomain:
    """The columns of a table, with their codes and values.

    Attributes
    ----------
    columns : tuple of PublicColumn
        In the order of the table.
    """

    columns: tuple[PublicColumn, ...]

    @classmethod
    def from_contract(
        cls,
        contract: TableContract,
        *,
        bins: int = DEFAULT_BINS,
        bin_starts: Mapping[str, Sequence[float | str]] | None = None,
    ) -> PublicDomain:
        """Take the domain of the released columns from their contract.

        Parameters
        ----------
        contract : TableContract
            Its categories, lists of values and ranges are assumed to be public.
        bins : int
            Bins of a range of numbers or datetimes, 1 to `MAX_BINS`; a range of fewer integers has one for each.
        bin_starts : mapping of str to sequence, optional
            First value of each bin by column, instead of bins of equal width. The first bin starts at the smallest
            value of the contract, the last ends at its largest. They must not be chosen by looking at the table.

        Raises
        ------
        InvalidSettingError
            If a released column does not have a public domain, or an argument is wrong; all such columns are listed.
        """
        if not is_integer(bins, 1, MAX_BINS):
            raise InvalidSettingError(f"`bins` is {bins!r}; expected a whole number from 1 to {MAX_BINS}. {UNDONE}")
        starts = dict(bin_starts or {})
        released = contract.released_columns
        problems = [f"{name!r} has `bin_starts`, but is not released" for name in starts if name not in released]
        described = {str(each["column"]): each for each in contract.describe()}
        columns = []
        for name in released:
            label = str(described[name]["type"])
            made = _column(contract.schema.columns[name], label, bins, starts.get(name), contract.precisions.get(name))
            if isinstance(made, str):
                problems.append(f"{name!r} {made}")
            else:
                columns.append(made)
        if problems:
            raise InvalidSettingError(
                f"The contract does not give a public domain for {len(problems)} columns: {'; '.join(problems)}. A "
                f"domain that is read from the table would reveal who is in it. {UNDONE}"
            )
        return cls(tuple(columns))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes of each column."""
        return tuple(column.n_codes for column in self.columns)

    def encode(self, table: pd.DataFrame) -> NDArray[np.int64]:
        """Return the codes of a table, one row per record.

        Raises
        ------
        InvalidSettingError
            If columns are missing, which does not reveal anything about a record.
        """
        require_unique_text_names(table)
        absent = [name for name in self.names if name not in table.columns]
        if absent:
            raise InvalidSettingError(f"The table lacks the columns {absent} of the public domain. {UNDONE}")
        codes = np.empty((len(table), len(self.columns)), dtype=np.int64)
        for place, column in enumerate(self.columns):
            codes[:, place] = column.encode(table[column.name])
        return codes

    def decode(self, codes: NDArray[np.int64], random: np.random.Generator) -> pd.DataFrame:
        """Return records with the given codes."""
        return pd.DataFrame({each.name: each.decode(codes[:, i], random) for i, each in enumerate(self.columns)})


def _column(schema: pa.Column, label: str, bins: int, starts: object, precision: object) -> PublicColumn | str:
    """Return the domain of a column, or the problem with its contract."""
    name, nullable = str(schema.name), bool(schema.nullable)
    if schema.unique:
        return "must be unique, which cannot be promised for records drawn at random"
    kind = _kind(label)
    allowed = _allowed(schema, kind)
    if allowed is not None:
        if starts is not None:
            return "has both a list of values and `bin_starts`"
        if len(allowed) > MAX_VALUES:
            return f"has {len(allowed)} values, more than {MAX_VALUES}: group them in the table first"
        dtype = schema.dtype.type if kind == "category" else TEXT_DTYPE if kind == "text" else label
        if kind == "category" and getattr(dtype, "categories", None) is None:
            dtype = pd.CategoricalDtype(list(allowed))
        return PublicColumn(name, "values", dtype, allowed, (), None, nullable)
    if kind not in ("integer", "float", "datetime"):
        return f"is {'text' if kind == 'text' else 'a category'} without a list of its values in the contract"
    low, high = _range(schema, kind)
    if low is None or high is None:
        return "lacks `min` or `max` in the contract"
    if max(abs(low), abs(high)) > LARGEST_WHOLE:
        return "has a range that is too wide"
    found = _equal_edges(kind, low, high, bins) if starts is None else _edges_from(kind, low, high, starts)
    if isinstance(found, str):
        return found
    dtype = pd.api.types.pandas_dtype(label)
    decimals = int(precision) if kind == "float" and is_integer(precision) else None
    return PublicColumn(name, kind, dtype, (), found, decimals, nullable)  # type: ignore[arg-type]


def _kind(label: str) -> str:
    kinds = {"int64": "integer", "Int64": "integer", "float64": "float", "bool": "boolean", "boolean": "boolean"}
    named = {"str": "text", "category": "category"}
    return "datetime" if label.startswith("datetime64") else {**kinds, **named}[label]


def _allowed(schema: pa.Column, kind: str) -> tuple[Any, ...] | None:
    """Return the values that the contract allows, if it lists them."""
    listed = [check.statistics["allowed_values"] for check in schema.checks if check.name == "isin"]
    if listed:
        return tuple(dict.fromkeys(value for value in listed[0] if all(value in other for other in listed)))
    if kind == "boolean":
        return (False, True)
    categories = getattr(getattr(schema.dtype, "type", None), "categories", None)
    return None if kind != "category" or categories is None else tuple(categories)


def _range(schema: pa.Column, kind: str) -> tuple[float | None, float | None]:
    """Return the smallest and the largest value that the checks of a column allow; microseconds for datetimes."""
    lows, highs = [], []
    for check in schema.checks:
        bounds = check.statistics or {}
        strict_low = check.name == "greater_than" or bounds.get("include_min") is False
        strict_high = check.name == "less_than" or bounds.get("include_max") is False
        if bounds.get("min_value") is not None:
            lows.append(_moved(_number(bounds["min_value"], kind), kind, 1, strict_low))
        if bounds.get("max_value") is not None:
            highs.append(_moved(_number(bounds["max_value"], kind), kind, -1, strict_high))
    return max(lows, default=None), min(highs, default=None)


def _number(bound: Any, kind: str) -> float:
    if kind != "datetime":
        return int(bound) if kind == "integer" and float(bound).is_integer() else float(bound)
    time = pd.Timestamp(bound)
    time = time if time.tz is None else time.tz_convert("UTC").tz_localize(None)
    return int(time.as_unit("us").asm8.astype(np.int64))


def _moved(bound: float, kind: str, direction: int, is_strict: bool) -> float:
    """Return the nearest value of the kind that a bound allows; values are in `direction` (1 or -1) from it."""
    if kind == "float":
        return float(np.nextafter(bound, np.inf * direction)) if is_strict else bound
    whole = int(np.ceil(bound) if direction > 0 else np.floor(bound)) if isinstance(bound, float) else bound
    return whole + direction if is_strict and whole == bound else whole


def _equal_edges(kind: str, low: float, high: float, bins: int) -> tuple[float, ...]:
    if kind == "float":
        return tuple(np.linspace(low, high, bins + 1).tolist()) if high > low else (low, high)
    n_values = int(high) - int(low) + 1
    n_bins = min(bins, n_values)
    return tuple(int(low) + n_values * place // n_bins for place in range(n_bins + 1))


def _edges_from(kind: str, low: float, high: float, starts: object) -> tuple[float, ...] | str:
    """Return the ends of the bins that start at the owner's values."""
    wrong = "has `bin_starts` that are not an ascending list that begins with its `min` and stays within its `max`"
    if isinstance(starts, str) or not isinstance(starts, Sequence) or not starts:
        return wrong
    try:
        numbers = [_number(start, kind) for start in starts]
    except (TypeError, ValueError, OverflowError):
        return wrong
    whole = kind == "float" or all(is_integer(number) for number in numbers)
    is_right = whole and all(is_number(number) for number in numbers) and all(a < b for a, b in pairwise(numbers))
    if not is_right or numbers[0] != low or numbers[-1] > high or (kind == "float" and numbers[-1] == high != low):
        return wrong
    return (*numbers, high if kind == "float" else high + 1)
