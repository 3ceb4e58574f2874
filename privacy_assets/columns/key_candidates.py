"""What may number people: the columns themselves, and what can be made of them if the number hides.

It can hide in part of a code (`P123-4`, or 1234 for visit 4 of person 123), in two columns together, in links from each
visit to the one before, or in the order of a serial number. Not tried are numbers that are encrypted together with the
one of the visit, three columns together, pairs beyond the columns with most values, and links through a third column.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, combinations, permutations
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.coding import connected, count_codes, kind_of_dtype
from privacy_assets.columns.factorizing import factorize
from privacy_assets.columns.spelling import numbers_of_distinct

FEWEST_VALUES: Final = 10
"""Fewest values of a key, and fewest that repeat."""
MOST_DISTINCT: Final = 0.98
"""Largest share of the rows that may have a value of their own: numbers of rows are no keys of people."""
ALMOST_AS_MANY: Final = 0.95
MOST_OF_A_PERSON: Final = 5
"""Times as many rows as of any other value that one value may have without standing for a missing one."""
MOST_ENDS: Final = 0.5
"""Largest share of codes with a rest of their own: numbers of visits repeat, serial numbers do not."""
MOST_PAIRED: Final = 10
"""Columns that are paired, those with most values."""
FACTS_OF_A_PAIR: Final = 3
"""Facts that two columns must have together; states and years have two."""
NEARLY_UNIQUE: Final = 0.9
"""Share of different values in columns that link visits, and of those that occur in the other."""
MOST_NEIGHBORS_APART: Final = 0.8
"""Share of the different neighbors by chance in the order of a serial number: they guess people as well as k = 5."""
FEWEST_RUNS: Final = 1.5
"""Runs in the order of a serial number for each value: bands and dates have one."""
IN_ORDER: Final = "in its order"
SEPARATOR: Final = "separator"
MOST_IN_ORDER: Final = 200_000
"""Codes, pairs, or rows in an order that are examined: in the middle, or all of some values."""

Codes = NDArray[np.int64]
AnyCodes = NDArray[np.signedinteger[Any]]
WORD: Final = re.compile(r"[^\W_]+")


class CodedColumn(NamedTuple):
    """The place of each value in sorted order, -1 for a missing one; the values, each of which occurs; and their kind.

    The places are of the smallest signed type. Values may number people, or be measured.
    """

    codes: AnyCodes
    distinct: pd.Index[Any]
    may_number: bool
    may_measure: bool

    def of_rows(self, rows: NDArray[np.bool_]) -> CodedColumn:
        """Return the column of some rows."""
        codes = self.codes[rows]
        # The last place is that of a missing value, -1.
        occurs = np.zeros(len(self.distinct) + 1, np.bool_)
        occurs[codes] = True
        if occurs[:-1].all():
            return self._replace(codes=codes)
        number = np.append(np.cumsum(occurs[:-1]) - 1, -1).astype(codes.dtype)
        values = self.distinct[occurs[:-1]]
        return CodedColumn(number[codes], values, _may_number(values), self.may_measure)


class Candidate(NamedTuple):
    """A column that may number people, or what was made of it; what a column ``apart`` determines alone is no fact."""

    column: str
    codes: AnyCodes
    made_by: str = ""
    apart: tuple[str, ...] = ()
    fewest_facts: int = 0
    may_be_half: bool = False
    is_part: bool = False


def code_columns(table: Any) -> dict[str, CodedColumn]:
    """Return the codes of each column, read one after the other, of a frame, or of a table by name like one."""
    return {str(name): _code_column(table[name], kind) for name, kind in zip(table.columns, table.dtypes, strict=True)}


def _code_column(column: pd.Series[Any], kind: Any) -> CodedColumn:
    """Return the codes of a column, as if all were missing if its values cannot be compared."""
    try:
        codes, values = factorize(column, sort=True)
    except TypeError:
        return CodedColumn(np.full(len(column), -1, np.int8), pd.Index([]), may_number=False, may_measure=False)
    if isinstance(values, pd.CategoricalIndex):
        values = values.astype(values.categories.dtype)
    # Codes that are spelled alike are one, which stands where the first of them does; names may be of several people.
    alike = numbers_of_distinct(values)
    is_first = np.ones(len(values), np.bool_) if alike is None else ~pd.Series(alike).duplicated().to_numpy()
    if alike is not None and not is_first.all() and all(any(map(str.isdigit, str(own))) for own in values[~is_first]):
        codes, values = np.append(alike, alike.dtype.type(-1))[codes], values[is_first]
    return CodedColumn(codes, values, _may_number(values), kind_of_dtype(kind) in ("number", "datetime"))


def sizes_of(codes: AnyCodes) -> Codes:
    """Count the rows of each code, first of the missing one, -1."""
    return count_codes(codes, int(codes.max(initial=-1)) + 2, lowest=-1)


def _may_number(values: pd.Index[Any]) -> bool:
    """Whether values of this kind can number people: whole numbers and texts."""
    kind = values.dtype
    if types.is_bool_dtype(kind) or types.is_datetime64_any_dtype(kind) or types.is_timedelta64_dtype(kind):
        return False
    if types.is_float_dtype(kind):
        numbers = values.to_numpy(np.float64)
        return bool((numbers == np.floor(numbers)).all())
    return True


def candidates_of(columns: Mapping[str, CodedColumn], settled: Collection[str] = ()) -> Iterator[Candidate]:
    """Yield the candidates of which enough values repeat, one at a time, because each has as many codes as rows.

    None is made of the ``settled`` columns, which others may still be paired with.
    """
    numbering = {name: own for name, own in columns.items() if own.may_number}
    asked = {name: own for name, own in numbering.items() if name not in settled}
    columns_alone = (Candidate(name, _with_placeholder_missing(own), may_be_half=True) for name, own in asked.items())
    pairs, links = _pairs_of_columns(numbering, settled), _linked_visits(numbering)
    for each in chain(columns_alone, _parts_of_codes(asked), pairs, links, _runs(columns)):
        if each.column not in settled and _repeats(each.codes):
            yield each


def _with_placeholder_missing(column: CodedColumn) -> AnyCodes:
    """Return codes without the most frequent text if it stands for a missing one, such as *nobody*."""
    sizes = sizes_of(column.codes)[1:]
    if len(sizes) <= FEWEST_VALUES or types.is_numeric_dtype(column.distinct.dtype):
        return column.codes
    others, most = np.sort(sizes)[-2:]
    if most < MOST_OF_A_PERSON * others:
        return column.codes
    codes: AnyCodes = np.where(column.codes == sizes.argmax(), column.codes.dtype.type(-1), column.codes)
    return codes


def _repeats(codes: AnyCodes) -> bool:
    sizes = sizes_of(codes)[1:]
    return bool(FEWEST_VALUES <= len(sizes) <= MOST_DISTINCT * sizes.sum() and (sizes > 1).sum() >= FEWEST_VALUES)


def _parts_of_codes(columns: Mapping[str, CodedColumn]) -> Iterator[Candidate]:
    for name, own in columns.items():
        # Neighbors have the same first parts.
        begin = max(len(own.distinct) - MOST_IN_ORDER, 0) // 2
        for made_by, parts in _parts(own.distinct[begin : begin + MOST_IN_ORDER]).items():
            numbered, own_parts = pd.factorize(pd.Index(parts), sort=True, use_na_sentinel=False)
            if len(own_parts) < ALMOST_AS_MANY * len(numbered):
                place_of = np.full(len(own.distinct) + 1, -1, np.int32)
                place_of[begin : begin + len(numbered)] = numbered
                is_whole = SEPARATOR in made_by
                yield Candidate(name, place_of[own.codes], made_by, may_be_half=is_whole, is_part=True)


def _parts(values: pd.Index[Any]) -> dict[str, Sequence[Any] | NDArray[Any]]:
    """Return the parts of numbers or codes that may be those of a person, by how they are made."""
    if types.is_numeric_dtype(values.dtype):
        numbers = values.to_numpy()
        return {"without its last digit": numbers // 10, "without its last two digits": numbers // 100}
    texts, found = [str(value) for value in values], dict[str, Sequence[Any] | NDArray[Any]]()
    nearly_all = ALMOST_AS_MANY * len(texts)
    split = [WORD.findall(text) if any(map(str.isdigit, text)) else [] for text in texts]
    if sum(len(words) > 1 for words in split) >= nearly_all:
        places = {"first": 1, "last": -1} if max(map(len, split)) > 2 else {"last": -1}
        for which, place in places.items():
            begins, ends = (["-".join(words[own]) for words in split] for own in (slice(place), slice(place, None)))
            if len(set(ends)) <= MOST_ENDS * len(texts):
                found[f"up to its {which} {SEPARATOR}"] = begins
            if len(set(begins)) <= MOST_ENDS * len(texts):
                found[f"after its {which} {SEPARATOR}"] = ends
    if sum(text[-1:].isdigit() for text in texts) >= nearly_all:
        found["without its last digit"] = [text[:-1] for text in texts]
        found["without its last two digits"] = [text[:-2] for text in texts]
    return found


def _pairs_of_columns(columns: Mapping[str, CodedColumn], settled: Collection[str]) -> Iterator[Candidate]:
    enough = [name for name, own in columns.items() if len(own.distinct) >= FEWEST_VALUES]
    most = sorted(enough, key=lambda name: -len(columns[name].distinct))[:MOST_PAIRED]
    for name, other in combinations(most, 2):
        if name in settled:
            continue
        own, its = columns[name], columns[other]
        drawn = np.random.default_rng(0).random(len(own.distinct) + 1) <= MOST_IN_ORDER / len(own.codes)
        used = np.flatnonzero((own.codes >= 0) & (its.codes >= 0) & drawn[own.codes])
        codes = np.full(len(own.codes), -1, np.int32)
        pairs = own.codes[used].astype(np.int64) * len(its.distinct) + its.codes[used]
        codes[used] = pd.factorize(pairs, sort=True)[0]
        yield Candidate(name, codes, f"with {other}", (name, other), FACTS_OF_A_PAIR)


def _linked_visits(columns: Mapping[str, CodedColumn]) -> Iterator[Candidate]:
    """Yield the rows that equal values of two nearly unique columns connect, as of a visit and the one before it."""
    unique = {name: own for name, own in columns.items() if len(own.distinct) >= NEARLY_UNIQUE * (own.codes >= 0).sum()}
    for (name, own), (other, its) in permutations(unique.items(), 2):
        # An index keeps what it looks values up in.
        places = pd.Index(own.distinct.array, dtype=own.distinct.dtype, copy=False).get_indexer(its.distinct)
        if (places >= 0).mean() < NEARLY_UNIQUE:
            continue
        row_of = np.full(len(own.distinct) + 1, -1)
        row_of[own.codes] = np.arange(len(own.codes))
        row_of[-1] = -1
        before = row_of[np.append(places, -1)[its.codes]]
        after = np.flatnonzero(before >= 0)
        yield Candidate(name, connected(before[after], after, len(before)), f"linked by {other}")


def _runs(columns: Mapping[str, CodedColumn]) -> Iterator[Candidate]:
    """Yield the runs of other columns in the order of a serial number."""
    for name, own in columns.items():
        if len(own.distinct) <= MOST_DISTINCT * len(own.codes):
            continue
        begin = max(len(own.codes) - MOST_IN_ORDER, 0) // 2
        order = np.argsort(own.codes, kind="stable")[begin : begin + MOST_IN_ORDER]
        for other, its in columns.items():
            ordered = order[its.codes[order] >= 0]
            runs = np.append(0, np.cumsum(np.diff(its.codes[ordered]) != 0))
            shares = np.bincount(its.codes[ordered]) / max(len(ordered), 1)
            by_chance = 1 + MOST_NEIGHBORS_APART * (len(ordered) - 1) * (1 - (shares**2).sum())
            if FEWEST_RUNS * (shares > 0).sum() <= runs[-1] + 1 <= by_chance:
                codes = np.full(len(own.codes), -1, np.int32)
                codes[ordered] = runs
                yield Candidate(name, codes, f"{IN_ORDER}, in runs of {other}", (other,))
