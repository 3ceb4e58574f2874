"""Examination of columns that are released unchanged: how many people share a value, and what the values look like.

A release generalizes quasi-identifiers. All other columns are released unchanged, so a name in one of them identifies
its person regardless of the size of the classes. Here each such column is examined with counts and shares: text that
hardly anybody shares and that looks like names, addresses or document numbers; a running number; a time to the minute.
A whole number, a date or a text that nearly every person has alone looks identifying, too, unless it is a measure, such
as a cost or a weight: by its digits (decimals, rounded numbers) or by its distribution. A measure is not an identifier
just because it is nearly unique. But anyone who knows the value can find the record, so nearly unique measures are
reported, too.

The work is bounded: people and values are counted in full, shapes are examined in `MOST_VALUES` distinct values and in
the first characters of each. No function here returns a value of the table.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.coding import count_codes, kind_of_dtype, numbers_of_people
from privacy_assets.columns.factorizing import factorize
from privacy_assets.contract.related import RelatedTables, named
from privacy_assets.disclosure.text_shapes import (
    CODES,
    CONTINUOUS,
    EMAIL,
    FORMATS,
    FREE_TEXT,
    MEASURES,
    NAMES,
    OF_PEOPLE,
    share_of_shapes,
    whole_number_of,
)
from privacy_assets.display.numbers import percent
from privacy_assets.storage.coded_columns import code_repeated
from privacy_assets.storage.table import Table

MOST_VALUES: Final = 500
"""Number of distinct values of a column whose shapes are examined."""
FEW_PEOPLE: Final = 100
"""Fewer people than this share values less often by chance, so a larger share of them must have unique values."""
FEWEST_VALUES: Final = 20
FEWEST_NUMBERS: Final = 12
"""Fewer numbers than this can be consecutive by chance."""
MANY_VALUES: Final = 200
UNSHARED: Final = 0.95
MEASURE_SHARE_ALONE: Final = 0.05
"""Share of people with a unique value at which a measure causes a warning."""
SHAPE_SHOWN: Final = 0.05
LONG_DIGITS: Final = 9
EQUAL_DIGITS: Final = 7
"""Number of digits at which numbers of equal length are not a measure."""
DAY_ALONE: Final = "nearly everybody has a date of their own"
AROUND: Final = f" {string.ascii_letters}€$£¥%‰°µ²³/"
MOSTLY: Final = 0.95
"""Share of numbers without decimals from which on they are whole numbers."""
NEAR: Final = 5
"""Whole numbers of a measure that differ by at most this much are about ten times as many pairs as equal ones."""
TIMES_FEWER: Final = 5
"""How many times fewer equal pairs than near ones suggest show that each number was assigned once."""
BY_CHANCE: Final = 0.01
"""Probability of as few equal pairs among numbers of a measure."""
MOST_ALIKE: Final = 5
"""A number of more people than this often means an unknown one."""
STEPS: Final = (10_000, 1_000, 500, 100, 50, 10)
SAME_FRACTION: Final = 1e-6
"""Difference up to which fractions of floats are the same."""
GAIN: Final = 0.05
"""By how much a bell must describe a measure better than an even spread, in nats per number above `FEW_PEOPLE`."""
SLACK: Final = 1.0
"""By how much, in nats, a bell may describe the few numbers of a measure less well than an even spread."""
LARGEST: Final = 2**61
PAIRS_AT_ONCE: Final = 2**20
IDENTIFIER_WORDS: Final = frozenset(
    [
        *("account", "dni", "guid", "id", "identifier", "ids", "kennung", "konto", "matricule", "mrn", "nif", "no"),
        *("nr", "num", "number", "numero", "nummer", "número", "pid", "ref", "ssn", "uuid"),
    ]
)
"""Last words of the names of columns with numbers that identify people."""
GROUPS: Final = {EMAIL: 0.05, OF_PEOPLE: 0.3, FORMATS: 0.3, NAMES: 0.6, CODES: 0.5, FREE_TEXT: 0.3}
"""Shapes that identify people, and the share of texts that must have them: one address in twenty is enough."""
REACHES_PEOPLE: Final = {"e-mail addresses": 0.3, "phone numbers": 0.6, "social security numbers": 0.6}
"""Shapes that identify a person even if others share the text, and the share of distinct texts that must have them."""
PLACE_WORDS: Final = frozenset(["lat", "latitude", "lng", "lon", "long", "longitude"])

Finding = Literal["identifying", "nearly_unique", "ordinary"]


@dataclass(frozen=True)
class ColumnExamination:
    """Examination of one column that is released unchanged: counts, shares and fixed words.

    ``share_distinct`` is the share of distinct values among the values, ``share_alone`` that of people with a unique
    value among those with a value; texts also have the number of characters of the longest and the median one.
    ``reads_like`` has the share of the distinct texts with each of the ``SHAPES``, if at least 5 %. The ``finding`` is
    whether it looks identifying; ``"nearly_unique"`` is a measure whose values are unique to many people. An ordinary
    column has no ``reasons``.
    """

    column: str
    role: str
    kind: str
    n_values: int
    n_distinct: int
    share_distinct: float
    share_alone: float
    longest_text: int | None = None
    median_text: float | None = None
    reads_like: Mapping[str, float] = field(default_factory=dict)
    finding: Finding = "ordinary"
    reasons: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the examination as JSON values."""
        return asdict(self) | {"reads_like": dict(self.reads_like), "reasons": list(self.reasons)}


