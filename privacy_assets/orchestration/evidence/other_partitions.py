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
from privacy_assets.release.manifest import RELEASE_NAME

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
    values = {name: spelled_keys(table[name]).dropna() for name in storage.release.columns_leaving(side)}
    shares_alone = {name: (~own.duplicated(keep=False)).mean() for name, own in values.items() if len(own)}
    others: dict[str, list[pd.Series]] = {name: [] for name, share in shares_alone.items() if share >= FEWEST_ALONE}
    for published in _published(storage, side) if others else ():
        for name in others.keys() & set(published.columns):
            others[name].append(spelled_keys(published[name]).dropna())
    found = {}
    for name, parts in others.items():
        share = float(values[name].isin(pd.concat(parts)).mean()) if parts else 0.0
        by_chance = (1 - shares_alone[name]) * sum(map(len, parts)) / len(values[name])
        if share >= max(FEWEST_LINKED, FEWEST_BEYOND_CHANCE * by_chance):
            found[name] = share
    links = links._replace(published_before=found)
    return replace(gathered, evidence=replace(gathered.evidence, links=links))


def _published(storage: Storage, side: str) -> Iterator[pd.DataFrame]:
    """Yield the tables that the other partitions published."""
    whole = storage.release_store.directory(storage.release.name, side, None)
    own = storage.release_store.directory(storage.release.name, side, storage.partition_key)
    for partition in sorted(path for path in whole.glob("*/") if path != own):
        for path in _releases(partition):
            yield pd.read_parquet(path / f"{side}.parquet")


def _releases(directory: Path) -> list[Path]:
    return sorted(path for path in directory.glob("*/") if RELEASE_NAME.fullmatch(path.name) and not path.is_symlink())
