"""Release records of a table in PostgreSQL, so that each class has several diagnoses.

    export WAREHOUSE_URL=postgresql://reader:password@db.example.org/warehouse
    psql "$WAREHOUSE_URL" -f examples/postgresql/patients.sql
    python examples/postgresql/release.py

The URL is read where the query runs, so that passwords are not stored in files. The role only needs the right to read.
"""

from pathlib import Path

import dagster as dg

import privacy_assets as pa

defs = pa.build_release_definitions(
    "patients",
    source=pa.SqlQuery("SELECT * FROM patients ORDER BY patient", url_variable="WAREHOUSE_URL"),
    contract={
        "columns": {
            "patient": {"type": "text", "role": "direct_identifier", "person": True},
            "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120},
            "sex": {"type": "category", "role": "quasi_identifier", "categories": ["female", "male"]},
            "zip": {"type": "text", "role": "quasi_identifier"},
            "diagnosis": {"type": "text", "role": "sensitive"},
        }
    },
    policy=pa.Policy.for_use_case("research_sharing").with_limit(pa.Limit("l_diversity", 2)),
    anonymized=pa.AnonymizationSettings(),
    declaration={
        "purpose": "Research on care at home",
        "recipient": "The university hospital",
        "roles_decided_by": "A. Lovelace, data protection officer",
        # Fixed: a day that is computed at every load would change the declaration, and void approvals. After it,
        # nothing is released until somebody has looked again.
        "review_by": "2028-12-31",
    },
    formats=["csv"],
)


if __name__ == "__main__":
    dg.materialize([*defs.assets, *defs.asset_checks], resources=dict(defs.resources))
    released = pa.verify_release(Path("releases/patients/anonymized/latest"))
    print(f"{released.n_records} records in {released.directory}; verified: {released.verified}")
    print(f"Columns: {list(pa.read_released_csv(released.directory).columns)}")
