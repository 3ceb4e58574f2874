"""A release does not depend on the engine that searched it, and says which one that was."""

import copy
import json
import logging

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization import anonymized_table
from privacy_assets.engine import connection
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration import anonymized_assets, assets
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.engine import engine_of_stage, read_engine
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import Split
from privacy_assets.release import files, written_data
from privacy_assets.release.manifest import CARD_FILES
from privacy_assets.release.metrics import MPUCC
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage import table
from privacy_assets.storage.artifact_files import read_artifact
from tests.orchestration.project import ADMITS, CONTRACT, Project, failure_of
from tests.orchestration.sentinels import everything_that_was_said
from tests.spark_server import spark_server

PARTITION = "north"
TINY = LocalEngine(rows_per_task=30, rows_per_batch=7, batches_per_partition=2)
HIERARCHIES = {"age": {"intervals": [5, 20]}, "plan": {"prefixes": [1]}, "joined": {"dates": ["month", "year"]}}
OF_THE_RUN = {"created_at", "run_id", "engine", "files", "digest"}
POLICY = Policy(
    (
        Limit("privacy_risk_score", ADMITS, "at_most"),
        Limit("leakage_detected", 0),
        Limit("smallest_class", 5),
        Limit("max_reidentification_probability", 0.9999),
    ),
    RequiredSettings(control_records=40, detectable_share=None),
)


def contract_by_rows():
    """A contract without a person, so that rows are counted, which engines can divide."""
    contract = copy.deepcopy(CONTRACT)
    del contract["columns"]["patient"]["person"]
    contract["one_row_per_person"] = True
    return contract


def contract_with_few_values(contract):
    """A contract whose sensitive column has three values."""
    contract = copy.deepcopy(contract)
    contract["columns"]["plan"]["role"] = "sensitive"
    contract["columns"]["cost"]["role"] = "quasi_identifier"
    return contract


FEW_VALUES = contract_with_few_values(contract_by_rows())


def both_sides(project, engine, **settings):
    given = {"contract": contract_by_rows(), "policy": POLICY, "anonymized": AnonymizationSettings()}
    return project.definitions(**given | {"engine": engine} | settings)


def release(folder, engine, source=None):
    """Release a partition of people who have one to three rows, with k, l and t."""
    project = Project(folder, (PARTITION,))
    project.write_tables(partition=PARTITION)
    file = folder / "data" / f"people-{PARTITION}.parquet"
    rows = pd.read_parquet(file)
    rows["patient"] = rows["patient"].iloc[np.random.default_rng(4).integers(0, 150, len(rows))].to_numpy()
    rows.to_parquet(file, index=False)
    given = {} if source is None else {"source": source(rows, folder)}
    given |= {"contract": contract_with_few_values(CONTRACT), "split": Split(train_fraction=0.6)}
    settings = AnonymizationSettings(l_diversity=2, t_closeness=0.6)
    result = project.run(both_sides(project, engine, anonymized=settings, **given), partition=PARTITION)
    assert result.success, failure_of(result)


def in_parts(rows, folder):
    """Write rows as a directory of files, the first with few of them."""
    directory = folder / "data" / f"parts-{PARTITION}.parquet"
    directory.mkdir()
    rows[:7].to_parquet(directory / "part-0.parquet", index=False)
    rows[7:].to_parquet(directory / "part-1.parquet", index=False)
    return TableFile(str(folder / "data" / "parts-{partition_key}.parquet"))


def released(folder):
    """Return what is said and published of each side."""
    project, made = Project(folder, (PARTITION,)), {}
    for side in ("synthetic", "anonymized"):
        (directory,) = project.releases(PARTITION, side)
        manifest = json.loads((directory / "manifest.json").read_text())
        of_the_run = ("report.html", *CARD_FILES)
        files = {name: each for name, each in manifest["files"].items() if name not in of_the_run}
        same = {name: value for name, value in manifest.items() if name not in OF_THE_RUN} | {"files": files}
        made[side] = manifest["engine"], same, pd.read_parquet(directory / f"{side}.parquet")
    return made


def assert_equal_but_for_the_engine(expected, found, engine):
    for side, (name, manifest, rows) in expected.items():
        assert name == "local"
        assert found[side][0] == engine
        assert found[side][1] == manifest
        # The order of categories without an order is that of the first rows that have them, by batch.
        pd.testing.assert_frame_equal(found[side][2], rows, check_categorical=False)


@pytest.fixture(scope="module")
def expected(made_once):
    return released(made_once.directory("released-by-no-engine", lambda folder: release(folder, None)))


def test_a_release_whose_work_is_divided_is_the_same(expected, tmp_path, monkeypatch):
    used = []
    for module, name in (
        (assets, "assess_preprocessed"),
        (anonymized_assets, "anonymize_with"),
        (anonymized_assets, "assess_reidentification"),
        (anonymized_table, "verify_anonymity"),
    ):
        work = getattr(module, name)

        def watched(*given, work=work, name=name, **named):
            used.append((name, named["engine"]))
            return work(*given, **named)

        monkeypatch.setattr(module, name, watched)
    release(tmp_path, TINY)
    assert_equal_but_for_the_engine(expected, released(tmp_path), "local")
    once = [(name, TINY) for name in ("anonymize_with", "assess_preprocessed", "assess_reidentification")]
    assert [used.count(each) for each in once] == [1, 1, 1]
    # The gate measures again, by its own process.
    assert set(used) == {*once, ("verify_anonymity", TINY), ("verify_anonymity", None)}


