"""The comparison of candidate releases for the command line: the asset ``release_options`` of a YAML file, run here."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.comparison.result import ReleaseOptions
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.orchestration.settings.options import OPTIONS, OptionsSettings
from privacy_assets.orchestration.settings.sources import UpstreamAsset
from privacy_assets.setting_checks import is_number

TYPE = "privacy_assets.PrivacyReleaseComponent"


def compare_in_file(
    path: Path,
    instance: dg.DagsterInstance,
    *,
    name: str | None = None,
    standard: bool = False,
    limit_seconds: float | None = None,
    partition_key: str | None = None,
) -> ReleaseOptions:
    """Run the comparison of a release in YAML, store it with its assets, and count it.

    ``name`` selects the release if the file has several. Relative paths in the file start at the working directory.
    With ``standard``, the standard candidates are compared, regardless of the file.
    """
    arguments = _arguments(path, name)
    if any(isinstance(source, UpstreamAsset) for source in _sources(arguments)):
        raise InvalidSettingError(
            f"The table of {arguments['name']!r} is an asset of a Dagster project, which this command does not load. "
            f"Materialize {arguments['name']}/{OPTIONS} in that project. Nothing was compared."
        )
    if (arguments["partitions_def"] is None) != (partition_key is None):
        has = "no partitions" if partition_key is not None else "partitions: name one with --partition"
        raise InvalidSettingError(f"The release {arguments['name']!r} has {has}. Nothing was compared.")
    options = arguments["options"] or OptionsSettings()
    if standard:
        options = replace(options, candidates="standard")
    if limit_seconds is not None:
        options = replace(options, limit_seconds=limit_seconds)
    definitions = build_release_definitions(**arguments | {"options": options})
    key = dg.AssetKey([arguments["name"], OPTIONS])
    result = dg.materialize(
        [each for each in definitions.assets or () if isinstance(each, dg.AssetsDefinition)],
        selection=dg.AssetSelection.assets(key).upstream(),
        resources=dict(definitions.resources or {}),
        instance=instance,
        partition_key=partition_key,
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "INFO"}}}},
    )
    if not result.success:
        raise dg.Failure(description=_why(result))
    artifact = PrivateParquetIOManager(arguments["private_path"]).load(key, partition_key)
    return ReleaseOptions.from_artifact(artifact)  # type: ignore[arg-type]


def definitions_in_file(path: Path, name: str | None = None) -> dg.Definitions:
    """Return the definitions of a release in YAML; relative paths in the file start at the working directory."""
    return build_release_definitions(**_arguments(path, name))


def _why(result: dg.ExecuteInProcessResult) -> str:
    """Return the messages of the failed steps, which contain no cells."""
    data = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    said = [str(each.user_failure_data.description) for each in data if each.user_failure_data is not None]
    return " ".join(said) or f"The run {result.run_id} failed; see its events."


def _sources(arguments: Mapping[str, Any]) -> list[Any]:
    split = arguments["split"]
    return [arguments["source"], getattr(split, "original", None), getattr(split, "control", None)]


def _arguments(path: Path, name: str | None) -> dict[str, Any]:
    if not path.is_file():
        raise InvalidSettingError(f"There is no file {str(path)!r}. Expected the YAML of a release.")
    releases = {}
    for document in _documents(path):
        if isinstance(document, Mapping) and document.get("type") == TYPE:
            component = _component(path, dict(document.get("attributes") or {}))
            arguments = component.arguments(path.absolute().parent, Path.cwd())
            releases[arguments["name"]] = arguments
    chosen = next(iter(releases)) if name is None and len(releases) == 1 else name
    if chosen not in releases:
        asked = "exactly one release" if name is None else f"a release {name!r}"
        raise InvalidSettingError(
            f"{str(path)!r} does not have {asked} of the type {TYPE}. It has {sorted(releases)}; name one of them with "
            "--name."
        )
    found: dict[str, Any] = releases[chosen]
    return found


def _component(path: Path, attributes: dict[str, Any]) -> PrivacyReleaseComponent:
    problem = ""
    try:
        component: PrivacyReleaseComponent = PrivacyReleaseComponent.resolve_from_dict(attributes)
    except Exception as error:  # noqa: BLE001 - Dagster and pydantic raise several types, with a traceback in the text
        problem = str(error).strip().splitlines()[-1].partition("InvalidSettingError: ")[-1] or str(error)
    else:
        return component
    raise InvalidSettingError(f"{str(path)!r} cannot be loaded: {problem}")


def _documents(path: Path) -> list[Any]:
    problem = ""
    try:
        return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = type(error).__name__
    raise InvalidSettingError(f"{str(path)!r} is not YAML ({problem}). Nothing was compared.")


def in_lines(options: ReleaseOptions) -> list[str]:
    """Write a comparison for a terminal: one line per candidate, by side and worth, and the recommended settings."""
    lines = []
    for side, own in options.table.groupby("side", sort=True):
        recommended = options.recommended.get(str(side))
        lines += [f"\n{side} records", f"  {'candidate':<34}{'worth':>7}  {'people':>7}  admitted"]
        for row in own.sort_values("utility", ascending=False, kind="stable").to_dict("records"):
            worth, people = (
                _number(row[name], shown) for name, shown in (("utility", ".3f"), ("worth_in_people", ",.0f"))
            )
            verdict = "yes" if row["is_proposed"] else "narrowly" if row["is_admitted"] else "no"
            mark = " (recommended)" if row["candidate"] == recommended else ""
            said = f": {row['reason']}" if row["reason"] else ""
            lines.append(f"  {row['candidate']:<34}{worth:>7}  {people:>7}  {verdict}{mark}{said}")
    for side, candidate in options.recommended.items():
        lines += [f"\n# {side}: {candidate}", *options.yaml(candidate).splitlines()]
    if not options.recommended:
        lines.append("\nNo candidate can be proposed.")
    return lines


def _number(value: Any, shown: str) -> str:
    return format(value, shown) if is_number(value) else "-"
