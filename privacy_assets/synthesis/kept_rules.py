"""Rules of the contract in synthetic records: what is determined is joined, sums are computed, the rest drawn again.

A determined column is not learned. Its values are joined from the observed pairs that at least ``min_atom`` people
share, in proportion to their records. The total of a sum is computed from its parts. Records that violate another rule
are drawn again, in at most 20 rounds. Before that, trees draw the last column of the rule again, within its class and
then given the columns before it, so that their distribution stays. Records that still violate a rule are counted, and
stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.coding import kind_of_dtype, people_of_values
from privacy_assets.contract.rule_expressions import Columns
from privacy_assets.contract.rules import Rule, rules_on
from privacy_assets.errors import InvalidTableError

MOST_ROUNDS: Final = 20
DRAWS_PER_RECORD: Final = 4
"""Records drawn for each that violates a rule; of those that violate none, the first are taken."""
ROUNDS_WITHIN: Final = 5
"""Rounds in which a column is drawn again within its class."""
MOST_DECIMALS: Final = 10


class KeptRules(NamedTuple):
    """Synthetic records, and how many were drawn again, and how many violate a rule nevertheless.

    ``drawn`` has the place of each among all that were drawn.
    """

    table: pd.DataFrame
    redrawn: int
    left: int
    drawn: NDArray[np.intp]


class Join(NamedTuple):
    """A determined column, and the different observed pairs that its values are taken from, with their records."""

    code: str
    label: str
    donors: pd.DataFrame
    n_records: NDArray[np.intp]

    def into(self, table: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
        """Add the determined column; a code that no donor has is replaced by the nearest number, or that of any."""
        found, donors = table[self.code], self.donors[self.code]
        if kind_of_dtype(found.dtype) in ("number", "datetime"):
            found = _nearest(found, donors.dropna().drop_duplicates().sort_values())
        both = pd.concat([donors.astype(object), found.astype(object)])
        place = pd.factorize(both, use_na_sentinel=False)[0]
        own, place = place[len(donors) :], place[: len(donors)]
        order = np.argsort(place, kind="stable")
        ends = np.append(0, np.cumsum(self.n_records[order]))
        n_known = np.bincount(place, self.n_records, minlength=int(own.max(initial=0)) + 1).astype(np.intp)
        first = (np.cumsum(n_known) - n_known)[own]
        is_known = n_known[own] > 0
        shares = np.where(donors.notna(), self.n_records, 0)
        taken = random.choice(len(place), len(table), p=shares / shares.sum())
        drawn = first[is_known] + (random.random(is_known.sum()) * n_known[own[is_known]]).astype(np.intp)
        taken[is_known] = order[np.searchsorted(ends, drawn, side="right") - 1]
        joined = self.donors.take(taken).set_index(table.index)
        code = found.where(pd.Series(is_known, table.index) | found.isna(), joined[self.code])
        return table.assign(**{self.code: code, self.label: joined[self.label]})


class Total(NamedTuple):
    """How the total of a sum is written: its range, and its decimals if it has few."""

    least: Any
    most: Any
    decimals: int | None

    @classmethod
    def of(cls, column: pd.Series[Any]) -> Total:
        """Read a column with totals."""
        given = column.dropna().to_numpy(np.float64)
        decimals = next((n for n in range(MOST_DECIMALS) if np.array_equal(np.round(given, n), given)), None)
        return cls(column.min(), column.max(), decimals)


class Plan(NamedTuple):
    """How the records of a table with some columns keep rules; what is made may have others.

    ``early`` are the rules on columns that are drawn and stay; ``totals`` those that are computed, which ``early``
    names only if they are computed as soon as their parts are drawn (`summed`).
    """

    columns: Sequence[str]
    rules: Sequence[Rule]
    joins: Sequence[Join]
    early: Sequence[Rule]
    totals: Mapping[str, Total]

    @classmethod
    def of(
        cls, rules: Sequence[Rule], table: pd.DataFrame, min_atom: int, person: Any, fixed: Sequence[str] | None = None
    ) -> Plan:
        """Plan those on the columns of a table that is learned.

        ``fixed`` columns are neither joined nor computed; if they are given, totals are computed early.
        """
        own = rules_on(rules, table.columns)
        free = [rule for rule in own if rule.columns and rule.columns[-1] not in (fixed or ())]
        joins, totals = plan_joins(free, table, min_atom, person), totals_of(free, table)
        drawn = {*table.columns} - {join.label for join in joins} - (totals.keys() if fixed is None else set())
        early = [rule for rule in rules_on(own, drawn) if rule.tree is not None]
        return cls(list(table.columns), own, joins, early, totals)

    def learned(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table without what is joined."""
        return table.drop(columns=[join.label for join in self.joins])

    def complete(self, table: pd.DataFrame, random: np.random.Generator) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
        """Join and compute what is not drawn; return also which records violate a rule."""
        for join in self.joins:
            table = join.into(table, random)
        table = table.assign(**self.summed(table))
        return table, self.violated(table)

    def summed(self, table: Mapping[str, pd.Series[Any]] | pd.DataFrame) -> dict[str, pd.Series[Any]]:
        """Return the totals that are there with all of their parts, computed where these are known."""
        found: dict[str, pd.Series[Any]] = {}
        sums = [rule.columns for rule in self.rules if rule.kind == "sum" and rule.columns[-1] in self.totals]
        for names in sums * len(sums):
            if set(names) <= set(table.keys()):
                *parts, old = (found.get(name, table[name]) for name in names)
                found[names[-1]] = _summed(parts, old, self.totals[names[-1]].decimals)
        return found

    def changed_by(self, name: str) -> set[str]:
        """Return a column, and the totals that change with it."""
        found, sums = {name}, [rule.columns for rule in self.rules if rule.kind == "sum"]
        for *parts, total in sums * len(sums):
            found |= {total} if total in self.totals and not found.isdisjoint(parts) else set()
        return found

    def violated(self, table: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which complete records violate a rule, or have a total beyond its range."""
        found = _violating(self.rules, table[self.columns])
        for name, own in self.totals.items():
            # The contract may not allow others.
            found |= ((table[name] < own.least) | (table[name] > own.most)).fillna(False).to_numpy(np.bool_)
        return found


def totals_of(rules: Sequence[Rule], table: pd.DataFrame) -> dict[str, Total]:
    """Read how the totals of sums are written in a table."""
    return {rule.columns[-1]: Total.of(table[rule.columns[-1]]) for rule in rules if rule.kind == "sum"}


def plan_joins(rules: Sequence[Rule], table: pd.DataFrame, min_atom: int, person: Any) -> list[Join]:
    """Return the columns to join, those that determine others first.

    A column is joined by the first rule that determines it, unless it determines that rule's code itself: such rules
    are met by what is joined.
    """
    code_of: dict[str, str] = {}
    joins = []
    whose = None if person is None else pd.factorize(np.asarray(person))[0]
    for rule in (each for each in rules if each.kind == "determines"):
        code, label = rule.columns
        root = code
        while root in code_of:
            root = code_of[root]
        if label in code_of or root == label:
            continue
        code_of[label] = code
        codes, labels = (pd.factorize(table[name], use_na_sentinel=False)[0] for name in rule.columns)
        pair, distinct = pd.factorize(codes.astype(np.int64) * (int(labels.max()) + 1) + labels)
        is_shared = (people_of_values(pair, len(distinct), whose, min_atom) >= min_atom)[pair]
        kept = np.flatnonzero(is_shared & ~rule.outcome(Columns(table)).is_false)
        _, first, n_records = np.unique(pair[kept], return_index=True, return_counts=True)
        donors = table[list(rule.columns)].iloc[kept[first]]
        if not donors[code].notna().any():
            raise InvalidTableError(
                f"The rule {rule.name!r} joins {label!r} from pairs with {code!r} that at least min_atom={min_atom} "
                "people share, and there are none. Coarsen or drop the columns, or remove the rule. Nothing was "
                "synthesized."
            )
        joins.append(Join(code, label, donors, n_records))

    def depth(join: Join) -> int:
        return 0 if join.code not in code_of else 1 + depth(next(each for each in joins if each.label == join.code))

    return sorted(joins, key=depth)


def keep_rules(draw: Callable[[int, int], pd.DataFrame], n_records: int, seed: int, plan: Plan) -> KeptRules:
    """Draw records, a number of them with a seed, so that they keep rules as far as possible; see the module.

    Totals are written as in the first draw.
    """

    def drawn(n_drawn: int, own_seed: int) -> tuple[pd.DataFrame, np.random.Generator]:
        return draw(n_drawn, own_seed), np.random.default_rng(np.random.SeedSequence(own_seed, spawn_key=(1,)))

    table, random = drawn(n_records, seed)
    plan = plan._replace(totals={name: Total.of(table[name]) for name in plan.totals})
    table, is_wrong = plan.complete(table, random)
    places, n_drawn, n_redrawn = np.arange(n_records), n_records, 0
    for begun in range(MOST_ROUNDS):
        wrong = np.flatnonzero(is_wrong)
        if not len(wrong):
            break
        own_seed = int(np.random.SeedSequence(seed, spawn_key=(2, begun)).generate_state(1)[0])
        others, are_wrong = plan.complete(*drawn(len(wrong) * DRAWS_PER_RECORD, own_seed))
        right = np.flatnonzero(~are_wrong)[: len(wrong)]
        taken = np.arange(len(table))
        taken[wrong[: len(right)]] = len(table) + right
        places[wrong[: len(right)]], n_drawn = n_drawn + right, n_drawn + len(others)
        table = pd.concat([table, others], ignore_index=True).take(taken).reset_index(drop=True)
        is_wrong = plan.violated(table)
        n_redrawn += len(right)
    return KeptRules(table, n_redrawn, int(is_wrong.sum()), places)


def draw_last_again(
    rules: Sequence[Rule],
    made: dict[str, pd.Series[Any]],
    last: str,
    again: Callable[[NDArray[np.intp], bool], pd.Series[Any]],
    plan: Plan | None = None,
) -> None:
    """Draw the last of the columns again in records that violate a rule on it, in place, given those before it.

    ``again`` draws it for some rows, or only within its class. With a plan, totals are computed from it at once.
    """
    changed = {last} if plan is None else plan.changed_by(last)
    made.update({} if plan is None else plan.summed(made))
    ended = [rule for rule in rules if not changed.isdisjoint(rule.columns) and made.keys() >= set(rule.columns)]
    names = list(dict.fromkeys(name for rule in ended for name in rule.columns))
    rows = np.arange(len(made[last]))
    for begun in range(MOST_ROUNDS if ended else 0):
        rows = rows[_violating(ended, pd.DataFrame({name: made[name].take(rows) for name in names}))]
        if not len(rows) or begun == MOST_ROUNDS - 1:
            break
        column = made[last].copy()
        column.iloc[rows] = again(rows, begun < ROUNDS_WITHIN).array
        made[last] = column
        made.update({} if plan is None else plan.summed(made))


def _violating(rules: Sequence[Rule], table: pd.DataFrame) -> NDArray[np.bool_]:
    columns, found = Columns(table), np.zeros(len(table), np.bool_)
    for rule in rules:
        with suppress(InvalidTableError):  # of a check of the user's schema, for which the gate refuses
            found |= rule.outcome(columns).is_false
    return found


def _summed(parts: Sequence[pd.Series[Any]], total: pd.Series[Any], decimals: int | None) -> pd.Series[Any]:
    old = total.copy()
    found = np.sum([part.to_numpy(np.float64, na_value=np.nan) for part in parts], axis=0)
    is_known = np.flatnonzero(~np.isnan(found) & old.notna().to_numpy())
    if types.is_integer_dtype(old.dtype):
        old.iloc[is_known] = np.rint(found[is_known]).astype(np.int64)
        return old
    old.iloc[is_known] = found[is_known] if decimals is None else np.round(found[is_known], decimals)
    return old


def _nearest(found: pd.Series[Any], known: pd.Series[Any]) -> pd.Series[Any]:
    """Return the nearest known number or time of each, because they are also drawn between observed ones."""
    if known.empty:
        return found

    def index(column: pd.Series[Any]) -> Any:
        return pd.Index(column.to_numpy(np.float64) if kind_of_dtype(column.dtype) == "number" else column)

    present = found.dropna()
    place = index(known).get_indexer(index(present), method="nearest")
    return pd.Series(known.array.take(place), present.index, dtype=found.dtype).reindex(found.index)
