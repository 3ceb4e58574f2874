"""The engine of a release, as written in YAML."""

from typing import Annotated

from pydantic import Field

from privacy_assets.engine.spark import SparkEngine
from privacy_assets.orchestration.component.yaml_settings import YamlSettings, written


class EngineYaml(YamlSettings):
    """Where mpUCCs are searched, records cut, and candidates counted; it does not change the release."""

    spark: Annotated[SparkEngine, written(SparkEngine)] = Field(
        description="On the workers of a Spark cluster.", examples=[{"remote": "sc://spark:15002"}]
    )
