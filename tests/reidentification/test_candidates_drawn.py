"""The picture of an attacker's candidates: what it draws, and what it says."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.reidentification.pictures import draw_candidates

pytestmark = pytest.mark.pictures


def assessed(n_columns, max_known):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"q{i}": rng.integers(0, 3, 60) for i in range(n_columns)})
    model = ReleaseModel.from_labels([], exact=list(table))
    return assess_reidentification(table, table, model, truth=np.arange(60), max_known=max_known).curve


def test_lines_and_band_are_mean_worst_and_range_over_the_sets_of_a_size():
    curve = assessed(5, 2)
    figure = draw_candidates(curve).figure
    panels = [("mean_reidentification_probability", "max"), ("mean_nonspecificity", "min")]
    for axes, (name, worst) in zip(figure.axes, panels, strict=True):
        # Mean logarithms are drawn as numbers of candidates.
        write = np.exp if name == "mean_nonspecificity" else np.asarray
        by_size = curve.groupby("n_known")[name]
        mean, most_telling = axes.lines
        assert mean.get_xdata().tolist() == most_telling.get_xdata().tolist() == [1, 2, 3, 4, 5]
        # Of sizes 3 and 4 only the greedy chain was assessed.
        expected = by_size.mean().where([True, True, False, False, True])
        assert np.allclose(mean.get_ydata(), write(expected), equal_nan=True)
        assert np.allclose(most_telling.get_ydata(), write(by_size.agg(worst)))
        (band,) = axes.collections
        drawn = pd.DataFrame(np.concatenate([path.vertices for path in band.get_paths()])).groupby(0)[1]
        assert np.allclose(drawn.agg(["min", "max"]).loc[[1, 2]], write(by_size.agg(["min", "max"]).loc[[1, 2]]))
        assert set(drawn.groups) <= {1, 2, 5}


def test_the_sentence_has_the_chance_of_those_who_know_everything_and_of_those_who_know_one_column():
    said = draw_candidates(
        pd.DataFrame(
            {
                "chosen_as": ["subset", "subset", "all", "named"],
                "n_known": [1, 1, 2, 2],
                "mean_reidentification_probability": [0.02, 0.05, 0.25, 0.9],
                "mean_nonspecificity": np.log([50, 20, 4, 2]),
                "n_records": 60,
            }
        )
    )
    assert said.text == (
        "Knowing all 2 columns, an attacker picks the right record with a probability of 25.0% on average; knowing the "
        "most identifying column, of 5.00%."
    )
    only = draw_candidates(assessed(1, 3))
    assert only.text.startswith("Knowing the only column, an attacker picks")
    shown = " ".join(axes.get_ylabel() for axes in only.figure.axes)
    assert "ln" not in shown and "candidates, geometric mean" in shown


def test_a_curve_from_a_sample_says_so_and_shows_its_intervals():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"q{i}": rng.integers(0, 9, 300) for i in range(4)})
    made = anonymize(table, quasi_identifiers=list(table), k=3)
    curve = assess_reidentification(table, made, max_known=2, curve_sample=80).curve
    words = "80 of 300 released records, but for all columns from every record; the bars are 95 % intervals"
    drawn = draw_candidates(curve)
    assert words in drawn.text
    figure = drawn.figure
    assert words in figure.get_suptitle().replace("\n", " ")
    for axes, name, worst in zip(
        figure.axes, ["mean_reidentification_probability", "mean_nonspecificity"], ["idxmax", "idxmin"], strict=True
    ):
        _, bars = axes.collections
        drawn = {segment[0, 0]: segment[:, 1].tolist() for segment in bars.get_segments()}
        at_worst = curve.loc[getattr(curve.groupby("n_known")[name], worst)()].set_index("n_known")
        assert drawn.keys() == {1, 2, 3, 4}
        for size, ends in drawn.items():
            expected = at_worst.loc[size, [f"{name}_low", f"{name}_high"]].astype(float)
            assert np.allclose(ends, np.exp(expected) if name == "mean_nonspecificity" else expected)
        assert drawn[4][0] == drawn[4][1] and drawn[2][0] < drawn[2][1]
    exact = assess_reidentification(table, made, max_known=2, curve_sample=None).curve
    assert "sample" not in draw_candidates(exact).text and draw_candidates(exact).figure.get_suptitle() == ""
