"""Sentinels in every kind of column, driven through success and every kind of failure; then looked for everywhere.

Everywhere is the whole directory of the Dagster instance (event database, run storage, compute logs) and what the
process printed, and of every release all but its data files. The private directory may hold cells; nothing else may.
"""

import errno
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

from privacy_assets.cli import main
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.contract.contract import TableContract
from privacy_assets.display.pictures import Drawn, new_figure
from privacy_assets.orchestration import anonymized_assets, assets, linkage_assets
from privacy_assets.orchestration.private import resources
from privacy_assets.orchestration.risk_checks import build_privacy_risk_checks
from privacy_assets.orchestration.settings.anonymized import (
    AnonymizationSettings,
    OtherReleaseSettings,
    ReidentificationSettings,
)
from privacy_assets.orchestration.settings.sources import SqlQuery, TableFile, UpstreamAsset
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings, ExternalSynthetic, GivenSplit, Synthesis
from privacy_assets.pipeline.settings.linkage import LinkageAuditSettings
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.signing import generate_key_pair
from tests.extras import CART, NEEDS_SPLINK
from tests.orchestration import faster_runs
from tests.orchestration.private.loud import places_to_spill_into
from tests.orchestration.project import ADMITS, ASSESSMENT, NAME, PROJECT_VARIABLE, Project, refusal
from tests.orchestration.sentinels import (
    CONTRACT,
    DATE,
    FLOAT,
    IDENTIFIER,
    INTEGER,
    LISTED,
    SENTINELS,
    TEXT,
    assert_nothing_leaked,
    enough_sentinel_people,
    everything_that_was_said,
    sentinel_people,
    sentinel_synthetic,
)

pytestmark = pytest.mark.pictures

NUMBER = {"type": "integer", "role": "other", "leaves_as_is": "Numbers of the study, as its board decided"}


def loud_source() -> pd.DataFrame:
    """Give a good table, and shout every cell on the way."""
    table = enough_sentinel_people()
    print(table)
    print(table.to_string(), file=sys.stderr)
    logging.getLogger("loud").warning("first row: %s", table.iloc[0].to_dict())
    logging.getLogger().error("%s", table)
    dg.get_dagster_logger().info("first row: %s", table.iloc[0].to_dict())
    own = logging.getLogger("own")
    own.addHandler(logging.StreamHandler(sys.__stderr__))
    own.warning("first row: %s", table.iloc[0].to_dict())
    own.handlers.clear()
    warnings.warn(f"odd value {table.iloc[0].to_dict()}", stacklevel=1)
    # Below Python: what a library in C or a child process prints.
    os.write(1, table.to_string().encode())
    os.write(2, table.to_string().encode())
    subprocess.run(["echo", TEXT, IDENTIFIER], check=True)
    return table


def raising(error: BaseException):
    def source() -> pd.DataFrame:
        cells = sentinel_people().iloc[0].to_dict()
        try:
            raise ValueError(f"could not convert {cells}")
        except ValueError as cause:
            error.add_note(f"while reading {cells}")
            raise error from cause

    return source


def killed() -> pd.DataFrame:
    print(sentinel_people().to_string(), flush=True)
    spilled = Path(tempfile.gettempdir(), "spilled")
    spilled.write_text(TEXT)
    Path(json.loads(os.environ[PROJECT_VARIABLE])["root"], "spilled_to").write_text(str(spilled))
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


class LoudSynthesizer:
    """Raises with cells from fit, from sample, or returns something that is no frame."""

    name = "loud"
    settings: dict = {}  # noqa: RUF012

    def __init__(self, where: str) -> None:
        self.where = where

    def fit(self, table, *, seed):
        self.table = table
        print(table.to_string())
        if self.where == "fit":
            raise RuntimeError(f"cannot fit {table.iloc[0].to_dict()}")
        if self.where == "failure":
            raise dg.Failure(f"cannot fit {table.iloc[0].to_dict()}", metadata={"row": str(table.iloc[0].to_dict())})
        return self

    def sample(self, n_records, *, seed):
        if self.where == "sample":
            raise KeyError(self.table["name_of_plan"].iloc[0])
        return {"list": self.table.to_numpy().tolist()} if self.where == "type" else self.table.iloc[:n_records, :2]


