"""Kill the process at random points of releases, and examine what remains.

Usage: python -m benchmarks.campaigns.kill [--n 1000] [--seed 0] [--related]

With --related only people with their rows, and rows of rows, are stored and released, which are one of the tables
otherwise.

Three ways, drawn at random:

- 75 %: before the k-th operation on files (open, write, fsync, rename, mkdir, unlink, chmod, symlink, ...) of storing a
  private table and releasing it. A kill at a write leaves half of the bytes. The k of each table and side go through
  all its operations in random order, so that enough points reach every one.
- 20 %: after a random time of the same work.
- 5 %: before the k-th operation of a whole Dagster run that makes and releases both sides.

After each kill everything visible must verify and every earlier release must be there; then a run that is not killed
must succeed and leave no temporary files behind.
"""

import argparse
import io
import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.campaigns.releases import OUTCOMES, SIDES, Content, Place, contents, forked, summary
from benchmarks.campaigns.releases import related as related_tables
from tests.related import clinic, with_lines

COUNTED = (
    "open",
    "fsync",
    "rename",
    "replace",
    "mkdir",
    "unlink",
    "remove",
    "rmdir",
    "chmod",
    "fchmod",
    "symlink",
    "link",
)
SHARE_BY_TIME, SHARE_OF_RUNS = 0.20, 0.05
NEVER = 0


