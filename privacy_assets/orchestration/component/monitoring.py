"""How the settings of monitoring are written in YAML."""

from typing import Annotated, TypeAlias

from privacy_assets.orchestration.component.yaml_settings import import_path, written
from privacy_assets.orchestration.settings.monitoring import MonitoringSettings

ResolvedMonitoring: TypeAlias = Annotated[
    MonitoringSettings,
    written(
        MonitoringSettings,
        kinds={"on_refusal": str | None},
        read={"on_refusal": lambda path: import_path(path, "on_refusal")},
    ),
]