def changed(**columns) -> object:
    return lambda: sentinel_people().assign(**columns)


def some(values: list) -> list:
    return (values * 120)[:120]


# Each failure: what makes it, and a part of the message that must come out instead of the cells.
SOURCE_FAILURES = {
    "wrong dtype": (changed(income=some([TEXT])), "income"),
    "unparsable number": (changed(income=some([str(INTEGER), f"{INTEGER}x"])), "income"),
    "contract violation": (changed(income=some([-INTEGER, INTEGER])), "income"),
    "unknown category": (changed(region=some([TEXT, LISTED])), "region"),
    "missing value": (changed(admitted=some([DATE, None])), "admitted"),
    "missing person": (changed(patient=some([IDENTIFIER, None])), "patient"),
    "missing column": (lambda: sentinel_people().drop(columns="income"), "income"),
    "extra column": (changed(extra=some([TEXT])), "1 columns (positions 6) are not in the contract"),
    "columns named after cells": (
        changed(**{TEXT: 1, LISTED: 2}),
        "2 columns (positions 6, 7) are not in the contract",
    ),
    "column named by a number": (lambda: sentinel_people().rename(columns={"cost": INTEGER}), "1 are not text"),
    "infinity": (changed(cost=some([FLOAT, np.inf])), "cost"),
    "unparsable datetime": (changed(admitted=some([f"{DATE} {TEXT}"])), "admitted"),
    "column of lists": (changed(name_of_plan=some([[LISTED], [TEXT]])), "name_of_plan"),
    "empty table": (lambda: sentinel_people().iloc[:0], "there are no records"),
    "repeated column": (
        lambda: pd.concat([sentinel_people(), sentinel_people()], axis=1),
        "repeated|duplicate|twice|once",
    ),
    "no frame": (lambda: sentinel_people().to_numpy().tolist(), "expected a pandas DataFrame"),
    "missing file": (TableFile("nowhere/people.csv"), "no file"),
    "key error": (raising(KeyError(TEXT)), "KeyError"),
    "value error with cause and notes": (raising(ValueError(f"{TEXT} {INTEGER}")), "ValueError"),
    "operating system error": (raising(OSError(errno.ENOSPC, TEXT)), "No space left on device"),
    "memory error": (raising(MemoryError(TEXT)), "Memory ran out"),
    "group of errors": (raising(ExceptionGroup(TEXT, [ValueError(TEXT)])), "ExceptionGroup"),
    "interrupt": (raising(KeyboardInterrupt(f"{TEXT} {INTEGER}")), "KeyboardInterrupt"),
    "exit": (raising(SystemExit(f"{TEXT} {INTEGER}")), "SystemExit"),
    "someone else's failure": (raising(dg.Failure(TEXT, metadata={"cell": TEXT})), "withheld"),
}


@pytest.fixture
def project(tmp_path):
    settings = {"contract": CONTRACT, "synthetic": ExternalSynthetic(sentinel_synthetic, control_was_withheld=True)}
    with faster_runs.texts_of_pictures() as texts:
        yield Project(tmp_path, settings=settings, written_in_pictures=texts)


def assert_failed(result, stage):
    assert not result.success
    assert f"{NAME}__{stage}" in [event.step_key for event in result.all_events if event.is_step_failure]


def test_the_search_would_find_a_leak(project, capfd):
    @dg.asset
    def careless(context):
        figure = new_figure(2, 2)
        axes = figure.subplots()
        axes.set_yticks([1], labels=[LISTED])
        axes.set_title(f"{FLOAT}")
        Drawn(figure, "", "").png()
        context.log.info(str(sentinel_people().iloc[0].to_dict()))
        raise ValueError(f"{DATE.value}")

    with project.instance() as instance:
        dg.materialize([careless], instance=instance, raise_on_error=False)
    said = everything_that_was_said(project, capfd)
    leaked = (TEXT, IDENTIFIER, LISTED, str(INTEGER), str(DATE.value), "73918.26")
    assert {each.encode() for each in leaked} <= {sentinel for sentinel in SENTINELS if sentinel in said}


