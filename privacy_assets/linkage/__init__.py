"""Audits of linkage methods: their claims, compared with the information in a release."""

from privacy_assets.public_names import resolved_lazily

_PUBLIC_NAMES = {
    "LinkageAudit": "linkage.audit",
    "LinkerEvaluation": "linkage.evaluation",
    "MatchedCandidates": "linkage.matching",
    "audit_linkage": "linkage.audit",
    "evaluate_linker": "linkage.evaluation",
    "is_compatible": "linkage.compatibility",
    "link_by_distance": "linkage.distance",
    "link_by_fellegi_sunter": "linkage.fellegi_sunter",
    "match_candidates": "linkage.matching",
}

__all__ = sorted(_PUBLIC_NAMES)
__getattr__, __dir__ = resolved_lazily(__name__, _PUBLIC_NAMES)
