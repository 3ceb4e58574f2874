"""The versions on which tasks depend: those of this process and of the workers must be equal."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from privacy_assets.errors import EngineError
from privacy_assets.kernels.compilation_progress import progress

WARM_UP = "Each of them compiles for up to a minute; run `privacy_assets warm-up` when their image is built."
LIBRARIES = ("numpy", "numba", "pandas", "pyarrow", "pandera")
INSTALL = (
    "Nothing was sent. Install the same version of this package, of Python and of its libraries where the tasks run: in"
    " the image or the environment archive of the executors (`spark.archives`), or as a library of the Databricks"
    " cluster."
)


def versions_here() -> list[str]:
    """Return the versions of this package and of its sources, of Python and of the libraries of the tasks."""
    import privacy_assets

    root = Path(privacy_assets.__file__).parent
    sources = sorted((path.relative_to(root).as_posix().encode(), path.read_bytes()) for path in root.rglob("*.py"))
    digest = sha256(b"\0".join(part for source in sources for part in source)).hexdigest()
    own = [f"privacy_assets {privacy_assets.__version__}", f"sources with SHA-256 {digest}"]
    return [*own, "Python {}.{}".format(*sys.version_info), *(f"{name} {version(name)}" for name in LIBRARIES)]


def describe_worker() -> str:
    """Return the versions of this process, and whether Numba found a compiled function, as JSON."""
    import numpy as np

    from privacy_assets.kernels.bit_sets import count_bits

    count_bits(np.zeros((1, 1), np.uint64))
    stats = getattr(count_bits, "stats", None)
    return json.dumps([versions_here(), stats is None or bool(stats.cache_hits)])


def reader_of_versions() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a function that is sent with its code, because a worker without this package cannot import it."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for _ in batches:
            try:
                from privacy_assets.engine.versions import describe_worker

                found = describe_worker()
            except ImportError:
                found = ""
            yield pyarrow.record_batch([[found]], names=["version"])

    return read


def require_same_versions(answers: set[str]) -> None:
    """Refuse workers with other versions than this process, and report whether they have to compile."""
    if "" in answers:
        raise EngineError(f"Workers of the Spark cluster do not have privacy_assets and its libraries. {INSTALL}")
    found, here = [json.loads(answer) for answer in answers], set(versions_here())
    theirs = [set(own) for own, _ in found]
    others, missing = set.union(*theirs) - here, here - set.intersection(*theirs)
    if others or missing:
        differ = "; here it is ".join(", ".join(sorted(each)) for each in (others, missing))
        raise EngineError(f"Workers of the Spark cluster have {differ}. {INSTALL}")
    if all(is_compiled for _, is_compiled in found):
        progress.tell(logging.INFO, "The workers found compiled functions in Numba's cache.")
    else:
        progress.tell(logging.WARNING, f"The workers found no compiled functions in Numba's cache. {WARM_UP}")
