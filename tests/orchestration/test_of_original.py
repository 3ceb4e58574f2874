"""Anonymized records of the originals of a split: the control of the split is that of their membership."""

import json

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize_with
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.comparison.compare import compare_admitted
from privacy_assets.orchestration.settings.anonymized import (
    AnonymizationSettings,
    OtherReleaseSettings,
    ReidentificationSettings,
)
from privacy_assets.orchestration.settings.options import Candidate, OptionsSettings
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import GivenSplit, Split, Synthesis
from privacy_assets.pipeline.settings.linkage import LINKAGE_AUDIT, LinkageAuditSettings
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.pipeline.settings.utility import UtilitySettings, worth_stage
from privacy_assets.reidentification.membership import assess_membership
from privacy_assets.release.metrics import SEMANTIC
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.synthesis.split import split_records
from tests.orchestration.project import CONTRACT, Project, blocked_by, failure_of, people, refusal, settings_of
from tests.orchestration.test_anonymized_release import (
    assert_refused,
    assert_released,
    definitions_of,
    policy_of,
    released_table,
    run_release,
)
from tests.orchestration.test_linked_rows import contract as ratings_contract
from tests.orchestration.test_linked_rows import ratings
from tests.orchestration.test_membership import UPPER, page_of
from tests.orchestration.test_records_assessments import CANDIDATES, PROBABILITY

OF_ORIGINAL = AnonymizationSettings(k=5, of="original")


def of_original(project, *limits, **settings):
    policy = policy_of(5, *(limits or (PROBABILITY,)))
    return definitions_of(project, **({"policy": policy, "anonymized": OF_ORIGINAL, "split": Split(0.7)} | settings))


def stored(project, stage):
    found = read_artifact(project.stored(stage))
    return found.frames["table"] if isinstance(found, Artifact) else found


def test_the_control_of_the_split_says_what_the_records_tell_of_membership(project):
    result = project.run(of_original(project, Limit(UPPER, 0.2), PROBABILITY))
    assert_released(project, result)
    table, manifest = released_table(project)
    scores = manifest["figures"][CANDIDATES]
    assert (scores["membership_n_source"], scores["membership_n_control"], len(table)) == (210, 90, 210)
    assert scores["membership_advantage"] == 1 - scores["membership_found_control"]
    low, high = scores["membership_advantage_interval"]
    assert low < scores["membership_advantage"] < high == scores[UPPER]
    assert "210 people in the source and 90 others" in page_of(project)
    (warned,) = [verdict for verdict in manifest["verdicts"] if verdict["metric"] == UPPER]
    assert (warned["passed"], warned["value"]) == (False, scores[UPPER])
    assert manifest["settings"]["split"] == {"train_fraction": 0.7}


def test_only_people_of_the_originals_are_released(project):
    costs = np.random.default_rng(1).permutation(3000)[:300] / 10
    people(300, 1).assign(cost=costs).to_parquet(project.root / "data" / "people.parquet", index=False)
    assert_released(project, project.run(of_original(project)))
    table, _ = released_table(project)
    original, control = (set(stored(project, stage)["cost"]) for stage in ("original", "control"))
    assert set(table["cost"]) == original
    assert (len(original), len(control), original & control) == (210, 90, set())


def test_the_figures_are_those_of_the_functions(project):
    assert_released(project, project.run(of_original(project)))
    original, control = (stored(project, stage) for stage in ("original", "control"))
    asked = settings_of(of_original(project)).generalization("original")
    anonymization = anonymize_with(original, asked.settings, asked.hierarchies)
    expected = assess_membership(anonymization, original, control).scores
    found = released_table(project)[1]["figures"][CANDIDATES]
    assert {name: found[name] for name in expected} == json.loads(json.dumps(expected))


def test_a_split_that_is_made_again_makes_the_evidence_stale(project):
    definitions = of_original(project)
    assert project.run(definitions, "source", "original", "control", "anonymized", CANDIDATES).success
    assert project.refused_because(definitions, "anonymized") == ""
    again = of_original(project, split=Split(0.7, seed=1))
    assert project.run(again, "original", "control").success
    reason = project.refused_because(again, "anonymized")
    assert "anonymized was made from an earlier version of ['original']" in reason
    assert "other than those recorded for ['original', 'control']" in reason
    assert_refused(project, run_release(project, again), "an earlier version of ['original']")
    assert_released(project, project.run(again, "anonymized", CANDIDATES, "anonymized_release"))


def test_a_new_source_makes_the_evidence_stale(project):
    definitions = of_original(project)
    assert project.run(definitions, "source", "original", "control", "anonymized", CANDIDATES).success
    project.write_tables(seed=2)
    assert project.run(definitions, "source").success
    assert_refused(
        project, run_release(project, definitions), "original was made from an earlier version of ['source']"
    )


