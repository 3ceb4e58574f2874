"""Rules across columns that hold in a whole table, as proposals: only a person knows which of them are meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations, permutations
from keyword import iskeyword
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.coding import kind_of_dtype
from privacy_assets.contract.rule_expressions import Columns
from privacy_assets.contract.rules import read_rules
from privacy_assets.drafting.described import TEMPLATES
from privacy_assets.errors import InvalidSettingError

FEWEST_PEOPLE_OF_A_RULE: Final = 50
"""People on each side of a rule: for example with the premise, and without the conclusion."""
FEWEST_BY_CHANCE: Final = 14
"""Violations expected if the columns were independent: that there are none is then no chance (1 in a million)."""
MOST_PROPOSED: Final = 10
MOST_VALUES: Final = 12
MOST_COLUMNS: Final = 60
MOST_ATTRIBUTES: Final = 100
MOST_SETS: Final = 1 << 14
MOST_WORDS: Final = 1 << 28
ROWS_FIRST: Final = 2_000
WORD: Final = re.compile(r"[^\W\d_]{2,}")


class ProposedRule(NamedTuple):
    """A rule, as a contract has it, and the numbers of people on its two sides."""

    name: str
    written: Any
    people: tuple[int, int]


def propose_rules(table: pd.DataFrame, columns: Sequence[str], person: str | None) -> tuple[ProposedRule, ...]:
    """Propose rules on some columns of a typed table: at most ten, and none that at least 50 people do not show.

    Orders of dates, or of numbers whose names share a word; columns that determine others; and values that imply those
    of another column, from the stem base of the context of frequent values. Cost is quadratic in the columns.
    """
    names = [name for name in columns if name != person and "`" not in name and name.isprintable()][:MOST_COLUMNS]
    whose = None if person is None else pd.factorize(table[person])[0]
    if len(table) < FEWEST_PEOPLE_OF_A_RULE:
        return ()

    def people(where: NDArray[np.bool_]) -> int:
        return int(where.sum()) if whose is None else len(np.unique(whose[where]))

    orders = list(_orders(table, names, people))
    determined = list(_determined(table, names, people))
    pairs = {tuple(own.written["determines"]) for own in determined}
    shares = (orders[:4], determined[:3], _implied(table, names, people, pairs))
    named = {own.name: own for kind in shares for own in kind if _holds(own, table)}
    return tuple(named.values())[:MOST_PROPOSED]


def _holds(own: ProposedRule, table: pd.DataFrame) -> bool:
    """Whether a contract in a project of Dagster can have the rule, and no record violates it."""
    if any(mark in str(own.written) for mark in TEMPLATES):
        return False
    with suppress(InvalidSettingError):
        return not read_rules({own.name: own.written}, table)[0].outcome(Columns(table)).is_false.any()
    return False


def _orders(table: pd.DataFrame, names: Sequence[str], people: Any) -> Iterator[ProposedRule]:
    shuffled = np.random.default_rng(0).permutation(len(table))
    for one, other in combinations(
        [name for name in names if kind_of_dtype(table[name].dtype) in ("number", "datetime")], 2
    ):
        are_times = [types.is_datetime64_any_dtype(table[name].dtype) for name in (one, other)]
        zones = {getattr(table[name].dtype, "tz", None) is None for name in (one, other)}
        words = [set(WORD.findall(name.casefold())) for name in (one, other)]
        if any(are_times) if not all(are_times) else len(zones) > 1:
            continue
        if not all(are_times) and words[0].isdisjoint(words[1]):
            continue
        for low, high in ((one, other), (other, one)):
            if _where(table[low] > table[high]).any():
                continue
            by_chance = table[high].take(shuffled).reset_index(drop=True)
            is_broken = _where(table[low].reset_index(drop=True) > by_chance)
            sides = people(_where(table[low] < table[high])), people(is_broken)
            if min(sides) >= FEWEST_PEOPLE_OF_A_RULE:
                yield ProposedRule(_name(low, "at_most", high), f"{_quoted(low)} <= {_quoted(high)}", sides)
                break


def _determined(table: pd.DataFrame, names: Sequence[str], people: Any) -> Iterator[ProposedRule]:
    codes = {name: pd.factorize(table[name])[0] for name in names if not types.is_float_dtype(table[name].dtype)}
    codes = {name: own for name, own in codes.items() if not types.is_datetime64_any_dtype(table[name].dtype)}
    distinct = {name: int(own.max(initial=-1)) + 1 for name, own in codes.items()}
    known = {name: own >= 0 for name, own in codes.items()}
    place = {name: i for i, name in enumerate(codes)}
    for code, label in permutations(codes, 2):
        if not 2 <= distinct[label] <= distinct[code] <= len(table) / 2:
            continue
        if distinct[code] == distinct[label] and place[code] > place[label]:
            continue  # the two determine each other
        if any(_has_two(codes[code][:n], codes[label][:n], distinct[label]) for n in (ROWS_FIRST, len(table))):
            continue
        both = known[code] & known[label]
        repeats = both & (np.bincount(codes[code][both], minlength=distinct[code]) > 1)[codes[code]]
        is_most = codes[label] == np.bincount(codes[label][known[label]]).argmax()
        sides = people(repeats & is_most), people(repeats & ~is_most)
        if min(sides) >= FEWEST_PEOPLE_OF_A_RULE:
            yield ProposedRule(_name(code, "determines", label), {"determines": [code, label]}, sides)


def _has_two(code: NDArray[np.intp], label: NDArray[np.intp], n_labels: int) -> bool:
    """Whether some code has two labels."""
    is_known = (code >= 0) & (label >= 0)
    pairs = pd.unique(code[is_known].astype(np.int64) * n_labels + label[is_known])
    return len(np.unique(pairs // n_labels)) < len(pairs)


def _implied(
    table: pd.DataFrame, names: Sequence[str], people: Any, determined: set[tuple[str, ...]]
) -> Iterator[ProposedRule]:
    attributes = [each for name in names for each in _attributes(table[name], people)][:MOST_ATTRIBUTES]
    if len({column for column, _, _ in attributes}) < 2:
        return
    has = np.column_stack([where for _, _, where in attributes])
    found = []
    for premise, conclusion in _implications(has):
        (one, value, first), (other, implied, second) = attributes[premise], attributes[conclusion]
        is_known = _where(table[other].notna())
        others = is_known & ~second
        sides = people(first), people(others)
        by_chance = sides[0] * others.sum() / max(int(is_known.sum()), 1)
        is_shown = min(sides) >= FEWEST_PEOPLE_OF_A_RULE and by_chance >= FEWEST_BY_CHANCE
        if one != other and (one, other) not in determined and is_shown:
            found.append((sides, one, value, other, implied))
    said: dict[tuple[str, str], Any] = {}
    for sides, one, value, other, implied in sorted(found, key=lambda each: -min(each[0])):
        # Of two values, each one that does not lead to one leads to the other.
        if (other, one) in said and said[other, one] != value and table[other].nunique() == 2:
            continue
        said.setdefault((one, other), implied)
        text = f"{_quoted(one)} != {value!r} or {_quoted(other)} == {implied!r}"
        yield ProposedRule(_name(one, str(value), "implies", other), text, sides)


def _attributes(column: pd.Series[Any], people: Any) -> Iterator[tuple[str, Any, NDArray[np.bool_]]]:
    """Yield the values that enough people have and lack: those of a column of few values, and zero of other numbers."""
    if types.is_float_dtype(column.dtype) or types.is_datetime64_any_dtype(column.dtype):
        return
    distinct = column.dropna().unique()
    is_number = types.is_integer_dtype(column.dtype) and not types.is_bool_dtype(column.dtype)
    for value in distinct.tolist() if len(distinct) <= MOST_VALUES else [0] if is_number else []:
        where = _where(column == value)
        if min(people(where), people(~where)) >= FEWEST_PEOPLE_OF_A_RULE:
            yield str(column.name), value, where


def _implications(has: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the implications between two attributes in the stem base of enough support, as places."""
    from privacy_assets.semantic_risk.kernels.formal_context import make_context
    from privacy_assets.semantic_risk.kernels.stem_basis import find_stem_basis

    n_attributes = has.shape[1]
    packed = np.packbits(has, axis=1, bitorder="little")
    packed = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    rows, counts = np.unique(np.ascontiguousarray(packed).view("<u8").astype(np.uint64), axis=0, return_counts=True)
    context, _ = make_context(rows, counts.astype(np.int64), n_attributes)
    support, found = FEWEST_PEOPLE_OF_A_RULE, None
    while found is None and support <= len(has):
        found = find_stem_basis(context, support, MOST_SETS, MOST_WORDS)
        support *= 4
    if found is None:
        return []
    sets = [
        np.unpackbits(bits.astype("<u8").view(np.uint8), axis=1, bitorder="little")[:, :n_attributes]
        for bits in (found.premises, found.conclusions)
    ]
    return [
        (int(own[0]), int(place))
        for own, closed in ((np.flatnonzero(premise), conclusion) for premise, conclusion in zip(*sets, strict=True))
        if len(own) == 1
        for place in np.flatnonzero(closed)
        if place != own[0]
    ]


def _where(compared: pd.Series[Any]) -> NDArray[np.bool_]:
    return compared.fillna(False).to_numpy(np.bool_)


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() and not iskeyword(name) and name != "missing" else f"`{name}`"


def _name(*parts: str) -> str:
    return re.sub(r"\W+", "_", "_".join(parts), flags=re.ASCII)[:80].strip("_") or "rule"
