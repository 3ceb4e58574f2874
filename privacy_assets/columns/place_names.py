"""Words in column names, and those for places, whose numbers are codes and no measures."""

from __future__ import annotations

import re
from typing import Final

PLACES: Final = frozenset(
    [
        *("canton", "city", "commune", "country", "county", "district", "kreis", "municipality", "neighborhood", "ort"),
        *("place", "plz", "postal", "postcode", "province", "region", "site", "state", "suburb", "town", "village"),
        *("wohnort", "zip", "zipcode"),
    ]
)
"""Words in names of columns with places, whose numbers are codes."""


def words_of(name: str) -> list[str]:
    """Return the words of a column name; the same for ``patientId``, ``PATIENT_ID`` and ``patient id``."""
    return [word.casefold() for word in re.findall(r"[A-ZÄÖÜ]+(?![a-zäöüß])|[A-ZÄÖÜ]?[^\WA-Z\d_]+|\d+", name)]


def names_a_place(name: str) -> bool:
    """Return whether a name has a word for places, such as in ``zip_code``."""
    return not PLACES.isdisjoint(words_of(name))
