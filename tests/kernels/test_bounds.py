"""Compiled code does not check indexes; the same functions in plain Python do, as NumPy looks at every one."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
OPTIONS = ["--numprocesses=0", "-p", "no:cacheprovider"]
# Unsigned integers wrap around where that is meant; compiled code does it silently.
OPTIONS += ["-W", "ignore:overflow encountered:RuntimeWarning"]


def test_no_index_leaves_its_array():
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *sorted(TESTS.glob("*/kernels"))],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-1000:]
