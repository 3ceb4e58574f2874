"""Membership of anonymized records: with people who are not in the source, and without, through the gate."""

import json

import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import Synthesis
from privacy_assets.release.metrics import DISCLOSURE
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from tests.orchestration.project import blocked_by, failure_of, people
from tests.orchestration.test_anonymized_release import (
    assert_refused,
    assert_released,
    definitions_of,
    policy_of,
    released_table,
    run_release,
)
from tests.orchestration.test_records_assessments import CANDIDATES, PROBABILITY

UPPER, CONTROL = "membership_advantage_upper", "membership_control"


def with_control(project, *limits, **settings):
    source = TableFile(str(project.root / "data" / "held_out.parquet"))
    anonymized = AnonymizationSettings(k=5, membership_control=source)
    return definitions_of(project, 5, *(limits or (PROBABILITY,)), anonymized=anonymized, **settings)


def write_control(project, table):
    table.to_parquet(project.root / "data" / "held_out.parquet", index=False)


def page_of(project, side="anonymized"):
    return (project.releases(side=side)[-1] / "report.html").read_text()


def test_without_a_control_the_report_has_a_range_with_its_reason(project):
    assert_released(project, project.run(definitions_of(project, policy=policy_of(5, PROBABILITY))))
    scores = released_table(project)[1]["figures"][CANDIDATES]
    assert scores["membership_advantage"] is None
    low, high = scores["membership_advantage_interval"]
    assert 0 < low < high == scores[UPPER] < 1
    said = page_of(project)
    assert "300 people in the source<" in said
    assert "of others, estimated without a control (there is no control): advantage 0." in said
    assert "k = 5 does not limit this." in said


def test_people_outside_the_source_give_the_advantage_and_a_warning(project):
    write_control(project, people(200, 77))
    result = project.run(with_control(project, Limit(UPPER, 0.2), PROBABILITY))
    assert_released(project, result)
    manifest = released_table(project)[1]
    scores = manifest["figures"][CANDIDATES]
    assert (scores["membership_n_source"], scores["membership_n_control"]) == (300, 200)
    assert scores["membership_advantage"] == 1 - scores["membership_found_control"]
    low, high = scores["membership_advantage_interval"]
    assert low < scores["membership_advantage"] < high == scores[UPPER]
    (warned,) = [verdict for verdict in manifest["verdicts"] if verdict["metric"] == UPPER]
    assert (warned["passed"], warned["severity"], warned["value"]) == (False, "warn", scores[UPPER])
    assert "random share of the people" in warned["advice"]
    assert "300 people in the source and 200 others" in page_of(project)
    metadata = result.asset_materializations_for_node(f"people__{CANDIDATES}")[0].metadata
    assert metadata["membership_advantage"].value == scores["membership_advantage"]


def test_a_limit_of_severity_error_refuses(project):
    write_control(project, people(200, 77))
    strict = with_control(project, Limit(UPPER, 0.2, severity="error"))
    assert blocked_by(project.run(strict)) == {f"{UPPER}_is_at_most_its_limit"}
    assert_refused(project, run_release(project, strict), f"{UPPER} is 0.")


def test_a_changed_control_makes_the_evidence_stale(project):
    write_control(project, people(200, 77))
    definitions = with_control(project)
    assert project.run(definitions, "source", "anonymized", CONTROL, CANDIDATES).success
    assert project.refused_because(definitions, "anonymized") == ""
    write_control(project, people(200, 78))
    assert project.run(definitions, CONTROL).success
    assert_refused(project, run_release(project, definitions), f"other than those recorded for ['{CONTROL}']")
    without = definitions_of(project, policy=policy_of(5, PROBABILITY))
    assert f"{CONTROL} differs from what the current policy" in project.refused_because(without, "anonymized")
    assert_released(project, project.run(definitions, CANDIDATES, "anonymized_release"))


def test_people_of_the_source_in_the_control_are_refused_with_their_number(project):
    both = pd.concat([people(100, 77), people(300, 1)[:3]], ignore_index=True)
    write_control(project, both.assign(patient=both["patient"].str.upper()))
    result = project.run(with_control(project))
    assert "3 of 103 people of the control are people of the source" in failure_of(result)
    renamed = pd.concat([people(100, 77), people(300, 1)[:150]], ignore_index=True)
    write_control(project, renamed.assign(patient=[f"other {place}" for place in range(250)]))
    result = project.run(with_control(project))
    assert "150 of 250 people of the control equal one of the source" in failure_of(result)
    assert project.everything_released() == []


def test_a_control_is_for_records_that_are_made_of_the_source(project):
    of_files = AnonymizationSettings(k=5, membership_control=TableFile("data/held_out.parquet"))
    with pytest.raises(InvalidSettingError, match="whose control is that of the split"):
        project.definitions(synthetic=Synthesis(), generalize_synthetic=of_files)


def test_one_limit_is_on_the_records_of_both_sides(project):
    risk, required = Limit("privacy_risk_score", 0.999), RequiredSettings(control_records=40, detectable_share=None)
    policy = Policy((risk, Limit("smallest_class", 5), Limit(UPPER, 0.15)), required)
    project.write_tables()
    result = project.run(project.definitions(policy=policy, anonymized=AnonymizationSettings(k=5)))
    assert result.success, failure_of(result)
    for side, assessment in (("synthetic", DISCLOSURE), ("anonymized", CANDIDATES)):
        written = project.releases(side=side)[-1]
        manifest = json.loads((written / "manifest.json").read_text())
        scores = manifest["figures"][assessment]
        (decided,) = [verdict for verdict in manifest["verdicts"] if verdict["metric"] == UPPER]
        assert (decided["value"], decided["severity"]) == (scores[UPPER], "warn")
        assert "Can somebody who knows a record tell that its person is in the source?" in page_of(project, side)
    said = page_of(project, "synthetic")
    assert "by the distance to the nearest record, advantage" in said
    assert "originals are closer than everybody in the control" in said
