"""Runs in the process of a test are as fast as those of the orchestration."""

from tests.orchestration.conftest import faster_dagster  # noqa: F401
