"""Settings of the component that shape the synthetic side of a release, and its partitions."""

import datetime as dt
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import dagster as dg
from pydantic import Field, model_validator

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.source import ResolvedSource
from privacy_assets.orchestration.component.yaml_settings import (
    Written,
    YamlSettings,
    import_path,
    written,
    written_as_one_of,
)
from privacy_assets.orchestration.settings.synthetic import ExternalSynthetic, GivenSplit, Split, Synthesis


def _kind_of_split(given: Mapping[str, Any]) -> str:
    """Return the kind of split: divided here, or given."""
    tables = [name for name in ("original", "control") if name in given]
    if not tables:
        return "divided"
    if len(tables) == 1:
        raise InvalidSettingError(f"A given split needs both original and control; this one has only {tables[0]}.")
    divided_here = [name for name in ("train_fraction", "seed") if name in given]
    if divided_here:
        raise InvalidSettingError(
            f"The split gives original and control, so {' and '.join(divided_here)} would have no effect. Leave "
            f"{'it' if len(divided_here) == 1 else 'them'} out."
        )
    return "given"


ResolvedSplit: TypeAlias = Annotated[
    Split | GivenSplit,
    written_as_one_of(
        "Split",
        "How originals and control are divided: here, or given as two tables.",
        _kind_of_split,
        divided=written(Split),
        given=written(GivenSplit, kinds={"original": ResolvedSource, "control": ResolvedSource}),
    ),
]


def _make_synthesis(given: YamlSettings) -> Synthesis:
    values = given.given()
    method = values.get("method")
    if isinstance(method, str) and ":" in method:
        values["method"] = import_path(method, "method")
        if isinstance(values["method"], type):
            values["method"] = _make(values["method"], values.pop("settings", {}))
    return Synthesis(**values)


def _make(synthesizer: type[Any], settings: dict[str, Any]) -> Any:
    problem = ""
    try:
        return synthesizer(**settings)
    except Exception as error:  # noqa: BLE001 (whatever the user's class raises)
        problem = type(error).__name__
    raise InvalidSettingError(
        f"The synthesizer {synthesizer.__name__} cannot be made with the settings {sorted(settings)}: {problem}."
    )


_SYNTHESIS = written(Synthesis, kinds={"method": Annotated[Any, dg.Resolver.default(model_field_type=str)]})


def _kind_of_synthesis(given: Mapping[str, Any]) -> str:
    """Return where synthetic records are made: here or elsewhere."""
    if "external" not in given:
        if given.get("control_was_withheld"):
            raise InvalidSettingError(
                "control_was_withheld describes external records, but these are made here, where the control is always "
                "withheld. Leave it out."
            )
        if given.get("person"):
            raise InvalidSettingError(
                "person names a column of external records, but these are made here, row by row, without synthetic "
                "people. Leave it out."
            )
        return "made_here"
    of_synthesis = [name for name in _SYNTHESIS.model.model_fields if name in given]
    if of_synthesis:
        raise InvalidSettingError(
            f"The synthetic records are external, so {' and '.join(of_synthesis)} would have no effect. Leave "
            f"{'it' if len(of_synthesis) == 1 else 'them'} out."
        )
    return "external"


ResolvedSynthesis: TypeAlias = Annotated[
    Synthesis | ExternalSynthetic,
    written_as_one_of(
        "Synthesis",
        "How synthetic records are made: here or elsewhere (external).",
        _kind_of_synthesis,
        made_here=Written(Synthesis, _SYNTHESIS.model, _make_synthesis),
        external=written(ExternalSynthetic, kinds={"source": ResolvedSource}, names={"source": "external"}),
    ),
]


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
    end_date: str | None = Field(
        None, description="Day by which the last partition has ended.", examples=["2027-01-01"]
    )
    timezone: str | None = Field(
        None, description="Time zone of the start and end dates; by default UTC.", examples=["Europe/Berlin"]
    )

    @model_validator(mode="after")
    def _check(self) -> "PartitionsYaml":
        of_dates = sorted(self.model_fields_set & {"start_date", "end_date", "timezone"})
        if self.type == "static" and (not self.partition_keys or of_dates):
            raise InvalidSettingError(f"static partitions need partition_keys and no other keys; found {of_dates}.")
        if self.type != "static" and (self.start_date is None or self.partition_keys is not None):
            raise InvalidSettingError(f"{self.type} partitions need start_date and no partition_keys.")
        self.build()
        return self

    def build(self) -> dg.PartitionsDefinition[Any]:
        """Return Dagster's definition of the partitions."""
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
            problem = f"There is no partition from start_date {self.start_date} to end_date {self.end_date}."
        except Exception as error:  # noqa: BLE001 (Dagster and the time zone library raise several)
            problem = f"{type(error).__name__}: {error}"
        raise InvalidSettingError(f"{self.type} partitions cannot be made from these settings. {problem}")


def _static(keys: list[str]) -> dg.PartitionsDefinition[Any]:
    problem = "partition_keys contains an empty key." if "" in keys else ""
    try:
        if not problem:
            return dg.StaticPartitionsDefinition(keys)
    except dg.DagsterInvalidDefinitionError as error:
        problem = f"partition_keys: {error}"
    raise InvalidSettingError(f"static partitions cannot be made from these settings. {problem}")


def _after(day: str) -> dt.datetime:
    """Return a time at which a day is over in every time zone."""
    return dt.datetime.combine(dt.date.fromisoformat(day), dt.time(), dt.UTC) + dt.timedelta(days=2)


def _day(name: str, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        pass
    raise InvalidSettingError(f"{name} is {value!r}; expected a day such as 2026-01-01.")
