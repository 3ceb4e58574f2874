"""What takes long to make and many tests look at: made by the first worker that asks, and found by the others."""

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path


class MadeOnce:
    """Directories that all workers of one run of the tests share."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)

    def directory(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return a directory that a function has filled, in this process or in another."""
        place, made = self.root / name, self.root / f"{name}.made"
        with (self.root / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not made.exists():
                shutil.rmtree(place, ignore_errors=True)
                place.mkdir()
                make(place)
                made.touch()
        return place
