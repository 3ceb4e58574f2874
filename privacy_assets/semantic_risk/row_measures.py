"""Measures of the rows of a context, bounded in work."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privacy_assets.display.numbers import against
from privacy_assets.errors import InvalidSettingError
from privacy_assets.semantic_risk.formal_context import FormalContext
from privacy_assets.semantic_risk.kernels.row_measures import RowMeasures, find_rarest, measure_rows

MAX_COMPARISONS = 2 * 10**11


def measure_context(
    context: FormalContext,
    max_comparisons: int = MAX_COMPARISONS,
    n_threads: int = 1,
    on_wait: Callable[[], None] | None = None,
) -> RowMeasures:
    """Measure the distinct rows of a context by `measure_rows`; refuse more than ``max_comparisons``."""
    packed = context.packed
    _, n_compared = find_rarest(packed.rows, packed.n_larger, packed.first, packed.holders, np.arange(context.n_rows))
    if n_compared > max_comparisons:
        shown, most = against(n_compared, max_comparisons)
        raise InvalidSettingError(
            f"The context has {context.n_rows} distinct rows of {len(context.attributes)} attributes, of which up to "
            f"{shown} pairs would be compared. Expected at most max_comparisons = {most}. Use "
            "coarser scales or fewer columns, or raise max_comparisons. Nothing was assessed."
        )
    return measure_rows(packed, n_threads, on_wait)
