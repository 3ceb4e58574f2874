"""The gate's checks for existing assets: they assess the table each time it is materialized.

A check blocks downstream assets in the same run. It releases nothing and does not block later runs; use
`build_release_definitions` for that.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import dagster as dg
import pandas as pd

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.columns.safe_names import type_name
from privacy_assets.columns.spelling import keys_of_rows
from privacy_assets.contract.contract import TableContract, resolve_contract
from privacy_assets.contract.rule_violations import RULES
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.rare_values import RARE_VALUES
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.orchestration.private.guard import guarded
from privacy_assets.orchestration.private.resources import partition_input_managers, private_resources
from privacy_assets.orchestration.settings.asked import DEFAULT_PRIVATE_PATH
from privacy_assets.orchestration.settings.sources import UpstreamAsset
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings
from privacy_assets.orchestration.shown.metadata import verdict_result
from privacy_assets.orchestration.stages import limit_checks_of
from privacy_assets.pipeline.measure import admit_people, evidence_of, rare_values_of, rule_violations_of
from privacy_assets.release.evidence import Evidence
from privacy_assets.release.gate import Verdict, limit_verdict, settings_verdict
from privacy_assets.release.metrics import ANONYMITY, DISCLOSURE, MPUCC, figures_of, measured_in
from privacy_assets.release.policy import Limit, Policy, follows_from_class_size, resolve_policy
from privacy_assets.setting_checks import local_path
from privacy_assets.utility.foreign import why_foreign

ON_RECORDS = (MPUCC, RARE_VALUES, RULES, DISCLOSURE)
"""Assessments of synthetic records that need nothing but tables."""
SETTINGS_CHECK = f"{MPUCC}_settings_meet_the_policy"
IDENTIFIERS_CHECK = "no_direct_identifier_is_left"


def build_privacy_risk_checks(
    *,
    assets: UpstreamAsset | Sequence[UpstreamAsset],
    policy: Policy | str,
    contract: TableContract | str | Mapping[str, Any],
    original: UpstreamAsset | None = None,
    control: UpstreamAsset | None = None,
    assessment: AssessmentSettings | None = None,
    disclosure: DisclosureSettings | None = None,
    private_path: str = DEFAULT_PRIVATE_PATH,
) -> dg.Definitions:
    """Build blocking checks that apply a policy to existing assets.

    Parameters
    ----------
    assets : UpstreamAsset or sequence of UpstreamAsset
        Tables to check. With `original` they are synthetic and need the columns that the contract releases. Without it
        they are anonymized: columns that are neither sensitive nor other in the contract, and unknown columns, count as
        known to an attacker. The person column, if the table has it and it is not a direct identifier, is used to count
        people. A table that still has a direct identifier is refused.
    policy : Policy or str
        Limits on synthetic or on anonymized records, or the name of a use case. A required signature is ignored,
        because nothing is released here.
    contract : TableContract, str or mapping
        Types and roles of the columns; a contract, the Python path of one, or its mapping.
    original, control : UpstreamAsset, optional
        Records that the synthesizer has seen, and records that it has not seen; limits on leakage need the latter.
    assessment : AssessmentSettings, optional
        Parameters of the mpUCC search; by default as the policy requires.
    disclosure : DisclosureSettings, optional
        Parameters of the disclosure test, which is done if the policy limits one of its figures.
    private_path : str
        Directory for tracebacks and printed output.

    Returns
    -------
    Definitions
        Merge them with the definitions of the assets (`dagster.Definitions.merge`).

    Raises
    ------
    InvalidSettingError
        If no limit of the policy applies, a limit needs an asset that is not given, or an asset is not an
        `UpstreamAsset`.
    """
    checked = [assets] if isinstance(assets, UpstreamAsset) else list(assets)
    _require_assets(checked, original, control)
    held_to = resolve_policy(policy)
    keeps = resolve_contract(contract)
    keeps.require_unit()
    held_to = held_to if original is None else held_to.with_rules(has_rules=bool(keeps.rules))
    limits = _limits(held_to, original, control)
    settings = assessment or AssessmentSettings.required_by(held_to, keeps)
    settings.check(len(keeps.released_columns))
    if original is not None:
        settings.require_accepted_by(held_to, len(keeps.released_columns))

    def decide(table: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> list[Verdict]:
        table = table if original else _named_by_contract(keeps, table)
        evidence = (
            _evidence_of_synthetic(keeps, held_to, settings, disclosure or DisclosureSettings(), table, others)
            if original
            else _evidence_of_records(keeps, table)
        )
        decided = [limit_verdict(limit, evidence) for limit in limits]
        more = settings_verdict(MPUCC, held_to, evidence) if original else _identifiers_verdict(keeps, table)
        return [*decided, more]

    others = {name: asset for name, asset in (("original", original), ("control", control)) if asset is not None}
    # The same resources as a release in the project, with an absolute path: merged definitions must agree on them.
    private = str(local_path(private_path, "private_path").absolute())
    return dg.Definitions(
        asset_checks=[_checks(asset, limits, others, decide) for asset in checked],
        resources=private_resources(private, ()) | partition_input_managers(private, [*checked, *others.values()]),
    )


def _require_assets(checked: Sequence[object], original: object, control: object) -> None:
    if not checked:
        raise InvalidSettingError("`assets` is empty. Expected at least one UpstreamAsset(...).")
    others = [each for each in (original, control) if each is not None]
    wrong = sorted({type(each).__name__ for each in (*checked, *others) if not isinstance(each, UpstreamAsset)})
    if wrong:
        raise InvalidSettingError(
            f"The assets to check and compare are given as {wrong}; expected UpstreamAsset, such as "
            "assets=UpstreamAsset('marts/patients', io_manager_key='warehouse')."
        )


def _limits(policy: Policy, original: UpstreamAsset | None, control: UpstreamAsset | None) -> list[Limit]:
    side = "synthetic" if original is not None else "anonymized"
    if original is not None:
        limits = [limit for limit in policy.limits_of(side) if limit.assessment in ON_RECORDS]
        if control is None and any(limit.needs_control and limit.blocks for limit in limits):
            raise InvalidSettingError(
                "The policy limits leakage, which is measured against records that the synthesizer has not seen. Give "
                "them as control=UpstreamAsset(...), or remove the limits on leakage."
            )
    else:
        limits = [limit for limit in policy.limits_of(side) if limit.metric in measured_in(ANONYMITY)]
    blocking = [limit for limit in policy.limits if limit.is_on(side) and limit.blocks]
    lacking = [limit for limit in blocking if limit not in limits and not follows_from_class_size(limit, limits)]
    # All presets have this limit, and a table alone does not have the people of its rows.
    dropped = [limit.metric for limit in lacking if limit.metric != "share_certain_by_rows"]
    if dropped and any(limit.blocks for limit in limits):
        raise InvalidSettingError(
            f"The policy limits {dropped}, which cannot be measured on a table alone. Release the table with "
            "build_release_definitions, or remove these limits."
        )
    if not any(limit.blocks for limit in limits):
        raise InvalidSettingError(
            f"The policy has no limit of severity 'error' that can be checked on a table of {side} records alone. Add "
            f"one, for example on {'privacy_risk_score' if original is not None else 'smallest_class'!r}."
        )
    return limits


def _checks(asset: UpstreamAsset, limits: Sequence[Limit], others: Mapping[str, UpstreamAsset], decide: Any) -> Any:
    deps = [each.asset_key for each in others.values()]
    specs = limit_checks_of(limits, asset.asset_key, deps)
    name, description = (
        (SETTINGS_CHECK, "The assessment was made with settings that the policy accepts.")
        if others
        else (IDENTIFIERS_CHECK, "The table has no direct identifier of the contract.")
    )
    specs.append(
        dg.AssetCheckSpec(name, asset=asset.asset_key, additional_deps=deps, blocking=True, description=description)
    )
    inputs = {"table": asset, **others}

    @dg.multi_asset_check(
        name=_op_name(asset.asset_key),
        specs=specs,
        ins={
            name: dg.AssetIn(key=each.asset_key, input_manager_key=each.partition_input_manager_key)
            for name, each in inputs.items()
        },
        required_resource_keys={"private_tables"},
    )
    @guarded
    def privacy_risk_checks(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202, ARG001
        table = inputs.pop("table")
        for name, each in {"table": table, **inputs}.items():
            if not isinstance(each, pd.DataFrame):
                raise InvalidTableError(f"The {name} is a {type_name(each)}; expected a pandas DataFrame.")
        for verdict in decide(table, inputs):
            yield verdict_result(asset.asset_key, verdict)

    return privacy_risk_checks


def _op_name(key: dg.AssetKey) -> str:
    """Return a step name for the key, unique for every key."""
    written = "__".join(key.path)
    plain = re.sub(r"[^A-Za-z0-9_]", "_", written)
    if plain != written:
        plain += "_" + hashlib.sha256(key.to_string().encode()).hexdigest()[:8]
    return f"{plain}__privacy_risk"


def _evidence_of_synthetic(
    contract: TableContract,
    policy: Policy,
    settings: AssessmentSettings,
    disclosure: DisclosureSettings,
    synthetic: pd.DataFrame,
    others: Mapping[str, pd.DataFrame],
) -> Evidence:
    original, control = admit_people(contract, others["original"], others.get("control"))
    admitted = contract.admit_synthetic(synthetic)
    whose: dict[str, Any] = {"person": contract.person, "invented": contract.invented}
    people = [original] if control is None else [original, control]
    rare = rare_values_of(policy, contract, admitted, people, **whose)
    broken = rule_violations_of(policy, contract, admitted, people)
    original, admitted = contract.as_compared(original), contract.as_compared(admitted)
    # People who are in both tables spoil the comparison, so it is made only if it counts.
    if control is not None:
        is_compared = any(limit.needs_control for limit in policy.limits)
        control = contract.as_compared(control) if is_compared else None
    found = assess_mpuccs(original, admitted, control, **asdict(settings), **whose, parts=contract.parts)
    found = replace(found, settings=found.settings | {"foreign": why_foreign(original, admitted, control, **whose)})
    counted = {RARE_VALUES: rare, RULES: broken}
    results: dict[str, Any] = {MPUCC: found} | {name: each for name, each in counted.items() if each is not None}
    # A warning limit has no value without a control.
    if control is not None and any(limit.assessment == DISCLOSURE for limit in policy.limits):
        results[DISCLOSURE] = assess_disclosure(original, admitted, control, **asdict(disclosure), **whose)
    return evidence_of(policy, contract, "synthetic", "synthetic", results)


def _named_by_contract(contract: TableContract, table: pd.DataFrame) -> pd.DataFrame:
    """Name columns unknown to the contract by their position, because names in a file without a header are values."""
    names = [
        name if isinstance(name, str) and name in contract.roles else f"column at position {place}"
        for place, name in enumerate(table.columns)
    ]
    return table.set_axis(names, axis=1)


def _identifiers_verdict(contract: TableContract, table: pd.DataFrame) -> Verdict:
    left = [name for name in contract.columns_with_role("direct_identifier") if name in table.columns]
    reason = (
        f"the table still has the columns {left}, which are direct identifiers in the contract"
        if left
        else "the table has no direct identifier of the contract"
    )
    advice = "Remove the column from the shared table." if left else ""
    return Verdict(IDENTIFIERS_CHECK, not left, "error", reason, advice)


def _evidence_of_records(contract: TableContract, table: pd.DataFrame) -> Evidence:
    roles = {str(name): contract.roles.get(str(name)) for name in table.columns}
    persons = contract.person_columns
    is_counted = bool(persons) and all(roles.get(name) in ("sensitive", "other") for name in persons)
    subject = contract.person if is_counted else None
    if is_counted and len(persons) > 1:
        table = table.assign(**{str(subject): pd.factorize(keys_of_rows(table[list(persons)]))[0]})
    known = [name for name, role in roles.items() if role not in ("sensitive", "other")]
    sensitive = [name for name, role in roles.items() if role == "sensitive" and not (is_counted and name in persons)]
    if not known:
        raise InvalidTableError(
            f"An attacker knows none of the {len(roles)} columns of the table: all of them are sensitive or other in "
            "the contract, so there are no classes to measure. Expected a quasi-identifier, or a column that is not "
            "in the contract."
        )
    report = verify_anonymity(table, known, sensitive, subject=subject)
    # An attacker who knows the person column knows the person, however many rows they have.
    header = report.to_header() | ({"k_people": 1} if persons and set(persons) <= {*known} else {})
    figures = figures_of(ANONYMITY, {ANONYMITY: header})
    return Evidence("anonymized", "anonymized", tuple(table.columns), {}, {}, measured={ANONYMITY: figures})
