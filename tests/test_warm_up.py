import importlib
import json
import os
import pkgutil
import subprocess
import sys

import pytest
from numba.core.registry import CPUDispatcher

import privacy_assets
from privacy_assets.kernels.compilation import _Part
from tests.shared_data import REPOSITORY


@pytest.fixture(scope="module")
def warmed(tmp_path_factory):
    """Run the command once, into an empty cache."""
    cache = tmp_path_factory.mktemp("cache")
    return cache, run(cache, "privacy_assets.cli", "warm-up")


def run(cache, module, *arguments):
    found = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return found.stdout


def kernels():
    """Return the name of every function that Python calls and Numba compiles."""
    for module in pkgutil.walk_packages(privacy_assets.__path__, "privacy_assets."):
        if ".kernels." in module.name:
            for name, value in vars(importlib.import_module(module.name)).items():
                is_kernel = isinstance(value, CPUDispatcher) and not isinstance(value, _Part)
                if is_kernel and value.py_func.__module__ == module.name:
                    yield f"{module.name.rpartition('.')[2]}.{name}"


def test_it_says_what_it_does_and_where_the_cache_is(warmed):
    cache, output = warmed
    assert "Compiling functions for this processor" in output
    assert output.count("functions so far") >= 3
    assert str(cache) in output


def test_it_compiles_every_kernel(warmed):
    cache, _ = warmed
    compiled = {index.name.partition("-")[0] for index in cache.rglob("*.nbi")}
    expected = set(kernels())
    assert len(expected) > 20
    assert expected <= compiled


def test_afterwards_a_fresh_process_compiles_nothing(warmed):
    cache, _ = warmed
    assert json.loads(run(cache, "tests.warmed_up").splitlines()[-1]) == []


def test_a_second_run_compiles_nothing(warmed):
    cache, _ = warmed
    assert "Compiled 0 functions" in run(cache, "privacy_assets.cli", "warm-up")
