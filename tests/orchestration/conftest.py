import pytest

from tests.orchestration import faster_runs
from tests.orchestration.project import Project


@pytest.fixture(scope="session", autouse=True)
def faster_dagster(made_once):
    """Spare more than half of the time of a run."""
    Project.made_once = made_once
    with (
        faster_runs.kept_engines(),
        faster_runs.no_log_followers(),
        faster_runs.remembered_plans(),
        faster_runs.quick_collections(),
        faster_runs.quick_reads(),
    ):
        yield


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
