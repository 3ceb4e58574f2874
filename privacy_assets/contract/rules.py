"""Rules across the columns of a table, such as ``discharged >= admitted``, and the records that violate them.

A rule is an expression (`privacy_assets.contract.rule_expressions`), a column that determines another, a sum, or a
check of the owner's schema. Where a value that it needs is missing, it is unknown, and it is violated only where it is
false, as by CHECK in SQL (ISO/IEC 9075-2, 8.20). Messages have the owner's text and counts, never cells.
"""

from __future__ import annotations

import ast
import contextlib
import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.contract.rule_expressions import Cells, Columns, RuleProblem, evaluate, parse_expression, place_of
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import is_number
from privacy_assets.storage.column_files import ColumnFiles
from privacy_assets.storage.table import frame_of

MOST_RULES: Final = 100
LONGEST_NAME: Final = 100
MOST_NAMED: Final = 20
ROUNDING: Final = 1e-9
"""Error of a sum of floats, relative to its parts, that violates no rule."""
FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "expect": ("at_most",),
    "determines": ("at_most",),
    "sum": ("equals", "within", "at_most"),
}
"""Keys of a rule that is a mapping: the one that says its kind, and those beside it."""


@dataclass(frozen=True, eq=False)
class Rule:
    """A rule of a contract.

    Attributes
    ----------
    written : str, mapping or None
        As the owner wrote it; None for a check of a pandera schema.
    columns : tuple of str
        The columns that it names; empty for a check of pandera, which may read any.
    at_most : float
        Share of the records of the source that may violate it.
    """

    name: str
    written: Any
    columns: tuple[str, ...]
    at_most: float = 0.0
    kind: str = "expect"
    within: float = 0.0
    tree: ast.expr | None = field(default=None, repr=False)
    check: Any = field(default=None, repr=False)

    def outcome(self, columns: Columns) -> Cells:
        """Return by record whether the rule is met; missing where that is unknown."""
        if self.check is not None:
            return _of_check(self.name, self.check, frame_of(columns.table))
        problem = ""
        try:
            return self._outcome(columns)
        except RuleProblem as error:
            problem = str(error)
        raise InvalidTableError(f"The rule {self.name!r} cannot be evaluated on this table: it {problem}.")

    def _outcome(self, columns: Columns) -> Cells:
        if self.tree is not None:
            found = evaluate(self.tree, columns, 0)
            n_rows = len(columns.table)
            return found._replace(
                data=np.broadcast_to(found.data, n_rows), missing=np.broadcast_to(found.missing, n_rows)
            )
        own = [columns[name] for name in self.columns]
        missing = np.logical_or.reduce([each.missing for each in own])
        if self.kind == "determines":
            return Cells("truth", ~_differs_from_most(own[0].data, own[1].data, ~missing), missing)
        numbers = [each.data.astype(np.float64) for each in own]
        error = np.abs(sum(numbers[:-1]) - numbers[-1])
        is_whole = all(each.data.dtype.kind in "iu" for each in own)
        scale = 0.0 if is_whole else sum(map(np.abs, numbers))
        return Cells("truth", error <= self.within + ROUNDING * scale, missing)


def read_rules(
    written: object, table: pd.DataFrame, checks: Mapping[str, Any] | None = None, *, is_declared: bool = False
) -> tuple[Rule, ...]:
    """Read the rules of a contract, and the named checks of its schema.

    Parameters
    ----------
    written : mapping of str to (str or mapping)
        The rules by name.
    table : DataFrame
        A table with the columns and types of the contract; it needs no rows.
    checks : mapping of str to pandera Check, optional
        Checks of the whole table, by name.
    is_declared : bool
        Whether the types are those of a contract, so that texts must be listed categories.

    Raises
    ------
    InvalidSettingError
        If a rule is not of the described form, or names what the table does not have; all are listed, with the place.
    """
    if not isinstance(written, Mapping):
        raise InvalidSettingError("`rules` of the contract is no mapping of names to rules, such as {order: b >= a}.")
    if len(written) > MOST_RULES:
        raise InvalidSettingError(f"The contract has {len(written):,} rules; expected at most {MOST_RULES}.")
    columns = Columns(table, is_declared=is_declared)
    rules: list[Rule] = []
    problems: list[str] = []
    for name, own in written.items():
        is_name = isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable()
        if not is_name or name in (checks or {}):
            problems.append(f"the {len(rules) + len(problems) + 1}. rule has no name of its own")
            continue
        try:
            rule = _read_rule(name, own, columns)
            outcome = rule._outcome(columns)
            if outcome.kind != "truth":
                raise RuleProblem(f"is a {outcome.kind}, and no condition that is true or false")
            rules.append(rule)
        except RuleProblem as problem:
            problems.append(f"rule {name!r} {problem}{place_of(problem.node)}")
    if problems:
        raise InvalidSettingError(f"The rules cannot be used ({len(problems)} problems): {'; '.join(problems)}.")
    of_schema = (Rule(name, None, (), kind="check", check=check) for name, check in (checks or {}).items())
    return (*rules, *of_schema)


def violations(rules: Sequence[Rule], columns: Columns) -> dict[str, NDArray[np.bool_]]:
    """Return by rule which records violate it.

    Raises
    ------
    InvalidTableError
        If a check of the user's schema could not be evaluated.
    """
    return {rule.name: rule.outcome(columns).is_false for rule in rules}


