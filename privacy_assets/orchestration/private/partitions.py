"""Messages for runs that do not select exactly one partition."""

from collections.abc import Mapping

from privacy_assets.orchestration.dagster_internals import ASSET_PARTITION_RANGE_START_TAG


def not_about_one_partition(what: str, run_tags: Mapping[str, str]) -> str:
    """Say that a run is about no partition, or about a range of them, and what to launch instead."""
    found = "a range of them" if ASSET_PARTITION_RANGE_START_TAG in run_tags else "none of them"
    return (
        f"{what} has partitions, and this run selects {found}. Each partition has its own evidence and its own "
        "releases, so a run must select exactly one. Nothing was read or written. Choose a partition when you launch "
        "(`--partition KEY` on the command line); for several partitions launch a backfill with one run each. An "
        "asset without partitions cannot read one with partitions."
    )
