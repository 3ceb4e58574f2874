"""Progress bars: where somebody can see them, once a function takes long, and without a cell."""

import inspect
import io
import sys
from contextlib import redirect_stderr
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import privacy_assets
from privacy_assets.display import progress_bar
from privacy_assets.display.progress_bar import ProgressBar, shows_progress
from tests.public_packages import PUBLIC

SENTINEL = "Zxqv"


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Make a terminal; pytest replaces standard error after fixtures, so tests redirect it themselves."""
    monkeypatch.setattr(progress_bar, "SECONDS_UNTIL_SHOWN", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


@shows_progress
def work(n, *, progress=None):
    for done in range(n):
        if progress is not None:
            progress(SimpleNamespace(bar=("counting", done, n)))
    return n


@shows_progress
def outer(*, progress=None):
    progress(SimpleNamespace(bar=("before", 0, 0)))
    return work(3)


def test_bar_is_shown_on_a_terminal(terminal):
    with redirect_stderr(terminal):
        assert work(3) == 3
    assert "work" in terminal.getvalue()
    assert "counting" in terminal.getvalue()


def test_nothing_is_shown_elsewhere(monkeypatch):
    monkeypatch.setattr(progress_bar, "SECONDS_UNTIL_SHOWN", 0.0)
    quiet = io.StringIO()
    monkeypatch.setattr(sys, "stderr", quiet)
    assert work(3) == 3
    monkeypatch.setattr(sys, "stderr", None)
    assert work(3) == 3
    assert quiet.getvalue() == ""


def test_bar_is_shown_in_a_notebook(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    for config, expected in (({"IPKernelApp": {}}, True), ({}, False)):
        shell = SimpleNamespace(config=config)
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert progress_bar._is_watched() is expected
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not progress_bar._is_watched()


def test_who_reports_progress_sees_no_bar(terminal):
    seen = []
    with redirect_stderr(terminal):
        assert work(3, progress=seen.append) == 3
    assert len(seen) == 3
    assert terminal.getvalue() == ""


def test_bar_of_the_function_that_was_called_is_the_only_one(terminal):
    with redirect_stderr(terminal):
        assert outer() == 3
    assert "outer" in terminal.getvalue()
    assert "counting" not in terminal.getvalue()
    with redirect_stderr(terminal):
        assert work(3) == 3
    assert "counting" in terminal.getvalue()


def test_bar_appears_after_two_seconds_only(monkeypatch):
    monkeypatch.setattr(progress_bar, "SECONDS_UNTIL_SHOWN", 2.0)
    clock = iter((0.0, 1.0, 1.9, 2.0))
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: next(clock))
    bar = ProgressBar("work")
    monkeypatch.setattr(bar, "_draw", lambda: pytest.fail("drawn"))
    for _ in range(2):
        bar.show(SimpleNamespace(bar=("counting", 0, 1)))
    with pytest.raises(pytest.fail.Exception, match="drawn"):
        bar.show(SimpleNamespace(bar=("counting", 0, 1)))


def test_bar_ends_with_an_error(terminal):
    @shows_progress
    def fails(*, progress=None):
        progress(SimpleNamespace(bar=("counting", 0, 0)))
        raise ValueError("the error")

    with redirect_stderr(terminal), pytest.raises(ValueError, match="the error"):
        fails()
    assert not progress_bar._is_shown.get()
    # The cursor, which a bar hides, is back.
    assert terminal.getvalue().rindex("\x1b[?25h") > terminal.getvalue().rindex("\x1b[?25l")


def test_every_public_function_with_progress_shows_it_without_a_cell(terminal):
    with_progress = {
        name
        for name, each in PUBLIC.items()
        if inspect.isfunction(each) and "progress" in inspect.signature(each).parameters
    }
    assert {name for name in with_progress if hasattr(PUBLIC[name], "__wrapped__")} == with_progress
    assert len(with_progress) == 10
    random = np.random.default_rng(0)

    def people():
        return pd.DataFrame(
            {"job": random.choice([f"{SENTINEL}{i}" for i in range(5)], 300), "age": random.integers(0, 99, 300)}
        )

    original, synthetic, control = people(), people(), people()
    with redirect_stderr(terminal):
        released = privacy_assets.anonymize(original, quasi_identifiers=["job", "age"], k=5)
        privacy_assets.assess_reidentification(original, released)
        privacy_assets.assess_mpuccs(original, synthetic, control)
        privacy_assets.assess_disclosure(original, synthetic, control)
        privacy_assets.assess_semantic_risk(original, {"job": "nominal", "age": "ordinal"}, risk_limit=0.5)
    shown = terminal.getvalue()
    for name in ("anonymize", "assess_reidentification", "assess_mpuccs", "assess_disclosure", "assess_semantic_risk"):
        assert name in shown
    assert SENTINEL not in shown
