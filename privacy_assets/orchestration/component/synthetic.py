"""Settings of the component that shape the synthetic side of a release, and its partitions."""

import datetime as dt
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import dagster as dg
from pydantic import Field, model_validator

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.source import SourceYaml
from privacy_assets.orchestration.component.yaml_settings import Flag, Number, Whole, YamlSettings, import_path, written
from privacy_assets.orchestration.settings.release import (
    AssessmentSettings,
    ExternalSynthetic,
    GivenSplit,
    Split,
    Synthesis,
)


class SplitYaml(YamlSettings):
    """How originals and control are divided: here, or given as two tables."""

    train_fraction: Number = Field(
        0.8,
        description="Share of the people whose records the synthesizer may see, above 0 and below 1.",
        examples=[0.7],
    )
    seed: Whole = Field(0, description="Seed of the division.", examples=[1])
    original: SourceYaml | None = Field(
        None,
        description="Records that the synthesizer has seen, where they are divided already; then there is no source.",
        examples=[{"file": "data/original.parquet"}],
    )
    control: SourceYaml | None = Field(
        None, description="Records that it has not seen.", examples=[{"file": "data/control.parquet"}]
    )

    @model_validator(mode="after")
    def _check(self) -> "SplitYaml":
        if (self.original is None) != (self.control is None):
            raise InvalidSettingError("A split that is given needs both original and control; it has one of them.")
        divided_here = self.model_fields_set & {"train_fraction", "seed"}
        if self.original is not None and divided_here:
            raise InvalidSettingError(
                f"The split gives original and control, so {sorted(divided_here)} would divide nothing. Leave it out."
            )
        self.build(Path())
        return self

    def build(self, root: Path) -> Split | GivenSplit:
        """Return the split."""
        if self.original is None or self.control is None:
            return Split(self.train_fraction, self.seed)
        return GivenSplit(self.original.build(root), self.control.build(root))


class SyntheticYaml(YamlSettings):
    """How synthetic records come about: made here, or elsewhere (external)."""

    method: Annotated[Any, dg.Resolver.default(model_field_type=str)] = Field(
        "gaussian_copula",
        description="gaussian_copula, cart (extra trees), or the Python path of a synthesizer of your own.",
        examples=["cart"],
    )
    n_records: Whole | None = Field(
        None, description="Number of records; by default as many as there are originals.", examples=[1000]
    )
    seed: Whole = Field(0, description="Seed of fit and sample.", examples=[1])
    settings: dict[str, Any] = Field(
        default_factory=dict, description="Settings of the synthesizer.", examples=[{"min_samples_leaf": 20}]
    )
    external: SourceYaml | None = Field(
        None,
        description="Synthetic records that were made elsewhere; then nothing above applies.",
        examples=[{"file": "data/synthetic.parquet"}],
    )
    control_was_withheld: Flag = Field(
        False,
        description="True if whoever made the external records had exactly the originals of the split, and not its "
        "control.",
        examples=[True],
    )

    @model_validator(mode="after")
    def _check(self) -> "SyntheticYaml":
        made_here = sorted(self.model_fields_set & {"method", "n_records", "seed", "settings"})
        if self.external is not None and made_here:
            raise InvalidSettingError(f"The synthetic records are external, so {made_here} do nothing. Leave them out.")
        if self.external is None and self.control_was_withheld:
            raise InvalidSettingError(
                "control_was_withheld is about external records, but these are made here, where it always holds. "
                "Leave it out."
            )
        self.build(Path())
        return self

    def build(self, root: Path) -> Synthesis | ExternalSynthetic:
        """Return the synthesis."""
        if self.external is not None:
            return ExternalSynthetic(self.external.build(root), self.control_was_withheld)
        method, settings = self.method, self.settings
        if isinstance(method, str) and ":" in method:
            method = import_path(method, "method")
            if isinstance(method, type):
                method, settings = _make(method, settings), {}
        return Synthesis(method, self.n_records, self.seed, settings)


def _make(synthesizer: type[Any], settings: dict[str, Any]) -> Any:
    problem = ""
    try:
        return synthesizer(**settings)
    except Exception as error:  # noqa: BLE001 (whatever the user's class raises)
        problem = type(error).__name__
    raise InvalidSettingError(
        f"The synthesizer {synthesizer.__name__} cannot be made with the settings {sorted(settings)}: {problem}."
    )


ResolvedAssessment: TypeAlias = Annotated[AssessmentSettings, written(AssessmentSettings)]


class PartitionsYaml(YamlSettings):
    """Partitions of every asset; each has its own evidence and its own releases."""

    type: Literal["static", "daily", "weekly", "monthly"] = Field(
        description="static (a list of keys), daily, weekly or monthly.", examples=["monthly"]
    )
    partition_keys: list[str] | None = Field(
        None, description="The keys of static partitions.", examples=[["north", "south"]]
    )
    start_date: str | None = Field(
        None, description="First day of daily, weekly or monthly partitions.", examples=["2026-01-01"]
    )
    end_date: str | None = Field(None, description="Day before which they end.", examples=["2027-01-01"])
    timezone: str | None = Field(
        None, description="Time zone of these days; by default UTC.", examples=["Europe/Berlin"]
    )

    @model_validator(mode="after")
    def _check(self) -> "PartitionsYaml":
        of_dates = sorted(self.model_fields_set & {"start_date", "end_date", "timezone"})
        if self.type == "static" and (not self.partition_keys or of_dates):
            raise InvalidSettingError(f"static partitions need partition_keys and nothing else; there are {of_dates}.")
        if self.type != "static" and (self.start_date is None or self.partition_keys is not None):
            raise InvalidSettingError(f"{self.type} partitions need start_date, and take no partition_keys.")
        self.build()
        return self

    def build(self) -> dg.PartitionsDefinition[Any]:
        """Return Dagster's definition."""
        if self.type == "static":
            return _static(self.partition_keys or [])
        kinds = {
            "daily": dg.DailyPartitionsDefinition,
            "weekly": dg.WeeklyPartitionsDefinition,
            "monthly": dg.MonthlyPartitionsDefinition,
        }
        days = {name: _day(name, getattr(self, name)) for name in ("start_date", "end_date")}
        problem = ""
        try:
            partitions: dg.PartitionsDefinition[Any] = kinds[self.type](**days, timezone=self.timezone)
            if self.end_date is None or partitions.get_partition_keys(current_time=_after(self.end_date)):
                return partitions
            problem = f"No partition lies from start_date {self.start_date} to end_date {self.end_date}."
        except Exception as error:  # noqa: BLE001 (Dagster and the time zone library raise several)
            problem = f"{type(error).__name__}: {error}"
        raise InvalidSettingError(f"{self.type} partitions cannot be made of these settings. {problem}")


def _static(keys: list[str]) -> dg.PartitionsDefinition[Any]:
    problem = "partition_keys names a key without a character." if "" in keys else ""
    try:
        if not problem:
            return dg.StaticPartitionsDefinition(keys)
    except dg.DagsterInvalidDefinitionError as error:
        problem = f"partition_keys: {error}"
    raise InvalidSettingError(f"static partitions cannot be made of these settings. {problem}")


def _after(day: str) -> dt.datetime:
    """Return a moment at which a day is over in every time zone."""
    return dt.datetime.combine(dt.date.fromisoformat(day), dt.time(), dt.UTC) + dt.timedelta(days=2)


def _day(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        pass
    raise InvalidSettingError(f"{name} is {value!r}; expected a day such as 2026-01-01.")
