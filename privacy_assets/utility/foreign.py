"""Foreign tables: records that cannot be compared with people, because hardly anything in them is as in real records.

All originals, with reflected numbers and labels that changed places, are copies to anyone who undoes that, and no risk
to any measure. They are farther from real people than columns of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from privacy_assets.columns.spelling import spelled_keys
from privacy_assets.display.numbers import number, percent
from privacy_assets.storage.table import Table, take_rows
from privacy_assets.utility.assess import FEWEST_CONTROL, Judge
from privacy_assets.utility.result import UPPER

MOST_ROWS: Final = 20_000
"""Rows of a table that are compared, drawn at random."""
FAR: Final = 0.5
"""Distance from real people at which a single column can be foreign."""
MOST_COLUMNS: Final = 5
ZEROS: Final = {
    "utility_columns": "columns that are uniform over the range of the originals",
    "utility_pairs": "columns that do not depend on each other",
}
UNLIKELY, FEW, CHANCE = 0.005, 5, 0.01
"""Share of records as unlikely as one in 1,000 people that is too large, more if few people judge, and its p-value."""


def _said_of_unlikely(judge: Judge, synthetic: pd.DataFrame, varied: Sequence[str]) -> str:
    """Say how many records have values that are rare in more columns than people's; empty if hardly any."""
    from scipy.stats import binom

    share = judge.share_of_unlikely(synthetic, varied)
    # With few people, more of the next ones are beyond all of them.
    most = UNLIKELY + FEW / len(judge.control)
    if share is None or binom.sf(round(share * len(synthetic)) - 1, len(synthetic), most) > CHANCE:
        return ""
    return f"{percent(share)} of the records have rarer values in more columns than 99.9% of people"


def _rows_of_people(table: Table, person: str | None) -> pd.Series[int]:
    """Return the place of the first row of each person, or of every row."""
    rows = np.arange(len(table)) if person is None else np.flatnonzero(~table[person].duplicated())
    return pd.Series(rows)


def _drawn(tables: Sequence[tuple[Table, pd.Series[int]]], names: Sequence[str]) -> pd.DataFrame:
    """Return at most `MOST_ROWS` of some rows of tables, drawn at random, with texts in one spelling."""
    n_rows, n_before, found = sum(len(rows) for _, rows in tables), 0, []
    drawn = pd.Series(range(n_rows)).sample(min(n_rows, MOST_ROWS), random_state=0)
    for table, rows in tables:
        own = drawn[drawn.between(n_before, n_before + len(rows), inclusive="left")]
        found.append(take_rows(table, rows.iloc[own - n_before], names).set_axis(own.index))
        n_before += len(rows)
    return pd.concat(found).loc[drawn.index].apply(spelled_keys, with_exponents=True)


def why_foreign(
    original: Table,
    synthetic: Table,
    control: Table | None,
    *,
    person: str | None = None,
    invented: Sequence[str] = (),
) -> str:
    """Return why records cannot be compared with people, and the farthest columns; empty if they can.

    The columns of the synthetic records that are not invented are compared, texts in one spelling. Of a person with
    several rows one judges, because repeated rows make columns look dependent that are not. The control judges; if it
    has fewer than 300 people, so does at least half of the originals. The others are the measure of what a table of the
    release's size is worth, because fewer records are farther from people.

    The worth of single columns or of pairs is below 0: so is the upper end of its interval, because independent columns
    are worth 0 in pairs, except by chance; or so it is for the pairs of some column. Or a column is far from real
    people, and farther than a uniform one, and has at least half as many values: a column that collapsed to few values
    cannot be undone. Or more records than people have values that are rare in too many columns: these may be changed
    copies beside many other records.
    """
    compared = [name for name in synthetic.columns if name not in invented]
    # Places of rows, so that only those of a large table that are compared are read.
    rows = _rows_of_people(original, person).sample(frac=1, random_state=0)
    judges = [] if control is None else [(control, _rows_of_people(control, person))]
    n_lacked = FEWEST_CONTROL - sum(len(own) for _, own in judges)
    if n_lacked > 0:
        n_judges = max(n_lacked, len(rows) // 2)
        judges, rows = [(original, rows.iloc[:n_judges]), *judges], rows.iloc[n_judges:]
    if rows.empty:
        return ""
    rows = rows.head(len(synthetic))
    own, people = (_drawn(each, compared) for each in ([(original, rows)], judges))
    synthetic = _drawn([(synthetic, _rows_of_people(synthetic, None))], compared)
    judge = Judge(own, people, n_queries=0)
    found = judge.assess(synthetic)
    if "distance" not in found.columns:
        return ""
    below = [name for name in ZEROS if (upper := found.scores[name + UPPER]) is not None and upper < 0]
    columns = found.columns.set_index("column")
    is_far = (columns["distance"] > FAR) & (columns["distance"] > columns["distance_of_uniform"])
    varied = [name for name in columns.index if 2 * synthetic[name].nunique() >= own[name].nunique()]
    far = [name for name in columns.index[is_far] if name in varied]
    unlikely = _said_of_unlikely(judge, synthetic, varied)
    lost = judge.columns_worth_less_than_independent(synthetic)
    if not below and not far and not lost and not unlikely:
        return ""
    said = [f"{name} is {number(found.scores[name] or 0.0)}, farther from people than {ZEROS[name]}" for name in below]
    said += [f"the columns {far[:MOST_COLUMNS]} are farther from people than uniform ones"] if far else []
    said += [f"the columns {lost[:MOST_COLUMNS]} depend on others in another way than people's"] if lost else []
    said += [unlikely] if unlikely else []
    beyond = (columns["distance"] - columns["distance_of_originals"]).sort_values(ascending=False, kind="stable")
    return (
        f"The records cannot be compared with people: {'; '.join(said)}. Farthest are "
        f"{beyond.index[:MOST_COLUMNS].tolist()}. Check that columns, labels and units are those of the source."
    )
