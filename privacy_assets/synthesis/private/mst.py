"""MST: noisy counts of single columns and of pairs that form a privately chosen tree [1]_.

A third of the budget goes to the counts of each column, a third to choosing pairs, a third to the counts of these
pairs. With `given`, all counts are divided by the classes of one column at no extra cost, so that each class has its
own tree model and the relation of that column to every other is kept.

Only `PrivateRecords.noisy_counts` and `PrivateRecords.noisy_choice` touch the records. The cost is fixed, and can be
recorded, before they do.

References
----------
.. [1] R. McKenna, G. Miklau, D. Sheldon (2021), "Winning the NIST contest: a scalable and general approach to
   differentially private synthetic data", Journal of Privacy and Confidentiality 11(3), arXiv:2108.04978.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import pi, sqrt
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import is_integer, require
from privacy_assets.synthesis.private.accounting import check_delta, epsilon_of, rho_of
from privacy_assets.synthesis.private.domain import PublicDomain
from privacy_assets.synthesis.private.mechanisms import Mechanism, gaussian, noisy_maximum
from privacy_assets.synthesis.private.records import RESOLUTION, Charge, Grouping, PrivateRecords
from privacy_assets.synthesis.private.tree_model import Measured, TreeModel, closest_counts, fit_tree

MAX_CLASSES: Final = 8
MAX_CELLS: Final = 250_000
"""Cells of the counts of a pair; larger pairs are not measured."""
MAX_DELTA: Final = 1e-5
"""Largest delta if the number of people is not declared."""
FEW: Final = 3.0
"""Codes whose noisy count is below this many standard deviations of its noise are merged."""
SLACK: Final = 1e-9
"""Share of the budget that is not used, so that rounding in OpenDP's accounting cannot exceed the budget."""
UNDONE: Final = "No record was read, and nothing was spent."


class UnrecordedSpendingWarning(UserWarning):
    """A privacy budget was spent without being recorded in a ledger."""


class Plan(NamedTuple):
    """The mechanisms of a fit, which are fixed before records are touched.

    They are the noise of the counts of each of ``n_columns``, the choice of one pair, and the noise of its counts; the
    last two are None for a single column.
    """

    columns: Mechanism
    choice: Mechanism | None
    pairs: Mechanism | None
    n_columns: int

    @property
    def rho(self) -> float:
        """The largest cost of a fit, by OpenDP's accounting."""
        each = sum(mechanism.rho for mechanism in (self.choice, self.pairs) if mechanism is not None)
        return self.n_columns * self.columns.rho + (self.n_columns - 1) * each

    @classmethod
    def of(cls, rho: float, n_columns: int, rows_per_person: int) -> Plan:
        """Divide `rho` among the queries."""
        if n_columns == 1:
            return cls(gaussian(rho, rows_per_person), None, None, 1)
        n_pairs = n_columns - 1
        columns, pairs = (gaussian(rho / 3 / n_queries, rows_per_person) for n_queries in (n_columns, n_pairs))
        choice = noisy_maximum(rho / 3 / n_pairs, rows_per_person * RESOLUTION)
        return cls(columns, choice, pairs, n_columns)


class Merged(NamedTuple):
    """Codes of a column whose noisy counts were too small to be distinguished from noise.

    ``code`` has the code of each group; the last stands for all merged codes, ``rare``, each drawn as often as
    ``shares`` has it.
    """

    code: NDArray[np.int64]
    rare: NDArray[np.int64]
    shares: NDArray[np.float64]


