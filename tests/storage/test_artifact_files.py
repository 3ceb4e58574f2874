from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privacy_assets.display.pictures import Picture
from privacy_assets.storage import artifact_files
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.mixed_tables import POOLS


def mixed(n_rows):
    random = np.random.default_rng(4)
    columns = {kind: [pool[i] for i in random.integers(0, len(pool), n_rows)] for kind, (pool, _) in POOLS.items()}
    table = pd.DataFrame({kind: pd.Series(values, dtype=POOLS[kind][1]) for kind, values in columns.items()})
    # Names that paths of nested columns could be taken for.
    return table.assign(**{"a": 1, "a.b": np.arange(n_rows), ".c": "text", "d[0]": 0.5})


@pytest.mark.parametrize("n_rows", [1, 200])
@pytest.mark.parametrize("most_reads", [1, 3, 16])
def test_a_frame_read_by_columns_is_the_frame_read_at_once(tmp_path, monkeypatch, n_rows, most_reads):
    table = mixed(n_rows)
    table.attrs = {"unit": "cm"}
    write_artifact(tmp_path / "stored", Artifact("kind", {}, {"table": table, "empty": pd.DataFrame()}))
    at_once = read_artifact(tmp_path / "stored")
    reads = []
    read_parquet = pd.read_parquet
    monkeypatch.setattr(artifact_files.pd, "read_parquet", lambda *a, **k: reads.append(k) or read_parquet(*a, **k))
    monkeypatch.setattr(artifact_files, "MOST_CELLS_AT_ONCE", 0)
    monkeypatch.setattr(artifact_files, "MOST_READS", most_reads)
    by_columns = read_artifact(tmp_path / "stored")
    n_expected = -(-table.shape[1] // -(-table.shape[1] // most_reads))
    assert len(reads) == n_expected + 1  # One for the empty frame.
    for name, frame in at_once.frames.items():
        pd.testing.assert_frame_equal(by_columns.frames[name], frame)
        assert by_columns.frames[name].attrs == frame.attrs
        assert len(by_columns.frames[name]) == len(frame)
    assert by_columns.digest == at_once.digest


def test_pictures_are_stored_with_their_words_and_all_of_it_is_hashed(tmp_path):
    picture = Picture("60% in classes of 5", b"\x89PNG", "Bar chart")
    artifact = Artifact("kind", {"k": 5}, {"table": mixed(3)}, {}, {"sizes": picture})
    write_artifact(tmp_path / "stored", artifact)
    read = read_artifact(tmp_path / "stored")
    assert read.pictures == {"sizes": picture}
    others = [replace(picture, **changed) for changed in ({"text": ""}, {"png": b"\x88PNG"}, {"title": ""})]
    changed = [{}, {"other": picture}, *({"sizes": each} for each in others)]
    digests = [replace(artifact, pictures=each).digest for each in changed]
    assert len({read.digest, *digests}) == 6
    assert read.digest == artifact.digest
