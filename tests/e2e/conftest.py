"""Runs in the process of a test are as fast as those of the orchestration."""

from tests.orchestration.conftest import kept_engines  # noqa: F401