@dataclass(frozen=True)
class NoisyModel:
    """The noisy model of the records: all that may be released, and all that sampling needs.

    Attributes
    ----------
    domain : PublicDomain
        Columns with their codes and values.
    given : int or None
        Position of the column whose classes divide all counts.
    tree : TreeModel
        Expected counts of the other columns and of pairs of them.
    merged : tuple of Merged
        Merged codes of the other columns.
    n_records : int
        Number of records, with noise.
    charges : tuple of Charge
        The cost of each query.
    epsilon, delta : float
        The guarantee.
    """

    domain: PublicDomain
    given: int | None
    tree: TreeModel
    merged: tuple[Merged, ...]
    n_records: int
    charges: tuple[Charge, ...]
    epsilon: float
    delta: float

    @property
    def rho(self) -> float:
        """The cost of the fit in zCDP."""
        return sum(charge.rho for charge in self.charges)

    def sample(self, n_records: int | None = None, *, seed: int) -> pd.DataFrame:
        """Draw records; this costs nothing, and can be repeated.

        Parameters
        ----------
        n_records : int, optional
            Number of records to draw; by default the noisy count.
        seed : int
            Seed of the draw. It does not affect the noise.
        """
        count = self.n_records if n_records is None else n_records
        require(is_integer(count, 1), "n_records", count, "a whole number, 1 or more", "Nothing was drawn.")
        require(is_integer(seed, 0), "seed", seed, "a whole number, 0 or more", "Nothing was drawn.")
        random = np.random.default_rng(seed)
        classes, groups = self.tree.sample(int(count), random)
        codes = np.empty((int(count), len(self.domain.columns)), dtype=np.int64)
        others = [place for place in range(len(self.domain.columns)) if place != self.given]
        if self.given is not None:
            codes[:, self.given] = classes
        for place, merged, group in zip(others, self.merged, groups.T, strict=True):
            codes[:, place] = merged.code[group]
            if len(merged.rare):
                rows = np.flatnonzero(group == len(merged.code) - 1)
                codes[rows, place] = random.choice(merged.rare, len(rows), p=merged.shares)
        return self.domain.decode(codes, random)


class Mst:
    """Differentially private synthesizer by MST; needs OpenDP (extra `dp`).

    The guarantee is (epsilon, delta)-differential privacy for adding or removing one person, or one record if records
    have no person. Noise has no seed: anyone who knew the seed could subtract the noise.

    Parameters
    ----------
    domain : PublicDomain
        Columns with their codes and values, from the contract.
    epsilon : float
        Budget of one fit, above 0.
    delta : float
        Below 1 / `declared_people`; at most `MAX_DELTA` if that is not given.
    given : str, optional
        Column of at most `MAX_CLASSES` codes whose relation to every other column is kept.
    rows_per_person : int
        Number of records of a person that count; the others are left out. Noise grows with it. 1 or more; a public
        setting.
    declared_people : int, optional
        Number of people, if it is public.

    Raises
    ------
    InvalidSettingError
        If a parameter is wrong, or OpenDP is not installed.
    """

    name = "mst"
    spends_budget = True

    def __init__(
        self,
        domain: PublicDomain,
        epsilon: float,
        delta: float,
        given: str | None = None,
        *,
        rows_per_person: int = 1,
        declared_people: int | None = None,
    ) -> None:
        check_delta(delta)
        check_delta_of(delta, declared_people)
        is_right = is_integer(rows_per_person, 1)
        require(is_right, "rows_per_person", rows_per_person, "a whole number, 1 or more", UNDONE)
        self.given = place_of(domain, given)
        n_columns = len(domain.columns) - (self.given is not None)
        self.domain, self.epsilon, self.delta = domain, float(epsilon), float(delta)
        self.rows_per_person, self.declared_people = int(rows_per_person), declared_people
        rho = rho_of(epsilon, delta)
        self.plan = Plan.of(rho * (1 - SLACK), n_columns, self.rows_per_person)
        if self.plan.rho > rho or epsilon_of(self.plan.rho, delta) > epsilon:
            raise InvalidSettingError(f"OpenDP's accounting of the plan exceeds epsilon={epsilon:g}. {UNDONE}")

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings in use."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "given": None if self.given is None else self.domain.names[self.given],
            "rows_per_person": self.rows_per_person,
            "declared_people": self.declared_people,
        }

    def fit(
        self,
        table: pd.DataFrame,
        *,
        person: Sequence[Any] | pd.Series[Any] | None = None,
        charge: Callable[[float], object] | None = None,
    ) -> NoisyModel:
        """Learn a noisy model of `table`. Every call spends the whole budget again, even one that fails.

        Parameters
        ----------
        table : DataFrame
            Records; values outside the domain are moved into it, without an error.
        person : sequence, optional
            Person of each record. Without it each record counts as a person.
        charge : callable, optional
            Records the cost, in rho, before the table is touched; an exception stops the fit there. Without it,
            `UnrecordedSpendingWarning` warns that nothing is recorded.
        """
        require_unique_text_names(table)
        if person is not None and len(person) != len(table):
            raise InvalidSettingError(f"`person` does not have one entry for each record. {UNDONE}")
        if person is None and self.rows_per_person != 1:
            raise InvalidSettingError(f"`rows_per_person` requires the person of each record. {UNDONE}")
        if charge is None:
            warnings.warn(
                f"This fit spends epsilon {self.epsilon:g}, which is not recorded in a ledger. Add it to everything "
                "else that was spent on these people.",
                UnrecordedSpendingWarning,
                stacklevel=2,
            )
        else:
            charge(self.plan.rho)
        whose = None if person is None else pd.factorize(np.asarray(person, dtype=object))[0].astype(np.int64)
        codes = self.domain.encode(table)
        records = PrivateRecords(codes, self.domain.sizes, self.given, whose, self.rows_per_person)
        return fit_model(self, records)


