"""Rules across the columns of a table, such as ``discharged >= admitted``, and the records that violate them.

A rule is written as a text, which is parsed by `ast` and evaluated on whole columns. Only a listed set of nodes is
read: names of columns, constants, comparisons, ``and or not``, ``+ - * /``, ``in [...]`` and ``missing(column)``;
nothing of a text is ever executed. A missing value makes a comparison unknown, and a rule is violated only where it is
false, as by CHECK in SQL (ISO/IEC 9075-2, 8.20). Messages have the owner's text and counts, never cells.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import re
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.contract.conversion import read_moments
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import is_number

MOST_RULES: Final = 100
LONGEST_RULE: Final = 2000
LONGEST_NAME: Final = 100
MOST_NAMED: Final = 20
DEEPEST_RULE: Final = 100
ROUNDING: Final = 1e-9
"""Error of a sum of floats, relative to its parts, that violates no rule."""
DAY: Final = 86_400_000_000
FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "expect": ("at_most",),
    "determines": ("at_most",),
    "sum": ("equals", "within", "at_most"),
}
"""Keys of a rule that is a mapping: the one that says its kind, and those beside it."""
ARITHMETIC: Final[Mapping[type[ast.operator], Callable[..., Any]]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
}
COMPARISONS: Final[Mapping[type[ast.cmpop], Callable[..., Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
QUOTED: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]+`|[\#\r\n]""")
"""Texts, names in backticks, the sign of a comment, which would hide the rest of a rule, and ends of lines."""
EXPECTED: Final = (
    "expected names of columns, constants, comparisons, and, or, not, + - * /, in [...], and missing(column)"
)


class _Problem(Exception):  # noqa: N818 - not an error of its own: it becomes part of one
    def __init__(self, said: str, node: ast.AST | None = None) -> None:
        super().__init__(said)
        self.node = node


class Cells(NamedTuple):
    """A column, or a constant (of shape ()), of one kind: number, text, time or truth.

    ``data`` are numbers, codes of ``labels``, microseconds, or booleans; they mean nothing where ``missing``.
    """

    kind: str
    data: NDArray[Any]
    missing: NDArray[np.bool_]
    labels: pd.Index[Any] | None = None
    is_ordered: bool = False
    zone: Any = None

    @property
    def is_true(self) -> NDArray[np.bool_]:
        """Where a condition is known to be true."""
        return self.data & ~self.missing

    @property
    def is_false(self) -> NDArray[np.bool_]:
        """Where a condition is known to be false."""
        return ~self.data & ~self.missing


class Columns:
    """The columns of a table, read when a rule first names them.

    ``is_declared`` if the table has the types of a contract: then a text that is none of the listed categories is
    refused.
    """

    def __init__(self, table: pd.DataFrame, *, is_declared: bool = False) -> None:
        self.table, self.is_declared = table, is_declared
        self._read: dict[str, Cells] = {}

    def __getitem__(self, name: str) -> Cells:
        if name not in self._read:
            self._read[name] = _cells_of(self.table[name])
        return self._read[name]


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
            return _of_check(self.name, self.check, columns.table)
        problem = ""
        try:
            return self._outcome(columns)
        except _Problem as error:
            problem = str(error)
        raise InvalidTableError(f"The rule {self.name!r} cannot be evaluated on this table: it {problem}.")

    def _outcome(self, columns: Columns) -> Cells:
        if self.tree is not None:
            found = _evaluate(self.tree, columns, 0)
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
                raise _Problem(f"is a {outcome.kind}, and no condition that is true or false")
            rules.append(rule)
        except _Problem as problem:
            problems.append(f"rule {name!r} {problem}{_place_of(problem.node)}")
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


