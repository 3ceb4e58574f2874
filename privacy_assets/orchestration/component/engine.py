"""The engine of a release, as written in YAML."""

from pydantic import Field, model_validator

from privacy_assets.engine.spark import SparkEngine
from privacy_assets.orchestration.component.yaml_settings import Whole, YamlSettings


class SparkYaml(YamlSettings):
    """A Spark Connect server whose workers run the heaviest searches (extra spark)."""

    remote: str = Field(
        description="Address of the server, such as sc://host:15002; local[2] starts one on this machine.",
        examples=["sc://spark:15002"],
    )
    rows_per_task: Whole = Field(
        SparkEngine.rows_per_task,
        description="Approximate number of rows per task; no task of a search gets more than twice as many.",
        examples=[1_000_000],
    )

    @model_validator(mode="after")
    def _check(self) -> "SparkYaml":
        self.build()
        return self

    def build(self) -> SparkEngine:
        """Return the engine, which connects to the server only in a run."""
        return SparkEngine(remote=self.remote, rows_per_task=self.rows_per_task)


class EngineYaml(YamlSettings):
    """Where mpUCCs are searched, records cut, and candidates counted; it does not change the release."""

    spark: SparkYaml = Field(
        description="On the workers of a Spark cluster.", examples=[{"remote": "sc://spark:15002"}]
    )
