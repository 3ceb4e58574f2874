"""The ledger of a privacy budget: an append-only chain of the spending on a population.

An entry is on the disk before any record is touched, and is never taken back: a fit that fails afterwards has spent its
budget, because noise may have left. Each entry contains the digest of the one before it, so that a changed or removed
entry breaks the chain. A chain that ends early is found by the witness in another directory, which knows the last
entry, and by anyone else who knows a later digest (`expected`).

Costs are summed in rho (zero-concentrated differential privacy) over all fits, including those of other releases, and
of partitions unless these are known to have different people.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import fsum
from pathlib import Path
from typing import Final

from privacy_assets.errors import PrivacyBudgetError
from privacy_assets.setting_checks import is_number, require
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.durable_files import (
    PRIVATE_FILE_MODE,
    locked,
    make_private_directory,
    replace_file,
    sync_directory,
)
from privacy_assets.synthesis.private.accounting import check_delta, epsilon_of
from privacy_assets.synthesis.private.partitions import Cost, PeopleOfFits
from privacy_assets.synthesis.private.spending import WITNESSES, Spending, Witness, parse_spending, parse_witness

DIRECTORY: Final = "privacy_budget"
SUFFIX: Final = ".jsonl"
WITNESS_SUFFIX: Final = ".json"
POPULATION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
UNDONE: Final = "No record was read, and nothing was spent."


@dataclass(frozen=True)
class PrivacyLedger:
    """The ledger of one population (letters, digits, `_` and `-`), in the private directory of all ledgers."""

    directory: Path
    population: str

    def __post_init__(self) -> None:
        is_right = isinstance(self.population, str) and POPULATION.fullmatch(self.population) is not None
        require(is_right, "population", self.population, "letters, digits, '_' and '-', at most 64", UNDONE)

    @property
    def path(self) -> Path:
        """The file."""
        return self.directory / f"{self.population}{SUFFIX}"

    @property
    def witness_path(self) -> Path:
        """The file that knows the last entry, next to the directory of the ledgers."""
        return self.directory.parent / WITNESSES / f"{self.population}{WITNESS_SUFFIX}"

    def entries(self) -> tuple[Spending, ...]:
        """Read the chain, and refuse one that was changed by hand; empty if it does not exist yet."""
        return self._parsed(self._content(self.path))[0]

    @property
    def people(self) -> PeopleOfFits:
        """The people of its fits."""
        return PeopleOfFits(self.directory, self.population)

    def rho(self) -> float:
        """Return the most spent on one person: all, or the largest partition if their people are known to differ."""
        return self.people.spent_rho(self.entries())

    def epsilon(self, delta: float) -> float:
        """Return the spending on the population, as epsilon at `delta`."""
        return epsilon_of(self.rho(), delta)

    def tables(self) -> set[str]:
        """Return the fingerprints of all tables that these people's fits were made from, and of their source tables."""
        witness = self._witness()
        return {entry.made_of for entry in self.entries()} | set(witness.tables if witness else ())

    def require_known(self, expected: Collection[str]) -> tuple[Spending, ...]:
        """Return the chain, which must be as long as its witness records and contain all fits known from elsewhere.

        An entry that only the witness has, because a process ended while it was reserved, counts as spent.
        """
        if not self.directory.is_dir():
            return self._known(expected)
        with locked(self.directory):
            return self._known(expected)

    def require_published(self, digest: str | None, n_fits: int) -> None:
        """Refuse a published fit, or if its digest is unknown a number of fits, that ledger and witness do not know."""
        entries, witness = self.entries(), self._witness()
        known = entries if witness is None else (*entries, witness.entry)
        n_known = max((entry.number for entry in known), default=0)
        if digest is not None:
            self._require_all(known, {digest})
        elif n_known < n_fits:
            raise PrivacyBudgetError(
                f"The ledger of the privacy budget of {self.population!r} has {n_known} fits, but a published release "
                f"states {n_fits}: {str(self.path)!r} was deleted, cut, or replaced by an older copy. The spent budget "
                f"stays spent. Restore the newest copy. {UNDONE}"
            )

    def _known(self, expected: Collection[str]) -> tuple[Spending, ...]:
        """Check the chain against its witness and against the fits known from elsewhere."""
        entries, witness = self.entries(), self._witness()
        if witness is None:
            self._require_all(entries, expected)
            if entries:
                raise PrivacyBudgetError(
                    f"The ledger of the privacy budget of {self.population!r} has {len(entries)} fits, and its witness "
                    f"{str(self.witness_path)!r} is missing. Restore the newest copy of both. {UNDONE}"
                )
            return entries
        last = witness.entry
        if not witness.is_recorded and last.number == len(entries) + 1 and _follows(last, entries):
            entries = (*entries, last)
        if len(entries) < last.number:
            raise PrivacyBudgetError(
                f"The ledger of the privacy budget of {self.population!r} has {len(entries)} fits, and its witness "
                f"knows of {last.number}: {str(self.path)!r} was deleted, cut, or replaced by an older copy. The spent "
                f"budget stays spent. Restore the newest copy. {UNDONE}"
            )
        if entries[last.number - 1] != last:
            raise self._damaged("its witness knows another entry")
        self._require_all(entries, expected)
        if len(entries) > last.number:
            raise PrivacyBudgetError(
                f"The witness of the privacy budget of {self.population!r} knows of {last.number} fits, and the ledger "
                f"has {len(entries)}: {str(self.witness_path)!r} was replaced by an older copy. Restore the newest "
                f"copy. {UNDONE}"
            )
        return entries

    def _require_all(self, entries: tuple[Spending, ...], expected: Collection[str]) -> None:
        n_missing = len(set(expected) - {entry.digest for entry in entries})
        if n_missing:
            raise PrivacyBudgetError(
                f"The ledger of the privacy budget of {self.population!r} lacks {n_missing} fits that are known to "
                f"have been made: {str(self.path)!r} was deleted, cut, or replaced by an older copy. The spent budget "
                f"stays spent. Restore the newest copy. {UNDONE}"
            )

    def require_own_people(self, tables: Collection[str]) -> None:
        """Refuse tables charged to another population, whose budget has been spent on their people."""
        for population in populations(self.directory):
            if population != self.population and replace(self, population=population).tables() & set(tables):
                raise charged_to_another(self.population, population)

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
        sources: Collection[str] = (),
        people: str = "",
        expected: Collection[str] = (),
    ) -> Spending:
        """Record a fit before it touches a record; waits while another process does so.

        ``at_most`` is the largest epsilon of all fits together, at ``total_delta``; ``sources`` are the fingerprints of
        the tables from which the records came, ``people`` is the digest of `PeopleOfFits.keep`, if partitions are
        declared to be disjoint, and ``expected`` are the digests of all fits that are known from elsewhere. Refused if
        less budget remains, the ledger cannot be trusted, or the same records were charged to another population.
        """
        require(is_number(rho, 0) and rho > 0, "rho", rho, "a number above 0", UNDONE)
        require(is_number(at_most, 0), "at_most", at_most, "a number, 0 or more", UNDONE)
        check_delta(delta)
        check_delta(total_delta)
        with self._alone():
            tables = {made_of, *sources}
            self.require_own_people(tables)
            before = self._known(expected)
            spent = self.people.spent_rho(before)
            after = epsilon_of(self.people.spent_rho([*before, Cost(rho, partition, people)]), total_delta)
            if after > at_most:
                raise PrivacyBudgetError(
                    f"The privacy budget of {self.population!r} is used up: {len(before)} fits have spent epsilon "
                    f"{epsilon_of(spent, total_delta):.3g} at delta {total_delta:g}, and with this one it would "
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
                people=people,
            )
            entry = Spending(**{**asdict(entry), "digest": entry.own_digest})
            witness = self._witness()
            tables |= set(witness.tables if witness else ())
            if len(self.entries()) < len(before):
                self._append(before[-1])  # The process that reserved it ended before it could write it.
            self._write_witness(entry, before, tables, is_recorded=False)
            self._append(entry)
            self._write_witness(entry, before, tables, is_recorded=True)
        return entry

    @contextmanager
    def _alone(self) -> Iterator[None]:
        make_private_directory(self.directory)
        with locked(self.directory):
            yield

    def _append(self, entry: Spending) -> None:
        """Write an entry and return after it has reached the disk; only under the lock.

        A last line without an end was left by a process that died while writing, before it touched a record.
        """
        content = self._content(self.path)
        complete = content[: content.rfind(b"\n") + 1]
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
        with os.fdopen(descriptor, "r+b") as file:
            os.fchmod(descriptor, PRIVATE_FILE_MODE)
            file.seek(len(complete))
            file.truncate()
            file.write(canonical_json(entry.to_json()).encode() + b"\n")
            file.flush()
            os.fsync(descriptor)
        sync_directory(self.directory)

    def _write_witness(
        self, entry: Spending, before: Collection[Spending], tables: Collection[str], *, is_recorded: bool
    ) -> None:
        """Replace the witness, and return after it has reached the disk; only under the lock."""
        rho = fsum([*(each.rho for each in before), entry.rho])
        known = sorted({*tables, entry.made_of, *(each.made_of for each in before)})
        make_private_directory(self.witness_path.parent)
        replace_file(self.witness_path, Witness(entry, rho, tuple(known), is_recorded).to_bytes())

    def _witness(self) -> Witness | None:
        content = self._content(self.witness_path)
        if not content and not self.witness_path.exists():
            return None
        witness = parse_witness(content)
        if witness is None or witness.entry.population != self.population:
            raise self._damaged("it was changed", self.witness_path)
        return witness

    def _content(self, path: Path) -> bytes:
        try:
            with open(path, "rb", opener=_open_no_link) as file:
                return file.read()
        except FileNotFoundError:
            return b""
        except OSError:
            pass
        raise self._damaged("it cannot be read", path)

    def _parsed(self, content: bytes) -> tuple[tuple[Spending, ...], bytes]:
        """Return the entries, and the incomplete line after them."""
        *lines, rest = content.split(b"\n")
        entries: list[Spending] = []
        for line in lines:
            entry = _entry(line)
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

    def _damaged(self, how: str, path: Path | None = None) -> PrivacyBudgetError:
        path = path or self.path
        what = "ledger" if path == self.path else "witness"
        return PrivacyBudgetError(
            f"The {what} of the privacy budget of {self.population!r} cannot be trusted: {how}. Restore "
            f"{str(path)!r} from its newest copy. {UNDONE}"
        )


def populations(directory: Path) -> tuple[str, ...]:
    """Return the populations that have a ledger in a directory, or a witness next to it."""
    found = [*directory.glob(f"*{SUFFIX}"), *(directory.parent / WITNESSES).glob(f"*{WITNESS_SUFFIX}")]
    return tuple(sorted({path.stem for path in found if POPULATION.fullmatch(path.stem)}))


def charged_to_another(population: str, other: str) -> PrivacyBudgetError:
    """Return the error of a fit on whose records the budget of another population was spent."""
    return PrivacyBudgetError(
        f"These records were charged to the privacy budget of {other!r}, and cannot be charged to that of "
        f"{population!r} as well: the same people have one budget, under one name. Set `privacy_budget.population` to "
        f"{other!r}. {UNDONE}"
    )


def _follows(entry: Spending, entries: Sequence[Spending]) -> bool:
    return entry.previous == (entries[-1].digest if entries else "")


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _entry(line: bytes) -> Spending | None:
    try:
        return parse_spending(json.loads(line))
    except (ValueError, RecursionError):
        return None