@pytest.mark.filterwarnings("ignore:odd value")
@pytest.mark.parametrize("method", ["external", "gaussian_copula", "smooth_cart", CART])
def test_success_shows_no_cell(project, capfd, method):
    synthetic = {} if method == "external" else {"synthetic": Synthesis(method)}
    definitions = project.definitions(source=loud_source, **synthetic, limit=ADMITS, formats=("csv",))
    result = project.run(definitions)
    assert result.asset_materializations_for_node(f"{NAME}__{ASSESSMENT}")
    assert_nothing_leaked(project, capfd, "identification_rate")


@pytest.mark.parametrize("method", ["external", "gaussian_copula"])
def test_values_of_too_few_people_are_refused_without_being_shown(project, capfd, method):
    policy = Policy(
        (Limit("privacy_risk_score", ADMITS, "at_most"), Limit("rare_values_released", 0)),
        RequiredSettings(control_records=20, detectable_share=None, people_per_value=1000),
    )
    synthetic = {} if method == "external" else {"synthetic": Synthesis(method)}
    definitions = project.definitions(source=sentinel_people, policy=policy, **synthetic)
    result = project.run(definitions)
    assert not result.success
    # Where records are made here, there is nothing to redraw from.
    expected = "by column: " if method == "external" else "all values of these columns are rare"
    assert_nothing_leaked(project, capfd, expected)


def explode(table):
    raise ValueError(f"{TEXT} {table.iloc[0].to_dict()}")


OF_INCOME = {"determines": ["income", "region"], "at_most": 0.9}
RULES = {
    "source": ({"late": 'admitted > "2000-01-01"'}, {}, "rule 'late' is violated in 120 records"),
    "contradiction": (
        {"up": {"expect": f"income > {INTEGER}", "at_most": 0.9}, "down": f"income <= {INTEGER}"},
        {},
        "rules 'up' and 'down' contradict",
    ),
    "gate": ({"of_income": OF_INCOME}, {}, "records by rule: 'of_income': "),
    "joined": ({"of_income": OF_INCOME}, {"min_atom": 1000}, "min_atom=1000 people share"),
    "kept": ({"of_income": OF_INCOME, "free": "cost - cost == 0"}, {"min_atom": 5}, "rule_violations is 0"),
    "function": (None, {}, "explode (could not be evaluated)"),
}


@pytest.mark.parametrize(("rules", "settings", "said"), RULES.values(), ids=RULES)
def test_rules_are_judged_without_a_cell(project, capfd, rules, settings, said):
    contract = TableContract.from_mapping(CONTRACT).schema
    checks = [pa.Check(explode)] if rules is None else None
    contract = TableContract(pa.DataFrameSchema(contract.columns, checks=checks, metadata={"rules": rules or {}}))
    synthetic = {"synthetic": Synthesis("gaussian_copula", settings=settings)} if settings else {}
    policy = Policy((Limit("privacy_risk_score", ADMITS, "at_most"),), RequiredSettings(control_records=20))
    project.run(project.definitions(source=sentinel_people, contract=contract, policy=policy, **synthetic))
    assert_nothing_leaked(project, capfd, said)


def anonymized(project, smallest=5, about=None, required=None, **settings):
    policy = Policy(
        (
            Limit("smallest_class", smallest),
            *([Limit("max_reidentification_probability", 0.9999)] if settings.get("output") != "centroid" else []),
            Limit("maximum_semantic_risk", 0.9999),
            Limit("share_in_homogeneous_classes", 0),
        )
    ).with_required(**required or {})
    anonymized = AnonymizationSettings(**settings)
    return project.definitions(
        policy=policy, source=sentinel_people, synthetic=None, anonymized=anonymized, **about or {}
    )


@pytest.mark.filterwarnings("ignore:odd value")
@pytest.mark.parametrize(
    "settings", [{}, {"relaxed": True}, {"bounds": "cell"}, {"output": "centroid"}, {"t_closeness": 0.5}], ids=str
)
def test_anonymized_records_that_are_released_show_no_cell(project, capfd, settings):
    result = project.run(anonymized(project, **settings))
    assert result.success
    assert_nothing_leaked(project, capfd, "smallest_class")


