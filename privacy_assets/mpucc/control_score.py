"""The score that other real people would have in place of the synthetic records, and the score beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from privacy_assets.mpucc.control import draw_people
from privacy_assets.mpucc.preprocess import CodedTable, PreprocessedTables, group_equal_rows
from privacy_assets.mpucc.results import SyntheticSearch, overall_protection


def scores_beside_control(
    search: SyntheticSearch, scores: Mapping[str, Any], *, max_size: int, seed: int
) -> dict[str, float | None]:
    """Score the control in place of the synthetic records, at the same number of records.

    In smaller tables, more records are unique, so both tables are searched at the smaller of the two numbers of records
    (before deduplication): a random sample of that size represents the larger one.

    Parameters
    ----------
    search : SyntheticSearch
        Search of the synthetic records; its tables must have a control (not checked here).
    scores : mapping
        The scores of all synthetic records against the originals.
    max_size : int
        Largest combinations that are searched.
    seed : int
        Seed of the sample.

    Returns
    -------
    dict
        ``score_at_control_size`` and ``score_of_control`` (0 to 1), the scores of equally many synthetic and control
        records; and ``score_beyond_control`` (-1 to 1), their difference as a share of the distance of the score of the
        control from 1 [1]_; None if that distance is 0.

    References
    ----------
    .. [1] M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnadi (2023), "A Unified Framework for Quantifying Privacy Risk in
       Synthetic Data", PoPETs 2023(2), section 3.4, doi:10.56553/popets-2023-0055: defined there for success rates of
       attacks.
    """
    tables = search.tables
    control, synthetic = tables.control, tables.synthetic
    assert control is not None  # noqa: S101 - stated above
    n_records = min(control.n_records, synthetic.n_records)
    rng = np.random.default_rng(seed)

    def score_of(table: CodedTable, stage: str) -> float:
        drawn = table
        if table.people is not None:
            # In place of synthetic records they are records that do not belong to people.
            drawn = group_equal_rows(replace(table, people=None), table.codes, list(tables.n_codes), tables.deduplicate)
        if table.n_records > n_records:
            drawn = draw_people(drawn, n_records, rng, tables.deduplicate)
        in_place: PreprocessedTables = replace(tables, synthetic=drawn)
        found = SyntheticSearch(
            in_place, search.settings, search.n_threads, search.progress, engine=search.engine
        ).matches(tables.original, stage, max_size)
        n_identified = int(drawn.multiplicities[found.partner >= 0].sum(dtype=np.int64))
        return 1.0 - overall_protection(1.0 - n_identified / drawn.n_assessed, scores["baseline_protection"])

    of_control = score_of(control, "control against original")
    of_synthetic: float = scores["privacy_risk_score"]
    if synthetic.n_records > n_records:
        of_synthetic = score_of(synthetic, f"{n_records} synthetic records against original")
    left = 1.0 - of_control
    beyond = max((of_synthetic - of_control) / left, -1.0) if left > 0 else None
    return {
        "score_at_control_size": of_synthetic,
        "score_of_control": of_control,
        "score_beyond_control": beyond,
    }