def test_records_of_the_source_are_not_those_of_the_originals(project):
    of_source = definitions_of(project, policy=policy_of(5, PROBABILITY), split=Split(0.7))
    assert project.run(of_source, "source", "anonymized", CANDIDATES).success
    definitions = of_original(project)
    assert project.run(definitions, "original", "control").success
    reason = project.refused_because(definitions, "anonymized")
    assert "anonymized was made from an earlier version of ['original']" in reason
    assert "membership_control differs" in reason


def test_every_stage_of_the_side_is_of_the_originals(project):
    limits = Limit("smallest_class", 3), Limit("maximum_semantic_risk", 0.5), PROBABILITY
    result = project.run(
        of_original(
            project,
            policy=Policy(limits),
            semantic_risk=SemanticRiskSettings(
                withhold=True, of_source=True, scales={"cost": {"ordinal": [5, 10, 15, 20, 25]}}
            ),
            linkage_audit=LinkageAuditSettings(),
            utility=UtilitySettings(),
            options=OptionsSettings(candidates=[Candidate(anonymized=OF_ORIGINAL)], n_seeds=2),
        )
    )
    assert_released(project, result)
    of_table = (SEMANTIC, f"source_{SEMANTIC}", CANDIDATES, LINKAGE_AUDIT, worth_stage("anonymized"), "anonymized")
    for stage in of_table:
        made_of = read_artifact(project.stored(stage)).made_of
        assert made_of["original"] == fingerprint(stored(project, "original"))
        assert "source" not in made_of


def test_both_sides_have_one_split(project):
    risk, required = Limit("privacy_risk_score", 0.999), RequiredSettings(control_records=40, detectable_share=None)
    policy = Policy((risk, Limit("smallest_class", 5), Limit(UPPER, 0.9)), required)
    project.write_tables()
    result = project.run(project.definitions(policy=policy, anonymized=OF_ORIGINAL))
    assert result.success, failure_of(result)
    assert released_table(project)[1]["figures"][CANDIDATES]["membership_n_control"] == 60


@pytest.mark.parametrize("partitions", [(), ("north",)])
def test_a_given_split_is_anonymized_and_examined(tmp_path, partitions):
    project = Project(tmp_path, partitions)
    suffix = "-{partition_key}" if partitions else ""
    for stage, n_people, seed in (("original", 250, 5), ("control", 80, 6)):
        path = project.root / "data" / f"{stage}{suffix.format(partition_key='north')}.parquet"
        people(n_people, seed).to_parquet(path, index=False)
    sides = {
        side: TableFile(str(project.root / "data" / f"{side}{suffix}.parquet")) for side in ("original", "control")
    }
    definitions = of_original(project, source=None, split=GivenSplit(**sides))
    partition = partitions[0] if partitions else None
    assert_released(project, project.run(definitions, partition=partition), partition)
    written = project.releases(partition, "anonymized")[-1]
    scores = json.loads((written / "manifest.json").read_text())["figures"][CANDIDATES]
    assert (scores["membership_n_source"], scores["membership_n_control"]) == (250, 80)


def test_a_given_split_with_a_column_that_identifies_is_refused(project):
    sides = {}
    for stage, seed in (("original", 5), ("control", 6)):
        mailed = people(100, seed).assign(mail=[f"{seed}.{number}@example.org" for number in range(100)])
        sides[stage] = lambda mailed=mailed: mailed
    contract = {"columns": CONTRACT["columns"] | {"mail": {"type": "text", "role": "other"}}}
    result = project.run(of_original(project, contract=contract, source=None, split=GivenSplit(**sides)))
    assert "In original" in failure_of(result)
    assert "mail" in failure_of(result)
    assert project.everything_released() == []


def test_links_are_found_among_the_rows_of_the_originals(project):
    shuffled = ratings().sample(frac=1, random_state=1)
    settings = {"policy": "research_sharing", "anonymized": AnonymizationSettings(of="original")}
    result = project.run(of_original(project, contract=ratings_contract(), source=lambda: shuffled, **settings))
    assert "released values link the rows of a person (1): 'pseudonym'" in refusal(result, "anonymized")


