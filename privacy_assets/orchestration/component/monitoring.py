"""What watches a release, as it is written in YAML."""

from typing import Any

from pydantic import Field, model_validator

from privacy_assets.orchestration.component.yaml_settings import Flag, Number, Whole, YamlSettings, import_path
from privacy_assets.orchestration.settings.monitoring import QUARTERLY, MonitoringSettings


class MonitoringYaml(YamlSettings):
    """What watches a release between its runs; every part can be left out with null."""

    cron_schedule: str | None = Field(
        QUARTERLY, description="When to run everything; stopped until it is switched on.", examples=["0 6 * * 1"]
    )
    timezone: str = Field("UTC", description="Time zone of the schedule.", examples=["Europe/Berlin"])
    freshness_days: Whole | None = Field(
        90, description="After so many days without a new assessment it counts as stale.", examples=[30]
    )
    drift_limit: Number | None = Field(
        0.1, description="Largest distance of a column from what was last released, from 0 to 1.", examples=[0.2]
    )
    automate: Flag = Field(
        False, description="Materialize an asset once what it is made of has changed and passed.", examples=[True]
    )
    on_refusal: str | None = Field(
        None,
        description="Python path of a function that is called with the sensor's context and a Refusal; the sensor is "
        "stopped until it is switched on.",
        examples=["my_project.alerts:on_refusal"],
    )

    @model_validator(mode="after")
    def _check(self) -> "MonitoringYaml":
        self.build()
        return self

    def build(self) -> MonitoringSettings:
        """Return the settings."""
        given: dict[str, Any] = self.given()
        if self.on_refusal is not None:
            given["on_refusal"] = import_path(self.on_refusal, "on_refusal")
        return MonitoringSettings(**given)