class Operations:
    """Count the operations on files of this process, and kill it before the k-th."""

    def __init__(self, killed_at: int = NEVER) -> None:
        self.killed_at = killed_at
        self.count = 0
        for name in COUNTED:
            setattr(os, name, self._counted(getattr(os, name)))
        os.fdopen = self._fdopen  # type: ignore[assignment]
        self.opened = io.open

    def touch(self) -> None:
        """Count one operation."""
        self.count += 1
        if self.count == self.killed_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.touch()
            return function(*arguments, **options)

        return counted

    def _fdopen(self, descriptor: int, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if mode != "wb":
            return self.opened(descriptor, mode, *arguments, **options)
        return io.BufferedWriter(_TornFile(self, descriptor))


class _TornFile(io.FileIO):
    """A file whose last write is half on the disk when the process is killed during it."""

    def __init__(self, operations: Operations, descriptor: int) -> None:
        super().__init__(descriptor, "wb")
        self.operations = operations

    def write(self, data: Any) -> int:
        if self.operations.count + 1 == self.operations.killed_at:
            super().write(memoryview(data)[: len(data) // 2])
        self.operations.touch()
        return super().write(data) or 0


def count_operations(work: Callable[[], None]) -> tuple[int, float]:
    """Run work in a fork; return how many operations on files it has, and how many seconds it takes."""
    readable, writable = os.pipe()

    def counting() -> None:
        operations = Operations()
        start = time.perf_counter()
        work()
        os.write(writable, f"{operations.count} {time.perf_counter() - start}".encode())

    status = forked(counting)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        n_operations, seconds = pipe.read().split() or (b"0", b"0")
    if status != 0:
        raise SystemExit("A release that nothing interrupts failed; set CAMPAIGN_DEBUG=1 to see why.")
    return int(n_operations), float(seconds)


class _Target:
    """A table and a side, and the points of it that have not been tried yet."""

    def __init__(self, content: Content, root: Path, chance: random.Random) -> None:
        self.content, self.place, self.chance = content, Place(root), chance
        self.place.write(content)
        self.place.remember()
        self.n_operations, self.seconds = count_operations(lambda: self.place.write(content))
        self.place.remember()
        self.left: list[int] = []

    def try_one(self) -> Counter:
        """Kill one attempt, look, and let the next one succeed."""
        counts: Counter = Counter()
        if self.chance.random() < SHARE_BY_TIME / (1 - SHARE_OF_RUNS):
            status = forked(lambda: self.place.write(self.content), self.chance.uniform(0, self.seconds))
            counts["by time"] += 1
        else:
            self.left = self.left or self.chance.sample(range(1, self.n_operations + 1), self.n_operations)
            k = self.left.pop()
            status = forked(lambda: (Operations(k), self.place.write(self.content))[1])
            counts["by operation"] += 1
        counts["killed"] += status == -signal.SIGKILL
        counts += self.place.problems(after_success=False)
        self.place.remember()
        counts["failed next runs"] += forked(lambda: self.place.write(self.content)) != 0
        counts += self.place.problems(after_success=True)
        self.place.remember()
        self.place.prune()
        return counts


class _Runs:
    """Whole Dagster runs in copies of a project with an earlier release of both sides."""

    def __init__(self, root: Path, chance: random.Random, *, related: bool) -> None:
        # Dagster comes with it, which the other points need not load.
        from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
        from privacy_assets.release.policy import Limit, Policy, RequiredSettings
        from tests.orchestration.project import ADMITS, Project
        from tests.orchestration.related_project import RelatedProject

        self.root, self.chance, self.project, self.sides = root, chance, Project, SIDES
        limits = (
            Limit("privacy_risk_score", ADMITS, "at_most"),
            Limit("leakage_detected", 0),
            Limit("smallest_class", 3),
        )
        self.settings = {
            "policy": Policy(limits, RequiredSettings(control_records=40, detectable_share=None)),
            "anonymized": AnonymizationSettings(k=3),
            "formats": ("csv",),
        }
        if related:
            self.project, self.sides, self.settings = RelatedProject, SIDES[:1], {}
        (root / "first").mkdir(parents=True)
        for seed in (1, 2):
            self.n_operations, _ = count_operations(lambda seed=seed: self.run(root / "first", seed))

    def run(self, root: Path, seed: int) -> None:
        """Make and release both sides in one run."""
        project, settings = self.project(root), self.settings
        if len(self.sides) == 1:
            # Other people each time: more than two splits of the same ones would be refused.
            project.write(with_lines(clinic(300 + seed, seed), seed))
            settings = {"children": project.two_levels()}
        else:
            project.write_tables(seed)
        if not project.run(project.definitions(**settings)).success:
            raise RuntimeError("the run failed")

    def try_one(self, number: int) -> Counter:
        """Kill one run, look, and let the next one succeed."""
        root = self.root / f"run-{number}"
        shutil.copytree(self.root / "first", root, symlinks=True)
        places = [_side(root, side) for side in self.sides]
        for place in places:
            place.remember()
        k = self.chance.randint(1, self.n_operations)
        counts = Counter({"whole runs": 1})
        counts["killed"] += forked(lambda: (Operations(k), self.run(root, 3))[1]) == -signal.SIGKILL
        for place in places:
            counts += place.problems(after_success=False)
            place.remember()
        counts["failed next runs"] += forked(lambda: self.run(root, 4)) != 0
        for place in places:
            counts += place.problems(after_success=True)
        shutil.rmtree(root)
        return counts


class _Side(Place):
    """A side of a project, where the tests keep it."""

    side = "synthetic"

    @property
    def releases(self) -> Path:
        return self.root / "releases" / "people" / self.side

    @property
    def stored(self) -> Path:
        return self.root / "private" / "people" / f"{self.side}.artifact"


def _side(root: Path, side: str) -> _Side:
    place = _Side(root)
    place.side = side
    return place


def campaign(n: int = 1_000, seed: int = 0, *, with_runs: bool = True, related: bool = False) -> Counter:
    """Kill at ``n`` points; return how many there were of each kind, and how many problems of each kind.

    Parameters
    ----------
    n : int
        Number of points.
    seed : int
        Draws tables and points.
    with_runs : bool
        Whether 5 % of the points are whole Dagster runs.
    related : bool
        Whether only related tables are stored and released.
    """
    chance, counts = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory() as directory:
        chosen = [Content.of("synthetic", related_tables(seed))] if related else contents(seed, chance, n)
        targets = [_Target(own, Path(directory) / str(number), chance) for number, own in enumerate(chosen)]
        n_runs = round(n * SHARE_OF_RUNS) if with_runs else 0
        for number in range(n - n_runs):
            counts += targets[number % len(targets)].try_one()
        if n_runs:
            runs = _Runs(Path(directory) / "runs", chance, related=related)
            for number in range(n_runs):
                counts += runs.try_one(number)
    return counts


def main() -> None:
    """Run the campaign and print its summary; exit with 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--related", action="store_true")
    arguments = parser.parse_args()
    counts = campaign(arguments.n, arguments.seed, related=arguments.related)
    ways = ", ".join(f"{counts[way]} {way}" for way in ("by operation", "by time", "whole runs"))
    print(summary(arguments.n, f" ({ways}; {counts['killed']} killed before they ended)", counts))
    raise SystemExit(any(counts[name] for name in OUTCOMES))


if __name__ == "__main__":
    main()