def broken_rules(rules: Sequence[Rule], table: pd.DataFrame) -> list[tuple[str, int]]:
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
        raise _Problem("is neither a text nor a mapping with one of expect, determines and sum")
    (kind,), at_most = kinds, given.get("at_most", 0)
    unknown = sorted(str(key) for key in given if key not in (kind, *FORMS[kind]))
    if unknown:
        raise _Problem(f"has unknown keys {unknown}; there are {[kind, *FORMS[kind]]}")
    if not is_number(at_most, 0, 1) or at_most == 1:
        raise _Problem("has an `at_most` that is no share of the records, from 0 and below 1")
    if kind == "expect":
        tree, named = _parsed(given["expect"], columns)
        return Rule(name, own, named, float(at_most), tree=tree)
    listed, within = given[kind], given.get("within", 0)
    if not isinstance(listed, list | tuple) or len(listed) < 2 or not all(isinstance(each, str) for each in listed):
        raise _Problem(f"has a `{kind}` that is no list of columns")
    names = (*listed, given["equals"]) if kind == "sum" and isinstance(given.get("equals"), str) else (*listed,)
    unknown = [each for each in names if each not in columns.table.columns]
    if unknown:
        raise _Problem(f"names {unknown[:MOST_NAMED]}, which the contract lacks")
    if len(set(names)) < len(names) or len(names) != (2 if kind == "determines" else len(listed) + 1):
        expected = "two columns" if kind == "determines" else "different parts, and their total as `equals`"
        raise _Problem(f"is no `{kind}` of {expected}")
    if kind == "sum" and {columns[each].kind for each in names} != {"number"}:
        raise _Problem("sums columns that are no numbers")
    if not is_number(within, 0, math.inf):
        raise _Problem("has a `within` that is no number from 0")
    return Rule(name, dict(given), names, float(at_most), kind, float(within))


def _parsed(text: object, columns: Columns) -> tuple[ast.expr, tuple[str, ...]]:
    """Return the tree of a text whose names are those of columns, and the names."""
    if not isinstance(text, str) or not text.strip():
        raise _Problem("has an `expect` without a text")
    if len(text) > LONGEST_RULE:
        raise _Problem(f"has {len(text):,} characters; expected at most {LONGEST_RULE:,}")
    quoted: dict[str, str] = {}

    def unquoted(found: re.Match[str]) -> str:
        part = found[0]
        if part == "#":
            raise _Problem("has a #, which would hide the rest of it")
        if not part.startswith("`"):
            return part if part.strip() else " "
        # Of the same length, so that places stay right; no letter of the text is one of these.
        place = next(chr(letter) for letter in range(0x4E00, 0x9FFF) if chr(letter) not in text + "".join(quoted))
        name = place + "_" * (len(part) - 1)
        quoted[name] = part[1:-1]
        return name

    plain = QUOTED.sub(unquoted, text.strip())
    outside = QUOTED.sub("", text)
    if unicodedata.normalize("NFKC", outside) != outside:
        raise _Problem("names a column by letters that Python would take for others; write the name in backticks")
    tree = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an unknown escape
        with contextlib.suppress(SyntaxError, ValueError, MemoryError, RecursionError):
            tree = ast.parse(plain, mode="eval").body
    if tree is None:
        raise _Problem(f"cannot be read; {EXPECTED}")
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    for node in names:
        node.id = quoted.get(node.id, node.id)
    for part in ast.walk(tree):
        if isinstance(part, ast.expr):
            part.col_offset = len(plain.encode()[: part.col_offset].decode()) + 1  # from bytes to characters
    named = {node.id: node for node in names}
    known = tuple(name for name in named if name in columns.table.columns)
    calls = {part.func for part in ast.walk(tree) if isinstance(part, ast.Call)}
    for name, node in named.items():
        if name not in known and not (name == "missing" and node in calls):
            raise _Problem(f"names {name!r}, which the contract lacks", node)
    if not known:
        raise _Problem("names no column")
    return tree, known


def _place_of(node: ast.AST | None) -> str:
    return "" if node is None else f" (character {getattr(node, 'col_offset', 1)})"


