import pytest
from matplotlib.figure import Figure
from PIL import Image

from tests.orchestration.project import Project


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.write_tables()
    return project


@pytest.fixture(autouse=True)
def blank_pictures(request, monkeypatch):
    """Spare what is a third of the time of a run: pictures are drawn for the tests marked `pictures` alone."""
    if request.node.get_closest_marker("pictures") is None:
        monkeypatch.setattr(Figure, "savefig", lambda _, file, **__: Image.new("RGB", (1, 1)).save(file, "png"))
