"""What the records of a release are measured by, without Dagster."""
