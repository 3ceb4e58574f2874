"""Expressions of rules: a text is parsed by `ast`, and evaluated on whole columns in a logic of three values.

Only a listed set of nodes is read: names of columns, constants, comparisons, ``and or not``, ``+ - * /``, ``in [...]``
and ``missing(column)``; nothing of a text is ever executed. A missing value makes a comparison unknown, as in SQL.
"""

from __future__ import annotations

import ast
import contextlib
import math
import operator
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.contract.conversion import read_moments

LONGEST_RULE: Final = 2000
DEEPEST_RULE: Final = 100
DAY: Final = 86_400_000_000
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


class RuleProblem(Exception):  # noqa: N818 - not an error of its own: it becomes part of one
    """What is wrong with a rule, as the end of a sentence, and the part of its text."""

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

    def __init__(self, table: Any, *, is_declared: bool = False) -> None:
        self.table, self.is_declared = table, is_declared
        self._read: dict[str, Cells] = {}

    def __getitem__(self, name: str) -> Cells:
        if name not in self._read:
            self._read[name] = _cells_of(self.table[name])
        return self._read[name]


def parse_expression(text: object, columns: Columns) -> tuple[ast.expr, tuple[str, ...]]:
    """Return the tree of a text whose names are those of columns, and the names."""
    if not isinstance(text, str) or not text.strip():
        raise RuleProblem("has an `expect` without a text")
    if len(text) > LONGEST_RULE:
        raise RuleProblem(f"has {len(text):,} characters; expected at most {LONGEST_RULE:,}")
    quoted: dict[str, str] = {}

    def unquoted(found: re.Match[str]) -> str:
        part = found[0]
        if part == "#":
            raise RuleProblem("has a #, which would hide the rest of it")
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
        raise RuleProblem("names a column by letters that Python would take for others; write the name in backticks")
    tree = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an unknown escape
        with contextlib.suppress(SyntaxError, ValueError, MemoryError, RecursionError):
            tree = ast.parse(plain, mode="eval").body
    if tree is None:
        raise RuleProblem(f"cannot be read; {EXPECTED}")
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
            raise RuleProblem(f"names {name!r}, which the contract lacks", node)
    if not known:
        raise RuleProblem("names no column")
    return tree, known


def place_of(node: ast.AST | None) -> str:
    """Return where a part of a text is, in words."""
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
    raise RuleProblem("has a constant that is no finite number, text, True or False; None is missing(column)", node)


def _float(value: int) -> float:
    return float(value) if value.bit_length() < 1024 else math.inf


def evaluate(node: ast.expr, columns: Columns, depth: int) -> Cells:
    """Return the value of an expression; raise `RuleProblem` for every node that is not listed here."""
    if depth > DEEPEST_RULE:
        raise RuleProblem(f"is nested deeper than {DEEPEST_RULE} levels", node)

    def of(child: ast.expr, kind: str = "") -> Cells:
        found = evaluate(child, columns, depth + 1)
        if kind and found.kind != kind:
            raise RuleProblem(f"has a {found.kind} where a {kind} is needed", child)
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
    raise RuleProblem(f"has a part that is not allowed; {EXPECTED}", node)


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
        raise RuleProblem("computes with what is no number; of times only the difference is one, in days", node)
    if is_of_times and (left.zone is None) != (right.zone is None):
        raise RuleProblem("compares times with and without a time zone", node)
    if isinstance(node.op, ast.Div) and not right.data.ndim and right.data == 0:
        raise RuleProblem("divides by zero", node.right)
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
                raise RuleProblem("has an `in` without a list of constants", child)
            equal = [_compared(ast.Eq, left, of(each), columns, each) for each in child.elts]
            any_of = _joined(equal, is_and=False)
            found.append(any_of if isinstance(op, ast.In) else any_of._replace(data=any_of.is_false))
            continue
        if type(op) not in COMPARISONS:
            raise RuleProblem(f"has a part that is not allowed; {EXPECTED}", node)
        right = of(child)
        found.append(_compared(type(op), left, right, columns, child))
        left = right
    return _joined(found, is_and=True)


def _compared(op: type[ast.cmpop], left: Cells, right: Cells, columns: Columns, node: ast.AST) -> Cells:
    is_equality = op in (ast.Eq, ast.NotEq)
    if "time" in (left.kind, right.kind):
        left, right = _as_time(left, right, node), _as_time(right, left, node)
    if left.kind != right.kind:
        raise RuleProblem(f"compares a {left.kind} with a {right.kind}", node)
    if left.kind == "truth" and not is_equality:
        raise RuleProblem("has an order of truth values", node)
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
            raise RuleProblem("has an order of texts, which only ordered categories have, among themselves", node)
        codes = np.append(of_base.get_indexer(labels), -1)[each.data]
        is_checked = columns.is_declared or not is_equality
        if is_checked and is_constant and len(of_base) and codes < 0:
            raise RuleProblem("has a text that is none of the categories of the column", node)
        yield codes


def _as_time(own: Cells, other: Cells, node: ast.AST) -> Cells:
    """Return a time, or a constant text as one, in the zone of the other if it has none of its own."""
    zone = other.zone
    if own.kind == "text" and own.data.ndim == 0 and own.labels is not None:
        times, is_finer, n_aware, _ = read_moments(pd.Series(own.labels, dtype=object))
        if np.isnat(times[0]) or is_finer[0]:
            raise RuleProblem("compares a time with a text that is none; expected ISO 8601", node)
        stamp = pd.Timestamp(times[0])
        if zone is not None and not n_aware:
            stamp = stamp.tz_localize(zone, ambiguous=True, nonexistent="shift_forward").tz_convert(None)
        aware = zone if zone is not None else "UTC" if n_aware else None
        own = Cells("time", np.array(stamp.as_unit("us").asm8).astype(np.int64), own.missing, zone=aware)
    if own.kind == "time" and other.kind == "time" and (own.zone is None) != (zone is None):
        raise RuleProblem("compares times with and without a time zone", node)
    return own