def fit_model(mst: Mst, records: PrivateRecords) -> NoisyModel:
    """Ask the records the planned questions, and find the tree model that agrees with the answers."""
    plan, names, sizes = mst.plan, mst.domain.names, mst.domain.sizes
    others = [place for place in range(len(sizes)) if place != mst.given]
    answers = []
    for place in others:
        ungrouped = Grouping(np.arange(sizes[place]), sizes[place])
        noisy = records.noisy_counts([place], [ungrouped], plan.columns, f"counts of {names[place]}")
        answers.append(noisy.astype(np.float64))
    n_records = _total(answers)
    groupings: dict[int, Grouping] = {}
    counts: dict[int, NDArray[np.float64]] = {}
    merged, weights = [], []
    for place, answer in zip(others, answers, strict=True):
        groupings[place], own, counts[place], weight = _merge(answer, plan.columns.scale)
        merged.append(own)
        weights.append(weight)
    pairs = _choose_pairs(records, plan, others, groupings, counts, n_records)
    answered = []
    for pair in pairs:
        what = f"counts of {names[pair[0]]} and {names[pair[1]]}"
        grouped = [groupings[place] for place in pair]
        answered.append(records.noisy_counts(pair, grouped, _known(plan.pairs), what).astype(np.float64))
    measured = Measured(
        [counts[place] for place in others], answered, weights, 0.0 if plan.pairs is None else plan.pairs.scale**-2
    )
    position = {place: position for position, place in enumerate(others)}
    edges = [(position[a], position[b]) for a, b in pairs]
    tree = fit_tree(measured, edges, n_records)
    charges = tuple(records.charges)
    if sum(charge.rho for charge in charges) > plan.rho * (1 + 1e-12):
        raise InvalidSettingError("The queries cost more than planned, which is an error in this package.")
    n_drawn = max(1, round(n_records))
    return NoisyModel(mst.domain, mst.given, tree, tuple(merged), n_drawn, charges, mst.epsilon, mst.delta)


