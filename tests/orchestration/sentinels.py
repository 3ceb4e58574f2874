"""Marked values for every kind of column, and the search for them in everything that a run leaves behind."""

import numpy as np
import pandas as pd

TEXT = "Zaphodine-Quxington"
IDENTIFIER = "sentinel-7731-patient"
INTEGER = 91827364555
FLOAT = 73918.26459
DATE = pd.Timestamp("1913-11-23 07:53:19")
LISTED = "listed-sentinel-552"
SENTINELS = [
    text.encode()
    for text in (
        TEXT,
        IDENTIFIER,
        LISTED,
        str(INTEGER),
        "91_827_364_555",
        f"{INTEGER:,}",
        "73918.26",
        "73,918.26",
        "7.391826",
        "1913-11-23",
        "1913, 11, 23",
        "23/11/1913",
        "11/23/1913",
        str(DATE.value),
        str(DATE.value // 1000),
        str(DATE.value // 1_000_000),
    )
]
CONTRACT = {
    "columns": {
        "patient": {"type": "text", "role": "direct_identifier", "person": True},
        "income": {"type": "integer", "role": "quasi_identifier", "min": 0},
        "name_of_plan": {"type": "text", "role": "quasi_identifier", "nullable": True},
        "admitted": {"type": "datetime", "role": "quasi_identifier"},
        "region": {"type": "category", "role": "quasi_identifier", "categories": [TEXT, "north", "south"]},
        "cost": {"type": "float", "role": "sensitive", "nullable": True},
    }
}


def sentinel_people(n_records: int = 120, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "patient": [f"{IDENTIFIER}-{number}" for number in range(n_records)],
            "income": INTEGER + np.arange(n_records) % 2,
            "name_of_plan": random.choice([TEXT, f"{TEXT} II"], n_records),
            "admitted": DATE + pd.to_timedelta(random.integers(0, 3, n_records), unit="s"),
            "region": random.choice([TEXT, "north"], n_records),
            "cost": FLOAT + random.integers(0, 3, n_records),
        }
    )


def enough_sentinel_people() -> pd.DataFrame:
    """Make so many that their control decides on leakage."""
    return sentinel_people(300)


def sentinel_synthetic() -> pd.DataFrame:
    return sentinel_people(90, seed=1).drop(columns="patient")


def everything_that_was_said(project, capfd) -> bytes:
    output = capfd.readouterr()
    said = [output.out.encode(), output.err.encode(), *(text.encode() for text in project.written_in_pictures)]
    files = [path for path in project.home.rglob("*") if path.is_file()]
    assert {".db", ".err"} <= {path.suffix for path in files}
    # What leaves beside the data: manifests and reports.
    files += [path for path in project.everything_released() if path.suffix not in (".parquet", ".csv")]
    # Pages of refusals and what waits stay private, but are read by others than the owner of the table.
    files += project.private.rglob("refusal.html")
    waiting = (project.private / "pending").rglob("*")
    files += [path for path in waiting if path.is_file() and path.suffix not in (".parquet", ".csv")]
    files += [project.register] if project.register.exists() else []
    return b"\n".join([*said, *(path.read_bytes() for path in files)])


def assert_nothing_leaked(project, capfd, expected_message=None):
    said = everything_that_was_said(project, capfd)
    found = [sentinel for sentinel in SENTINELS if sentinel in said]
    assert found == []
    if expected_message is not None:
        assert any(part.encode() in said for part in expected_message.split("|")), expected_message
