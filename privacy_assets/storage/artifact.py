"""Artifacts, which pass results between stages through private storage: frames and a header."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import pandas as pd

from privacy_assets.display.pictures import Drawn, Picture
from privacy_assets.storage.table import Table, fingerprint_of

TABLE_KIND = "table"
WRITTEN = "written_"
"""Beginning of the names of frames in which texts are compared as they are written."""


@dataclass(frozen=True)
class Artifact:
    """Frames, pictures and a JSON header with a kind.

    Parameters
    ----------
    kind : str
        Kind of the artifact: ``"table"``, or the name of the result class that wrote it.
    header : mapping of str to JSON values
        Settings, scores and counts; no NaN, no infinity.
    frames : mapping of str to DataFrame or StoredTable
        Tables by name; columns of plain integers, floats, booleans, text or datetimes.
    made_of : mapping of str to str
        Fingerprints of the tables from which the result was made, by the name of their stage.
    pictures : mapping of str to Picture
        What the stage shows, by name; a report shows the same.
    """

    kind: str
    header: Mapping[str, Any] = field(default_factory=dict)
    frames: Mapping[str, Any] = field(default_factory=dict)
    made_of: Mapping[str, str] = field(default_factory=dict)
    pictures: Mapping[str, Picture] = field(default_factory=dict)

    @classmethod
    def of_table(cls, table: Table) -> "Artifact":
        """Wrap a plain table; its digest is the fingerprint of the table."""
        return cls(TABLE_KIND, {}, {TABLE_KIND: table})

    def with_pictures(self, drawn: Mapping[str, Drawn]) -> "Artifact":
        """Return the artifact with what was drawn of it."""
        return replace(self, pictures={name: own.picture() for name, own in drawn.items()})

    @cached_property
    def fingerprints(self) -> Mapping[str, str]:
        """Fingerprint of each frame, computed once: an artifact and its frames are not changed."""
        return {name: fingerprint_of(frame) for name, frame in self.frames.items()}

    @property
    def digest(self) -> str:
        """SHA-256 over all content, of frames and pictures over their own; for a plain table, its fingerprint."""
        if self.kind == TABLE_KIND:
            return self.fingerprints[TABLE_KIND]
        drawn = {
            name: [own.text, own.title, hashlib.sha256(own.png).hexdigest()] for name, own in self.pictures.items()
        }
        sha = hashlib.sha256(canonical_json([self.kind, self.header, self.made_of, drawn]).encode())
        for name in sorted(self.frames):
            sha.update(f"{name}\0{self.fingerprints[name]}\0".encode())
        return sha.hexdigest()


class EqualByContent:
    """A dataclass, with ``eq=False``, that equals another one if all fields do: frames as a whole, not cell by cell."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        pairs = ((getattr(self, each.name), getattr(other, each.name)) for each in fields(self) if each.compare)  # type: ignore[arg-type]
        return all(own.equals(same) if isinstance(own, pd.DataFrame) else own == same for own, same in pairs)

    __hash__ = None  # type: ignore[assignment]


def canonical_json(value: Any) -> str:
    """Write a JSON value so that equal values give equal text; NaN and infinity are refused with ValueError."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
