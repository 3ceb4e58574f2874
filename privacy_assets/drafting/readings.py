"""Readings of texts: as whole numbers, numbers, truth values and datetimes in common formats.

Each reading gets the distinct texts of every block, and remains possible as long as all of them can be read. So the
type of a column is that of all its values, not only of the first ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.contract.conversion import EXACT_BOUND, ISO, ColumnType, convert, read_moments
from privacy_assets.contract.written_values import read_number

MISSING_WORDS: Final = frozenset(
    {"na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "nil", "missing", "unknown", "k.a.", "<na>", "nat"}
)
MISSING_SIGNS: Final = frozenset({"?", "??", "-", "--", "---", ".", "..", "…", "\u2013"})
"""Texts for missing values; words are assumed to be such texts only if the column has another type without them."""
PLAUSIBLE: Final = 0.8
"""Share of values at which a failed reading is reported."""
MAX_DECIMALS: Final = 10

_WHOLE: Final = r"(?:0|[1-9]\d{0,17})"
_BOOLEAN: Final = re.compile("true|false", re.IGNORECASE)
NUMBER: Final = re.compile(rf"\s*[+-]?(?:{_WHOLE}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{{1,3}})?\s*")
LIST: Final = re.compile(r"\s*(?:\[.*\]|\{.*\})\s*", re.DOTALL)
_GROUPED: Final = re.compile(r"\s*[+-]?(?:0|[1-9]\d*|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?\s*")
_COMMA: Final = re.compile(rf"\s*[+-]?(?:{_WHOLE}|[1-9]\d{{0,2}}(?:[.' \u00a0\u202f]\d{{3}})+)(?:,\d+)?\s*")
_PLAIN: Final = {mark: rf"^-?(?:0|[1-9][0-9]{{0,14}})(?:[{mark}][0-9]{{1,15}})?$" for mark in ".,"}
"""Numbers without groups of digits; the patterns above match them, too, but Arrow reads them twenty times faster."""
_LONGEST_EXACT: Final = 15
"""Every number of so many digits is a float of its own."""
_MAY_BE_TIME: Final = re.compile(r"[\d\w][\d\w .,:/+-]{3,40}")

DAYS: Final = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d %b %Y", "%d %B %Y", "%d. %B %Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y"),
    *("%b %d, %Y", "%B %d, %Y"),
)
TIMES: Final = ("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMATS: Final = tuple(day + time for day in DAYS for time in TIMES)
_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
AMBIGUOUS: Final = (("%d/%m/", "%m/%d/"), ("%d-%m-", "%m-%d-"))
"""Formats that cannot be distinguished in a table without a day above the 12th."""


@dataclass
class Reading:
    """One way of reading a column, and its results so far.

    ``kind`` is "number", "boolean" or "datetime", ``form`` the decimal mark, or format of datetimes, empty for ISO
    8601. ``read`` returns the values of texts, missing where a text cannot be read; of the ``n_seen`` rows with a
    value, ``n_read`` could be read. ``decimals`` is 99 for more than ten, ``finest`` is "D", "min" or "s", and
    ``zones`` are the offsets of the datetimes.
    """

    kind: str
    form: str
    read: Callable[[pd.Series], pd.Series]
    n_read: int = 0
    n_seen: int = 0
    low: Any = None
    high: Any = None
    decimals: int = 0
    finest: str = "D"
    zones: set[str] = field(default_factory=set)
    admits: set[Any] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.admits = {"integer", "float"} if self.kind == "number" else {self.kind}

    @property
    def fits(self) -> bool:
        """Whether every value could be read, and a type of a contract admits all of them."""
        return self.n_read == self.n_seen and bool(self.admits)

    @property
    def is_plausible(self) -> bool:
        """Whether nearly every value could be read."""
        return self.n_read >= PLAUSIBLE * self.n_seen

    def see(self, texts: pd.Series, counts: NDArray[np.int64]) -> None:
        """Read the distinct texts of a block; ``counts`` has their rows."""
        values = self.read(texts)
        is_read = values.notna().to_numpy(dtype=bool)
        self.n_seen += int(counts.sum())
        self.n_read += int(counts[is_read].sum())
        values, texts = values[is_read], texts[is_read]
        if not len(values) or self.kind == "boolean":
            return
        self._try_types(texts, values)
        self.note(values)
        if self.read is _read_iso:
            self.zones |= set(texts.map(_zone))

    def _try_types(self, given: pd.Series, values: pd.Series) -> None:
        """Forget the types of a contract that do not admit all values."""
        if self.kind == "number":
            is_text, is_whole = isinstance(given.iloc[0], str), types.is_integer_dtype(values.dtype)
            if not is_whole and not (is_text and (values % 1 == 0).all()):
                self.admits.discard("integer")
            if is_text:
                given = given[(given.str.len() > _LONGEST_EXACT) | given.str.contains("e", case=False, regex=False)]
            elif not is_whole or values.between(-EXACT_BOUND, EXACT_BOUND, inclusive="neither").all():
                return  # read exactly
        elif not self.form:
            return
        form, mark = (self.form or None if self.kind == kind else None for kind in ("datetime", "number"))
        for kind in [*self.admits] if len(given) else ():
            if convert(given, ColumnType(kind, True, format=form, decimal=mark)).failures:
                self.admits.discard(kind)

    def note(self, values: pd.Series) -> None:
        """Record range and precision of values."""
        low, high = values.min(), values.max()
        if self.kind == "number":
            low, high = (int(end) if types.is_integer_dtype(values.dtype) else float(end) for end in (low, high))
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)
        if self.kind == "number":
            self.decimals = max(self.decimals, decimals_of(values.to_numpy(dtype=np.float64)))
        else:
            units = ("D", "min", "s")
            self.finest = units[max(units.index(self.finest), units.index(_finest(values)))]


def decimals_of(numbers: NDArray[np.float64]) -> int:
    """Return the number of decimals that numbers need; 99 for more than ten."""
    for decimals in range(MAX_DECIMALS + 1):
        if (np.round(numbers, decimals) == numbers).all():
            return decimals
        numbers = numbers[np.round(numbers, decimals) != numbers]
    return 99


def readings_of_text(texts: pd.Series) -> list[Reading]:
    """Return the readings that nearly all of these texts allow, which are those possible for the column."""
    some = texts.iloc[:200].tolist()
    readings = [
        Reading("boolean", "", _read_boolean),
        Reading("number", "", _read_point),
        Reading("number", ".", _read_grouped),
        Reading("number", ",", _read_comma),
        Reading("datetime", "", _read_iso),
    ]
    # A pattern takes a tenth of the time of pandas, and rules out most of the readings.
    patterns = (_BOOLEAN, NUMBER, _GROUPED, _COMMA, ISO)
    readings = [each for each, form in zip(readings, patterns, strict=True) if _share(some, form) >= PLAUSIBLE / 2]
    if _share(some, _MAY_BE_TIME) >= PLAUSIBLE:
        shapes = set(map(_shape, some))
        readings += [Reading("datetime", form, _reader(form)) for form in FORMATS if SHAPES[form] in shapes]
    return [each for each in readings if each.read(texts.iloc[:200]).notna().mean() >= PLAUSIBLE / 2]


def _share(texts: list[str], form: re.Pattern[str]) -> float:
    return sum(form.fullmatch(text) is not None for text in texts) / len(texts)


def _shape(text: str) -> str:
    """Return a text with runs of digits and of letters as one character each, which dates of one format share."""
    return _LETTERS.sub("a", _DIGITS.sub("9", text))


SHAPES: Final = {form: _shape(re.sub("%[bBp]", "a", re.sub("%[dmYyHIMS]", "9", form))) for form in FORMATS}
"""The outline of texts that a format can read, which rules out most formats before any text is read."""


def matches(texts: pd.Series, form: re.Pattern[str]) -> NDArray[np.bool_]:
    """Return which texts a pattern matches in full."""
    return np.fromiter((form.fullmatch(text) is not None for text in texts), dtype=bool, count=len(texts))


def are_plain_numbers(texts: pd.Series, mark: str = ".") -> NDArray[np.bool_]:
    """Return which texts are numbers with this decimal mark and without groups of digits, sign + and exponent."""
    return np.array(pc.match_substring_regex(_as_arrow(texts), _PLAIN[mark]), np.bool_)


def are_numbers(texts: pd.Series) -> NDArray[np.bool_]:
    """Return which texts `NUMBER` matches."""
    found = are_plain_numbers(texts)
    found[~found] = matches(texts[~found], NUMBER)
    return found


def are_lists(texts: pd.Series) -> NDArray[np.bool_]:
    """Return which texts `LIST` matches."""
    found = np.array(pc.match_substring_regex(_as_arrow(texts), r"[\[{]"), np.bool_)
    found[found] = matches(texts[found], LIST)
    return found


def _as_arrow(texts: pd.Series) -> pa.Array:
    try:
        return pa.array(texts.tolist(), pa.large_string())
    except UnicodeEncodeError:  # Lone surrogates, which no number and no list contains.
        return pa.array([text.encode(errors="replace").decode() for text in texts], pa.large_string())


def is_missing(text: str) -> bool:
    """Return whether a text may mean a missing value."""
    return text.strip().casefold() in MISSING_WORDS or text.strip() in MISSING_SIGNS


def _read_boolean(texts: pd.Series) -> pd.Series:
    return texts.str.casefold().map({"true": 1.0, "false": 0.0}).astype(float)


def _read_point(texts: pd.Series) -> pd.Series:
    def read(others: pd.Series) -> pd.Series:
        numbers = pd.to_numeric(others.where(matches(others, NUMBER)), errors="coerce").astype(float)
        return numbers.where(np.isfinite(numbers))

    return _read_numbers(texts, ".", read)


def _read_grouped(texts: pd.Series) -> pd.Series:
    return _read_numbers(texts, ".", lambda others: others.map(lambda text: _number(text, ".", _GROUPED)))


def _read_comma(texts: pd.Series) -> pd.Series:
    return _read_numbers(texts, ",", lambda others: others.map(lambda text: _number(text, ",", _COMMA)))


def _read_numbers(texts: pd.Series, mark: str, read: Callable[[pd.Series], pd.Series]) -> pd.Series:
    """Read plain numbers together, and all other texts with a function."""
    is_plain = are_plain_numbers(texts, mark)
    numbers = np.empty(len(texts))
    plain = pc.replace_substring(_as_arrow(texts[is_plain]), mark, ".")
    numbers[is_plain] = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
    numbers[~is_plain] = read(texts[~is_plain]).astype(float)
    return pd.Series(numbers, texts.index)


def _number(text: str, mark: str, form: re.Pattern[str]) -> float:
    number = read_number(text, mark) if form.fullmatch(text) else None
    return np.nan if number is None else float(number)


def _read_iso(texts: pd.Series) -> pd.Series:
    """Read moments as those of UTC, and other datetimes as they are; a column may have only one of them."""
    found = read_moments(texts)
    return pd.Series(found.times, texts.index).mask(found.is_finer)


def _reader(form: str) -> Callable[[pd.Series], pd.Series]:
    def read(texts: pd.Series) -> pd.Series:
        times = pd.to_datetime(texts.astype(object), format=form, errors="coerce")
        return times.where((times.dt.year > 1800) & (times.dt.year < 2200))

    return read


def _zone(text: str) -> str:
    found = ISO.fullmatch(text)
    return "" if found is None else found[2] or ""


def _finest(times: pd.Series) -> str:
    if (times.dt.floor("D") == times).all():
        return "D"
    return "min" if (times.dt.floor("min") == times).all() else "s"
