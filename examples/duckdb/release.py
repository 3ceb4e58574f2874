"""Release synthetic records of a table in a DuckDB file.

    python examples/duckdb/release.py

The first run makes the file `patients.duckdb` in the working directory. For a file of your own, set WAREHOUSE_URL to
`duckdb:////path/of/the.duckdb`, and change the query and the contract.
"""

import os
from pathlib import Path

import dagster as dg
import duckdb

import privacy_assets as pa

FILE = Path("patients.duckdb").absolute()
os.environ.setdefault("WAREHOUSE_URL", f"duckdb:///{FILE}")

defs = pa.build_release_definitions(
    "patients",
    # A seeded split depends on the order of the rows: use ORDER BY.
    source=pa.SqlQuery("SELECT * FROM patients ORDER BY patient", url_variable="WAREHOUSE_URL"),
    contract={
        "columns": {
            "patient": {"type": "integer", "role": "direct_identifier", "person": True},
            "age_band": {"type": "integer", "role": "quasi_identifier", "isin": [20, 30, 40, 50, 60, 70]},
            "sex": {"type": "category", "role": "quasi_identifier", "categories": ["female", "male"]},
            "region": {"type": "category", "role": "quasi_identifier", "categories": ["north", "south", "west"]},
            "visits": {"type": "integer", "role": "sensitive", "min": 0},
        }
    },
    # If so many people are alike, copies cannot be distinguished from chance: accept that they go unnoticed.
    policy=pa.Policy.for_use_case("development").with_required(detectable_share=None),
    synthetic=pa.Synthesis("gaussian_copula", seed=0),
)


def make_warehouse() -> None:
    """Make the table, as something else would in practice."""
    with duckdb.connect(str(FILE)) as connection:
        connection.execute(Path(__file__).with_name("patients.sql").read_text(encoding="utf-8"))


if __name__ == "__main__":
    if os.environ["WAREHOUSE_URL"] == f"duckdb:///{FILE}" and not FILE.exists():
        make_warehouse()
    dg.materialize([*defs.assets, *defs.asset_checks], resources=dict(defs.resources))
    released = pa.verify_release(Path("releases/patients/synthetic/latest"))
    print(f"{released.n_records} records in {released.directory}; verified: {released.verified}")
