"""`plot` of the results: figures that a notebook shows by itself, without a cell, and Matplotlib only when asked."""

import subprocess
import sys

import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

import privacy_assets as pa
from privacy_assets.display.notebook import ShowsPictures
from privacy_assets.errors import InvalidSettingError
from tests.orchestration.sentinels import SENTINELS, sentinel_people

pytestmark = pytest.mark.pictures
PICTURES = {
    "MpuccAssessment": ("sizes", "columns"),
    "DisclosureAssessment": ("criteria", "columns"),
    "UtilityAssessment": ("worth",),
    "Anonymization": ("classes", "loss"),
    "ReidentificationAssessment": ("candidates", "rows"),
    "SemanticAssessment": ("risks", "concept"),
}


@pytest.fixture(scope="module")
def results():
    """Every result that has pictures, of tables whose cells are sentinels."""
    original, control = (sentinel_people(60, seed) for seed in (1, 2))
    original, control = (table.drop(columns="patient") for table in (original, control))
    synthetic = original.sample(60, replace=True, random_state=3).reset_index(drop=True)
    made = pa.anonymize(original, quasi_identifiers=["income", "region"], k=3)
    people = original.assign(person=[row // 2 for row in range(60)], number=[f"u{row // 2}" for row in range(60)])
    linked = pa.anonymize(people, quasi_identifiers=["income", "region"], k=3, subject="person")
    found = [
        pa.assess_mpuccs(original, synthetic, max_baseline_cols=2),
        pa.assess_disclosure(original, synthetic, control, sensitive=["region"]),
        pa.assess_utility(original, synthetic, control),
        made,
        pa.assess_reidentification(people, linked, max_known=2, links=["number"], known_rows=2),
        pa.assess_semantic_risk(original[["income", "region"]], {"income": "ordinal", "region": "nominal"}),
    ]
    return {type(each).__name__: each for each in found}


def texts(figure):
    FigureCanvasAgg(figure).draw()
    return " ".join(text.get_text() for text in figure.findobj(Text))


@pytest.mark.usefixtures("results")  # imports them
def test_every_result_that_can_be_drawn_is_tested():
    def below(kind):
        return {each for own in kind.__subclasses__() for each in (own, *below(own))}

    named = {kind.__name__: kind.pictures for kind in below(ShowsPictures)}
    assert named.pop("ReleaseOptions", ("map",)) == ("map",)
    assert named == PICTURES


@pytest.mark.parametrize(("kind", "what"), [(kind, what) for kind, every in PICTURES.items() for what in every])
def test_a_picture_is_a_figure_with_words_and_without_a_cell(results, kind, what):
    result = results[kind]
    figure = result.plot(what)
    assert isinstance(figure, Figure)
    assert figure.axes
    assert figure._repr_png_().startswith(b"\x89PNG")
    drawn = result.drawn(what)
    assert drawn.text.endswith(".")
    assert drawn.title != drawn.text
    assert len(drawn.text) < 300
    shown = texts(figure) + drawn.text + drawn.title
    assert not [cell for cell in SENTINELS if cell.decode() in shown]
    assert not [word for word in ("nats", "NCP", "alpha", "beta", "ln ") if word in shown]


def test_the_first_picture_is_the_default_and_others_are_refused(results):
    made = results["Anonymization"]
    assert made.drawn().title == made.drawn("classes").title
    with pytest.raises(
        InvalidSettingError, match=r"There is no picture 'sizes'. Expected one of \['classes', 'loss'\]"
    ):
        made.plot("sizes")


def test_matplotlib_is_imported_when_something_is_drawn_and_pyplot_never():
    code = (
        "import sys, pandas as pd, privacy_assets as pa\n"
        "made = pa.anonymize(pd.DataFrame({'age': range(20)}), quasi_identifiers=['age'], k=5)\n"
        "assert 'matplotlib' not in sys.modules\n"
        "made.plot()\n"
        "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_table_of_labels_has_no_columns_of_ends():
    made = pa.anonymize(pd.DataFrame({"age": range(20)}), quasi_identifiers=["age"], k=5)
    assert list(made.labels) == ["age"]
    assert list(made.table) == ["age", "age_low", "age_high"]
