"""Hierarchy files in the ARX format: one row per value, with its levels from left to right."""

from __future__ import annotations

import csv
import re
from os import PathLike

from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import local_path

_NO_SEPARATORS = ('"', "\n", "\r")
# A quoted cell, after the start of a row or a separator.
_QUOTED = re.compile(r'(?:^|(?<=[;,]))"(?:[^"]|"")*"')


def read_arx_csv(path: str | PathLike[str], separator: str | None, name: str) -> list[tuple[str, ...]]:
    """Read the rows of a file of UTF-8 text.

    The default separator is ``;`` if the first row has one outside of quotes, else ``,``. Rows that cannot be read are
    counted, and refused.
    """
    if not isinstance(path, str | PathLike):
        raise InvalidSettingError(f"arx_csv is of the type {type(path).__name__}. Expected the path of a file.")
    is_character = isinstance(separator, str) and len(separator) == 1 and separator not in _NO_SEPARATORS
    if separator is not None and not is_character:
        raise InvalidSettingError(
            f"The separator of a hierarchy is {separator!r}. Expected one character other than a quote or line end, "
            "such as ';'."
        )
    file = local_path(path, "arx_csv")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise InvalidSettingError(f"{name} cannot be read: {type(error).__name__}. Check the path.") from None
    lines = [line for line in text.split("\n") if line.strip()]
    if separator is None:
        separator = ";" if lines and ";" in _QUOTED.sub("", lines[0]) else ","
    rows, n_unread = [], 0
    for line in lines:
        # One by one, because an unclosed quote would include the following rows.
        try:
            row = next(csv.reader([line], delimiter=separator, strict=True))
        except csv.Error:
            n_unread += 1
        else:
            rows.append(tuple(cell.strip() for cell in row))
    if n_unread:
        raise InvalidSettingError(
            f"{name} has {n_unread} rows of {len(lines)} that cannot be read: a quote that is not closed in its row, "
            f"text after a closing quote, or a cell of more than {csv.field_size_limit()} characters. Expected a row "
            "per line. Close the quotes, double quotes inside values, and remove line ends from values."
        )
    return rows
