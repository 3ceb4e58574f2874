"""Dagster assets that synthesize and assess a table about people, and a gate that holds a release policy over it.

Public names are resolved when they are first used, so that importing the package stays light.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC_NAMES = {
    "AnonymityReport": "tables.anonymity_report",
    "Anonymization": "tables.anonymization",
    "AnonymizationSettings": "orchestration.anonymized_settings",
    "AssessmentSettings": "orchestration.settings",
    "BeliefFunction": "tables.belief",
    "BoundedNoise": "tables.release_model",
    "CandidateIndex": "tables.candidate_index",
    "Cart": "tables.cart",
    "ConflictError": "tables.errors",
    "ContractError": "tables.errors",
    "ControlComparison": "tables.control",
    "Exact": "tables.release_model",
    "ExternalSynthetic": "orchestration.settings",
    "GaussianCopula": "tables.gaussian_copula",
    "GivenSplit": "orchestration.settings",
    "Hierarchy": "tables.hierarchy",
    "HierarchyMapping": "tables.release_model",
    "Interval": "tables.release_model",
    "InvalidSettingError": "tables.errors",
    "InvalidTableError": "tables.errors",
    "LDiversity": "tables.anonymize_settings",
    "Label": "tables.release_model",
    "Limit": "tables.policy",
    "LinkerEvaluation": "tables.linker_evaluation",
    "MaskError": "tables.errors",
    "MonitoringSettings": "orchestration.monitoring_settings",
    "MpuccAssessment": "tables.mpucc",
    "OtherRelease": "tables.other_releases",
    "OtherReleaseSettings": "orchestration.anonymized_settings",
    "Policy": "tables.policy",
    "PrivacyAssetsError": "tables.errors",
    "PrivacyReleaseComponent": "orchestration.component",
    "PrivateParquetIOManager": "orchestration.resources",
    "RankWindow": "tables.release_model",
    "Refusal": "orchestration.monitoring_settings",
    "ReidentificationAssessment": "tables.reidentification",
    "ReidentificationSettings": "orchestration.anonymized_settings",
    "ReleaseModel": "tables.release_model",
    "ReleaseStore": "orchestration.resources",
    "RequiredSettings": "tables.policy",
    "SemanticAssessment": "tables.semantic_assessment",
    "SemanticRiskSettings": "orchestration.anonymized_settings",
    "SigningKey": "tables.signing",
    "Split": "orchestration.settings",
    "SqlQuery": "orchestration.sources",
    "Suppressed": "tables.release_model",
    "Synthesis": "orchestration.settings",
    "Synthesizer": "tables.synthesize",
    "TableContract": "tables.contract",
    "TableFile": "orchestration.sources",
    "UpstreamAsset": "orchestration.sources",
    "ValueSet": "tables.release_model",
    "anonymize": "tables.anonymize",
    "apply_cuts": "tables.cut_tree",
    "assess_mpuccs": "tables.mpucc",
    "assess_reidentification": "tables.reidentification",
    "assess_semantic_risk": "tables.semantic_risk",
    "build_privacy_risk_checks": "orchestration.risk_checks",
    "build_release_definitions": "orchestration.factory",
    "combine": "tables.candidate_index",
    "evaluate_linker": "tables.linker_evaluation",
    "fingerprint": "tables.fingerprint",
    "link_by_distance": "tables.distance_linkage",
    "link_by_fellegi_sunter": "tables.fellegi_sunter",
    "match_candidates": "tables.matching",
    "measure_column_changes": "tables.column_changes",
    "read_formal_context": "tables.formal_context",
    "read_released_csv": "tables.released_csv",
    "released_scales": "tables.formal_context",
    "split_records": "tables.split",
    "synthesize": "tables.synthesize",
    "verify_anonymity": "tables.verify_anonymity",
    "verify_release": "tables.release_verification",
}

__all__ = sorted(_PUBLIC_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PUBLIC_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC_NAMES])
