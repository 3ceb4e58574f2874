import random
import shutil
import signal

import pytest

from privacy_assets.release.verification import verify_release
from tests.orchestration import killed_run
from tests.orchestration.forked import PROCESSES
from tests.orchestration.project import NAME, Project

N_POINTS = 6


def run_in_a_process(root, seed, killed_at):
    """Return how the process ended, and how often it touched the disk; None if it was killed."""
    receives, says = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=killed_run.run, args=(root, seed, killed_at, says))
    process.start()
    says.close()
    try:
        touched = receives.recv()
    except EOFError:
        touched = None
    process.join()
    return process.exitcode, touched


@pytest.fixture(scope="module")
def released(made_once):
    """A project with two releases, and how often the run of the second touched the disk: the first makes more."""

    def release_twice(root):
        for seed in (1, 3):
            exit_code, n_touched = run_in_a_process(root, seed, 0)
            assert exit_code == 0
        (root / "touched").write_text(str(n_touched))

    root = made_once.directory("released-twice", release_twice)
    return root, int((root / "touched").read_text())


def points(n_touched):
    """Choose six random points of a run, more than half of them while the release is written."""
    assert n_touched > 3 * N_POINTS
    chosen = random.Random(20)
    release = range(n_touched - 25, n_touched + 1)
    return [*chosen.sample(range(1, n_touched - 25), 2), *chosen.sample(release, N_POINTS - 2)]


@pytest.mark.parametrize("point", range(N_POINTS))
def test_a_kill_leaves_no_partial_release_and_the_next_run_succeeds(tmp_path, released, point):
    root, n_touched = released
    shutil.copytree(root, tmp_path, symlinks=True, dirs_exist_ok=True)
    project = Project(tmp_path)
    exit_code, _ = run_in_a_process(tmp_path, 2, points(n_touched)[point])
    assert exit_code == -signal.SIGKILL

    visible = [path for path in (tmp_path / "releases" / NAME / "synthetic").iterdir() if path.name[0] != "."]
    assert len(visible) >= 2
    assert all(verify_release(path, max_bytes=None).verified for path in visible)

    assert project.run(project.definitions()).success
    assert verify_release(tmp_path / "releases" / NAME / "synthetic" / "latest", max_bytes=None).verified
    assert not list(tmp_path.rglob(".partial-*"))
