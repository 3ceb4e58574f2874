"""One fit of a private synthesizer, as the ledger of a privacy budget and the witness of the ledger record it."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

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
