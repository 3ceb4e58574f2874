"""Release a dbt model, and put the checks of a policy on another one.

    python examples/dbt/definitions.py

The models are in `models/`. Here each is an asset that runs its SQL in DuckDB, so that the example needs no dbt; in
your project `@dbt_assets` of dagster-dbt makes these assets, and everything below them stays as it is.
"""

from pathlib import Path

import dagster as dg
import duckdb
import pandas as pd

import privacy_assets as pa

WAREHOUSE = "warehouse.duckdb"
MODELS = Path(__file__).parent / "models"
CONTRACT = {
    "columns": {
        "patient": {"type": "integer", "role": "direct_identifier", "person": True},
        "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120},
        "plan": {"type": "category", "role": "quasi_identifier", "categories": ["family", "single"]},
        "visits": {"type": "integer", "role": "sensitive", "min": 0},
    }
}


def model(name: str, deps: list[dg.AssetsDefinition]) -> dg.AssetsDefinition:
    """Make the asset of a model, as dagster-dbt does from the manifest of dbt."""

    @dg.asset(key=["marts", name], deps=deps)
    def run_model() -> None:
        query = (MODELS / f"{name}.sql").read_text(encoding="utf-8")
        with duckdb.connect(WAREHOUSE) as connection:
            connection.execute("CREATE SCHEMA IF NOT EXISTS marts")
            connection.execute(f'CREATE OR REPLACE TABLE marts."{name}" AS {query}')

    return run_model


class Warehouse(dg.IOManager):
    """Loads tables that dbt wrote; use the one of your project if it has one for its warehouse."""

    def load_input(self, context: dg.InputContext) -> pd.DataFrame:
        """Read the table of the upstream asset."""
        schema, table = context.asset_key.path
        with duckdb.connect(WAREHOUSE, read_only=True) as connection:
            return connection.execute(f'SELECT * FROM "{schema}"."{table}"').df()

    def handle_output(self, context: dg.OutputContext, obj: object) -> None:
        """Refuse to write."""
        raise dg.DagsterInvariantViolationError(
            f"{context.asset_key.to_user_string()} returned a {type(obj).__name__}, but this IO manager only reads "
            "tables that dbt wrote. Return nothing, or give the asset another IO manager."
        )


patients = model("patients", deps=[])
visits_by_decade = model("visits_by_decade", deps=[patients])
release = pa.build_release_definitions(
    "people",
    source=pa.UpstreamAsset("marts/patients", io_manager_key="warehouse"),
    contract=CONTRACT,
    policy="research_sharing",
    anonymized=pa.AnonymizationSettings(),
    declaration={
        "purpose": "Research on care at home",
        "recipient": "The university hospital",
        "roles_decided_by": "A. Lovelace, data protection officer",
        # Fixed: a day that is computed at every load would change the declaration, and void approvals. After it,
        # nothing is released until somebody has looked again.
        "review_by": "2028-12-31",
    },
)
checks = pa.build_privacy_risk_checks(
    assets=pa.UpstreamAsset("marts/visits_by_decade", io_manager_key="warehouse"),
    contract=CONTRACT,
    policy="research_sharing",
)
models = dg.Definitions(assets=[patients, visits_by_decade], resources={"warehouse": Warehouse()})
defs = dg.Definitions.merge(models, release, checks)


if __name__ == "__main__":
    result = dg.materialize([*defs.assets, *defs.asset_checks], resources=dict(defs.resources))
    for check in result.get_asset_check_evaluations():
        print(f"{check.asset_key.to_user_string()} {check.check_name}: {'passed' if check.passed else 'FAILED'}")
    released = pa.verify_release(Path("releases/people/anonymized/latest"))
    print(f"{released.n_records} records in {released.directory}; verified: {released.verified}")
