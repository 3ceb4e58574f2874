"""The picture of worth: a bar for each figure that could be judged, in words."""

import pytest

from privacy_assets.utility.result import FIGURES, FIGURES_IN_WORDS, GROUP_FIGURES, draw_worth

pytestmark = pytest.mark.pictures


def scores(**values):
    return {name + end: value for name, value in values.items() for end in ("", "_lower", "_upper")}


def test_every_figure_has_words():
    assert tuple(FIGURES_IN_WORDS) == FIGURES + GROUP_FIGURES


def test_bars_are_the_figures_and_the_sentence_names_the_lowest():
    drawn = draw_worth(scores(utility=0.9, utility_columns=0.99, utility_counts=-0.2))
    (axes,) = drawn.figure.axes
    assert [bar.get_width() for bar in axes.patches] == [0.0, 0.99, 0.9]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["counts", "single columns", "overall"]
    assert drawn.text == (
        "Overall the records are worth 0.900. They keep least of the counts (-0.200); the lines on the bars are 95 % "
        "intervals."
    )
    assert draw_worth(scores(utility=0.9)).text == "Overall the records are worth 0.900."
    assert draw_worth({}).text == "Nothing could be judged."
