"""Concepts of a context and their covers, on demand; the neighborhood of one concept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.errors import InvalidSettingError
from privacy_assets.semantic_risk.formal_context import FormalContext
from privacy_assets.semantic_risk.kernels.concepts import (
    Concepts,
    close_sets,
    full_set,
    list_concepts,
    lower_neighbors,
    upper_neighbors,
)
from privacy_assets.semantic_risk.kernels.row_measures import RowMeasures
from privacy_assets.semantic_risk.settings import MAX_CONCEPTS
from privacy_assets.setting_checks import is_integer, require

MOST_NEIGHBORS = 20
# Words of 8 bytes that listing concepts, or finding a stem basis, may read (several minutes).
WORDS_READ = 2**38


class ConceptLattice(NamedTuple):
    """Concepts by number, and their covers.

    Attributes
    ----------
    concepts : DataFrame
        ``attributes`` (names) and ``records`` (their number) of each concept, the one of all records first; and
        ``semantic_risk`` if all concepts with records are listed, NaN for the one without records.
    covers : DataFrame
        ``upper`` and ``lower``: numbers of a concept and of a lower neighbor.
    """

    concepts: pd.DataFrame
    covers: pd.DataFrame


def read_concepts(context: FormalContext, *, min_support: int = 0, max_concepts: int = MAX_CONCEPTS) -> ConceptLattice:
    """List the concepts of a context.

    Parameters
    ----------
    min_support : int
        Smallest number of records of a concept; 0 includes the concept without records, if there is one.
    max_concepts : int
        Maximum number of concepts.

    Raises
    ------
    InvalidSettingError
        If there are more concepts than allowed, or a setting is out of range.
    """
    found = find_concepts(context, min_support, max_concepts)
    concepts = pd.DataFrame({"attributes": names_of(context, found.intents), "records": found.supports})
    if min_support <= 1:
        concepts["semantic_risk"] = _semantic_risks(found)
    return ConceptLattice(concepts, pd.DataFrame({"upper": found.upper, "lower": found.lower}))


def _semantic_risks(found: Concepts) -> NDArray[np.float64]:
    """Return the semantic risk of every concept, by recursion from the smallest ones upwards."""
    supports = found.supports.tolist()
    risks = [0.0] * len(supports)
    order = np.argsort(found.supports[found.lower], kind="stable")
    # All covers below a concept precede those above it, so a risk is complete when it is passed up.
    for upper, lower in zip(found.upper[order].tolist(), found.lower[order].tolist(), strict=True):
        if supports[lower]:
            passed_on = risks[lower] or 1 / supports[lower]
            risks[upper] = max(risks[upper], passed_on / (supports[upper] - supports[lower]))
    known = [risk or (1 / n if n else np.nan) for risk, n in zip(risks, supports, strict=True)]
    return np.array(known, np.float64)


def find_concepts(context: FormalContext, min_support: int, max_concepts: int) -> Concepts:
    """List concepts as bits, or refuse."""
    require(is_integer(min_support, 0), "min_support", min_support, "an integer of at least 0")
    require(is_integer(max_concepts, 1), "max_concepts", max_concepts, "an integer above 0")
    found = list_concepts(context.packed, min_support, max_concepts, WORDS_READ)
    if found is None:
        raise too_many(context, "concepts", min_support, max_concepts)
    return found


def too_many(context: FormalContext, things: str, min_support: int, most: int) -> InvalidSettingError:
    """Return the error for too many concepts or closed sets, with advice on what to reduce."""
    return InvalidSettingError(
        f"The context of {context.n_rows} distinct rows and {len(context.attributes)} attributes has more than {most} "
        f"{things} of at least {min_support} records, or finding them reads more than {WORDS_READ:.1g} words. Expected "
        f"at most max_concepts = {most}. Raise min_support, use coarser scales or fewer columns, or raise max_concepts."
    )


def names_of(context: FormalContext, sets: NDArray[np.uint64]) -> pd.Series[Any]:
    """Return sets of attributes as a column of names."""
    return pd.Series([context.names_in(own) for own in sets], dtype=object)


def records_with(context: FormalContext, attributes: Sequence[str]) -> NDArray[np.int64]:
    """Return the extent of some attributes, given by name: the positions of the records that have all of them."""
    wanted = context.words_of(attributes)
    has_all = ((context.packed.rows & wanted) == wanted).all(axis=1)
    return np.flatnonzero(has_all[context.row_of_record])


def close_attributes(context: FormalContext, attributes: Sequence[str]) -> tuple[str, ...]:
    """Return the closure of some attributes: the attributes of all records that have them."""
    packed = context.packed
    everything = full_set(packed.n_attributes, packed.rows.shape[1])
    own = context.words_of(attributes)[np.newaxis]
    return context.names_in(close_sets(packed.rows, packed.first, packed.holders, own, everything)[0])


def describe_neighborhood(context: FormalContext, measures: RowMeasures) -> pd.DataFrame:
    """Describe the riskiest concept of a record (the largest of several), and its neighbors.

    ``place`` is "above", "concept" or "below"; ``attributes`` of a neighbor are the difference to those of the concept.
    At most the 20 largest neighbors above and below are listed.
    """
    packed = context.packed
    bits = [packed.rows[:, j] for j in range(packed.rows.shape[1])]
    row = np.lexsort((*bits, -measures.extents, measures.differences))[0]
    own, n_own = packed.rows[row], int(measures.extents[row])
    above, n_added = upper_neighbors(packed, own)
    below, n_below = lower_neighbors(packed, own)
    parts = [
        ("above", own & ~above, n_own + n_added),
        ("concept", own[np.newaxis], np.array([n_own])),
        ("below", below & ~own, n_below),
    ]
    frames = []
    for place, sets, counts in parts:
        order = np.argsort(-counts, kind="stable")[:MOST_NEIGHBORS]
        names = names_of(context, sets[order])
        frames.append(pd.DataFrame({"place": [place] * len(order), "attributes": names, "records": counts[order]}))
    return pd.concat([frame for frame in frames if len(frame)], ignore_index=True).astype({"place": str})
