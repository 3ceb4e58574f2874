"""Pictures of a disclosure assessment: on which side of no difference each criterion is, and what is guessed."""

import pandas as pd
import pytest

from privacy_assets.disclosure.pictures import draw_excess_by_criterion, draw_guessed_by_column

pytestmark = pytest.mark.pictures
CRITERIA = pd.DataFrame(
    {
        "criterion": ["singling_out", "linkability", "rare_values"],
        "excess": [0.02, -0.1, 0.0],
        "low": [0.01, -0.3, 0.0],
        "high": [0.03, 0.1, 0.0],
        "adjusted_p_value": [0.004, 1.0, 1.0],
    }
)


def test_an_interval_is_right_of_the_line_if_and_only_if_its_lower_end_is_above_0():
    figure = draw_excess_by_criterion(CRITERIA, level=0.05, is_answered=True).figure
    (axes,) = figure.axes
    lines = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2 and line.get_linestyle() == "-"]
    assert [(low > 0, high > 0) for low, high in reversed(lines)] == [(True, True), (False, True), (False, True)]
    assert [tick.get_text() for tick in axes.get_xticklabels()][1] == "no\ndifference"
    assert "standard error" not in axes.get_xlabel()


def test_the_sentence_says_what_is_revealed_and_whether_the_tables_can_tell():
    found = draw_excess_by_criterion(CRITERIA, level=0.05, is_answered=True)
    assert (
        found.text == "More is revealed about originals than about people whom the synthesizer never saw: singling out."
    )
    nothing = draw_excess_by_criterion(CRITERIA, level=0.001, is_answered=True)
    assert nothing.text.startswith(
        "No more is revealed about originals than about people whom the synthesizer never saw"
    )
    assert "questions (3)" in nothing.text
    open_ = draw_excess_by_criterion(CRITERIA, level=0.001, is_answered=False)
    assert open_.text == "These tables cannot answer whether originals are revealed more than people in the control."


def test_guessed_values_are_drawn_by_column_the_largest_difference_first():
    sensitive = pd.DataFrame(
        {
            "column": ["job", "income", "zip", "job"],
            "attack": ["nearest", "nearest", "nearest", "claims"],
            "original": [0.5, 0.4, float("nan"), 1.0],
            "control": [0.5, 0.3, float("nan"), 0.0],
            "excess": [0.0, 0.1, float("nan"), 1.0],
        }
    )
    drawn = draw_guessed_by_column(sensitive)
    (axes,) = drawn.figure.axes
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["job", "income"]
    assert drawn.text == (
        "income has the largest difference: its values are guessed right for 40.0% of originals and 30.0% of the "
        "control. If both are alike, the guesses are statistics and not a leak."
    )
    assert draw_guessed_by_column(sensitive.iloc[2:]).text == "No column could be judged."
