"""Rows of Arrow as frames: every value is kept, and dtypes do not depend on which values are missing."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd
import pyarrow as pa

from privacy_assets.columns.column_names import positions
from privacy_assets.errors import InvalidTableError

_NULLABLE: Final[dict[pa.DataType, Any]] = {
    # Integers and booleans with missing values must not become floats and objects.
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def as_frame(table: pa.Table) -> pd.DataFrame:
    """Return rows as a frame.

    Raises
    ------
    InvalidTableError
        If columns have types or values that pandas cannot store.
    """
    # Objects of dates end in the year 9999.
    kinds = [pa.timestamp("s") if pa.types.is_date(kind) else kind for kind in table.schema.types]
    table = pa.table([column.cast(kind) for column, kind in zip(table.columns, kinds, strict=True)], table.column_names)
    frame = _converted(table)
    if frame is None:
        unreadable = [place for place in range(table.num_columns) if _converted(table.select([place])) is None]
        types = sorted({str(kinds[place]).partition("[")[0] for place in unreadable})
        raise InvalidTableError(
            f"{len(unreadable)} columns cannot be read ({positions(unreadable)}): pandas does not have their types, "
            f"time zones or values ({types}). Expected single values. Nothing was read; convert or remove them."
        )
    return frame


def _converted(table: pa.Table) -> pd.DataFrame | None:
    mapper: Any = _NULLABLE.get
    try:
        # The metadata of pandas would make a column of the table its index.
        frame: pd.DataFrame = table.to_pandas(types_mapper=mapper, split_blocks=True, ignore_metadata=True)
        return frame
    except (pa.ArrowException, ValueError, TypeError, LookupError, OverflowError, AttributeError):
        return None


def as_series(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column of pandas that Arrow stores in the dtype that `as_frame` gives its values."""
    return as_frame(pa.table({"column": pa.Array.from_pandas(column)}))["column"]
