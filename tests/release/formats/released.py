"""Releases of two records, with everything that a person may write into one."""

import json
from dataclasses import replace

import pandas as pd

from privacy_assets.release.files import write_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.release.test_files import RECORD, TABLE

WRITTEN = {
    "html": "<script>alert('1 < 2 & \"3\"')</script>",
    "quotes": '"}], "@id": "http://example.com/x", \\ \\u0000 \' ` {"@graph": []}',
    "other letters": "Zürich, 東京, \u202b\u05e2\u05d1\u05e8, e\u0301, 🏥\u200d, \x7f\x1b[31m",
    "long": 'a\u00e9"\\<' * 20_000,
    "line ends": "one\r\ntwo\u2028three\ttab",
}
DECLARED = ("purpose", "recipient", "legal_basis", "retention")


def declared(text):
    return replace(RECORD, declaration=dict.fromkeys(DECLARED, text) | {"review_by": "2027-09-30"})


def release(directory, record=RECORD, table=TABLE, signer=None, **settings):
    return write_release(directory, table, fingerprint(table), record, ("parquet", "csv"), signer=signer, **settings)


def manifest_of(directory):
    return json.loads((directory / "manifest.json").read_text())


def table_of_types():
    """Return a table with every type of a contract, with missing values and unusual names, and its columns."""
    columns = {
        'a "quoted" <b>/#?%20': pd.array([1, None, 3], "Int64"),
        "Größe 東京": [1.5, 2.5, None],
        "whole": pd.array([1, 2, 3], "int64"),
        "yes or no": pd.array([True, None, False], "boolean"),
        "plan": pd.Categorical(["free", None, "paid"]),
        "note": pd.Series(["x", None, "<y>"], dtype="str"),
        "joined": pd.to_datetime(["2020-01-01", "2021-02-03", None]).as_unit("us"),
    }
    table = pd.DataFrame(columns)
    roles = [{"column": name, "type": str(table[name].dtype), "role": "other"} for name in table]
    return table, replace(RECORD, columns=roles)
