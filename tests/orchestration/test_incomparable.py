"""Copies that no figure can see are refused by the name of the column, and honest tables beside them are released."""

import json

import numpy as np
import pandas as pd
import pytest

from privacy_assets.orchestration.settings.synthetic import ExternalSynthetic, GivenSplit
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from tests.orchestration.project import failure_of

CONTRACT = {
    "one_row_per_person": True,
    "columns": {
        "age": {"type": "integer", "role": "quasi_identifier"},
        "plan": {"type": "text", "role": "quasi_identifier"},
        "town": {"type": "category", "role": "other"},
        "income": {"type": "integer", "role": "sensitive"},
    },
}
POLICY = Policy(
    (Limit("privacy_risk_score", 0.999, "at_most"), Limit("leakage_detected", 0), Limit("rare_values_released", 0)),
    RequiredSettings(control_records=40, detectable_share=None),
)


def people(n, seed):
    random = np.random.default_rng(seed)
    latent = random.normal(size=n)
    return pd.DataFrame(
        {
            "age": (20 + random.gamma(3, 6, n)).round().clip(18, 80).astype(int),
            "plan": np.where(latent > 1, "gold", np.where(latent > 0, "plain", "none")),
            "town": random.choice(["Zürich", "Bern", "Chur"], n, p=[0.6, 0.3, 0.1]),
            "income": (np.exp(latent / 2 + 4)).round().astype(int),
        }
    )


def rotated(table):
    turn = {
        "plan": {"gold": "plain", "plain": "none", "none": "gold"},
        "town": {"Zürich": "Bern", "Bern": "Chur", "Chur": "Zürich"},
    }
    reflected = {name: table[name].min() + table[name].max() - table[name] for name in ("age", "income")}
    return table.assign(**{name: table[name].map(own) for name, own in turn.items()}, **reflected)


def run(project, synthetic, contract=CONTRACT, policy=POLICY):
    return project.run(
        project.definitions(
            contract=contract,
            policy=policy,
            source=None,
            split=GivenSplit(lambda: people(600, 10), lambda: people(400, 11)),
            synthetic=ExternalSynthetic(lambda: synthetic, control_was_withheld=True),
        )
    )


HONEST = people(300, 2)


def test_honest_records_are_released_with_the_shares_of_every_column_in_the_manifest(project):
    result = run(project, HONEST.assign(plan=HONEST["plan"].str.upper()))
    assert result.success, failure_of(result)
    (released,) = project.releases()
    settings = json.loads((released / "manifest.json").read_text())["settings"]
    for assessment in ("mpucc_assessment", "disclosure_assessment"):
        assert settings[assessment]["spelling"] == "canonical/1"
        shares = settings[assessment]["unknown_values"]
        assert list(shares) == ["age", "plan", "town", "income"]
        assert not any(own["blind"] for own in shares.values())
    assert settings["mpucc_assessment"]["foreign"] == ""
    assert "Values that nobody has" in (released / "report.html").read_text()


@pytest.mark.parametrize(
    ("synthetic", "said"),
    [
        (HONEST.assign(town="CH-" + HONEST["town"]), "Column 'town': 100.0% of the synthetic values are values that"),
        (HONEST.assign(income=-HONEST["income"]), "Column 'income': 100.0% of the synthetic values are outside the"),
        (rotated(people(600, 10)), "The records cannot be compared with people: utility_"),
    ],
    ids=["blind text", "blind number", "foreign"],
)  # fmt: skip
@pytest.mark.parametrize("limits", [POLICY.limits, (Limit("leakage_detected", 0),)], ids=["all", "leakage alone"])
def test_records_in_which_copies_cannot_be_seen_are_refused_by_name(project, synthetic, said, limits):
    result = run(project, synthetic, policy=Policy(limits, POLICY.required))
    assert not result.success
    evaluations = result.get_asset_check_evaluations()
    refused = {each.check_name: each.description for each in evaluations if not each.passed}
    assert any(said in str(reason) for reason in refused.values())
    assert "Zürich" not in str(refused)
    assert not project.releases()


def test_invented_values_leave_with_a_reason(project):
    invented = {"leaves_as_is": "Towns by a generator, says the data office", "invented": True}
    contract = {**CONTRACT, "columns": {**CONTRACT["columns"], "town": CONTRACT["columns"]["town"] | invented}}
    made = HONEST.assign(town=np.array(["Atlantis", "Gotham"])[HONEST.index % 2])
    assert not run(project, made).success
    result = run(project, made, contract)
    assert result.success, failure_of(result)
    (released,) = project.releases()
    shares = json.loads((released / "manifest.json").read_text())["settings"]["mpucc_assessment"]["unknown_values"]
    assert shares["town"] == {"unknown": 1.0, "expected": 0.0, "blind": False, "invented": True, "by_range": False}


def test_records_written_otherwise_are_released_as_they_are_written(project):
    made = HONEST.assign(plan=HONEST["plan"].str.upper() + " ")
    result = run(project, made)
    assert result.success, failure_of(result)
    (released,) = project.releases()
    (file,) = released.glob("*.parquet")
    assert set(pd.read_parquet(file)["plan"]) == set(made["plan"])
