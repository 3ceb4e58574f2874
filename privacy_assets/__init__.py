"""Dagster assets that synthesize and assess a table about people, and a gate that enforces a release policy.

Public names are resolved when they are first used, so that importing the package stays light.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PUBLIC_NAMES = {
    "AnonymityReport": "anonymity.report",
    "Anonymization": "anonymization.result",
    "AnonymizationSettings": "orchestration.settings.anonymized",
    "AssessmentSettings": "orchestration.settings.synthetic",
    "BeliefFunction": "reidentification.belief",
    "BoundedNoise": "columns.masks",
    "CandidateIndex": "reidentification.candidate_index",
    "Cart": "synthesis.cart",
    "ConceptLattice": "semantic_risk.concept_lattice",
    "ConflictError": "errors",
    "ContractError": "errors",
    "ControlComparison": "mpucc.control",
    "ControlPlan": "mpucc.control_size",
    "ControlSize": "mpucc.control_size",
    "CutTree": "anonymization.cut_tree",
    "DisclosureAssessment": "disclosure.result",
    "Exact": "columns.masks",
    "ExternalSynthetic": "orchestration.settings.synthetic",
    "FormalContext": "semantic_risk.formal_context",
    "GaussianCopula": "synthesis.gaussian_copula",
    "GaussianNoise": "columns.masks",
    "GivenSplit": "orchestration.settings.synthetic",
    "Hierarchy": "columns.hierarchy",
    "HierarchyMapping": "columns.masks",
    "Interval": "columns.masks",
    "InvalidSettingError": "errors",
    "InvalidTableError": "errors",
    "LDiversity": "anonymization.settings",
    "Label": "columns.masks",
    "Limit": "release.policy",
    "LinkageAudit": "linkage.audit",
    "LinkageAuditSettings": "orchestration.settings.linkage",
    "LinkerEvaluation": "linkage.evaluation",
    "MaskError": "errors",
    "MatchedCandidates": "linkage.matching",
    "Microaggregated": "columns.masks",
    "MonitoringSettings": "orchestration.settings.monitoring",
    "MpuccAssessment": "mpucc.assess",
    "OtherRelease": "reidentification.other_releases",
    "OtherReleaseSettings": "orchestration.settings.anonymized",
    "Policy": "release.policy",
    "Pram": "columns.masks",
    "PrivacyAssetsError": "errors",
    "PrivacyReleaseComponent": "orchestration.component.component",
    "PrivateParquetIOManager": "orchestration.private.resources",
    "RankWindow": "columns.masks",
    "Refusal": "orchestration.settings.monitoring",
    "ReidentificationAssessment": "reidentification.assess",
    "ReidentificationSettings": "orchestration.settings.anonymized",
    "ReleaseModel": "columns.masks",
    "ReleaseStore": "orchestration.private.resources",
    "ReleaseVerification": "release.verification",
    "RequiredSettings": "release.policy",
    "RiskChains": "semantic_risk.risk_chains",
    "SemanticAssessment": "semantic_risk.result",
    "SemanticRiskSettings": "orchestration.settings.semantic_risk",
    "SharedRecords": "mpucc.control_size",
    "SigningKey": "release.signing",
    "SimilarText": "columns.masks",
    "Split": "orchestration.settings.synthetic",
    "SqlQuery": "orchestration.settings.sources",
    "Suppressed": "columns.masks",
    "Synthesis": "orchestration.settings.synthetic",
    "Synthesizer": "synthesis.synthesize",
    "TableContract": "contract.contract",
    "TableFile": "orchestration.settings.sources",
    "UpstreamAsset": "orchestration.settings.sources",
    "UtilityAssessment": "utility.result",
    "UtilitySettings": "orchestration.settings.utility",
    "ValueSet": "columns.masks",
    "WeightedAssessment": "reidentification.weighted_candidates",
    "WeightedCandidates": "reidentification.weighted_candidates",
    "anonymize": "anonymization.anonymize",
    "apply_cuts": "anonymization.cut_tree",
    "assess_disclosure": "disclosure.assess",
    "assess_mpuccs": "mpucc.assess",
    "assess_reidentification": "reidentification.assess",
    "assess_semantic_risk": "semantic_risk.assess",
    "assess_utility": "utility.assess",
    "audit_linkage": "linkage.audit",
    "build_privacy_risk_checks": "orchestration.risk_checks",
    "build_release_definitions": "orchestration.factory",
    "combine": "reidentification.candidate_index",
    "count_shared_records": "mpucc.control_size",
    "draw_records": "utility.drawing",
    "evaluate_linker": "linkage.evaluation",
    "explain_record": "semantic_risk.explanation",
    "RecordRisk": "semantic_risk.explanation",
    "find_risk_chains": "semantic_risk.risk_chains",
    "fingerprint": "storage.fingerprint",
    "forget_attributes": "semantic_risk.forgetting",
    "forget_in_basis": "semantic_risk.forgetting",
    "judge_control": "mpucc.control_size",
    "link_by_distance": "linkage.distance",
    "link_by_fellegi_sunter": "linkage.fellegi_sunter",
    "luxenburger_basis": "semantic_risk.implications",
    "match_candidates": "linkage.matching",
    "measure_column_changes": "mpucc.column_changes",
    "plan_control": "mpucc.control_size",
    "read_concepts": "semantic_risk.concept_lattice",
    "read_formal_context": "semantic_risk.formal_context",
    "read_released_csv": "release.released_csv",
    "released_scales": "semantic_risk.formal_context",
    "split_records": "synthesis.split",
    "stem_basis": "semantic_risk.implications",
    "synthesize": "synthesis.synthesize",
    "verify_anonymity": "anonymity.verify",
    "verify_release": "release.verification",
}

__all__ = sorted(_PUBLIC_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PUBLIC_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
