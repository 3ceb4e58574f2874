import gc

import pytest
from hypothesis import given, settings
from hypothesis.strategies import none

from tests.orchestration import faster_runs
from tests.orchestration.project import Project


@pytest.fixture(scope="session", autouse=True)
def faster_dagster(made_once):
    """Spare more than half of the time of a run."""
    Project.made_once = made_once
    # Hypothesis looks for what refers to its generator when it first has one, and `gc` does not show it what is frozen.
    settings(derandomize=True, database=None, max_examples=1)(given(none())(lambda _: None))()
    with faster_runs.kept_engines(), faster_runs.no_log_followers():
        yield


@pytest.fixture(autouse=True)
def few_objects_to_collect():
    """Let a collection of garbage, with which a refusal ends, look only at what a test itself made."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.write_tables()
    return project


@pytest.fixture(autouse=True)
def blank_pictures(request):
    """Pictures are drawn for the tests marked `pictures` alone."""
    if request.node.get_closest_marker("pictures") is not None:
        yield
        return
    with faster_runs.blank_pictures():
        yield