def _cells_of(column: pd.Series[Any]) -> Cells:
    dtype, missing = column.dtype, column.isna().to_numpy()
    if isinstance(dtype, pd.CategoricalDtype):
        labels = dtype.categories.astype(object)
        return Cells("text", column.cat.codes.to_numpy(), missing, labels, bool(dtype.ordered))
    if types.is_bool_dtype(dtype):
        return Cells("truth", (column.fillna(False) if missing.any() else column).to_numpy(np.bool_), missing)
    if types.is_integer_dtype(dtype):
        return Cells("number", (column.fillna(0) if missing.any() else column).to_numpy(np.int64), missing)
    if types.is_float_dtype(dtype):
        return Cells("number", column.to_numpy(np.float64, na_value=np.nan), missing)
    if types.is_datetime64_any_dtype(dtype):
        index: Any = pd.DatetimeIndex(column)
        times = (index if index.tz is None else index.tz_convert(None)).to_numpy().astype("datetime64[us]")
        return Cells("time", times.astype(np.int64), missing, zone=index.tz)
    codes, values = pd.factorize(column)
    return Cells("text", codes, missing, pd.Index(values, dtype=object))


def _constant(value: object, node: ast.AST) -> Cells:
    known = np.zeros((), np.bool_)
    if isinstance(value, bool):
        return Cells("truth", np.array(value), known)
    if isinstance(value, str):
        return Cells("text", np.zeros((), np.intp), known, pd.Index([value], dtype=object))
    if isinstance(value, int | float):
        number = value if isinstance(value, float) or abs(value) < 2**63 else _float(value)
        if math.isfinite(number):
            return Cells("number", np.array(number), known)
    raise _Problem("has a constant that is no finite number, text, True or False; None is missing(column)", node)


def _float(value: int) -> float:
    return float(value) if value.bit_length() < 1024 else math.inf


def _evaluate(node: ast.expr, columns: Columns, depth: int) -> Cells:
    """Return the value of an expression; raise `_Problem` for every node that is not listed here."""
    if depth > DEEPEST_RULE:
        raise _Problem(f"is nested deeper than {DEEPEST_RULE} levels", node)

    def of(child: ast.expr, kind: str = "") -> Cells:
        found = _evaluate(child, columns, depth + 1)
        if kind and found.kind != kind:
            raise _Problem(f"has a {found.kind} where a {kind} is needed", child)
        return found

    if isinstance(node, ast.Name):
        return columns[node.id]
    if isinstance(node, ast.Constant):
        return _constant(node.value, node)
    if isinstance(node, ast.BoolOp):
        parts = [of(each, "truth") for each in node.values]  # noqa: PD011 - a node
        return _joined(parts, is_and=isinstance(node.op, ast.And))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found = of(node.operand, "truth")
        return found._replace(data=~found.data)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found = of(node.operand, "number")
        return found._replace(data=-found.data.astype(np.float64))
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return _computed(node, of(node.left), of(node.right))
    if isinstance(node, ast.Compare):
        return _compared_all(node, of, columns)
    # Of all calls, only those of missing(column) have a name that is allowed.
    if isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Name) and not node.keywords:
        found = of(node.args[0])
        return Cells("truth", found.missing, np.zeros_like(found.missing))
    raise _Problem(f"has a part that is not allowed; {EXPECTED}", node)


def _joined(parts: Sequence[Cells], *, is_and: bool) -> Cells:
    """Join conditions by ``and`` or ``or``, in Kleene's logic of three values."""
    join, dual = (np.logical_and, np.logical_or) if is_and else (np.logical_or, np.logical_and)
    is_true, is_false = parts[0].is_true, parts[0].is_false
    for each in parts[1:]:
        is_true, is_false = join(is_true, each.is_true), dual(is_false, each.is_false)
    return Cells("truth", is_true, ~(is_true | is_false))


def _computed(node: ast.BinOp, left: Cells, right: Cells) -> Cells:
    is_of_times = left.kind == right.kind == "time" and isinstance(node.op, ast.Sub)
    if not is_of_times and {left.kind, right.kind} != {"number"}:
        raise _Problem("computes with what is no number; of times only the difference is one, in days", node)
    if is_of_times and (left.zone is None) != (right.zone is None):
        raise _Problem("compares times with and without a time zone", node)
    if isinstance(node.op, ast.Div) and not right.data.ndim and right.data == 0:
        raise _Problem("divides by zero", node.right)
    with np.errstate(all="ignore"):
        if is_of_times:
            values = np.asarray((left.data - right.data) / DAY)
        else:
            values = np.asarray(ARITHMETIC[type(node.op)](left.data.astype(np.float64), right.data.astype(np.float64)))
    # A quotient by zero, and a number that is too large, is unknown.
    return Cells("number", values, left.missing | right.missing | ~np.isfinite(values))


