"""Rules of the contract in synthetic records: what is determined is joined, sums are computed, the rest drawn again.

A determined column is not learned. Its values are joined from the observed pairs that at least ``min_atom`` people
share, in proportion to their records. The total of a sum is computed from its parts. Records that violate another rule
are drawn again, in at most 20 rounds; trees first draw the last column of the rule again, given those before it, so
that their distribution stays. Records that still violate a rule are counted, and stay.
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
from privacy_assets.contract.rules import Rule
from privacy_assets.errors import InvalidTableError

MOST_ROUNDS: Final = 20
DRAWS_PER_RECORD: Final = 4
"""Records drawn for each that violates a rule; of those that violate none, the first are taken."""
MOST_DECIMALS: Final = 10


class KeptRules(NamedTuple):
    """Synthetic records, and how many were drawn again, and how many violate a rule nevertheless."""

    table: pd.DataFrame
    redrawn: int
    left: int


class Join(NamedTuple):
    """A determined column, and the observed records that its values are taken from."""

    code: str
    label: str
    donors: pd.DataFrame

    def into(self, table: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
        """Add the determined column; a code that no donor has is replaced by the nearest number, or that of any."""
        found, donors = table[self.code], self.donors[self.code]
        if kind_of_dtype(found.dtype) in ("number", "datetime"):
            found = _nearest(found, donors.dropna().drop_duplicates().sort_values())
        both = pd.concat([donors.astype(object), found.astype(object)])
        place = pd.factorize(both, use_na_sentinel=False)[0]
        own, place = place[len(donors) :], place[: len(donors)]
        order, counts = np.argsort(place, kind="stable"), np.bincount(place, minlength=int(own.max(initial=0)) + 1)
        is_known = counts[own] > 0
        taken = random.choice(np.flatnonzero(donors.notna()), len(table))
        first, n_donors = (np.cumsum(counts) - counts)[own[is_known]], counts[own[is_known]]
        taken[is_known] = order[first + (random.random(len(first)) * n_donors).astype(np.intp)]
        joined = self.donors.take(taken).set_index(table.index)
        code = found.where(pd.Series(is_known, table.index) | found.isna(), joined[self.code])
        return table.assign(**{self.code: code, self.label: joined[self.label]})


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
        is_shared = (people_of_values(pair, len(distinct), whose) >= min_atom)[pair]
        donors = table.loc[is_shared & ~rule.outcome(Columns(table)).is_false, list(rule.columns)]
        if not donors[code].notna().any():
            raise InvalidTableError(
                f"The rule {rule.name!r} joins {label!r} from pairs with {code!r} that at least min_atom={min_atom} "
                "people share, and there are none. Coarsen or drop the columns, or remove the rule. Nothing was "
                "synthesized."
            )
        joins.append(Join(code, label, donors))

    def depth(join: Join) -> int:
        return 0 if join.code not in code_of else 1 + depth(next(each for each in joins if each.label == join.code))

    return sorted(joins, key=depth)


def keep_rules(
    draw: Callable[[int, int], pd.DataFrame], n_records: int, seed: int, rules: Sequence[Rule], joins: Sequence[Join]
) -> KeptRules:
    """Draw records, a number of them with a seed, so that they keep rules as far as possible; see the module."""
    ranges: dict[str, tuple[float, float]] = {}

    def complete(n_drawn: int, own_seed: int) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
        table, random = draw(n_drawn, own_seed), np.random.default_rng(np.random.SeedSequence(own_seed, spawn_key=(1,)))
        for join in joins:
            table = join.into(table, random)
        sums = [rule.columns for rule in rules if rule.kind == "sum"]
        for *_, total in sums:
            # Of the first draw: a total beyond them might be none that the contract allows.
            ranges.setdefault(total, (table[total].min(), table[total].max()))
        for *parts, total in sums * len(sums):
            table = table.assign(**{total: _summed(table, parts, total)})
        return table, _violating(rules, table, ranges)

    table, is_wrong = complete(n_records, seed)
    n_redrawn = 0
    for begun in range(MOST_ROUNDS):
        wrong = np.flatnonzero(is_wrong)
        if not len(wrong):
            break
        own_seed = int(np.random.SeedSequence(seed, spawn_key=(2, begun)).generate_state(1)[0])
        others, are_wrong = complete(len(wrong) * DRAWS_PER_RECORD, own_seed)
        right = np.flatnonzero(~are_wrong)[: len(wrong)]
        places = np.arange(len(table))
        places[wrong[: len(right)]] = len(table) + right
        table = pd.concat([table, others], ignore_index=True).take(places).reset_index(drop=True)
        is_wrong = _violating(rules, table, ranges)
        n_redrawn += len(right)
    return KeptRules(table, n_redrawn, int(is_wrong.sum()))


def draw_last_again(
    rules: Sequence[Rule],
    made: dict[str, pd.Series[Any]],
    last: str,
    again: Callable[[NDArray[np.intp]], pd.Series[Any]],
) -> None:
    """Draw the last of the columns again in records that violate a rule on it, in place, given those before it.

    ``again`` draws it for some rows.
    """
    ended = [rule for rule in rules if last in rule.columns and made.keys() >= set(rule.columns)]
    names = list(dict.fromkeys(name for rule in ended for name in rule.columns))
    rows = np.arange(len(made[last]))
    for begun in range(MOST_ROUNDS if ended else 0):
        rows = rows[_violating(ended, pd.DataFrame({name: made[name].take(rows) for name in names}), {})]
        if not len(rows) or begun == MOST_ROUNDS - 1:
            break
        column = made[last].copy()
        column.iloc[rows] = again(rows).array
        made[last] = column


def _violating(
    rules: Sequence[Rule], table: pd.DataFrame, ranges: Mapping[str, tuple[float, float]]
) -> NDArray[np.bool_]:
    columns, found = Columns(table), np.zeros(len(table), np.bool_)
    for rule in rules:
        with suppress(InvalidTableError):  # of a check of the user's schema, for which the gate refuses
            found |= rule.outcome(columns).is_false
    for total, (low, high) in ranges.items():
        found |= ((table[total] < low) | (table[total] > high)).fillna(False).to_numpy(np.bool_)
    return found


def _summed(table: pd.DataFrame, parts: Sequence[str], total: str) -> pd.Series[Any]:
    """Return the total, computed where its parts are known, with as many decimals as it has."""
    old = table[total].copy()
    found = np.sum([table[name].to_numpy(np.float64, na_value=np.nan) for name in parts], axis=0)
    is_known = np.flatnonzero(~np.isnan(found) & old.notna().to_numpy())
    if types.is_integer_dtype(old.dtype):
        old.iloc[is_known] = np.rint(found[is_known]).astype(np.int64)
        return old
    given = old.dropna().to_numpy(np.float64)
    decimals = next((n for n in range(MOST_DECIMALS) if np.array_equal(np.round(given, n), given)), None)
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
