"""Construction of the Dagster definitions of a release from a table, a contract and a policy."""

import functools
import inspect
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

import dagster as dg

from privacy_assets.contract.rule_violations import RULES
from privacy_assets.disclosure.rare_values import RARE_VALUES
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.anonymized_assets import (
    generalized_asset,
    other_release_asset,
    reidentification_assessment_asset,
    semantic_assessment_asset,
    source_semantic_assessment_asset,
    suppressed_asset,
)
from privacy_assets.orchestration.assets import (
    membership_control_asset,
    mpucc_assessment_asset,
    preprocessed_asset,
    source_asset,
    split_assets,
    synthetic_asset,
)
from privacy_assets.orchestration.disclosure_assets import disclosure_assessment_asset
from privacy_assets.orchestration.linkage_assets import linkage_audit_asset
from privacy_assets.orchestration.monitoring import (
    approval_sensor,
    drift_check,
    published_checks,
    refusal_sensor,
    release_schedule,
)
from privacy_assets.orchestration.options_assets import release_options_asset
from privacy_assets.orchestration.private.directories import require_separate
from privacy_assets.orchestration.private.resources import private_resources, release_resources
from privacy_assets.orchestration.private_synthesis_assets import noisy_model_asset
from privacy_assets.orchestration.related_assets import related_assets
from privacy_assets.orchestration.release_steps import limit_checks, release_asset
from privacy_assets.orchestration.settings.asked import Release
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.sources import UpstreamAsset
from privacy_assets.orchestration.settings.spark_source import SparkSource
from privacy_assets.orchestration.utility_assets import utility_assessment_asset
from privacy_assets.release.metrics import (
    ANONYMITY,
    DISCLOSURE,
    MPUCC,
    PRIVACY_BUDGET,
    REIDENTIFICATION,
    SEMANTIC,
    UTILITY,
)
from privacy_assets.release.object_store import ObjectStore
from privacy_assets.release.policy import is_decided_instead
from privacy_assets.release.signing import SigningKey
from privacy_assets.setting_checks import is_in_store, local_path
from privacy_assets.storage.private_directories import require_private_root

logger = logging.getLogger(__name__)
P = ParamSpec("P")
S = TypeVar("S")
R = TypeVar("R")


