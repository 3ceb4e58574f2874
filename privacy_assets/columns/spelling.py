"""One spelling of texts for comparison: what a program or a person takes for the same value.

Whoever receives a table can undo how it is written, so risks are not measured letter by letter. Only comparisons use
this form; values that are released, fitted, anonymized or analyzed stay as they are written.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Context, Decimal
from functools import lru_cache
from html import unescape
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import ColumnValues, EncodedColumn, encode_column
from privacy_assets.columns.factorizing import factorize, has_very_many_texts, number_by_appearance

SPELLING: Final = "canonical/1"
"""Version of the rules of `canonical`, which assessments record."""
MISSING_WORDS: Final = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "nat"})
"""What programs write for a missing value. What people write, such as ``unknown``, may be a value."""
LONGEST_NUMBER: Final = 39
MAY_HAVE_TEXTS: Final = "O"
"""Kind of the dtypes of texts, categories and objects."""
SPELLED_AT_ONCE: Final = 2**16

_NUMBER = re.compile(r"[+-]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d{1,3})?").fullmatch
_SHORT_COMMA = re.compile(r"([+-]?[1-9]\d{0,2}),(\d{3})").fullmatch
_THOUSANDS = re.compile(r"(?<=\d)[,.' ](?=\d{3}(?!\d))")
_BETWEEN = re.compile(r"[\W_]+")
_FIRST_OF_NUMBERS = frozenset("+-.,0123456789")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[t ](\d\d:\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?:z|[+-]00:?00)?)?").fullmatch
_EXACT = Context(prec=2 * LONGEST_NUMBER)
_APOSTROPHES = "\u2018\u2019\u201a\u201b\u2039\u203a\u2032\u02bc`\u00b4\u1ffd"
_QUOTES = "\u201c\u201d\u201e\u201f\u00ab\u00bb\u301d\u301e\u301f"
_SELECTORS = (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
_UNASSIGNED = (0x2065, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE0100), *range(0xE01F0, 0xE1000))
_FILLERS = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC)
_NOT_SHOWN = frozenset(map(chr, (*_FILLERS, *_SELECTORS, *_UNASSIGNED)))
"""Fillers, joiners and variants that are not shown although Unicode does not call them format characters."""


def canonical(text: str) -> str:
    """Return the spelling by which texts are compared; empty for a missing value.

    Unicode NFKC in one case, without invisible characters; one blank between words and none around them; plain dashes
    and quotes; no quotes around the text, and no leading apostrophe, by which spreadsheets keep text; words of programs
    for a missing value are empty; a number is its value, with a comma as a decimal mark unless it may separate
    thousands, as in ``1,000``; a moment in ISO form is written in one way, as a day at midnight. It is idempotent.
    """
    if len(text) <= LONGEST_NUMBER and text.isdecimal() and text.isascii():
        return text.lstrip("0") or "0"
    plain = _plain(text)
    # Normalization can compose new marks; plain ASCII cannot.
    while not plain.isascii() and (again := _plain(plain)) != plain:
        plain = again
    if plain in MISSING_WORDS:
        return ""
    if _is_number(plain):
        number = Decimal(plain.replace(",", ".")).normalize(_EXACT)
        is_short = number == number.to_integral_value() and number.adjusted() < LONGEST_NUMBER
        return (format(number, "f") if is_short else str(number)) if number else "0"
    if moment := _MOMENT(plain):
        day, minute, second, part = moment.groups(default="")
        clock = f"{minute}:{second or '00'}" + (f".{part.rstrip('0')}" if part.strip("0") else "")
        return day if clock in (":00", "00:00:00") else f"{day} {clock}"
    return plain


def _is_number(plain: str) -> bool:
    """Whether a text is a number that can be read in one way; ``1,000`` can be read in two."""
    return len(plain) <= LONGEST_NUMBER and _NUMBER(plain) is not None and not _SHORT_COMMA(plain)


def canonical_of_all(texts: Sequence[str]) -> list[str]:
    """Return the spelling of each text; quickly if most have no marks."""
    joined = "\n" + "\n".join(texts).lower() + "\n"
    in_one_line = joined.replace("\n", " ")
    is_plain = joined.isascii() and in_one_line.isprintable() and joined.count("\n") == len(texts) + 1
    if not is_plain or any(mark in in_one_line for mark in ("'", '"', "`", "  ")):
        return [canonical(text) for text in texts]
    lines = joined[1:-1].split("\n")
    if MISSING_WORDS.isdisjoint(lines) and _FIRST_OF_NUMBERS.isdisjoint({line[:1] for line in lines}):
        return lines
    return [canonical(line) for line in lines]


def spelled_keys(column: pd.Series[Any], *, with_exponents: bool = False) -> pd.Series[Any]:
    """Return a column of keys, such as those of people, by which they are compared: texts in one spelling.

    Words for a missing value, such as ``none``, are keys. Without exponents, ``00e37`` is no number: it may be
    hexadecimal.
    """
    if column.dtype.kind != MAY_HAVE_TEXTS:
        return column
    codes, distinct = pd.factorize(column)
    spelled = _spelled(distinct, with_exponents=with_exponents)
    return column if spelled is None else pd.Series(np.array([*spelled, None], object)[codes], column.index)


def factorize_keys(column: pd.Series[Any]) -> NDArray[np.int64]:
    """Return numbers of keys in order of appearance, as `pandas.factorize`; those that are spelled alike have one."""
    # Of very many texts, codes in the order of the texts need less memory.
    codes, distinct = factorize(column, sort=has_very_many_texts(column))
    numbers: NDArray[np.int64] = number_keys(codes, distinct)[0].astype(np.int64, copy=False)
    return numbers


def number_keys(
    codes: NDArray[np.signedinteger[Any]], distinct: pd.Index[Any]
) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.signedinteger[Any]]]:
    """Return the numbers of `factorize_keys` for codes of distinct keys, each of which occurs, and their first rows."""
    alike = numbers_of_distinct(distinct)
    if alike is None:
        return number_by_appearance(codes, len(distinct))
    return number_by_appearance(np.append(alike, -1)[codes], int(alike.max(initial=-1)) + 1)


def numbers_of_distinct(keys: Any) -> NDArray[np.signedinteger[Any]] | None:
    """Return numbers of distinct keys, as `factorize_keys`; None if all are spelled in one way already."""
    spelled = _spelled(keys) if keys.dtype.kind == MAY_HAVE_TEXTS else None
    return None if spelled is None else factorize(spelled)[0]


def people_of(keys: pd.DataFrame) -> NDArray[np.int64]:
    """Return the number of the person of each row, in order of appearance, from the columns that number the people."""
    return factorize_keys(keys.iloc[:, 0]) if keys.shape[1] == 1 else pd.factorize(keys_of_rows(keys))[0]


def keys_of_rows(keys: pd.DataFrame) -> pd.Series[Any]:
    """Return one key for each row, by which keys of one or several columns are compared: texts in one spelling."""
    columns = [spelled_keys(keys.iloc[:, place]) for place in range(keys.shape[1])]
    if len(columns) == 1:
        return columns[0]
    codes, distinct = pd.MultiIndex.from_arrays([column.astype(object) for column in columns]).factorize()
    return pd.Series(np.array([*map(repr, distinct), None], object)[codes], keys.index)


def _spelled(keys: Any, *, with_exponents: bool = False) -> pd.Series[Any] | None:
    """Return the spelling of each key of an array; None if all are spelled so already."""
    # Not all as objects of Python, which take several times the memory.
    blocks, is_spelled, is_text = list[Any](), True, isinstance(keys.dtype, pd.StringDtype)
    for begin in range(0, len(keys), SPELLED_AT_ONCE):
        some = keys[begin : begin + SPELLED_AT_ONCE]
        texts = [key for key in some.tolist() if isinstance(key, str)]
        spelled = {
            key: own if own and (with_exponents or not _may_be_hexadecimal(key)) else key.strip().casefold()
            for key, own in zip(texts, canonical_of_all(texts), strict=True)
            if own != key
        }
        is_spelled &= not spelled
        own = [spelled.get(key, key) for key in some.tolist()] if spelled else some
        blocks.append(pd.Series(own, dtype=keys.dtype if is_text else object))
    return None if is_spelled else pd.concat(blocks, ignore_index=True)


def _may_be_hexadecimal(key: str) -> bool:
    return key[:1].isdigit() and key.isalnum() and key.isascii() and not key.isdecimal()


def spelled_alike(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return a column, of the same dtype, in which each text is the first of the texts that are spelled alike.

    Words for a missing value, such as ``none``, are values.
    """
    if column.dtype.kind != MAY_HAVE_TEXTS:
        return column
    try:
        codes, distinct = pd.factorize(column)
    except TypeError:  # lists and the like, which the coding step refuses
        return column
    if not any(isinstance(value, str) for value in distinct):
        return column
    first: dict[Any, int] = {}
    keys = (canonical(value) or value.strip().casefold() if isinstance(value, str) else value for value in distinct)
    alike = np.array([*(first.setdefault((type(key), key), place) for place, key in enumerate(keys)), -1])
    rows = np.flatnonzero(alike[codes] != codes)
    written = column.copy()
    written.iloc[rows] = distinct.take(alike[codes[rows]])
    return written


