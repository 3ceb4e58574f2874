"""Test whether originals and controls come from the same process, without synthetic records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.disclosure.permutation_test import PERMUTATIONS_AT_ONCE, adjusted_p_values
from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.errors import InvalidTableError

FEWEST_PEOPLE: Final = 50
CHANCE: Final = 0.001
"""Equal people on both sides count as chance unless they are less probable than this."""
STEEPEST: Final = 40.0


def count_shared(records: PooledRecords) -> tuple[int, bool]:
    """Count the controls whose records are all those of an original, as `count_alike`."""
    return count_alike(records.exact.real.columns, records.n_exact.tolist(), records.people, records.n_original_people)


def count_alike(
    codes: Sequence[NDArray[Any]], n_codes: Sequence[int], people: NDArray[Any], n_original: int
) -> tuple[int, bool]:
    """Count the controls whose records are all those of an original, and judge whether chance explains them.

    ``codes`` are those of all real records, by column; the people below ``n_original`` are the originals. Chance does
    not if a random division of the people gives this many with a probability below `CHANCE`: then the control contains
    originals, even if their person identifiers differ. Of m people with the same records c are controls, and these c
    equal an original unless c is m. c is modeled as binomial. The probability is bounded as by Chernoff [1]_, so fewer
    honest tables are refused than `CHANCE` allows.

    .. [1] H. Chernoff (1952), "A measure of asymptotic efficiency for tests of a hypothesis based on the sum of
       observations", doi:10.1214/aoms/1177729330.
    """
    groups = _people_alike(codes, n_codes, people)
    size = np.bincount(groups)
    n_control = np.bincount(groups[n_original:], minlength=len(size))
    n_shared = int(n_control[n_control < size].sum())
    return n_shared, _chance_of(n_shared, size, 1 - n_original / len(groups)) < CHANCE


def _people_alike(codes: Sequence[NDArray[Any]], n_codes: Sequence[int], people: NDArray[Any]) -> NDArray[np.int64]:
    """Return a number for each person, which is the same for people with the same records."""
    groups, n_groups = group_rows(codes, n_codes)
    # The sum of random marks does not depend on the order of a person's records.
    marks = np.random.default_rng(0).integers(0, 2**64, n_groups, np.uint64)
    of_person = np.zeros(int(people.max()) + 1, np.uint64)
    np.add.at(of_person, people, marks[groups])
    return np.asarray(np.unique(of_person, return_inverse=True)[1], np.int64)


def _chance_of(n_shared: int, size: NDArray[np.int64], share: float) -> float:
    """Bound the probability of this many shared people, given how many have equal records and the controls' share."""
    from scipy.optimize import minimize_scalar

    m, n_groups = np.unique(size[size > 1], return_counts=True)

    def exponent(steepness: float) -> float:
        odds = np.exp(-steepness) * (1 - share) / share
        all_of_them = m * np.log1p(share * np.expm1(steepness))
        # If all m are controls, no control is shared, so their weight is that of none.
        others = -np.expm1(-m * np.log1p(odds)) + np.exp(m * np.log(share) - all_of_them)
        return float(n_groups @ (all_of_them + np.log(others)) - steepness * n_shared)

    if len(m) == 0:
        return 1.0
    least = minimize_scalar(exponent, bounds=(0.0, STEEPEST), method="bounded").fun
    return float(np.exp(min(least, 0.0)))


class Compared(NamedTuple):
    """Codes of rows, of shape (n_columns, n_rows), their upper bounds by column, and the person of each row."""

    codes: NDArray[Any]
    n_codes: NDArray[np.int64]
    owner: NDArray[np.int64]


def compare_sides(
    records: PooledRecords,
    rows: NDArray[np.int64],
    n_permutations: int,
    rng: np.random.Generator,
    on_done: Callable[[int], None],
) -> NDArray[np.float64]:
    """Test by permutation whether values have the same distribution among originals and controls, by column."""
    people, owner = np.unique(records.people[rows], return_inverse=True)
    compared = Compared(records.binned.real.take(rows), records.n_binned, owner)
    return compare_tables([compared], people < records.n_original_people, n_permutations, rng, on_done)


