"""Pictures of an mpUCC assessment: how many records are singled out, by how many columns, and by which."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from privacy_assets.display.numbers import percent
from privacy_assets.display.pictures import (
    BLUE,
    GRAY,
    MOST_COLUMNS_DRAWN,
    SMALLEST_GROUP_DRAWN,
    Drawn,
    new_figure,
    without_frame,
)
from privacy_assets.mpucc.control import ControlComparison


class _Side(NamedTuple):
    """Identified records by combination size, against one kind of real records."""

    whom: str
    counts: tuple[float, ...]


def draw_identified_by_size(tree: pd.DataFrame, control: ControlComparison | None, *, counts_people: bool) -> Drawn:
    """Draw the identified records, or people, by combination size, next to those of the control if there is one.

    With a control, both are counted against equally many real records, as means over the samples.
    """
    if control is None:
        by_size = tree.groupby("combo_size")["mpuccs_collision_cnt"].sum()
        counted = by_size.reindex(range(1, by_size.index.max() + 1), fill_value=0)
        sides = [_Side("an original", tuple(map(float, counted)))]
    else:
        units = ("people of the original", "people of the control") if counts_people else ("originals", "controls")
        n_matched = f"one of {control.n_matched_records:,}"
        sides = [
            _Side(f"{n_matched} {units[0]}", control.matched_identified_by_size),
            _Side(f"{n_matched} {units[1]}", control.control_identified_by_size),
        ]
    sizes = range(1, max(len(side.counts) for side in sides) + 1)
    figure = new_figure(6, 3)
    axes = figure.subplots()
    width = 0.8 / len(sides)
    for place, side in enumerate(sides):
        drawn = {size: round(n) for size, n in enumerate(side.counts, start=1) if n >= SMALLEST_GROUP_DRAWN}
        at = [size + (place - (len(sides) - 1) / 2) * width for size in drawn]
        bars = axes.bar(at, list(drawn.values()), width, color=(BLUE, GRAY)[place], label=side.whom)
        axes.bar_label(bars, labels=[f"{count:,}" for count in drawn.values()], fontsize=8)
    axes.set_xticks(list(sizes))
    axes.set_xlim(0.5, max(len(sizes), 1) + 0.5)
    axes.set_xlabel("columns needed to single out a real record")
    axes.set_ylabel("synthetic records")
    if len(sides) > 1:
        axes.legend(title="that single out", fontsize=8, title_fontsize=8, frameon=False)
    said = _one_side(sides[0]) if control is None else _both_sides(sides[0], sides[1])
    return Drawn(without_frame(figure), "Bar chart: synthetic records that single out a real one, by columns", said)


def _one_side(side: _Side) -> str:
    if max(side.counts) < SMALLEST_GROUP_DRAWN:
        return "Fewer than 5 synthetic records single out an original with any number of columns."
    size = max(range(len(side.counts)), key=lambda place: side.counts[place]) + 1
    together = "1 column alone" if size == 1 else f"{size} columns together"
    return (
        f"{_count(sum(side.counts))} synthetic records single out an original; most often it takes {together} "
        f"({_count(side.counts[size - 1])} records)."
    )


def _both_sides(original: _Side, control: _Side) -> str:
    return (
        f"{_count(sum(original.counts)).capitalize()} synthetic records single out {original.whom}, and "
        f"{_count(sum(control.counts))} single out {control.whom}, whom the synthesizer never saw: bars of the same "
        "height mean that singling out is coincidence."
    )


def _count(n: float) -> str:
    return f"{round(n):,}" if n >= SMALLEST_GROUP_DRAWN else f"fewer than {SMALLEST_GROUP_DRAWN}"


def shares_by_column(details: pd.DataFrame, columns: Sequence[str]) -> list[tuple[str, float]]:
    """Return the share of the identified records whose combination contains each column, the largest first.

    Columns in no combination are left out; ties stay in the order of `columns`.
    """
    counts: Counter[str] = Counter()
    for combo, n_records in Counter(details["field_combo"].tolist()).items():
        for name in combo:
            counts[name] += n_records
    by_count = sorted(columns, key=lambda name: -counts[name])
    return [(name, counts[name] / len(details)) for name in by_count if counts[name]]


def draw_driving_columns(columns: Sequence[tuple[str, float]], n_identified: int) -> Drawn:
    """Draw the share of identified records that have each column in the combination that singles them out.

    The first 30 columns in 5 records or more are drawn.
    """
    drawn = [(name, share) for name, share in columns if round(share * n_identified) >= SMALLEST_GROUP_DRAWN]
    drawn = drawn[:MOST_COLUMNS_DRAWN]
    figure = new_figure(6, 0.9 + 0.28 * len(drawn))
    axes = figure.subplots()
    bars = axes.barh([name for name, _ in drawn], [100 * share for _, share in drawn], color=BLUE)
    axes.bar_label(bars, fmt="%.1f %%", fontsize=8, padding=2)
    axes.invert_yaxis()
    axes.set_xlim(0, 110)
    axes.set_xlabel("records that the column helps to single out, percent")
    said = (
        f"{drawn[0][0]} helps to single out {percent(drawn[0][1])} of the identified records"
        + (", more than any other column." if len(drawn) == 1 or drawn[0][1] > drawn[1][1] else ".")
        if drawn
        else "No column helps to single out 5 or more records."
    )
    return Drawn(without_frame(figure), "Bar chart: columns that drive the risk", said)