def test_what_waits_for_people_and_what_they_decide_shows_no_cell(project, capfd, monkeypatch):
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    private, public, _ = generate_key_pair(project.root / "key.pem")
    approvers = project.root / "approvers.yaml"
    approvers.write_text(json.dumps([{"name": "Ada", "role": "officer", "public_key": public.read_text()}]))
    about = {"approvers": str(approvers)}
    required = {"approvals": 1, "declaration": ("purpose",)}
    asked = ["--statement", "Very small risk for them", "--key", str(private)]
    assert not project.run(anonymized(project, about=about, required=required)).success
    assert_nothing_leaked(project, capfd, "released yet: the declaration lacks purpose|waits for 1 of 1 approvals")
    definitions = anonymized(project, about=about | {"declaration": {"purpose": "Teaching"}}, required=required)
    assert not project.run(definitions, "anonymized_release").success
    (waiting,) = (path.parent for path in (project.private / "pending").rglob("manifest.json"))
    monkeypatch.setattr("builtins.input", lambda _: "yes")
    assert main(["approve", str(waiting), *asked]) == 0
    assert_nothing_leaked(project, capfd, "Open points: ")
    # Anything but what waits: a table of cells in its place.
    (waiting / "manifest.json").write_bytes((waiting / "anonymized.parquet").read_bytes())
    (waiting / "approval-broken.json").write_text(json.dumps({TEXT: IDENTIFIER}))
    assert main(["approve", str(waiting), *asked]) == 1
    (waiting / "approval-broken.json").rename(project.private / "broken.json")
    (waiting / "manifest.json").unlink()
    assert project.run(definitions, "anonymized_release").success
    (directory,) = project.releases(side="anonymized")
    assert main(["withdraw", str(directory), "--reason", "The key was lost"]) == 0
    assert_nothing_leaked(project, capfd, "The key was lost")


def test_the_reports_of_both_sides_show_no_cell(project, capfd):
    limits = (
        Limit("privacy_risk_score", ADMITS, "at_most"),
        Limit("smallest_class", 5),
        Limit("max_reidentification_probability", 0.9999),
        Limit("maximum_semantic_risk", 0.9999),
        Limit("information_loss", 0.000_001),
    )
    numbered = {**CONTRACT["columns"], "number": NUMBER}
    definitions = project.definitions(
        contract={"columns": numbered},
        policy=Policy(limits),
        source=lambda: sentinel_people().assign(number=range(INTEGER, INTEGER + 120)),
        synthetic=ExternalSynthetic(lambda: sentinel_synthetic().assign(number=range(INTEGER + 20, INTEGER + 110))),
        anonymized=AnonymizationSettings(k=5, pictured=("income", "admitted")),
        semantic_risk=SemanticRiskSettings(),
    )
    assert project.run(definitions).success
    shown = {
        "synthetic": (
            "Identification rate if one or two columns were dropped",
            "Bar chart: synthetic records that single out a real one",
            "Bar chart: figures against their limits",
        ),
        "anonymized": ("Semantic risk if columns were forgotten", "Classes as rectangles", "Open points"),
    }
    for side, parts in shown.items():
        page = (project.releases(side=side)[0] / "report.html").read_text()
        assert [part for part in parts if part not in page] == []
    assert_nothing_leaked(project, capfd, "smallest_class")


def test_anonymized_records_that_are_refused_show_no_cell(project, capfd):
    definitions = anonymized(project, smallest=6, k=2)
    project.run(definitions)
    refusal(project.run(definitions, "anonymized_release"), "anonymized")
    assert_nothing_leaked(project, capfd, "was refused")


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"k": 1000}, "k is 1000"), ({"l_diversity": {"cost": 50}}, "l_diversity"), ({"t_closeness": 0.0, "k": 2}, None)],
    ids=str,
)
def test_an_anonymization_that_cannot_be_reached_shows_no_cell(project, capfd, settings, message):
    project.run(anonymized(project, **settings))
    assert_nothing_leaked(project, capfd, message)


