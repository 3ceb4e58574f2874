"""The witness of a ledger: its last entry, in a file outside its directory.

A ledger that ends early is a valid chain, so the loss is visible only to those who know a later entry. The witness
knows the last entry. It is written before the ledger, and again after it: in between, the entry is reserved. If the
process ends there, the fit counts as spent although the ledger lacks it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from privacy_assets.setting_checks import is_number
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.synthesis.private.spending import Spending, parse_spending

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
