"""Related tables through Dagster: released together, or refused together."""

import json

import pandas as pd
import pytest

from privacy_assets.release.verification import verify_release
from tests.orchestration.project import failure_of
from tests.orchestration.related_project import RelatedProject, files_of, tables_of
from tests.related import clinic

N = 400


@pytest.fixture
def project(tmp_path):
    made = RelatedProject(tmp_path)
    made.write(clinic(N, 1))
    return made


def test_all_tables_leave_together(project):
    result = project.run(project.definitions())
    assert result.success, failure_of(result)
    released = project.release()
    found = verify_release(released, max_bytes=None)
    assert found.problems == ()
    expected = {"people.parquet", "visits.parquet", "drugs.parquet", "manifest.json", "report.html"}
    assert files_of(released) == expected | {"croissant.json", "dcat.jsonld"}
    manifest, tables = json.loads((released / "manifest.json").read_text()), tables_of(released)
    assert manifest["n_records"] == len(tables["people"]) == N / 2
    assert tables["people"]["patient"].tolist() == list(range(1, N // 2 + 1))
    assert {name: own["rows"] for name, own in manifest["tables"].items()} == {n: len(t) for n, t in tables.items()}
    assert manifest["links"] == {
        "visits": {"parent": "people", "key": "patient", "order": "date"},
        "drugs": {"parent": "people", "key": "patient", "order": None},
    }
    assert tables["visits"]["patient"].isin(tables["people"]["patient"]).all()
    assert list(tables["visits"].columns) == ["date", "diagnosis", "patient", "cost", "paid"]
    assert pd.api.types.is_integer_dtype(tables["visits"]["patient"])
