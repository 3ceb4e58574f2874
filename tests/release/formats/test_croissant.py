"""``croissant.json``: what the library of the format says about it, and the records that it loads by it."""

import logging

import mlcroissant
import pandas as pd
import pytest

from privacy_assets.release.formats.croissant import croissant_of
from tests.release.formats.released import WRITTEN, declared, manifest_of, release, table_of_types
from tests.release.test_files import RECORD

# These libraries use what they, or others, deprecate.
pytestmark = pytest.mark.filterwarnings(r"ignore::DeprecationWarning:(rdflib|pyshacl|mlcroissant)\b.*")
NOT_IN_A_MANIFEST = ("citeAs", "license", "version")
TYPES = ["Integer", "Float", "Integer", "Boolean", "Text", "Text", "DateTime"]


@pytest.fixture(autouse=True)
def _quiet(monkeypatch, tmp_path):
    monkeypatch.setattr(logging.getLogger("absl"), "disabled", True)


def read(directory):
    dataset = mlcroissant.Dataset(jsonld=directory / "croissant.json")
    issues = dataset.metadata.ctx.issues
    assert not issues.errors
    # Nothing else is missing, and no term of the context is unknown.
    assert sorted(each.split('"')[1].rpartition("/")[2] for each in issues.warnings) == list(NOT_IN_A_MANIFEST)
    return dataset


@pytest.mark.parametrize("rows_per_part", [1_000, 2])
def test_the_library_of_the_format_loads_the_released_records(tmp_path, rows_per_part):
    table, record = table_of_types()
    directory = release(tmp_path, record, table, rows_per_part=rows_per_part)
    dataset = read(directory)
    (record_set,) = dataset.metadata.record_sets
    assert [field.name for field in record_set.fields] == list(table.columns)
    assert [str(field.data_types[0]).rpartition("/")[2] for field in record_set.fields] == TYPES
    loaded = pd.DataFrame(list(dataset.records("records")))
    loaded = loaded.map(lambda cell: cell.decode() if isinstance(cell, bytes) else cell)
    assert len(loaded) == len(table)
    for name, column in zip(table.columns, loaded.columns, strict=True):
        for found, released in zip(loaded[column], table[name], strict=True):
            assert (pd.isna(found) and pd.isna(released)) or found == released
    files = {each.id: each.sha256 for each in dataset.metadata.distribution if hasattr(each, "sha256")}
    recorded = manifest_of(directory)["files"]
    assert files == {name: recorded[name]["sha256"] for name in files}
    assert set(recorded) - set(files) == {"report.html", "croissant.json", "dcat.jsonld"}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_whatever_a_person_wrote_stays_a_text(tmp_path, text):
    metadata = read(release(tmp_path, declared(text))).metadata
    assert metadata.data_use_cases == [text]
    assert text in metadata.data_release_maintenance_plan
    assert len(metadata.record_sets) == 1


def test_it_says_how_records_were_made_what_protects_them_and_what_is_open(tmp_path):
    metadata = read(release(tmp_path, declared("Teaching statistics"))).metadata
    assert metadata.description == "2 synthetic records, admitted under a policy of its own."
    assert metadata.data_collection.startswith("Drawn from a model of people's records; how their records were")
    assert metadata.personal_sensitive_information == [
        "Direct identifiers are not released.",
        "Columns with the role quasi_identifier: age.",
        "0.05",
    ]
    assert metadata.data_limitations is None
    assert metadata.data_release_maintenance_plan == "Retention: Teaching statistics. Review by: 2027-09-30."


def test_open_points_are_limitations_and_changed_policies_are_named(tmp_path):
    manifest = manifest_of(release(tmp_path, RECORD))
    verdict = manifest["verdicts"][0] | {"passed": False, "severity": "warn", "reason": "an open point"}
    policy = manifest["policy"] | {"use_case": "research_sharing", "changes": ["limits"]}
    made = croissant_of(manifest | {"verdicts": [verdict], "policy": policy})
    assert made["rai:dataLimitations"] == ["an open point"]
    assert made["description"].endswith("admitted under the policy research_sharing with changes.")
