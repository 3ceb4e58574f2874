import base64
import re

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
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


def test_a_curve_from_a_sample_says_so_and_shows_its_intervals():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"q{i}": rng.integers(0, 9, 300) for i in range(4)})
    made = anonymize(table, quasi_identifiers=list(table), k=3)
    curve = assess_reidentification(table, made, max_known=2, curve_sample=80).curve
    words = "80 of 300 released records, but for all columns from every record; the bars are 95 % intervals"
    assert words in reidentification_curve(curve)
    figure = draw_reidentification_curve(curve)
    assert words in figure.get_suptitle().replace("\n", " ")
    for axes, name, worst in zip(
        figure.axes, ["mean_reidentification_probability", "mean_nonspecificity"], ["idxmax", "idxmin"], strict=True
    ):
        _, bars = axes.collections
        drawn = {segment[0, 0]: segment[:, 1].tolist() for segment in bars.get_segments()}
        at_worst = curve.loc[getattr(curve.groupby("n_known")[name], worst)()].set_index("n_known")
        assert drawn.keys() == {1, 2, 3, 4}
        for size, ends in drawn.items():
            assert ends == [at_worst.loc[size, f"{name}_low"], at_worst.loc[size, f"{name}_high"]]
        assert drawn[4][0] == drawn[4][1] and drawn[2][0] < drawn[2][1]
    exact = assess_reidentification(table, made, max_known=2, curve_sample=None).curve
    assert "sample" not in reidentification_curve(exact) and draw_reidentification_curve(exact).get_suptitle() == ""
