"""The control is judged when the source is admitted and when it is split, and refused if the policy cannot decide."""

import json
import logging
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest

from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.display.numbers import percent
from privacy_assets.errors import InvalidSettingError
from privacy_assets.mpucc.control_size import TRAIN_FRACTIONS, ControlSize
from privacy_assets.orchestration import control_plans
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings, GivenSplit, Split
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from tests.orchestration.project import Project, failure_of, people, settings_of

SIDES = ("source", "original", "control")


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.write_tables()
    return project


def shown(result, stage):
    """Return what the stage shows about the control."""
    [event] = [
        each
        for each in result.get_asset_materialization_events()
        if each.asset_key is not None and each.asset_key.path[-1] == stage
    ]
    metadata = event.materialization.metadata
    return {name.removeprefix("privacy_assets/"): metadata[name].value for name in metadata if "control" in name}


def policy(control_records, severity="error"):
    limits = (Limit("privacy_risk_score", 0.999, "at_most"), Limit("leakage_detected", 0, severity=severity))
    return Policy(limits, RequiredSettings(control_records=control_records, detectable_share=None))


def test_source_and_split_show_what_the_test_will_detect_as_the_gate_then_states_it(project):
    result = project.run(project.definitions())
    assert result.success, failure_of(result)
    source, control = shown(result, "source"), shown(result, "control")
    assert not shown(result, "original")
    plan, size = source["control_plan"], control["control_size"]
    for own in (plan, size):
        assert (own["counted"], own["power"], own["judged_by"]) == ("people", 0.95, "disclosure test, rehearsed")
    assert (plan["planned"]["original"], plan["planned"]["control"]) == (size["original"], size["control"]) == (240, 60)
    assert size["detectable_copies"] == plan["planned"]["detectable_copies"]
    manifest = json.loads((project.releases()[0] / "manifest.json").read_text())
    stated = manifest["figures"]["disclosure_assessment"]["detectable_people"]
    for planned in (plan["planned"]["detectable_copies"], size["detectable_copies"]):
        assert 0.6 * stated <= planned <= 1.6 * stated
    assert control["control"] == (
        f"A control of 60 people reveals verbatim copies of about {size['detectable_copies']} or more of the 240 "
        f"originals ({percent(size['detectable_share'])}) with a probability of 95.0%, but usually not of fewer."
    )
    fraction = plan["recommended_train_fraction"]
    assert fraction < 0.8
    assert plan["recommended"]["detectable_share"] < plan["planned"]["detectable_share"]
    assert f"train_fraction {fraction:g} is recommended: A control of" in source["control"]


def test_a_split_is_judged_again_unless_its_source_has_the_plan_with_these_settings(project):
    assert project.run(project.definitions(), "source").success
    kept = partial(project.run, project.definitions())
    changed = partial(project.run, project.definitions(disclosure=DisclosureSettings(max_known=1)))
    for run, n_rehearsed in ((kept, 0), (changed, 1)):
        with patch.object(control_plans, "rehearse", wraps=control_plans.rehearse) as rehearsed:
            result = run("original", "control")
        assert (result.success, rehearsed.call_count) == (True, n_rehearsed)


def test_a_plan_says_that_the_policy_will_not_accept_it(project):
    limited = replace(policy(40), required=RequiredSettings(control_records=40, detectable_share=0.001))
    for own in (limited, policy(40)):
        said = shown(project.run(project.definitions(policy=own), "source"), "source")["control"]
        is_said = "The policy accepts 0.10%, so leakage_detected will probably have no value." in said
        assert is_said == (own is limited), said


def of_detectable_share(share, severity="error"):
    return replace(policy(40, severity), required=RequiredSettings(control_records=40, detectable_share=share))


def foreseen(project, result, stage="source"):
    """Return what the stage shows first, and check that one line of its log warns of exactly that, or of nothing."""
    [event] = [e for e in result.get_asset_materialization_events() if e.asset_key.path[-1] == stage]
    metadata = event.materialization.metadata
    with project.instance() as instance:
        warned = [each.user_message for each in instance.all_logs(result.run_id) if each.level == logging.WARNING]
    warned = [each for each in warned if "refused" in each]
    if "found" not in metadata:
        assert (warned, "advice" in metadata) == ([], False)
        return None
    assert list(metadata)[:2] == ["found", "advice"]
    found, advice = metadata["found"].value, metadata["advice"].value
    assert warned == [f"{found} {advice}"]
    return found, advice


