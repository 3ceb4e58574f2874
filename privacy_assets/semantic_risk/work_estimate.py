"""The work of finding the implications of a context, estimated before it begins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.bit_sets import count_bits
from privacy_assets.semantic_risk.kernels.formal_context import PackedContext, unpack_rows

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
