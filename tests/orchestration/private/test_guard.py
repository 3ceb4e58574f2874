"""The guard itself: exceptions that attack it, errors that may speak and those that may not."""

import subprocess
import sys
import traceback
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.private import guard
from privacy_assets.orchestration.private.guard import ReleaseRefused, ValueFreeFailure, call_guarded
from privacy_assets.orchestration.settings.sources import TableFile
from tests.examples import examples
from tests.orchestration.private.attacking_exceptions import ATTRIBUTES, attacks

CELL = "Zaphodine-Quxington"
NUMBER = 91827364555
SENTINELS = (CELL, str(NUMBER), f"{NUMBER:,}")
ATTACKS = attacks(CELL, NUMBER)


def caught(call, path, what="people__source"):
    """Return what leaves the guard."""
    try:
        call_guarded(call, path, what)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is what the test is about
        return error
    raise AssertionError("nothing was raised")


def all_that_it_shows(error):
    """Everything that Dagster stores or prints of an exception: its text, those it came from, its traceback."""
    # Not the frames of tests, whose source has the cells.
    kept = [frame for frame in traceback.extract_tb(error.__traceback__) if "tests" not in Path(frame.filename).parts]
    parts = [repr(error), repr(vars(error)), repr(kept), repr(type(error)), repr(getattr(error, "__notes__", None))]
    for other in (error.__cause__, error.__context__):
        parts += [] if other is None else [all_that_it_shows(other)]
    return " ".join(parts)


def assert_hides(error, capfd):
    shown = all_that_it_shows(error)
    assert [each for each in SENTINELS if each in shown] == []
    output = capfd.readouterr()
    assert [each for each in SENTINELS if each in output.out + output.err] == []
    assert type(error) in (ValueFreeFailure, *guard.INTERRUPTS)


def gate_is_open():
    return "hidden_output" not in type(sys.stdout).__module__ + type(sys.stderr).__module__


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda name: name.replace(" ", "-"))
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_exception_object_gets_its_text_through(attack, tmp_path, capfd):
    error = caught(ATTACKS[attack], tmp_path)
    assert_hides(error, capfd)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert gate_is_open()


texts = st.sampled_from([CELL, str(NUMBER), NUMBER, float(NUMBER), None, CELL.encode(), (CELL, NUMBER)])


@settings(max_examples=examples(60), deadline=None)
@given(
    base=st.sampled_from([ValueError, OSError, KeyError, InvalidTableError, ReleaseRefused, KeyboardInterrupt]),
    overridden=st.sets(st.sampled_from([*ATTRIBUTES, "__str__", "__repr__"]), max_size=4),
    gives=st.sampled_from(["raises", "exits", "a text", "a number", "itself", "nothing"]),
    name=st.sampled_from(["Mine", CELL, f"E{NUMBER}", "ValueError"]),
    module=st.sampled_from(["builtins", "privacy_assets.errors", "tests", CELL, None]),
    arguments=st.lists(texts, max_size=4),
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_made_up_exceptions_are_withheld(tmp_path_factory, base, overridden, gives, name, module, arguments):
    def look(self):
        if gives in ("raises", "exits"):
            raise {"raises": LookupError, "exits": SystemExit}[gives](CELL)
        return {"a text": CELL, "a number": NUMBER, "itself": self}.get(gives)

    overrides = {each: look if each in ("__str__", "__repr__") else property(look) for each in overridden}

    def call():
        raise type(name, (base,), {"__module__": module, **overrides})(*arguments)

    path = tmp_path_factory.getbasetemp() / "fuzz"
    error = caught(call, path)
    assert type(error) in (ValueFreeFailure, KeyboardInterrupt)
    assert [each for each in SENTINELS if each in all_that_it_shows(error)] == []
    assert error.__context__ is None
    assert gate_is_open()


def test_an_exception_that_is_being_handled_outside_is_not_attached(tmp_path):
    try:
        raise ValueError(CELL)
    except ValueError:
        error = caught(ATTACKS["notes"], tmp_path)
    assert error.__context__ is None


class TestWhatMaySpeak:
    """Honest failures keep their words: ours in full, those of the system by their number, the place, the kind."""

    def test_an_error_of_ours_speaks(self, tmp_path):
        error = caught(missing_file(tmp_path), tmp_path)
        assert "failed with InvalidTableError at sources.py:" in error.description
        assert "There is no file" in error.description

    def test_an_error_of_ours_through_others_does_not(self, tmp_path):
        error = caught(lambda: passing_on(missing_file(tmp_path)), tmp_path)
        assert "There is no file" not in error.description
        assert "withheld" in error.description

    def test_the_system_speaks_by_its_numbers(self, tmp_path):
        error = caught(ATTACKS["OSError with int 28"], tmp_path)
        assert "OSError" in error.description
        assert "No space left on device" in error.description

    @pytest.mark.parametrize(
        ("attack", "kind"),
        [
            ("notes", "KeyError"),
            ("a class named after a cell", "subclass of ValueError"),
            ("a class that pretends to be a library's", "subclass of ValueError"),
            ("a class of our error", "subclass of PrivacyAssetsError"),
            ("a metaclass with names", "subclass of ValueError"),
        ],
    )
    def test_the_kind_is_one_that_a_library_names(self, attack, kind, tmp_path):
        assert f"failed with {kind} at guard.py:" in caught(ATTACKS[attack], tmp_path).description

    def test_the_private_file_has_what_is_withheld(self, tmp_path):
        error = caught(ATTACKS["a group"], tmp_path)
        assert CELL in Path(error.metadata["private_traceback"].text).read_text()

    def test_what_is_said_when_nothing_can_be_found_out_is_constant(self, tmp_path, monkeypatch):
        def broken(*_):
            raise SystemExit(CELL)

        monkeypatch.setattr(guard, "class_name", broken)
        error = caught(ATTACKS["notes"], tmp_path)
        assert error.description.startswith("people__source failed. The text of this error is withheld")
        assert CELL not in all_that_it_shows(error)

    def test_a_failure_inside_another_guard_keeps_its_words(self, tmp_path):
        error = caught(partial(call_guarded, missing_file(tmp_path), tmp_path, "inner"), tmp_path)
        assert error.description.startswith("inner failed with InvalidTableError at sources.py:")


def missing_file(path):
    """Return what reads a file that is not there: no code of tests stands between the guard and the error."""
    return partial(TableFile(str(path / "nowhere.csv")).read, None)


def passing_on(call):
    return call()


def test_without_files_to_open_nothing_is_run(tmp_path):
    code = (
        "import os, resource, sys\n"
        "from pathlib import Path\n"
        "from privacy_assets.orchestration.private.guard import call_guarded\n"
        f"def call(): print({CELL!r})\n"
        "highest = max(int(each) for each in os.listdir('/proc/self/fd'))\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (highest + int(sys.argv[1]), 4096))\n"
        "try: call_guarded(call, Path(sys.argv[2]), 'people__source')\n"
        "except Exception as error: print(error.description)\n"
    )
    said = []
    for n_more in range(1, 6):
        run = subprocess.run([sys.executable, "-c", code, str(n_more), str(tmp_path)], capture_output=True, text=True)
        assert CELL not in run.stdout + run.stderr
        said.append(run.stdout)
    assert any("Too many open files" in each for each in said)
    assert "" in said, "with enough files the call runs, and what it prints is private"


def test_settings_errors_that_this_package_raises_are_its_own():
    with pytest.raises(InvalidSettingError) as raised:
        TableFile("x")
    assert raised.value.was_made_here
    assert not InvalidTableError("made by a test").was_made_here
