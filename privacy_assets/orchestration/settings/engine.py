"""The engine of a release, which runs the stages with the heaviest searches."""

import inspect
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pandas as pd

from privacy_assets.anonymization.sensitive_values import MOST_VALUES_DIVIDED, has_few_sensitive_values
from privacy_assets.columns.safe_names import type_name
from privacy_assets.engine.connection import shown_address
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.protocol import Engine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.anonymized import Generalization


def read_engine(given: Any) -> LocalEngine | SparkEngine:
    """Return the given engine, or an engine made from the given session or resource."""
    if given is None:
        return LocalEngine()
    if isinstance(given, LocalEngine | SparkEngine):
        return given
    # Reading the attribute of a resource may connect to the cluster, which only a run may do.
    if any(inspect.getattr_static(given, name, None) is not None for name in ("spark_session", "createDataFrame")):
        return SparkEngine(session=given)
    raise InvalidSettingError(
        f"The engine is a {type_name(given)}. Expected a LocalEngine, a SparkEngine, a SparkSession, or an object with"
        " a `spark_session`."
    )


def engine_name(engine: LocalEngine | SparkEngine) -> str:
    """Return the name of an engine for the manifest, with the address of its server."""
    if isinstance(engine, LocalEngine):
        return "local"
    return "spark" if engine.remote is None else f"spark at {shown_address(engine.remote)}"


def why_gathered(engine: LocalEngine | SparkEngine, generalization: Generalization, table: pd.DataFrame) -> str:
    """Return why one machine needs all rows to cut them into classes; empty if the engine divides them."""
    asked = generalization.settings
    if engine.rows_per_task is None:
        return ""
    if asked.method == "lattice":
        return "uses the lattice"
    if asked.needs_values and not has_few_sensitive_values(table, asked):
        return f"has l-diversity or t-closeness of over {MOST_VALUES_DIVIDED} values"
    return ""


@contextmanager
def engine_of_stage(engine: LocalEngine | SparkEngine, release: str, stage: str) -> Iterator[Engine]:
    """Yield an engine with one session for the stage, whose job names contain the release and the stage."""
    if isinstance(engine, LocalEngine):
        yield engine
    else:
        with replace(engine, tag=f"{engine.tag}: {release} {stage}").opened() as opened:
            yield opened


def engine_that_writes(
    engine: LocalEngine | SparkEngine, release: str, stage: str
) -> AbstractContextManager[Engine | None]:
    """Yield the engine whose executors write the files of a release; None if this process does."""
    is_asked = isinstance(engine, SparkEngine) and engine.writes_releases
    return engine_of_stage(engine, release, stage) if is_asked else nullcontext()
