"""Synthetic records that come with a key of their people: compared, kept privately, not released."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privacy_assets import ExternalSynthetic, Limit, Policy, Split, TableContract
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.people import number_synthetic_people
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release.policy import RequiredSettings
from privacy_assets.release.row_links import LINKS_CHECK
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.synthesis.split import split_records
from privacy_assets.synthesis.synthetic_people import admit_synthetic
from tests.orchestration.project import failure_of, refusal

CONTRACT = {
    "columns": {
        "customer": {"type": "text", "role": "direct_identifier", "person": True},
        "movie": {"type": "text", "role": "quasi_identifier"},
        "stars": {"type": "integer", "role": "sensitive"},
        "year": {"type": "integer", "role": "quasi_identifier"},
    }
}
POLICY = Policy(
    (Limit("privacy_risk_score", 0.999, "at_most"), Limit("leakage_detected", 0)),
    RequiredSettings(control_records=40, detectable_share=None),
)


def ratings(n_people, seed, key):
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), 8)
    return pd.DataFrame(
        {
            key: [f"{key} {seed} {each}" for each in person],
            "movie": np.char.add("m", random.integers(0, 40, len(person)).astype(str)),
            "stars": random.integers(1, 6, len(person)),
            "year": random.integers(2000, 2006, len(person)),
        }
    )


def source():
    return ratings(240, 1, "customer")


def synthetic():
    return ratings(160, 2, "trace")


def copied():
    """Every fifth synthetic person has the rows of an original."""
    mine, own = synthetic(), split_records(source(), train_fraction=0.5, seed=0, person="customer").original
    rows = np.arange(len(mine)) // 8 % 5 == 0
    return pd.concat([mine[~rows], own[: rows.sum()].rename(columns={"customer": "trace"})], ignore_index=True)


def definitions(project, made=synthetic, person="trace", **others):
    brought = ExternalSynthetic(made, control_was_withheld=True, person=person)
    settings = {"contract": CONTRACT, "policy": POLICY, "source": source, "synthetic": brought, "split": Split(0.5)}
    return project.definitions(**settings | others)


def test_the_key_is_compared_kept_privately_and_not_released(project):
    result = project.run(definitions(project))
    assert result.success, refusal(result)
    (directory,) = project.releases()
    manifest = json.loads((directory / "manifest.json").read_text())
    assert [each["column"] for each in manifest["columns"]] == ["movie", "stars", "year"]
    assert list(pd.read_parquet(next(directory.glob("*.parquet"))).columns) == ["movie", "stars", "year"]
    assert manifest["figures"]["disclosure_assessment"]["nearest_person_adjusted_p_value"] > 0.05
    assert manifest["settings"]["synthetic"] == {"method": "external", "person": "trace"}
    assert "nearest person" in (directory / "report.html").read_text()
    stored = read_artifact(project.stored("synthetic_people")).frames["table"]
    assert stored["trace"].tolist() == (np.arange(160 * 8) // 8).tolist()
    assert not any("trace 2" in path.read_text(errors="ignore") for path in project.everything_released())


@pytest.mark.parametrize("others", [{}, {"generalize_synthetic": AnonymizationSettings(k=2)}])
def test_copied_people_are_refused_and_the_criterion_is_named(project, others):
    result = project.run(definitions(project, copied, **others))
    assert not result.success
    assert "nearest person" in " ".join(
        str(each.description) for each in result.get_asset_check_evaluations() if not each.passed
    )
    assert project.everything_released() == []


def test_evidence_without_the_key_or_with_a_changed_one_is_refused(project):
    asked, without = definitions(project), definitions(project, lambda: synthetic().drop(columns="trace"), None)
    assert project.run(without, "source", "original", "control", "synthetic", "disclosure_assessment").success
    assert "synthetic_person differs" in project.refused_because(asked)
    stages = ("source", "original", "control", "synthetic", "synthetic_people", "preprocessed")
    assert project.run(asked, *stages, "disclosure_assessment", "mpucc_assessment").success
    assert project.refused_because(asked) == ""
    assert "synthetic_person differs" in project.refused_because(without)
    people = project.stored("synthetic_people")
    with project.kept("synthetic_people"):
        stored = read_artifact(people)
        table = stored.frames["table"].assign(trace=0)
        shutil.rmtree(people)
        write_artifact(people, replace(stored, frames={"table": table}))
        assert project.run(asked, "disclosure_assessment").success is False
    # The same rows, of other people.
    other = definitions(project, lambda: synthetic().assign(trace=np.arange(160 * 8) % 160))
    assert project.run(other, "synthetic", "synthetic_people").success
    assert "other than those recorded for ['synthetic_people']" in project.refused_because(asked)


def test_a_table_without_the_key_is_refused(project):
    result = project.run(definitions(project, lambda: synthetic().drop(columns="trace")))
    assert "in column 'trace'. Expected such a column in the synthetic table" in failure_of(result)


WITH_LINK = {
    "columns": CONTRACT["columns"]
    | {
        "alias": {
            "type": "text",
            "role": "other",
            "leaves_as_is": "Numbers that a generator invents; A. Lovelace",
            "links_rows": "Needed to follow customers over time; A. Lovelace",
        }
    }
}


@pytest.mark.parametrize(
    ("contract", "person", "message"),
    [
        (CONTRACT, "movie", r"in column 'movie', which the contract names\. Expected a column that it does not name"),
        (CONTRACT, "customer", "which the contract names"),
        (
            {
                "one_row_per_person": True,
                "columns": {name: own for name, own in CONTRACT["columns"].items() if name != "customer"},
            },
            "trace",
            "by the contract each person has one row",
        ),
        (CONTRACT, "", "person is ''. Expected the name of a column"),
        (CONTRACT, 3, "person is 3. Expected the name of a column"),
    ],
)
def test_a_column_that_cannot_be_the_synthetic_person_is_refused(project, contract, person, message):
    with pytest.raises(InvalidSettingError, match=message):
        definitions(project, person=person, contract=contract)


def with_facts(key):
    """A table in which a column that nobody speaks of numbers people: it determines two others."""
    made = synthetic().rename(columns={"trace": key})
    code = pd.factorize(made[key])[0]
    return made.assign(stars=code * 7 % 5 + 1, year=2000 + code * 11 % 6)


def test_a_key_that_nobody_answers_for_is_refused():
    column = {"type": "text", "role": "other", "leaves_as_is": "Numbers that a generator invents; A. Lovelace"}
    contract = {"columns": CONTRACT["columns"] | {"alias": column}}
    with pytest.raises(InvalidTableError, match=r"agree on 'alias' \(160 values that determine") as refused:
        admit_synthetic(TableContract.from_mapping(contract), with_facts("alias"), None)
    assert "alias 2" not in str(refused.value)
    answered = {"columns": CONTRACT["columns"] | {"alias": column | {"not_a_person": "Shops of the town; A. Lovelace"}}}
    admitted = admit_synthetic(TableContract.from_mapping(answered), with_facts("alias"), None)
    assert list(admitted.columns) == ["movie", "stars", "year", "alias"]
    # Rows that occur several times are not of one person.
    repeated = synthetic().drop(columns="trace").sample(3_000, replace=True, random_state=0)
    assert len(admit_synthetic(TableContract.from_mapping(CONTRACT), repeated, None)) == 3_000


def test_a_declared_link_must_be_given_and_is_then_released():
    contract = TableContract.from_mapping(WITH_LINK)
    made = with_facts("alias")
    with pytest.raises(InvalidTableError, match="as `person` of the external records"):
        admit_synthetic(contract, made, None)
    found = admit_synthetic(contract, made, pd.DataFrame({"alias": number_synthetic_people(made, "alias")}))
    assert list(found.columns) == ["movie", "stars", "year", "alias"]


def test_a_declared_link_is_released_with_its_key(project):
    """The key is in both tables; the people of the synthetic one are a generator's."""
    alias = WITH_LINK["columns"]["alias"] | {"invented": True}
    contract = {"columns": WITH_LINK["columns"] | {"alias": alias}}

    def aliased():
        table = source()
        return table.assign(alias="a" + table["customer"].str.split().str[-1])

    result = project.run(
        definitions(
            project,
            lambda: synthetic().rename(columns={"trace": "alias"}),
            "alias",
            contract=contract,
            source=aliased,
        )
    )
    assert result.success, refusal(result)
    (directory,) = project.releases()
    assert "alias" in pd.read_parquet(next(directory.glob("*.parquet"))).columns
    manifest = json.loads((directory / "manifest.json").read_text())
    assert "nearest_person_adjusted_p_value" in manifest["figures"]["disclosure_assessment"]


