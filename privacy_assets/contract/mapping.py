"""Contracts as plain data (YAML, JSON): keys, types, and the resulting pandera schema.

::

    columns:
      patient: {type: text, role: direct_identifier, person: true}
      age:     {type: integer, role: quasi_identifier, min: 0, max: 120}
      sex:     {type: category, role: quasi_identifier, categories: [female, male]}
      visits:  {type: integer, role: sensitive, nullable: true, min: 0}

If each person has one row, no column is the person, and ``one_row_per_person: true`` stands next to ``columns``.
Rules across columns stand there, too: ``rules: {order: discharged >= admitted}``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pandas as pd
import pandera.pandas as pa

from privacy_assets.contract.written_values import FORMAT_KEYS
from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import is_integer, is_number

TYPES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("integer", "int", "int64"), "int64"),
    "Int64": "Int64",
    **dict.fromkeys(("float", "number", "float64"), "float64"),
    "boolean": "boolean",
    "bool": "bool",
    **dict.fromkeys(("text", "string", "str"), "str"),
    "category": "category",
    **dict.fromkeys(("datetime", "datetime64[ns]", "datetime64[us]"), "datetime64[ns]"),
}
"""Types by their names in a mapping; ``datetime64[us, <time zone>]`` is also supported."""

METADATA: Final = (
    *("role", "precision", "hierarchy", "scale", "person", "weight", "part_of", "invented"),
    *("leaves_as_is", "not_a_person", "links_rows"),
    *FORMAT_KEYS,
)
COLUMN_KEYS: Final = (
    *("type", "nullable", "unique", "min", "max", "categories", "isin", "ordered", "description"),
    *METADATA,
)
REASONS: Final[Mapping[str, str]] = {
    "leaves_as_is": "why it may be released unchanged",
    "not_a_person": "what its values number",
    "links_rows": "why the rows of a person may be released together",
}
"""Keys whose values are reasons, and what these say."""
ONE_ROW_PER_PERSON: Final = "one_row_per_person"
"""Key next to the columns: no person has several rows."""
RULES: Final = "rules"
"""Key next to the columns: rules across columns (`privacy_assets.contract.rules`), by name."""
DRAFTED: Final = "drafted"
"""Key of a contract that was drafted from a table, and whose roles are not decided yet."""
DECIDE: Final = "decide"
"""Value of a key that a person has to decide."""
MOST_NAMED: Final = 20
"""Columns that a message names; the others are counted."""
FLAGS: Final = ("nullable", "unique", "ordered")


def schema_from_mapping(mapping: Mapping[str, Any]) -> pa.DataFrameSchema:
    """Build the schema described by `mapping`.

    A draft is refused, and so are unknown keys and types, and wrong values, all at once.
    """
    if not isinstance(mapping, Mapping) or not isinstance(mapping.get("columns"), Mapping):
        raise InvalidSettingError("A contract is a mapping with the key 'columns': a mapping of names to descriptions.")
    _require_decided(mapping)
    known = ("columns", DRAFTED, ONE_ROW_PER_PERSON, RULES)
    problems = [f"unknown key {str(key)!r} next to 'columns'" for key in mapping if key not in known]
    columns = {}
    for name, description in mapping["columns"].items():
        own = _problems(description)
        problems += [f"column {str(name)!r} {problem}" for problem in own]
        if not own:
            columns[name], wrong = _column(description)
            problems += [f"column {str(name)!r} {problem}" for problem in wrong]
    if problems:
        raise InvalidSettingError(f"The contract cannot be read ({len(problems)} problems): {'; '.join(problems)}.")
    unit = {key: mapping[key] for key in (ONE_ROW_PER_PERSON, RULES) if key in mapping}
    return pa.DataFrameSchema(columns, strict=True, metadata=unit)


def _require_decided(mapping: Mapping[str, Any]) -> None:
    """Refuse a draft: roles are decisions, and these were not made yet."""
    columns = {str(name): own for name, own in mapping["columns"].items() if isinstance(own, Mapping)}
    is_open = [
        name for name, own in columns.items() if DECIDE in [each for each in own.values() if isinstance(each, str)]
    ]
    if mapping.get(ONE_ROW_PER_PERSON) == DECIDE:
        is_open.append(ONE_ROW_PER_PERSON)
    is_drafted = mapping.get(DRAFTED, False)
    if is_drafted is False and not is_open:
        return
    said = [f"{some_names(is_open)} still have `{DECIDE}` as a value: replace it"] if is_open else []
    if is_drafted is not False:
        said.append(
            f"the roles of {some_names([name for name in columns if name not in is_open])} are proposals: read them, "
            f"correct them, and then remove the key `{DRAFTED}`"
        )
    raise InvalidSettingError(f"The contract is a draft that is not decided yet: {'; '.join(said)}. Nothing was read.")


def some_names(names: Sequence[str]) -> str:
    """List the first names, and count the others."""
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return f"{list(names[:MOST_NAMED])}{more}"


def _problems(description: object) -> list[str]:
    if not isinstance(description, Mapping):
        return ["is not described by a mapping such as {type: integer, role: other}"]
    problems = []
    unknown = sorted(str(key) for key in description if key not in COLUMN_KEYS)
    if unknown:
        problems.append(f"has unknown keys {unknown}; there are {list(COLUMN_KEYS)}")
    kind = description.get("type")
    if kind is None:
        problems.append(f"has no type; there are {sorted(TYPES)}")
    elif _dtype(kind) is None:
        problems.append(f"has the unknown type {kind!r}; there are {sorted(TYPES)} and 'datetime64[us, <time zone>]'")
    problems += [
        f"has a {key!r} that is not true or false" for key in FLAGS if not isinstance(description.get(key, False), bool)
    ]
    if not isinstance(description.get("description", ""), str):
        problems.append("has a 'description' that is not text")
    if "categories" in description and "isin" in description:
        problems.append("has both 'categories' and 'isin', which have the same meaning")
    allowed = _allowed(description)
    if allowed is not None and (isinstance(allowed, str) or not isinstance(allowed, list | tuple) or not allowed):
        problems.append("has 'categories' that are not a list of values")
    elif allowed is not None and _dtype(kind) == "category" and not _are_categories(allowed):
        problems.append("has 'categories' that are not different texts or whole numbers; put others in quotation marks")
    if "ordered" in description and _dtype(kind) != "category":
        problems.append("is 'ordered', which only a category can be")
    return problems


def _column(description: Mapping[str, Any]) -> tuple[pa.Column, list[str]]:
    dtype = _dtype(description["type"])
    allowed = _allowed(description)
    checks, problems = _bounds(description, str(dtype))
    if dtype == "category" and allowed is not None:
        shape: Any = pa.Category(categories=list(map(str, allowed)), ordered=description.get("ordered", False))
    else:
        shape = dtype
        checks += [] if allowed is None else [pa.Check.isin(list(allowed))]
    metadata = {key: description[key] for key in METADATA if key in description}
    flags = {key: description.get(key, False) for key in ("nullable", "unique")}
    text = description.get("description")
    return pa.Column(shape, checks=checks, metadata=metadata, description=text, **flags), problems


def _bounds(description: Mapping[str, Any], dtype: str) -> tuple[list[pa.Check], list[str]]:
    checks, problems, bounds = [], [], {}
    for key, check in (("min", pa.Check.ge), ("max", pa.Check.le)):
        if description.get(key) is None:
            continue
        bound = _bound(description[key], dtype)
        if bound is None:
            problems.append(f"has a {key!r} that its type {description['type']!r} cannot be compared with")
        else:
            checks.append(check(bound))
            bounds[key] = bound
    if len(bounds) == 2 and bounds["min"] > bounds["max"]:
        problems.append("has a 'min' above its 'max'")
    return checks, problems


def _bound(value: Any, dtype: str) -> Any:
    """Return a bound with which a column of `dtype` can be compared; None if the bound is not given."""
    if dtype.startswith("datetime"):
        zone = getattr(pd.api.types.pandas_dtype(dtype), "tz", None)
        try:
            bound: Any = pd.Timestamp(str(value))
        except ValueError:
            return None
        if pd.isna(bound):
            return None
        return bound if zone is None else bound.tz_localize(zone) if bound.tz is None else bound.tz_convert(zone)
    return value if is_number(value, plain=True) and dtype.lower() in {"int64", "float64"} else None


def _allowed(description: Mapping[str, Any]) -> Any:
    return description.get("categories", description.get("isin"))


def _are_categories(allowed: Sequence[Any]) -> bool:
    are_known = all(isinstance(each, str) or is_integer(each) for each in allowed)
    return are_known and len(set(map(str, allowed))) == len(allowed)


def _dtype(name: object) -> str | None:
    if not isinstance(name, str):
        return None
    if name in TYPES:
        return TYPES[name]
    if not name.startswith("datetime64[") or "," not in name:
        return None
    try:
        return str(pd.DatetimeTZDtype.construct_from_string(name))
    except (TypeError, ValueError, KeyError):
        return None
