"""The report through Dagster: what is on the page that leaves with a release."""

import base64
import json
import shutil

import pandas as pd
import pytest

from privacy_assets.mpucc.assess import MpuccAssessment
from privacy_assets.mpucc.column_changes import measure_column_changes
from privacy_assets.mpucc.preprocess import PreprocessedTables
from privacy_assets.pipeline.settings.utility import ReportSettings
from privacy_assets.release.report import percent
from tests.orchestration.project import ASSESSMENT, key

pytestmark = pytest.mark.pictures


@pytest.fixture
def released(project):
    definitions = project.definitions(formats=("csv",))
    assert project.run(definitions).success
    return project, definitions


def page_of(project):
    return (project.releases()[-1] / "report.html").read_text()


def stored(project, stage, kind):
    from privacy_assets.orchestration.private.resources import PrivateParquetIOManager

    return kind.from_artifact(PrivateParquetIOManager(str(project.private)).load(key(stage), None))


def test_the_page_shows_what_was_measured_on_the_very_tables_that_were_assessed(released):
    project, definitions = released
    page = page_of(project)
    tables = stored(project, "preprocessed", PreprocessedTables)
    changes = measure_column_changes(tables, stored(project, ASSESSMENT, MpuccAssessment), pairs=True)
    assert len(changes) >= 4
    for change in changes.to_dict("records"):
        cells = (change["column"], f"{change['change']}: {change['how']}", percent(change["identification_rate"]))
        assert all(f">{cell}</t" in page for cell in cells)
    assert "{n_measured} of {n_changes} changes measured".format(**changes.attrs) in page
    assert "Bar chart: synthetic records that single out a real one, by columns" in page
    assert "synthetic.csv" in page
    for stage in (ASSESSMENT, "disclosure_assessment"):
        for picture in (project.stored(stage)).glob("*.png"):
            assert base64.b64encode(picture.read_bytes()).decode() in page

    # A release of its own later: the tables that were assessed are gone, and so is what could be measured on them.
    shutil.rmtree(project.stored("preprocessed"))
    assert project.run(definitions, "synthetic_release").success
    later = page_of(project)
    assert "was not measured, because the assessed tables are no longer stored" in later
    assert "columns were dropped" not in later


def test_the_report_measures_as_many_changes_of_columns_as_asked_for(released):
    project, _ = released
    for asked, said in ((3, "3 of "), (0, "was not measured, because it is switched off")):
        assert project.run(
            project.definitions(report=ReportSettings(column_changes=asked)), "synthetic_release"
        ).success
        assert said in page_of(project)


def test_no_record_of_the_tables_is_on_the_page(released):
    """Neither side's rows: their ids, or their values next to each other."""
    project, _ = released
    page = page_of(project)
    people = pd.read_parquet(project.root / "data" / "people.parquet")
    assert not [name for name in people["patient"] if name in page]
    assert not [str(day) for day in people["joined"].dt.date.unique() if str(day) in page]


def test_what_a_release_declares_is_on_the_page_and_in_the_manifest(project):
    declared = {"purpose": "Teaching statistics", "retention": "Until 2028"}
    assert project.run(project.definitions(declaration=declared)).success
    (written,) = project.releases()
    assert json.loads((written / "manifest.json").read_text())["declaration"] == declared
    page = page_of(project)
    assert "Teaching statistics" in page
    # Recipient and who decided the roles, also on the first page; the legal basis; why a nearly unique column leaves.
    assert page.count("not stated, and not demanded by the policy") == 5
    assert page.count("not stated") == 6
