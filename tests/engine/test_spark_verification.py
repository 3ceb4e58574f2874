"""Executors that check a release find what one machine finds."""

import pytest

from privacy_assets import verify_release
from privacy_assets.cli import main
from privacy_assets.engine import spark as spark_module
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.release.files import write_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD, TABLE
from tests.spark_server import spark_server


@pytest.fixture
def engine(tmp_path):
    # Tasks are sent to the server, even if codes are not.
    return SparkEngine(session=spark_server().session, staging=str(tmp_path))


def test_executors_verify_a_release(tmp_path, engine, monkeypatch, capsys):
    release = write_release(
        tmp_path / "releases", TABLE, fingerprint(TABLE), RECORD, ("parquet", "csv"), rows_per_part=1
    )
    place, placed = SparkEngine.place, []

    def noted(engine, columns):
        placed.append((engine.rows_per_task, engine.staging, len(columns["number"])))
        return place(engine, columns)

    with monkeypatch.context() as patched:
        patched.setattr(SparkEngine, "place", noted)
        assert verify_release(release, max_bytes=None, engine=engine) == verify_release(release, max_bytes=None)
    # A check of the manifest, one of the cards of a release without problems, and the others together.
    assert [each[:2] for each in placed] == [(1, None)] * 3
    assert [each[2] for each in placed] == [1, 16, 1]
    (release / "synthetic.csv").write_text("age,plan\n")
    (release / "synthetic.parquet" / "part-00001.parquet").unlink()
    found = verify_release(release, max_bytes=None, engine=engine)
    assert found == verify_release(release, max_bytes=None)
    assert len(found.problems) == 2
    monkeypatch.setattr(spark_module, "SparkEngine", lambda remote, tag: engine)
    assert main(["verify", str(release), "--engine", "sc://spark"]) == 1
    assert "  - the file 'synthetic.csv' was changed\n" in capsys.readouterr().out


def test_an_address_that_is_none_is_refused(tmp_path, capsys):
    assert main(["verify", str(tmp_path), "--engine", "spark:15002"]) == 1
    assert capsys.readouterr().out.startswith("`remote` is not the address of a Spark Connect server")
