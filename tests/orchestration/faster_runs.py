"""What spares runs of Dagster in tests more than half of their time."""

import contextlib
import gc
import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from alembic.script import ScriptDirectory
from dagster._core.execution import compute_logs
from dagster._core.storage.event_log.sqlite import sqlite_event_log
from dagster._core.storage.runs.sqlite import sqlite_run_storage
from hypothesis import given, settings
from hypothesis.strategies import none
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from pyarrow import parquet
from sqlalchemy import event
from sqlalchemy.pool import QueuePool

from privacy_assets.disclosure import planned_control
from privacy_assets.orchestration import control_plans
from privacy_assets.orchestration.private import guard

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


@contextlib.contextmanager
def remembered_plans():
    """Judge a planned control once: tests run one table again and again, and what is said depends on nothing else."""
    judge, found = planned_control.judge_by, {}

    def remembered(rehearsal, *numbers):
        effect = rehearsal.effect
        arrays = (rehearsal.scores, effect.added, effect.closeness, effect.owner, effect.of_others)
        said = (effect.n_records, rehearsal.records_per_person, rehearsal.settings, *numbers)
        key = (*(array.tobytes() for array in arrays), *said)
        if key not in found:
            found[key] = judge(rehearsal, *numbers)
        return found[key]

    with patch.object(planned_control, "judge_by", remembered), patch.object(control_plans, "judge_by", remembered):
        yield


@contextlib.contextmanager
def quick_collections():
    """Look at each object in one collection of garbage only: a refusal ends with one, and few objects outlive two."""
    # Hypothesis looks for what refers to its generator when it first has one, and `gc` does not show it what is frozen.
    settings(derandomize=True, database=None, max_examples=1)(given(none())(lambda _: None))()

    def collect_new():
        found = gc.collect()
        gc.freeze()
        return found

    # What is frozen stays so: pytest ends with five collections of everything.
    with patch.object(guard, "gc", SimpleNamespace(collect=collect_new)):
        yield


@contextlib.contextmanager
def quick_reads():
    """Read a small file of Parquet without the threads and the scanner of a dataset, which take most of its time."""
    read = parquet.read_table

    def read_small(source, **options):
        known = {"columns", "filesystem", "filters", "use_pandas_metadata"}
        is_file = not isinstance(source, str | Path) or Path(source).is_file()
        if not is_file or not options.keys() <= known or options.get("filters") or options.get("filesystem"):
            return read(source, **options)
        with parquet.ParquetFile(source) as file:
            return file.read(options.get("columns"), use_threads=False, use_pandas_metadata=True)

    with patch.object(parquet, "read_table", read_small):
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
