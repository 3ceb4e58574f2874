"""Effect of dropping or coarsening single columns on the identification rate of synthetic records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, replace
from decimal import Decimal
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.display.progress_bar import shows_progress
from privacy_assets.engine.protocol import Engine
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.assess import MpuccAssessment
from privacy_assets.mpucc.draws import draw_rows, most_records
from privacy_assets.mpucc.pictures import shares_by_column
from privacy_assets.mpucc.placed_tables import PlacedTables, placed_tables
from privacy_assets.mpucc.preprocess import PreprocessedTables
from privacy_assets.mpucc.repeated_search import RepeatedSearch, changed_tables
from privacy_assets.mpucc.results import SearchProgress
from privacy_assets.mpucc.settings import MpuccSettings
from privacy_assets.setting_checks import is_integer, require, threads_to_use

DEFAULT_SEARCHES = 20
N_BANDS = 10
RARE_SHARE = 0.05
CHANGE_COLUMNS = [
    "column",
    "share_of_identified",
    "change",
    "how",
    "identification_rate",
    "difference",
    "privacy_risk_score",
]
_ORDERED_KINDS = ("number", "datetime", "aware datetime", "duration")


class _Change(NamedTuple):
    """A change of a column: its new codes by old code, or None if it is dropped."""

    name: str
    how: str
    new_codes: NDArray[np.int64] | None


class _Measured(NamedTuple):
    """Changes of columns that are made together, and the scores after them; no scores if they were not measured."""

    columns: tuple[str, ...]
    change: str
    changes: tuple[_Change, ...]
    share: float
    left: dict[str, Any]

    def row(self, before: float) -> dict[str, Any]:
        rate = self.left.get("identification_rate")
        return {
            "column": " and ".join(self.columns),
            "share_of_identified": self.share,
            "change": self.change,
            "how": "; ".join(dict.fromkeys(each.how for each in self.changes)),
            "identification_rate": rate,
            "difference": None if rate is None else rate - before,
            "privacy_risk_score": self.left.get("privacy_risk_score"),
        }


@shows_progress
def measure_column_changes(
    tables: PreprocessedTables,
    assessment: MpuccAssessment,
    *,
    max_columns: int = 5,
    most_searches: int = DEFAULT_SEARCHES,
    pairs: bool = False,
    n_threads: int | None = None,
    progress: Callable[[SearchProgress], None] | None = None,
    engine: Engine | None = None,
) -> pd.DataFrame:
    """Measure the effect of dropping or coarsening each of the columns that drive the risk.

    Every change is made separately, to both original and synthetic, and the result is that of another search with the
    settings of the assessment. Only records for which a change can matter are searched again. With `pairs`, two columns
    are also dropped, and two coarsened: to the change that helps most, the same change of every other column is added
    in turn. This is greedy: a better pair that lacks the first column is not found.

    Parameters
    ----------
    tables : PreprocessedTables
        The assessed tables.
    assessment : MpuccAssessment
        Its assessment.
    max_columns : int
        Number of columns to try: those in the combinations of the most identified records.
    most_searches : int
        Number of changes to measure, each by another search: the first of all changes in a fixed order, by column and
        then by pair, so that the result does not depend on the machine.
    pairs : bool
        Whether to also change two columns.
    n_threads : int, optional
        Threads to search on. Default: all cores that this process may use.
    progress : callable, optional
        As for `assess_mpuccs`.
    engine : LocalEngine or SparkEngine, optional
        Where tables of more rows than one of its tasks has are searched again; the result does not depend on it.
        Default: in this process.

    Returns
    -------
    DataFrame
        Two rows per column, the columns that drive the risk most first: ``column``; ``share_of_identified``, identified
        records whose combination has the column, from 0 to 1; ``change`` ("dropped", "coarsened") and ``how``; the
        ``identification_rate`` and ``privacy_risk_score`` after the change; and ``difference``, the change of the
        identification rate. The figures are missing if the change was not measured. A column that cannot be coarsened
        has one row. Without identified records there are no rows. With `pairs`, up to two rows follow, for the best
        pair that was found: ``column`` has both names ("age and town"), ``change`` is "both dropped" or "both
        coarsened". Its ``attrs`` are ``n_changes``, the number of changes including all pairs, and ``n_measured``.

    Raises
    ------
    InvalidTableError
        If the assessment and the tables have different columns, or the assessment has no scores to compare with.

    Notes
    -----
    Numbers, datetimes and durations are coarsened to 10 bands of about equally many originals, or to half as many bands
    as there are values, if that is less. For text and booleans, the values of fewer than 5 % of the originals are
    merged. Missing values stay missing. A change that would leave a single value is not tried. Dropping a column can
    make records equal, which then count once. If the scores are means over draws, the first draw is searched.
    """
    require(max_columns >= 1, "max_columns", max_columns, "an integer above 0")
    require(is_integer(most_searches, 0), "most_searches", most_searches, "an integer of at least 0")
    if list(tables.columns) != assessment.settings["columns"]:
        raise InvalidTableError(
            "The assessment and the preprocessed tables have different columns. Expected the assessed tables. Nothing "
            "was measured; assess these tables again."
        )
    draws = draw_rows(tables, tables.synthetic, most_records(tables))
    if draws:
        tables = replace(tables, synthetic=tables.synthetic.take(draws[0]))
    driving = shares_by_column(assessment.details, assessment.settings["columns"])[:max_columns]
    settings, n_used = _settings_of(assessment), threads_to_use(n_threads)
    before = assessment.scores["identification_rate"]
    if driving and before is None:
        raise InvalidTableError(
            "The assessment has no identification_rate, with which the rate after each change is compared. Expected "
            "tables that can be assessed. Nothing was measured; the scores of the assessment say why it has none."
        )

    @contextmanager
    def repeat(tables: PreprocessedTables, columns: Sequence[str]) -> Iterator[RepeatedSearch]:
        places = [tables.columns.index(column) for column in columns]
        n_rows = tables.original.n_distinct + tables.synthetic.n_distinct
        is_divided = engine is not None and places and n_rows > (engine.rows_per_task or n_rows)
        sides = [tables.synthetic, tables.original]
        with placed_tables(engine if is_divided else None, sides, has_people=True) as placed:
            assert placed is None or isinstance(placed, PlacedTables)  # noqa: S101 - the engine divides the work
            yield RepeatedSearch(tables, places, settings, n_used, progress, placed)

    singles = [(column, share, change) for column, share in driving for change in _changes(tables, column)]
    with repeat(tables, [column for column, _ in driving]) as repeated:
        measured = [
            _Measured((column,), each.name, (each,), share, _scores_after(repeated, column, each, n < most_searches))
            for n, (column, share, each) in enumerate(singles)
        ]
        if draws and driving:
            place = tables.columns.index(driving[0][0])
            before = repeated.scores_after(place, np.arange(tables.n_codes[place]))["identification_rate"]
    n_changes = len(measured)
    if pairs and len(tables.columns) > 2:
        for kind in dict.fromkeys(each.change for each in measured):
            own = [each for each in measured if each.change == kind]
            if n_changes < most_searches:
                measured += _best_pair(tables, own, assessment, repeat, most_searches - n_changes)
            n_changes += len(own) - 1
    rows = [each.row(before) for each in measured]
    figures = dict.fromkeys(("share_of_identified", *CHANGE_COLUMNS[4:]), "float64")
    table = pd.DataFrame(rows, columns=CHANGE_COLUMNS).astype({**dict.fromkeys(CHANGE_COLUMNS[:4], str), **figures})
    table.attrs = {"n_measured": min(n_changes, most_searches), "n_changes": n_changes}
    return table


def _best_pair(
    tables: PreprocessedTables,
    singles: list[_Measured],
    assessment: MpuccAssessment,
    repeat: Callable[[PreprocessedTables, Sequence[str]], AbstractContextManager[RepeatedSearch]],
    most_searches: int,
) -> list[_Measured]:
    """Add each other change to the one that helps most, and return the best pair; empty if there is no other."""
    first = min(singles, key=_rate)
    (column,), (change,) = first.columns, first.changes
    others = [each for each in singles if each is not first][:most_searches]
    if not others:
        return []
    changed = changed_tables(tables, tables.columns.index(column), change.new_codes)
    found = []
    n_with = Counter(assessment.details["field_combo"].tolist())
    with repeat(changed, [each.columns[0] for each in others]) as repeated:
        for other in others:
            left = _scores_after(repeated, other.columns[0], other.changes[0])
            both = (column, other.columns[0])
            share = sum(n for combo, n in n_with.items() if not set(both).isdisjoint(combo)) / n_with.total()
            found.append(_Measured(both, f"both {first.change}", (change, other.changes[0]), share, left))
    return sorted(found, key=_rate)[:1]


def _rate(measured: _Measured) -> float:
    return float(measured.left["identification_rate"])


def _settings_of(assessment: MpuccAssessment) -> MpuccSettings:
    named = {field.name: assessment.settings[field.name] for field in fields(MpuccSettings)}
    if assessment.scores["max_combo_size"] != len(assessment.settings["columns"]):
        # If the assessment ended early, the same sizes are searched again.
        named["max_baseline_cols"] = assessment.scores["max_combo_size"]
    return MpuccSettings(**{**named, "renyi_alpha": inf if named["renyi_alpha"] == "inf" else named["renyi_alpha"]})


def _changes(tables: PreprocessedTables, column: str) -> Iterator[_Change]:
    if len(tables.columns) > 1:
        yield _Change("dropped", "left out", None)
    place = tables.columns.index(column)
    labels = tables.labels[place]
    codes = tables.original.codes[place]
    counts = np.bincount(codes, weights=tables.original.n_equal, minlength=len(labels))
    if tables.kinds[place] in _ORDERED_KINDS:
        coarse, how = _bands(labels, counts, tables.kinds[place])
    else:
        coarse, how = _rare_together(labels, counts)
    n_left = len(np.unique(coarse[[label is not None for label in labels]]))
    # A single value would be equivalent to dropping the column.
    if 1 < n_left < sum(label is not None for label in labels):
        yield _Change("coarsened", how, coarse)


def _bands(labels: NDArray[np.object_], counts: NDArray[Any], kind: str) -> tuple[NDArray[np.int64], str]:
    """Return the band of each code; bands have about equally many originals, and missing values have their own band."""
    present = np.array([code for code, label in enumerate(labels) if label is not None], np.int64)
    in_order = present[sorted(range(len(present)), key=lambda i: _order_of(str(labels[present[i]]), kind))]
    n_bands = min(N_BANDS, max(-(-len(present) // 2), 1))
    own = counts[in_order]
    # A value belongs to the band of the middle of its records.
    middle = (np.cumsum(own) - own / 2) / max(own.sum(), 1)
    bands = np.full(len(labels), n_bands, np.int64)
    bands[in_order] = np.minimum((middle * n_bands).astype(np.int64), n_bands - 1)
    return bands, f"{n_bands} bands of about equally many originals"


def _order_of(label: str, kind: str) -> Any:
    """Return a key that sorts labels like their values."""
    if kind == "number":
        return Decimal(label)
    # "2020-01-31T12 Europe/Berlin" and "90 seconds" begin with the sortable part.
    first = label.split(" ")[0]
    return int(first) if kind == "duration" else np.datetime64(first)


def _rare_together(labels: NDArray[np.object_], counts: NDArray[Any]) -> tuple[NDArray[np.int64], str]:
    """Return the new code of each code; rare values share one."""
    is_rare = (counts < RARE_SHARE * counts.sum()) & np.array([label is not None for label in labels])
    coarse = np.arange(len(labels))
    coarse[is_rare] = len(labels)
    return coarse, f"{int(is_rare.sum())} values of fewer than {RARE_SHARE:.0%} of the originals as one"


def _scores_after(repeated: RepeatedSearch, column: str, change: _Change, is_measured: bool = True) -> dict[str, float]:
    """Search again after a change, if it is measured."""
    place = repeated.tables.columns.index(column)
    return repeated.scores_after(place, change.new_codes) if is_measured else {}