def test_links_by_a_removed_column_of_a_given_split_are_refused(project):
    own = ratings_contract()
    del own["columns"]["pseudonym"]
    own["columns"]["card"] = {"type": "text", "role": "direct_identifier", "not_a_person": "Card, decided by the team"}
    own["columns"]["income"] = {"type": "integer", "role": "sensitive"}
    table = ratings().drop(columns="pseudonym")
    number = table["customer"].str.split().str[1].astype(int)
    # Two customers share a card, by which only the income goes: no value is of one customer.
    table = table.assign(card="card " + (number // 2).astype(str), income=number // 2 * 10)
    split = GivenSplit(lambda: table[number < 200], lambda: table[number >= 200])
    settings = {"policy": "development", "anonymized": AnonymizationSettings(of="original")}
    result = project.run(of_original(project, contract=own, source=None, split=split, **settings))
    assert "In original, released values link the rows of a person" in failure_of(result)
    assert project.everything_released() == []


def test_a_limit_on_leakage_is_not_about_a_split_without_synthetic_records(project):
    limits = Limit("smallest_class", 5), Limit("leakage_detected", 0), PROBABILITY
    assert_released(
        project, project.run(of_original(project, policy=Policy(limits, RequiredSettings(control_records=2000))))
    )


def test_people_on_both_sides_of_a_given_split_are_refused(project):
    table = people(200, 5)
    split = GivenSplit(lambda: table[:150], lambda: table[140:])
    result = project.run(of_original(project, source=None, split=split))
    assert "10 people have records in both original and control" in failure_of(result)


def test_a_strict_limit_refuses(project):
    strict = of_original(project, Limit(UPPER, 0.2, severity="error"))
    assert blocked_by(project.run(strict)) == {f"{UPPER}_is_at_most_its_limit"}


def test_rows_of_a_person_are_counted_among_the_originals(project):
    one = people(200, 3)
    pd.concat([one, one.assign(cost=one["cost"] + 0.5)], ignore_index=True).to_parquet(
        project.root / "data" / "people.parquet", index=False
    )
    assert_released(project, project.run(of_original(project)))
    manifest = released_table(project)[1]
    assert manifest["figures"][CANDIDATES]["membership_n_source"] == 140
    assert len(released_table(project)[0]) == 280


def test_another_release_of_originals_is_refused_with_what_to_do(project):
    keyed = people(300, 1).assign(number=range(300))
    number = {"type": "integer", "role": "other", "leaves_as_is": "Links the releases of this test."}
    settings = {"contract": {"columns": CONTRACT["columns"] | {"number": number}}, "source": lambda: keyed}
    other = of_original(project, name="others", **settings)
    with project.instance() as instance:
        stages = [dg.AssetKey(["others", stage]) for stage in ("source", "original", "control", "anonymized")]
        made = dg.materialize(
            [*other.assets],
            selection=dg.AssetSelection.assets(*stages),
            resources=dict(other.resources),
            instance=instance,
        )
        assert made.success
    named = ReidentificationSettings(other_releases=(OtherReleaseSettings("others", "number", release="others"),))
    definitions = of_original(project, reidentification=named, **settings)
    both = dg.Definitions.merge(definitions, other)
    result = project.run(both, "source", "original", "control", "anonymized", CANDIDATES)
    assert "Name what it published by `directory`" in failure_of(result)


def test_candidates_of_a_comparison_are_of_the_originals(project):
    release = settings_of(of_original(project, PROBABILITY, Limit(UPPER, 0.99)))
    table = release.contract.admit(people(300, 1))
    candidates = [Candidate(anonymized=AnonymizationSettings(k=5, of=of)) for of in ("source", "original")]
    options = OptionsSettings(candidates=candidates, n_seeds=2)
    found = compare_admitted(release, table, options)
    assert list(found.candidates) == ["k=5", "k=5 of=original"]
    assert found.candidates["k=5 of=original"]["settings"]["anonymized"] == {"k": 5, "of": "original"}
    assert found.table["is_admitted"].all()
    person = release.contract.person
    original, control = split_records(table, train_fraction=0.7, seed=options.seeds.split, person=person)
    asked = release.generalization("original")
    anonymization = anonymize_with(original, asked.settings, asked.hierarchies)
    measured = found.table.set_index("candidate")[UPPER]
    assert measured["k=5 of=original"] == assess_membership(anonymization, original, control).scores[UPPER]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"split": None}, "anonymizes the originals of a split, but has none. Give one, for example"),
        ({"split": GivenSplit(people, people)}, "either a source, or a GivenSplit with original and control; .* both"),
        ({"source": None}, "either a source, or a GivenSplit with original and control; it has neither"),
        (
            {"anonymized": AnonymizationSettings(k=5, of="original", membership_control=people)},
            "Leave membership_control out, or `of: original`",
        ),
        ({"anonymized": AnonymizationSettings(k=5, of="control")}, "of is 'control'. Expected one of source, original"),
        (
            {"anonymized": None, "synthetic": Synthesis(), "generalize_synthetic": OF_ORIGINAL},
            "Expected that only in `anonymized`",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_when_the_definitions_are_built(project, settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        of_original(project, policy=Policy((Limit("smallest_class", 5), Limit("privacy_risk_score", 0.9))), **settings)
