"""Columns of integer codes in the smallest possible storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel

DTYPES = (np.uint8, np.uint16, np.uint32)
# Suffixes on which more than this share of the rows differ are not grouped, because too few rows would be dropped.
LARGEST_USEFUL_SHARE = 0.8
# From this size of combinations on, dropping rows that later columns cannot distinguish is worth the first pass.
FIRST_GROUPED_SIZE = 4


class CodeBlocks(NamedTuple):
    """Columns of codes in one block of memory, each in as few bytes per code as it needs.

    Kernels are compiled once for all widths, because :func:`code_at` reads codes of any width. Wide columns come first,
    so that each code is aligned; a column begins at the byte ``offset``, and its codes, below ``n_codes``, have 1, 2 or
    4 bytes, ``1 << shift``.
    """

    memory: NDArray[np.uint8]
    offset: NDArray[np.int64]
    shift: NDArray[np.int64]
    n_codes: NDArray[np.int64]
    n_rows: int

    def column(self, c: int) -> NDArray[np.unsignedinteger[Any]]:
        """Return a view of the codes of one column."""
        n_bytes = self.n_rows << int(self.shift[c])
        return self.memory[self.offset[c] : self.offset[c] + n_bytes].view(DTYPES[self.shift[c]])


def group_by_width(columns: Sequence[NDArray[Any]], n_codes: Sequence[int]) -> CodeBlocks:
    """Copy columns of codes into one block of memory, with the smallest unsigned width that fits each.

    Codes are from 0 to ``n_codes[c] - 1``; not checked here.
    """
    shift = np.array([0 if n <= 1 << 8 else 1 if n <= 1 << 16 else 2 for n in n_codes], np.int64)
    blocks = _allocate(shift, np.maximum(np.array(n_codes, np.int64), 1), len(columns[0]) if columns else 0)
    for c, column in enumerate(columns):
        blocks.column(c)[:] = column
    return blocks


def take_rows(blocks: CodeBlocks, rows: NDArray[np.int64]) -> CodeBlocks:
    """Renumber the rows of all columns."""
    taken = _allocate(blocks.shift, blocks.n_codes, len(rows))
    for c in range(len(blocks.n_codes)):
        # All positions exist; the default mode would make a copy first.
        np.take(blocks.column(c), rows, out=taken.column(c), mode="clip")
    return taken


def _allocate(shift: NDArray[np.int64], n_codes: NDArray[np.int64], n_rows: int) -> CodeBlocks:
    n_bytes = n_rows << shift
    wide_first = np.argsort(-shift, kind="stable")
    offset = np.zeros(len(shift), np.int64)
    offset[wide_first] = np.cumsum(n_bytes[wide_first]) - n_bytes[wide_first]
    return CodeBlocks(np.zeros(int(n_bytes.sum()), np.uint8), offset, shift, n_codes, n_rows)


@intrinsic
def _code_at(_: Any, memory: Any, offset: Any, shift: Any, row: Any) -> tuple[Any, Any]:  # noqa: ARG001
    """Compile :func:`code_at`: one load of 1, 2 or 4 bytes, after branches that are the same for the whole column."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        make: Any = make_array
        data = make(signature.args[0])(context, builder, arguments[0]).data
        begin, by, position = arguments[1:]
        place = builder.gep(data, [builder.add(begin, builder.shl(position, by))])
        allocate: Any = cgutils.alloca_once
        code = allocate(builder, ir.IntType(64))

        def load(n_bits: int) -> None:
            word = builder.load(builder.bitcast(place, ir.IntType(n_bits).as_pointer()))
            builder.store(builder.zext(word, ir.IntType(64)), code)

        with builder.if_else(builder.icmp_signed("==", by, by.type(0))) as (is_narrow, is_wider):
            with is_narrow:
                load(8)
            with is_wider, builder.if_else(builder.icmp_signed("==", by, by.type(1))) as (is_middle, is_wide):
                with is_middle:
                    load(16)
                with is_wide:
                    load(32)
        return builder.load(code)

    return types.uint64(memory, types.int64, types.int64, types.int64), generate


def _code_at_in_python(memory: NDArray[np.uint8], offset: int, shift: int, row: int) -> int:
    """Return the code of one row, from the memory, offset and shift of its column."""
    place = offset + (int(row) << int(shift))
    return int(memory[place : place + (1 << int(shift))].view(DTYPES[shift])[0])


code_at: Callable[..., Any] = _code_at_in_python if getattr(config, "DISABLE_JIT", False) else _code_at


class SuffixGroups(NamedTuple):
    """Groups of rows that agree on a column and on all later ones.

    Inside a class of some combination, such rows stay together in every extension by later columns. If only 0, 1 and
    more are distinguished, two of them represent all. ``ids[c - first]`` numbers the groups of columns c, c + 1, ...
    from 0, below ``n_groups``; before ``first`` nearly all rows differ.
    """

    ids: NDArray[np.int32]
    first: int
    n_groups: int

    def take(self, rows: NDArray[np.int64]) -> SuffixGroups:
        """Renumber the rows."""
        return self._replace(ids=np.take(self.ids, rows, axis=1)) if self.ids.size else self


def no_suffix_groups(n_columns: int) -> SuffixGroups:
    """Return empty groups."""
    return SuffixGroups(np.zeros((0, 0), np.int32), n_columns, 1)


def suffix_groups(blocks: CodeBlocks) -> SuffixGroups:
    """Group the rows by each suffix of the columns, as long as enough of them agree."""
    n_columns = len(blocks.n_codes)
    ids: list[NDArray[np.int32]] = []
    n_groups = 1
    for c in reversed(range(n_columns)):
        column = blocks.column(c).astype(np.int64)
        keys = column * n_groups + ids[-1] if ids else column
        groups, n_groups = _number(keys)
        if n_groups > LARGEST_USEFUL_SHARE * len(column):
            break
        ids.append(groups)
    if not ids:
        return no_suffix_groups(n_columns)
    return SuffixGroups(np.array(ids[::-1]), n_columns - len(ids), max(int(group.max()) + 1 for group in ids))


@kernel
def _number(keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], int]:
    """Give equal keys one number, from 0 in order of first appearance, with an open-addressing table."""
    n_keys = len(keys)
    n_bits = 4
    while 1 << n_bits < 2 * n_keys:
        n_bits += 1
    mask = (1 << n_bits) - 1
    table = np.empty(1 << n_bits, np.int32)
    for i in range(len(table)):
        table[i] = -1
    firsts = np.empty(n_keys, np.int64)
    ids = np.empty(n_keys, np.int32)
    n_ids = 0
    for i in range(n_keys):
        # Fibonacci hashing: the high bits of a product with 2**64 / golden ratio are well mixed.
        place = np.int64((np.uint64(keys[i]) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - n_bits)) & mask
        while table[place] >= 0 and firsts[table[place]] != keys[i]:
            place = (place + 1) & mask
        if table[place] < 0:
            table[place] = n_ids
            firsts[n_ids] = keys[i]
            n_ids += 1
        ids[i] = table[place]
    return ids, n_ids
