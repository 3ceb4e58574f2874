"""The people of a partition, as keyed hashes: stored when the source is admitted, and charged with each fit.

Later stages do not know whose a record is, because they only have the numbers of people within a table.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from privacy_assets.columns.spelling import keys_of_rows
from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.evidence.spending import ledger_of
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.storage.column_files import ColumnFiles
from privacy_assets.storage.durable_files import make_private_directory, replace_file
from privacy_assets.storage.table import Table, fingerprint_of

DIRECTORY = "people_of_sources"
_LENGTHS = {"mark": 32, "fingerprint": 64}


def keep_people_of_source(storage: Storage, checked: pd.DataFrame | ColumnFiles, admitted: Table) -> None:
    """Store keyed hashes of the people of converted rows, by the codes that the admitted table gives them."""
    release = storage.release
    person = release.contract.person
    if not release.budget.partitions_are_disjoint or person is None:
        return
    store = ledger_of(storage).people
    codes, people = pd.factorize(keys_of_rows(checked[list(release.contract.person_columns)]))
    if not np.array_equal(codes, admitted[person]):
        raise InvalidTableError("The people of the source are not those of the admitted table. Nothing was stored.")
    hashes = store.hashes(people)
    made_of = storage.private_tables.keyed(fingerprint_of(admitted))
    content = (store.mark() or b"") + made_of.encode() + hashes.astype("<u8").tobytes()
    path = _path(storage)
    make_private_directory(path.parent)
    replace_file(path, content)


def people_of_fit(storage: Storage, original: pd.DataFrame) -> str:
    """Return the digest of the people of a fit, whose hashes are stored; empty if they are not declared or not known.

    They are not known if the source was admitted before the setting was made, or again after the division, or with
    another key. Then the fit is added to all others.
    """
    release = storage.release
    person = release.contract.person
    if not release.budget.partitions_are_disjoint or person is None:
        return ""
    store = ledger_of(storage).people
    try:
        content = _path(storage).read_bytes()
    except OSError:
        return ""
    begin, end = _LENGTHS["mark"], sum(_LENGTHS.values())
    made_of = storage.recorded("original").made_of.get("source")
    if content[:begin] != store.mark() or content[begin:end] != str(made_of).encode():
        return ""
    hashes = np.frombuffer(content[end:], dtype="<u8")
    codes = original[person].unique()
    if not len(codes) or codes.min() < 0 or codes.max() >= len(hashes):
        return ""
    # The text '007' and the number 7 are the same person with two hashes.
    types = {name: release.contract.required_type(name) for name in release.contract.person_columns}
    written = "; ".join(f"{name}: {own.label}, {own.format}" for name, own in types.items())
    return store.keep_people(hashes[codes], written)


def _path(storage: Storage) -> Path:
    return storage.private_tables.private_path(DIRECTORY, storage.release.name, storage.partition_key) / "people"
