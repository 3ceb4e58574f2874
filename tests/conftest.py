"""Settings of the process, made before anything large is imported."""

import gc
import os

import pytest
from hypothesis import settings
from xdist import is_xdist_worker

from tests.made_once import MadeOnce

# Compiling kernels makes millions of objects that stay: fewer rounds of garbage collection.
gc.set_threshold(100_000, 20, 20)

# Each worker has a core of its own. Threads of scikit-learn that wait for one another on a busy core spin: trees on 300
# records took 30 seconds instead of one.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes depends on what else runs, and says nothing about the code.
settings.register_profile("any_time", deadline=None)
settings.load_profile("any_time")


@pytest.fixture(scope="session")
def made_once(request, tmp_path_factory):
    root = tmp_path_factory.getbasetemp()
    return MadeOnce((root.parent if is_xdist_worker(request) else root) / "made-once")
