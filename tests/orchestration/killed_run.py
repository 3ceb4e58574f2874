"""Run the release of a project in this process, and kill it at the n-th time that it touches the disk."""

import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.orchestration import faster_runs
from tests.orchestration.project import Project


def run(root: Path, seed: int, killed_at: int, says: Connection) -> None:
    """Send how often the disk was touched at the end; 0 as the time to be killed kills nothing."""
    touched = 0

    def counted(function: Any) -> Any:
        def touching(*arguments: Any, **options: Any) -> Any:
            nonlocal touched
            touched += 1
            if touched == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return touching

    # Before each of these calls, what lies on the disk is another intermediate state.
    os.fsync = counted(os.fsync)
    os.open = counted(os.open)
    for name in ("rename", "replace", "symlink_to", "chmod", "mkdir"):
        setattr(Path, name, counted(getattr(Path, name)))
    project = Project(root)
    project.write_tables(seed)
    with faster_runs.kept_engines(), faster_runs.no_log_followers(), faster_runs.blank_pictures():
        assert project.run(project.definitions(formats=("csv",))).success
    says.send(touched)
