"""Values of few people through a release: refused where they would leave, redrawn where records are made here."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest

from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.synthetic import ExternalSynthetic, Split, Synthesis
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.extras import CART, NEEDS_TREES
from tests.orchestration.project import (
    ADMITS,
    ASSESSMENT,
    NAME,
    failure_of,
    key,
    people,
    refusal,
    synthetic_people,
)

RARE = "diver SENTINEL"
# Seeds of the split.
DIVER_IS_ORIGINAL, DIVER_IS_CONTROL = 1, 0
CHECK = "rare_values_released_is_at_most_its_limit"
CONTRACT = {
    "columns": {
        "patient": {"type": "text", "role": "direct_identifier", "person": True},
        "age": {"type": "integer", "role": "quasi_identifier"},
        "plan": {"type": "text", "role": "quasi_identifier", "nullable": True},
        "job": {"type": "text", "role": "other"},
    }
}


def workers(n_records: int, seed: int) -> pd.DataFrame:
    """Every tenth record is a second one of the patient before, and the last patient's nine are all of the divers."""
    random = np.random.default_rng(seed)
    table = people(n_records, seed)[["patient", "age", "plan"]]
    table["job"] = random.choice(["cook", "nurse", "smith"], n_records)
    table.loc[9::10, "patient"] = table["patient"][8::10].to_numpy()
    table.loc[n_records - 9 :, ["patient", "job"]] = ["the diver", RARE]
    return table


def source() -> pd.DataFrame:
    return workers(300, 1)


def with_one_rare_job() -> pd.DataFrame:
    made = synthetic_people(180, 3)[["age", "plan"]].assign(job=workers(180, 3)["job"].replace(RARE, "cook"))
    made.loc[:1, "job"] = RARE
    return made


class Echo:
    """A synthesizer of one's own that gives back what it saw, in another order."""

    name = "echo"

    def __init__(self, keeps):
        self.keeps = keeps
        self.settings = {"keeps": keeps}

    def fit(self, table, *, seed):
        self.table = table
        return self

    def sample(self, n_records, *, seed):
        random = np.random.default_rng(seed)
        made = {name: column.sample(frac=1, random_state=random).to_numpy() for name, column in self.table.items()}
        job = pd.Series(made["job"], dtype=self.table["job"].dtype)
        made = pd.DataFrame(made).astype(self.table.dtypes)
        return made if self.keeps else made.assign(job=job.where(job != RARE, "cook"))


def policy(severity="error", people_per_value=None, limit=0):
    """As a preset has it, but for a score that these records meet."""
    return Policy(
        (
            Limit("privacy_risk_score", ADMITS, "at_most"),
            Limit("rare_values_released", limit, severity=severity),
            Limit("smallest_class", 5),
        ),
        RequiredSettings(control_records=20, people_per_value=people_per_value),
    )


def definitions_of(project, synthetic, **settings):
    arguments = {"contract": CONTRACT, "policy": policy(), "source": source, "split": Split(seed=DIVER_IS_ORIGINAL)}
    return project.definitions(synthetic=synthetic, **arguments | settings)


def _split(project):
    assert project.run(definitions_of(project, Synthesis()), "source", "original", "control").success


def manifest_of(project):
    return json.loads((project.releases()[-1] / "manifest.json").read_text())


def failed_check(result):
    (failed,) = [each for each in result.get_asset_check_evaluations() if not each.passed]
    assert failed.check_name == CHECK
    return failed


def test_a_synthesizer_that_reproduces_the_value_of_one_person_is_refused_with_its_column(project):
    refused = project.run(definitions_of(project, Synthesis(Echo(keeps=True))))
    failed = failed_check(refused)
    assert failed.asset_key == key("synthetic")
    reason = "rare_values_released is 1; expected at most 0 (values shared by fewer than 5 people, by column: 'job': 1)"
    assert failed.description == reason
    assert "min_atom" in failed.metadata["advice"].value
    assert project.everything_released() == []
    # What comes after is blocked in this run; a later one of the release alone is refused by the release itself.
    stages = ("preprocessed", ASSESSMENT, "synthetic_release")
    alone = project.run(definitions_of(project, Synthesis(Echo(keeps=True))), *stages, checks=False)
    assert reason in refusal(alone)
    assert RARE not in failure_of(alone)

    stages = ("synthetic", *stages)
    honest = project.run(definitions_of(project, Synthesis(Echo(keeps=False))), *stages)
    assert honest.success, failure_of(honest)
    manifest = manifest_of(project)
    assert manifest["figures"]["rare_values"] == {
        "people_per_value": 5,
        "rare_values_released": 0,
        "records_with_rare_values": 0,
        "by_column": {"plan": {"n_values": 0, "n_records": 0}, "job": {"n_values": 0, "n_records": 0}},
    }
    assert "redrawn" not in manifest["settings"]["synthetic"]
    assert manifest["refusals_before"] == 2


