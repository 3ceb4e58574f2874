"""Advice on columns to forget: the remaining risk, and the implications that would be lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.display.numbers import in_full
from privacy_assets.errors import InvalidSettingError
from privacy_assets.kernels.bit_sets import count_bits
from privacy_assets.semantic_risk.formal_context import FormalContext
from privacy_assets.semantic_risk.kernels.concepts import close_sets, full_set, words_to_close
from privacy_assets.semantic_risk.kernels.formal_context import PackedContext, unpack_rows
from privacy_assets.semantic_risk.kernels.row_measures import find_greatest_subset
from privacy_assets.semantic_risk.kernels.stem_basis import find_stem_basis
from privacy_assets.semantic_risk.risk_chains import columns_of_chains
from privacy_assets.semantic_risk.row_measures import measure_context
from privacy_assets.semantic_risk.settings import SemanticSettings, smallest_acceptable

# Maximum number of sets of columns from risk chains, most frequent first.
MOST_CHAIN_SETS = 20
# Words of 8 bytes to read for the implications of one set of columns (about two seconds), and of all sets together.
WORDS_FOR_IMPLICATIONS = 2**30
WORDS_FOR_ALL_IMPLICATIONS = 2**31
# The search reads at least this many times the estimate: 1.6 to 16 times in the tables of the benchmark.
SURELY_MORE = 1.5
MOST_COLUMNS_NAMED = 3
ADVICE_COLUMNS = [
    "columns",
    "reason",
    "chains",
    "maximum_semantic_risk",
    "medium_semantic_risk",
    "records_kept",
    "implications_left",
    "implications_lost",
    "is_non_disposable",
]


class Advice(NamedTuple):
    """Advice on columns (see :func:`advise`), and notes on missing figures with the reasons."""

    table: pd.DataFrame
    notes: tuple[str, ...]


def advise(
    context: FormalContext,
    chains: pd.DataFrame,
    settings: SemanticSettings,
    n_threads: int,
    on_columns: Callable[[tuple[str, ...]], None] = lambda _: None,
) -> Advice:
    """Compute the effect of forgetting each column, and the columns of each risk chain.

    The table has one row per set of columns, starting with the empty set: ``columns``; ``reason`` ("nothing forgotten",
    "scaled column", "risk chain"); ``chains``, the number of listed chains with these columns; the remaining
    ``maximum_semantic_risk`` and ``medium_semantic_risk``; ``records_kept`` of the greatest acceptable subset (missing
    without a ``risk_limit``); ``implications_left``, the size of the stem basis without the columns;
    ``implications_lost``, rules of the stem basis that no longer follow; and ``is_non_disposable``: whether no
    implication would remain although there are some now.

    Implications are those of at least ``min_support`` records that do not follow from the scales alone: "at least 40"
    follows from "at least 41" in every table, and does not count. Figures that would take too much work are missing,
    with a note: figures on implications if the full stem basis is too large or the work limit is reached, and the
    remaining risk if too many rows would be compared.
    """
    rules = None
    work = _Work(WORDS_FOR_ALL_IMPLICATIONS)
    rows = []
    for columns, reason, n_chains in _candidates(context, chains):
        on_columns(columns)
        names = [attribute.name for attribute in context.attributes if attribute.column in columns]
        left = context.without(names) if names else context
        row: dict[str, Any] = {"columns": columns, "reason": reason, "chains": n_chains}
        row |= _risk_left(left, settings, n_threads)
        found = _rules(left, settings, work) if rules is not None or not columns else None
        if not columns:
            rules = found
        if rules is not None:
            row["implications_lost"] = _count_lost(context, rules, names, work)
        if found is not None:
            row["implications_left"] = len(found.premises)
        if rules is not None and found is not None:
            row["is_non_disposable"] = len(found.premises) == 0 < len(rules.premises)
        rows.append(row)
    return Advice(_as_table(rows), tuple(_notes(context, rows, settings)))


@dataclass
class _Work:
    """Words that may still be read for implications."""

    left: int

    @property
    def allowed(self) -> int:
        """For one set of columns."""
        return min(WORDS_FOR_IMPLICATIONS, self.left)


def _notes(context: FormalContext, rows: list[dict[str, Any]], settings: SemanticSettings) -> Iterator[str]:
    n_unknown = sum(row.get("implications_left") is None or row.get("implications_lost") is None for row in rows)
    if n_unknown:
        counts = pd.Series([attribute.column for attribute in context.attributes]).value_counts()
        most = ", ".join(f"{name!r} ({n})" for name, n in counts.head(MOST_COLUMNS_NAMED).items())
        yield (
            f"The implications left or lost are missing for {n_unknown} of {len(rows)} sets of columns: there are "
            f"more than {settings.max_concepts} closed sets and pseudo-intents of at least "
            f"{settings.min_support} records, or finding them reads, or by an estimate would read, more than "
            f"{WORDS_FOR_IMPLICATIONS:.1g} words, or {WORDS_FOR_ALL_IMPLICATIONS:.1g} for all sets together. Raise "
            f"min_support, or use coarser scales or fewer columns; most attributes come from {most}."
        )
    n_unmeasured = sum("maximum_semantic_risk" not in row for row in rows)
    if n_unmeasured:
        yield (
            f"The remaining risk is missing for {n_unmeasured} of {len(rows)} sets of columns: more than "
            f"max_comparisons = {in_full(settings.max_comparisons, grouped=True)} pairs of rows would be compared."
        )


def _candidates(context: FormalContext, chains: pd.DataFrame) -> Iterator[tuple[tuple[str, ...], str, int]]:
    counts = columns_of_chains(context, chains)
    n_of = dict(zip(counts["columns"], counts["chains"].tolist(), strict=True))
    yield (), "nothing forgotten", n_of.get((), 0)
    for name in context.columns:
        yield (name,), "scaled column", n_of.get((name,), 0)
    several = [(columns, n) for columns, n in n_of.items() if len(columns) > 1]
    for columns, n in several[:MOST_CHAIN_SETS]:
        yield columns, "risk chain", n


def _risk_left(left: FormalContext, settings: SemanticSettings, n_threads: int) -> dict[str, Any]:
    try:
        measures = measure_context(left, settings.max_comparisons, n_threads)
    except InvalidSettingError:
        # Forgetting a column may require more comparisons; advice must not end the assessment.
        return {}
    n_kept = None
    if settings.risk_limit is not None:
        found = find_greatest_subset(left.packed, measures, smallest_acceptable(settings.risk_limit), n_threads)
        n_kept = found.rounds[-1].n_records
    risks = 1.0 / measures.differences
    return {
        "maximum_semantic_risk": float(risks.max()),
        "medium_semantic_risk": float(left.packed.weights @ risks / left.n_records),
        "records_kept": n_kept,
    }


class _Rules(NamedTuple):
    """Implications beyond those of the scales, in bits; ``learned`` is the part that these do not imply."""

    premises: NDArray[np.uint64]
    learned: NDArray[np.uint64]


def _rules(context: FormalContext, settings: SemanticSettings, work: _Work) -> _Rules | None:
    """Find the stem basis within the remaining work, without the implications of the scales.

    A search that reached a bound used all of the work; a search that would, by an estimate, is not begun.
    """
    if SURELY_MORE * estimate_words(context.packed, settings.min_support) > work.allowed:
        return None
    found = find_stem_basis(context.packed, settings.min_support, settings.max_concepts, work.allowed)
    work.left -= work.allowed if found is None else found.words_read
    if found is None:
        return None
    learned = found.conclusions & ~context.close_by_scales(found.premises)
    is_rule = learned.any(axis=1)
    return _Rules(found.premises[is_rule], learned[is_rule])


def _count_lost(context: FormalContext, rules: _Rules, names: list[str], work: _Work) -> int | None:
    """Count the rules that no longer follow; None if counting takes too much work.

    A rule follows if the attributes that it adds are kept, and all records with the kept part of its premise have them.
    """
    gone: NDArray[np.uint64] = context.words_of(names)
    packed = context.packed
    premises = rules.premises & ~gone
    n_words = words_to_close(len(packed.rows), packed.first, packed.holders, premises)
    if n_words > work.allowed:
        return None
    work.left -= n_words
    everything = full_set(packed.n_attributes, packed.rows.shape[1])
    closures = close_sets(packed.rows, packed.first, packed.holders, premises, everything)
    return int((rules.learned & (gone | ~closures)).any(axis=1).sum())


def _as_table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=ADVICE_COLUMNS)
    table["columns"] = pd.Series([row["columns"] for row in rows], dtype=object)
    counts = dict.fromkeys(("records_kept", "implications_left", "implications_lost"), "Int64")
    risks = dict.fromkeys(("maximum_semantic_risk", "medium_semantic_risk"), "float64")
    return table.astype({**counts, **risks, "is_non_disposable": "boolean", "reason": str, "chains": "int64"})


def no_advice() -> Advice:
    """Return empty advice."""
    return Advice(_as_table([]), ())


# Multiplications for one product of matrices (a tenth of a second), attributes, and closed sets that are examined.
MULTIPLICATIONS, MOST_ATTRIBUTES, SAMPLED = 4 * 10**9, 512, 200
# Sums of this many of these numbers are exact in floats.
LARGEST_MARK = 2**22


def estimate_words(context: PackedContext, min_support: int) -> int:
    """Estimate from below how many words the search of the stem basis reads, as in `find_stem_basis`.

    The search visits all closed sets of enough records. Those that pairs of attributes generate are counted exactly
    (among up to 512 attributes, fewer in long tables), distinguished by the sum of a random mark of each of their rows.
    For 200 of them, the words that the search reads there are counted. Only this part is estimated, so a small figure
    does not imply a short search.
    """
    n_rows, n_words = context.rows.shape
    n_used = min(context.n_attributes, MOST_ATTRIBUTES, max(int((MULTIPLICATIONS / n_rows) ** 0.5), 1))
    used = np.unique(np.linspace(0, context.n_attributes - 1, n_used).astype(np.int64))
    has: NDArray[np.float64] = unpack_rows(context.rows, context.n_attributes)[:, used].astype(np.float64)
    random = np.random.default_rng(0)
    marks = np.asarray(random.integers(1, LARGEST_MARK, n_rows), np.float64)
    supports: NDArray[np.float64] = has.T @ (has * context.weights[:, None])
    sums: NDArray[np.float64] = has.T @ (has * marks.reshape(-1, 1))
    first, second = np.nonzero(np.triu(supports >= max(min_support, 1)))
    _, places = np.unique(sums[first, second], return_index=True)
    if len(places) == 0:
        return 0
    sampled = random.permutation(places)[:SAMPLED]
    sizes = count_bits(context.rows)
    n_read = 0
    for place in sampled.tolist():
        own = np.flatnonzero((has[:, first[place]] > 0) & (has[:, second[place]] > 0))
        closure = np.bitwise_and.reduce(context.rows[own], axis=0)
        n_besides = int(sizes[own].sum()) - len(own) * int(count_bits(closure[np.newaxis])[0])
        n_read += 2 * n_words * len(own) + n_besides
    return n_read * len(places) // len(sampled)