def test_source_warns_if_the_policy_demands_more_than_the_planned_control_reveals_and_names_the_split(project):
    plan = shown(project.run(project.definitions(), "source"), "source")["control_plan"]
    planned, best = (plan[name]["detectable_share"] for name in ("planned", "recommended"))
    assert best < planned
    enough = of_detectable_share(planned)
    assert foreseen(project, project.run(project.definitions(policy=enough), "source")) is None
    between = of_detectable_share(best + 0.9 * (planned - best))
    found, advice = foreseen(project, project.run(project.definitions(policy=between), "source"))
    copies = plan["planned"]["detectable_copies"]
    assert found == (
        "The synthetic records will probably be refused, because leakage_detected will have no value: a control of 60 "
        f"people will reveal copies of about {copies} or more of the 240 originals ({percent(planned)}), but not of "
        f"fewer; the policy accepts {percent(between.required.detectable_share)}."
    )
    words = advice.split()
    assert words[:3] == ["Set", "train_fraction", "to"]
    advised = Split(train_fraction=float(words[3].rstrip(",")))
    assert 0.5 <= advised.train_fraction < 0.8
    again = project.run(project.definitions(policy=between, split=advised), "source")
    assert foreseen(project, again) is None, "the split that was advised is warned of"
    only_warns = replace(between, limits=of_detectable_share(0.5, "warn").limits)
    assert foreseen(project, project.run(project.definitions(policy=only_warns), "source")) is None


def test_source_says_that_no_split_will_do(project):
    result = project.run(project.definitions(policy=of_detectable_share(0.001)), "source")
    found, advice = foreseen(project, result)
    best = shown(result, "source")["control_plan"]["recommended"]["detectable_share"]
    fraction = shown(result, "source")["control_plan"]["recommended_train_fraction"]
    assert found.endswith("; the policy accepts 0.10%.")
    assert advice == (
        f"No split of 300 people is expected to suffice; train_fraction {fraction:g} comes closest ({percent(best)}). "
        "Use more records, or let the policy accept that copies of more people go unnoticed "
        "(required.detectable_share)."
    )


def test_source_says_that_a_control_would_reveal_no_copies_at_all(project):
    random = np.random.default_rng(0)
    alike = people(300, 1).assign(age=30, plan="free", joined=pd.Timestamp("2020-01-01"), cost=1.0)
    alike["age"] += random.integers(0, 2, 300)
    alike.to_parquet(project.root / "data" / "people.parquet", index=False)
    result = project.run(project.definitions(), "source")
    assert shown(result, "source")["control_plan"]["planned"]["detectable_share"] is None
    found, advice = foreseen(project, result)
    assert found == (
        "The synthetic records will probably be refused, because leakage_detected will have no value: a control of 60 "
        "people will not even reveal copies of all 240 originals."
    )
    assert advice.startswith("No split of 300 people has a control that decides. Use more records")


def test_a_table_too_small_for_any_control_is_warned_of(project):
    people(99, 1).to_parquet(project.root / "data" / "people.parquet", index=False)
    result = project.run(project.definitions(), "source")
    found, advice = foreseen(project, result)
    assert found.startswith("The split will be refused: The split has 79 people that the synthesizer may see and 20 ")
    assert advice == "Divide at least 100 people, or let the policy only warn of leakage."
    assert shown(result, "source")["control"] == "99 people are too few for any control."


def test_a_split_that_was_given_is_warned_of_where_it_is_read(project):
    for name, rows in (("original", slice(240)), ("control", slice(240, 300))):
        people(300, 1)[rows].to_parquet(project.root / "data" / f"{name}.parquet", index=False)
    split = GivenSplit(*(TableFile(str(project.root / "data" / f"{name}.parquet")) for name in ("original", "control")))
    definitions = project.definitions(policy=of_detectable_share(0.001), source=None, split=split)
    found, advice = foreseen(project, project.run(definitions, "original", "control"), "control")
    assert "a control of 60 people will reveal copies of about" in found
    assert advice.startswith("Keep more people as control")


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ((), "the policy does not limit leakage: limit leakage_detected, and the split"),
        (
            (Limit("excess_copy_rate", 0.9), Limit("excess_verbatim_rate", 0.9)),
            "the policy limits only excess_copy_rate, excess_verbatim_rate: limit leakage_detected, too, and the split",
        ),
    ],
)
def test_without_the_disclosure_test_no_control_is_planned_and_the_stages_say_why(project, limits, why):
    required = RequiredSettings(control_records=40)
    own = Policy((Limit("privacy_risk_score", 0.999, "at_most"), *limits), required)
    result = project.run(project.definitions(policy=own), *SIDES)
    assert result.success, failure_of(result)
    said = f"The control was not planned, because {why} says how many people it needs."
    assert shown(result, "source") == shown(result, "control") == {"control": said}


