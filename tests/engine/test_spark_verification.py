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
    assert verify_release(release, engine=engine) == verify_release(release)
    monkeypatch.setattr(spark_module, "SparkEngine", lambda remote, tag: engine)
    assert main(["verify", str(release), "--engine", "sc://spark"]) == 0
    (release / "synthetic.csv").write_text("age,plan\n")
    (release / "synthetic.parquet" / "part-00001.parquet").unlink()
    found = verify_release(release, max_bytes=None, engine=engine)
    assert found == verify_release(release, max_bytes=None)
    assert len(found.problems) == 2
    assert main(["verify", str(release), "--engine", "sc://spark"]) == 1
    assert "  - the file 'synthetic.csv' was changed\n" in capsys.readouterr().out


def test_an_address_that_is_none_is_refused(tmp_path, capsys):
    assert main(["verify", str(tmp_path), "--engine", "spark:15002"]) == 1
    assert "`remote` is not the address of a Spark Connect server" in capsys.readouterr().out
