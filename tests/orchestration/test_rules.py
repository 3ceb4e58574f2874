"""Rules across columns through a release: they block the source, records keep them, and the gate counts violations."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
import yaml

from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.risk_checks import build_privacy_risk_checks
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.sources import UpstreamAsset
from privacy_assets.orchestration.settings.synthetic import ExternalSynthetic, GivenSplit, Synthesis
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.orchestration.project import ADMITS, NAME, failure_of, key, refusal

SENTINEL = "SENTINEL name"
CHECK = "rule_violations_is_at_most_its_limit"
COLUMNS = {
    "patient": {"type": "text", "role": "direct_identifier", "person": True},
    "age": {"type": "integer", "role": "quasi_identifier"},
    "sex": {"type": "category", "role": "quasi_identifier", "categories": ["female", "male"]},
    "born": {"type": "integer", "role": "sensitive"},
    "code": {"type": "text", "role": "other"},
    "name": {"type": "text", "role": "other"},
    "one": {"type": "integer", "role": "other"},
    "two": {"type": "integer", "role": "other"},
    "all": {"type": "integer", "role": "other"},
}
RULES = {
    "born_by_women": 'sex == "female" or born == 0',
    "grown_up": {"expect": "age >= 20", "at_most": 0.05},
    "of_code": {"determines": ["code", "name"]},
    "total": {"sum": ["one", "two"], "equals": "all"},
    "known": "patient != code",
}
CONTRACT = {"columns": COLUMNS, "rules": RULES}
SETTINGS = RequiredSettings(control_records=20)


def people(n_records=300, seed=0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    sex, code = random.choice(["female", "male"], n_records), random.integers(0, 6, n_records)
    parts = random.integers(0, 9, (2, n_records))
    table = pd.DataFrame(
        {
            "patient": [f"p{i}" for i in range(n_records)],
            "age": random.integers(20, 60, n_records),
            "sex": sex,
            "born": np.where(sex == "male", 0, random.poisson(1, n_records)),
            "code": code.astype(str),
            "name": [f"{SENTINEL} {each}" for each in code],
            "one": parts[0],
            "two": parts[1],
            "all": parts.sum(axis=0),
        }
    )
    table.loc[:1, "age"] = 19
    return table


def with_violations() -> pd.DataFrame:
    """Return records made elsewhere, of which the first five violate rules: one of them two."""
    made = people(160, 3).drop(columns="patient").assign(age=30)
    made.loc[:1, ["sex", "born"]] = ["male", 1]
    made.loc[1, "all"] += 1
    made.loc[2:4, ["code", "name"]] = ["0", f"{SENTINEL} 5"]
    return made


def policy(*limits):
    own = [Limit("privacy_risk_score", ADMITS, "at_most"), Limit("smallest_class", 5), *limits]
    return Policy(tuple(own), SETTINGS)


def definitions_of(project, synthetic, **settings):
    arguments = {"contract": CONTRACT, "policy": policy(), "source": people}
    return project.definitions(synthetic=synthetic, **arguments | settings)


def external(make=with_violations):
    return ExternalSynthetic(make, control_was_withheld=True)


def manifest_of(project):
    return json.loads((project.releases()[-1] / "manifest.json").read_text())


def failed_check(result):
    (failed,) = [each for each in result.get_asset_check_evaluations() if not each.passed]
    return failed


def test_a_source_that_violates_a_rule_is_stopped_with_counts(project):
    def broken():
        return people().assign(all=lambda table: table["all"].where(table.index > 6, 99))

    failed = failed_check(project.run(definitions_of(project, Synthesis(), source=broken), "source"))
    assert failed.check_name == "source_keeps_its_contract"
    assert {name: each.value for name, each in failed.metadata.items()} == {"(table): rule 'total' is violated": 7}
    assert "rule 'total' is violated in 7 records" in failed.description


def test_rules_that_contradict_are_named(project):
    contract = {"columns": COLUMNS, "rules": {"up": "one < two", "down": "one > two"}}
    failed = failed_check(project.run(definitions_of(project, Synthesis(), contract=contract), "source"))
    assert "rules 'up' and 'down' contradict each other in 300 records" in failed.description


def test_a_release_keeps_its_rules_and_says_so(project):
    result = project.run(definitions_of(project, Synthesis()))
    assert result.success, failure_of(result)
    (source,) = result.asset_materializations_for_node(f"{NAME}__source")
    expected = dict.fromkeys(RULES, 0) | {"grown_up": 2}
    assert source.metadata["records_that_violate_a_rule"].value == expected
    manifest = manifest_of(project)
    figure = manifest["figures"]["rules"]
    assert (figure["rule_violations"], figure["records_with_violations"]) == (0.0, 0)
    assert figure["not_judged"] == ["known"]
    assert figure["by_rule"]["grown_up"].pop("original") + figure["by_rule"]["grown_up"].pop("control") == 2
    assert figure["by_rule"].pop("grown_up") == {"rule": RULES["grown_up"], "synthetic": 0}
    nothing = {"original": 0, "control": 0, "synthetic": 0}
    assert figure["by_rule"] == {
        name: {"rule": RULES[name], **nothing} for name in ("born_by_women", "of_code", "total")
    }
    assert manifest["settings"]["synthetic"]["rules"]["left"] == 0
    assert {"metric": "rule_violations", "value": 0.0, "passed": True, "severity": "error"}.items() <= next(
        each for each in manifest["verdicts"] if each["metric"] == "rule_violations"
    ).items()
    (directory,) = project.releases()
    assert verify_release(directory).verified
    page = (directory / "report.html").read_text()
    assert "Rules of the contract, and the records that violate them" in page
    assert "0 records (0.0%) violate one of 4 rules of the contract" in page
    assert "Not judged, on generalized or removed columns: known." in page
    assert SENTINEL not in page


def test_records_made_elsewhere_are_judged_and_a_waiver_or_a_limit_lets_them_pass(project):
    refused = project.run(definitions_of(project, external()))
    failed = failed_check(refused)
    assert (failed.check_name, failed.asset_key) == (CHECK, key("synthetic"))
    reason = "rule_violations is 0.0312 (exactly 0.03125); expected at most 0 (records by rule: "
    reason += "'of_code': 3, 'born_by_women': 2, 'total': 1; rules on generalized or removed columns, not judged: 1)"
    assert failed.description == reason
    assert SENTINEL not in failure_of(refused)
    assert project.everything_released() == []
    stages = ("preprocessed", "mpucc_assessment", "synthetic_release")
    assert reason in refusal(project.run(definitions_of(project, external()), *stages, checks=False))
    waivers = project.root / "waivers"
    waivers.mkdir()
    content = fingerprint(TableContract.from_mapping(CONTRACT).admit_synthetic(with_violations()))
    today = datetime.now(UTC).date()
    waiver = {"release": NAME, "metric": "rule_violations", "limit": 0, "figure": 0.03125, "fingerprint": content}
    waiver |= {"person": "A. Lovelace, officer", "reason": "The recipient corrects these records."}
    waiver |= {"signed_on": today, "expires_on": today + timedelta(days=30)}
    (waivers / "rules.yaml").write_text(yaml.safe_dump(waiver))
    waived = project.run(definitions_of(project, external(), waivers=str(waivers)), "synthetic_release")
    assert waived.success, failure_of(waived)
    (directory,) = project.releases()
    assert verify_release(directory).verified
    loose = project.run(definitions_of(project, external(), policy=policy(Limit("rule_violations", 0.05))))
    assert loose.success, failure_of(loose)
    assert "figures" in manifest_of(project)


def test_rules_on_generalized_columns_are_not_judged(project):
    result = project.run(definitions_of(project, Synthesis(), generalize_synthetic=AnonymizationSettings(k=5)))
    assert result.success, failure_of(result)
    figure = manifest_of(project)["figures"]["rules"]
    assert figure["not_judged"] == ["born_by_women", "grown_up", "known"]
    assert set(figure["by_rule"]) == {"of_code", "total"}
    assert verify_release(project.releases()[0]).verified


def test_named_checks_of_a_pandera_schema_are_kept_and_judged(project):
    def adds_up(table):
        return table["one"] + table["two"] == table["all"]

    base = TableContract.from_mapping({"columns": COLUMNS}).schema
    contract = TableContract(pa.DataFrameSchema(base.columns, checks=[pa.Check(adds_up)]))
    failed = failed_check(project.run(definitions_of(project, external(), contract=contract)))
    assert "(records by rule: 'adds_up': 1)" in failed.description

    def explodes(table):
        if "patient" not in table:
            raise ValueError(SENTINEL)
        return True

    contract = TableContract(pa.DataFrameSchema(base.columns, checks=[pa.Check(explodes)]))
    failed = failed_check(project.run(definitions_of(project, external(), contract=contract)))
    assert failed.description == (
        "rule_violations has no value; expected at most 0 (The rule 'explodes' is a check that could not be evaluated.)"
    )


def test_a_given_split_is_judged_at_once(project):
    def others():
        return people(100, 2).assign(name="x", patient=[f"other {i}" for i in range(100)])

    given = GivenSplit(original=lambda: people(200, 1), control=others)
    result = project.run(definitions_of(project, Synthesis(), source=None, split=given), "original", "control")
    assert not result.success
    assert "rule 'of_code' is violated in" in failure_of(result)


def test_a_table_without_rules_has_neither_figure_nor_check(project):
    definitions = definitions_of(project, Synthesis(), contract={"columns": COLUMNS})
    result = project.run(definitions)
    assert result.success, failure_of(result)
    assert CHECK not in {each.check_name for each in result.get_asset_check_evaluations()}
    manifest = manifest_of(project)
    assert "rules" not in manifest["figures"]
    assert "rules" not in manifest["settings"]["synthetic"]
    assert "rule_violations" not in json.dumps(manifest)


def test_settings_that_cannot_be_met_are_refused_when_definitions_are_built(project):
    with pytest.raises(InvalidSettingError, match="limits 'rule_violations', but the contract has no `rules`"):
        definitions_of(
            project, Synthesis(), contract={"columns": COLUMNS}, policy=policy(Limit("rule_violations", 0.1))
        )
    private = Synthesis("mst", settings={"epsilon": 1.0, "delta": 1e-6})
    with pytest.raises(InvalidSettingError, match=r"rules that determine a column, \['of_code'\] in `rules`.*mst"):
        definitions_of(project, private)
    with pytest.raises(InvalidSettingError, match="limits 'rule_violations', but the contract has no `rules`"):
        build_privacy_risk_checks(
            assets=UpstreamAsset("a"),
            original=UpstreamAsset("b"),
            contract={"columns": COLUMNS},
            policy=policy(Limit("rule_violations", 0)),
        )


def forged(manifest, **changes):
    manifest["figures"]["rules"] |= changes


@pytest.mark.parametrize(
    "change",
    [
        {"records_with_violations": 1, "rule_violations": 1 / 160},
        {"by_rule": {}},
        {"by_rule": {"born_by_women": {"rule": "born >= 0", "synthetic": 0}}},
        {"by_rule": {"born_by_women": {"rule": "nothing > 1", "synthetic": 0}}},
        {"by_rule": {f"r{i}": {"rule": "born >= 0", "synthetic": 0} for i in range(101)}},
        {"by_rule": {"a_check": {"rule": None, "synthetic": 3}}},
    ],
    ids=str,
)
def test_forged_counts_do_not_verify(project, change):
    project.begin_as(_released)
    (directory,) = project.releases()
    path = directory / "manifest.json"
    manifest = json.loads(path.read_text())
    forged(manifest, **change)
    path.write_text(json.dumps(manifest))
    assert [each for each in verify_release(directory).problems if "rule" in each]


def _released(project):
    limit = policy(Limit("rule_violations", 0.05))
    assert project.run(definitions_of(project, external(), policy=limit)).success