def compare_tables(
    tables: Sequence[Compared],
    is_original: NDArray[np.bool_],
    n_permutations: int,
    rng: np.random.Generator,
    on_done: Callable[[int], None],
) -> NDArray[np.float64]:
    """Test by permutation of the people whether values have the same distribution on both sides, by column.

    Returns the p value of each column's chi-squared statistic (numbers in bins), adjusted for the columns of all tables
    by the maximum of the standardized statistics. ``on_done`` is called with the number of completed divisions.
    """
    n_people, n_drawn = len(is_original), min(int(is_original.sum()), int((~is_original).sum()))
    prepared = []
    for codes, n_codes, owner in tables:
        begin = np.concatenate([[0], np.cumsum(n_codes)[:-1]])
        # Of shape (n_rows, n_columns), so that drawing rows copies whole rows.
        own = np.ascontiguousarray((codes + begin[:, None]).T)
        total = np.bincount(own.ravel(), minlength=int(n_codes.sum())).astype(float)
        prepared.append((own, begin, owner, total, total * (n_drawn / n_people)))

    def statistic(is_drawn: NDArray[np.bool_]) -> NDArray[np.float64]:
        found = []
        for codes, begin, owner, total, expected in prepared:
            n = np.bincount(np.compress(is_drawn[owner], codes, axis=0).ravel(), minlength=len(total))
            found.append(np.add.reduceat((n - expected) ** 2 / np.maximum(total, 1), begin))
        return np.concatenate(found)

    statistics = [statistic(is_original if is_original.sum() == n_drawn else ~is_original)]
    for i in range(n_permutations):
        if i % PERMUTATIONS_AT_ONCE == 0:
            on_done(i)
        drawn = np.zeros(n_people, np.bool_)
        drawn[rng.choice(n_people, n_drawn, replace=False, shuffle=False)] = True
        statistics.append(statistic(drawn))
    # Standardized statistics, because n_permutations give too few p values for the smallest of many columns.
    found = np.array(statistics)
    spread = found.std(axis=0)
    return adjusted_p_values(-np.rint((found - found.mean(axis=0)) / np.where(spread > 0, spread, 1) * 1e9))


def require_usable(records: PooledRecords) -> None:
    """Refuse tables that cannot be tested."""
    if len(records.columns) < 2:
        raise InvalidTableError(
            f"The tables have only the column {records.columns[0]!r} to compare. Expected at least two columns, to "
            "link and to infer. Nothing was assessed."
        )
    n_original = records.n_original_people
    sides: Mapping[str, int] = {"original": n_original, "control": records.n_people - n_original}
    small = {name: n for name, n in sides.items() if n < FEWEST_PEOPLE}
    if small:
        raise InvalidTableError(
            f"There are too few people: {small}. Expected at least {FEWEST_PEOPLE} on each side, because otherwise "
            "most leaks go unnoticed. Keep more records as control. Nothing was assessed."
        )
    if all(own.min() == own.max() for own in records.exact.real):
        raise InvalidTableError(
            f"All {records.n_real} originals and controls are equal in all columns, so nobody can be distinguished. "
            "Expected columns with several values. Nothing was assessed."
        )
    require_strangers(records)


def require_strangers(records: PooledRecords) -> None:
    """Refuse controls who seem to be originals."""
    n_shared, is_too_many = count_shared(records)
    if is_too_many:
        raise InvalidTableError(
            f"{n_shared} of {records.n_people - records.n_original_people} controls equal an original in all columns, "
            "far more than by chance. Expected people whom the synthesizer has not seen; these controls seem to be "
            "originals. Remove them from one side. Nothing was assessed."
        )


def require_examined(n_original: int, n_people: int) -> None:
    """Refuse a sample with too few people from one side."""
    sides = {"original": n_original, "control": n_people - n_original}
    if min(sides.values()) < FEWEST_PEOPLE:
        raise InvalidTableError(
            f"Of the {n_people:,} people who were drawn at random to be examined, too few are from one side: "
            f"{sides}. Expected at least {FEWEST_PEOPLE} from each. Draw more (`sample`), or keep more people on that "
            "side. Nothing was assessed."
        )
