"""Pictures of identified records: bars of 5 records and more, and a sentence that counts them."""

import pandas as pd
import pytest

from privacy_assets import assess_mpuccs
from privacy_assets.display.pictures import SMALLEST_GROUP_DRAWN
from privacy_assets.mpucc.pictures import draw_driving_columns, draw_identified_by_size
from tests.orchestration.project import people, synthetic_people

pytestmark = pytest.mark.pictures


@pytest.fixture(scope="module")
def tables():
    return [people(n, seed).drop(columns="patient") for n, seed in ((300, 1), (100, 3))], synthetic_people(200, 2)


def heights(figure):
    return [round(bar.get_height()) for bar in figure.axes[0].patches]


def test_bars_count_the_identified_records_by_size(tables):
    (original, control), synthetic = tables
    found = assess_mpuccs(original, synthetic)
    by_size = found.details["combo_size"].value_counts().sort_index()
    drawn = found.drawn()
    assert heights(drawn.figure) == [n for n in by_size if n >= SMALLEST_GROUP_DRAWN]
    assert drawn.text == (
        f"{len(found.details):,} synthetic records single out an original; most often it takes {by_size.idxmax()} "
        f"columns together ({by_size.max()} records)."
    )
    both = assess_mpuccs(original, synthetic, control=control, n_matched_samples=2)
    drawn = both.drawn("sizes")
    sides = (both.control.matched_identified_by_size, both.control.control_identified_by_size)
    assert heights(drawn.figure) == [round(n) for side in sides for n in side if n >= SMALLEST_GROUP_DRAWN]
    first, second = (round(sum(side)) for side in sides)
    assert f"{first} synthetic records single out one of 100 originals, and {second} single out one of" in drawn.text
    assert [text.get_text() for text in drawn.figure.axes[0].get_legend().get_texts()][1] == "one of 100 controls"


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([0], "Fewer than 5 synthetic records single out an original with any number of columns."),
        ([4], "Fewer than 5 synthetic records single out an original with any number of columns."),
        (
            [1200, 7],
            "1,207 synthetic records single out an original; most often it takes 1 column alone (1,200 records).",
        ),
    ],
)
def test_the_sentence_does_not_count_fewer_than_five(counts, said):
    tree = pd.DataFrame({"combo_size": range(1, len(counts) + 1), "mpuccs_collision_cnt": counts})
    drawn = draw_identified_by_size(tree, None, counts_people=False)
    assert drawn.text == said
    assert heights(drawn.figure) == [n for n in counts if n >= SMALLEST_GROUP_DRAWN]


def test_columns_are_drawn_by_the_share_of_records_that_they_help_to_single_out(tables):
    (original, _), synthetic = tables
    found = assess_mpuccs(original, synthetic)
    combos = found.details["field_combo"]
    shares = {name: float(combos.map(lambda combo, name=name: name in combo).mean()) for name in original}
    drawn = found.drawn("columns")
    bars = [bar.get_width() / 100 for bar in drawn.figure.axes[0].patches]
    assert bars == pytest.approx(sorted((share for share in shares.values() if share > 0), reverse=True))
    first = max(shares, key=shares.get)
    assert drawn.text == (
        f"{first} helps to single out {shares[first]:.1%} of the identified records, more than any other column."
    )
    assert draw_driving_columns([("age", 0.4), ("cost", 1.0)], 10).text.startswith("cost helps to single out 100.0%")
    assert draw_driving_columns([("age", 0.5), ("cost", 0.5)], 10).text.endswith("of the identified records.")
    assert draw_driving_columns([("age", 0.4)], 10).text == "No column helps to single out 5 or more records."
