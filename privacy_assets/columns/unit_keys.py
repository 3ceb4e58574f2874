"""Columns that number people, accounts or households: their values repeat, and determine others beyond chance.

A column determines another if few rows would have to change so that each of its values goes with one value of the
other. How many would have to change by chance is counted on the other column shuffled, which also corrects for columns
that are coarse or almost constant. A person who has no such column, as in ratings, is found by the other half of a
key: each person has each movie, wave or visit once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import compact, count_codes
from privacy_assets.columns.key_candidates import (
    ALMOST_AS_MANY,
    AnyCodes,
    Candidate,
    CodedColumn,
    Codes,
    candidates_of,
    code_columns,
)
from privacy_assets.columns.place_names import names_a_place

FEWEST_EXPECTED: Final = 25.0
"""Fewest exceptions that chance must predict before it counts that there are few."""
TOLERATED: Final = 0.2
"""Share of these that may occur: wrong entries, a changed address."""
FEWEST_MEASURED: Final = 20
"""Values from which a number is a measure, and not the number of a state."""
MOST_RUNS: Final = 0.34
"""Runs beyond the fewest, in the order of a key, up to which a column is the key made coarser."""
MOST_RUNS_OF_PARTS: Final = 0.7
"""The same for parts of codes, because serial numbers run with whatever changed while they were given."""
FEWEST_RUNS_TO_LOSE: Final = 5
"""Runs that chance must make beyond the fewest before it counts that there are few."""
MOST_ROWS: Final = 30_000
"""Rows that are compared; of larger tables all rows of some values, because a sample of rows has no repeats."""
FEWEST_ROWS: Final = 4_000
MOST_CELLS: Final = 50_000_000
"""Rows times pairs of columns that are compared; wide tables are compared on fewer rows, down to 4,000."""
FEWEST_DRAWN: Final = 50
TIMES_OF_FEW: Final = 4
"""Times as many rows that are compared at most, also of a column whose few values have more of them."""
MOST_PAIRS: Final = 20_000
"""Pairs of columns that are compared; in tables with more, each key is compared with some of the other columns."""
FEWEST_COMPARED: Final = 20


@dataclass(frozen=True)
class UnitKey:
    """A column whose rows with one value seem to be of one person, account, household or firm.

    ``facts`` are the columns that it determines, without those that one of the others determines, and ``measures``
    those of them that are numbers or times of at least 20 values. With each of the ``halves`` it has each pair of
    values once; each of the ``names`` determines it, too. ``made_by`` is how it was made of the column, if it is not
    the column. It ``is_finer`` if it determines the people that are given, as a number of their visits does, and
    ``is_coarser`` if they determine it.
    """

    column: str
    n_values: int
    n_rows: int
    facts: tuple[str, ...]
    measures: tuple[str, ...] = ()
    halves: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    made_by: str = ""
    is_finer: bool = False
    is_coarser: bool = False

    @property
    def has_strong_facts(self) -> bool:
        """Whether it has two facts or a measure; one fact alone may be the name of a code."""
        return len(self.facts) > 1 or bool(self.measures)

    @property
    def is_strong(self) -> bool:
        """Whether it has strong facts or another half."""
        return self.has_strong_facts or bool(self.halves)


def find_unit_keys(table: Any, people: AnyCodes | None = None) -> tuple[UnitKey, ...]:
    """Find the columns that number people or other units with several rows, among all columns of a table.

    The table is a frame, or has ``columns``, ``dtypes`` and columns by name like one. See `keys_among`.
    """
    return keys_among(code_columns(table), people)


def keys_among(
    columns: Mapping[str, CodedColumn], people: AnyCodes | None = None, settled: Collection[str] = ()
) -> tuple[UnitKey, ...]:
    """Find the columns that number people or other units with several rows, among coded columns.

    Each key is related to ``people``, the code of the person of each row, if they are given, and none is sought in the
    ``settled`` columns. Columns come before what was made of them, of each the best, and those with more facts first. A
    table has the same keys whenever it is examined.
    """
    random = np.random.default_rng(0)
    varied = {name: own for name, own in columns.items() if own.codes.max(initial=-1) > 0}
    n_numbering = max(sum(own.may_number for own in varied.values()), 1)
    compared, n_compared = list(varied), max(FEWEST_COMPARED, MOST_PAIRS // n_numbering)
    if len(varied) > n_compared:
        compared = random.choice(compared, n_compared, replace=False).tolist()
    others = {name: varied[name].codes for name in compared}
    measured = {name for name in compared if varied[name].may_measure}
    most_rows = min(MOST_ROWS, max(FEWEST_ROWS, MOST_CELLS // (n_numbering * max(len(others), 1))))
    n_rows = max((len(own.codes) for own in columns.values()), default=0)
    thresholds = _thresholds(people, n_rows, TIMES_OF_FEW * most_rows)
    candidates = candidates_of(varied, settled)
    found = [_unit_key(each, others, measured, people, most_rows, thresholds) for each in candidates]
    found = sorted((each for each in found if each.facts or each.halves), key=lambda each: -_strength(each))
    best_made = {each.column: each for each in reversed(found) if each.made_by}
    return (
        *(each for each in found if not each.made_by),
        *sorted(best_made.values(), key=lambda each: -_strength(each)),
    )


def _strength(key: UnitKey) -> int:
    return len(key.facts) + 2 * bool(key.halves)


def _thresholds(people: AnyCodes | None, n_rows: int, most: int) -> NDArray[np.float32]:
    """Return from which share of drawn rows on each row is one of them: with all of its person, unless they are many.

    At most about ``most`` rows are going to be drawn.
    """
    random = np.random.default_rng(0)
    if people is None:
        return random.random(n_rows, np.float32)
    n_of_person = count_codes(people, int(people.max(initial=-1)) + 1)
    thresholds = random.random(len(n_of_person), np.float32)[people]
    has_many = (n_of_person * FEWEST_DRAWN > most)[people]
    thresholds[has_many] = random.random(np.count_nonzero(has_many), np.float32)
    return thresholds


def _unit_key(
    candidate: Candidate,
    others: dict[str, AnyCodes],
    measured: Collection[str],
    people: AnyCodes | None,
    most_rows: int,
    thresholds: NDArray[np.float32],
) -> UnitKey:
    random, column = np.random.default_rng(0), candidate.codes
    most_runs = MOST_RUNS_OF_PARTS if candidate.is_part else MOST_RUNS
    n_rows, n_values = int(np.count_nonzero(column >= 0)), int(column.max()) + 1
    # The last place is that of a missing value, -1.
    is_drawn = np.arange(n_values + 1) < n_values
    if n_rows > most_rows:
        n_drawn = max(FEWEST_DRAWN, n_values * most_rows // n_rows)
        is_drawn[random.permutation(n_values)[n_drawn:]] = False
    drawn = np.flatnonzero(is_drawn[column])
    if len(drawn) > TIMES_OF_FEW * most_rows:
        drawn = drawn[thresholds[drawn] < TIMES_OF_FEW * most_rows / len(drawn)]
    key = _numbered(column[drawn])
    held, halves, names = {}, [], []
    apart = {name: _numbered(others[name][drawn]) for name in candidate.apart if name in others}
    for other, its_codes in others.items():
        if other == candidate.column or other in apart:
            continue
        own = _numbered(its_codes[drawn])
        if own.max() < 1:
            continue
        if determines(key, own, random):
            is_its_name = own.max() + 1 >= ALMOST_AS_MANY * (key.max() + 1) and determines(own, key, random)
            if is_its_name:
                names.append(other)
            elif not _is_coarser(key, own, most_runs):
                held[other] = own
        if candidate.may_be_half and _is_other_half(key, own):
            halves.append(other)
    facts: list[str] = []
    for other in sorted(held, key=lambda each: -int(held[each].max())):
        known = [*apart.values(), *(held[kept] for kept in facts)]
        if not any(determines(each, held[other], random) for each in known):
            facts.append(other)
    facts = facts if len(facts) >= candidate.fewest_facts else []
    measures = [
        each
        for each in facts
        if each in measured and held[each].max() + 1 >= FEWEST_MEASURED and not names_a_place(each)
    ]
    of_people = None if people is None else _numbered(people[drawn])
    is_finer = of_people is not None and determines(key, of_people, random)
    is_coarser = of_people is not None and not is_finer and determines(of_people, key, random)
    told = tuple(facts), tuple(measures), tuple(halves), tuple(names)
    return UnitKey(candidate.column, n_values, n_rows, *told, candidate.made_by, is_finer, is_coarser)


def _numbered(codes: AnyCodes) -> Codes:
    """Return the codes numbered from 0 without those that do not occur, as the compiled comparison takes them."""
    return compact(codes, int(codes.max(initial=-1)) + 1)[0].astype(np.int64)


def _compared(key: Codes, column: Codes, most: float) -> tuple[int, int]:
    """Return how many rows would have to change so that the key determines the column, and the pairs of equal rows."""
    # Imports Numba, which is not needed to decide on what was found.
    from privacy_assets.kernels.code_pairs import compare_codes

    n_changes, n_pairs = compare_codes(key, column, int(key.max()) + 1, int(column.max()) + 1, int(most))
    return n_changes, n_pairs


def determines(key: Codes, column: Codes, random: np.random.Generator | None = None) -> bool:
    """Return whether each value of a key, given as codes without gaps, has one value of a column beyond chance."""
    # Chance predicts at most as many as if each value of the key kept one row, or all of them the most frequent value.
    most_expected = len(key) - max(int(key.max()) + 1, int(np.bincount(column).max()))
    if most_expected < FEWEST_EXPECTED:
        return False
    found, _ = _compared(key, column, TOLERATED * most_expected)
    if found > TOLERATED * most_expected:
        return False
    expected, _ = _compared(key, (random or np.random.default_rng(0)).permutation(column), len(key))
    return expected >= FEWEST_EXPECTED and found <= TOLERATED * expected


def _is_coarser(key: Codes, column: Codes, most_runs: float) -> bool:
    """Whether a column is the key made coarser: in the key's order its values come in few runs, as bands do."""
    column = column[np.unique(key, return_index=True)[1]]
    counts = np.bincount(column)
    counts = counts[counts > 0]
    fewest, by_chance = len(counts), len(column) - (counts * (counts - 1)).sum() / len(column)
    runs = 1 + int((column[1:] != column[:-1]).sum())
    return bool(by_chance - fewest < FEWEST_RUNS_TO_LOSE or runs - fewest <= most_runs * (by_chance - fewest))


def _is_other_half(key: Codes, column: Codes) -> bool:
    """Whether pairs of key and column repeat much less than by chance."""
    by_chance = _n_pairs(np.bincount(key)) * _n_pairs(np.bincount(column)) / max(_n_pairs(np.array([len(key)])), 1)
    if by_chance < FEWEST_EXPECTED:
        return False
    return _compared(key, column, len(key))[1] <= TOLERATED * by_chance


def _n_pairs(counts: NDArray[np.integer[Any]]) -> float:
    return float((counts * (counts - 1.0)).sum() / 2)
