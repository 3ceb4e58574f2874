"""Construction of the Dagster definitions of a release from a table, a contract and a policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from privacy_assets.contract.contract import TableContract, resolve_contract
from privacy_assets.disclosure.rare_values import RARE_VALUES
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.anonymized_assets import (
    anonymized_asset,
    generalized_synthetic_asset,
    other_release_asset,
    reidentification_assessment_asset,
    semantic_assessment_asset,
    source_semantic_assessment_asset,
    suppressed_asset,
)
from privacy_assets.orchestration.assets import (
    mpucc_assessment_asset,
    preprocessed_asset,
    source_asset,
    split_assets,
    synthetic_asset,
)
from privacy_assets.orchestration.disclosure_assets import disclosure_assessment_asset
from privacy_assets.orchestration.linkage_assets import linkage_audit_asset
from privacy_assets.orchestration.monitoring import drift_check, refusal_sensor, release_schedule
from privacy_assets.orchestration.options_assets import release_options_asset
from privacy_assets.orchestration.private.directories import require_separate
from privacy_assets.orchestration.private.resources import (
    DEFAULT_PRIVATE_PATH,
    DEFAULT_RELEASE_PATH,
    private_resources,
    release_resources,
)
from privacy_assets.orchestration.private_synthesis_assets import noisy_model_asset
from privacy_assets.orchestration.release_steps import limit_checks, release_asset
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings, ReidentificationSettings
from privacy_assets.orchestration.settings.engine import read_engine
from privacy_assets.orchestration.settings.linkage import LinkageAuditSettings
from privacy_assets.orchestration.settings.monitoring import NO_MONITORING, MonitoringSettings
from privacy_assets.orchestration.settings.options import OptionsSettings
from privacy_assets.orchestration.settings.privacy_budget import PrivacyBudget
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.orchestration.settings.sources import TableSource, UpstreamAsset
from privacy_assets.orchestration.settings.spark_source import SparkSource
from privacy_assets.orchestration.settings.synthetic import (
    AssessmentSettings,
    ExternalSynthetic,
    GivenSplit,
    Split,
    Synthesis,
)
from privacy_assets.orchestration.settings.utility import ReportSettings, UtilitySettings
from privacy_assets.orchestration.utility_assets import utility_assessment_asset
from privacy_assets.release.files import require_formats, require_rows_per_part
from privacy_assets.release.metrics import (
    ANONYMITY,
    DISCLOSURE,
    MPUCC,
    PRIVACY_BUDGET,
    REIDENTIFICATION,
    SEMANTIC,
    UTILITY,
)
from privacy_assets.release.policy import Policy, resolve_policy
from privacy_assets.release.report_front import require_declaration
from privacy_assets.release.signing import SigningKey
from privacy_assets.setting_checks import local_path
from privacy_assets.storage.parquet_parts import ROWS_PER_PART
from privacy_assets.storage.private_directories import require_private_root


def build_release_definitions(
    name: str,
    *,
    contract: TableContract | str | Mapping[str, Any],
    policy: Policy | str,
    source: TableSource | None = None,
    split: Split | GivenSplit | None = None,
    synthetic: Synthesis | ExternalSynthetic | None = None,
    generalize_synthetic: AnonymizationSettings | None = None,
    assessment: AssessmentSettings | None = None,
    anonymized: AnonymizationSettings | None = None,
    reidentification: ReidentificationSettings | None = None,
    semantic_risk: SemanticRiskSettings | None = None,
    linkage_audit: LinkageAuditSettings | None = None,
    utility: UtilitySettings | None = None,
    disclosure: DisclosureSettings | None = None,
    options: OptionsSettings | None = None,
    formats: Sequence[str] = ("parquet",),
    rows_per_part: int = ROWS_PER_PART,
    monitoring: MonitoringSettings | None = None,
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    owners: Sequence[str] = (),
    waivers: str | Path | None = None,
    signing: SigningKey | None = None,
    privacy_budget: PrivacyBudget | None = None,
    declaration: Mapping[str, str] | None = None,
    engine: LocalEngine | SparkEngine | Any = None,
    report: ReportSettings | None = None,
    private_path: str = DEFAULT_PRIVATE_PATH,
    release_path: str = DEFAULT_RELEASE_PATH,
) -> dg.Definitions:
    """Build the assets, checks, job and resources of one release.

    Parameters
    ----------
    name : str
        Prefix of the asset keys and name of the group: letters, digits and underscores.
    contract : TableContract, str or mapping
        The table's contract, the Python path of a pandera schema (``"package.module:schema"``), or its mapping.
    policy : Policy or str
        Policy that a table must meet to be released, or the name of a use case.
    source : TableFile, SqlQuery, SparkSource, UpstreamAsset or callable, optional
        Where the table comes from. Omit it if `split` gives original and control.
    split : Split or GivenSplit, optional
        How to divide people into originals and control; by default the synthesizer sees 80 % of the people.
    synthetic : Synthesis or ExternalSynthetic, optional
        How to make synthetic records; by default with the Gaussian copula and seed 0. If only `anonymized` is given,
        the release has no synthetic side.
    generalize_synthetic : AnonymizationSettings, optional
        Generalize the synthetic records before they are assessed and released, counting each as a person. Use it if
        they are refused because they single people out. Originals and control are assessed with the same labels.
    assessment : AssessmentSettings, optional
        Parameters of the mpUCC search; by default as the policy requires.
    anonymized : AnonymizationSettings, optional
        Release the anonymized records of the source, alone or in addition to the synthetic records.
    reidentification : ReidentificationSettings, optional
        How to assess the re-identification of anonymized records; by default done if the policy limits it.
    semantic_risk : SemanticRiskSettings, optional
        How to assess their semantic risk, and whether to withhold records; by default done if the policy limits it.
    linkage_audit : LinkageAuditSettings, optional
        Link the anonymized records to the source, and show what the linkage method finds and can know. The audit only
        informs: no policy limits it, and the release does not depend on it. By default there is no audit.
    utility : UtilitySettings, optional
        How to assess the worth of the records of each side; by default done if the policy limits it. If it is given,
        the policy of a use case warns if records are worth little (`Policy.with_worth_warnings`).
    disclosure : DisclosureSettings, optional
        How to test whether the synthetic records reveal originals more than people of the control; by default done if
        the policy limits leakage_detected, as every use case does, or the excess of a criterion.
    options : OptionsSettings, optional
        Compare candidate releases, on demand: the asset ``release_options``, on which no stage depends. By default
        there is no such asset.
    formats : sequence of {"parquet", "csv"}
        File formats of a release in addition to Parquet, which is always written.
    rows_per_part : int
        A release with more records is a directory of Parquet files of this many records each, at least 1,000.
    monitoring : MonitoringSettings, optional
        Schedule, freshness, drift of the source, automation and alerts on refusals; by default none of these.
    partitions_def : PartitionsDefinition, optional
        Partitions of every asset; each partition has its own evidence and its own releases.
    owners : sequence of str
        Owners of the assets, as Dagster writes them (``"team:privacy"`` or an email address).
    waivers : str or Path, optional
        A YAML file, or a directory of such files, with approved exceptions from limits (``docs/waivers.md``). They
        are read at every decision of the gate. By default there are no waivers.
    signing : SigningKey, optional
        Location of the key that signs releases (``docs/signing.md``; extra ``signing``). It is read when a release is
        made; an unusable key refuses the release. By default releases are not signed.
    privacy_budget : PrivacyBudget, optional
        The budget that differentially private records (``Synthesis("mst")``) are charged to. By default that of the
        release. If the policy does not limit ``total_epsilon``, at most 3 is spent.
    declaration : mapping of str to str, optional
        What the first page of the report declares: ``purpose``, ``recipient``, ``legal_basis``, ``retention`` and
        ``roles_decided_by``, each a sentence. The gate ignores it.
    engine : LocalEngine, SparkEngine, SparkSession or object with ``spark_session``, optional
        Where mpUCCs are searched, also against the control, records cut, and candidates counted; the engine does not
        change the release. All other stages run in this process, which is also the default.
    report : ReportSettings, optional
        How many changes of columns are measured for the report; by default 20.
    private_path, release_path : str
        Local directories of the private tables and of the releases. Definitions that are merged must agree on them. The
        private directory is closed to other users, so it must be for private tables only: new, empty, or already a
        private directory of this package.

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
    paths = {"private_path": private_path, "release_path": release_path}
    private, released = (str(local_path(path, name).absolute()) for name, path in paths.items())
    require_separate(Path(private), [Path(released)])
    require_private_root(Path(private))
    _require_key_elsewhere(signing, released)
    admitted_by = resolve_policy(policy)
    if utility is not None:
        admitted_by = admitted_by.with_worth_warnings()
    held_to = resolve_contract(contract)
    if synthetic is None and anonymized is None:
        synthetic = Synthesis()
    private_settings = synthetic.private if isinstance(synthetic, Synthesis) else None
    if private_settings is not None:
        admitted_by = admitted_by.with_total_epsilon()
    labels = () if generalize_synthetic is None else held_to.columns_with_role("quasi_identifier")
    asked = assessment or AssessmentSettings.required_by(admitted_by, held_to)
    release = ReleaseSettings(
        name=name,
        contract=held_to,
        policy=admitted_by,
        source=source,
        split=split or Split(),
        synthetic=synthetic.resolve(admitted_by) if isinstance(synthetic, Synthesis) else synthetic,
        assessment=asked.resolve(held_to, labels),
        formats=require_formats(formats),
        rows_per_part=require_rows_per_part(rows_per_part),
        anonymized=anonymized,
        generalize_synthetic=generalize_synthetic,
        reidentification=reidentification,
        semantic_risk=semantic_risk,
        linkage_audit=linkage_audit,
        utility=utility,
        disclosure=disclosure,
        options=options,
        asked_assessment=asked,
        monitoring=monitoring or NO_MONITORING,
        partitions_def=partitions_def,
        owners=tuple(owners),
        waivers=None if waivers is None else local_path(waivers, "waivers").absolute(),
        signing=signing,
        budget=privacy_budget,
        declaration=require_declaration(declaration or {}),
        engine=read_engine(engine),
        report=report or ReportSettings(),
    )
    for stage, each in release.sources.items():
        if isinstance(each, SparkSource):
            each.require_session(stage, release.engine)
    assets = [] if source is None else [source_asset(release)]
    limits: dict[str, list[dg.AssetChecksDefinition]] = {}
    if "synthetic" in release.sides:
        assets += [split_assets(release), synthetic_asset(release)]
        assets += [] if private_settings is None else [noisy_model_asset(release, private_settings)]
        assets += [] if generalize_synthetic is None else [generalized_synthetic_asset(release)]
        assets += [preprocessed_asset(release), mpucc_assessment_asset(release)]
        limited = {limit.assessment for limit in admitted_by.limits}
        measured = (each for each in (PRIVACY_BUDGET, RARE_VALUES) if each in limited)
        assessed = [each for each in (MPUCC, DISCLOSURE) if release.assesses(each)]
        assets += [disclosure_assessment_asset(release)] if DISCLOSURE in assessed else []
        limits["synthetic"] = [limit_checks(release, each) for each in (*measured, *assessed)]
    if "anonymized" in release.sides:
        assets += _anonymized_side(release)
        assessed = [each for each in (REIDENTIFICATION, SEMANTIC) if release.assesses(each)]
        limits["anonymized"] = [limit_checks(release, each) for each in (ANONYMITY, *assessed)]
    if release.assesses(UTILITY):
        assets += [utility_assessment_asset(release, side) for side in release.sides]
        for side, own in limits.items():
            own.append(limit_checks(release, UTILITY, side))
    releases = {side: release_asset(release, side, _blocking(limits[side])) for side in release.sides}
    assets += releases.values()
    watch = release.monitoring
    checks = [each for own in limits.values() for each in own]
    if watch.drift_limit is not None:
        checks.append(drift_check(release, watch.drift_limit))
    # By key, because users may put the assets into another group.
    job = dg.define_asset_job(f"{name}_release", selection=dg.AssetSelection.assets(*assets))
    if options is not None:
        assets.append(release_options_asset(release, options))
    schedule = release_schedule(name, job, watch, partitions_def)
    sensors = []
    if watch.on_refusal is not None:
        holding = {side: _blocking([*limits[side], own]) for side, own in releases.items()}
        sensors.append(refusal_sensor(name, holding, watch.on_refusal))
    return dg.Definitions(
        assets=assets,
        asset_checks=checks,
        jobs=[job],
        schedules=[schedule] if schedule is not None else [],
        sensors=sensors,
        resources=private_resources(private, _upstream_assets(release), released) | release_resources(released),
    )


def _blocking(definitions: Sequence[dg.AssetsDefinition]) -> list[dg.AssetCheckKey]:
    return [spec.key for each in definitions for spec in each.check_specs if spec.blocking]


def _anonymized_side(release: ReleaseSettings) -> list[dg.AssetsDefinition]:
    assets = [anonymized_asset(release)]
    if release.anonymized_stage == "suppressed":
        assets.append(suppressed_asset(release))
    if release.assesses(REIDENTIFICATION):
        others = release.reidentification_settings.other_releases
        assets += [other_release_asset(release, other) for other in others if other.release is None]
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
