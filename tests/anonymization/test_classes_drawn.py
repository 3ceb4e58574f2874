"""Pictures of classes: their sizes in people or records, what columns lost, and rectangles on request."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets import anonymize
from privacy_assets.anonymization.pictures import draw_class_sizes, draw_information_loss, draw_rectangles
from privacy_assets.anonymization.result import drawn_classes
from privacy_assets.display.pictures import SMALLEST_GROUP_DRAWN
from privacy_assets.errors import InvalidSettingError

pytestmark = pytest.mark.pictures
LARGEST_PICTURE_BYTES = 40_000


def test_class_sizes_are_told_in_people_where_there_are_people():
    classes = pd.DataFrame({"class": range(4), "rows": [10, 12, 30, 400], "people": [2, 3, 5, 90]})
    drawn = draw_class_sizes(classes)
    assert drawn.text == (
        "The smallest of 4 classes has 2 people, half of the classes have at most 4, and the largest has 90."
    )
    assert drawn.figure.axes[0].get_xlabel() == "people who share a class"
    assert (
        draw_class_sizes(classes.drop(columns="people").iloc[:1]).text == "All records are in one class of 10 records."
    )


def test_losses_are_drawn_from_the_largest_and_the_sentence_has_both_ends():
    drawn = draw_information_loss({"age": 0.1, "job": 0.25, "sex": 0.0})
    assert [bar.get_width() for bar in drawn.figure.axes[0].patches] == [0.0, 10.0, 25.0]
    assert drawn.text == "job lost the most precision (25.0%), sex the least (0.0%)."
    assert "NCP" not in drawn.figure.axes[0].get_xlabel()
    assert draw_information_loss({"age": 0.0, "sex": 0.0}).text == "No column lost precision."


def test_rectangles_of_few_records_are_not_drawn_and_thousands_stay_small():
    random = np.random.default_rng(0)
    low, size = random.random((2, 6000, 2)) * 0.5
    rectangles = pd.DataFrame(
        {"x_low": low[:, 0], "x_high": (low + size)[:, 0], "y_low": low[:, 1], "y_high": (low + size)[:, 1]}
    ).assign(rows=np.arange(6000) % 10)
    drawn = draw_rectangles(rectangles, "age", "income")
    assert drawn.text == (
        "The wider and higher a rectangle, the less the records of its class reveal about age and income; 1,000 of "
        "6,000 are drawn."
    )
    assert len(drawn.png()) < LARGEST_PICTURE_BYTES
    few = rectangles[rectangles["rows"] < SMALLEST_GROUP_DRAWN]
    assert "; 0 of " in draw_rectangles(few, "age", "income").text


def test_rectangles_are_drawn_only_if_two_columns_are_asked_for():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"age": random.integers(18, 90, 60), "weight": random.normal(70, 9, 60)})
    made = anonymize(table, quasi_identifiers=["age", "weight"], k=5)
    plain = ["records_by_class_size", "information_loss_by_column"]
    assert list(drawn_classes(made, table, None)) == list(drawn_classes(made, None, ("age", "weight"))) == plain
    assert list(drawn_classes(made, table, ("age", "weight"))) == [*plain, "classes_as_rectangles"]
    unknown = {name: value for name, value in made.stats.items() if name != "certainty_penalty"}
    made.stats.clear()
    made.stats.update(unknown)
    assert list(drawn_classes(made, table, None)) == plain[:1]
    with pytest.raises(InvalidSettingError, match="The loss by column is unknown"):
        made.plot("loss")