@pytest.mark.parametrize("lacks_a_value", [False, True])
def test_hierarchies_show_no_cell(project, capfd, lacks_a_value):
    plans = [TEXT] if lacks_a_value else [TEXT, f"{TEXT} II"]
    hierarchies = {
        "income": {"intervals": [1000]},
        "name_of_plan": {"tree": {"any": plans}},
        "admitted": {"dates": ["month"]},
        "region": {"tree": {"any": [TEXT, "north", "south"]}},
    }
    project.run(anonymized(project, method="lattice", hierarchies=hierarchies))
    assert len(project.releases(side="anonymized")) == (not lacks_a_value)
    assert_nothing_leaked(project, capfd, "name_of_plan" if lacks_a_value else "smallest_class")


def test_an_anonymization_that_breaks_shows_no_cell(project, capfd, monkeypatch):
    def broken(table, *_, **__):
        raise KeyError(f"{TEXT} {table.frame().iloc[0].to_dict()}")

    monkeypatch.setattr(anonymized_assets, "anonymize_with", broken)
    assert_failed(project.run(anonymized(project)), "anonymized")
    assert_nothing_leaked(project, capfd, "KeyError")


@pytest.mark.parametrize("what", ["assess_reidentification", "assess_semantic_risk_with"])
def test_an_assessment_of_records_that_breaks_shows_no_cell(project, capfd, monkeypatch, what):
    def broken(table, *_, **__):
        raise KeyError(f"{TEXT} {INTEGER} {table}")

    monkeypatch.setattr(anonymized_assets, what, broken)
    project.run(anonymized(project))
    assert_nothing_leaked(project, capfd, "failed with KeyError")


@pytest.mark.parametrize("method", ["distance", pytest.param("fellegi_sunter", marks=NEEDS_SPLINK)])
def test_a_linkage_audit_shows_no_cell_whether_it_succeeds_or_breaks(project, capfd, monkeypatch, method):
    known = [name for name in CONTRACT["columns"] if name != "patient"]
    definitions = project.definitions(
        policy=Policy((Limit("smallest_class", 5),)),
        source=sentinel_people,
        synthetic=None,
        anonymized=AnonymizationSettings(),
        linkage_audit=LinkageAuditSettings(method=method, known=known),
    )
    result = project.run(definitions)
    assert result.success
    assert_nothing_leaked(project, capfd, "expected_correct_links")

    def broken(table, *_, **__):
        raise KeyError(f"{TEXT} {INTEGER} {table}")

    monkeypatch.setattr(linkage_assets, "audit_linkage", broken)
    assert_failed(project.run(definitions, "linkage_audit"), "linkage_audit")
    assert_nothing_leaked(project, capfd, "failed with KeyError")


def test_withheld_records_and_other_releases_show_no_cell(project, capfd):
    numbered = {**CONTRACT["columns"], "number": NUMBER}

    def people() -> pd.DataFrame:
        return sentinel_people().assign(number=range(INTEGER, INTEGER + 120))

    model = ReleaseModel.from_labels(["name_of_plan"])
    for seed, outcome in ((0, "share_of_singletons"), (1, "contradicts the assessed release")):
        plans = sentinel_people(seed=seed)["name_of_plan"]
        other = pd.DataFrame({"name_of_plan": plans, "number": people()["number"]})
        held = OtherReleaseSettings("labels", "number", table=lambda other=other: other, model=model)
        definitions = project.definitions(
            contract={"columns": numbered},
            policy=Policy((Limit("smallest_class", 2), Limit("max_reidentification_probability", 0.5))),
            source=people,
            synthetic=None,
            anonymized=AnonymizationSettings(k=30),
            reidentification=ReidentificationSettings(other_releases=(held,)),
            semantic_risk=SemanticRiskSettings(
                scales={"cost": {"ordinal": [FLOAT, FLOAT + 1]}}, risk_limit=0.5, withhold=True, of_source=True
            ),
        )
        project.run(definitions)
        assert_nothing_leaked(project, capfd, outcome)


