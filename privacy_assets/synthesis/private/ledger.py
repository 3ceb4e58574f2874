"""The ledger of a privacy budget: an append-only chain of what was spent on a population.

An entry is on the disk before any record is touched, and is never taken back: a fit that fails afterwards has spent its
budget, because noise may have left. Each entry contains the digest of the one before it, so that a changed or removed
entry breaks the chain. A chain that ends early is found by those who know a later digest (`expected`).

Costs add up in rho (zero-concentrated differential privacy) over all fits, also of other releases and of partitions.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from typing import Any, Final

from privacy_assets.errors import PrivacyBudgetError
from privacy_assets.setting_checks import is_integer, is_number, require
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.durable_files import PRIVATE_FILE_MODE, locked, make_private_directory, sync_directory
from privacy_assets.synthesis.private.accounting import check_delta, epsilon_of

DIRECTORY: Final = "privacy_budget"
SUFFIX: Final = ".jsonl"
POPULATION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
UNDONE: Final = "No record was read, and nothing was spent."


@dataclass(frozen=True)
class Spending:
    """One fit, from the moment before it touched a record.

    Attributes
    ----------
    number : int
        Place in the ledger, from 1.
    at : str
        Time in UTC.
    population : str
        The people on whom it was spent.
    release, partition, run_id : str or None
        What it was spent for.
    made_of : str
        Fingerprint of the records.
    epsilon, delta : float
        Its own guarantee.
    rho : float
        Its cost in zCDP, by OpenDP's accounting.
    previous, digest : str
        Digest of the entry before it, and its own.
    """

    number: int
    at: str
    population: str
    release: str
    partition: str | None
    run_id: str
    made_of: str
    epsilon: float
    delta: float
    rho: float
    previous: str
    digest: str = ""

    @property
    def own_digest(self) -> str:
        """The digest of everything else in the entry."""
        body = {name: value for name, value in asdict(self).items() if name != "digest"}
        return hashlib.sha256(canonical_json(body).encode()).hexdigest()


@dataclass(frozen=True)
class PrivacyLedger:
    """The ledger of one population, in a private directory.

    Parameters
    ----------
    directory : Path
        Private directory of all ledgers.
    population : str
        Name of the population: letters, digits, `_` and `-`.
    """

    directory: Path
    population: str

    def __post_init__(self) -> None:
        is_right = isinstance(self.population, str) and POPULATION.fullmatch(self.population) is not None
        require(is_right, "population", self.population, "letters, digits, '_' and '-', at most 64", UNDONE)

    @property
    def path(self) -> Path:
        """The file."""
        return self.directory / f"{self.population}{SUFFIX}"

    def entries(self) -> tuple[Spending, ...]:
        """Read the chain and check it; empty if there is none yet.

        Raises
        ------
        PrivacyBudgetError
            If an entry was changed, removed or added by hand.
        """
        return self._parsed(self._content())[0]

    def rho(self) -> float:
        """Return what was spent on the population."""
        return fsum(entry.rho for entry in self.entries())

    def epsilon(self, delta: float) -> float:
        """Return what was spent on the population, as epsilon at `delta`."""
        return epsilon_of(self.rho(), delta)

    def require_known(self, expected: Collection[str]) -> tuple[Spending, ...]:
        """Return the chain, which must contain the digests of all fits that are known from elsewhere.

        Raises
        ------
        PrivacyBudgetError
            If the chain was changed, or lacks a known fit.
        """
        entries = self.entries()
        n_missing = len(set(expected) - {entry.digest for entry in entries})
        if n_missing:
            raise PrivacyBudgetError(
                f"The ledger of the privacy budget of {self.population!r} lacks {n_missing} fits that are known to "
                f"have been made: {str(self.path)!r} was deleted, cut, or replaced by an older copy. What was spent "
                f"stays spent. Restore the newest copy. {UNDONE}"
            )
        return entries

    def reserve(
        self,
        *,
        rho: float,
        epsilon: float,
        delta: float,
        at_most: float,
        total_delta: float,
        release: str,
        run_id: str,
        made_of: str,
        partition: str | None = None,
        expected: Collection[str] = (),
    ) -> Spending:
        """Record a fit before it touches a record; waits while another process does so.

        Parameters
        ----------
        rho, epsilon, delta : float
            What the fit costs, and its own guarantee.
        at_most, total_delta : float
            Largest epsilon of all fits together, at this delta.
        release, run_id, made_of, partition : str
            What it is spent for.
        expected : collection of str
            Digests of all fits that are known from elsewhere.

        Raises
        ------
        PrivacyBudgetError
            If less is left, or the ledger cannot be trusted.
        """
        require(is_number(rho, 0) and rho > 0, "rho", rho, "a number above 0", UNDONE)
        require(is_number(at_most, 0), "at_most", at_most, "a number, 0 or more", UNDONE)
        check_delta(delta)
        check_delta(total_delta)
        with self._alone():
            before = self.require_known(expected)
            spent = [entry.rho for entry in before]
            after = epsilon_of(fsum([*spent, rho]), total_delta)
            if after > at_most:
                raise PrivacyBudgetError(
                    f"The privacy budget of {self.population!r} is used up: {len(before)} fits have spent epsilon "
                    f"{epsilon_of(fsum(spent), total_delta):.3g} at delta {total_delta:g}, and with this one it would "
                    f"be {after:.3g}; at most {at_most:g} is allowed. {UNDONE}"
                )
            entry = Spending(
                number=len(before) + 1,
                at=datetime.now(UTC).isoformat(timespec="seconds"),
                population=self.population,
                release=release,
                partition=partition,
                run_id=run_id,
                made_of=made_of,
                epsilon=float(epsilon),
                delta=float(delta),
                rho=float(rho),
                previous=before[-1].digest if before else "",
            )
            entry = Spending(**{**asdict(entry), "digest": entry.own_digest})
            self._append(entry)
        return entry

    @contextmanager
    def _alone(self) -> Iterator[None]:
        make_private_directory(self.directory)
        with locked(self.directory):
            yield

    def _append(self, entry: Spending) -> None:
        """Write an entry and return after it has reached the disk; only under the lock.

        A last line without an end is what a process left that died while writing, before it touched a record.
        """
        content = self._content()
        complete = content[: content.rfind(b"\n") + 1]
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
        with os.fdopen(descriptor, "r+b") as file:
            os.fchmod(descriptor, PRIVATE_FILE_MODE)
            file.seek(len(complete))
            file.truncate()
            file.write(canonical_json(asdict(entry)).encode() + b"\n")
            file.flush()
            os.fsync(descriptor)
        sync_directory(self.directory)

    def _content(self) -> bytes:
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return b""
        except OSError:
            descriptor = -1
        if descriptor < 0:
            raise self._damaged("it cannot be read")
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    def _parsed(self, content: bytes) -> tuple[tuple[Spending, ...], bytes]:
        """Return the entries, and the incomplete line after them."""
        *lines, rest = content.split(b"\n")
        entries: list[Spending] = []
        for line in lines:
            entry = _spending(line)
            previous = entries[-1].digest if entries else ""
            if (
                entry is None
                or entry.previous != previous
                or entry.digest != entry.own_digest
                or entry.number != len(entries) + 1
                or entry.population != self.population
            ):
                raise self._damaged(f"entry {len(entries) + 1} was changed, or one before it was removed")
            entries.append(entry)
        return tuple(entries), rest

    def _damaged(self, how: str) -> PrivacyBudgetError:
        return PrivacyBudgetError(
            f"The ledger of the privacy budget of {self.population!r} cannot be trusted: {how}. Restore "
            f"{str(self.path)!r} from its newest copy. {UNDONE}"
        )


def populations(directory: Path) -> tuple[str, ...]:
    """Return the populations that have a ledger in a directory."""
    return tuple(sorted(path.stem for path in directory.glob(f"*{SUFFIX}") if POPULATION.fullmatch(path.stem)))


def _spending(line: bytes) -> Spending | None:
    try:
        found: Any = json.loads(line)
        entry = Spending(**found)
    except (ValueError, TypeError, RecursionError):
        return None
    texts = (entry.at, entry.population, entry.release, entry.run_id, entry.made_of, entry.previous, entry.digest)
    numbers = (entry.epsilon, entry.delta, entry.rho)
    are_texts = all(isinstance(text, str) for text in texts) and isinstance(entry.partition, str | None)
    are_right = are_texts and is_integer(entry.number, 1) and all(is_number(number, 0) for number in numbers)
    return entry if are_right else None
