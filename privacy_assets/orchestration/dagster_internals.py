"""Everything from Dagster that this package uses and that is not public; no other module imports it.

An upgrade of Dagster may move any of it. ``tests/orchestration/test_dagster_internals.py`` reports which.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_IS_USER_PROVIDED_TAG, DATA_VERSION_TAG
from dagster._core.errors import DagsterExecutionInterruptedError
from dagster._core.log_manager import LOG_RECORD_EVENT_ATTR
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_START_TAG, MAX_RETRIES_TAG, PARTITION_NAME_TAG
from dagster.components.resolved.base import resolve_fields

__all__ = [
    "ASSET_PARTITION_RANGE_START_TAG",
    "DATA_VERSION_IS_USER_PROVIDED_TAG",
    "DATA_VERSION_TAG",
    "LOG_RECORD_EVENT_ATTR",
    "MAX_RETRIES_TAG",
    "PARTITION_NAME_TAG",
    "AssetCheckExecutionRecord",
    "DagsterExecutionInterruptedError",
    "check_history",
    "nothing_attached_to_step",
    "resolve_fields",
]


def check_history(
    instance: dg.DagsterInstance, key: dg.AssetCheckKey, *, limit: int, cursor: int | None
) -> Sequence[AssetCheckExecutionRecord]:
    """Return the latest evaluations of an asset check, before the one with the id ``cursor``."""
    return instance.event_log_storage.get_asset_check_execution_history(key, limit=limit, cursor=cursor)


@contextlib.contextmanager
def nothing_attached_to_step(context: Any) -> Iterator[None]:
    """Drop the events and metadata that a user's function attaches to the step by way of Dagster's context."""
    step = context.op_execution_context
    inner = step.get_step_execution_context()
    before = inner._metadata_accumulator
    try:
        yield
    finally:
        inner._metadata_accumulator = before
        list(step.consume_events())
