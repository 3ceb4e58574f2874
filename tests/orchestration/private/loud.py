"""Everything that a function of somebody else's can say with, at Python's level and below it."""

import ctypes
import logging
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import dagster as dg
from dagster._core.execution.context.compute import current_execution_context

EARLY = logging.getLogger("made.before.any.step")


def shout(cell: str) -> None:
    """Say a cell in every way."""
    print(cell)
    print(cell, file=sys.stderr, flush=True)
    sys.stdout.buffer.write(cell.encode())
    for stream in (sys.__stdout__, sys.__stderr__):
        stream.write(cell)
    _log(cell)
    warnings.warn(cell, stacklevel=1)
    logging.captureWarnings(True)
    try:
        warnings.warn(f"{cell} captured", stacklevel=1)
    finally:
        logging.captureWarnings(False)
    _below_python(cell)
    _in_a_thread(cell)


def _log(cell: str) -> None:
    for logger in (logging.getLogger(), EARLY, logging.getLogger(f"made for {cell}"), dg.get_dagster_logger(cell)):
        logger.error("cell: %s", cell)
    handlers = (logging.StreamHandler(sys.__stderr__), logging.StreamHandler(sys.stdout), logging.StreamHandler())
    own = logging.getLogger("made.inside.a.step")
    for handler in handlers:
        own.addHandler(handler)
    own.warning("cell: %s", cell, extra={"dagster_event": None})
    logging.Logger("of nobody").error(cell)
    for handler in handlers:
        handler.handle(own.makeRecord("own", logging.ERROR, "", 1, cell, (), None))
        own.removeHandler(handler)
    try:
        raise ValueError(cell)
    except ValueError:
        own.exception("failed")


def _below_python(cell: str) -> None:
    for descriptor in (1, 2):
        os.write(descriptor, cell.encode())
    subprocess.run(["sh", "-c", 'echo "$0"; echo "$0" >&2', cell], check=True)
    # Stays in the buffer of the C library, which is written when the process ends.
    ctypes.CDLL(None).printf(b"%s", cell.encode())


def _in_a_thread(cell: str) -> None:
    def work() -> None:
        print(cell)
        logging.getLogger("in.a.thread").error(cell)
        context = current_execution_context.get()
        assert context is None

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def places_to_spill_into(root: Path, monkeypatch) -> tuple[Path, Path]:
    """Make directories into which temporary files go by default, and in which the process runs; return both."""
    elsewhere, working = root / "elsewhere", root / "working"
    for place in (elsewhere, working):
        place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.chdir(working)
    return elsewhere, working


def spill(cell: str) -> list[Path]:
    """Write a cell into temporary files, named after it, as libraries and their processes do; return these."""
    with tempfile.NamedTemporaryFile("w", prefix=cell, delete=False) as file:
        file.write(cell)
    directory = Path(tempfile.mkdtemp(prefix=cell))
    (directory / cell).write_text(cell)
    found = subprocess.run(["mktemp", "-t", f"{cell}.XXXXXX"], check=True, capture_output=True, text=True)
    return [Path(file.name), directory / cell, Path(found.stdout.strip())]


def speak_through_dagster(cell: str) -> None:
    """Say a cell through the context of the step that is running."""
    context = current_execution_context.get()
    assert context is not None, "no step is running"
    for each in (context, context.op_execution_context):
        each.log.info(cell)
        each.log.critical("cell: %s", cell)
        each.log.with_tags(step_key=cell).warning(cell)
        if not isinstance(each, dg.AssetCheckExecutionContext):
            each.log_event(dg.AssetObservation(cell, metadata={"cell": cell}))
            each.log_event(dg.AssetMaterialization(cell, metadata={"cell": cell}))
    inner = context.op_execution_context
    for output in inner.op_def.output_defs:
        if not inner.get_step_execution_context().has_seen_output(output.name):
            inner.add_output_metadata({cell: cell}, output_name=output.name)
    if isinstance(context, dg.AssetExecutionContext):
        assert dg.AssetExecutionContext.get() is context
        for key in context.assets_def.keys:
            context.add_asset_metadata({"cell": cell}, asset_key=key)
    assert dg.OpExecutionContext.get() is not None
    thread = threading.Thread(target=context.log.error, args=(cell,))
    thread.start()
    thread.join()
