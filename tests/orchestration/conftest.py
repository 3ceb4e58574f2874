import pytest

from tests.orchestration.project import Project


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.write_tables()
    return project
