"""Safe names for classes and dtypes, whose own names can contain a cell."""

from functools import cache
from typing import Any
from zoneinfo import available_timezones

import numpy as np
import pandas as pd

from privacy_assets.own_code import LIBRARIES, found_under, library_of, written_names

NAMED_LIBRARIES = LIBRARIES | {
    *("_duckdb", "botocore", "dask", "duckdb", "httpx", "polars", "psycopg", "pyspark", "requests", "sklearn"),
    *("snowflake", "sqlalchemy", "urllib3", "yaml"),
}
"""Libraries whose class names are fixed by their authors."""
PLAIN_DTYPES = (
    *(pd.Int8Dtype, pd.Int16Dtype, pd.Int32Dtype, pd.Int64Dtype, pd.Float32Dtype, pd.Float64Dtype, pd.BooleanDtype),
    *(pd.UInt8Dtype, pd.UInt16Dtype, pd.UInt32Dtype, pd.UInt64Dtype, pd.CategoricalDtype, pd.StringDtype),
    pd.PeriodDtype,
)


def class_name(cls: type) -> str:
    """Return the name of a class of a known library, or of its base class in one.

    A class defined elsewhere can have any name, such as a cell of the table for which it was made.
    """
    for each in type.__dict__["__mro__"].__get__(cls):
        module, name = written_names(each)
        if found_under(each, module, name) and library_of(module) in NAMED_LIBRARIES:
            return str(name) if each is cls else f"subclass of {name}"
    return "object"


def type_name(value: object) -> str:
    """Return `class_name` of the type of a value."""
    return class_name(type(value))


def dtype_name(dtype: Any) -> str:
    """Return a safe name of a dtype; categories, fields, fill values and names of time zones can be cells."""
    if type(dtype) in PLAIN_DTYPES:
        return str(dtype)
    if isinstance(dtype, np.dtype):
        return "structured" if dtype.names is not None else str(dtype)
    if type(dtype) is pd.DatetimeTZDtype:
        zone = str(dtype.tz) if str(dtype.tz) in _time_zones() else "with a time zone"
        return f"datetime64[{dtype.unit}, {zone}]"
    return type_name(dtype)


@cache
def _time_zones() -> set[str]:
    return available_timezones()
