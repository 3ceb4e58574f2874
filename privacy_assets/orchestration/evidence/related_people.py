"""The people of related tables, as keyed hashes of their numbers in the source: they are the same in other tables.

Later stages only have codes of people, and what is in the tables differs between releases of other columns or children.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.one_table import AGGREGATE, UNLINKED, OneTable
from privacy_assets.columns.spelling import keys_of_rows
from privacy_assets.contract.related import RelatedTables
from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.release import AS_ONE_TABLE
from privacy_assets.release.manifest import RELEASE_NAME, DamagedManifestError, read_manifest
from privacy_assets.storage.durable_files import make_private_directory, replace_file

ANONYMIZED = "anonymized"
DIRECTORY = "people_of_related"
LENGTH_OF_DIGEST = 64


def keep_people(storage: Storage, checked: pd.DataFrame, admitted: RelatedTables) -> None:
    """Store the keyed hashes of the people of a checked table, in its order, for the codes that they were given."""
    # A number and the text of its digits are one person.
    keys = keys_of_rows(checked[[admitted.person]]).map(str)
    hashes = np.empty(len(keys), "<u8")
    hashes[admitted.people[admitted.person].to_numpy()] = storage.private_tables.keyed_numbers(keys)
    path = _path(storage, storage.release.name)
    make_private_directory(path.parent)
    replace_file(path, str(storage.keyed(admitted.content)).encode() + hashes.tobytes())


def hashes_of_people(storage: Storage, tables: RelatedTables) -> NDArray[np.uint64]:
    """Return the keyed hash of each person of a side of the split.

    Raises
    ------
    InvalidTableError
        If the source that was divided is not the one whose people are stored.
    """
    made_of = str(storage.recorded("original").made_of.get("source"))
    admitted, hashes = _read(storage, storage.release.name)
    codes = tables.people[tables.person].to_numpy()
    if admitted != made_of or codes.max(initial=-1) >= len(hashes):
        raise InvalidTableError(
            "It is unknown who the people of this split are, so that other releases of the same people would not be "
            "found: `source` was admitted again since, or by an earlier version. Materialize `source`, and then all "
            "that follows. Nothing was assessed."
        )
    found: NDArray[np.uint64] = hashes[codes]
    return found


def other_forms(storage: Storage, one_table: OneTable) -> list[str]:
    """Return the releases in this project, also withdrawn ones, in which rows of the same people have another form."""
    own, (_, people) = _form_of(one_table.to_json()), _read(storage, storage.release.name)
    found = []
    for path in sorted(Path(storage.release_store.base_path).glob(f"*/{ANONYMIZED}/*")):
        if not RELEASE_NAME.fullmatch(path.name):
            continue
        name = path.parent.parent.name
        try:
            settings = read_manifest(path)["settings"]
        except DamagedManifestError:
            continue  # `verify` refuses it, and nobody knows its form.
        forms = {_form_of(made) for stage, made in settings.items() if stage.endswith(AS_ONE_TABLE)}
        is_of_them = name == storage.release.name or np.isin(people, _read(storage, name)[1]).any()
        if forms - {own} and is_of_them:
            found.append(f"{name}/{ANONYMIZED}/{path.name}")
    return found


def _form_of(made: Mapping[str, Any]) -> tuple[str, ...]:
    """Return whether figures of people or the rows of a child leave, and of which child."""
    return (UNLINKED, *made[UNLINKED]) if UNLINKED in made else (AGGREGATE,)


def _read(storage: Storage, name: str) -> tuple[str, NDArray[np.uint64]]:
    """Return the keyed digest of the source of a release and the hashes of its people; nothing if it has none."""
    path = _path(storage, name)
    content = path.read_bytes() if path.is_file() else b""
    n_bytes = (len(content) - LENGTH_OF_DIGEST) // 8 * 8
    hashes: NDArray[np.uint64] = np.frombuffer(content[LENGTH_OF_DIGEST:][: max(n_bytes, 0)], "<u8")
    return content[:LENGTH_OF_DIGEST].decode(errors="replace"), hashes


def _path(storage: Storage, name: str) -> Path:
    return storage.private_tables.private_path(DIRECTORY, name, storage.partition_key) / "people"
