"""Candidates that a Spark server counts are those of one machine."""

from privacy_assets import anonymize, assess_reidentification
from privacy_assets.engine.spark import SparkEngine
from tests.reidentification.test_divided_counts import skewed_table
from tests.spark_server import spark_server


def test_candidates_counted_on_a_server():
    table, engine = skewed_table(), SparkEngine(session=spark_server().session, rows_per_task=400)
    found = anonymize(table, quasi_identifiers=["age", "income", "empty"], k=4, subject="person")
    asked = {"max_known": 1, "curve_sample": 50}
    assert assess_reidentification(table, found, **asked, engine=engine) == assess_reidentification(
        table, found, **asked
    )
