import gc

import pytest
from alembic.script import ScriptDirectory
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from matplotlib.figure import Figure
from PIL import Image
from sqlalchemy import event
from sqlalchemy.pool import QueuePool

from tests.orchestration.project import Project

MOST_ENGINES = 60
"""Their connections are open files."""


@pytest.fixture(scope="session", autouse=True)
def kept_engines():
    """Spare half of the time of a run, in which Dagster starts anew with every event.

    It makes an engine, connects for each statement, compiles it, and reads all its migrations to stamp the table of
    events that each run has. What is written need not survive a power cut here either. And a collection of garbage,
    which a refusal ends with, need not look at what was imported.
    """
    engines = {}

    def kept(make, url, **options):
        if url not in engines:
            engines[url] = make(url, **options | {"poolclass": QueuePool})
            event.listen(engines[url], "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
            if len(engines) > MOST_ENGINES:
                engines.pop(next(iter(engines))).dispose()
        return engines[url]

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
            patch.setattr(module, "create_engine", lambda url, make=make, connect_args=None, **o: kept(make, url, **o))
        yield
    for engine in engines.values():
        engine.dispose()
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
