"""Values as YAML that PyYAML and Dagster (YAML 1.1) read back as the same values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from privacy_assets.columns.safe_names import type_name
from privacy_assets.errors import InvalidSettingError

NOT_TEXT: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
PLAIN_TEXT: Final = re.compile(r"[A-Za-z][\w./]*(?: [\w./]+)*", re.ASCII)
LONGEST_KEY: Final = 1000
"""YAML needs a question mark before longer keys."""


def in_yaml(value: Any) -> str:
    """Write text, a number, true, false, null, or a list or mapping of these in one line."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str):
        return value if PLAIN_TEXT.fullmatch(value) and value.casefold() not in NOT_TEXT else _quoted(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(entry_in_yaml(key, each, " ") for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(in_yaml, value)) + "]"
    if isinstance(value, float):
        # Without a point, YAML reads a number with an exponent as text.
        return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value)).replace("inf", ".inf").replace("nan", ".nan")
    if value is None or isinstance(value, int):
        return json.dumps(value)
    raise InvalidSettingError(f"A value of the type {type_name(value)} cannot be written in YAML. Expected plain data.")


def entry_in_yaml(name: Any, value: Any, after_long: str = "\n") -> str:
    """Write an entry of a mapping; a long name is followed by a line break, or a blank between braces."""
    key = in_yaml(name)
    return f"{key if len(key) <= LONGEST_KEY else f'? {key}{after_long}'}: {in_yaml(value)}"


def _quoted(text: str) -> str:
    letters = json.dumps(text, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else f"\\U{ord(letter):08x}" for letter in letters)
