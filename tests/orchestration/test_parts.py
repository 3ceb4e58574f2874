"""Columns that the contract declares to be parts of one are one for the search, and the gate asks for that."""

import copy
import json

import pytest

from privacy_assets import InvalidSettingError
from tests.orchestration.project import CONTRACT, Project, failure_of, refusal


def with_parts(**part_of):
    contract = copy.deepcopy(CONTRACT)
    for column, name in part_of.items():
        contract["columns"][column]["part_of"] = name
    return contract


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def test_evidence_made_with_other_parts_is_refused_and_evidence_made_with_these_is_not(project):
    project.assess()
    parted = project.definitions(contract=with_parts(age="who", joined="who"))
    assert "(part_of)" in refusal(project.run(parted, "synthetic_release"))
    result = project.run(parted)
    assert result.success, failure_of(result)
    [release] = project.releases()
    manifest = json.loads((release / "manifest.json").read_text())
    settings = manifest["settings"]["mpucc_assessment"]
    assert settings["parts"] == {"who": ["age", "joined"]}
    assert settings["columns"] == ["who", "plan", "cost"]
    assert settings["complete_up_to"] == 3
    assert [each["column"] for each in manifest["columns"]] == ["age", "plan", "joined", "cost"]
    for contract in (CONTRACT, with_parts(age="who", plan="who"), with_parts(age="other", joined="other")):
        found = refusal(project.run(project.definitions(contract=contract), "synthetic_release"))
        assert "(part_of)" in found


CUT = [
    ["birth_year", "birth_month"],
    ["joined_year", "joined_month", "joined_day"],
    ["year", "month"],
    ["Hour of visit", "Minute of visit"],
    ["seen-month", "seen-day"],
]


@pytest.mark.parametrize("names", CUT)
def test_parts_that_the_names_show_are_declared(project, names):
    contract = copy.deepcopy(CONTRACT)
    contract["columns"] |= {name: {"type": "integer", "role": "quasi_identifier"} for name in names}
    with pytest.raises(InvalidSettingError, match="are parts of one moment by their names.*Write `part_of: .*date`"):
        project.definitions(contract=contract)
    parted = copy.deepcopy(contract)
    for name in names:
        parted["columns"][name]["part_of"] = "moment"
    assert project.definitions(contract=parted)
    if len(names) == 3:
        del parted["columns"][names[2]]["part_of"]
        with pytest.raises(InvalidSettingError, match="for each in the contract"):
            project.definitions(contract=parted)
    contract["columns"][names[0]]["role"] = "sensitive"
    if len(names) == 2:
        assert project.definitions(contract=contract)


def test_columns_of_different_moments_and_parts_beside_their_moment_are_not_asked_for(project):
    contract = copy.deepcopy(CONTRACT)
    names = ["birth_year", "visit_month", "yearly_income", "joined_year"]
    contract["columns"] |= {name: {"type": "integer", "role": "quasi_identifier"} for name in names}
    assert project.definitions(contract=contract)
