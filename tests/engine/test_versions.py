"""Workers with other versions are refused with what differs; whether they have to compile is in the log."""

import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import privacy_assets
from privacy_assets.engine import versions
from privacy_assets.engine.versions import describe_worker, require_same_versions, versions_here
from privacy_assets.errors import EngineError
from privacy_assets.kernels.compilation_progress import reported_to

NAMES = ["privacy_assets", "sources", "Python", "numpy", "numba", "pandas", "pyarrow", "pandera"]


def answer(change=lambda own: own, *, is_compiled=True):
    return json.dumps([[change(own) for own in versions_here()], is_compiled])


def test_the_versions_are_those_of_what_is_imported():
    found = versions_here()
    assert [own.split()[0] for own in found] == NAMES
    assert found[0] == f"privacy_assets {privacy_assets.__version__}"
    assert found[2] == f"Python {sys.version_info.major}.{sys.version_info.minor}"
    assert found[3] == f"numpy {np.__version__}"
    assert json.loads(describe_worker())[0] == found


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The sources of the package in another place."""
    place = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc")
    shutil.copytree(Path(privacy_assets.__file__).parent, place / "privacy_assets", ignore=ignored)
    return place / "privacy_assets"


def sources_of(package, monkeypatch):
    monkeypatch.setattr(privacy_assets, "__file__", str(package / "__init__.py"))
    found = versions_here()[1]
    monkeypatch.undo()
    return found


def test_the_digest_is_of_the_sources_wherever_they_are(copy, monkeypatch):
    assert sources_of(copy, monkeypatch) == versions_here()[1]
    (copy / "kernels" / "data.txt").write_text("not a source")
    assert sources_of(copy, monkeypatch) == versions_here()[1]


def _edit(package):
    path = package / "kernels" / "sorting.py"
    path.write_text(path.read_text() + " ")


CHANGES = {
    "a line is added": _edit,
    "a file is added": lambda package: (package / "more.py").write_text(""),
    "a file is removed": lambda package: (package / "kernels" / "slices.py").unlink(),
    "a file is renamed": lambda package: (package / "own_code.py").rename(package / "own_codes.py"),
    "a file is moved": lambda package: (package / "errors.py").rename(package / "engine" / "errors.py"),
    "a kernel is emptied": lambda package: (package / "kernels" / "bit_sets.py").write_text(""),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_any_change_of_the_sources_changes_the_digest(copy, tmp_path, monkeypatch, change):
    changed = shutil.copytree(copy, tmp_path / "privacy_assets")
    change(changed)
    assert sources_of(changed, monkeypatch) != versions_here()[1]


@pytest.mark.parametrize("name", NAMES)
def test_workers_that_differ_are_refused_with_both_versions(name):
    own = next(each for each in versions_here() if each.startswith(name))
    other = answer(lambda each: f"{name} 0.0.other" if each == own else each)
    for answers in ({other}, {other, answer()}):
        with pytest.raises(EngineError, match="Install the same version") as refused:
            require_same_versions(answers)
        assert f"have {name} 0.0.other; here it is {own}. Nothing was sent." in str(refused.value)


def test_workers_without_the_package_are_refused():
    with pytest.raises(EngineError, match="do not have privacy_assets and its libraries. Nothing was sent"):
        require_same_versions({"", answer()})


@pytest.mark.parametrize(
    ("answers", "level"),
    [
        ({answer()}, logging.INFO),
        ({answer(is_compiled=False)}, logging.WARNING),
        ({answer(), answer(is_compiled=False)}, logging.WARNING),
    ],
)
def test_the_log_says_whether_workers_compile_first(answers, level):
    said = []
    with reported_to(lambda *line: said.append(line)):
        require_same_versions(answers)
    ((found, line),) = said
    assert found == level
    assert ("warm-up" in line) == (level == logging.WARNING)


WORKER = (
    "from privacy_assets.engine.versions import describe_worker; import json; print(json.loads(describe_worker())[1])"
)


def test_kernels_that_run_as_plain_python_need_no_cache(monkeypatch):
    monkeypatch.setattr("privacy_assets.kernels.bit_sets.count_bits", lambda _: None)
    assert json.loads(describe_worker())[1] is True


def test_a_worker_finds_what_another_compiled_into_the_cache_of_an_image(tmp_path):
    """The first worker compiles one small function, and the next finds it."""

    def found(directory):
        told = subprocess.run(
            [sys.executable, "-c", WORKER],
            env={"PATH": "", "PYTHONPATH": str(directory), "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=True,
        )
        return told.stdout.strip()

    package = Path(versions.__file__).parents[2]
    assert [found(package), found(package)] == ["False", "True"]
