"""What people decided, as far as a run has read it: kept privately, because the files of decisions can be removed."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.release.approvals import Approval
from privacy_assets.release.withdrawals import WITHDRAWN_FILE, Withdrawal, read_withdrawals
from privacy_assets.storage.durable_files import make_private_directory, replace_file

DECISIONS_DIRECTORY = "decisions"


def known_withdrawals(storage: Storage) -> tuple[Withdrawal, ...]:
    """Return the list of withdrawals; its last entry is kept privately, so that a list that ends earlier is found."""
    listed = Path(storage.release_store.base_path) / WITHDRAWN_FILE
    entries = read_withdrawals(listed)
    of_the_list = hashlib.sha256(str(listed.resolve()).encode()).hexdigest()
    path = storage.private_tables.private_path(DECISIONS_DIRECTORY, f"last_withdrawal-{of_the_list}.json", None)
    known = _read(path, {"number": 0})
    if known["number"] and known["digest"] not in [each.digest for each in entries]:
        raise InvalidSettingError(
            f"The list of withdrawn releases {str(listed)!r} lacks entry {known['number']}, which an earlier run has "
            "read. So it is unknown which releases are withdrawn. Restore the newest copy."
        )
    if len(entries) > known["number"]:
        _keep(path, {"number": len(entries), "digest": entries[-1].digest})
    return entries


def kept_rejections(storage: Storage, side: str) -> tuple[Approval, ...]:
    """Return the rejections of a side that held in an earlier run."""
    return tuple(map(Approval.of, _read(_rejections(storage, side), [])))


def keep_rejections(storage: Storage, side: str, rejections: Sequence[Approval]) -> None:
    """Keep rejections that hold, in addition to those kept before."""
    kept = kept_rejections(storage, side)
    if new := [each for each in rejections if each not in kept]:
        _keep(_rejections(storage, side), [each.to_json() for each in (*kept, *new)])


def _rejections(storage: Storage, side: str) -> Path:
    name = "__".join(storage.release.key(f"{side}_release").path)
    return storage.private_tables.private_path(DECISIONS_DIRECTORY, name, storage.partition_key) / "rejections.json"


def _read(path: Path, otherwise: Any) -> Any:
    problem = ""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return otherwise
    except (OSError, ValueError) as error:
        problem = type(error).__name__
    raise InvalidSettingError(
        f"{str(path)!r}, which has what people decided before, cannot be read ({problem}). Restore it from a backup."
    )


def _keep(path: Path, content: Any) -> None:
    make_private_directory(path.parent)
    replace_file(path, json.dumps(content).encode())
