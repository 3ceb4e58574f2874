"""Compiled code does not check indexes; the same functions in plain Python do, as NumPy looks at every one."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
KERNELS = sorted(TESTS.glob("*/kernels"))
# These kernels are tested together with what calls them.
KERNELS += [TESTS / path for path in ("disclosure/test_scores.py", "mpucc/test_any_size.py")]
KERNELS += [TESTS / "reidentification/test_many_known_sets.py"]
OPTIONS = ["--numprocesses=0", "-p", "no:cacheprovider"]
# Three blocks of records take minutes in plain Python.
OPTIONS += [
    "--deselect=tests/disclosure/test_scores.py::test_numbers_of_more_values_than_bins_are_compared_in_blocks[9000]"
]
# Unsigned integers wrap around where that is meant; compiled code does it silently.
OPTIONS += ["-W", "ignore:overflow encountered:RuntimeWarning"]


def test_no_index_leaves_its_array():
    found = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *KERNELS],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-1000:]
