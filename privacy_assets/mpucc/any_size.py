"""Identification by combinations of any size, estimated from a sample where there are too many to search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privacy_assets.mpucc.intervals import Estimate, wilson_interval
from privacy_assets.mpucc.kernels.agree_sets import agree_sets, singles_out
from privacy_assets.mpucc.preprocess import PreprocessedTables

MOST_RECORDS = 400
FEWEST_RECORDS = 50
CELLS_COMPARED = 20_000_000_000
"""Cells that may be compared; this takes about half a minute on one core."""


class AnySizeRate(NamedTuple):
    """Share of the synthetic records of a sample that single out one original by some combination of columns."""

    rate: Estimate
    n_records: int


def sample_any_size(tables: PreprocessedTables, seed: int, confidence_level: float) -> AnySizeRate:
    """Estimate the identification rate over combinations of all sizes, exact for each record of a sample.

    The sample has 400 records; fewer, but at least 50, if more than 2e10 cells would have to be compared; all records
    if the table has no more. Wilson's interval is too wide rather than too narrow if most records are in the sample.
    """
    synthetic, original = tables.synthetic, tables.original
    columns = [np.concatenate(pair) for pair in zip(synthetic.codes, original.codes, strict=True)]
    weights = np.concatenate([synthetic.multiplicities, original.multiplicities])
    affordable = CELLS_COMPARED // max(len(weights) * len(columns), 1)
    n_records = min(MOST_RECORDS, max(affordable, FEWEST_RECORDS), synthetic.n_assessed)
    drawn = np.random.default_rng(seed).choice(synthetic.n_assessed, n_records, replace=False)
    row_of_record = np.repeat(np.arange(synthetic.n_distinct), synthetic.multiplicities)
    is_candidate = (np.arange(len(weights)) >= synthetic.n_distinct) & (weights == 1)
    n_identified = 0
    for row in row_of_record[drawn]:
        if weights[row] == 1:
            others = np.arange(len(weights)) != row
            sets, sizes = agree_sets(columns, int(row))
            n_identified += singles_out(sets[others], sizes[others], is_candidate[others])
    return AnySizeRate(wilson_interval(n_identified, n_records, confidence_level), n_records)
