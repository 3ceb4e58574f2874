"""The score that other real people would have in place of the synthetic records, and the score beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any

from privacy_assets.mpucc.draws import draw_rows, most_records
from privacy_assets.mpucc.preprocess import CodedTable, group_equal_rows
from privacy_assets.mpucc.results import SyntheticSearch, overall_protection


def scores_beside_control(
    search: SyntheticSearch, scores: Mapping[str, Any], *, max_size: int
) -> dict[str, float | None]:
    """Score the control, which the tables must have, in place of the synthetic records, at the same number of records.

    In smaller tables, more records are unique, so both tables are searched at the smaller number of records after
    deduplication: draws of that size represent the larger one, as they do where more synthetic records are published
    than there are originals. ``score_beyond_control`` (-1 to 1) is the difference as a share of the distance of the
    score of the control from 1, None if that is 0; [1]_ defines it for success rates of attacks.

    .. [1] M. Giomi, F. Boenisch, C. Wehmeyer, B. Tasnadi (2023), "A Unified Framework for Quantifying Privacy Risk in
       Synthetic Data", PoPETs 2023(2), section 3.4, doi:10.56553/popets-2023-0055.
    """
    tables = search.tables
    control, synthetic = tables.control, tables.synthetic
    assert control is not None  # noqa: S101 - stated above
    if control.people is not None:
        # In place of synthetic records they are records that do not belong to people.
        control = group_equal_rows(
            replace(control, people=None), control.codes, list(tables.n_codes), tables.deduplicate
        )
    n_scored = min(synthetic.n_assessed, most_records(tables))
    n_records = min(control.n_assessed, n_scored)

    def score_of(table: CodedTable, name: str) -> float:
        drawn = [table.take(rows) for rows in draw_rows(tables, table, n_records)] or [table]
        rates = [search.of(each, name).count(max_size) / each.n_assessed for each in drawn]
        return fmean(1.0 - overall_protection(1.0 - rate, scores["baseline_protection"]) for rate in rates)

    of_control = score_of(control, "control ")
    of_synthetic: float = scores["privacy_risk_score"]
    if n_records < n_scored:
        of_synthetic = score_of(synthetic, f"{n_records} synthetic records ")
    left = 1.0 - of_control
    beyond = max((of_synthetic - of_control) / left, -1.0) if left > 0 else None
    return {
        "score_at_control_size": of_synthetic,
        "score_of_control": of_control,
        "score_beyond_control": beyond,
    }
