"""Functions that tests send to workers. A worker that replaces another imports nothing else of the tests."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class Copies:
    """Returns the batches that it gets."""

    def __call__(self, batches):
        yield from batches


@dataclass(frozen=True)
class Keeps:
    """Returns the rows that it gets."""

    def __call__(self, table):
        return table


@dataclass(frozen=True)
class Fails:
    """Fails with all that it has in its text."""

    def __call__(self, batches):
        for batch in batches:
            raise ValueError(f"cannot work on {batch.to_pydict()}")
        yield from ()


@dataclass(frozen=True)
class DiesOnce:
    """Kills its own process before the first batch, unless a file says that this happened."""

    mark: str
    always: bool = False

    def __call__(self, batches):
        for batch in batches:
            with suppress(FileExistsError):
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
            if self.always:
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch
