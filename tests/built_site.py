"""The site of the documentation, built strictly: once for the tests of a process, or before them by .ci/run."""

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.shared_data import REPOSITORY


@cache
def built_site() -> Path:
    if any(find_spec(name) is None for name in ("mkdocs", "material", "mkdocstrings")):
        pytest.skip("needs the extra `docs`")
    if built := os.environ.get("PRIVACY_ASSETS_SITE"):
        return Path(built)
    folder = Path(tempfile.mkdtemp(prefix="site-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    run = subprocess.run(build, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return folder