@pytest.mark.parametrize("broken", [False, True])
def test_checks_on_assets_of_others_show_no_cell(project, capfd, broken):
    def made(name, table):
        return dg.asset(name=name, io_manager_key="memory")(lambda: table)

    synthetic = sentinel_synthetic().assign(region=LISTED) if broken else sentinel_synthetic()
    definitions = build_privacy_risk_checks(
        assets=UpstreamAsset("shared", "memory"),
        original=UpstreamAsset("seen", "memory"),
        contract=CONTRACT,
        policy=Policy((Limit("privacy_risk_score", ADMITS, "at_most"),)),
        private_path=str(project.private),
    )
    with project.instance() as instance:
        dg.materialize(
            [made("seen", sentinel_people()), made("shared", synthetic), *definitions.asset_checks],
            resources={**definitions.resources, "memory": dg.InMemoryIOManager()},
            instance=instance,
            raise_on_error=False,
        )
    assert_nothing_leaked(project, capfd, "region" if broken else "privacy_risk_score")


def test_generalized_synthetic_records_show_no_cell(project, capfd):
    policy = Policy((Limit("privacy_risk_score", ADMITS, "at_most"), Limit("smallest_class", 5)))
    definitions = project.definitions(
        policy=policy, source=enough_sentinel_people, generalize_synthetic=AnonymizationSettings(k=5)
    )
    result = project.run(definitions)
    assert result.asset_materializations_for_node(f"{NAME}__{ASSESSMENT}")
    assert_nothing_leaked(project, capfd, "identification_rate")


@pytest.mark.parametrize("failure", SOURCE_FAILURES, ids=lambda name: name.replace(" ", "-"))
def test_a_source_that_fails_shows_no_cell(project, capfd, failure):
    source, message = SOURCE_FAILURES[failure]
    result = project.run(project.definitions(source=source))
    assert_failed(result, "source")
    assert_nothing_leaked(project, capfd, message)


def test_an_unreadable_parquet_file_shows_no_cell(project, capfd):
    path = project.root / "data" / "people.parquet"
    path.write_bytes(b"PAR1" + TEXT.encode() * 50 + b"PAR1")
    assert_failed(project.run(project.definitions(source=TableFile(str(path)))), "source")
    assert_nothing_leaked(project, capfd, "begins like a Parquet file, but is damaged or cut off")


def test_an_unreadable_csv_file_shows_no_cell(project, capfd):
    path = project.root / "data" / "people.csv"
    path.write_text(f"a,b\n{TEXT},1\n{TEXT},1,2,{INTEGER}\n")
    assert_failed(project.run(project.definitions(source=TableFile(str(path)))), "source")
    assert_nothing_leaked(project, capfd, "records with a different number of fields than its header, 2")


@pytest.mark.parametrize(
    "query", [f"SELECT * FROM people WHERE name_of_plan = '{TEXT}' AND", f"SELECT no_such_{INTEGER} FROM people"]
)
def test_a_sql_error_shows_no_cell(project, capfd, monkeypatch, query):
    pytest.importorskip("sqlalchemy", reason="needs the extra `sql`")
    monkeypatch.setenv("PEOPLE_URL", f"sqlite:///{project.root / 'people.db'}")
    assert_failed(project.run(project.definitions(source=SqlQuery(query, "PEOPLE_URL"))), "source")
    assert_nothing_leaked(project, capfd, "DatabaseError|OperationalError")


def test_a_sql_url_that_is_not_set_is_named(project, capfd):
    assert_failed(project.run(project.definitions(source=SqlQuery("SELECT 1", "PEOPLE_URL_NOT_SET"))), "source")
    assert_nothing_leaked(project, capfd, "PEOPLE_URL_NOT_SET")


@pytest.mark.parametrize("where", ["fit", "sample", "failure", "type", "columns"])
def test_a_synthesizer_that_fails_shows_no_cell(project, capfd, where):
    definitions = project.definitions(source=enough_sentinel_people, synthetic=Synthesis(LoudSynthesizer(where)))
    assert_failed(project.run(definitions), "synthetic")
    assert_nothing_leaked(project, capfd, "people__synthetic failed with")


