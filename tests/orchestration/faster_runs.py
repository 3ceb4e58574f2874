"""What spares runs of Dagster in tests more than half of their time."""

import contextlib
import shutil
from pathlib import Path
from unittest.mock import patch

from alembic.script import ScriptDirectory
from dagster._core.execution import compute_logs
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from sqlalchemy import event
from sqlalchemy.pool import QueuePool

MOST_ENGINES = 60
"""Their connections are open files."""


@contextlib.contextmanager
def kept_engines():
    """Keep what Dagster makes anew with every event.

    It makes an engine, connects for each statement, compiles it, disposes of the engine, and reads all its migrations
    to stamp the table of events that each run has. What is written need not survive a power cut here either.
    """
    engines, dispose_of = {}, {}

    def kept(make, url, **options):
        if url not in engines:
            engine = engines[url] = make(url, **options | {"poolclass": QueuePool})
            event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous = OFF"))
            dispose_of[url], engine.dispose = engine.dispose, lambda: None
            if len(engines) > MOST_ENGINES:
                oldest = next(iter(engines))
                del engines[oldest]
                dispose_of.pop(oldest)()
        return engines[url]

    read = ScriptDirectory.from_config
    migrations = {}

    def read_once(config):
        place = config.get_main_option("script_location")
        return migrations[place] if place in migrations else migrations.setdefault(place, read(config))

    with contextlib.ExitStack() as patches:
        patches.enter_context(patch.object(ScriptDirectory, "from_config", read_once))
        for module in (sqlite_event_log, sqlite_run_storage):
            make = module.create_engine

            def keeping(url, make=make, connect_args=None, **options):
                return kept(make, url, **options)

            patches.enter_context(patch.object(module, "create_engine", keeping))
        yield
    for dispose in dispose_of.values():
        dispose()


@contextlib.contextmanager
def no_log_followers():
    """Show what a run prints when it ends, rather than by four processes that follow the files of its output."""

    @contextlib.contextmanager
    def shown_at_the_end(path, stream):
        yield None, None
        with Path(path).open("rb") as log, open(stream.fileno(), "wb", closefd=False) as console:
            shutil.copyfileobj(log, console)

    with patch.object(compute_logs, "tail_to_stream", shown_at_the_end):
        yield


class _Nothing:
    """Axes on which nothing is drawn: every attribute, call and item is itself."""

    def __getattr__(self, name):
        return self

    def __call__(self, *_, **__):
        return self

    def __getitem__(self, _):
        return self


@contextlib.contextmanager
def blank_pictures():
    """Draw no pictures, which would be a third of the time of a run."""
    subplots = Figure.subplots

    def no_axes(figure, *shape, **options):
        return subplots(figure, *shape, **options) if shape or options else _Nothing()

    def blank(_, file, **__):
        _save_nothing(file)

    with patch.object(Figure, "subplots", no_axes), patch.object(Figure, "savefig", blank):
        yield


@contextlib.contextmanager
def texts_of_pictures():
    """Keep what is written in pictures, and draw nothing: in their pixels no search finds a text."""
    texts = []

    def keep(figure, file, **__):
        for axes in figure.axes:
            texts.extend(label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels()))
        texts.extend(text.get_text() for text in figure.findobj(Text))
        _save_nothing(file)

    with patch.object(Figure, "savefig", keep):
        yield texts


def _save_nothing(file):
    Image.new("RGB", (1, 1)).save(file, "png")
