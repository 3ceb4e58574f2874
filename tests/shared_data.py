"""Where the tests find their data: golden figures beside them, the UCI Adult tables outside the repository."""

import os
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
REPOSITORY = TESTS.parent


def golden_file(*parts: str) -> Path:
    """A file of golden figures, which is part of the repository (see ``tests/golden/README.md``)."""
    return TESTS.joinpath("golden", *parts)


def shared_folder() -> Path:
    """The folder that PRIVACY_ASSETS_SHARED names, or ``../shared`` next to the repository."""
    return Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))


def shared_file(*parts: str) -> Path:
    """A table that is not ours to publish; skips the test that calls this if the table is not there."""
    path = shared_folder().joinpath(*parts)
    if not path.exists():
        pytest.skip(f"needs {'/'.join(parts)} in the folder that PRIVACY_ASSETS_SHARED names, and it is not there")
    return path