def _with_fields_of(settings: Callable[P, S]) -> Callable[[Callable[[S], R]], Callable[P, R]]:
    """Let a function of settings take their fields, in its signature and its documentation, too."""

    def decorate(function: Callable[[S], R]) -> Callable[P, R]:
        @functools.wraps(function)
        def decorated(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(settings(*args, **kwargs))

        summary, _, sections = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
        parameters = inspect.cleandoc(settings.__doc__ or "").partition("\n\n")[2]
        decorated.__doc__ = f"{summary}\n\n{parameters}\n\n{sections}"
        decorated.__signature__ = inspect.signature(settings)  # type: ignore[attr-defined]
        return decorated

    return decorate


@_with_fields_of(Release)
def build_release_definitions(asked: Release) -> dg.Definitions:
    """Build the assets, checks, job and resources of one release.

    Returns
    -------
    Definitions
        Merge the definitions of several releases with `dagster.Definitions.merge`.

    Raises
    ------
    InvalidSettingError
        If a setting does not exist or contradicts another.
    """
    # Each directory has one canonical name, so that releases in YAML and in Python share its resource.
    private = str(local_path(asked.private_path, "private_path").absolute())
    objects = ObjectStore.at(asked.release_path, "release_path") if is_in_store(asked.release_path) else None
    here = asked.release_path if objects is None else objects.local_record(Path(private))
    released = str(local_path(here, "release_path").absolute())
    require_separate(Path(private), [Path(released)])
    require_private_root(Path(private))
    _require_key_elsewhere(asked.signing, released)
    release = ReleaseSettings.of(asked)
    if objects is not None and isinstance(release.engine, SparkEngine) and release.engine.writes_releases:
        raise InvalidSettingError(
            "The engine has `writes_releases`, and `release_path` is an object store. Expected a directory that the "
            "executors see under the same absolute path; or leave out `writes_releases`."
        )
    if release.undeclared:
        logger.warning("The release %r will wait: %s.", release.name, release.undeclared)
    for stage, each in release.sources.items():
        if isinstance(each, SparkSource):
            each.require_session(stage, release.engine)
    limits: dict[str, list[dg.AssetChecksDefinition]] = {}
    if release.related is not None:
        assets = related_assets(release)
    else:
        assets = [] if release.source is None else [source_asset(release)]
        assets += [split_assets(release)] if release.is_split else []
    if "synthetic" in release.sides:
        assets += [synthetic_asset(release)] if release.related is None else []
        assets += [] if release.private is None else [noisy_model_asset(release, release.private)]
        if release.generalize_synthetic is not None:
            assets.append(generalized_asset(release, "generalized_synthetic", "synthetic"))
        if release.related is None:
            assets += [preprocessed_asset(release), mpucc_assessment_asset(release)]
        limited = {limit.assessment for limit in release.policy.limits}
        measured = (each for each in (PRIVACY_BUDGET, RARE_VALUES, RULES) if each in limited)
        assessed = [each for each in (MPUCC, DISCLOSURE) if release.assesses(each)]
        assets += [disclosure_assessment_asset(release)] if DISCLOSURE in assessed else []
        limits["synthetic"] = [limit_checks(release, each) for each in (*measured, *assessed)]
        if any(map(is_decided_instead, release.policy.limits_of("synthetic"))):
            limits["synthetic"].append(limit_checks(release, DISCLOSURE, instead=True))
    if "anonymized" in release.sides:
        of_one = release.on_side("anonymized")
        assets += _anonymized_side(of_one)
        assessed = [each for each in (REIDENTIFICATION, SEMANTIC) if of_one.assesses(each)]
        limits["anonymized"] = [limit_checks(of_one, each) for each in (ANONYMITY, *assessed)]
    if release.assesses(UTILITY):
        assets += [utility_assessment_asset(release.on_side(side), side) for side in release.sides]
        for side, own in limits.items():
            own.append(limit_checks(release.on_side(side), UTILITY, side))
    releases = {side: release_asset(release.on_side(side), side, _blocking(limits[side])) for side in release.sides}
    assets += releases.values()
    watch = release.monitoring
    checks = [each for own in limits.values() for each in own]
    checks += [published_checks(release, side) for side in release.sides]
    if watch.drift_limit is not None:
        checks.append(drift_check(release, watch.drift_limit))
    # By key, because users may put the assets into another group.
    job = dg.define_asset_job(f"{release.name}_release", selection=dg.AssetSelection.assets(*assets))
    if release.options is not None:
        assets.append(release_options_asset(release, release.options))
    schedule = release_schedule(release.name, job, watch, release.partitions_def)
    sensors = []
    if watch.on_refusal is not None:
        holding = {side: _blocking([*limits[side], own]) for side, own in releases.items()}
        sensors.append(refusal_sensor(release.name, holding, watch.on_refusal))
    if release.policy.required.approvals:
        sensors.append(approval_sensor(release, private))
    return dg.Definitions(
        assets=assets,
        asset_checks=checks,
        jobs=[job],
        schedules=[schedule] if schedule is not None else [],
        sensors=sensors,
        resources=private_resources(private, _upstream_assets(release), released)
        | release_resources(released, objects),
    )


def _blocking(definitions: Sequence[dg.AssetsDefinition]) -> list[dg.AssetCheckKey]:
    return [spec.key for each in definitions for spec in each.check_specs if spec.blocking]


def _anonymized_side(release: ReleaseSettings) -> list[dg.AssetsDefinition]:
    assets = [generalized_asset(release, "anonymized", release.source_of_anonymized)]
    if release.anonymized_stage == "suppressed":
        assets.append(suppressed_asset(release))
    if release.assesses(REIDENTIFICATION):
        others = release.reidentification_settings.other_releases
        assets += [other_release_asset(release, other) for other in others if other.release is None]
        assets += [] if release.membership_control is None else [membership_control_asset(release)]
        assets.append(reidentification_assessment_asset(release))
    if release.assesses(SEMANTIC):
        assets.append(semantic_assessment_asset(release))
        if release.semantic_risk_settings.of_source:
            assets.append(source_semantic_assessment_asset(release))
    if release.linkage_audit is not None:
        assets.append(linkage_audit_asset(release, release.linkage_audit))
    return assets


def _upstream_assets(release: ReleaseSettings) -> list[UpstreamAsset]:
    others = (other.table for other in release.reidentification_settings.other_releases)
    sources = [*release.sources.values(), *others]
    return [source for source in sources if isinstance(source, UpstreamAsset)]


def _require_key_elsewhere(signing: SigningKey | None, release_path: str) -> None:
    """Refuse a private key in the directory of releases."""
    if signing is None or signing.path is None:
        return
    key, released = Path(signing.path), Path(release_path)
    if released in key.parents or released.resolve() in key.resolve().parents:
        raise InvalidSettingError(
            f"The signing key {str(key)!r} is in the directory of releases, {release_path!r}, which others may read. "
            "Move the key to a separate directory; if anybody may have read it, make a new one."
        )
