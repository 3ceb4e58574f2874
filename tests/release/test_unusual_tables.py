"""Names like paths, very many columns, very long cells, one value: stored, released, verified, read back."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.errors import InvalidTableError
from privacy_assets.release.files import write_release
from privacy_assets.release.released_csv import read_released_csv
from privacy_assets.release.report import ReportMaterial
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD

NAMES = (
    *(
        "a/b",
        "/etc/passwd",
        "..",
        ".",
        "../../x",
        "latest",
        "header",
        "header.json",
        "table",
        "classes",
        "manifest.json",
    ),
    *("", " ", "\n", "a\x00b", "C:\\x", "'", '"', "=1+1", "{x}", "%s", "<b>", "*", "\u00fc" * 300, "class", "row"),
)
UNUSUAL = {
    "names like paths": pd.DataFrame({name: np.arange(6) // 2 for name in NAMES}),
    "1,000 columns": pd.DataFrame(np.arange(6_000).reshape(6, -1), columns=[f"c{number}" for number in range(1_000)]),
    "cells of a megabyte": pd.DataFrame({"text": ["x" * 1_000_000 + str(number % 2) for number in range(6)]}),
    "one value": pd.DataFrame({"number": [1] * 6, "text": ["x"] * 6, "nothing": [None] * 6}),
    "a name of 100,000 characters": pd.DataFrame({"n" * 100_000: [1] * 6}),
}


def of_table(table):
    return replace(RECORD, columns=[{"column": name, "role": "other"} for name in table.columns])


@pytest.mark.parametrize("kind", UNUSUAL)
def test_unusual_tables_are_stored_and_released(kind, tmp_path):
    table = UNUSUAL[kind]
    write_artifact(tmp_path / "private" / "table.artifact", Artifact.of_table(table))
    assert read_artifact(tmp_path / "private" / "table.artifact").digest == fingerprint(table)
    files = {"header.json", "table.parquet"}
    assert {path.name for path in (tmp_path / "private" / "table.artifact").iterdir()} == files

    written = write_release(
        tmp_path / "releases", table, fingerprint(table), of_table(table), ("csv",), ReportMaterial()
    )
    assert verify_release(written, max_bytes=None).verified
    assert {path.name for path in written.iterdir()} == {
        *("manifest.json", "report.html", "synthetic.csv", "synthetic.parquet"),
        *("croissant.json", "dcat.jsonld"),
    }
    assert fingerprint(read_released_csv(written)) == fingerprint(table)
    assert list(pd.read_parquet(written / "synthetic.parquet").columns) == list(table.columns)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private", "releases"]


@pytest.mark.parametrize("kind", ["names like paths", "cells of a megabyte", "one value"])
def test_results_about_unusual_tables_are_stored(kind, tmp_path):
    table = UNUSUAL[kind]
    names = list(table.columns)
    found = anonymize(table, quasi_identifiers=names[:1], sensitive=names[1:], k=2)
    artifact = found.to_artifact()
    write_artifact(tmp_path / "found.artifact", artifact)
    read = read_artifact(tmp_path / "found.artifact")
    assert read.digest == artifact.digest
    assert type(found).from_artifact(read) == found


def test_ten_thousand_columns_are_stored(tmp_path):
    table = pd.DataFrame(np.arange(20_000).reshape(2, -1), columns=[f"c{number}" for number in range(10_000)])
    write_artifact(tmp_path / "table.artifact", Artifact.of_table(table))
    assert read_artifact(tmp_path / "table.artifact").digest == fingerprint(table)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), r"1 are repeated \(positions 1\)"),
        (pd.DataFrame([[1, 2]], columns=["a", 7]), r"1 are not text \(positions 1\)"),
    ],
)
def test_names_that_no_file_can_hold_are_refused(table, problem, tmp_path):
    with pytest.raises(InvalidTableError, match=problem):
        write_release(tmp_path / "releases", table, "0" * 64, of_table(table), ("csv",))
    assert list(tmp_path.iterdir()) == []