@pytest.mark.parametrize("role", ["other", "quasi_identifier", "direct_identifier"])
def test_a_column_that_numbers_the_people_of_the_source_needs_the_synthetic_person_or_stays_out(project, role):
    """Movies repeat for a person, so that the synthetic table alone does not show that its rows belong together."""
    alias = {"type": "integer" if role == "quasi_identifier" else "text", "role": role}
    if role == "other":
        alias |= {"leaves_as_is": "Numbers that a generator invents; A. Lovelace", "invented": True}
    contract = {"columns": CONTRACT["columns"] | {"alias": alias}}

    def numbered(table, key):
        number = table[key].str.split().str[-1].astype(int) + (0 if key == "customer" else 5_000)
        return number if role == "quasi_identifier" else "a" + number.astype(str)

    def aliased():
        return source().assign(alias=lambda table: numbered(table, "customer"))

    def made():
        table = synthetic()
        kept = table.drop(columns="trace")
        return kept if role == "direct_identifier" else kept.assign(alias=numbered(table, "trace"))

    without = definitions(project, made, None, contract=contract, source=aliased)
    result = project.run(without)
    if role == "direct_identifier":
        assert result.success, refusal(result)
        return
    assert not result.success
    decided = next(each for each in project.decided(without) if each.name == LINKS_CHECK)
    assert (decided.passed, decided.severity) == (False, "error")
    assert "['alias'] number the people of the source and repeat in the synthetic rows" in decided.reason
    assert "as `person` of the external records" in decided.advice and "direct_identifier" in decided.advice
    assert project.everything_released() == []


