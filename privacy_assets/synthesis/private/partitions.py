"""Partitions with different people: their costs compose by the maximum instead of the sum [1]_.

A person who is in only one partition is touched only by the fits of that partition. This is decided on keyed hashes of
the people of each fit, which are stored when the fit is charged. So people who are moved to another partition later are
found, whatever happened to the tables. Partitions whose hashes are missing, were changed or cannot be compared count as
not disjoint, and then all fits are summed.

References
----------
.. [1] F. McSherry (2009), "Privacy integrated queries", doi:10.1145/1559845.1559850, theorem 4.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from privacy_assets.storage.durable_files import kept_key, locked, make_private_directory, sync_directory, write_file

PEOPLE_DIRECTORY: Final = "people"
MARK_BYTES: Final = 32
HASH_BYTES: Final = 8


class Cost(NamedTuple):
    """The cost of a fit, in rho, its partition, and the digest of its people; empty if they are not known."""

    rho: float
    partition: str | None
    people: str


class Charged(Protocol):
    """A `Cost`, or an entry of a ledger."""

    @property
    def rho(self) -> float:
        """Its cost."""

    @property
    def partition(self) -> str | None:
        """Its partition."""

    @property
    def people(self) -> str:
        """Digest of its people; empty if they are not known."""


@dataclass(frozen=True)
class PeopleOfFits:
    """The people of the fits on a population, as keyed hashes in the directory of its ledger."""

    directory: Path
    population: str

    @property
    def key_path(self) -> Path:
        """The file of the key; not in the directory of the ledger, which is locked while a fit is charged."""
        return self.directory / PEOPLE_DIRECTORY / f"{self.population}.key"

    def hashes(self, persons: Iterable[Any]) -> NDArray[np.uint64]:
        """Return a keyed hash of each person, in their order; the first call makes the key.

        Two people have the same hash with a probability of 2^-64; this can only make partitions overlap.
        """
        key = kept_key(self.key_path)
        digests = [hashlib.blake2b(str(each).encode(), key=key, digest_size=HASH_BYTES).digest() for each in persons]
        return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)

    def keep_people(self, hashes: NDArray[np.uint64], column: str) -> str:
        """Store the hashes of the people of a fit, in any order, and return their digest for its entry in the ledger.

        ``column`` identifies them; values of different columns cannot be compared.
        """
        of_column = hashlib.sha256(column.encode()).digest()
        content = (self.mark() or b"") + of_column + np.unique(hashes).astype("<u8").tobytes()
        digest = hashlib.sha256(content).hexdigest()
        path = self._path(digest)
        make_private_directory(path.parent)
        with locked(path.parent):
            if self._read(digest) is None:
                path.unlink(missing_ok=True)
                write_file(path, lambda file: file.write(content))
                sync_directory(path.parent)
        return digest

    def are_apart(self, fits: Sequence[Charged]) -> bool:
        """Return whether the people of every two partitions are known to differ."""
        mark, marks, by_partition = self.mark(), set[bytes](), dict[str, list[NDArray[np.uint64]]]()
        for fit in fits:
            content = self._read(fit.people)
            if content is None or fit.partition is None or content[:MARK_BYTES] != mark:
                return False
            marks.add(content[: 2 * MARK_BYTES])
            by_partition.setdefault(fit.partition, []).append(np.frombuffer(content[2 * MARK_BYTES :], dtype="<u8"))
        if len(marks) > 1:
            return False
        people = [np.unique(np.concatenate(own)) for own in by_partition.values()]
        return not people or len(np.unique(np.concatenate(people))) == sum(map(len, people))

    def spent_rho(self, fits: Sequence[Charged]) -> float:
        """Return the most that fits have spent on a person: one partition, and all fits without a known partition.

        Fits with people and partition count as fits of a known partition.
        """
        of_partitions = [fit for fit in fits if fit.people and fit.partition is not None]
        if not of_partitions or not self.are_apart(of_partitions):
            return fsum(fit.rho for fit in fits)
        names = {fit.partition for fit in of_partitions}
        largest = max(fsum(fit.rho for fit in of_partitions if fit.partition == name) for name in names)
        return fsum([largest, *(fit.rho for fit in fits if not fit.people or fit.partition is None)])

    def mark(self) -> bytes | None:
        """Return a value that shows whether hashes were made with the same key, without the key; None without a key."""
        with suppress(OSError):
            return hashlib.sha256(b"people of fits" + self.key_path.read_bytes()).digest()
        return None

    def _path(self, digest: str) -> Path:
        return self.directory / PEOPLE_DIRECTORY / digest

    def _read(self, digest: str) -> bytes | None:
        """Return the people of a fit; None if they are missing or were changed."""
        with suppress(OSError):
            content = self._path(digest).read_bytes()
            return content if hashlib.sha256(content).hexdigest() == digest else None
        return None