class Holders(NamedTuple):
    """Counts of people and values of a column.

    They are the distinct pairs of a person and a value, the values that only one person has, the people with the most
    frequent value, and the share of people with a unique value, among those with a value.
    """

    n_holdings: int
    n_of_one: int
    n_of_most: int
    share_alone: float

    @property
    def rest(self) -> int:
        """Pairs without the most frequent value, which often means an unknown value."""
        return self.n_holdings - (self.n_of_most if self.n_of_most > 1 else 0)

    @property
    def unshared(self) -> float:
        """Share of these pairs with a value that only one person has."""
        return self.n_of_one / self.rest if self.rest else 0.0


def columns_that_leave(described: Sequence[Mapping[str, Any]], side: str) -> dict[str, str]:
    """Return the role of each column that a side releases unchanged, given the descriptions of a manifest.

    Anonymized records keep all columns except quasi-identifiers. Synthetic records also keep quasi-identifiers that are
    text or categories and not generalized, because a synthesizer repeats them as observed.
    """
    return {
        str(each["column"]): str(each["role"])
        for each in described
        if each["role"] in ("sensitive", "other") or (side == "synthetic" and repeats_as_observed(each))
    }


def repeats_as_observed(described: Mapping[str, Any]) -> bool:
    """Return whether a synthesizer repeats the values of a quasi-identifier as observed."""
    is_text = described.get("type") in ("str", "category")
    return described["role"] == "quasi_identifier" and is_text and "generalizes" not in described


def examine_columns(
    table: Table | RelatedTables, roles: Mapping[str, str], person: str | None = None
) -> tuple[ColumnExamination, ...]:
    """Examine those columns of ``roles`` that a table has, in their order.

    ``person`` is the column with the person of each row; without it each row counts as a person. Columns of related
    tables are `named` with their table, and their keys are the people.
    """
    if isinstance(table, RelatedTables):
        found = []
        for name, own in table.by_person().items():
            asked = {column: roles[each] for column in map(str, own) if (each := named(name, column)) in roles}
            found += [
                replace(each, column=named(name, each.column)) for each in examine_columns(own, asked, table.keys[name])
            ]
        return tuple(found)
    people = None
    if person is not None and person in table.columns:
        whose = table[person]
        numbered = numbers_of_people(whose)
        people = factorize(whose)[0] if numbered is None else numbered[0]
        del whose
    return tuple(_examine(table, name, role, people) for name, role in roles.items() if name in table.columns)


