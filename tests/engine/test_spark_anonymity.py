"""Classes that a Spark server measures are those of one machine."""

from privacy_assets import verify_anonymity
from privacy_assets.engine.spark import SparkEngine
from tests.anonymity.test_divided_measures import skewed_table
from tests.spark_server import spark_server


def test_classes_measured_on_a_server():
    table, engine = skewed_table(), SparkEngine(session=spark_server().session, rows_per_task=300)
    asked = {"quasi_identifiers": ["area", "empty"], "sensitive": ["illness"], "subject": "person"}
    assert verify_anonymity(table, **asked, engine=engine) == verify_anonymity(table, **asked)