def rules_on(rules: Sequence[Rule], columns: Collection[str]) -> list[Rule]:
    """Return the rules that name only some columns."""
    return [rule for rule in rules if set(rule.columns) <= set(columns)]


def broken_rules(rules: Sequence[Rule], table: pd.DataFrame | ColumnFiles) -> list[tuple[str, int]]:
    """Return what a source table violates, in words, and the number of records; also pairs of rules that contradict.

    Two rules contradict if some records meet each, and none of those on which both decide meets both.
    """
    columns = Columns(table)
    found = {rule: rule.outcome(columns) for rule in rules}
    broken = [(rule, int(own.is_false.sum())) for rule, own in found.items()]
    failures = [(f"rule {rule.name!r} is violated", n) for rule, n in broken if n > rule.at_most * len(table)]
    suspects = {rule for rule, n in broken if n}
    for one, other in combinations(rules, 2):
        if not suspects.isdisjoint((one, other)):
            decided = ~(found[one].missing | found[other].missing)
            first, second = found[one].data & decided, found[other].data & decided
            if first.any() and second.any() and not (first & second).any():
                said = f"rules {one.name!r} and {other.name!r} contradict each other"
                failures.append((said, int(decided.sum())))
    return failures


def _read_rule(name: str, own: object, columns: Columns) -> Rule:
    given = {"expect": own} if isinstance(own, str) else own
    kinds = [kind for kind in FORMS if isinstance(given, Mapping) and kind in given]
    if not isinstance(given, Mapping) or len(kinds) != 1:
        raise RuleProblem("is neither a text nor a mapping with one of expect, determines and sum")
    (kind,), at_most = kinds, given.get("at_most", 0)
    unknown = sorted(str(key) for key in given if key not in (kind, *FORMS[kind]))
    if unknown:
        raise RuleProblem(f"has unknown keys {unknown}; there are {[kind, *FORMS[kind]]}")
    if not is_number(at_most, 0, 1) or at_most == 1:
        raise RuleProblem("has an `at_most` that is no share of the records, from 0 and below 1")
    if kind == "expect":
        tree, named = parse_expression(given["expect"], columns)
        return Rule(name, own, named, float(at_most), tree=tree)
    listed, within = given[kind], given.get("within", 0)
    if not isinstance(listed, list | tuple) or len(listed) < 2 or not all(isinstance(each, str) for each in listed):
        raise RuleProblem(f"has a `{kind}` that is no list of columns")
    names = (*listed, given["equals"]) if kind == "sum" and isinstance(given.get("equals"), str) else (*listed,)
    unknown = [each for each in names if each not in columns.table.columns]
    if unknown:
        raise RuleProblem(f"names {unknown[:MOST_NAMED]}, which the contract lacks")
    if len(set(names)) < len(names) or len(names) != (2 if kind == "determines" else len(listed) + 1):
        expected = "two columns" if kind == "determines" else "different parts, and their total as `equals`"
        raise RuleProblem(f"is no `{kind}` of {expected}")
    if kind == "sum" and {columns[each].kind for each in names} != {"number"}:
        raise RuleProblem("sums columns that are no numbers")
    if not is_number(within, 0, math.inf):
        raise RuleProblem("has a `within` that is no number from 0")
    return Rule(name, dict(given), names, float(at_most), kind, float(within))


def _differs_from_most(codes: NDArray[Any], labels: NDArray[Any], is_known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the fewest records without which each code has one label (g3 of Kivinen and Mannila [1]_).

    .. [1] J. Kivinen, H. Mannila (1995), "Approximate inference of functional dependencies from relations",
       doi:10.1016/0304-3975(95)00028-U.
    """
    found = np.zeros(len(codes), np.bool_)
    code = pd.factorize(codes[is_known])[0].astype(np.int64)
    label, distinct = pd.factorize(labels[is_known])
    pair_of_row, pairs = pd.factorize(code * max(len(distinct), 1) + label)
    if not len(pairs):
        return found
    counts, code_of = np.bincount(pair_of_row), pairs // len(distinct)
    order = np.lexsort((np.arange(len(pairs)), -counts, code_of))
    is_most = np.zeros(len(pairs), np.bool_)
    is_most[order[np.unique(code_of[order], return_index=True)[1]]] = True
    found[is_known] = ~is_most[pair_of_row]
    return found


def _of_check(name: str, check: Any, table: pd.DataFrame) -> Cells:
    """Evaluate a check of a pandera schema; if it decides on the whole table, all records have its outcome."""
    is_met: NDArray[np.bool_] = np.zeros(0, np.bool_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a user's check may warn with values
        # A user's function can raise anything, and its text may contain values.
        with contextlib.suppress(Exception):
            output: Any = check(table.copy()).check_output
            output = output.all(axis="columns") if isinstance(output, pd.DataFrame) else output
            is_met = np.asarray(output if np.ndim(output) else [output] * len(table)).astype(np.bool_)
    if len(is_met) != len(table):
        raise InvalidTableError(f"The rule {name!r} is a check that could not be evaluated.")
    return Cells("truth", is_met, np.zeros_like(is_met))