def _plain(text: str) -> str:
    """Return a text without what only its writing adds."""
    if not (text.isascii() and text.isprintable()):
        text = unicodedata.normalize("NFKC", text.translate(_marks_of(text)))
        text = text.translate(_marks_of(text))
        # Capitals lose the difference between i with a dot and without.
        text = text.upper().casefold().replace("i\u0307", "i")
    text = " ".join(text.replace("`", "'").casefold().split())
    begin, end = 0, len(text)
    while begin < end:
        first, last = text[begin], text[end - 1]
        if first in "'\"" and first == last and end - begin > 1:
            begin, end = begin + 1, end - 1
        elif first in "' ":
            begin += 1
        elif last == " ":
            end -= 1
        else:
            break
    return text[begin:end]


def _marks_of(text: str) -> dict[int, str]:
    """Return what replaces characters of a text: dashes, quotes, and those that are not shown."""
    return {ord(character): _mark(character) for character in set(text)}


@lru_cache(maxsize=2**16)
def _mark(character: str) -> str:
    if character in _APOSTROPHES:
        return "'"
    if character in _QUOTES:
        return '"'
    kind = unicodedata.category(character)
    if kind == "Pd" or character == "\u2212":
        return "-"
    is_hidden = kind in ("Cf", "Cc") or character in _NOT_SHOWN
    return "" if is_hidden and not character.isspace() else character


