import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from numba.core.registry import CPUDispatcher

import privacy_assets
from privacy_assets.kernels.compilation import _Part
from tests.shared_data import REPOSITORY


class Warmed(NamedTuple):
    """What the command left: the cache and what it printed, and the directory of the package if that is a copy."""

    cache: Path
    output: str
    printed: Path
    package: Path | None = None

    def run(self, module, *arguments):
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
        if self.package is None:
            environment["NUMBA_CACHE_DIR"] = str(self.cache)
        found = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.package or REPOSITORY,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr[-3000:]
        return found.stdout


@pytest.fixture(scope="module")
def warmed(tmp_path_factory):
    """Run the command once, into an empty cache; or take a copy of the package after its only run, which is faster."""
    if copied := os.environ.get("PRIVACY_ASSETS_WARMED_UP"):
        output = (Path(copied) / "output").read_text(encoding="utf-8")
        return Warmed(Path(copied), output, REPOSITORY, Path(copied))
    cache = tmp_path_factory.mktemp("cache")
    output = Warmed(cache, "", cache).run("privacy_assets.cli", "warm-up")
    return Warmed(cache, output, cache)


def kernels():
    """Return the name of every function that Python calls and Numba compiles."""
    for module in pkgutil.walk_packages(privacy_assets.__path__, "privacy_assets."):
        if ".kernels." in module.name:
            for name, value in vars(importlib.import_module(module.name)).items():
                is_kernel = isinstance(value, CPUDispatcher) and not isinstance(value, _Part)
                if is_kernel and value.py_func.__module__ == module.name:
                    yield f"{module.name.rpartition('.')[2]}.{name}"


def test_it_says_what_it_does_and_where_the_cache_is(warmed):
    assert "Compiling functions for this processor" in warmed.output
    assert re.search(r"Compiled \d+ functions; the next", warmed.output)
    assert str(warmed.printed) in warmed.output


def test_it_compiles_every_kernel(warmed):
    compiled = {index.name.partition("-")[0] for index in warmed.cache.rglob("*.nbi")}
    expected = set(kernels())
    assert len(expected) > 20
    assert expected <= compiled


def test_afterwards_a_fresh_process_compiles_nothing(warmed):
    assert json.loads(warmed.run("tests.warmed_up").splitlines()[-1]) == []


def test_a_second_run_compiles_nothing(warmed):
    assert "Compiled 0 functions" in warmed.run("privacy_assets.cli", "warm-up")
