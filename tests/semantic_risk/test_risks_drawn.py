"""What the pictures of a semantic assessment show, and what they must not."""

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from privacy_assets.semantic_risk.assess import assess_semantic_risk
from tests.running_example import CONTEXT, PEOPLE, WINDOWS

pytestmark = pytest.mark.pictures

SCALES = {"sex": "nominal", "year": {"interval": WINDOWS}}


def texts(figure):
    """Draw the figure, and return every text in it."""
    FigureCanvasAgg(figure).draw()
    axes = figure.axes[0]
    legend = [text.get_text() for text in axes.get_legend().get_texts()] if axes.get_legend() else []
    ticks = [text.get_text() for text in axes.get_xticklabels()]
    return [text.get_text() for text in axes.texts] + legend + ticks + [axes.get_title()]


def heights(figure):
    """Height of each stack of bars, by place."""
    found = {}
    for bar in figure.axes[0].patches:
        place = round(bar.get_x() + bar.get_width() / 2)
        found[place] = found.get(place, 0) + bar.get_height()
    return {place: height for place, height in found.items() if height}


def test_the_distribution_draws_groups_of_five_or_more():
    found = assess_semantic_risk(CONTEXT, "binary", risk_limit=0.35, three_way=(0.2, 0.35))
    figure = found.plot()
    # r_BS is 1 for 6 records, 1/2 for 2, 1/3 for 6, 1/4 for 4 and 1/9 for 9.
    assert heights(figure) == {11: 6, 9: 6, 3: 9}
    shown = texts(figure)
    assert {"6", "9", "acceptable: up to 0.2", "in between: to be decided", "too high: from 0.35 on"} <= set(shown)
    assert {"dotted: limit of 0.35", "certain", "1 in 2", "1 in 12\nor less"} <= set(shown)
    colors = {round(bar.get_x() + 0.4): bar.get_facecolor() for bar in figure.axes[0].patches if bar.get_height()}
    assert len(set(colors.values())) == 3
    (line,) = figure.axes[0].lines
    assert line.get_xdata()[0] == 9.5


def test_a_limit_below_all_bars_is_told_though_no_line_can_be_drawn():
    figure = assess_semantic_risk(CONTEXT, "binary", risk_limit=0.05).plot()
    assert "dotted: limit of 0.05, below 1 in 12" in texts(figure)
    assert not figure.axes[0].lines


def test_a_distribution_without_regions_or_limit_is_plain():
    figure = assess_semantic_risk(CONTEXT, "binary").plot()
    assert heights(figure) == {11: 6, 9: 6, 3: 9}
    assert figure.axes[0].get_legend() is None
    assert not figure.axes[0].lines


def test_the_sentence_counts_the_records_that_are_certain_or_above_the_limit():
    attacker = "an attacker who knows all attributes of a record and one that it lacks"
    plain = assess_semantic_risk(CONTEXT, "binary")
    assert plain.drawn().text == f"For 6 of 27 records (22.2%), {attacker} is certain to pick the right one."
    limited = assess_semantic_risk(CONTEXT, "binary", risk_limit=0.35)
    told = f"{attacker} picks the right one with a probability above the limit of "
    assert limited.drawn().text == f"For 8 of 27 records (29.6%), {told}0.35."
    safe = assess_semantic_risk(pd.DataFrame({"a": [1] * 40 + [0] * 20}), "binary", risk_limit=0.1)
    assert safe.drawn().text == f"For none of 60 records, {told}0.1."
    few = assess_semantic_risk(pd.DataFrame({"a": [1] * 40 + [0] * 2}), "binary", risk_limit=0.1)
    assert few.drawn().text == f"For fewer than 5 of 42 records, {told}0.1."


def test_all_small_risks_are_one_bar():
    table = pd.DataFrame({"a": [1] * 40 + [0] * 20})
    figure = assess_semantic_risk(table, "binary", risk_limit=0.01).plot()
    assert heights(figure) == {0: 60}


def test_the_neighborhood_shows_names_and_hides_small_counts():
    figure = assess_semantic_risk(CONTEXT, "binary").plot("concept")
    shown = [text for text in texts(figure) if text]
    assert "S:F, Date:1935-55" in shown
    assert {"without Date:1935-55", "without S:F", "with Date:1945-65"} <= set(shown)
    assert shown.count("< 5") == 2
    assert {"5", "13"} <= set(shown)
    assert len(figure.axes[0].lines) == 3


def test_pictures_hold_no_value_of_the_table():
    table = pd.DataFrame({"town": ["Zanzibar", "Zanzibar", "Quito"] * 9, "age": [7654321, 7654322, 7654323] * 9})
    found = assess_semantic_risk(table, {"town": "nominal", "age": "ordinal"}, three_way=(0.05, 0.5))
    for figure in (found.plot(), found.plot("concept")):
        shown = " ".join(texts(figure))
        assert not any(value in shown for value in ("Zanzibar", "Quito", "765432"))


@pytest.mark.parametrize("n_columns", [1, 12])
def test_many_neighbors_and_names_are_cut_short(n_columns):
    # A row with everything, and above it twelve that lack one thing each.
    rows = [[True] * n_columns, *([i != j for j in range(n_columns)] for i in range(n_columns) for _ in range(2))]
    wide = pd.DataFrame(rows, columns=[f"column {n}" for n in range(n_columns)])
    figure = assess_semantic_risk(wide, "binary", semantic_risk=False, advice=False).plot("concept")
    shown = texts(figure)
    assert len(figure.axes[0].lines) == min(n_columns, 5)
    assert ("and 7 more" in shown) == (n_columns == 12)
    assert any("8 more" in text for text in shown) == (n_columns == 12)


def test_pictures_of_the_scaled_records_can_be_drawn():
    found = assess_semantic_risk(PEOPLE, SCALES, risk_limit=0.35)
    assert [text for text in texts(found.plot("concept")) if "year #" in text]