def test_without_the_disclosure_test_a_split_with_too_few_controls_is_refused(project):
    limits = (Limit("privacy_risk_score", 0.999, "at_most"), Limit("excess_copy_rate", 0.9))
    own = Policy(limits, RequiredSettings(control_records=100))
    result = project.run(project.definitions(policy=own), *SIDES)
    assert "fewer than 100 in the control" in failure_of(result)
    assert foreseen(project, result)[0].startswith("The split will be refused: The split has 240 people")


def test_a_split_with_which_the_policy_cannot_decide_is_refused_before_anything_is_made(project):
    result = project.run(project.definitions(policy=policy(100)), *SIDES)
    assert not result.success
    refused = (
        "The split has 240 people that the synthesizer may see and 60 in the control. The policy limits leakage, which "
        "cannot be decided with fewer than 100 in the control and 50 originals. Set train_fraction to 0.66."
    )
    assert f"{refused} Nothing was stored." in failure_of(result)
    # The source is admitted, because it may be anonymized, and says what will happen.
    found, advice = foreseen(project, result)
    assert f"{found} {advice}" == f"The split will be refused: {refused}"
    again = project.run(project.definitions(policy=policy(100), split=Split(train_fraction=0.66)), *SIDES)
    assert again.success, failure_of(again)
    assert shown(again, "control")["control_size"]["control"] == 102
    too_few = project.run(project.definitions(policy=policy(290)), *SIDES)
    assert "Divide at least 340 people, or let the policy only warn of leakage." in failure_of(too_few)
    assert project.run(project.definitions(policy=policy(290, "warn")), *SIDES).success


def test_a_confidence_that_the_policy_never_admits_is_refused_in_the_definitions(project):
    assessment = AssessmentSettings(max_baseline_cols=3, confidence_level=0.99)
    with pytest.raises(InvalidSettingError, match="confidence_level=0.95 or less; it is 0.99"):
        project.definitions(assessment=assessment)
    project.definitions(assessment=assessment, policy=Policy((Limit("privacy_risk_score", 0.5),)))


def test_a_share_that_is_chosen_is_shown_recorded_and_the_same_again(project):
    result = project.run(project.definitions(split=Split("auto"), policy=of_detectable_share(0.1)))
    assert result.success, failure_of(result)
    [event] = [e for e in result.get_asset_materialization_events() if e.asset_key.path[-1] == "source"]
    chosen = event.materialization.metadata["train_fraction"].value
    assert chosen in TRAIN_FRACTIONS
    manifest = json.loads((project.releases()[0] / "manifest.json").read_text())
    assert manifest["settings"]["split"] == {"train_fraction": chosen, "asked": "auto"}
    assert shown(result, "control")["control_size"]["original"] == round(300 * chosen)
    given = project.run(project.definitions(split=Split(0.7), policy=of_detectable_share(0.1)), *SIDES)
    [event] = [e for e in given.get_asset_materialization_events() if e.asset_key.path[-1] == "original"]
    assert event.materialization.metadata["privacy_assets/made_with"].value == {"train_fraction": 0.7, "seed": 0}


@pytest.mark.parametrize(
    ("shares", "chosen"), [((0.009, 0.02, 0.011), 2), ((0.02, 0.001, 0.001), 0), ((0.01, None, 0.012), 2)]
)
def test_a_table_whose_copies_are_seen_about_as_well_as_required_is_rehearsed_three_times(
    monkeypatch, project, shares, chosen
):
    """Rehearsals of one small table differ; the one in the middle is said, and the first alone where it is clear."""
    seeds = []
    monkeypatch.setattr(
        control_plans, "rehearse", lambda table, settings, **_: seeds.append(settings.seed) or settings.seed
    )

    def judged(seed, n_original, n_control, *_):
        share = shares[seed]
        return ControlSize(n_original, n_control, None if share is None else round(share * n_original))

    monkeypatch.setattr(control_plans, "judge_by", judged)
    required = replace(policy(40), required=RequiredSettings(control_records=40, detectable_share=0.01))
    release = settings_of(project.definitions(policy=required))
    assert control_plans._rehearsed(release, people(4_000, 1)) == chosen
    assert seeds == ([0] if chosen == 0 else [0, 1, 2])
