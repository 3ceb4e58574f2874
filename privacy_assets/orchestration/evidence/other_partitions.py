"""Values that other partitions published: whoever has several partitions sees by them which rows are of one person."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pandas as pd

from privacy_assets.anonymity.links import FEWEST_LINKED
from privacy_assets.columns.spelling import spelled_keys
from privacy_assets.orchestration.evidence.evidence import Gathered
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.release.files import RELEASE_NAME

FEWEST_ALONE: Final = 0.95
"""Share of the rows whose value nobody else has, from which on a value is that of a person or row."""
FEWEST_BEYOND_CHANCE: Final = 3.0
"""Times as many values as chance explains, by the values that rows of one partition share."""


def with_values_of_other_partitions(gathered: Gathered, storage: Storage, side: str) -> Gathered:
    """Add the columns that are released unchanged and have values that other partitions published before.

    Tables that are no longer where they were written do not count. Synthetic rows belong to nobody.
    """
    table, links = gathered.table, gathered.evidence.links
    if table is None or links is None or storage.partition_key is None or side != "anonymized":
        return gathered
    found = {}
    for name in storage.release.columns_leaving(side):
        own = spelled_keys(table[name]).dropna()
        share_alone = (~own.duplicated(keep=False)).mean() if len(own) else 0.0
        if share_alone < FEWEST_ALONE:
            continue
        others = [spelled_keys(each).dropna() for each in _published(storage, side, name)]
        share = float(own.isin(pd.concat(others)).mean()) if others else 0.0
        by_chance = (1 - share_alone) * sum(map(len, others)) / len(own)
        if share >= max(FEWEST_LINKED, FEWEST_BEYOND_CHANCE * by_chance):
            found[name] = share
    links = links._replace(published_before=found)
    return replace(gathered, evidence=replace(gathered.evidence, links=links))


def _published(storage: Storage, side: str, column: str) -> Iterator[pd.Series]:
    """Yield a column of all releases of the other partitions that have it."""
    whole = storage.release_store.directory(storage.release.name, side, None)
    own = storage.release_store.directory(storage.release.name, side, storage.partition_key)
    for partition in sorted(path for path in whole.glob("*/") if path != own):
        for path in _releases(partition):
            table = pd.read_parquet(path / f"{side}.parquet")
            if column in table.columns:
                yield table[column]


def _releases(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*/") if RELEASE_NAME.fullmatch(path.name) and not path.is_symlink())
