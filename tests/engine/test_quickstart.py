"""The releases of the quickstart do not depend on the engine: manifests are equal but for run, time and engine."""

import json

import dagster as dg
import pandas as pd
import pytest

from privacy_assets.definitions import RELEASES, quickstart_definitions
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.release.manifest import CARD_FILES
from tests.orchestration import faster_runs
from tests.orchestration.project import INSTANCE_CONFIGURATION
from tests.spark_server import spark_server

pytest.importorskip("statsmodels", reason="needs the extra `examples`")
OF_THE_RUN = {"created_at", "run_id", "engine", "digest"}


def decided(folder, engine):
    """Run the quickstart; return what each release was found to be, and what left."""
    folder.mkdir()
    (folder / "dagster.yaml").write_text(INSTANCE_CONFIGURATION.replace("HOME", str(folder)))
    places = {"private_path": str(folder / "private"), "release_path": str(folder / "releases")}
    definitions = quickstart_definitions(engine=engine, **places)
    found = {}
    with (
        dg.DagsterInstance.from_config(str(folder)) as instance,
        faster_runs.kept_engines(),
        faster_runs.no_log_followers(),
        faster_runs.blank_pictures(),
    ):
        for name in RELEASES:
            job = definitions.resolve_job_def(f"{name}_release")
            result = job.execute_in_process(instance=instance, raise_on_error=False)
            checks = {
                (each.asset_key, each.check_name): (each.passed, each.description)
                for each in result.get_asset_check_evaluations()
            }
            found[name] = (checks, *_left(folder / "releases" / name))
    return found


def _left(directory):
    """Return the manifest but for what is of the run, the engine that it names, and the table."""
    paths = list(directory.glob("*/2*/manifest.json"))
    if not paths:
        return None, None, None
    (path,) = paths
    manifest = json.loads(path.read_text())
    same = {name: value for name, value in manifest.items() if name not in OF_THE_RUN}
    of_the_run = ("report.html", *CARD_FILES)
    same["files"] = {name: each for name, each in manifest["files"].items() if name not in of_the_run}
    return same, manifest["engine"], pd.read_parquet(path.parent / f"{manifest['stage']}.parquet")


def test_the_releases_of_the_quickstart_by_spark_are_those_of_one_machine(tmp_path):
    engine = SparkEngine(session=spark_server().session, rows_per_task=6_000, writes_releases=True)
    here, there = decided(tmp_path / "here", None), decided(tmp_path / "there", engine)
    assert set(here) == set(RELEASES)
    assert [name for name, (_, manifest, _, _) in here.items() if manifest] == [
        "rand_hie_smooth_cart",
        "rand_hie_records",
    ]
    for name, (checks, manifest, of, table) in here.items():
        assert there[name][0] == checks, name
        assert there[name][1] == manifest, name
        if manifest is not None:
            assert (of, there[name][2]) == ("local", "spark")
            pd.testing.assert_frame_equal(there[name][3], table)