@pytest.mark.parametrize("method", ["gaussian_copula", CART])
def test_the_embedded_synthesizers_redraw_what_one_person_has(project, method):
    project.begin_as(_split)
    made = project.run(definitions_of(project, Synthesis(method), policy=policy(people_per_value=12)), "synthetic")
    assert made.success, failure_of(made)
    table = read_artifact(project.stored("synthetic")).frames["table"]
    assert set(table["job"]) == {"cook", "nurse", "smith"}


def test_what_was_redrawn_is_said_in_the_release(project):
    project.begin_as(_split)
    stages = ("synthetic", "preprocessed", ASSESSMENT, "synthetic_release")
    result = project.run(definitions_of(project, Synthesis(), policy=policy(people_per_value=12)), *stages)
    assert result.success, failure_of(result)
    made_with = manifest_of(project)["settings"]["synthetic"]
    assert made_with["settings"]["min_atom"] == 12
    assert made_with["redrawn"] == {
        "n_columns": 1,
        "n_values": 1,
        "by_column": {"job": {"n_values": 1, "n_records": 9}},
    }
    shown = result.asset_materializations_for_node(f"{NAME}__synthetic")[0].metadata
    assert {"redrawn": made_with["redrawn"]}.items() <= shown["privacy_assets/made_with"].value.items()


@NEEDS_TREES
def test_who_asks_for_rare_values_is_refused_and_a_warning_is_shown_and_counted(project):
    reproduces = Synthesis("cart", settings={"min_atom": 1, "min_samples_leaf": 5})
    project.begin_as(_split)
    stages = ("synthetic", "preprocessed", ASSESSMENT, "synthetic_release")
    warned = project.run(definitions_of(project, reproduces, policy=policy("warn")), *stages)
    assert warned.success, failure_of(warned)
    assert "'job': 1" in project.refused_because(definitions_of(project, reproduces))
    assert "'job': 1" in failed_check(warned).description
    manifest = manifest_of(project)
    rare = manifest["figures"]["rare_values"]
    assert rare["by_column"]["job"]["n_values"] == rare["rare_values_released"] == 1
    assert rare["by_column"]["job"]["n_records"] == rare["records_with_rare_values"] > 0
    (verdict,) = [each for each in manifest["verdicts"] if not each["passed"]]
    assert (verdict["metric"], verdict["value"], verdict["severity"]) == ("rare_values_released", 1.0, "warn")
    page = (project.releases()[0] / "report.html").read_text()
    assert "shared by fewer than 5 people, by column" in page
    assert RARE not in page


def test_records_that_were_brought_in_are_counted_like_all_others(project):
    external = ExternalSynthetic(with_one_rare_job, control_was_withheld=True)
    project.begin_as(_split)
    assert "'job': 1" in failed_check(project.run(definitions_of(project, external), "synthetic")).description
    # For a policy that asks for one person it is not rare.
    of_one = project.decided(definitions_of(project, external, policy=policy(people_per_value=1)))
    assert [verdict.passed for verdict in of_one if verdict.name == CHECK] == [True]
    # The diver among the people whom the synthesizer never saw proves as much.
    other_split = definitions_of(project, external, split=Split(seed=DIVER_IS_CONTROL))
    assert project.run(other_split, "original", "control").success
    assert "'job': 1" in project.refused_because(other_split)
    # Labels that spell the value out let it leave, too.
    settings = {"generalize_synthetic": AnonymizationSettings(k=5)}
    as_known = {"columns": CONTRACT["columns"] | {"job": {"type": "text", "role": "quasi_identifier"}}}
    labels = project.run(definitions_of(project, external, contract=as_known, **settings))
    failed = failed_check(labels)
    assert failed.asset_key == key("generalized_synthetic")
    assert "'job': 1" in failed.description
    assert project.everything_released() == []


def test_people_who_are_no_longer_as_recorded_prove_nothing(project):
    definitions = definitions_of(project, Synthesis(Echo(keeps=True)))
    project.begin_as(_split)
    # The check of the limit stops the run after the records.
    assert failed_check(project.run(definitions, "synthetic")).asset_key == key("synthetic")
    assert project.run(definitions, "preprocessed", ASSESSMENT, checks=False).success
    stored = project.stored("original")
    with project.kept("original"):
        honest = read_artifact(stored)
        # With a diver more in each record the value would look frequent.
        write_artifact(stored, Artifact.of_table(honest.frames["table"].assign(job=RARE)))
        reason = project.refused_because(definitions)
        assert "based on tables other than those recorded for ['original']" in reason
        assert "rare_values_released" not in reason
        shutil.rmtree(stored)
        reason = project.refused_because(definitions)
        assert "rare_values_released has no value; expected at most 0" in reason
    assert "'job': 1" in refusal(project.run(definitions, "synthetic_release"))
    assert project.everything_released() == []
