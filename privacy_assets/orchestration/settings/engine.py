"""The engine of a release: where the stages with the heaviest searches run."""

import inspect
from dataclasses import replace
from typing import Any

from privacy_assets.columns.safe_names import type_name
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.protocol import Engine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.anonymized import Generalization

ENGINE_NAMES = {LocalEngine: "local", SparkEngine: "spark"}


def read_engine(given: Any) -> LocalEngine | SparkEngine:
    """Return the engine that was given, or one of the session or resource that was given.

    Raises
    ------
    InvalidSettingError
        If it is none of these.
    """
    if given is None:
        return LocalEngine()
    if isinstance(given, LocalEngine | SparkEngine):
        return given
    # The attribute of a resource may connect to the cluster, which is for the run to do.
    if any(inspect.getattr_static(given, name, None) is not None for name in ("spark_session", "createDataFrame")):
        return SparkEngine(session=given)
    raise InvalidSettingError(
        f"The engine is a {type_name(given)}. Expected a LocalEngine, a SparkEngine, a SparkSession, or an object with"
        " a `spark_session`."
    )


def require_divisible(release: str, engine: LocalEngine | SparkEngine, generalization: Generalization) -> None:
    """Refuse an anonymization that the engine cannot divide, and that would silently stay on this machine.

    Raises
    ------
    InvalidSettingError
        If the engine divides the work, and classes need all of their rows in one place.
    """
    asked = generalization.settings
    needs_rows = {
        "counts people": asked.subject is not None,
        "has l-diversity or t-closeness": asked.needs_values,
        "uses the lattice": asked.method == "lattice",
    }
    reasons = [reason for reason, applies in needs_rows.items() if applies]
    if engine.rows_per_task is not None and reasons:
        raise InvalidSettingError(
            f"The release {release!r} has an engine that divides tables, but its anonymization {' and '.join(reasons)},"
            " which one machine must do with all rows. Leave out the engine, or make the sides two releases."
        )


def engine_of_stage(engine: LocalEngine | SparkEngine, release: str, stage: str) -> Engine:
    """Return the engine, with the release and the stage in the names of its jobs."""
    return replace(engine, tag=f"{engine.tag}: {release} {stage}") if isinstance(engine, SparkEngine) else engine
