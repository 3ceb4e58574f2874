"""The people of related tables, as keyed hashes of their numbers in the source: they are the same in other tables.

Later stages only have codes of people, and what is in the tables differs between releases of other columns or children.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.spelling import keys_of_rows
from privacy_assets.contract.related import RelatedTables
from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.storage.durable_files import make_private_directory, replace_file

DIRECTORY = "people_of_related"
LENGTH_OF_DIGEST = 64


def keep_people(storage: Storage, checked: pd.DataFrame, admitted: RelatedTables) -> None:
    """Store the keyed hashes of the people of a checked table, in its order, for the codes that they were given."""
    # A number and the text of its digits are one person.
    keys = keys_of_rows(checked[[admitted.person]]).map(str)
    hashes = np.empty(len(keys), "<u8")
    hashes[admitted.people[admitted.person].to_numpy()] = storage.private_tables.keyed_numbers(keys)
    path = _path(storage)
    make_private_directory(path.parent)
    replace_file(path, str(storage.keyed(admitted.content)).encode() + hashes.tobytes())


def hashes_of_people(storage: Storage, tables: RelatedTables) -> NDArray[np.uint64]:
    """Return the keyed hash of each person of a side of the split.

    Raises
    ------
    InvalidTableError
        If the source that was divided is not the one whose people are stored.
    """
    content, made_of = b"", str(storage.recorded("original").made_of.get("source"))
    path = _path(storage)
    if path.is_file():
        content = path.read_bytes()
    hashes: NDArray[np.uint64] = np.frombuffer(content[LENGTH_OF_DIGEST:], "<u8")
    codes = tables.people[tables.person].to_numpy()
    if content[:LENGTH_OF_DIGEST] != made_of.encode() or codes.max(initial=-1) >= len(hashes):
        raise InvalidTableError(
            "It is unknown who the people of this split are, so that other releases of the same people would not be "
            "found: `source` was admitted again since, or by an earlier version. Materialize `source`, and then all "
            "that follows. Nothing was assessed."
        )
    found: NDArray[np.uint64] = hashes[codes]
    return found


def _path(storage: Storage) -> Path:
    return storage.private_tables.private_path(DIRECTORY, storage.release.name, storage.partition_key) / "people"
