import gc
from functools import cache

import pytest
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from matplotlib.figure import Figure
from PIL import Image
from sqlalchemy import event

from tests.orchestration.project import Project


@pytest.fixture(scope="session", autouse=True)
def kept_engines():
    """Spare half of the time of a run, in which Dagster starts anew with every event.

    It makes an engine, compiles each statement, and reads all its migrations to stamp the table of events that each run
    has. What is written need not survive a power cut here either. And a collection of garbage, which a refusal ends
    with, need not look at what was imported.
    """

    @cache
    def kept(make, *arguments, **options):
        engine = make(*arguments, **options)
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
        return engine

    gc.collect()
    gc.freeze()
    read = ScriptDirectory.from_config
    migrations = {}

    def read_once(config):
        place = config.get_main_option("script_location")
        return migrations[place] if place in migrations else migrations.setdefault(place, read(config))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScriptDirectory, "from_config", read_once)
        for module in (sqlite_event_log, sqlite_run_storage):
            make = module.create_engine
            patch.setattr(module, "create_engine", lambda *a, make=make, connect_args=None, **o: kept(make, *a, **o))
        yield
    gc.unfreeze()


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
