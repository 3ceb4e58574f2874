"""Re-identification: the people that each released record can come from; masks, belief functions and weights."""

from privacy_assets.public_names import resolved_lazily

_PUBLIC_NAMES = {
    "BeliefFunction": "reidentification.belief",
    "BoundedNoise": "columns.masks",
    "CandidateIndex": "reidentification.candidate_index",
    "Exact": "columns.masks",
    "GaussianNoise": "columns.masks",
    "HierarchyMapping": "columns.masks",
    "Interval": "columns.masks",
    "Label": "columns.masks",
    "Microaggregated": "columns.masks",
    "OtherRelease": "reidentification.other_releases",
    "Pram": "columns.masks",
    "RankBuckets": "columns.masks",
    "RankWindow": "columns.masks",
    "ReleaseModel": "columns.masks",
    "SimilarText": "columns.masks",
    "Suppressed": "columns.masks",
    "ValueSet": "columns.masks",
    "WeightedAssessment": "reidentification.weighted_candidates",
    "WeightedCandidates": "reidentification.weighted_candidates",
    "combine": "reidentification.candidate_index",
}

__all__ = sorted(_PUBLIC_NAMES)
__getattr__, __dir__ = resolved_lazily(__name__, _PUBLIC_NAMES)
