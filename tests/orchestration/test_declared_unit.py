"""Whose the rows of a release are: asked at the source, before anything is stored, and again by the gate."""

import copy
import json

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.synthetic import ExternalSynthetic, GivenSplit
from privacy_assets.release.policy import Limit, Policy
from tests.orchestration.project import Project, failure_of, key, refusal

CHECK = "rows_belong_to_the_declared_people"
DOUBTS = "nothing_suggests_other_people_than_declared"
REASON = "Rooms of the ward, which anybody may have; A. Lovelace"
POLICY = Policy((Limit("smallest_class", 5), Limit("privacy_risk_score", 0.999)))
COLUMNS = {
    "patient": {"type": "text", "role": "direct_identifier"},
    "stay": {"type": "integer", "role": "direct_identifier"},
    "house": {"type": "integer", "role": "direct_identifier"},
    "age": {"type": "integer", "role": "quasi_identifier"},
    "rent": {"type": "integer", "role": "quasi_identifier"},
    "illness": {"type": "text", "role": "sensitive"},
}


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def visits(n_people=300, seed=0):
    """Ten visits of each patient, five to a stay; two patients to a house."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(n_people), 10)
    table = pd.DataFrame(
        {
            "patient": [f"patient-{each}" for each in random.permutation(n_people)[who]],
            "stay": random.permutation(2 * n_people)[np.arange(len(who)) // 5],
            "house": random.permutation(n_people)[who // 2],
            "age": random.integers(20, 80, n_people)[who],
            "rent": 10 * random.integers(30, 60, n_people)[who // 2],
            "illness": random.choice(list("abcde"), len(who)),
        }
    )
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


def contract_of(person=None, **answers):
    """A contract whose person is a column, or each row; `answers` are reasons why columns are no person."""
    contract = {"columns": copy.deepcopy(COLUMNS)}
    if person is None:
        contract["one_row_per_person"] = True
    else:
        contract["columns"][person]["person"] = True
    for name, reason in answers.items():
        contract["columns"][name]["not_a_person"] = reason
    return contract


HOUSES = {"house": REASON}


def definitions_of(project, person=None, answers=None, **settings):
    given = {
        "contract": contract_of(person, **(answers or {})),
        "source": visits,
        "synthetic": None,
        "policy": POLICY,
        "anonymized": AnonymizationSettings(k=5),
    }
    return project.definitions(**(given | settings))


def evaluation_of(result):
    return next(each for each in result.get_asset_check_evaluations() if each.check_name == CHECK)


def test_without_a_unit_nothing_is_built(project):
    contract = contract_of("patient")
    del contract["columns"]["patient"]["person"]
    with pytest.raises(InvalidSettingError, match="does not say whose a row is"):
        definitions_of(project, contract=contract)


@pytest.mark.parametrize(
    ("person", "answers", "named"),
    [(None, {}, "'patient' repeats"), ("stay", HOUSES, "'patient' repeats"), ("patient", {}, "'house' repeats")],
)
def test_other_people_than_declared_are_refused_before_anything_is_stored(project, person, answers, named):
    result = project.run(definitions_of(project, person, answers))
    assert not result.success
    check = evaluation_of(result)
    assert (check.passed, check.severity, check.asset_key) == (False, dg.AssetCheckSeverity.ERROR, key("source"))
    assert named in check.description
    assert named in failure_of(result)
    assert "not_a_person" in failure_of(result)
    assert not result.get_asset_materialization_events()
    assert not project.stored("source").exists()
    assert project.everything_released() == []


@pytest.mark.parametrize(("person", "answers"), [("patient", HOUSES), ("house", {})])
def test_the_declared_people_are_released_with_the_answers_of_the_contract(project, person, answers):
    result = project.run(definitions_of(project, person, answers))
    assert result.success, failure_of(result)
    assert evaluation_of(result).passed
    (release,) = project.releases(side="anonymized")
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["settings"]["unit"] == [person]
    findings = {each["column"]: each["not_a_person"] for each in manifest["figures"]["unit"]["findings"]}
    assert {name: reason for name, reason in findings.items() if reason} == answers
    (verdict,) = (each for each in manifest["verdicts"] if each["name"] == CHECK)
    assert verdict["passed"] and all(reason in verdict["reason"] for reason in answers.values())
    page = (release / "report.html").read_text()
    assert ("Columns of the source whose values repeat like people" in page) == bool(findings)
    assert all(reason in page for reason in answers.values())
    # Households of two are classes of at least 5 households.
    assert manifest["figures"]["anonymity"]["k_people"] >= 5


def _anonymized(project):
    assert project.run(definitions_of(project, "patient", HOUSES), "source", "anonymized").success


def test_a_release_made_alone_is_decided_by_the_current_contract(project):
    project.begin_as(_anonymized)
    unanswered = definitions_of(project, "patient", {"rent": REASON})
    reason = refusal(project.run(unanswered, "anonymized_release", checks=False), "anonymized")
    assert "'house' repeats" in reason
    in_rows = definitions_of(project, None, dict.fromkeys(COLUMNS, REASON))
    reason = refusal(project.run(in_rows, "anonymized_release", checks=False), "anonymized")
    assert "was not examined for the people that the current contract declares" in reason
    assert project.everything_released() == []
    result = project.run(definitions_of(project, "patient", HOUSES), "anonymized_release")
    assert result.success, failure_of(result)


def test_a_source_reported_by_hand_was_not_examined(project):
    project.begin_as(_anonymized)
    event = project.instance().fetch_materializations(key("source"), limit=1).records[0].asset_materialization
    forged = dg.AssetMaterialization(key("source"), metadata=event.metadata, tags=event.tags)
    project.instance().report_runless_asset_event(forged)
    result = project.run(definitions_of(project, "patient", HOUSES), "anonymized_release", checks=False)
    assert "was not examined for the people" in refusal(result, "anonymized")


def test_a_person_in_every_row_is_a_warning(project):
    def one_each():
        return visits().drop_duplicates("patient", ignore_index=True)

    result = project.run(definitions_of(project, "patient", HOUSES, source=one_each))
    assert result.success, failure_of(result)
    (release,) = project.releases(side="anonymized")
    verdicts = {each["name"]: each for each in json.loads((release / "manifest.json").read_text())["verdicts"]}
    assert verdicts[DOUBTS]["severity"] == "warn" and not verdicts[DOUBTS]["passed"]
    assert "declare `one_row_per_person: true`" in verdicts[DOUBTS]["reason"]


def test_both_sides_of_a_given_split_are_examined_together(project):
    table = visits()
    first = table["patient"].isin(table["patient"].unique()[:150])
    split = GivenSplit(lambda: table[first], lambda: table[~first])
    made = {"split": split, "source": None, "anonymized": None}
    made["synthetic"] = ExternalSynthetic(lambda: visits(300, 1).drop(columns=["patient", "stay", "house"]))
    result = project.run(definitions_of(project, None, **made))
    assert "'patient' repeats" in failure_of(result)
    assert evaluation_of(result).asset_key == key("original")
    assert not project.stored("original").exists()
    project.run(definitions_of(project, "patient", HOUSES, **made))
    decided = project.decided(definitions_of(project, "patient", HOUSES, **made))
    assert {each.name: each.passed for each in decided}[CHECK]
    unanswered = project.decided(definitions_of(project, "patient", **made))
    assert not {each.name: each.passed for each in unanswered}[CHECK]