def test_synthetic_records_that_break_the_contract_show_no_cell(project, capfd):
    broken = ExternalSynthetic(lambda: sentinel_synthetic().assign(region=LISTED), control_was_withheld=True)
    assert_failed(project.run(project.definitions(source=enough_sentinel_people, synthetic=broken)), "synthetic")
    assert_nothing_leaked(project, capfd, "region")


def test_a_person_on_both_sides_of_a_given_split_shows_no_cell(project, capfd):
    both = GivenSplit(sentinel_people, lambda: sentinel_people(30, seed=2))
    result = project.run(project.definitions(source=None, split=both))
    assert_failed(result, "split")
    assert not result.asset_materializations_for_node(f"{NAME}__split")
    assert_nothing_leaked(project, capfd, "30 people have records in both")


def test_a_full_disk_shows_no_cell(project, capfd, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, f"No space left for {TEXT} {INTEGER}")

    monkeypatch.setattr(resources, "write_artifact", full)
    assert_failed(project.run(project.definitions(source=enough_sentinel_people)), "source")
    assert_nothing_leaked(project, capfd, "No space left on device")


def test_a_table_that_cannot_be_stored_shows_no_cell(project, capfd, monkeypatch):
    def broken(*_):
        raise TypeError(f"cannot store {TEXT}")

    monkeypatch.setattr(resources, "write_artifact", broken)
    assert_failed(project.run(project.definitions(source=enough_sentinel_people)), "source")
    assert_nothing_leaked(project, capfd, "Storing people/source failed with TypeError")


@pytest.mark.parametrize("damaged", ["source", "original"])
def test_a_stored_table_that_cannot_be_read_shows_no_cell(project, capfd, damaged):
    definitions = project.definitions(source=enough_sentinel_people)
    project.run(definitions, "source", "original", "control")
    (project.stored(damaged) / "table.parquet").write_bytes(b"PAR1" + TEXT.encode() * 40 + b"PAR1")
    if damaged == "source":
        assert_failed(project.run(definitions, "original", "control"), "split")
    else:
        project.run(definitions, "synthetic")
        assert_failed(project.run(definitions, "preprocessed"), "preprocessed")
    assert_nothing_leaked(project, capfd, f"Loading people/{damaged} failed with")


def test_an_assessment_that_fails_shows_no_cell(project, capfd, monkeypatch):
    def broken(*_, **__):
        raise AssertionError(f"{TEXT} at {DATE}")

    monkeypatch.setattr(assets, "assess_preprocessed", broken)
    assert_failed(project.run(project.definitions(source=enough_sentinel_people)), ASSESSMENT)
    assert_nothing_leaked(project, capfd, "AssertionError")


def test_a_precision_that_does_not_fit_shows_no_cell(project, capfd):
    settings = AssessmentSettings(max_baseline_cols=3, numeric_precision={"name_of_plan": 2})
    result = project.run(project.definitions(source=enough_sentinel_people, assessment=settings))
    assert_failed(result, "preprocessed")
    assert_nothing_leaked(project, capfd, "name_of_plan")


def test_an_upstream_asset_of_another_type_shows_no_cell(project, capfd):
    @dg.asset(io_manager_key="memory")
    def upstream():
        return sentinel_people().to_dict()

    definitions = project.definitions(source=UpstreamAsset("upstream", io_manager_key="memory"))
    with project.instance() as instance:
        result = dg.materialize(
            [upstream, *definitions.assets, *definitions.asset_checks],
            resources={**definitions.resources, "memory": dg.InMemoryIOManager()},
            instance=instance,
            raise_on_error=False,
        )
    assert_failed(result, "source")
    assert_nothing_leaked(project, capfd, "expected a pandas DataFrame")


class CarelessIOManager(dg.IOManager):
    def handle_output(self, context, obj):
        pass

    def load_input(self, context):
        raise ValueError(f"cannot read {TEXT} {INTEGER}")


