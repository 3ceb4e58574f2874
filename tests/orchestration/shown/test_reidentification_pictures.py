import base64
import re

import numpy as np
import pandas as pd
import pytest

from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.orchestration.shown.reidentification_pictures import (
    draw_reidentification_curve,
    reidentification_curve,
)
from privacy_assets.reidentification.assess import assess_reidentification

pytestmark = pytest.mark.pictures


def assessed(n_columns, max_known):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"q{i}": rng.integers(0, 3, 60) for i in range(n_columns)})
    model = ReleaseModel.from_labels([], exact=list(table))
    return assess_reidentification(table, table, model, truth=np.arange(60), max_known=max_known).curve


def test_lines_and_band_are_mean_worst_and_range_over_the_sets_of_a_size():
    curve = assessed(5, 2)
    figure = draw_reidentification_curve(curve)
    panels = [("mean_reidentification_probability", "max"), ("mean_nonspecificity", "min")]
    for axes, (name, worst) in zip(figure.axes, panels, strict=True):
        by_size = curve.groupby("n_known")[name]
        mean, most_telling = axes.lines
        assert mean.get_xdata().tolist() == most_telling.get_xdata().tolist() == [1, 2, 3, 4, 5]
        # Of sizes 3 and 4 only the greedy chain was assessed.
        expected = by_size.mean().where([True, True, False, False, True])
        assert np.allclose(mean.get_ydata(), expected, equal_nan=True)
        assert np.allclose(most_telling.get_ydata(), by_size.agg(worst))
        (band,) = axes.collections
        drawn = pd.DataFrame(np.concatenate([path.vertices for path in band.get_paths()])).groupby(0)[1]
        assert np.allclose(drawn.agg(["min", "max"]).loc[[1, 2]], by_size.agg(["min", "max"]).loc[[1, 2]])
        assert set(drawn.groups) <= {1, 2, 5}


def test_the_picture_is_markdown_with_its_numbers_as_text():
    curve = assessed(1, 3)
    text = reidentification_curve(curve)
    mean = curve["mean_reidentification_probability"].iloc[0]
    found = re.fullmatch(r"!\[(.*)\]\(data:image/png;base64,(.*)\)", text)
    assert found[1] == (
        f"Mean re-identification probability for the most identifying columns, by their number (1: {mean:.3g})"
    )
    assert base64.b64decode(found[2]).startswith(b"\x89PNG")
    assert len(text) < 100_000
