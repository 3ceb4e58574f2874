"""What steps print and log is private, whatever threads they run in; afterwards output is what it was."""

import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from numba import njit

from privacy_assets.kernels import compilation_progress
from privacy_assets.orchestration.private.guard import call_guarded, guarded, log_openly
from privacy_assets.orchestration.private.hidden_output import print_openly
from tests.orchestration.private.loud import shout

CELL = "Zaphodine-Quxington"
SECONDS = 20
REPOSITORY = Path(__file__).parents[2]


def private_texts(path: Path) -> list[str]:
    return sorted(each.read_text() for each in (path / "failures").iterdir())


class Step:
    """A guarded step in a thread of its own, which goes on when it is told to."""

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        self.entered, self.may_say, self.said, self.may_leave = (threading.Event() for _ in range(4))
        self.thread = threading.Thread(target=call_guarded, args=(self.work, path, name))
        self.thread.start()
        assert self.entered.wait(SECONDS)

    def work(self) -> None:
        self.entered.set()
        assert self.may_say.wait(SECONDS)
        print(f"{CELL} of {self.name}")
        logging.getLogger(f"logger.{self.name}").error("%s logged by %s", CELL, self.name)
        subprocess.run(["echo", CELL], check=True)
        self.said.set()
        assert self.may_leave.wait(SECONDS)

    def say(self) -> None:
        self.may_say.set()
        assert self.said.wait(SECONDS)

    def leave(self) -> None:
        self.may_leave.set()
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()


@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_steps_that_overlap_in_threads_stay_hidden_in_any_order(tmp_path, capfd, first_to_leave):
    shown, handle = (sys.stdout, sys.stderr), logging.Handler.handle
    steps = [Step(tmp_path, "first"), Step(tmp_path, "second")]
    leaves, stays = steps[first_to_leave], steps[1 - first_to_leave]
    leaves.say()
    leaves.leave()
    stays.say()
    print(f"{CELL} of a thread without a step")
    stays.leave()
    assert (sys.stdout, sys.stderr) == shown
    assert logging.Handler.handle is handle
    print("shown again")
    subprocess.run(["echo", "shown below"], check=True)
    output = capfd.readouterr()
    assert CELL not in output.out + output.err
    assert {"shown again", "shown below"} <= set(output.out.splitlines())
    texts = private_texts(tmp_path)
    assert len(texts) == 2
    for name in ("first", "second"):
        own = [text for text in texts if f"{CELL} of {name}" in text]
        assert len(own) == 1
        assert f"ERROR logger.{name}: {CELL} logged by {name}" in own[0]


