"""Pictures say in text what they show, stay small, and draw nothing of groups below five records."""

import base64
import re

import numpy as np
import pandas as pd
import pytest

from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.mpucc.column_changes import driving_columns
from privacy_assets.orchestration.shown.pictures import (
    SMALLEST_GROUP_DRAWN,
    classes_as_rectangles,
    columns_that_drive_the_risk,
    from_markdown,
    identified_by_size,
    information_loss_by_column,
    records_by_class_size,
)
from tests.orchestration.project import people, synthetic_people

pytestmark = pytest.mark.pictures

LARGEST_PICTURE_BYTES = 40_000


def picture(markdown: str) -> tuple[str, bytes]:
    text, encoded = re.fullmatch(r"!\[(.*)\]\(data:image/png;base64,(.*)\)", markdown).groups()
    return text, base64.b64decode(encoded)


@pytest.mark.parametrize(
    "name",
    ["a](http://evil/x.png) ![b", "a\\](http://evil)", "`](x)` <b>", "<img src=x>", "&#93;(x)", "two\n\nlines"],
)
def test_the_name_of_a_column_stays_text(name):
    markdown = information_loss_by_column({name: 0.25})
    text, png = from_markdown(markdown)
    shown = f"Information loss by column ({' '.join(name.split())}: 25.0%)"
    assert text == shown
    assert png.startswith(b"\x89PNG")
    # No bracket, code span or HTML of the name is left without a backslash.
    inside = markdown[2 : markdown.index("](data:image/png")]
    assert not re.search(r"(?<!\\)(?:\\\\)*[\[\]`<>&!]", inside)
    assert "\n" not in inside


def test_class_sizes_are_told_in_people_where_there_are_people():
    classes = pd.DataFrame({"class": range(4), "rows": [10, 12, 30, 400], "people": [2, 3, 5, 90]})
    text, png = picture(records_by_class_size(classes))
    assert text == "Records by class size (4 classes; smallest 2 people, median 4, largest 90)"
    assert png.startswith(b"\x89PNG")
    text, _ = picture(records_by_class_size(classes.drop(columns="people").iloc[:1]))
    assert text == "Records by class size (1 classes; smallest 10 rows, median 10, largest 10)"


def test_identified_records_are_told_by_size_beside_those_of_the_control():
    original, synthetic, control = people(300, 1).drop(columns="patient"), synthetic_people(200, 2), people(100, 3)
    control = control.drop(columns="patient")
    alone = assess_mpuccs(original, synthetic)
    by_size = alone.details["combo_size"].value_counts()
    text, png = picture(identified_by_size(alone))
    told = ", ".join(f"{size}: {count}" for size, count in sorted(by_size.items()) if count >= SMALLEST_GROUP_DRAWN)
    assert text == (f"Identified synthetic records by combination size, singling out an original ({told})")
    assert len(png) < LARGEST_PICTURE_BYTES
    both = assess_mpuccs(original, synthetic, control=control, n_matched_samples=2)
    text, png = picture(identified_by_size(both))
    assert "singling out one of 100 originals (" in text
    assert "one of 100 control records (" in text
    first = both.control.control_identified_by_size
    assert all(f"{size}: {round(n)}" in text for size, n in enumerate(first, start=1) if n >= SMALLEST_GROUP_DRAWN)
    assert len(png) < LARGEST_PICTURE_BYTES
    nobody = assess_mpuccs(original.assign(cost=0.0).iloc[:2], synthetic.assign(cost=1.0).iloc[:2])
    assert "(none of 5 records or more)" in picture(identified_by_size(nobody))[0]


def test_columns_that_drive_the_risk_are_told_by_share_of_the_identified():
    assessment = assess_mpuccs(people(300, 1).drop(columns="patient"), synthetic_people(200, 2))
    combos = assessment.details["field_combo"]
    shares = {name: float(combos.map(lambda combo, name=name: name in combo).mean()) for name in ("age", "cost")}
    text, png = picture(columns_that_drive_the_risk(driving_columns(assessment), len(combos)))
    assert text.startswith("Columns that drive the risk, by share of the identified records (")
    assert all(f"{name}: {share:.1%}" in text for name, share in shares.items())
    assert len(png) < LARGEST_PICTURE_BYTES
    assert picture(columns_that_drive_the_risk([("age", 0.4), ("cost", 1.0)], 10))[0].endswith("(cost: 100.0%)")
    assert "(none in 5 records or more)" in picture(columns_that_drive_the_risk([], 0))[0]


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
