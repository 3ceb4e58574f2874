"""Chains of concepts along which withholding records puts the next ones at risk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.errors import InvalidSettingError
from privacy_assets.semantic_risk.concept_lattice import names_of
from privacy_assets.semantic_risk.formal_context import FormalContext
from privacy_assets.semantic_risk.kernels.concepts import upper_neighbors
from privacy_assets.semantic_risk.kernels.row_measures import RowMeasures
from privacy_assets.semantic_risk.row_measures import measure_context
from privacy_assets.semantic_risk.settings import MAX_CHAINS, NOT_SMALLER, is_semantic_risk, largest_risky
from privacy_assets.setting_checks import is_integer, require


class RiskChains(NamedTuple):
    """Maximal chains with identification risk.

    Attributes
    ----------
    chains : DataFrame
        One row per concept of a chain, from its start upwards: ``chain`` (number), ``step``, ``attributes`` (names),
        ``records`` of the concept, ``added``: those that the concept below it lacks, and ``risk``: 1 / added, the risk
        associated with the chain, r_C, of these records (Definition 3.2 of the source).
    n_starts : int
        Number of concepts at which chains start, including chains that are not listed.
    is_complete : bool
        Whether all chains are listed.
    """

    chains: pd.DataFrame
    n_starts: int
    is_complete: bool


def find_risk_chains(context: FormalContext, risk_limit: float = 1.0, *, max_chains: int = MAX_CHAINS) -> RiskChains:
    """List maximal chains of concepts in which the first concept, and every step, has at most 1 / risk_limit records.

    Parameters
    ----------
    risk_limit : float
        The risk from which a number of records counts as identifying, in (0, 1]. 1 gives unique-record identifier
        chains (Definition 3.1 of the source), smaller values give chains with identification risk (Definition 3.2).
    max_chains : int
        Maximum number of chains.

    Raises
    ------
    InvalidSettingError
        If a setting is out of range.
    """
    if not is_semantic_risk(risk_limit):
        raise InvalidSettingError(f"risk_limit is {risk_limit!r}. Expected a risk above 0 and at most 1{NOT_SMALLER}.")
    require(is_integer(max_chains, 1), "max_chains", max_chains, "an integer above 0")
    return list_chains(context, measure_context(context), largest_risky(risk_limit), max_chains)


def list_chains(context: FormalContext, measures: RowMeasures, largest: int, max_chains: int) -> RiskChains:
    """List the chains of a context that was measured; steps of at most ``largest`` records."""
    packed = context.packed
    # Only a minimal concept with records can start a chain: that of a row that no other row includes.
    starts = np.flatnonzero((measures.n_including == 1) & (packed.weights <= largest))
    starts = starts[np.lexsort([packed.rows[starts, j] for j in range(packed.rows.shape[1])])]
    climber = _Climber(context, largest)
    found: list[list[tuple[bytes, int]]] = []
    is_complete = True
    for row in starts:
        for chain in climber.chains_from(packed.rows[row], int(packed.weights[row])):
            if len(found) == max_chains:
                is_complete = False
                break
            found.append(chain)
        if not is_complete:
            break
    return RiskChains(_describe(context, found), len(starts), is_complete)


class _Climber:
    """Finds the risky steps upwards from a concept, once."""

    def __init__(self, context: FormalContext, largest: int) -> None:
        self.context, self.largest = context, largest
        self.steps: dict[bytes, list[tuple[bytes, int]]] = {}

    def chains_from(self, intent: NDArray[np.uint64], n_records: int) -> Iterator[list[tuple[bytes, int]]]:
        """Yield maximal chains as intents and records added."""
        to_do = [[(intent.tobytes(), n_records)]]
        while to_do:
            chain = to_do.pop()
            above = self._above(chain[-1][0])
            if not above:
                yield chain
            to_do.extend([*chain, step] for step in reversed(above))

    def _above(self, key: bytes) -> list[tuple[bytes, int]]:
        if key not in self.steps:
            intents, added = upper_neighbors(self.context.packed, np.frombuffer(key, np.uint64))
            near = [(own.tobytes(), int(n)) for own, n in zip(intents, added, strict=True) if n <= self.largest]
            self.steps[key] = sorted(near)
        return self.steps[key]


def _describe(context: FormalContext, found: list[list[tuple[bytes, int]]]) -> pd.DataFrame:
    steps = [step for chain in found for step in chain]
    n_words = context.packed.rows.shape[1]
    intents = np.frombuffer(b"".join(key for key, _ in steps), np.uint64).reshape(-1, n_words)
    added = np.array([n for _, n in steps], np.int64)
    lengths = np.array([len(chain) for chain in found], np.int64)
    first = np.cumsum(lengths) - lengths
    chain = np.repeat(np.arange(len(found)), lengths)
    total = np.cumsum(added)
    return pd.DataFrame(
        {
            "chain": chain,
            "step": np.arange(len(steps)) - first[chain],
            "attributes": names_of(context, intents),
            "records": total - (total[first] - added[first])[chain],
            "added": added,
            "risk": 1.0 / added,
        }
    )


def columns_of_chains(context: FormalContext, chains: pd.DataFrame) -> pd.DataFrame:
    """Count chains by the columns of their attributes, most frequent first: ``columns``, ``chains``."""
    column_of = {attribute.name: attribute.column for attribute in context.attributes}
    starts = chains.loc[chains["step"] == 0, "attributes"]
    counts: dict[tuple[str, ...], int] = {}
    for names in starts:
        columns = tuple(dict.fromkeys(column_of[name] for name in names))
        counts[columns] = counts.get(columns, 0) + 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return pd.DataFrame(
        {
            "columns": pd.Series([own for own, _ in ordered], dtype=object),
            "chains": np.array([n for _, n in ordered], np.int64),
        }
    )