def test_many_steps_at_once_leave_no_trace_but_in_private(tmp_path, capfd):
    shown = (sys.stdout, sys.stderr)

    def step(number: int) -> None:
        for _ in range(20):
            call_guarded(lambda: print(f"{CELL} {number}"), tmp_path, f"step-{number}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(step, range(8)))
    assert (sys.stdout, sys.stderr) == shown
    output = capfd.readouterr()
    assert CELL not in output.out + output.err
    texts = private_texts(tmp_path)
    assert len(texts) == 160
    assert all(texts.count(f"{CELL} {number}\n") == 20 for number in range(8))


def test_steps_inside_steps_print_into_their_own_files(tmp_path, capfd):
    def outer() -> None:
        print("outer before")
        call_guarded(lambda: print("inner"), tmp_path, "inner")
        print("outer after")

    call_guarded(outer, tmp_path, "outer")
    assert capfd.readouterr().out == ""
    assert private_texts(tmp_path) == ["inner\n", "outer before\nouter after\n"]


def test_our_own_line_gets_through_and_nothing_else_does(tmp_path, capfd):
    heard: list[str] = []

    class Hears(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())
            print(f"{CELL} printed by a handler")

    log = logging.getLogger("tests.context.log")
    log.setLevel(logging.INFO)
    handlers = [Hears(), logging.StreamHandler(sys.stderr)]
    for handler in handlers:
        log.addHandler(handler)
    context = type("Context", (), {"log": log})
    stop, started = threading.Event(), threading.Event()

    def noise() -> None:
        while not stop.is_set():
            print(f"{CELL} of another thread", flush=True)
            log.info(f"{CELL} of another thread")
            started.set()

    def work() -> None:
        thread = threading.Thread(target=noise)
        thread.start()
        assert started.wait(SECONDS)
        for number in range(50):
            log.info(CELL)
            log_openly(context, f"our line {number}")
        stop.set()
        thread.join(SECONDS)

    call_guarded(work, tmp_path, "step")
    for handler in handlers:
        log.removeHandler(handler)
    assert heard == [f"our line {number}" for number in range(50)]
    output = capfd.readouterr()
    assert CELL not in output.out + output.err
    assert [line for line in output.err.splitlines() if "our line" in line] == heard


SCRIPT = """
import logging, sys
from pathlib import Path
early = logging.StreamHandler(sys.stderr)
logging.getLogger("made.before.any.step").addHandler(early)
from tests.orchestration.private.loud import shout
from privacy_assets.orchestration.private.guard import call_guarded
print("before")
call_guarded(lambda: shout(sys.argv[1]), Path(sys.argv[2]), "step")
print("after")
logging.getLogger("made.before.any.step").error("logged after")
"""


def test_nothing_below_python_comes_out_when_the_process_ends(tmp_path):
    # In a process of its own: its output is no terminal, so that the C library keeps what it prints until the end.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, CELL, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=environment,
        check=True,
    )
    assert run.stdout.splitlines() == ["before", "after"]
    assert run.stderr.splitlines() == ["logged after"]
    (kept,) = private_texts(tmp_path)
    assert kept.count(CELL) > 20


def test_what_an_exception_prints_when_it_goes_is_private(tmp_path, capfd):
    class Table:
        def __del__(self) -> None:
            print(CELL)

    def work() -> None:
        table = Table()
        table.itself = table
        raise ValueError(table)

    with pytest.raises(dg.Failure):
        call_guarded(work, tmp_path, "step")
    output = capfd.readouterr()
    assert CELL not in output.out + output.err
    assert CELL in private_texts(tmp_path)[0]


@pytest.mark.filterwarnings(f"ignore:{CELL}")
def test_everything_that_is_said_in_a_step_is_private(tmp_path, capfd):
    call_guarded(lambda: shout(CELL), tmp_path, "step")
    output = capfd.readouterr()
    assert CELL not in output.out + output.err


def test_a_handler_with_a_handle_of_its_own_gets_no_text(tmp_path):
    got = []

    class Own(logging.Handler):
        def handle(self, record):
            got.append(record.getMessage())

    logger = logging.getLogger("with a handler of its own")
    logger.addHandler(Own())
    try:
        call_guarded(lambda: logger.error("Zaphodine-Quxington"), tmp_path, "people__source")
        assert got == []
        logger.error("afterwards")
        assert got == ["afterwards"]
    finally:
        logger.handlers.clear()


def test_a_line_of_this_package_is_printed_where_everything_else_is_hidden(tmp_path, capfd):
    def work():
        print(CELL)
        print_openly("a line")

    call_guarded(work, tmp_path, "step")
    print_openly("another line")
    assert capfd.readouterr().out == "a line\nanother line\n"


def test_the_log_of_a_step_says_that_functions_are_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(compilation_progress.progress, "last_line", None)

    def double(x):
        return 2 * x

    double.__module__ = "privacy_assets.of_a_test"

    @dg.asset(required_resource_keys={"private_tables"})
    @guarded
    def step(context):
        yield dg.MaterializeResult(metadata={"doubled": njit(double)(3)})

    with dg.DagsterInstance.ephemeral() as instance:
        resources = {"private_tables": SimpleNamespace(base_path=tmp_path)}
        result = dg.materialize([step], instance=instance, resources=resources)
        messages = [entry.user_message for entry in instance.all_logs(result.run_id)]
    assert [each for each in messages if each == compilation_progress.FIRST_LINE]
    assert not compilation_progress.progress.reports
