"""Pictures in metadata: Markdown with the PNG, and a sentence in which the name of a column stays text."""

import base64
import re

import pytest

from privacy_assets.anonymization.pictures import draw_information_loss
from privacy_assets.orchestration.shown.pictures import as_markdown, picture_metadata

pytestmark = pytest.mark.pictures


@pytest.mark.parametrize(
    "name",
    ["a](http://evil/x.png) ![b", "a\\](http://evil)", "`](x)` <b>", "<img src=x>", "&#93;(x)", "two\n\nlines"],
)
def test_the_name_of_a_column_stays_text(name):
    drawn = draw_information_loss({name: 0.25})
    markdown = as_markdown(drawn.picture())
    inside, encoded = re.fullmatch(r"!\[(.*)\]\(data:image/png;base64,(\S+)\)", markdown, re.DOTALL).groups()
    assert base64.b64decode(encoded).startswith(b"\x89PNG")
    assert re.sub(r"\\(.)", r"\1", inside) == f"{' '.join(name.split())} lost 25.0% of its precision."
    # No bracket, code span or HTML of the name is left without a backslash.
    assert not re.search(r"(?<!\\)(?:\\\\)*[\[\]`<>&!]", inside)
    assert "\n" not in inside


def test_pictures_are_shown_by_their_names():
    shown = picture_metadata({"loss": draw_information_loss({"age": 0.0}).picture()})
    assert list(shown) == ["loss"]
    assert shown["loss"].value.startswith("![No column lost precision.](data:image/png;base64,")
    assert len(shown["loss"].value) < 40_000