def encode_spelled(tables: Sequence[ColumnValues], **precision: Any) -> EncodedColumn:
    """Give equal values of real and synthetic records the same code, as `encode_column`, regardless of their spelling.

    The tables are those of the originals, of the synthetic records, and of other real people if there are any. A
    synthetic text that no real person wrote has the code of the first real text that is spelled alike, else of the only
    one with the same letters and digits, else of its spelling. Real texts keep their own codes; ``key_of`` has those
    that are spelled alike, as is the missing value.
    """
    if {table.kind for table in tables} - {"missing"} != {"text"}:
        return encode_column(tables, **precision)
    real, synthetic = [tables[0], *tables[2:]], tables[1]
    listed = {text.strip().casefold() for table in real if table.is_category for text in table.distinct}
    texts = list(dict.fromkeys(text for table in tables for text in table.distinct))
    spelled = zip(texts, canonical_of_all(texts), strict=True)
    # A word for a missing value that a category has is a value.
    key = {text: own or (word if (word := text.strip().casefold()) in listed else "") for text, own in spelled}
    known = dict.fromkeys(text for table in real for text in table.distinct)
    written: dict[str, str | None] = {key[text]: text for text in reversed(known)}
    if "" not in written or any((table.codes < 0).any() for table in real):
        written[""] = None
    own = [text if text in known else written.get(key[text], key[text]) for text in synthetic.distinct]
    unknown = [place for place, text in enumerate(own) if not (text is None or text in known or _is_number(text))]
    similar = _by_letters_and_digits(known) if unknown else {}
    for place in unknown:
        text = str(own[place])
        decimal = written.get(canonical(text.replace(",", "."))) if _SHORT_COMMA(text) else None
        own[place] = similar.get(_letters_and_digits(synthetic.distinct[place])) or decimal or text
    encoded = encode_column([tables[0], _rewritten(synthetic, own), *tables[2:]], **precision)
    return encoded.with_keys(["" if label is None else key.get(label, label) for label in encoded.labels])


def _by_letters_and_digits(texts: Iterable[str]) -> dict[str, str | None]:
    """Return the text that has certain letters and digits; None if several that are not spelled alike have them."""
    found: dict[str, str | None] = {"": None}
    for text in texts:
        plain, own, spelled = _plain(text), _letters_and_digits(text), canonical(text)
        if _is_number(plain) and not plain.isdecimal():
            continue
        if (first := found.setdefault(own, text)) is not None and canonical(first) != spelled:
            found[own] = None
    return found


def _letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text, with blanks only between digits, no accents, and no leading zeros.

    Codes of HTML and of web addresses, and UTF-8 that was taken for Latin-1, are read, and thousands are joined.
    """
    read = unescape(unquote(text))
    with suppress(UnicodeError):
        read = read.encode("latin-1").decode()
    plain = unicodedata.normalize("NFKD", _plain(read))
    kept = _BETWEEN.sub(_gap, _THOUSANDS.sub("", plain))
    return (kept.lstrip("0") or "0") if kept.isdecimal() else kept


def _gap(between: re.Match[str]) -> str:
    around = between.string[max(between.start() - 1, 0)], between.string[between.end() : between.end() + 1]
    return " " if all(each.isdigit() for each in around) else ""


def _rewritten(values: ColumnValues, texts: Sequence[str | None]) -> ColumnValues:
    """Return a column with other texts; None makes a value missing."""
    is_kept = np.array([text is not None for text in texts], np.bool_)
    place = np.append(np.where(is_kept, np.cumsum(is_kept) - 1, -1), -1)
    kept = np.array([text for text in texts if text is not None], object)
    return replace(values, kind="text" if len(kept) else "missing", codes=place[values.codes], distinct=kept)
