"""Which columns to forget: the risk that would be left, and what could no longer be learned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.kernels.concepts import close_sets, full_set
from privacy_assets.kernels.semantic_risk import find_greatest_subset
from privacy_assets.kernels.stem_basis import Implications, find_stem_basis
from privacy_assets.tables.formal_context import FormalContext
from privacy_assets.tables.result_columns import tuple_column
from privacy_assets.tables.risk_chains import columns_of_chains
from privacy_assets.tables.row_measures import measure_context
from privacy_assets.tables.semantic_settings import SemanticSettings, smallest_acceptable

# Sets of columns that risk chains give, most frequent first; more would not be read.
MOST_CHAIN_SETS = 20
ADVICE_COLUMNS = [
    "columns",
    "reason",
    "chains",
    "max_basic_semantic_risk",
    "mean_basic_semantic_risk",
    "records_kept",
    "implications_left",
    "implications_lost",
    "is_non_disposable",
]


class Advice(NamedTuple):
    """Advice on columns.

    Attributes
    ----------
    table : DataFrame
        See :func:`advise`.
    notes : tuple of str
        What could not be told, and why.
    """

    table: pd.DataFrame
    notes: tuple[str, ...]


def advise(context: FormalContext, chains: pd.DataFrame, settings: SemanticSettings, n_threads: int) -> Advice:
    """Tell, for each column and the columns of each risk chain, what forgetting them would do.

    Parameters
    ----------
    context : FormalContext
        The context; its columns are what an outsider may know.
    chains : DataFrame
        Of :func:`~privacy_assets.tables.risk_chains.find_risk_chains`.
    settings : SemanticSettings
        ``risk_limit``, ``min_support``, ``max_concepts`` and ``max_comparisons`` are used.
    n_threads : int
        Threads.

    Returns
    -------
    advice : Advice
        Table with one row per set of columns, nothing forgotten first: ``columns``; ``reason`` ("nothing forgotten",
        "quasi-identifier", "risk chain"); ``chains``, how many listed chains have these columns; the
        ``max_basic_semantic_risk`` and ``mean_basic_semantic_risk`` left; ``records_kept`` of the greatest acceptable
        subset (missing without a ``risk_limit``); ``implications_left``, the size of the stem basis without the
        columns; ``implications_lost``, rules of the stem basis that no longer follow; and ``is_non_disposable``:
        whether no implication would be left, though there are some now. Implications are those of at least
        ``min_support`` records; missing where there are too many closed sets, which a note says.
    """
    basis = _basis(context, settings)
    rows = []
    n_unknown = 0
    for columns, reason, n_chains in _candidates(context, chains):
        names = [attribute.name for attribute in context.attributes if attribute.column in columns]
        left = context.without(names) if names else context
        row: dict[str, Any] = {"columns": columns, "reason": reason, "chains": n_chains}
        row |= _risk_left(left, settings, n_threads)
        found = None if basis is None else _basis(left, settings)
        n_unknown += found is None
        row["implications_left"] = None if found is None else len(found.supports)
        row["implications_lost"] = None if basis is None else _count_lost(context, basis, names)
        if basis is not None and found is not None:
            row["is_non_disposable"] = len(found.supports) == 0 < len(basis.supports)
        rows.append(row)
    notes: tuple[str, ...] = ()
    if n_unknown:
        notes = (
            f"The implications left after forgetting are not told for {n_unknown} sets of columns: there are more than "
            f"{settings.max_concepts} closed sets and pseudo-intents of at least {settings.min_support} records. Raise "
            "min_support, or use coarser scales.",
        )
    return Advice(_as_table(rows), notes)


def _candidates(context: FormalContext, chains: pd.DataFrame) -> Iterator[tuple[tuple[str, ...], str, int]]:
    counts = columns_of_chains(context, chains)
    n_of = dict(zip(counts["columns"], counts["chains"].tolist(), strict=True))
    yield (), "nothing forgotten", n_of.get((), 0)
    for name in context.columns:
        yield (name,), "quasi-identifier", n_of.get((name,), 0)
    several = [(columns, n) for columns, n in n_of.items() if len(columns) > 1]
    for columns, n in several[:MOST_CHAIN_SETS]:
        yield columns, "risk chain", n


def _risk_left(left: FormalContext, settings: SemanticSettings, n_threads: int) -> dict[str, Any]:
    measures = measure_context(left, settings.max_comparisons, n_threads)
    n_kept = None
    if settings.risk_limit is not None:
        found = find_greatest_subset(left.packed, measures, smallest_acceptable(settings.risk_limit), n_threads)
        n_kept = found.rounds[-1].n_records
    risks = 1.0 / measures.differences
    return {
        "max_basic_semantic_risk": float(risks.max()),
        "mean_basic_semantic_risk": float(left.packed.weights @ risks / left.n_records),
        "records_kept": n_kept,
    }


def _basis(context: FormalContext, settings: SemanticSettings) -> Implications | None:
    return find_stem_basis(context.packed, settings.min_support, settings.max_concepts)


def _count_lost(context: FormalContext, basis: Implications, names: list[str]) -> int:
    """Count the rules of a basis that do not follow from what is left.

    A rule follows if its conclusion is not forgotten, and all records with what is left of its premise have it.
    """
    gone: NDArray[np.uint64] = context.words_of(names)
    packed = context.packed
    everything = full_set(packed.n_attributes, packed.rows.shape[1])
    closures = close_sets(packed.rows, packed.first, packed.holders, basis.premises & ~gone, everything)
    lacks = basis.conclusions & ~basis.premises & (gone | ~closures)
    return int((lacks != 0).any(axis=1).sum())


def _as_table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=ADVICE_COLUMNS)
    table["columns"] = tuple_column([row["columns"] for row in rows])
    dtypes = dict.fromkeys(("records_kept", "implications_left", "implications_lost"), "Int64")
    return table.astype({**dtypes, "is_non_disposable": "boolean", "reason": str, "chains": "int64"})


def no_advice() -> Advice:
    """Return advice on nothing."""
    return Advice(_as_table([]), ())