def _examine(table: Table, name: str, role: str, people: NDArray[np.integer[Any]] | None) -> ColumnExamination:
    codes, values = _distinct(table, name)
    present = codes >= 0
    if not present.all():
        codes, people = codes[present], None if people is None else people[present]
    n_values, n_distinct = len(codes), len(values)
    holders = count_holders(codes, n_distinct, people)
    kind = kind_of_dtype(values.dtype)
    counted = ColumnExamination(
        name, role, kind, n_values, n_distinct, n_distinct / n_values if n_values else 0.0, holders.share_alone
    )
    if kind == "text" and n_values:
        lengths = np.fromiter(map(len, values), np.int64, n_distinct)
        median = _median(lengths, count_codes(codes, n_distinct))
        counted = replace(counted, longest_text=int(lengths.max()), median_text=median)
    if n_distinct < 2 or kind == "boolean":
        return counted
    judge = {"text": _judge_texts, "number": _judge_numbers, "datetime": _judge_datetimes}[kind]
    return judge(counted, values, holders)


def count_holders(codes: NDArray[Any], n_distinct: int, people: NDArray[Any] | None) -> Holders:
    """Count people and values, given as codes below ``n_distinct``, of which none is missing.

    By default each value belongs to a different person.
    """
    if not len(codes):
        return Holders(0, 0, 0, 0.0)
    if people is None:
        per_value = np.bincount(codes, minlength=n_distinct)
        n_alone = int((per_value == 1).sum())
        return Holders(len(codes), n_alone, int(per_value.max()), n_alone / len(codes))
    # Sorted, because tables of hashes would need several times the memory, as would other copies of all pairs.
    pairs = people.astype(np.int64)
    pairs *= n_distinct
    pairs += codes
    pairs.sort()
    n_pairs, per_value = 0, np.zeros(n_distinct, np.int64)
    for some in _different(_parts(pairs)):
        n_pairs += len(some)
        np.add.at(per_value, some % n_distinct, 1)
    alone = sum(map(len, _different(some[per_value[some % n_distinct] == 1] // n_distinct for some in _parts(pairs))))
    everybody = sum(map(len, _different(some // n_distinct for some in _parts(pairs))))
    return Holders(n_pairs, int((per_value == 1).sum()), int(per_value.max()), alone / everybody)


def _parts(numbers: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    return (numbers[begin : begin + PAIRS_AT_ONCE] for begin in range(0, len(numbers), PAIRS_AT_ONCE))


def _different(ascending: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
    """Yield the different ones of numbers that ascend from each part to the next."""
    last = None
    for some in ascending:
        if len(some):
            is_new = np.append(some[0] != last, some[1:] != some[:-1])
            yield some[is_new]
            last = some[-1]


def _median(values: NDArray[np.int64], counts: NDArray[np.int64]) -> float:
    """Return the median of values, of which each occurs as often as its count."""
    order = np.argsort(values)
    stops = np.cumsum(counts[order])
    middle = [(stops[-1] - 1) // 2, stops[-1] // 2]
    return float(values[order[np.searchsorted(stops, middle, side="right")]].mean())


def _distinct(table: Table, name: str) -> tuple[NDArray[np.integer[Any]], pd.Index]:
    """Return the values of a column as codes, missing ones as -1, and its distinct values in order of appearance."""
    coded = code_repeated(table, name)
    if coded is not None:
        codes, values = factorize(coded.distinct)
        codes = codes[coded.codes]
    else:
        column = table[name]
        if types.is_object_dtype(column.dtype):
            # Objects of any kind, even incomparable ones, are compared by their text.
            column = column.where(column.isna(), column.map(str))
        codes, values = factorize(column)
    if isinstance(values, pd.CategoricalIndex):
        values = values.astype(values.categories.dtype)
    if types.is_timedelta64_dtype(values.dtype):
        lengths = values.to_numpy().astype("int64")
        # In the unit of which all are multiples, because every second is a round number of nanoseconds.
        values = pd.Index(lengths // max(int(np.gcd.reduce(lengths)), 1))
    elif (kind_of_dtype(values.dtype) == "text" and not types.is_string_dtype(values.dtype)) or types.is_object_dtype(
        values.dtype
    ):
        values = pd.Index([str(value) for value in values])
    return codes, values


def _judge_texts(counted: ColumnExamination, values: pd.Index, holders: Holders) -> ColumnExamination:
    """Examine texts by their shapes and by how few people share them."""
    looked_at = [str(values[place]) for place in _spread(len(values))]
    shapes = share_of_shapes(looked_at)
    shown = {shape: share for shape, share in shapes.items() if share >= SHAPE_SHOWN and shape != "words"}
    counted = replace(counted, reads_like=shown)
    reached = [shape for shape, needed in REACHES_PEOPLE.items() if shapes.get(shape, 0.0) >= needed]
    if reached:
        # The text identifies the person, regardless of how often it occurs.
        return _identifying(
            counted, *(f"looks like {shape} ({percent(shapes[shape])} of its texts)" for shape in reached)
        )
    if len(values) < FEWEST_VALUES and holders.n_of_one < 2:
        return counted
    # Letters or signs around numbers are units, or a prefix of all assigned ones.
    around = AROUND if shapes.get("numbers", 0.0) + shapes.get("whole numbers", 0.0) >= MOSTLY else " "
    whole = [whole_number_of(text.strip(around)) is not None for text in looked_at]
    if sum(whole) >= MOSTLY * len(whole):
        has_zeros = any(text.startswith("0") and len(text) > 1 for text in map(str.strip, looked_at))
        if has_zeros and _number_people(holders, len(values)):
            return _identifying(counted, "has numbers padded with zeros")
        numbers = [number for text in values if (number := whole_number_of(text.strip(around))) is not None]
        return _judge_whole_numbers(counted, np.clip(numbers, -LARGEST, LARGEST).astype(np.int64), holders)
    leading = [
        group
        for group, needed in GROUPS.items()
        if _leads_to_people(group, needed, sum(shapes.get(shape, 0.0) for shape in group), holders, len(values))
    ]
    reasons = [
        f"looks like {shape} ({percent(share)} of its texts)"
        for shape, share in shown.items()
        if any(shape in group for group in leading)
    ]
    is_measure = sum(shapes.get(shape, 0.0) for shape in MEASURES) >= 0.5
    is_continuous = sum(shapes.get(shape, 0.0) for shape in CONTINUOUS) >= 0.5
    is_apart = _tells_apart(holders) if is_measure else _is_hardly_shared(holders)
    if not reasons and is_apart and not is_continuous:
        reasons = ["hardly any of its texts are shared by two people"]
    if reasons:
        return _identifying(counted, *reasons)
    return _measure(counted) if is_measure else counted


def _spread(n_distinct: int) -> list[int]:
    """Return the positions of the examined values: all, or the maximum number, evenly spread."""
    return [int(place) for place in np.linspace(0, n_distinct - 1, min(n_distinct, MOST_VALUES))]


def _leads_to_people(group: frozenset[str], needed: float, share: float, holders: Holders, n_distinct: int) -> bool:
    """Return whether texts with shapes of a group identify people, given the share of such texts."""
    n_alike, unshared = share * n_distinct, holders.unshared
    if share < needed or n_alike < 2:
        return False
    if group in (EMAIL, OF_PEOPLE):
        return unshared >= 0.1 or (n_alike >= FEWEST_VALUES and n_distinct >= 0.02 * holders.n_holdings)
    if group == FORMATS:
        return unshared >= 0.1 or n_alike >= MANY_VALUES
    if holders.n_of_one < 5 and n_alike < MANY_VALUES:
        return False
    if group == NAMES:
        is_apart = unshared >= (0.5 if holders.rest < FEW_PEOPLE else 0.25)
        return is_apart or (share >= 0.8 and n_alike >= MANY_VALUES)
    return unshared >= (0.5 if group == CODES else 0.1)


def _is_hardly_shared(holders: Holders) -> bool:
    """Return whether nearly all plain words belong to one person each; in a few records most do so by chance."""
    needed = 0.9 if holders.rest < FEW_PEOPLE else 0.5
    return holders.rest >= FEWEST_VALUES and holders.unshared >= needed


def _number_people(holders: Holders, n_distinct: int) -> bool:
    """Return whether nearly every number belongs to only one person, and each person has one."""
    is_distinct = n_distinct >= UNSHARED * holders.n_holdings
    return n_distinct >= FEWEST_NUMBERS and (is_distinct or holders.unshared >= UNSHARED)


def _tells_apart(holders: Holders) -> bool:
    """Return whether nearly everybody has a value alone, among more people than have different ones by chance."""
    return holders.rest >= FEW_PEOPLE and holders.unshared >= UNSHARED


def _judge_numbers(counted: ColumnExamination, values: pd.Index, holders: Holders) -> ColumnExamination:
    if not types.is_float_dtype(values.dtype):
        numbers = np.asarray(values.to_numpy(dtype=np.int64 if types.is_signed_integer_dtype(values.dtype) else object))
        return _judge_whole_numbers(counted, np.clip(numbers, -LARGEST, LARGEST).astype(np.int64), holders)
    numbers = values.to_numpy(dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) and np.ptp(numbers % 1) < SAME_FRACTION:
        numbers = np.floor(numbers)
    if len(numbers) and (numbers == np.floor(numbers)).mean() >= MOSTLY:
        return _judge_whole_numbers(counted, np.clip(numbers, -LARGEST, LARGEST).astype(np.int64), holders)
    has_minutes = np.round(numbers, 3) != numbers
    if _last_word(counted.column) in PLACE_WORDS and (np.abs(numbers) <= 180).all() and has_minutes.mean() >= 0.5:
        return _identifying(counted, "looks like coordinates")
    return _measure(counted)


def _judge_whole_numbers(counted: ColumnExamination, numbers: NDArray[np.int64], holders: Holders) -> ColumnExamination:
    """Distinguish numbers assigned to people from measures by order, length and column name."""
    n_digits = _digits_of(numbers)
    is_long = n_digits >= LONG_DIGITS
    of_one_length = np.bincount(n_digits).max() >= 0.95 * len(numbers)
    scaled = _in_steps(numbers)
    is_rounded = ((scaled if _tells_apart(holders) else numbers) % 100 == 0).mean() >= 0.3
    if not _number_people(holders, len(numbers)):
        # Account numbers in many records: this many long numbers of the same length are not a measure, either.
        if len(numbers) >= MANY_VALUES and of_one_length and is_long.mean() >= 0.95 and not is_rounded:
            return _identifying(counted, f"has numbers of {LONG_DIGITS} digits or more")
        return _measure(counted)
    if _is_running(numbers):
        return _identifying(counted, "has consecutive numbers")
    if is_long.mean() >= 0.5 and not is_rounded:
        return _identifying(counted, f"has numbers of {LONG_DIGITS} digits or more")
    if _are_days(numbers):
        return _judge_days(counted, numbers, holders)
    if of_one_length and n_digits.max() >= EQUAL_DIGITS and not is_rounded:
        return _identifying(counted, f"has numbers of {int(np.median(n_digits))} digits each")
    if _last_word(counted.column) in IDENTIFIER_WORDS:
        return _identifying(counted, "has the name of a number assigned to people")
    if is_rounded or (_is_bell(scaled) and not _avoids_equal(scaled, holders)):
        return _measure(counted)
    return _identifying(counted, "nearly everybody has a whole number of their own")


def _in_steps(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return numbers as multiples of the largest step between all, or nearly all if it is a round one."""
    steps = numbers // max(int(np.gcd.reduce(np.diff(np.sort(numbers)), initial=0)), 1)
    for step in STEPS:
        if np.unique(steps % step, return_counts=True)[1].max() >= MOSTLY * len(steps):
            return steps // step
    return steps


def _is_bell(numbers: NDArray[np.int64]) -> bool:
    """Return whether numbers, their cube roots or their logarithms spread like a bell, and not evenly or in blocks."""
    from scipy.special import ndtr

    found = numbers.astype(np.float64)
    even = np.log(np.ptp(found) + 1)
    scales = [(found, 0.0)]
    if found.min() >= 0:
        positive = found + 1
        logarithm = float(np.log(positive).mean())
        scales += [(np.cbrt(positive), np.log(3) + 2 / 3 * logarithm), (np.log(positive), logarithm)]
    for values, stretched in scales:
        standard = np.sort(values - values.mean()) / values.std()
        # The mean surprise of a number, in nats, under the normal distribution and under the even one.
        gain = even - (np.log(values.std()) + 0.5 * np.log(2 * np.pi * np.e) + stretched)
        ranks = (np.arange(len(values)) + 0.5) / len(values)
        is_near = np.abs(ndtr(standard) - ranks).max() <= 0.1 + 0.6 / np.sqrt(len(values))
        if is_near and gain * len(values) >= max(GAIN * (len(values) - FEW_PEOPLE), -SLACK):
            return True
    return False


def _avoids_equal(numbers: NDArray[np.int64], holders: Holders) -> bool:
    """Return whether fewer people have equal numbers than near ones suggest, as where each number is assigned once."""
    from scipy.special import pdtr

    steps = np.sort(numbers)
    n_near = int((np.searchsorted(steps, steps + NEAR, side="right") - np.arange(len(steps)) - 1).sum())
    n_expected, n_equal = n_near / (2 * NEAR), holders.n_holdings - len(steps)
    if holders.n_of_most > MOST_ALIKE:
        n_equal -= holders.n_of_most - 1
    return n_equal < n_expected / TIMES_FEWER and float(pdtr(n_equal, n_expected)) < BY_CHANCE


def _digits_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    powers = 10 ** np.arange(1, 19, dtype=np.int64)
    return np.searchsorted(powers, np.abs(numbers), side="right") + 1


def _is_running(numbers: NDArray[np.int64]) -> bool:
    """Return whether numbers ascend in equal steps, with at most about half of them missing."""
    step = int(np.gcd.reduce(np.diff(np.sort(numbers))))
    if step == 0:
        # Numbers beyond 64 bits are not distinguished here.
        return False
    needed = 0.5 if len(numbers) >= FEWEST_VALUES else 0.6
    return len(numbers) >= needed * ((int(numbers.max()) - int(numbers.min())) // step + 1)


def _are_days(numbers: NDArray[np.int64]) -> bool:
    """Return whether numbers are days written as YYYYMMDD."""
    years, months, days = numbers // 10_000, numbers // 100 % 100, numbers % 100
    is_day = (years >= 1800) & (years <= 2200) & (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    return bool(is_day.mean() >= 0.95)


def _last_word(name: str) -> str:
    words = re.findall(r"[A-ZÄÖÜ]*[^\WA-Z\d_]+|[A-Z]+", name)
    return words[-1].casefold() if words else ""


def _judge_datetimes(counted: ColumnExamination, values: pd.Index, holders: Holders) -> ColumnExamination:
    # Dates have one distinct time, or two if a zone shifts them by half an hour.
    moments = pd.DatetimeIndex(values)
    to_the_minute = len(np.unique(np.asarray(moments.minute))) >= 3
    if to_the_minute and holders.unshared >= 0.1:
        return _identifying(counted, "has times to the minute or finer")
    return _judge_days(counted, moments.asi8, holders)


def _judge_days(counted: ColumnExamination, days: NDArray[np.int64], holders: Holders) -> ColumnExamination:
    """Distinguish days that nearly everybody has alone, which no distribution makes a measure, from others."""
    is_assigned = _number_people(holders, len(days)) and _avoids_equal(_in_steps(days), holders)
    if is_assigned or _tells_apart(holders):
        return _identifying(counted, DAY_ALONE)
    return _measure(counted)


def _identifying(counted: ColumnExamination, *reasons: str) -> ColumnExamination:
    return replace(counted, finding="identifying", reasons=(*reasons, _alone(counted)))


def _measure(counted: ColumnExamination) -> ColumnExamination:
    if counted.n_distinct < FEWEST_VALUES or counted.share_alone < MEASURE_SHARE_ALONE:
        return counted
    return replace(counted, finding="nearly_unique", reasons=(_alone(counted),))


def _alone(counted: ColumnExamination) -> str:
    return f"{percent(counted.share_alone)} of the people have a unique value"
