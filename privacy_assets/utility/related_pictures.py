"""Pictures of related tables: how many rows people have, and how much consecutive rows depend on each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privacy_assets.contract.related import RelatedTables
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
from privacy_assets.utility.related import consecutive

MOST_COUNTS = 30
WIDTH = 0.4


def drawn_related(original: RelatedTables, released: RelatedTables) -> Iterator[Drawn]:
    """Yield the pictures of each child table, of originals and of the released people; groups below 5 are not drawn."""
    for name, child in original.children.items():
        yield _rows_per_person(original, released, name)
        n_several = [int((_counts(own, name) > 1).sum()) for own in (original, released)]
        if child.order is not None and child.columns and min(n_several) >= SMALLEST_GROUP_DRAWN:
            yield _lag_1(original, released, name)


def shares_of_counts(counts: NDArray[np.int64], last: int) -> list[float | None]:
    """Return the share of people with 0, 1, ... and with ``last`` or more rows; None for fewer than 5 people."""
    people = np.bincount(np.minimum(counts, last), minlength=last + 1)
    return [None if n < SMALLEST_GROUP_DRAWN else float(n / len(counts)) for n in people]


def last_count(counts: NDArray[np.int64]) -> int:
    """Return the largest number of rows that at least 5 people have or exceed, at most 30."""
    reached = np.sort(counts)[::-1]
    return int(min(reached[SMALLEST_GROUP_DRAWN - 1], MOST_COUNTS)) if len(reached) >= SMALLEST_GROUP_DRAWN else 0


def _counts(tables: RelatedTables, name: str) -> NDArray[np.int64]:
    return np.bincount(tables.whose[name], minlength=len(tables.people))


def _rows_per_person(original: RelatedTables, released: RelatedTables, name: str) -> Drawn:
    last = last_count(_counts(original, name))
    figure = new_figure(6, 2.8)
    axes = figure.subplots()
    for side, words, color in ((0, "originals", GRAY), (1, "released", BLUE)):
        shares = shares_of_counts(_counts((original, released)[side], name), last)
        places = np.arange(last + 1) + (side - 0.5) * WIDTH
        axes.bar(places, [share or 0.0 for share in shares], WIDTH, color=color, label=words)
    step = max(1, (last + 1) // 10)
    axes.set_xticks(range(0, last + 1, step), [f"{n}+" if n == last else str(n) for n in range(0, last + 1, step)])
    axes.set_xlabel(f"rows of {name} per person; {last}+ are {last} or more")
    axes.set_ylabel("share of people")
    axes.legend(frameon=False)
    without = [shares_of_counts(_counts(own, name), last)[0] for own in (original, released)]
    shown = ["fewer than 5" if share is None else percent(share) for share in without]
    said = f"Without {name}: {shown[0]} of the originals, {shown[1]} of the released people."
    return Drawn(without_frame(figure), f"Bar chart: rows of {name} per person", said)


def _lag_1(original: RelatedTables, released: RelatedTables, name: str) -> Drawn:
    found = [consecutive(own, original, name) for own in (original, released)]
    keys = sorted(found[0], key=lambda key: -abs(found[0][key] - found[1][key]))[:MOST_COLUMNS_DRAWN]
    figure = new_figure(6, 1.2 + 0.4 * len(keys))
    axes = figure.subplots()
    for side, words, color in ((0, "originals", GRAY), (1, "released", BLUE)):
        places = np.arange(len(keys))[::-1] - (side - 0.5) * WIDTH
        axes.barh(places, [found[side][key] for key in keys], WIDTH, color=color, label=words)
    axes.axvline(0, color="black", linewidth=0.8)
    labels = [f"{column} ({'rank correlation' if is_number else 'unchanged'})" for column, is_number in keys]
    axes.set_yticks(np.arange(len(keys))[::-1], labels)
    axes.legend(frameon=False)
    column, _ = keys[0]
    said = (
        f"How much a row of {name} depends on the row before, by column: the rank correlation of numbers, and how many "
        f"other values stay. The released rows differ most from the originals in {column}."
    )
    return Drawn(without_frame(figure), f"Bar chart: consecutive rows of {name}", said)
