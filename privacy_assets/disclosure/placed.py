"""Records that an engine holds as codes, so that its tasks examine them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.engine.protocol import Engine


@dataclass(frozen=True, eq=False)
class Placed:
    """Records that an engine holds.

    Attributes
    ----------
    engine, batches
        The engine, and what it made of their codes.
    columns : tuple of int
        Of the columns that it holds, the places of those that are compared.
    replaced : ndarray of shape (n_replaced,), dtype=int64
        Synthetic records that are others now than those that it holds.
    """

    engine: Engine
    batches: Any
    columns: tuple[int, ...]
    replaced: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def only(self, columns: Sequence[int]) -> Placed:
        """Return the columns at some places, in this order."""
        return replace(self, columns=tuple(self.columns[j] for j in columns))

    def without(self, places: Sequence[int] | NDArray[np.int64]) -> Placed:
        """Return the records of which those at some places are others."""
        return replace(self, replaced=np.union1d(self.replaced, np.asarray(places, np.int64)))
