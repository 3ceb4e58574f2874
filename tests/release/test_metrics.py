"""Every metric is read from where a manifest has it, and a bound on one side of it is met, on the other not."""

import pytest

from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.policy import Limit
from privacy_assets.utility.result import FIGURES, GROUP_FIGURES

PLACES = {
    "mpucc_assessment": "privacy_risk_score score_of_lone_people score_of_strangers score_of_related_columns "
    "score_of_strangers_on_related_columns originals_singled_out_by_strangers overall_protection main_protection "
    "baseline_protection identification_rate total_identified originals_singled_out",
    "disclosure_assessment": "exposed_share exposed_share_of_least_visible "
    "share_in_homogeneous_cells smallest_shared_cell",
    "control": "excess_identification_rate verbatim_rate excess_verbatim_rate verbatim_copies excess_copy_rate",
    "rare_values": "rare_values_released",
    "rules": "rule_violations",
    "privacy_budget": "epsilon total_epsilon delta",
    "statistics": "suppressed_share information_loss",
    "anonymity": "share_in_homogeneous_classes",
    "reidentification_assessment": "max_reidentification_probability mean_reidentification_probability "
    "share_of_singletons share_certain_by_rows",
    "semantic_assessment": "maximum_semantic_risk medium_semantic_risk",
}
"""Figures that stand under their own name."""
SENSITIVE = {"ill": {"l_distinct": 5, "t": 0.2}, "plan": {"l_distinct": 2, "t": 0.4}}
EXAMPLES = {
    **{name: ({place: {name: 0.25}}, 0.25) for place, names in PLACES.items() for name in names.split()},
    **{
        f"{name}_excess": ({"disclosure_assessment": {f"{name}_interval": [-0.1, 0.3]}}, 0.3)
        for name in ["inference", *(name for name, criterion in CRITERIA.items() if criterion.share_of)]
    },
    **{
        name: ({"utility_assessment": {f"{name}_lower": 0.6, f"{name}_upper": 0.7}}, 0.6)
        for name in (*FIGURES, *GROUP_FIGURES)
    },
    "copies_beyond_people": ({"mpucc_assessment": {"copies_beyond_people_interval_low": 0.25}}, 0.25),
    "leakage_detected": ({"disclosure_assessment": {"leakage_detected": True, "detectable_share": 0.01}}, 1),
    "membership_advantage_upper": ({"reidentification_assessment": {"membership_advantage_upper": 0.4}}, 0.4),
    "smallest_class": ({"anonymity": {"k": 9, "k_people": 4}}, 4),
    "l_diversity": ({"anonymity": {"sensitive": SENSITIVE}}, 2),
    "t_closeness": ({"anonymity": {"sensitive": SENSITIVE}}, 0.4),
}
"""By metric, some figures of a manifest and its value. A new metric needs one, too."""


def test_every_metric_has_an_example_and_every_example_its_metric():
    assert set(EXAMPLES) == set(METRICS)


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_is_read_where_its_example_has_it(metric):
    figures, value = EXAMPLES[metric]
    own = METRICS[metric]
    assert own.of(figures) == value
    assert own.of({}) is None
    assert own.low <= value <= own.high
    assert own.meaning


@pytest.mark.parametrize("metric", METRICS)
def test_a_bound_is_met_on_one_side_of_the_figure_alone(metric):
    value = METRICS[metric].of(EXAMPLES[metric][0])
    if METRICS[metric].is_yes_no:
        assert [Limit(metric, 0).holds_for(each) for each in (0.0, value)] == [True, False]
        return
    least = METRICS[metric].direction in ("above", "at_least")
    assert [Limit(metric, value + by).holds_for(value) for by in (-0.125, 0.125)] == [least, not least]
    assert not Limit(metric, value + 0.125).holds_for(None)
