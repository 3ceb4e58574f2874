"""Related tables through Dagster: released together, or refused together."""

import hashlib
import json
import shutil
from dataclasses import replace

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.cli import main
from privacy_assets.contract.related import RelatedTables
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings.sources import UpstreamAsset
from privacy_assets.orchestration.settings.synthetic import Split, Synthesis
from privacy_assets.pipeline.settings.utility import UtilitySettings
from privacy_assets.release.policy import Limit
from privacy_assets.release.signing import SigningKey, generate_key_pair
from privacy_assets.release.verification import verify_release
from privacy_assets.synthesis import kept_rules, sequences
from tests.orchestration import faster_runs
from tests.orchestration.project import NAME, blocked_by, failure_of, refusal
from tests.orchestration.related_project import (
    LINES_CONTRACT,
    PEOPLE_CONTRACT,
    POLICY,
    STAGES,
    VISITS_CONTRACT,
    FromOthers,
    RelatedProject,
    files_of,
    tables_of,
)
from tests.orchestration.sentinels import DATE, FLOAT, IDENTIFIER, LISTED, TEXT, assert_nothing_leaked
from tests.orchestration.test_approvals import Officers
from tests.orchestration.test_waivers import sign
from tests.related import clinic, of_visits, with_lines

N = 240
SMOOTH = Synthesis(seed=8)
FILES = {"people.parquet", "visits.parquet", "drugs.parquet", "manifest.json", "report.html"}
FILES |= {"croissant.json", "dcat.jsonld"}


@pytest.fixture(scope="module")
def assessed(tmp_path_factory):
    """Bring a project to where all but the release has run, once."""
    made = RelatedProject(tmp_path_factory.mktemp("assessed"))
    made.write(clinic(N, 1))
    result = made.run(made.definitions(), *STAGES)
    assert result.success, failure_of(result)
    return made