def test_numbers_of_synthetic_rows_need_no_person(project):
    alias = {"type": "text", "role": "other", "leaves_as_is": "Numbers of rows that a generator invents; A. Lovelace"}
    contract = {"columns": CONTRACT["columns"] | {"alias": alias | {"invented": True}}}

    def aliased():
        table = source()
        return table.assign(alias="a" + table["customer"].str.split().str[-1])

    def made():
        table = synthetic().drop(columns="trace")
        return table.assign(alias=[f"r{number}" for number in range(len(table))])

    result = project.run(definitions(project, made, None, contract=contract, source=aliased))
    assert result.success, refusal(result)


def test_a_key_without_facts_is_refused_by_the_other_half_of_the_pattern():
    """Each synthetic person rates each movie once, and nothing is the same in all of a person's rows."""
    random = np.random.default_rng(0)
    person = np.repeat(np.arange(100), 20)
    movies = np.concatenate([random.permutation(40)[:20] for _ in range(100)])
    table = pd.DataFrame(
        {
            "movie": np.char.add("m", movies.astype(str)),
            "stars": random.integers(1, 6, len(person)),
            "year": random.integers(2000, 2006, len(person)),
            "alias": np.char.add("a", person.astype(str)),
        }
    )
    column = {"type": "text", "role": "other", "leaves_as_is": "Numbers that a generator invents; A. Lovelace"}
    contract = TableContract.from_mapping({"columns": CONTRACT["columns"] | {"alias": column}})
    with pytest.raises(
        InvalidTableError, match=r"'alias' \(100 values that determine which value of movie occurs once"
    ):
        admit_synthetic(contract, table, None)
    answered = {"columns": CONTRACT["columns"] | {"alias": column | {"not_a_person": "Shops of the town; A. Lovelace"}}}
    assert len(admit_synthetic(TableContract.from_mapping(answered), table, None)) == len(table)
    kept = TableContract.from_mapping(WITH_LINK)
    people = pd.DataFrame({"alias": person})
    assert list(admit_synthetic(kept, table, people).columns) == ["movie", "stars", "year", "alias"]