def test_a_release_in_batches_is_the_same(expected, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "ROWS_PER_BATCH", 64)
    release(tmp_path, None, in_parts)
    found = released(tmp_path)
    # A batch is a row group of the file.
    of_frames = copy.deepcopy(expected)
    for side in found:
        (file,), (whole,) = (each[side][1].pop("files").values() for each in (found, of_frames))
        assert file["bytes"] > whole["bytes"]
    assert_equal_but_for_the_engine(of_frames, found, "local")


def test_a_release_by_spark_is_the_same(expected, tmp_path, monkeypatch):
    engine = SparkEngine(session=spark_server().session, rows_per_task=50, writes_releases=True)
    verify, verified_by = files.verify_release, []

    def watched(directory, **asked):
        verified_by.append(type(asked["engine"]))
        return verify(directory, **asked)

    monkeypatch.setattr(files, "verify_release", watched)
    # The data are written by executors, which do not have this patch.
    monkeypatch.setattr(written_data, "write_table", None)
    release(tmp_path, engine)
    assert_equal_but_for_the_engine(expected, released(tmp_path), "spark")
    assert verified_by == [SparkEngine, SparkEngine]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"contract": CONTRACT}, ""),
        ({"anonymized": AnonymizationSettings(l_diversity=2)}, "has l-diversity or t-closeness of over 100 values"),
        (
            {
                "contract": contract_with_few_values(contract_by_rows()),
                "anonymized": AnonymizationSettings(l_diversity=2),
            },
            "",
        ),
        ({"anonymized": AnonymizationSettings(method="lattice", hierarchies=HIERARCHIES)}, "uses the lattice"),
        ({"anonymized": None, "generalize_synthetic": AnonymizationSettings(k=3)}, ""),
    ],
)
def test_what_needs_all_records_is_cut_here_and_the_log_says_so(tmp_path, settings, reason):
    project = Project(tmp_path)
    project.write_tables()
    stage = "anonymized" if settings.get("anonymized", True) else "generalized_synthetic"
    stored = {}
    for engine in (TINY, LocalEngine()):
        made = both_sides(project, engine, **settings)
        result = project.run(made, "source", "original", "control", "synthetic", stage)
        assert result.success, failure_of(result)
        with project.instance() as instance:
            logged = [each.user_message for each in instance.all_logs(result.run_id)]
        said = f"The anonymization {reason}, so all 300 records are cut here."
        assert (said in logged) == (reason != "" and engine is TINY)
        stored[engine] = read_artifact(project.stored(stage)).fingerprints
    assert stored[TINY] == stored[LocalEngine()]


def test_a_session_or_what_has_one_is_an_engine_and_nothing_else_is():
    class Session:
        def createDataFrame(self): ...  # noqa: N802

    class Resource:
        @property
        def spark_session(self):
            raise AssertionError("asked before a run")

    for given in (Session(), Resource()):
        assert read_engine(given).session is given
    assert read_engine(None) == LocalEngine()
    with pytest.raises(InvalidSettingError, match="The engine is a str. Expected a LocalEngine"):
        read_engine("spark")


def test_jobs_are_named_after_release_and_stage_and_nothing_is_opened_before_the_first():
    engine = SparkEngine(remote="sc://nowhere.invalid", rows_per_task=5, staging="/mnt")
    with engine_of_stage(engine, "people", "anonymized") as own:
        assert (own.tag, own.rows_per_task, own.staging) == ("privacy_assets: people anonymized", 5, "/mnt")
    with engine_of_stage(TINY, "people", "anonymized") as own:
        assert own is TINY


def test_the_manifest_names_the_host_of_the_server_and_not_the_token(tmp_path):
    project = Project(tmp_path)
    project.assess()
    engine = SparkEngine(remote="sc://spark.example.org:15002/;use_ssl=true;token=SentinelTOKEN93")
    result = project.run(project.definitions(engine=engine), "synthetic_release")
    assert result.success, failure_of(result)
    (written,) = project.releases()
    assert json.loads((written / "manifest.json").read_text())["engine"] == "spark at sc://spark.example.org:15002"
    for path in (*written.iterdir(), *project.home.rglob("*")):
        assert path.is_dir() or b"SentinelTOKEN93" not in path.read_bytes()


def test_a_run_whose_server_is_not_there_shows_its_host_and_not_its_token(tmp_path, capfd, monkeypatch):
    """With the extra, nobody answers; without it, the stage says that it is missing."""
    monkeypatch.setattr(connection, "RETRIES", {"max_retries": 1, "max_backoff": 50})
    project = Project(tmp_path)
    project.assess()
    engine = SparkEngine(remote="sc://127.0.0.1:9/;token=SentinelTOKEN93", rows_per_task=50)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.root, "level", logging.DEBUG)
        result = project.run(project.definitions(engine=engine), MPUCC)
    assert not result.success
    said = everything_that_was_said(project, capfd)
    assert b"Spark at sc://127.0.0.1:9 could not be reached" in said or b"needs the extra `spark`" in said
    assert b"SentinelTOKEN93" not in said
    private = [path.read_bytes() for path in project.private.rglob("*") if path.is_file()]
    assert private
    assert not [content for content in private if b"SentinelTOKEN93" in content]
