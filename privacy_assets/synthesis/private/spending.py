"""Fits of a private synthesizer, as the ledger of a privacy budget and its witness record them.

A ledger that ends early is a valid chain, so the loss is visible only to those who know a later entry. The witness, a
file outside its directory, knows the last entry. It is written before the ledger, and again after it: in between, the
entry is reserved. If the process ends there, the fit counts as spent although the ledger lacks it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from privacy_assets.setting_checks import is_integer, is_number
from privacy_assets.storage.artifact import canonical_json


@dataclass(frozen=True)
class Spending:
    """One fit, from the moment before it touched a record.

    ``number`` is its position in the ledger, from 1, ``at`` the time in UTC; ``previous`` and ``digest`` are the digest
    of the previous entry, and its own. ``made_of`` is the fingerprint of the records. ``epsilon`` and ``delta`` are its
    own guarantee, ``rho`` its cost in zCDP, by OpenDP's accounting. ``people`` is the digest of its people, if
    partitions were declared to be disjoint; else empty.
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
    people: str
    digest: str = ""

    @property
    def own_digest(self) -> str:
        """The digest of everything else in the entry."""
        body = {name: value for name, value in self.to_json().items() if name != "digest"}
        return hashlib.sha256(canonical_json(body).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the entry as it is written."""
        return asdict(self)


def parse_spending(found: Any) -> Spending | None:
    """Return the entry of a parsed line, or None if the line is not an entry."""
    try:
        entry = Spending(**found)
    except TypeError:
        return None
    chained = (entry.made_of, entry.previous, entry.digest, entry.people)
    texts = (entry.at, entry.population, entry.release, entry.run_id, *chained)
    numbers = (entry.epsilon, entry.delta, entry.rho)
    are_texts = all(isinstance(text, str) for text in texts) and isinstance(entry.partition, str | None)
    are_right = are_texts and is_integer(entry.number, 1) and all(is_number(number, 0) for number in numbers)
    return entry if are_right else None


WITNESSES: Final = "privacy_budget_witnesses"


@dataclass(frozen=True)
class Witness:
    """The state of a ledger: its complete last entry, and the cost ``rho`` of all entries up to it.

    ``tables`` are the fingerprints of all tables of these people from which fits were made, and of the tables from
    which those came. If the entry is not recorded, a process is about to add it to the ledger, or ended before it
    could.
    """

    entry: Spending
    rho: float
    tables: tuple[str, ...]
    is_recorded: bool

    def to_bytes(self) -> bytes:
        """Return the content of the file, with its digest."""
        body = asdict(self) | {"entry": self.entry.to_json(), "tables": list(self.tables)}
        return canonical_json(body | {"digest": _digest(body)}).encode() + b"\n"


def parse_witness(content: bytes) -> Witness | None:
    """Read the content of a file; None if it was changed after it was written."""
    try:
        body: dict[str, Any] = json.loads(content)
        digest = body.pop("digest")
        entry, rho, tables, is_recorded = (body.pop(name) for name in ("entry", "rho", "tables", "is_recorded"))
        spending = parse_spending(entry)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    are_texts = isinstance(tables, list) and all(isinstance(table, str) for table in tables)
    if body or spending is None or not is_number(rho, 0) or not are_texts or not isinstance(is_recorded, bool):
        return None
    witness = Witness(spending, float(rho), tuple(tables), is_recorded)
    is_whole = spending.digest == spending.own_digest and digest == _digest(json.loads(witness.to_bytes()))
    return witness if is_whole else None


def _digest(body: dict[str, Any]) -> str:
    said = {name: value for name, value in body.items() if name != "digest"}
    return hashlib.sha256(canonical_json(said).encode()).hexdigest()
