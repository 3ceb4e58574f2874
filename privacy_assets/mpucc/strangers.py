"""What other real people would score in place of the synthetic records: a limit that they fail, no records can meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any, Final

import numpy as np

from privacy_assets.columns.coding import ORDERED_KINDS
from privacy_assets.columns.dependence import columns_alone, ranks_of
from privacy_assets.mpucc.draws import Draws, draw_rows, most_records
from privacy_assets.mpucc.kernels.search import SearchResult
from privacy_assets.mpucc.preprocess import CodedTable, PreprocessedTables, group_equal_rows
from privacy_assets.mpucc.results import SyntheticSearch, count_identified, protection_scores
from privacy_assets.mpucc.settings import MpuccSettings
from privacy_assets.setting_checks import threads_to_use

N_SMALLER_DRAWS: Final = 2
SMALLEST_SHARE: Final = 1e-4
LARGEST_FORECAST: Final = 3


def scores_of_strangers(search: SyntheticSearch, scores: dict[str, Any], max_size: int) -> dict[str, float]:
    """Score the control, which the tables must have, in place of the synthetic records.

    Scores depend on the number of records. If there are fewer controls than scored records, those of all, a half and a
    quarter of the controls are continued to that number, on the low side. ``score_of_related_columns`` is that of the
    columns of a group that depends on no others (`related_columns`): of several groups, where the synthetic records
    exceed strangers most, since columns of noise raise the score of everybody.
    """
    tables = search.tables
    control = tables.control
    assert control is not None  # noqa: S101 - stated above
    # In place of synthetic records they are records that do not belong to people.
    strangers = _regrouped(replace(control, people=None), tables)
    n_published = tables.synthetic.n_assessed
    # Two figures are asked of each draw of the strangers, and one search has both.
    searched: dict[bytes, SearchResult] = {}

    def search_once(table: CodedTable) -> tuple[SyntheticSearch, SearchResult]:
        of, rows = search.of(table, "control "), table.positions.tobytes()
        if rows not in searched:
            searched[rows] = of.against(tables.original, "against original", with_profile=False, max_size=max_size)
        return of, searched[rows]

    def score_of(table: CodedTable) -> float:
        of, found = search_once(table)
        return _score_at(search, count_identified(of, found.combo_of_row >= 0) / table.n_assessed)

    def share_singled_out(table: CodedTable) -> float:
        of, found = search_once(table)
        return of.share_singled_out(of.originals_singled_out(found))

    own = scores["privacy_risk_score"]
    of_strangers = continued(tables, strangers, _n_scored(tables), score_of)
    alone = [(own, of_strangers)]
    for places in _groups(tables):
        chosen = _only(tables, places)
        size = min(max_size, len(places))
        of_columns = SyntheticSearch(chosen, replace(search.settings, max_baseline_cols=size), search.n_threads, None)
        assert chosen.control is not None  # noqa: S101 - as above
        others = _regrouped(replace(chosen.control, people=None), chosen)
        n_records, score = _n_scored(chosen), partial(_score, of_columns, max_size=size)
        drawn = [chosen.synthetic.take(rows) for rows in draw_rows(chosen, chosen.synthetic, n_records)]
        of_group = fmean(score(each) for each in drawn or [chosen.synthetic])
        alone.append((of_group, continued(chosen, others, n_records, score)))
    of_related, others_of_related = max(alone[1:] or alone, key=lambda pair: pair[0] - pair[1])
    return {
        "score_of_strangers": of_strangers,
        "score_of_related_columns": of_related,
        "score_of_strangers_on_related_columns": others_of_related,
        "originals_singled_out_by_strangers": continued(tables, strangers, n_published, share_singled_out),
    }


def continued(
    tables: PreprocessedTables, table: CodedTable, n_records: int, figure_of: Callable[[CodedTable], float]
) -> float:
    """Return a share of a table as if it had this many records, on the low side if it has fewer.

    The logits at n, n / 2 and n / 4 records are continued in the logarithm of the number of records with their last
    slope, and with the change of the slope if it falls, less one standard error; a share that grows never falls below
    the last.

    Parameters
    ----------
    tables : PreprocessedTables
        The tables of the comparison.
    table : CodedTable
        Records without people, which are drawn by their content if there are more than ``n_records``.
    n_records : int
        Number of records to continue to, 1 or more.
    figure_of : callable
        Returns the share, from 0 to 1, of a table.
    """
    from scipy.special import expit, logit

    n, draws = min(table.n_assessed, n_records), Draws(tables, table)

    def mean_of(n_drawn: int, most_draws: int | None = None) -> float:
        drawn = draws.of(n_drawn)[:most_draws]
        return fmean(figure_of(table.take(rows)) for rows in drawn) if drawn else figure_of(table)

    last = mean_of(n)
    steps = np.log2(n_records / n)
    if steps == 0 or n < 4:
        return last
    shares = np.clip(
        [last, *(mean_of(n // part, N_SMALLER_DRAWS) for part in (2, 4))], SMALLEST_SHARE, 1 - SMALLEST_SHARE
    )
    at = logit(shares)
    # The slope changes by as much at each doubling to come; only if it falls.
    bend = steps * (steps + 1) / 2 if at[0] - 2 * at[1] + at[2] < 0 else 0.0
    factors = np.array([1 + steps + bend, -steps - 2 * bend, bend])
    # Each logit has the error of a share of its number of records.
    n_each = n / np.array([1, 2 / N_SMALLER_DRAWS, 4 / N_SMALLER_DRAWS])
    error = float(np.sqrt((factors**2 / (shares * (1 - shares) * n_each)).sum()))
    there = float(factors @ at) - error
    if last == 0:
        return 0.0
    return float(expit(max(there, at[0]) if at[0] > at[1] else there))


def forecast_strangers(tables: Sequence[PreprocessedTables], settings: MpuccSettings, doublings: float) -> list[float]:
    """Score the control in place of synthetic records as `scores_of_strangers` will, before there are any.

    Parameters
    ----------
    tables : sequence of PreprocessedTables
        One table; or, if it is a sample, three with all, a half and a quarter of its people.
    settings : MpuccSettings
        Settings of the assessment; combinations of more than `LARGEST_FORECAST` columns, which only raise scores, are
        not searched.
    doublings : float
        Doublings of a sample, 0 or more, to which the scores are continued with their mean slope, if it falls.

    Returns
    -------
    scores : list of float
        From 0 to 1: on all columns, then on each group of columns that depends on no others.
    """
    from scipy.special import expit, logit

    def score_of(part: PreprocessedTables, places: list[int]) -> float:
        chosen = part if len(places) == len(part.columns) else _only(part, places)
        assert chosen.control is not None  # noqa: S101 - the caller gives tables with one
        size = min(settings.max_size(len(places)), LARGEST_FORECAST, len(places))
        search = SyntheticSearch(chosen, replace(settings, max_baseline_cols=size), threads_to_use(None), None)
        strangers = _regrouped(replace(chosen.control, people=None), chosen)
        return continued(chosen, strangers, most_records(chosen), partial(_score, search, max_size=size))

    found = []
    for places in (list(range(len(tables[0].columns))), *_groups(tables[0])):
        scores = [score_of(part, places) for part in tables]
        at = logit(np.clip(scores, SMALLEST_SHARE, 1 - SMALLEST_SHARE))
        slope = min(float(at[0] - at[-1]) / max(len(scores) - 1, 1), 0.0)
        found.append(float(expit(at[0] + doublings * slope)) if doublings else scores[0])
    return found


def _score(search: SyntheticSearch, table: CodedTable, max_size: int) -> float:
    return _score_at(search, search.of(table, "control ").count(max_size) / table.n_assessed)


def _score_at(search: SyntheticSearch, identification_rate: float) -> float:
    return protection_scores(search, identification_rate)["privacy_risk_score"]


def _n_scored(tables: PreprocessedTables) -> int:
    return min(tables.synthetic.n_assessed, most_records(tables))


def _groups(tables: PreprocessedTables) -> list[list[int]]:
    """Return the columns to score without the others; none if all depend on each other."""
    codes, counts = [], []
    ranks = [ranks_of(own, kind) for own, kind in zip(tables.labels, tables.kinds, strict=True)]
    for table in (tables.original, tables.control):
        assert table is not None  # noqa: S101 - the caller has asked
        # Rows of one person depend on each other.
        first = np.arange(table.n_distinct) if table.people is None else np.unique(table.people.of_row, True)[1]
        codes.append([own[codes_of[first]] for own, codes_of in zip(ranks, table.codes, strict=True)])
        counts.append(table.n_equal if table.people is None else np.ones(len(first)))
    pooled = [np.concatenate(pair) for pair in zip(*codes, strict=True)]
    return columns_alone(pooled, [kind in ORDERED_KINDS for kind in tables.kinds], np.concatenate(counts))


def _only(tables: PreprocessedTables, places: Sequence[int]) -> PreprocessedTables:
    """Return the tables with some columns, as `preprocess` would make them of tables without the others."""

    def pick(entries: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(entries[place] for place in places)

    chosen = replace(
        tables, columns=pick(tables.columns), kinds=pick(tables.kinds), labels=pick(tables.labels), as_written=None
    )

    def only(table: CodedTable) -> CodedTable:
        return _regrouped(replace(table, codes=pick(table.codes)), chosen)

    assert tables.control is not None  # noqa: S101 - the caller has asked
    return replace(
        chosen, original=only(tables.original), synthetic=only(tables.synthetic), control=only(tables.control)
    )


def _regrouped(table: CodedTable, tables: PreprocessedTables) -> CodedTable:
    return group_equal_rows(table, table.codes, list(tables.n_codes), tables.deduplicate)