def _choose_pairs(
    records: PrivateRecords,
    plan: Plan,
    others: Sequence[int],
    groupings: Mapping[int, Grouping],
    counts: Mapping[int, NDArray[np.float64]],
    n_records: float,
) -> list[tuple[int, int]]:
    """Choose the pairs of a tree, one after the other, by how far their counts are from independence."""
    if plan.choice is None or plan.pairs is None:
        return []
    expected = {place: closest_counts(own, n_records) for place, own in counts.items()}
    cells = {
        (a, b): records.n_classes * groupings[a].n_groups * groupings[b].n_groups for a, b in combinations(others, 2)
    }
    # The expected contribution of noise to the distance of a pair; larger pairs must be worth their noise.
    noise = sqrt(2 / pi) * plan.pairs.scale * RESOLUTION
    penalties = {pair: round(noise * n_cells) for pair, n_cells in cells.items()}
    component = {place: place for place in others}
    chosen: list[tuple[int, int]] = []
    for step in range(len(others) - 1):
        candidates = [
            pair for pair, n_cells in cells.items() if component[pair[0]] != component[pair[1]] and n_cells <= MAX_CELLS
        ]
        if not candidates:
            break
        place = records.noisy_choice(candidates, groupings, expected, penalties, plan.choice, f"choice {step + 1}")
        a, b = candidates[place]
        chosen.append((a, b))
        joined = component[b]
        component = {each: component[a] if own == joined else own for each, own in component.items()}
    return chosen


def _merge(
    answer: NDArray[np.float64], scale: float
) -> tuple[Grouping, Merged, NDArray[np.float64], NDArray[np.float64]]:
    """Merge the codes that are too rare to be distinguished from noise; return their grouping, counts and weights."""
    n_classes, n_codes = answer.shape
    totals = answer.sum(axis=0)
    is_rare = totals < FEW * scale * sqrt(n_classes)
    weight = scale**-2
    if is_rare.sum() <= 1 or is_rare.all():
        every = np.arange(n_codes)
        none = np.empty(0, dtype=np.int64)
        return Grouping(every, n_codes), Merged(every, none, np.empty(0)), answer, np.full(n_codes, weight)
    kept, rare = np.flatnonzero(~is_rare), np.flatnonzero(is_rare)
    group = np.full(n_codes, len(kept), dtype=np.int64)
    group[kept] = np.arange(len(kept))
    shares = np.maximum(totals[rare], 0.0) + 1.0
    counts = np.column_stack([answer[:, kept], answer[:, rare].sum(axis=1)])
    weights = np.append(np.full(len(kept), weight), weight / len(rare))
    merged = Merged(np.append(kept, rare[0]), rare, shares / shares.sum())
    return Grouping(group, len(kept) + 1), merged, counts, weights


def _total(answers: Sequence[NDArray[np.float64]]) -> float:
    """Estimate the number of records: the mean of the columns' totals, each weighted by its noise."""
    weights = np.array([1 / answer.size for answer in answers])
    return max(1.0, float(np.average([answer.sum() for answer in answers], weights=weights)))


def _known(mechanism: Mechanism | None) -> Mechanism:
    assert mechanism is not None  # noqa: S101 - only asked for where there are pairs
    return mechanism


def place_of(domain: PublicDomain, given: str | None) -> int | None:
    """Return the position of the column `given`, which must have few codes."""
    if given is None:
        return None
    expected = f"one of the columns {list(domain.names)}"
    require(given in domain.names, "given", given, expected, UNDONE)
    place = domain.names.index(given)
    n_codes = domain.sizes[place]
    if n_codes > MAX_CLASSES or len(domain.columns) < 2:
        raise InvalidSettingError(
            f"`given` names {given!r}, which has {n_codes} codes; expected at most {MAX_CLASSES}, and another column. "
            f"{UNDONE}"
        )
    return place


def check_delta_of(delta: float, declared_people: int | None) -> None:
    """Refuse a delta that would allow a mechanism to reveal a person's record."""
    is_right = declared_people is None or is_integer(declared_people, 1)
    require(is_right, "declared_people", declared_people, "None or a whole number, 1 or more", UNDONE)
    if declared_people is None:
        require(delta <= MAX_DELTA, "delta", delta, f"at most {MAX_DELTA:g} if declared_people is not given", UNDONE)
    else:
        require(delta < 1 / declared_people, "delta", delta, "a number below 1 / declared_people", UNDONE)
