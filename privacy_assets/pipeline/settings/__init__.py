"""Settings that know nothing of Dagster."""
