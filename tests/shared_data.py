"""Where the shared data lie: outside the repository, because they are not ours to publish."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def shared_folder() -> Path:
    """The folder that PRIVACY_ASSETS_SHARED names, or ``../shared`` beside the repository."""
    return Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))


def shared_file(*parts: str) -> Path:
    """A shared file; skips the test that needs it if it is not there."""
    path = shared_folder().joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not there: set PRIVACY_ASSETS_SHARED to a folder that has {'/'.join(parts)}")
    return path
