"""Semantic risk: what the concepts of a table reveal about its records; their lattice, bases and chains."""

from privacy_assets.public_names import resolved_lazily

_PUBLIC_NAMES = {
    "ConceptLattice": "semantic_risk.concept_lattice",
    "FormalContext": "semantic_risk.formal_context",
    "RecordRisk": "semantic_risk.explanation",
    "RiskChains": "semantic_risk.risk_chains",
    "explain_record": "semantic_risk.explanation",
    "find_risk_chains": "semantic_risk.risk_chains",
    "forget_attributes": "semantic_risk.forgetting",
    "forget_in_basis": "semantic_risk.forgetting",
    "luxenburger_basis": "semantic_risk.implications",
    "read_concepts": "semantic_risk.concept_lattice",
    "read_formal_context": "semantic_risk.formal_context",
    "released_scales": "semantic_risk.formal_context",
    "stem_basis": "semantic_risk.implications",
}

__all__ = sorted(_PUBLIC_NAMES)
__getattr__, __dir__ = resolved_lazily(__name__, _PUBLIC_NAMES)
