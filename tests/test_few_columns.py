"""Defaults fit tables of one and two columns: the command, the settings that a policy asks for, and the functions."""

import json

import numpy as np
import pandas as pd
import pytest
import yaml

from privacy_assets import (
    Policy,
    TableContract,
    anonymize,
    assess_disclosure,
    assess_mpuccs,
    assess_reidentification,
    assess_semantic_risk,
    assess_utility,
    draft_contract,
    synthesize,
    verify_anonymity,
)
from privacy_assets.cli import main
from privacy_assets.errors import PrivacyAssetsError
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings
from privacy_assets.release.policy import USE_CASES

RNG = np.random.default_rng(0)
N = 400
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(20, 60, N),
        "town": RNG.choice(["Ulm", "Bonn", "Trier"], N),
        "dose": RNG.normal(0, 1, N).round(1),
        "sex": RNG.choice(["f", "m"], N),
    }
)
TYPES = {"age": "integer", "town": "text", "dose": "float", "sex": "text"}


def contract_of(names, *, person=False):
    columns = {name: {"type": TYPES[name], "role": "quasi_identifier"} for name in names}
    who = {"who": {"type": "integer", "role": "direct_identifier", "person": True}} if person else {}
    return {"columns": columns | who}


@pytest.mark.parametrize("person", [False, True])
@pytest.mark.parametrize("names", [["age"], ["town"], ["town", "dose"], list(TYPES)])
def test_the_command_assesses_combinations_of_up_to_three_columns_or_all(names, person, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = TABLE[names].assign(**({"who": np.arange(N)} if person else {}))
    table[:200].to_csv("original.csv", index=False)
    table[200:300].to_csv("control.csv", index=False)
    TABLE[names][300:].to_csv("synthetic.csv", index=False)
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(contract_of(names, person=person)))
    arguments = ["assess", "original.csv", "synthetic.csv", "--contract", "contract.yaml", "--control", "control.csv"]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["scores"]["max_combo_size"] == min(3, len(names))
    assert ("disclosure" in found) == (len(names) > 1)
    if len(names) == 1:
        assert main(arguments) == 0
        assert (
            "Leakage is not assessed: nothing can be linked or inferred in a single column." in capsys.readouterr().out
        )
        # What is asked for is not replaced.
        assert main([*arguments, "--max-cols", "2"]) == 1
        assert "max_baseline_cols is 2. Expected at most 1, the number of columns" in capsys.readouterr().err


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4])
def test_the_settings_that_a_policy_asks_for_fit_the_table_and_are_accepted(n_columns):
    contract = TableContract.from_mapping(contract_of(list(TYPES)[:n_columns], person=True))
    policies = [Policy.for_use_case(use_case) for use_case in USE_CASES]
    for policy in [*policies, *(policies[0].with_required(max_baseline_cols=size) for size in (None, 1, 2, 9))]:
        settings = AssessmentSettings.required_by(policy, contract)
        settings.check(n_columns)
        settings.require_accepted_by(policy, n_columns)
        required = policy.required.max_baseline_cols
        assert settings.max_baseline_cols == min(required or n_columns, n_columns)


@pytest.mark.parametrize("names", [["age"], ["town"], ["dose", "sex"]])
def test_the_functions_take_few_columns_by_default(names):
    table = TABLE[names]
    original, control = table[:300].reset_index(drop=True), table[300:].reset_index(drop=True)
    made = {method: synthesize(original, method=method, seed=0) for method in ("gaussian_copula", "cart")}
    for synthetic in made.values():
        assert assess_mpuccs(original, synthetic, control).scores["max_combo_size"] <= len(names)
    classes = anonymize(original, quasi_identifiers=names, k=3)
    assert assess_reidentification(original, classes).scores["max_reidentification_probability"] <= 1 / 3
    assert assess_semantic_risk(classes.table, dict.fromkeys(names, "nominal"), model=classes.model).scores
    assert verify_anonymity(classes.labels, names).k >= 3
    assert assess_utility(original, made["cart"], table).scores
    assert len(draft_contract(table).columns) == len(names)
    if len(names) == 1:
        with pytest.raises(PrivacyAssetsError, match="column"):
            assess_disclosure(original, made["cart"], control)
    else:
        assert assess_disclosure(original, made["cart"], control).scores


def test_a_table_without_released_columns_is_refused_in_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"who": range(9)}).to_csv("t.csv", index=False)
    (tmp_path / "c.yaml").write_text("columns: {who: {type: integer, role: direct_identifier, person: true}}")
    assert main(["assess", "t.csv", "t.csv", "--contract", "c.yaml"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