def _compared_all(node: ast.Compare, of: Callable[..., Cells], columns: Columns) -> Cells:
    left, found = of(node.left), []
    for op, child in zip(node.ops, node.comparators, strict=True):
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(child, ast.List | ast.Tuple) or not child.elts:
                raise _Problem("has an `in` without a list of constants", child)
            equal = [_compared(ast.Eq, left, of(each), columns, each) for each in child.elts]
            any_of = _joined(equal, is_and=False)
            found.append(any_of if isinstance(op, ast.In) else any_of._replace(data=any_of.is_false))
            continue
        if type(op) not in COMPARISONS:
            raise _Problem(f"has a part that is not allowed; {EXPECTED}", node)
        right = of(child)
        found.append(_compared(type(op), left, right, columns, child))
        left = right
    return _joined(found, is_and=True)


def _compared(op: type[ast.cmpop], left: Cells, right: Cells, columns: Columns, node: ast.AST) -> Cells:
    is_equality = op in (ast.Eq, ast.NotEq)
    if "time" in (left.kind, right.kind):
        left, right = _as_time(left, right, node), _as_time(right, left, node)
    if left.kind != right.kind:
        raise _Problem(f"compares a {left.kind} with a {right.kind}", node)
    if left.kind == "truth" and not is_equality:
        raise _Problem("has an order of truth values", node)
    values = [left.data, right.data]
    if left.kind == "text":
        values = list(_codes_alike(left, right, columns, node, is_equality=is_equality))
    return Cells("truth", np.asarray(COMPARISONS[op](*values)), left.missing | right.missing)


def _codes_alike(
    left: Cells, right: Cells, columns: Columns, node: ast.AST, *, is_equality: bool
) -> Iterator[NDArray[Any]]:
    """Yield the codes of two texts by the labels of the column among them; -1 for a text that it does not have."""
    base = left if left.data.ndim else right
    of_base = pd.Index([]) if base.labels is None else base.labels
    for each in (left, right):
        is_constant, labels = not each.data.ndim, pd.Index([]) if each.labels is None else each.labels
        has_order = base.is_ordered and (is_constant or (each.is_ordered and of_base.equals(labels)))
        if not is_equality and not has_order:
            raise _Problem("has an order of texts, which only ordered categories have, among themselves", node)
        codes = np.append(of_base.get_indexer(labels), -1)[each.data]
        if columns.is_declared and is_constant and len(of_base) and codes < 0:
            raise _Problem("has a text that is none of the categories of the column", node)
        yield codes


def _as_time(own: Cells, other: Cells, node: ast.AST) -> Cells:
    """Return a time, or a constant text as one, in the zone of the other if it has none of its own."""
    zone = other.zone
    if own.kind == "text" and own.data.ndim == 0 and own.labels is not None:
        times, is_finer, n_aware, _ = read_moments(pd.Series(own.labels, dtype=object))
        if np.isnat(times[0]) or is_finer[0]:
            raise _Problem("compares a time with a text that is none; expected ISO 8601", node)
        stamp = pd.Timestamp(times[0])
        if zone is not None and not n_aware:
            stamp = stamp.tz_localize(zone, ambiguous=True, nonexistent="shift_forward").tz_convert(None)
        aware = zone if zone is not None else "UTC" if n_aware else None
        own = Cells("time", np.array(stamp.as_unit("us").asm8).astype(np.int64), own.missing, zone=aware)
    if own.kind == "time" and other.kind == "time" and (own.zone is None) != (zone is None):
        raise _Problem("compares times with and without a time zone", node)
    return own


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
