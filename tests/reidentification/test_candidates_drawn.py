"""The pictures of an attacker's candidates: what they draw, and what they say."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.errors import InvalidSettingError
from privacy_assets.examples.ratings import make_ratings
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.reidentification.pictures import draw_candidates, draw_linked_rows

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


def assessed_ratings(n_rows):
    """Assess ratings with a pseudonym, for two sets of known columns."""
    table = make_ratings(60, 40)
    made = anonymize(table, quasi_identifiers=["movie", "stars"], k=5, subject="customer")
    return assess_reidentification(
        table, made, known=[["movie"], ["stars", "movie"]], links=["pseudonym"], known_rows=n_rows
    )


def test_known_rows_are_drawn_by_their_number_for_the_worst_set():
    assessment = assessed_ratings(4)
    assert assessment.drawable == ("candidates", "rows")
    of_both = assessment.curve["known"].map(set) == {"movie", "stars"}
    rows = assessment.curve[of_both].set_index("n_rows")
    drawn = assessment.drawn("rows")
    (axes,) = drawn.figure.axes
    singled_out, right_pick = axes.lines
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "2", "3", "4"]
    assert np.allclose(singled_out.get_ydata(), rows["share_of_singletons"])
    assert np.allclose(right_pick.get_ydata(), rows["mean_reidentification_probability"])
    bars = [path.vertices[:, 1].tolist() for path in axes.collections[0].get_paths()]
    ends = rows[["share_of_singletons_low", "share_of_singletons_high"]]
    assert np.allclose(bars, ends)
    assert drawn.text.startswith("The share of people singled out is 0.0% with 1, ")
    assert rows.loc[4, "share_of_singletons"] > 0.5


def test_without_linked_rows_there_is_no_picture_of_them():
    assessment = assessed_ratings(1)
    assert assessment.drawable == ("candidates",)
    with pytest.raises(InvalidSettingError, match="no figures for several known rows"):
        assessment.drawn("rows")
    with pytest.raises(InvalidSettingError, match="no figures for several known rows"):
        draw_linked_rows(assessment.curve)
