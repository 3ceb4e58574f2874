"""Run the release of a project in this process, and kill it at the n-th time that it touches the disk.

Usage: python -m tests.orchestration.killed_run ROOT SEED N; N = 0 kills nothing and prints how often it was touched.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.orchestration.project import Project


def main() -> None:
    root, seed, killed_at = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
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
    assert project.run(project.definitions(formats=("csv",))).success
    print("touched", touched)


if __name__ == "__main__":
    main()