@pytest.fixture
def project(assessed, tmp_path):
    """Copy that project."""
    shutil.copytree(assessed.root, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*-shm"))
    return RelatedProject(tmp_path)


@pytest.fixture
def new(tmp_path):
    made = RelatedProject(tmp_path)
    made.write(clinic(N, 1))
    return made


def manifest_of(directory):
    return json.loads((directory / "manifest.json").read_text())


def said(result, check):
    found = next(each for each in result.get_asset_check_evaluations() if each.check_name == check)
    return found.passed, found.description, {name: value.value for name, value in found.metadata.items()}


def test_all_tables_leave_together_as_smooth_cart_makes_them(new):
    result = new.run(new.definitions(synthetic=SMOOTH, utility=UtilitySettings(), children=new.children("visits")))
    assert result.success, failure_of(result)
    released = new.release()
    found = verify_release(released, max_bytes=None)
    assert found.problems == ()
    assert files_of(released) == FILES - {"drugs.parquet"}
    manifest, tables = manifest_of(released), tables_of(released)
    assert manifest["n_records"] == len(tables["people"]) == N / 2
    assert tables["people"]["patient"].tolist() == list(range(1, N // 2 + 1))
    assert {name: own["rows"] for name, own in manifest["tables"].items()} == {n: len(t) for n, t in tables.items()}
    assert manifest["links"] == {"visits": {"parent": "people", "key": "patient", "order": "date"}}
    assert tables["visits"]["patient"].isin(tables["people"]["patient"]).all()
    assert list(tables["visits"].columns) == ["date", "diagnosis", "patient", "cost", "paid"]
    assert set(manifest["settings"]["mpucc_assessment"]["views"]) == set(
        manifest["settings"]["disclosure_assessment"]["views"]
    )
    page = (released / "report.html").read_text()
    n_visits = len(tables["visits"])
    assert f"admitted these {N // 2} synthetic people with {n_visits} rows of visits." in page
    for view in ("people", "rows of visits", "histories of visits"):
        assert f"<h3>View: {view}</h3>" in page
        assert f"Figures: mpucc assessment of {view}" in page
    assert "Bar chart: rows of visits per person" in page
    assert "Bar chart: consecutive rows of visits" in page
    croissant = json.loads((released / "croissant.json").read_text())
    assert [each["@id"] for each in croissant["recordSet"]] == ["people", "visits"]
    of_visits_ = {each["source"]["fileObject"]["@id"] for each in croissant["recordSet"][1]["field"]}
    assert of_visits_ == {"visits.parquet"}
    shown = result.asset_materializations_for_node(f"{NAME}__source")[0].metadata
    assert shown["privacy_assets/rows of visits"].value == len(clinic(N, 1).children["visits"].table)
    names = [column.name for column in shown["privacy_assets/columns of visits"].value.columns]
    assert names == ["date", "diagnosis", "patient", "cost", "paid"]
    again = new.run(new.definitions(synthetic=SMOOTH, utility=UtilitySettings(), children=new.children("visits")))
    assert again.success, failure_of(again)
    releases = sorted((new.root / "releases" / NAME / "synthetic").glob("2*"))
    assert [manifest_of(each)["fingerprint"] for each in releases] == [manifest["fingerprint"]] * 2


def with_orphans(tables):
    table = tables["visits"].copy()
    table.loc[table.index[:3], "patient"] = "nobody"
    return {**tables, "visits": table}


def spelled_otherwise(people):
    return people.assign(patient=people["patient"] + " ")


BROKEN = {
    "orphans": (with_orphans, "3 rows of 'visits' have a 'patient' that nobody in 'people' has"),
    "a repeated person": (
        lambda t: {**t, "people": pd.concat([t["people"], t["people"].head(2)])},
        "2 rows of 'people' repeat a 'patient'",
    ),
    "people spelled alike": (
        lambda t: {
            **t,
            "people": pd.concat([t["people"], t["people"].head(1).assign(patient=lambda p: p.patient + " ")]),
        },
        "1 rows of 'people' repeat a 'patient'",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_row_without_its_person_stops_the_source(new, what):
    change, message = BROKEN[what]
    for name, table in change(clinic(N, 1).tables).items():
        table.to_parquet(new.root / "data" / f"{name}.parquet", index=False)
    result = new.run(new.definitions(), "source")
    assert not result.success
    passed, description, _ = said(result, "every_row_has_its_person")
    assert not passed
    assert message in description
    assert message in failure_of(result)
    assert not new.stored("source").exists()


def test_violations_of_all_contracts_are_counted_at_once(new):
    tables = clinic(N, 1).tables
    new.write(of_visits(clinic(N, 1), table=tables["visits"].assign(cost=-1.0)))
    tables["people"].assign(age=7).to_parquet(new.root / "data" / "people.parquet", index=False)
    result = new.run(new.definitions(), "source")
    passed, description, counts = said(result, "source_keeps_its_contract")
    assert not passed
    n_visits = len(tables["visits"])
    assert {name: counts[name] for name in counts if "greater" in name} == {
        "people: age: greater_than_or_equal_to(18)": N,
        "visits: cost: greater_than_or_equal_to(0)": n_visits,
    }
    assert "Table 'people' does not meet its contract" in description
    assert "Table 'visits' does not meet its contract" in description


def test_each_table_has_its_own_source(new):
    tables = clinic(N, 1).tables

    @dg.asset
    def drugs():
        return tables["drugs"]

    children = new.children("visits", "drugs")
    children["drugs"] = replace(children["drugs"], source=UpstreamAsset("drugs"))
    definitions = new.definitions(source=lambda: tables["people"], children=children)
    with new.instance() as instance:
        result = dg.materialize(
            [drugs, *definitions.assets],
            selection=dg.AssetSelection.assets("drugs", definitions.assets[0].key),
            resources=dict(definitions.resources),
            instance=instance,
            raise_on_error=False,
        )
    assert result.success, failure_of(result)
    assert new.artifact("source").header["links"]["drugs"] == {"parent": "people", "key": "patient", "order": None}
    assert {name: len(table) for name, table in new.artifact("source").frames.items()} == {
        name: len(table) for name, table in tables.items()
    }


def test_a_column_that_repeats_the_person_is_warned_of(new):
    tables = clinic(N, 1)
    sex = tables.people.set_index("patient")["sex"]
    visits = tables.children["visits"].table.assign(origin=lambda t: t["patient"].map(sex))
    visits.to_parquet(new.root / "data" / "visits.parquet", index=False)
    columns = {**VISITS_CONTRACT["columns"], "origin": {"type": "text", "role": "other"}}
    result = new.run(new.definitions(children=new.children(visits={"columns": columns})), "source")
    assert result.success, failure_of(result)
    passed, description, _ = said(result, "no_column_repeats_the_person")
    assert not passed
    assert "['origin'] of 'visits'. Move them to 'people'" in description


@pytest.fixture
def deep(tmp_path):
    made = RelatedProject(tmp_path)
    made.write(with_lines(clinic(N, 1)))
    return made


def test_rows_of_rows_leave_together_as_smooth_cart_makes_them(deep):
    settings = {"synthetic": Synthesis(seed=1), "utility": UtilitySettings(), "children": deep.two_levels()}
    result = deep.run(deep.definitions(**settings))
    assert result.success, failure_of(result)
    released = deep.release()
    assert verify_release(released, max_bytes=None).problems == ()
    assert files_of(released) == (FILES | {"lines.parquet"}) - {"drugs.parquet"}
    manifest, tables = manifest_of(released), tables_of(released)
    assert manifest["links"] == {
        "lines": {"parent": "visits", "key": "visit", "order": "line"},
        "visits": {"parent": "people", "key": "patient", "order": "date", "own_key": "visit"},
    }
    assert {name: own["rows"] for name, own in manifest["tables"].items()} == {n: len(t) for n, t in tables.items()}
    assert tables["visits"]["visit"].tolist() == list(range(1, len(tables["visits"]) + 1))
    assert set(tables["lines"]["visit"]) < set(tables["visits"]["visit"])
    assert tables["lines"]["visit"].tolist() == sorted(tables["lines"]["visit"])
    keys = [each["column"] for each in manifest["columns"] if each["role"] == "key"]
    assert keys == ["people: patient", "lines: visit", "visits: visit", "visits: patient"]
    (units,) = (each["reason"] for each in manifest["verdicts"] if each["name"] == "rows_belong_to_the_declared_people")
    assert "lines: nothing contradicts that the 'patient' of its 'visits' is the person" in units
    page = (released / "report.html").read_text()
    assert f"with {len(tables['lines'])} rows of lines and {len(tables['visits'])} rows of visits." in page
    for view in ("people", "rows of lines", "histories of lines", "rows of visits", "histories of visits"):
        assert f"<h3>View: {view}</h3>" in page
        assert f"Figures: mpucc assessment of {view}" in page
    assert "Bar chart: rows of lines per person" in page
    assert "Bar chart: consecutive rows of lines" in page
    croissant = json.loads((released / "croissant.json").read_text())
    assert [each["@id"] for each in croissant["recordSet"]] == ["people", "lines", "visits"]
    shown = result.asset_materializations_for_node(f"{NAME}__source")[0].metadata
    assert shown["privacy_assets/rows of lines"].value == len(with_lines(clinic(N, 1)).children["lines"].table)


def test_the_rows_of_visits_follow_their_people_into_the_split(deep):
    result = deep.run(deep.definitions(children=deep.two_levels()), "source", "original", "control")
    assert result.success, failure_of(result)
    source, *sides = (RelatedTables.from_artifact(deep.artifact(each)) for each in STAGES[:3])
    names = list(LINES_CONTRACT["columns"])
    for own in sides:
        of_them = source.children["visits"].table.merge(own.people[["patient"]])["visit"]
        assert own.children["visits"].table["visit"].tolist() == of_them.tolist()
        lines = source.children["lines"].table[names]
        expected = lines[lines["visit"].isin(of_them)].reset_index(drop=True)
        pd.testing.assert_frame_equal(own.children["lines"].table[names], expected)
    assert sum(len(own.children["lines"].table) for own in sides) == len(source.children["lines"].table)


def test_whose_rows_of_rows_are_is_judged_by_person(deep):
    """Their table may have the number of the person, which would otherwise seem to be of other people than visits."""
    tables = with_lines(clinic(N, 1))
    of_people = tables.people[["patient"]].assign(born=np.random.default_rng(0).integers(1930, 2000, N))
    of_people = of_people.iloc[tables.whose["lines"]].reset_index(drop=True)
    lines = pd.concat([tables.children["lines"].table, of_people], axis=1)
    lines.to_parquet(deep.root / "data" / "lines.parquet", index=False)
    columns = {**LINES_CONTRACT["columns"], "patient": {"type": "text", "role": "direct_identifier"}}
    columns["born"] = {"type": "integer", "role": "other"}
    result = deep.run(deep.definitions(children=deep.two_levels(lines={"columns": columns})), "source")
    assert result.success, failure_of(result)
    assert "patient" not in deep.artifact("source").frames["lines"]
    _, description, _ = said(result, "rows_belong_to_the_declared_people")
    assert "lines: nothing contradicts that the 'patient' of its 'visits' is the person" in description


BROKEN_LINES = {
    "orphans": (
        lambda t: {**t, "lines": t["lines"].assign(visit=t["lines"]["visit"].where(t["lines"].index > 2, 7))},
        "3 rows of 'lines' have a 'visit' that no row in 'visits' has",
    ),
    "lines of a person": (
        lambda t: {**t, "lines": t["lines"].assign(visit=-1)},
        "rows of 'lines' have a 'visit' that no row in 'visits' has",
    ),
    "a repeated visit": (
        lambda t: {**t, "visits": pd.concat([t["visits"], t["visits"].head(2)])},
        "2 rows of 'visits' repeat a 'visit'",
    ),
    "visits of nobody": (
        lambda t: {**t, "visits": t["visits"].assign(patient="nobody")},
        "rows of 'visits' have a 'patient' that nobody in 'people' has",
    ),
}


@pytest.mark.parametrize("what", BROKEN_LINES)
def test_a_row_without_the_row_above_it_stops_the_source(deep, what):
    change, message = BROKEN_LINES[what]
    for name, table in change(with_lines(clinic(N, 1)).tables).items():
        table.to_parquet(deep.root / "data" / f"{name}.parquet", index=False)
    result = deep.run(deep.definitions(children=deep.two_levels()), "source")
    passed, description, _ = said(result, "every_row_has_its_person")
    assert not passed
    assert message in description
    assert not deep.stored("source").exists()


def test_a_broken_rule_of_rows_of_rows_refuses_all(deep):
    tables = with_lines(clinic(N, 1))
    lines = tables.children["lines"].table
    lines.assign(price=lines["price"].clip(upper=30)).to_parquet(deep.root / "data" / "lines.parquet", index=False)
    contract = {**LINES_CONTRACT, "rules": {"cheap": "price <= 30"}}
    definitions = deep.definitions(children=deep.two_levels(lines=contract))
    assert "rule_violations_is_at_most_its_limit" in blocked_by(deep.run(definitions))
    made = with_lines(clinic(N // 2, 77), 77).children["lines"].table
    n_broken = int((made["price"] > 30).sum())
    assert f"'lines: cheap': {n_broken:,}" in refusal(deep.run(definitions, "synthetic_release"))
    assert deep.everything_released() == []


class CopiedLines(FromOthers):
    """People of the clinic and visits that nobody has seen, with the lines of the originals' visits."""

    name = "copied_lines"

    def fit_related(self, tables, *, seed):
        others = super().fit_related(tables, seed=seed)

        class Fitted:
            def sample(self, n_people, *, seed):
                made = others.sample(n_people, seed=seed)
                visits, lines = made.children["visits"].table, tables.children["lines"].table
                billed = pd.factorize(lines["visit"])[0]
                is_taken = billed < len(visits)
                lines = lines[is_taken].assign(visit=visits["visit"].to_numpy()[billed[is_taken]])
                own = replace(made.children["lines"], table=lines)
                return replace(made, children={**made.children, "lines": own})

        return Fitted()


def test_the_lines_of_the_originals_are_refused_whoever_gets_them(deep):
    definitions = deep.definitions(synthetic=Synthesis(method=CopiedLines()), children=deep.two_levels())
    result = deep.run(definitions)
    assert "no_leakage_is_detected" in blocked_by(result)
    assert "leakage_detected is yes; expected no" in refusal(deep.run(definitions, "synthetic_release"))
    assert deep.everything_released() == []
    others = deep.definitions(children=deep.two_levels())
    assert deep.run(others).success


def with_a_line_of_nobody(frames):
    return {**frames, "lines": frames["lines"].assign(visit=10**6)}


def with_visits_in_another_order(frames):
    return {**frames, "visits": frames["visits"].assign(visit=frames["visits"]["visit"].to_numpy()[::-1])}


def test_rows_of_rows_that_were_swapped_before_the_gate_are_refused(deep):
    definitions = deep.definitions(children=deep.two_levels())
    assert deep.run(definitions, *STAGES).success
    kept = deep.artifact("synthetic").frames
    n_visits = len(kept["visits"])
    for change, message in (
        (with_a_line_of_nobody, f"{len(kept['lines'])} rows of 'lines' have a 'visit' that no row in 'visits' has"),
        (with_visits_in_another_order, f"the 'visit' of 'visits' are not the numbers from 1 to {n_visits}"),
    ):
        deep.swap("synthetic", lambda frames, change=change: change({**frames, **kept}))
        assert message in refusal(deep.run(definitions, "synthetic_release"))
    deep.swap("synthetic", lambda _: kept)
    changed = deep.two_levels()
    without = {"visits": replace(changed["visits"], own_key=None)}
    other_order = {**changed, "lines": replace(changed["lines"], order=None)}
    for children in (without, other_order):
        why = refusal(deep.run(deep.definitions(children=children), "synthetic_release"))
        assert "synthetic does not meet the current contract" in why
    assert deep.everything_released() == []


class Copies(FromOthers):
    """People of the clinic whom nobody has seen, with the visits of the originals."""

    name = "copies"

    def fit_related(self, tables, *, seed):
        others = super().fit_related(tables, seed=seed)

        class Fitted:
            def sample(self, n_people, *, seed):
                made, n = others.sample(n_people, seed=seed), len(tables.people)
                known = dict(zip(tables.people["patient"], range(n), strict=True))
                visits = tables.children["visits"].table
                visits = visits.assign(patient=visits["patient"].map(known))
                return replace(
                    made, children={**made.children, "visits": replace(made.children["visits"], table=visits)}
                )

        return Fitted()


def test_the_visits_of_the_originals_are_refused_whoever_gets_them(new):
    result = new.run(new.definitions(synthetic=Synthesis(method=Copies())))
    assert not result.success
    assert "no_leakage_is_detected" in blocked_by(result)
    refused = new.run(new.definitions(synthetic=Synthesis(method=Copies())), "synthetic_release")
    assert "leakage_detected is yes; expected no" in refusal(refused)
    assert new.everything_released() == []


def test_a_table_that_fails_alone_refuses_all(new):
    tables = clinic(N, 1)
    drugs = tables.children["drugs"].table
    drugs.assign(drug=np.where(drugs.index == 0, "rarest", drugs["drug"])).to_parquet(
        new.root / "data" / "drugs.parquet", index=False
    )

    class WithRarest(FromOthers):
        def fit_related(self, tables, *, seed):
            others = super().fit_related(tables, seed=seed)

            class Fitted:
                def sample(self, n_people, *, seed):
                    made = others.sample(n_people, seed=seed)
                    table = made.children["drugs"].table
                    table = table.assign(drug=np.where(table.index == 0, "rarest", table["drug"]))
                    own = replace(made.children["drugs"], table=table)
                    return replace(made, children={**made.children, "drugs": own})

            return Fitted()

    definitions = new.definitions(synthetic=Synthesis(method=WithRarest()))
    assert blocked_by(new.run(definitions)) == {"rare_values_released_is_at_most_its_limit"}
    why = refusal(new.run(definitions, "synthetic_release"))
    assert "rare_values_released is 1" in why
    assert "add `options`" not in why
    assert "by column: 'drugs: drug': 1" in why
    assert new.everything_released() == []
    directory = new.root / "waivers"
    directory.mkdir()
    waived = new.definitions(synthetic=Synthesis(method=WithRarest()), waivers=str(directory))
    content = new.content("synthetic")
    sign(directory, content, 1, metric="rare_values_released", limit=0)
    result = new.run(waived)
    assert result.success, failure_of(result)
    assert manifest_of(new.release())["fingerprint"] == content
    assert manifest_of(new.release())["waivers"][0]["fingerprint"] == content
    assert verify_release(new.release(), max_bytes=None).problems == ()


def test_a_broken_rule_of_one_table_refuses_all(new):
    tables = clinic(N, 1)
    visits = tables.children["visits"].table
    is_dear = visits["cost"] > 40
    new.write(of_visits(tables, table=visits.assign(diagnosis=visits["diagnosis"].mask(is_dear, "a"))))
    contract = {**VISITS_CONTRACT, "rules": {"cheap": "cost <= 40 or diagnosis == 'a'"}}
    definitions = new.definitions(children=new.children("visits", visits=contract))
    result = new.run(definitions)
    assert "rule_violations_is_at_most_its_limit" in blocked_by(result)
    why = refusal(new.run(definitions, "synthetic_release"))
    made = clinic(N // 2, 77).children["visits"].table
    n_broken = int(((made["cost"] > 40) & (made["diagnosis"] != "a")).sum())
    assert f"'visits: cheap': {n_broken:,}" in why
    assert new.everything_released() == []
    lenient = replace(POLICY, limits=(*POLICY.limits, Limit("rule_violations", 0.99)))
    released = new.run(new.definitions(children=new.children("visits", visits=contract), policy=lenient))
    assert released.success, failure_of(released)
    figures = manifest_of(new.release())["figures"]["rules"]
    assert figures["records_with_violations"] == n_broken
    assert figures["rule_violations"] == n_broken / len(made)


def test_rules_of_all_tables_are_kept_and_counted(new):
    tables = clinic(N, 1)
    visits = tables.children["visits"].table
    new.write(of_visits(tables, table=visits.assign(diagnosis=visits["diagnosis"].mask(visits["cost"] > 40, "a"))))
    contract = {**VISITS_CONTRACT, "rules": {"cheap": "cost <= 40 or diagnosis == 'a'"}}
    never = {**PEOPLE_CONTRACT, "rules": {"none_is_old": "sex == 'female' or age < 90"}}
    result = new.run(
        new.definitions(synthetic=SMOOTH, contract=never, children=new.children("visits", visits=contract))
    )
    assert result.success, failure_of(result)
    manifest, made = manifest_of(new.release()), tables_of(new.release())["visits"]
    assert ((made["cost"] <= 40) | (made["diagnosis"] == "a")).all()
    assert manifest["figures"]["rules"]["records_with_violations"] == 0
    assert set(manifest["figures"]["rules"]["by_rule"]) == {"people: none_is_old", "visits: cheap"}
    kept = manifest["settings"]["synthetic"]["rules"]
    assert {name: own["left"] for name, own in kept.items()} == {"people": 0, "visits": 0}
    assert kept["people"]["redrawn"] == 0
    assert verify_release(new.release(), max_bytes=None).problems == ()


def test_rules_that_nobody_can_keep_are_counted_and_refuse_all(new, monkeypatch):
    monkeypatch.setattr(sequences, "MOST_ROUNDS", 0)
    monkeypatch.setattr(kept_rules, "MOST_ROUNDS", 0)
    tables = clinic(N, 1)
    visits = tables.children["visits"].table
    new.write(of_visits(tables, table=visits.assign(left=visits["date"] + pd.Timedelta(days=1))))
    columns = {**VISITS_CONTRACT["columns"], "left": {"type": "datetime", "role": "quasi_identifier"}}
    contract = {"columns": columns, "rules": {"order": "left > date"}}
    definitions = new.definitions(synthetic=SMOOTH, children=new.children("visits", visits=contract))
    assert "rule_violations_is_at_most_its_limit" in blocked_by(new.run(definitions))
    made = new.artifact("synthetic").frames["visits"]
    why = refusal(new.run(definitions, "synthetic_release"))
    assert f"'visits: order': {(made['left'] <= made['date']).sum():,}" in why
    assert new.everything_released() == []


def swapped(frames):
    return {**frames, "visits": frames["visits"].assign(patient=10**6)}


def reversed_people(frames):
    return {**frames, "people": frames["people"].iloc[::-1].reset_index(drop=True)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (swapped, "rows of 'visits' have a 'patient' that nobody in 'people' has"),
        (reversed_people, f"the 'patient' of 'people' are not the numbers from 1 to {N // 2} in their order"),
        (lambda frames: {**frames, "drugs": frames["drugs"].iloc[:-1]}, "is not what the run recorded"),
    ],
)
def test_tables_that_were_swapped_before_the_gate_are_refused(project, change, message):
    project.swap("synthetic", change)
    why = refusal(project.run(project.definitions(), "synthetic_release"))
    assert message in why
    assert "it was overwritten" in why or "could not be" in why or "no run made" in why
    assert project.everything_released() == []


@pytest.mark.parametrize("what", ["a table less", "a table more", "another order", "another range"])
def test_contracts_that_changed_since_refuse_all_tables(project, what):
    children = project.children()
    visits = {**VISITS_CONTRACT["columns"], "cost": {"type": "float", "role": "quasi_identifier", "max": 40}}
    changed = {
        "a table less": project.children("visits"),
        "a table more": {**children, "more": children["drugs"]},
        "another order": {**children, "visits": replace(children["visits"], order=None)},
        "another range": {**children, "visits": replace(children["visits"], contract={"columns": visits})},
    }[what]
    why = refusal(project.run(project.definitions(children=changed), "synthetic_release"))
    assert "synthetic does not meet the current contract" in why
    assert project.everything_released() == []


def test_the_histories_of_the_originals_swapped_in_before_the_gate_are_refused(project):
    original = RelatedTables.from_artifact(project.artifact("original")).renumbered()
    project.swap("synthetic", lambda frames: {**frames, "visits": original.children["visits"].table})
    why = refusal(project.run(project.definitions(), "synthetic_release"))
    assert "the stored synthetic table is not what the run recorded" in why
    assert "was made from a different synthetic table than the one that would be released" in why
    assert project.everything_released() == []


def test_a_release_of_these_tables_again_needs_the_same_people_or_content(project):
    result = project.run(project.definitions(), "synthetic_release")
    assert result.success, failure_of(result)
    others = project.definitions(synthetic=Synthesis(method=FromOthers(seed=78)))
    again = project.run(others)
    assert not again.success
    assert "1 other releases of the same originals were published" in failure_of(again)
    assert len(list((project.root / "releases" / NAME / "synthetic").glob("2*"))) == 1


def test_other_columns_and_children_of_the_same_people_are_of_the_same_people(project, capfd):
    result = project.run(project.definitions(), "synthetic_release")
    assert result.success, failure_of(result)
    tables = clinic(N, 1)
    # Their numbers are spelled otherwise, and one column and one child are gone.
    people = tables.people.assign(patient=" " + tables.people["patient"].str.upper())
    people.drop(columns="sex").to_parquet(project.root / "data" / "people.parquet", index=False)
    visits = tables.children["visits"].table.drop(columns="paid")
    visits = visits.assign(patient=visits["patient"].str.upper())
    visits.to_parquet(project.root / "data" / "visits.parquet", index=False)
    columns = {name: own for name, own in PEOPLE_CONTRACT["columns"].items() if name != "sex"}
    of_visits_ = {name: own for name, own in VISITS_CONTRACT["columns"].items() if name != "paid"}
    fewer = build_release_definitions(
        "fewer",
        source=project.file("people"),
        contract={"columns": columns},
        children=project.children("visits", visits={"columns": of_visits_}),
        policy=POLICY,
        split=Split(train_fraction=0.5),
        synthetic=Synthesis(seed=8),
        private_path=str(project.private),
        release_path=str(project.root / "releases"),
    )
    again = project.run(fewer)
    assert not again.success
    assert "1 other releases of the same originals were published" in failure_of(again)
    # What is kept of the numbers is the same for both, and cannot be made without the key.
    kept = project.private / "people_of_related" / "fewer" / "people"
    before = (project.private / "people_of_related" / NAME / "people").read_bytes()
    assert len(kept.read_bytes()) == 64 + 8 * N
    assert sorted(np.frombuffer(before[64:], "<u8")) == sorted(np.frombuffer(kept.read_bytes()[64:], "<u8"))
    plain = [hashlib.sha256(number.encode()).digest()[:8] for number in tables.people["patient"]]
    assert not any(own in before for own in plain)


def test_people_of_another_source_are_not_taken_for_these(project):
    project.write(clinic(N, 2))
    assert project.run(project.definitions(), "source").success
    result = project.run(project.definitions(), "disclosure_assessment")
    assert not result.success
    assert "It is unknown who the people of this split are" in failure_of(result)
    assert project.run(project.definitions(), *STAGES).success


def test_other_splits_of_the_same_people_count(project):
    for seed in (1, 2):
        definitions = project.definitions(split=Split(train_fraction=0.5, seed=seed))
        assert project.run(definitions, *STAGES[1:]).success
    why = refusal(project.run(project.definitions(split=Split(train_fraction=0.5, seed=2)), "synthetic_release"))
    assert "2 other splits of these people were tried before" in why


def test_a_signed_release_waits_for_two_approvals(project, monkeypatch, capsys):
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    officers = Officers(project, "Ada", "Grace")
    key, public, _ = generate_key_pair(project.root / "signing.pem")
    settings = {
        "policy": POLICY.with_required(approvals=2, signature=True),
        "approvers": str(officers.file),
        "signing": SigningKey(path=str(key)),
    }
    definitions = project.definitions(**settings)
    waits = project.run(definitions, "synthetic_release")
    assert "is not released yet" in failure_of(waits)
    assert files_of(officers.waiting) >= {"people.parquet", "visits.parquet", "drugs.parquet"}
    for name in ("Ada", "Grace"):
        assert officers.decide(monkeypatch, name) == 0
    assert f"{N // 2} synthetic people with " in capsys.readouterr().out
    result = project.run(definitions, "synthetic_release")
    assert result.success, failure_of(result)
    released = project.release()
    found = verify_release(released, public_keys=[public], approvers=officers.file, max_bytes=None)
    assert found.problems == ()
    assert len(found.approvals) == 2
    assert files_of(released) >= FILES | {"signature.json"}
    shutil.copy(released / "drugs.parquet", released / "visits.parquet")
    assert verify_release(released, public_keys=[public], max_bytes=None).problems


def test_a_withdrawn_content_is_not_released_again(project):
    assert project.run(project.definitions(), "synthetic_release").success
    assert main(["withdraw", str(project.release()), "--reason", "The recipient broke the contract"]) == 0
    assert "The recipient broke the contract" in verify_release(project.release(), max_bytes=None).withdrawn
    why = refusal(project.run(project.definitions(), "synthetic_release"))
    assert "withdrawn" in why


def sentinel_tables(n=300):
    rng = np.random.default_rng(0)
    people = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "patient": [f"{IDENTIFIER}-{number}" for number in range(n)],
            "sex": rng.choice(["female", "male"], n),
        }
    )
    whose = rng.integers(0, n, 2 * n)
    visits = pd.DataFrame(
        {
            "date": DATE + pd.to_timedelta(rng.integers(0, 4, 2 * n), unit="s"),
            "diagnosis": rng.choice([TEXT, LISTED], 2 * n),
            "patient": people["patient"].to_numpy()[whose],
            "cost": FLOAT + rng.integers(0, 3, 2 * n),
            "paid": rng.random(2 * n) < 0.5,
        }
    )
    visits["visit"] = [f"{IDENTIFIER}-v{number}" for number in rng.permutation(2 * n)]
    lines = pd.DataFrame({"visit": visits["visit"].to_numpy()[rng.integers(0, 2 * n, 2 * n)]})
    lines["item"] = rng.choice([TEXT, LISTED], 2 * n)
    lines["price"] = FLOAT + rng.integers(0, 3, 2 * n)
    return {"people": people, "visits": visits, "lines": lines}


SENTINEL_FAILURES = {
    "nothing": (lambda t: t, None),
    "orphans": (
        lambda t: {**t, "visits": t["visits"].assign(patient=t["visits"]["patient"] + "-x")},
        "600 rows of 'visits' have a 'patient' that nobody in 'people' has",
    ),
    "numbers": (lambda t: {**t, "visits": t["visits"].assign(cost=TEXT)}, "column 'cost' fails has_type_float"),
    "missing keys": (
        lambda t: {**t, "visits": t["visits"].assign(patient=None)},
        "Table 'visits' does not meet",
    ),
    "another column": (lambda t: {**t, "visits": t["visits"].assign(**{TEXT: 1})}, "1 columns (positions 6) are not"),
    "repeated": (lambda t: {**t, "people": pd.concat([t["people"]] * 2)}, "300 rows of 'people' repeat a 'patient'"),
    "repeated visits": (
        lambda t: {**t, "visits": pd.concat([t["visits"]] * 2)},
        "600 rows of 'visits' repeat a 'visit'",
    ),
    "lines of no visit": (
        lambda t: {**t, "lines": t["lines"].assign(visit=t["lines"]["visit"] + "-x")},
        "600 rows of 'lines' have a 'visit' that no row in 'visits' has",
    ),
    "prices": (lambda t: {**t, "lines": t["lines"].assign(price=TEXT)}, "column 'price' fails has_type_float"),
    "a column of lines": (
        lambda t: {**t, "lines": t["lines"].assign(**{TEXT: 1})},
        "1 columns (positions 3) are not",
    ),
    "broken rules": (lambda t: {**t, "lines": t["lines"].assign(price=-FLOAT)}, "column 'price' fails greater_than"),
}


@pytest.mark.pictures
@pytest.mark.parametrize("what", SENTINEL_FAILURES)
def test_no_key_and_no_cell_of_a_child_is_found_anywhere(tmp_path, capfd, what):
    change, message = SENTINEL_FAILURES[what]
    project = RelatedProject(tmp_path)
    for name, table in change(sentinel_tables()).items():
        table.to_parquet(project.root / "data" / f"{name}.parquet", index=False)
    key = {"visit": {"type": "text", "role": "direct_identifier"}}
    lines = {name: own for name, own in LINES_CONTRACT["columns"].items() if name != "line"}
    children = project.two_levels({"columns": {**VISITS_CONTRACT["columns"], **key}}, {"columns": {**lines, **key}})
    children["lines"] = replace(children["lines"], order=None)
    settings = {"children": children, "synthetic": Synthesis(settings={"smoothing": 0})}
    with faster_runs.texts_of_pictures() as texts:
        result = project.run(project.definitions(**settings))
    project.written_in_pictures.extend(texts)
    if message is None:
        assert [each for each in STAGES if not project.stored(each).exists()] == []
        page = [*project.private.rglob("refusal.html"), *(project.root / "releases").rglob("report.html")]
        assert page
        assert "rows of visits per person; 5+ are 5 or more" in texts
        assert [each for each in texts if each.startswith("rows of lines per person; ")]
    else:
        assert not result.success
        assert message in failure_of(result)
    assert_nothing_leaked(project, capfd)
