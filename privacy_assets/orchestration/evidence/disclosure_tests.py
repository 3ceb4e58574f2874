"""The private record of disclosure tests: which splits of the same people were tried, and what was published of each.

Whoever tries splits until none finds a leak has tested nothing, and of twenty releases that each copy a few people,
none shows what all of them do. So tests of the same synthesis on another split count, and what was published of the
same originals is tested again together with the records at hand.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

import numpy as np
import pandas as pd

from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.evidence.publication_ledger import every_publication
from privacy_assets.orchestration.private.recorded import Publication
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.synthetic import Synthesis
from privacy_assets.pipeline.measure import released_columns
from privacy_assets.release.evidence import SPLIT_STAGES, SplitEvidence
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.histories import add_to_history, read_history

DIRECTORY = "disclosure_tests"


class DisclosureTest(NamedTuple):
    """A test: keyed fingerprints of all people and of the originals, the synthesis, the table, and what was found.

    ``published`` has the fingerprints of the tables that were published before of the same originals, and
    ``together_with`` those of them that were tested together with it.
    """

    people: str
    split: str
    synthesis: str
    table: str
    leaks: bool | None
    published: list[str]
    together_with: list[str]


def describe_test(storage: Storage, tables: Mapping[str, pd.DataFrame], made_of: Mapping[str, str]) -> DisclosureTest:
    """Describe the test of a table before it is done; ``made_of`` has the fingerprints of what it stands on."""
    rows = np.concatenate([pd.util.hash_pandas_object(tables[side], index=False) for side in SPLIT_STAGES])
    # In whatever order and on whichever side the people are.
    people = storage.keyed(sha256(np.sort(rows).tobytes()).hexdigest())
    table = made_of[storage.release.synthetic_stage]
    own = storage.release.for_manifest()["synthetic"]
    unseeded = {name: value for name, value in own.items() if name != "seed"}
    synthesis = canonical_json(unseeded) if isinstance(storage.release.synthetic, Synthesis) else table
    split, synthesis = str(storage.keyed(made_of["original"])), sha256(synthesis.encode()).hexdigest()
    published = [each.fingerprint for each in _published(storage, split, table)]
    return DisclosureTest(str(people), split, synthesis, table, None, published, [])


def published_before(storage: Storage, test: DisclosureTest) -> dict[str, pd.DataFrame]:
    """Read the other tables that were published of the same originals, by fingerprint; refuse if one is missing.

    Those without all of the columns cannot be compared.
    """
    columns, found = set(storage.release.contract.released_columns), {}
    for each in _published(storage, test.split, test.table):
        path = None if each.directory is None else each.directory / "synthetic.parquet"
        if path is None or not path.exists():
            raise InvalidTableError(
                f"A table that was published of the same originals cannot be read at {str(path)!r}. Anyone who has it "
                "may combine it with this release. Restore it. Nothing was assessed."
            )
        table = pd.read_parquet(path)
        if columns <= set(table.columns):
            found[each.fingerprint] = released_columns(storage.release, table)
    return found


def record_test(storage: Storage, test: DisclosureTest) -> None:
    """Add a test to the private record of the release."""
    history = storage.private_tables.history_path(DIRECTORY, storage.release.key("synthetic"))
    add_to_history(history, [test._asdict()], "this test", "Nothing was assessed.")


def split_evidence(storage: Storage, split: str | None, table: str) -> SplitEvidence:
    """Return what the private records have about the split of a table that was tested."""
    tests = _tests(storage)
    own = next((each for each in reversed(tests) if (each.split, each.table) == (split, table)), None)
    if own is None:
        return SplitEvidence()
    of_people = [each for each in tests if each.people == own.people]
    others = [each for each in of_people if each.split != split and each.synthesis == own.synthesis]
    tables = {each.table for each in of_people} - {table}
    published = [each for each in every_publication(storage, "synthetic") if each.fingerprint in tables]
    apart = [each for each in published if each.fingerprint not in own.together_with]
    now = {each.fingerprint for each in _published(storage, own.split, table)}
    return SplitEvidence(
        n_splits=len({each.split for each in of_people}),
        n_others_answered=len({each.split for each in others if each.leaks is not None}),
        n_others_with_leak=len({each.split for each in others if each.leaks}),
        published_together=tuple(own.together_with),
        untested=len(now - set(own.published)),
        published_apart=sorted({str(each.directory and each.directory.name) for each in apart}),
    )


def _published(storage: Storage, split: str, but_for: str) -> list[Publication]:
    """Return the tables that were published of the same originals, by any release of this project."""
    tables = {each.table for each in _tests(storage) if each.split == split} - {but_for}
    return [each for each in every_publication(storage, "synthetic") if each.fingerprint in tables]


def _tests(storage: Storage) -> list[DisclosureTest]:
    """Return the recorded tests of all releases of this project."""
    found = []
    for path in sorted((storage.private_tables.base_path / DIRECTORY).glob("*.jsonl")):
        entries = read_history(path, lambda entry: DisclosureTest(**entry))
        found += [each for each in entries if each is not None]
        if None in entries:
            raise InvalidTableError(
                f"{str(path)!r}, a record of which splits were tested, is damaged. Restore it from a backup. Nothing "
                "was assessed."
            )
    return found
