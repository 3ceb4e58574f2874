"""The map of options: names are legible, wherever the marks are."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from privacy_assets.orchestration.shown.options_pictures import map_of_options

RISKS = {"synthetic": "privacy_risk_score", "anonymized": "max_reidentification_probability"}
KINDS = ("k=5", "k=10 l=2", "gaussian_copula", "cart leaf=100 k=10", "smooth_cart k=3")

pytestmark = pytest.mark.pictures


def table_of(across, worth):
    n = len(across)
    return pd.DataFrame(
        {
            "candidate": [f"{KINDS[i % len(KINDS)]} {i}" for i in range(n)],
            "side": "synthetic",
            "is_admitted": np.arange(n) % 2 == 0,
            "is_proposed": np.arange(n) % 4 == 0,
            "privacy_risk_score": across,
            "utility": worth,
            "utility_lower": np.asarray(worth) - 0.01,
            "utility_upper": np.asarray(worth) + 0.0001,
        }
    )


def boxes_of_names(table):
    """Return where the names of a drawn map are, as boxes in pixels, without the lines to their marks."""
    figure = map_of_options(table, RISKS, {"synthetic": 0.2}, {}).figure
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    drawn = []
    for name in [name for axes in figure.axes for name in axes.texts]:
        name.update_positions(canvas.get_renderer())
        drawn.append(Text.get_window_extent(name))
    return drawn


@pytest.mark.parametrize(
    ("across", "worth"),
    [
        (np.linspace(0.17, 0.2, 12), np.linspace(0.92, 0.8, 12)),
        (np.full(8, 0.2), np.full(8, 0.9)),
        (np.linspace(0.1, 0.9, 8), np.full(8, 0.01)),
        ([0.309, 0.311, 0.62, 0.625], [0.7, 0.71, 0.5, 0.51]),
        (np.random.default_rng(0).random(25), np.random.default_rng(1).random(25) * 0.998),
    ],
    ids=["a cluster", "one place", "worth nothing", "neighbors", "25 at random"],
)
def test_no_name_is_written_over_another(across, worth):
    boxes = boxes_of_names(table_of(across, worth))
    assert len(boxes) == len(across)
    for one, other in combinations(boxes, 2):
        overlaps = one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1
        assert not overlaps, (one, other)


def test_the_sentence_counts_the_candidates_and_names_the_recommended_one():
    table = table_of([0.1, 0.2, 0.3, 0.4], [0.9, 0.8, 0.7, 0.6])
    limits, name = {"synthetic": 0.25}, table["candidate"].iloc[0]
    drawn = map_of_options(table, RISKS, limits, {"synthetic": name})
    assert drawn.text == (
        f"4 candidates with synthetic records were compared: 1 proposed, 2 refused; recommended is {name} with a "
        "privacy risk score of 0.100 and a worth of 0.900."
    )
    assert map_of_options(table, RISKS, limits, {}).text.endswith("2 refused; none is recommended.")
    assert map_of_options(table.iloc[:0], RISKS, limits, {}).text == "No candidate could be judged."
    assert drawn.figure.axes[0].get_xlabel() == "privacy risk score (left is safer)"
