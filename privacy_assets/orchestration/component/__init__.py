"""The Dagster component: a release that is configured in YAML."""
