"""The values of columns in one Arrow type for each kind of value, regardless of how pandas stores them."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privacy_assets.columns.safe_names import dtype_name
from privacy_assets.errors import InvalidTableError


def canonical_array(name: str, column: pd.Series) -> pa.Array:
    """Return the values of a column for a file, in one type for each kind of value; texts are a dictionary."""
    array = canonical_or_dictionary(name, column)
    return array.dictionary_encode() if pa.types.is_large_string(array.type) else array


def canonical_or_dictionary(name: str, column: pd.Series) -> pa.Array:
    """Return the values of a column for the fingerprint, in one type for each kind of value.

    Categories of texts are a dictionary, other texts are not.
    """
    try:
        texts = _texts_of_categories(column)
        if texts is not None:
            return texts
        if isinstance(column.dtype, pd.CategoricalDtype):
            column = _values_of_categories(column)
        array = pa.Array.from_pandas(column)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_timestamp(array.type):
            return _canonical_datetimes(array)
        return array.cast(canonical_type(array.type))
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    raise InvalidTableError(
        f"Column {name!r} has values of several kinds, or of a kind that the Parquet files here cannot store (dtype "
        f"{dtype_name(column.dtype)}). Expected integers, floats, booleans, text, categories, dates, datetimes or "
        "durations; convert the column first."
    )


def _texts_of_categories(column: pd.Series) -> pa.DictionaryArray | None:
    """Return categories of texts in Arrow's storage; None for a column of another kind."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return None
    categories, codes = column.cat.categories, column.cat.codes.to_numpy()
    if categories.dtype == object:
        # Only the values that occur determine the kind of the column.
        used = np.flatnonzero(np.bincount(codes[codes >= 0]))
        categories = categories[used]
        if pd.api.types.infer_dtype(categories, skipna=False) != "string":
            return None
        # The last position is that of the code -1, a missing value.
        places = np.full(len(column.cat.categories) + 1, -1)
        places[used] = np.arange(len(used))
        codes = places[codes]
    elif not isinstance(categories.dtype, pd.StringDtype) or not len(categories):
        return None
    texts = pa.array(categories, from_pandas=True)
    texts = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    indices = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(indices, texts.cast(pa.large_string()))


def _values_of_categories(column: pd.Series) -> pd.Series:
    kind = column.cat.categories.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        raise TypeError(kind)  # Parquet returns their categories in another type.
    if pd.api.types.is_integer_dtype(kind):
        # By codes, because `astype` turns integers into floats if values are missing, which merges large ones.
        integers = column.cat.categories.astype("Int64").array
        return pd.Series(integers.take(column.cat.codes.to_numpy(), allow_fill=True), column.index)
    return column.astype(object if pd.api.types.is_bool_dtype(kind) or not len(column.cat.categories) else kind)


def canonical_type(kind: pa.DataType) -> pa.DataType:
    """Return the one type for a kind of value other than datetimes; TypeError if it has no fingerprint."""
    if pa.types.is_unsigned_integer(kind):
        return pa.uint64() if kind == pa.uint64() else pa.int64()
    for matches, canonical in (
        (pa.types.is_integer, pa.int64()),
        (pa.types.is_floating, pa.float64()),
        (pa.types.is_boolean, pa.bool_()),
        (pa.types.is_string, pa.large_string()),
        (pa.types.is_large_string, pa.large_string()),
        (pa.types.is_string_view, pa.large_string()),
        (pa.types.is_date, pa.date32()),
        (pa.types.is_duration, pa.duration("ns")),
        (pa.types.is_null, pa.null()),
    ):
        if matches(kind):
            return canonical
    raise TypeError(kind)


def _canonical_datetimes(array: pa.Array) -> pa.Array:
    try:
        return array.cast(pa.timestamp("ns", array.type.tz))
    except pa.ArrowInvalid:
        # Nanoseconds end in the year 2262; columns beyond this range cannot have fractions of a microsecond.
        return array.cast(pa.timestamp("us", array.type.tz))


def value_bytes(column: pa.Array) -> tuple[Any, Any, Any]:
    """Return the values of a column in its canonical type as bytes: which are present, lengths of texts, the values."""
    valid = _presence(column)
    present = column.drop_null() if column.null_count else column
    if pa.types.is_null(column.type):
        return valid, b"", b""
    if pa.types.is_large_string(column.type):
        lengths = pc.binary_length(present).cast(pa.int64())
        return valid, lengths.to_numpy(zero_copy_only=False), _characters(present)
    if pa.types.is_floating(column.type):
        # -0.0 and 0.0 are equal to every reader; adding 0.0 gives them the same bit pattern.
        present = pc.add(present, 0.0)
    if pa.types.is_temporal(column.type):
        present = present.view(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    if pa.types.is_boolean(column.type):
        present = present.cast(pa.uint8())
    return valid, b"", np.ascontiguousarray(present.to_numpy(zero_copy_only=False))


def _presence(column: pa.Array) -> NDArray[np.uint8]:
    if not column.null_count:
        return np.ones(len(column), np.uint8)
    return np.asarray(pc.is_valid(column).cast(pa.uint8()).to_numpy(zero_copy_only=False))


def _characters(texts: pa.LargeStringArray) -> Any:
    offsets = memoryview(texts.buffers()[1]).cast("q")
    start, stop = offsets[texts.offset], offsets[texts.offset + len(texts)]
    return b"" if texts.buffers()[2] is None else memoryview(texts.buffers()[2])[start:stop]
