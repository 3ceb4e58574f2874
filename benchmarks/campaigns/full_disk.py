"""Let the disk be full at random points of releases, and examine what remains.

Usage: python -m benchmarks.campaigns.full_disk [--n 200] [--seed 0]

If this process may mount (as root), the releases are on a separate tmpfs. For each point it gets room for a random
share of the need of one attempt: of bytes in two thirds of the points, of files (inodes) in the others. The system then
reports ENOSPC, at any operation. Otherwise the process itself may not write files beyond a random size (RLIMIT_FSIZE),
and the system reports EFBIG. If neither is possible, nothing is run.

After each attempt everything visible must verify, every earlier release must be there and, because the process lives,
nothing temporary; then there is room again, and a run must succeed.
"""

import argparse
import os
import random
import resource
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.campaigns.releases import OUTCOMES, Content, Place, contents, forked, summary

ROOM = 256 * 2**20
MOST_FILES = 100_000
SHARE_BY_FILES = 1 / 3
BLOCK = 4_096


@contextmanager
def small_disk() -> Iterator[Path | None]:
    """Mount a tmpfs for a while; None if this process may not."""
    with tempfile.TemporaryDirectory() as directory:
        mounted = _mount("-t", "tmpfs", "-o", f"size={ROOM},nr_inodes={MOST_FILES}", "tmpfs", directory)
        if not mounted:
            yield None
            return
        try:
            yield Path(directory)
        finally:
            subprocess.run(["umount", directory], check=True)


def _mount(*arguments: str) -> bool:
    try:
        return subprocess.run(["mount", *arguments], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


class _FullDisk:
    """A tmpfs that has room for a part of an attempt."""

    way = "a tmpfs of their own"

    def __init__(self, disk: Path, chance: random.Random) -> None:
        self.root, self.disk, self.chance = disk, disk, chance

    def measure(self, work: Callable[[], None]) -> tuple[int, int]:
        """Return how many bytes and files an attempt adds; while it works it takes as much again at most."""
        before = os.statvfs(self.disk)
        work()
        after = os.statvfs(self.disk)
        return (before.f_bfree - after.f_bfree) * before.f_frsize, before.f_ffree - after.f_ffree

    def attempt(self, work: Callable[[], None], needed: tuple[int, int]) -> int:
        """Run work with too little room, and give it back."""
        n_bytes, n_files = needed
        now = os.statvfs(self.disk)
        if self.chance.random() < SHARE_BY_FILES:
            used = now.f_files - now.f_ffree
            # The old private files stay until the new ones are whole, so that an attempt takes more than it adds.
            self._resize(f"nr_inodes={used + self.chance.randint(1, n_files + 4)}")
        else:
            used = (now.f_blocks - now.f_bfree) * now.f_frsize
            self._resize(f"size={used + BLOCK * self.chance.randint(1, max(n_bytes // BLOCK + 4, 1))}")
        try:
            return forked(work)
        finally:
            self._resize(f"size={ROOM},nr_inodes={MOST_FILES}")

    def _resize(self, options: str) -> None:
        if not _mount("-o", f"remount,{options}", str(self.disk)):
            raise SystemExit(f"The tmpfs could not be remounted with {options}.")


class _ShortFiles:
    """A process that may not write files beyond a random size."""

    way = "files of bounded size"

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root, self.chance = root, chance

    def measure(self, work: Callable[[], None]) -> tuple[int, int]:
        """Return the size of the largest file of an attempt."""
        work()
        return max(path.stat().st_size for path in self.root.rglob("*") if path.is_file()), 0

    def attempt(self, work: Callable[[], None], needed: tuple[int, int]) -> int:
        """Run work within a limit."""
        largest = self.chance.randint(0, needed[0])

        def limited() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
            work()

        return forked(limited)


def _try_one(disk: "_FullDisk | _ShortFiles", place: Place, content: Content, needed: tuple[int, int]) -> Counter:
    counts: Counter = Counter()
    status = disk.attempt(lambda: place.write(content), needed)
    counts["failed"] += status == 1
    counts["ended by a signal"] += status < 0
    counts += place.problems(after_success=True)
    place.remember()
    counts["failed next runs"] += forked(lambda: place.write(content)) != 0
    counts += place.problems(after_success=True)
    place.remember()
    place.prune()
    return counts


def campaign(n: int = 200, seed: int = 0, *, by_size: bool = False) -> Counter:
    """Fill the disk at ``n`` points; return how many attempts failed, and how many problems of each kind there were.

    Parameters
    ----------
    n : int
        Number of points.
    seed : int
        Draws tables and points.
    by_size : bool
        Whether to bound the size of files even where a tmpfs can be mounted.
    """
    chance, counts = random.Random(seed), Counter()
    with small_disk() as mounted, tempfile.TemporaryDirectory() as directory:
        if mounted is not None and not by_size:
            disk: _FullDisk | _ShortFiles = _FullDisk(mounted, chance)
        elif hasattr(resource, "RLIMIT_FSIZE"):
            disk = _ShortFiles(Path(directory), chance)
        else:
            raise SystemExit("Neither can a tmpfs be mounted, nor the size of files be bounded. Nothing was run.")
        counts[disk.way] = n
        targets = []
        for number, content in enumerate(contents(seed, chance, n)):
            place = Place(disk.root / str(number))
            place.write(content)
            needed = disk.measure(lambda place=place, content=content: place.write(content))
            place.remember()
            targets.append((place, content, needed))
        for number in range(n):
            counts += _try_one(disk, *targets[number % len(targets)])
    return counts


def main() -> None:
    """Run the campaign and print its summary; exit with 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--by-size", action="store_true", help="bound the size of files instead of the disk")
    arguments = parser.parse_args()
    counts = campaign(arguments.n, arguments.seed, by_size=arguments.by_size)
    way = next(way for way in (_FullDisk.way, _ShortFiles.way) if way in counts)
    print(summary(arguments.n, f" (on {way}; {counts['failed']} attempts failed)", counts))
    raise SystemExit(any(counts[name] for name in (*OUTCOMES, "ended by a signal")))


if __name__ == "__main__":
    main()