def test_an_upstream_asset_that_cannot_be_loaded_shows_no_cell(project, capfd):
    @dg.asset(io_manager_key="careless")
    def upstream():
        return 1

    definitions = project.definitions(source=UpstreamAsset("upstream", io_manager_key="careless"))
    with project.instance() as instance:
        result = dg.materialize(
            [upstream, *definitions.assets, *definitions.asset_checks],
            resources={**definitions.resources, "careless": CarelessIOManager()},
            instance=instance,
            raise_on_error=False,
        )
    assert_failed(result, "source")
    assert_nothing_leaked(project, capfd, "Loading upstream failed with ValueError")


def test_a_refused_gate_shows_no_cell(project, capfd):
    never = Policy((Limit("privacy_risk_score", 0.999), Limit("baseline_protection", 1, "at_least")))
    definitions = project.definitions(policy=never, source=sentinel_people)
    project.run(definitions)
    refusal(project.run(definitions, "synthetic_release"))
    assert len(list(project.private.rglob("refusal.html"))) == 2
    assert "people, synthetic" in project.register.read_text()
    assert_nothing_leaked(project, capfd, "nothing was released")


def test_a_killed_worker_shows_no_cell(project, capfd, monkeypatch):
    monkeypatch.setenv(PROJECT_VARIABLE, json.dumps({"root": str(project.root)}))
    with project.instance() as instance:
        result = dg.execute_job(dg.reconstructable(killed_job), instance=instance, raise_on_error=False)
        assert not result.success
        assert [event.step_key for event in result.all_events if event.is_step_failure] == [f"{NAME}__source"]
    assert_nothing_leaked(project, capfd, "people__source")
    spilled = Path((project.root / "spilled_to").read_text())
    assert spilled.is_relative_to(project.private / "temporary")
    project.run(project.definitions(source=enough_sentinel_people), "source")
    assert list((project.private / "temporary").iterdir()) == []


def killed_job() -> dg.JobDefinition:
    described = json.loads(os.environ[PROJECT_VARIABLE])
    project = Project(Path(described["root"]))
    definitions = project.definitions(
        contract=CONTRACT, source=killed, synthetic=ExternalSynthetic(sentinel_synthetic, control_was_withheld=True)
    )
    return definitions.resolve_job_def(f"{NAME}_release")


def test_the_private_traceback_keeps_what_was_withheld(project):
    project.run(project.definitions(source=raising(KeyError(TEXT))))
    kept = list((project.private / "failures").iterdir())
    assert any(TEXT in path.read_text() for path in kept)
    for path in [project.private, *project.private.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0
    # A project of `create-dagster` has the directory in its repository, and a .gitignore that does not know it.
    assert (project.private / ".gitignore").read_text() == "*\n"


def test_what_libraries_write_while_a_step_runs_is_private_and_gone_afterwards(project, capfd, monkeypatch):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")
    elsewhere, working = places_to_spill_into(project.root, monkeypatch)
    monkeypatch.setenv("PEOPLE_URL", f"duckdb:///{project.root / 'people.duckdb'}")
    with duckdb.connect(str(project.root / "people.duckdb")) as connection:
        connection.register("given", enough_sentinel_people())
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    names = []

    class Spills(LoudSynthesizer):
        def fit(self, table, *, seed):
            with tempfile.NamedTemporaryFile("w", prefix=TEXT, delete=False) as file:
                table.to_csv(file)
            names.append(Path(file.name))
            subprocess.run([sys.executable, "-c", f"import tempfile; tempfile.mkstemp({TEXT!r})"], check=True)
            names.extend(names[0].parent.iterdir())
            raise ValueError(TEXT)

    query = SqlQuery("SELECT * REPLACE (current_setting('temp_directory') AS name_of_plan) FROM people", "PEOPLE_URL")
    definitions = project.definitions(source=query, synthetic=Synthesis(Spills("fit")))
    assert_failed(project.run(definitions), "synthetic")
    spilled_to = pd.read_parquet(project.stored("source") / "table.parquet")["name_of_plan"].astype(str).unique()
    for path in [*names, *map(Path, spilled_to)]:
        assert path.is_relative_to(project.private / "temporary")
        assert not path.exists()
    assert len(set(names)) == 2
    assert [*elsewhere.rglob("*"), *working.rglob("*")] == []
    assert_nothing_leaked(project, capfd, "ValueError")
