"""The private record of disclosure tests: which splits of the same people were tried, and what was published of each.

Whoever tries splits until none finds a leak has tested nothing, and of twenty releases that each copy a few people,
none shows what all of them do. So tests of the same synthesis on another split count, and what was published of the
same originals is tested again together with the records at hand.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.contract.related import RelatedTables
from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.evidence.publication_ledger import every_publication, recorded_publications
from privacy_assets.orchestration.evidence.related_people import hashes_of_people
from privacy_assets.orchestration.private.recorded import Publication
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.synthetic import Synthesis
from privacy_assets.pipeline.measure import released_columns
from privacy_assets.release.evidence import SPLIT_STAGES, SplitEvidence
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.histories import add_to_history, read_history
from privacy_assets.storage.table import Table, batches_of

DIRECTORY = "disclosure_tests"
NO_SYNTHESIS = ("seed", "n_records")
"""Settings that do not make another synthesis."""


class DisclosureTest(NamedTuple):
    """A test: its time, keyed fingerprints of the people, of the originals among them and as recorded, and the table.

    ``stage`` made the table. ``published`` has the fingerprints of the tables that were published before of the same
    originals, and ``together_with`` those of them that could be tested together with it.
    """

    at: str
    people: str
    split: str
    original: str
    synthesis: str
    stage: str
    table: str
    leaks: bool | None
    published: list[str]
    together_with: list[str]


def describe_test(storage: Storage, tables: Mapping[str, Any], made_of: Mapping[str, str]) -> DisclosureTest:
    """Describe the test of a table before it is done; ``made_of`` has the fingerprints of what it stands on."""
    release = storage.release
    original, control = (_hashes_of_rows(storage, tables[side]) for side in SPLIT_STAGES)
    people, split = (_keyed(storage, rows) for rows in (np.concatenate([original, control]), original))
    table = made_of[release.synthetic_stage]
    own = release.for_manifest()["synthetic"]
    kept = {name: value for name, value in own.items() if name not in NO_SYNTHESIS}
    # Records made elsewhere are of an unknown synthesis.
    synthesis = canonical_json(kept) if isinstance(release.synthetic, Synthesis) else table
    recorded = str(storage.keyed(made_of["original"]))
    published = [each.fingerprint for each in _published(storage, split, table)]
    digest = sha256(synthesis.encode()).hexdigest()
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    return DisclosureTest(now, people, split, recorded, digest, release.synthetic_stage, table, None, published, [])


def _hashes_of_rows(storage: Storage, table: Table | RelatedTables) -> NDArray[np.uint64]:
    """Return a number for each row regardless of how people are numbered, or for each person of related tables.

    That of a person is the same whatever columns and children the tables have.
    """
    if isinstance(table, RelatedTables):
        return hashes_of_people(storage, table)
    unnumbered = [name for name in table.columns if name not in storage.release.contract.person_columns]
    hashes = (pd.util.hash_pandas_object(batch, index=False) for batch in batches_of(table, unnumbered))
    return np.concatenate([each.to_numpy(np.uint64) for each in hashes])


def _keyed(storage: Storage, rows: NDArray[np.uint64]) -> str:
    """Return the keyed fingerprint of rows in any order."""
    return str(storage.keyed(sha256(np.sort(rows).tobytes()).hexdigest()))


def published_before(storage: Storage, test: DisclosureTest) -> dict[str, pd.DataFrame]:
    """Read the other tables that were published of the same originals, by fingerprint; refuse lost and altered ones.

    Those without all of the columns, or of another stage, cannot be compared. Related tables are refused.
    """
    if storage.release.related is not None:
        if test.published:
            raise InvalidTableError(
                f"{len(test.published)} other releases of the same originals were published, and related tables cannot "
                "be tested together with them yet: whoever has both knows more than this test would see. Release the "
                "same content again, or tables of other people. Nothing was assessed."
            )
        return {}
    columns, found = set(storage.release.contract.released_columns), {}
    alike = {each.table for each in _tests(storage) if (each.split, each.stage) == (test.split, test.stage)}
    for each in _published(storage, test.split, test.table):
        path = None if each.directory is None else each.directory / "synthetic.parquet"
        table = None if path is None or not path.exists() else pd.read_parquet(path)
        if table is None or fingerprint(table) != each.fingerprint:
            raise InvalidTableError(
                f"A table that was published of the same originals cannot be read at {str(path)!r}, or was altered. "
                "Anyone who has it may combine it with this release. Restore it. Nothing was assessed."
            )
        if columns <= set(table.columns) and each.fingerprint in alike:
            found[each.fingerprint] = released_columns(storage.release, table)
    return found


def record_test(storage: Storage, test: DisclosureTest) -> None:
    """Add a test to the private record of the release."""
    history = storage.private_tables.history_path(DIRECTORY, storage.release.key("synthetic"))
    add_to_history(history, [test._asdict()], "this test", "Nothing was assessed.")


def split_evidence(storage: Storage, original: str | None, table: str) -> SplitEvidence:
    """Return what the private records have about the split of a table that was tested."""
    tests = _tests(storage)
    own = next((each for each in reversed(tests) if (each.original, each.table) == (original, table)), None)
    if own is None:
        return SplitEvidence()
    of_people = [each for each in tests if each.people == own.people]
    answered = list(dict.fromkeys(each.split for each in of_people if each.leaks is not None))
    before = answered[: answered.index(own.split)] if own.split in answered else answered
    leaking = {each.split for each in of_people if each.leaks and each.synthesis == own.synthesis}
    of_this = recorded_publications(storage, storage.release.key("synthetic_release"))
    tables = {each.table for each in of_people}
    published = [*of_this, *(each for each in every_publication(storage, "synthetic") if each.fingerprint in tables)]
    apart = [each for each in published if each.fingerprint not in (*own.together_with, table)]
    now = {each.fingerprint for each in _published(storage, own.split, table)}
    return SplitEvidence(
        n_splits=len({each.split for each in of_people}),
        n_tried_before=len(before),
        n_others_with_leak=len(leaking - {own.split}),
        published_together=tuple(own.together_with),
        untested=len(now - set(own.published)),
        published_apart=sorted({str(each.directory and each.directory.name) for each in apart}),
    )


def _published(storage: Storage, split: str, but_for: str) -> list[Publication]:
    """Return the tables that were published of the same originals, by any release of this project."""
    tables = {each.table for each in _tests(storage) if each.split == split} - {but_for}
    return [each for each in every_publication(storage, "synthetic") if each.fingerprint in tables]


def _tests(storage: Storage) -> list[DisclosureTest]:
    """Return the recorded tests of all releases of this project, in the order of their times."""
    found = []
    for path in sorted((storage.private_tables.base_path / DIRECTORY).glob("*.jsonl")):
        entries = read_history(path, lambda entry: DisclosureTest(**entry))
        found += [each for each in entries if each is not None]
        if None in entries:
            raise InvalidTableError(
                f"{str(path)!r}, a record of which splits were tested, is damaged. Restore it from a backup. Nothing "
                "was assessed."
            )
    return sorted(found, key=lambda test: test.at)
