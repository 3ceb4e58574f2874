"""Why one record is at risk: the attribute whose absence leaves few candidates, and the neighbor that shows it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.errors import InvalidSettingError
from privacy_assets.semantic_risk.concept_lattice import close_attributes, records_with
from privacy_assets.semantic_risk.formal_context import FormalContext
from privacy_assets.setting_checks import is_integer


class RecordRisk(NamedTuple):
    """Why a record is at risk (Definition 3.3). Private, because it is about one person.

    Attributes
    ----------
    attributes : tuple of str
        Names of the attributes of the record.
    lacked : str or None
        The attribute whose absence leaves fewest candidates, the first of several; None if the records with the
        attributes do not have any other, so that the attributes alone leave as few.
    candidates : ndarray of shape (n_candidates,), dtype=int64
        Positions of the records with the attributes that also lack it, including the record itself.
    neighbor : tuple of str
        Attributes of the lower neighbor that shows the risk: those shared by the records that do have it.
    neighbor_records : ndarray of shape (n_neighbors,), dtype=int64
        Positions of these records.
    basic_semantic_risk : float
        1 / n_candidates.
    """

    attributes: tuple[str, ...]
    lacked: str | None
    candidates: NDArray[np.int64]
    neighbor: tuple[str, ...]
    neighbor_records: NDArray[np.int64]
    basic_semantic_risk: float


def explain_record(context: FormalContext, position: int) -> RecordRisk:
    """Name the attribute that a record at risk lacks, and the neighbor that shows it.

    Parameters
    ----------
    position : int
        Position of the record in the table, from 0.

    Raises
    ------
    InvalidSettingError
        If the record does not exist.
    """
    if not is_integer(position, 0) or position >= context.n_records:
        raise InvalidSettingError(
            f"position is {position!r}. Expected the position of a record, from 0 to {context.n_records - 1}."
        )
    attributes = context.names_in(context.packed.rows[context.row_of_record[position]])
    sharing = records_with(context, attributes)
    rows = context.row_of_record[sharing]
    n_with = context.incidence()[rows].sum(axis=0)
    n_with[[name in attributes for name in context.names]] = 0
    lacked = context.names[int(n_with.argmax())] if n_with.any() else None
    neighbor: tuple[str, ...] = ()
    neighbors = sharing[:0]
    if lacked is not None:
        neighbor = close_attributes(context, [*attributes, lacked])
        neighbors = records_with(context, neighbor)
    candidates = np.setdiff1d(sharing, neighbors)
    return RecordRisk(attributes, lacked, candidates, neighbor, neighbors, 1 / len(candidates))
