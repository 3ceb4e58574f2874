"""Release the records of UCI Adult in classes of at least 5 people with equal quasi-identifiers.

Download the data set "Adult" from the UCI Machine Learning Repository, and name its file `adult.data` in ADULT_FILE:

    ADULT_FILE=adult.data python examples/adult/release.py

A CSV file of the same columns with a header works as well.
"""

import os
from pathlib import Path

import dagster as dg
import pandas as pd

import privacy_assets as pa

FILE = Path(os.environ.get("ADULT_FILE", "adult.data"))
COLUMNS = [
    *("age", "workclass", "fnlwgt", "education", "education_num", "marital_status", "occupation", "relationship"),
    *("race", "sex", "capital_gain", "capital_loss", "hours_per_week", "native_country", "income"),
]
CONTRACT = {
    "one_row_per_person": True,
    "columns": {
        "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120},
        "workclass": {"type": "text", "role": "quasi_identifier", "nullable": True},
        "education_num": {"type": "integer", "role": "quasi_identifier", "min": 1, "max": 16},
        "marital_status": {"type": "text", "role": "quasi_identifier"},
        "occupation": {"type": "text", "role": "quasi_identifier", "nullable": True},
        "race": {"type": "text", "role": "quasi_identifier"},
        "sex": {"type": "category", "role": "quasi_identifier", "categories": ["Female", "Male"]},
        "native_country": {"type": "text", "role": "quasi_identifier", "nullable": True},
        "income": {"type": "category", "role": "sensitive", "categories": ["<=50K", ">50K"]},
    },
}


def adult() -> pd.DataFrame:
    """Read the columns that the contract names; missing values are written as question marks."""
    with FILE.open(encoding="utf-8") as file:
        has_header = file.readline().startswith("age")
    names = {} if has_header else {"names": COLUMNS}
    return pd.read_csv(FILE, na_values="?", skipinitialspace=True, usecols=list(CONTRACT["columns"]), **names)


defs = pa.build_release_definitions(
    "adult",
    source=adult,
    contract=CONTRACT,
    policy=pa.Policy.for_use_case("research_sharing"),
    # With k alone, the income of every third person would be certain, which the policy refuses.
    anonymized=pa.AnonymizationSettings(l_diversity=2),
    declaration={
        "purpose": "Teaching statistics",
        "recipient": "Students of the course",
        "roles_decided_by": "The authors of the course",
        # Fixed: a day that is computed at every load would change the declaration, and void approvals. After it,
        # nothing is released until somebody has looked again.
        "review_by": "2028-12-31",
    },
)


if __name__ == "__main__":
    if not FILE.exists():
        raise SystemExit(f"There is no file {str(FILE)!r}. Download UCI Adult, and name its adult.data in ADULT_FILE.")
    dg.materialize([*defs.assets, *defs.asset_checks], resources=dict(defs.resources))
    released = pa.verify_release(Path("releases/adult/anonymized/latest"))
    print(f"{released.n_records} records in {released.directory}; verified: {released.verified}")
