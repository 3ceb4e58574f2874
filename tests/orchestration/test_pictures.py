"""Pictures say in text what they show, stay small, and draw nothing of groups below five records."""

import base64
import re

import numpy as np
import pandas as pd

from privacy_assets.orchestration.pictures import (
    SMALLEST_GROUP_DRAWN,
    classes_as_rectangles,
    information_loss_by_column,
    records_by_class_size,
)

LARGEST_PICTURE_BYTES = 40_000


def picture(markdown: str) -> tuple[str, bytes]:
    text, encoded = re.fullmatch(r"!\[(.*)\]\(data:image/png;base64,(.*)\)", markdown).groups()
    return text, base64.b64decode(encoded)


def test_class_sizes_are_told_in_people_where_there_are_people():
    classes = pd.DataFrame({"class": range(4), "rows": [10, 12, 30, 400], "people": [2, 3, 5, 90]})
    text, png = picture(records_by_class_size(classes))
    assert text == "Records by class size (4 classes; smallest 2 people, median 4, largest 90)"
    assert png.startswith(b"\x89PNG")
    text, _ = picture(records_by_class_size(classes.drop(columns="people").iloc[:1]))
    assert text == "Records by class size (1 classes; smallest 10 rows, median 10, largest 10)"


def test_losses_are_told_by_column_from_the_largest():
    text, _ = picture(information_loss_by_column({"age": 0.1, "job": 0.25, "sex": 0.0}))
    assert text == "Information loss by column (job: 25.0%, age: 10.0%, sex: 0.0%)"


def test_rectangles_of_few_records_are_not_drawn_and_thousands_stay_small():
    random = np.random.default_rng(0)
    low, size = random.random((2, 6000, 2)) * 0.5
    rectangles = pd.DataFrame(
        {"x_low": low[:, 0], "x_high": (low + size)[:, 0], "y_low": low[:, 1], "y_high": (low + size)[:, 1]}
    ).assign(rows=np.arange(6000) % 10)
    text, png = picture(classes_as_rectangles(rectangles, "age", "income"))
    assert text == "Classes by age and income (1,000 of 6,000 distinct rectangles drawn)"
    assert len(png) < LARGEST_PICTURE_BYTES
    few = rectangles[rectangles["rows"] < SMALLEST_GROUP_DRAWN]
    assert "(0 of " in picture(classes_as_rectangles(few, "age", "income"))[0]
