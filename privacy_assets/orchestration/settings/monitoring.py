"""The settings of the monitoring of a release between its runs."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import dagster as dg

from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import described, is_integer, is_number, setting

QUARTERLY = "0 6 1 1,4,7,10 *"
MOST_DAYS = 36_500


@dataclass(frozen=True)
class Refusal:
    """A refused release, for an alert; it contains no value of the table.

    Parameters
    ----------
    release, side : str
        Name of the release, and which of its records were refused: synthetic or anonymized.
    run_id : str
        The run that was refused.
    reason : str
        The finding and the expectation.
    partition : str or None
        The partition that was refused, if the release has partitions.
    """

    release: str
    side: str
    run_id: str
    reason: str
    partition: str | None = None


AlertHook = Callable[[dg.SensorEvaluationContext, Refusal], None]


@described
@dataclass(frozen=True)
class MonitoringSettings:
    """How a release is monitored between its runs; null (None) turns a part off.

    The default of the freshness is the interval that the source of the limits recommends. If anonymized records have no
    assessment of their own, their own age counts. Even with `automate`, the release step always asks the gate again.
    """

    cron_schedule: str | None = setting(
        QUARTERLY, "When to run everything; the schedule is stopped until it is switched on.", "0 6 * * 1"
    )
    timezone: str = setting("UTC", "Time zone of the schedule.", "Europe/Berlin")
    freshness_days: int | None = setting(
        90, "After this many days an assessment counts as stale.", 30, at_least=1, at_most=MOST_DAYS
    )
    drift_limit: float | None = setting(
        0.1,
        "Largest distance of a column from its last released values, from 0 to 1, before a check warns; null if "
        "original and control are given.",
        0.2,
        above=0,
        below=1,
    )
    automate: bool = setting(
        False, "Materialize an asset once its inputs have changed and their blocking checks have passed.", True
    )
    on_refusal: AlertHook | None = setting(
        None,
        "Python path of a function that is called with the sensor's context and a Refusal, for each refused "
        "release; the sensor is stopped until it is switched on, and reports no refusal from more than an hour "
        "before that.",
        "my_project.alerts:on_refusal",
    )

    def __post_init__(self) -> None:
        self._check_schedule()
        days = self.freshness_days
        if days is not None and not is_integer(days, 1, MOST_DAYS, plain=True):
            raise InvalidSettingError(
                f"freshness_days is {days!r}; expected a number of days from 1 to {MOST_DAYS:,}, or None."
            )
        limit = self.drift_limit
        if limit is not None and not (is_number(limit, plain=True) and 0 < limit < 1):
            raise InvalidSettingError(f"drift_limit is {limit!r}; expected a distance between 0 and 1, or None.")
        if not isinstance(self.automate, bool):
            raise InvalidSettingError(f"automate is {self.automate!r}; expected True or False.")
        if self.on_refusal is not None and not callable(self.on_refusal):
            raise InvalidSettingError(
                f"on_refusal is a {type(self.on_refusal).__name__}; expected a function that is called with the "
                "sensor's context and a Refusal."
            )

    def _check_schedule(self) -> None:
        """Let Dagster read both now, because it would later refuse them without naming the setting."""
        if self.cron_schedule is not None and not _is_schedule(self.cron_schedule, "UTC"):
            raise InvalidSettingError(
                f"cron_schedule is {self.cron_schedule!r}; expected five fields of cron such as {QUARTERLY!r}, or None."
            )
        if not self.timezone or not _is_schedule(QUARTERLY, self.timezone):
            raise InvalidSettingError(
                f"timezone is {self.timezone!r}; expected the name of a time zone such as 'Europe/Berlin'."
            )

    @property
    def freshness_policy(self) -> dg.FreshnessPolicy | None:
        """The policy that Dagster shows on the assessments, or on tables that are measured without an assessment."""
        if self.freshness_days is None:
            return None
        return dg.FreshnessPolicy.time_window(fail_window=timedelta(days=self.freshness_days))

    @property
    def automation_condition(self) -> dg.AutomationCondition[Any] | None:
        """When an asset is materialized automatically."""
        if not self.automate:
            return None
        return dg.AutomationCondition.eager() & dg.AutomationCondition.all_deps_blocking_checks_passed()


def _is_schedule(cron_schedule: str, timezone: str) -> bool:
    try:
        dg.ScheduleDefinition(
            name="checked", job_name="checked", cron_schedule=cron_schedule, execution_timezone=timezone
        )
    except Exception:  # noqa: BLE001 (Dagster and the time zone library raise several)
        return False
    return True


NO_MONITORING = MonitoringSettings(cron_schedule=None, freshness_days=None, drift_limit=None)
"""The default monitoring of a release."""
