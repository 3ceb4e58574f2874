"""People with several records on the synthetic side: the stages count them as people, and say so."""

import json

import numpy as np
import pytest

from tests.orchestration.project import Project, failure_of, people, synthetic_people


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def visits(n_people, seed):
    """People with three records each, which differ in the cost alone."""
    table = people(n_people, seed)
    table = table.loc[table.index.repeat(3)].reset_index(drop=True)
    return table.assign(cost=np.random.default_rng(seed).integers(0, 3000, len(table)) / 10)


def test_the_stages_count_people_and_the_report_says_so(project):
    visits(300, 1).to_parquet(project.root / "data" / "people.parquet", index=False)
    synthetic_people(180, 5).assign(cost=visits(60, 5)["cost"]).to_parquet(
        project.root / "data" / "synthetic.parquet", index=False
    )
    result = project.run(project.definitions())
    assert result.success, failure_of(result)
    [release] = project.releases()
    manifest = json.loads((release / "manifest.json").read_text())
    settings, figures = manifest["settings"]["mpucc_assessment"], manifest["figures"]
    assert settings["n_people"] == {"original": 240, "control": 60}
    assert settings["n_rows"]["original"] == 720
    assert figures["control"]["counted"] == "people"
    assert figures["control"]["n_matched_records"] == 60
    assert figures["mpucc_assessment"]["people_assessed"] == 240
    assert "240 people" in (release / "report.html").read_text()
