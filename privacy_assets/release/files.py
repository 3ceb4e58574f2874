"""A release on disk: the data, a manifest with the reasons for admitting it, and digests that tie both together."""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.contract.related import RelatedTables, content_of
from privacy_assets.disclosure.leaving_columns import MANIFEST_KEY, manifest_entries
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.release import clock
from privacy_assets.release.formats.attestation import is_attested, write_attestations
from privacy_assets.release.formats.cards import CARDS
from privacy_assets.release.gate import Verdict, is_admitted
from privacy_assets.release.manifest import (
    DIRECTORY_TIME,
    FORMATS,
    LATEST,
    MANIFEST_FILE,
    MANIFEST_VERSION,
    REPORT_FILE,
    SIGNATURE_FILE,
    WITHHELD_KEY,
    digest_of,
    parse_manifest,
    read_manifest,
    read_manifest_bytes,
)
from privacy_assets.release.policy import Policy
from privacy_assets.release.related_files import described_tables
from privacy_assets.release.signing import Signer, write_signature
from privacy_assets.release.verification import MAX_BYTES, verify_release
from privacy_assets.release.waivers import Waiver
from privacy_assets.release.written_data import copied_data, without_extras, write_data
from privacy_assets.setting_checks import is_integer, require
from privacy_assets.storage.durable_files import (
    TEMPORARY_MARK,
    locked,
    sync_directory,
    temporary_sibling,
    write_file,
    write_json,
)
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.parquet_parts import ROWS_PER_PART
from privacy_assets.storage.private_directories import (
    RELEASED_DIRECTORY_MODE,
    RELEASED_FILE_MODE,
    make_released_directory,
)
from privacy_assets.storage.table import Table

if TYPE_CHECKING:
    from privacy_assets.engine.protocol import Engine
    from privacy_assets.release.report import ReportMaterial

FEWEST_ROWS_PER_PART = 1_000
ROWS_OF_A_PART = f"a whole number of at least {FEWEST_ROWS_PER_PART:,}"
RECORDED_VERSIONS = ("privacy-assets", "pandas", "numpy", "pyarrow")


@dataclass(frozen=True)
class ReleaseRecord:
    """The content of a manifest other than the files.

    ``refusals_before`` counts earlier runs in which this release was refused, ``options_compared`` the candidate
    releases that were compared before. ``acknowledged`` has the contract's reasons for releasing identifying columns
    unchanged, ``engine`` is ``local``, ``spark``, or ``spark at`` and the address. ``approvals`` are those that count,
    as JSON values, and ``withdrawn_before`` says how often this content was withdrawn.
    """

    release: str
    stage: str
    partition: str | None
    run_id: str
    policy: Policy
    verdicts: tuple[Verdict, ...]
    settings: Mapping[str, Any]
    figures: Mapping[str, Any]
    columns: Sequence[Mapping[str, Any]]
    refusals_before: int
    waivers: Sequence[Waiver] = ()
    acknowledged: Mapping[str, str] = field(default_factory=dict)
    options_compared: int = 0
    declaration: Mapping[str, Any] = field(default_factory=dict)
    figures_withheld: bool = False
    engine: str = "local"
    approvals: Sequence[Mapping[str, Any]] = ()
    withdrawn_before: int = 0


def write_release(
    directory: Path,
    table: Table | RelatedTables,
    content: str,
    record: ReleaseRecord,
    formats: Sequence[str] = ("parquet",),
    report: "ReportMaterial | None" = None,
    signer: Signer | None = None,
    rows_per_part: int = ROWS_PER_PART,
    waiting: Path | None = None,
    uploaded: Callable[[Path, str], AbstractContextManager[None]] | None = None,
    engine: "Engine | None" = None,
) -> Path:
    """Publish a table as a new directory below ``directory``, point ``latest`` to it, and return the new directory.

    Related tables are published together, each as one file.

    Everything is written to a temporary directory, read back, verified and renamed in one step. Earlier releases stay.
    Parquet is always written, because the fingerprint, ``content``, is verified on it. The signature exists before the
    release appears. A table of more than ``rows_per_part`` is a directory of Parquet files; its CSV is a single file.
    If the release was ``waiting`` for people, the files in that directory are published, which are what they approved.
    The release appears inside the context ``uploaded``, of its files and its name; if that fails, nothing is published.
    With an engine, its workers, which must see ``directory`` under the same path, write the files of the data of a
    stored table, and read back and verify the whole release.

    Raises
    ------
    InvalidTableError
        If the content, or the content of the files as read back, is not what the verdicts admitted, or the policy
        requires a signature and there is no key.
    EngineError
        If workers of the engine do not see the directory, or cannot write to it.
    """
    table = without_extras(table)
    if not is_admitted(record.verdicts) or content_of(table) != content:
        raise InvalidTableError(
            "The table differs from the content that the gate admitted. Nothing was released. Materialize it again."
        )
    if record.policy.required.approvals and waiting is None:
        raise InvalidTableError("The policy requires approvals, and no files waited for them. Nothing was released.")
    if record.policy.required.signature and signer is None:
        raise InvalidTableError("The policy requires a signature, and there is no signing key. Nothing was released.")
    make_released_directory(directory)
    with locked(directory):
        created_at = clock.now()
        final = directory / f"{created_at.strftime(DIRECTORY_TIME)}-{content[:12]}"
        _remove_abandoned(directory)
        temporary = temporary_sibling(final)
        try:
            if waiting is None:
                data = write_data(temporary, table, record.stage, formats, rows_per_part, engine)
            else:
                data = copied_data(waiting, temporary)
            write_manifest(temporary, table, content, record, data, report, signer, created_at)
            trusted = () if signer is None else (signer.public_key,)
            give_back_memory()
            # The files written here are no larger than the table in memory.
            found = verify_release(temporary, public_keys=trusted, max_bytes=None, engine=engine)
            if not found.verified:
                raise InvalidTableError(
                    f"The written files do not verify: {'; '.join(found.problems)}. Nothing was released."
                )
            for opened in (temporary, *(path for path in temporary.iterdir() if path.is_dir())):
                opened.chmod(RELEASED_DIRECTORY_MODE)
            sync_directory(temporary)
            # The link is made first, so that nothing is published if it cannot be made.
            link = link_to(final)
            try:
                with nullcontext() if uploaded is None else uploaded(temporary, final.name):
                    temporary.rename(final)
            except BaseException:
                if final.exists():
                    final.rename(temporary)
                raise
            link.replace(directory / LATEST)
            sync_directory(directory)
        finally:
            _remove_abandoned(directory)
        return final


def write_waiting(
    directory: Path,
    table: Table | RelatedTables,
    content: str,
    record: ReleaseRecord,
    formats: Sequence[str],
    report: "ReportMaterial",
    rows_per_part: int,
) -> None:
    """Write the files of a release that waits for people to a directory; its verdicts say for what it waits."""
    table = without_extras(table)
    data = write_data(directory, table, record.stage, formats, rows_per_part)
    write_manifest(directory, table, content, record, data, report, None, clock.now(), cards={})


def write_manifest(
    directory: Path,
    table: Table | RelatedTables,
    content: str,
    record: ReleaseRecord,
    data: dict[str, Any],
    report: "ReportMaterial | None",
    signer: Signer | None,
    created_at: datetime,
    cards: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = CARDS,
) -> None:
    """Write cards, report, manifest and signatures next to the files of the data, of which ``data`` are the entries.

    What waits for people gets no ``cards``: it is not published yet.
    """
    manifest = _manifest(record, directory, table, content, created_at) | data
    manifest["signed_by"] = None if signer is None else signer.key_id
    for name, made_of in cards.items():
        write_json(directory / name, made_of(manifest), RELEASED_FILE_MODE)
        manifest["files"][name] = _described(directory / name)
    manifest["files"][REPORT_FILE] = _write_report(directory / REPORT_FILE, manifest, report)
    # As read back from JSON: tuples become lists, and keys become text.
    manifest["digest"] = digest_of(json.loads(json.dumps(manifest, allow_nan=False)))
    write_json(directory / MANIFEST_FILE, manifest, RELEASED_FILE_MODE)
    if signer is not None:
        written = read_manifest_bytes(directory)
        write_signature(directory / SIGNATURE_FILE, written, signer, RELEASED_FILE_MODE)
        if is_attested(manifest):
            write_attestations(directory, parse_manifest(written), written, signer, RELEASED_FILE_MODE)


def published_fingerprint(directory: Path) -> str:
    """Return the fingerprint that the manifest of a release records."""
    return str(read_manifest(directory)["fingerprint"])


def read_anonymized_release(
    directory: Path, max_bytes: int | None = MAX_BYTES
) -> tuple[pd.DataFrame, ReleaseModel, list[str]]:
    """Read a published anonymized release: its table, its masks and its quasi-identifiers.

    ``max_bytes`` limits its verification, as in `verify_release`; None for one that this project wrote.

    Raises
    ------
    InvalidTableError
        If the directory does not verify, or is not an anonymized release.
    """
    found = verify_release(directory, max_bytes=max_bytes)
    # One that was withdrawn stays known to those who have it.
    if found.problems:
        raise InvalidTableError(
            f"The release in {str(directory)!r} does not verify: {'; '.join(found.problems)}. Nothing was read."
        )
    manifest = read_manifest(directory)
    if manifest["stage"] != "anonymized":
        raise InvalidTableError(
            f"The release in {str(directory)!r} has {manifest['stage']} records. Expected an anonymized release."
        )
    model = ReleaseModel.from_json(manifest["figures"]["model"])
    table = pd.read_parquet(directory / "anonymized.parquet", engine="pyarrow")
    return table, model, list(manifest["settings"]["anonymized"]["quasi_identifiers"])


def require_formats(formats: Sequence[str]) -> tuple[str, ...]:
    """Return the formats, or raise InvalidSettingError for unknown ones."""
    unknown = sorted(set(formats) - set(FORMATS))
    if unknown or isinstance(formats, str):
        raise InvalidSettingError(f"formats has {unknown or formats!r}; expected a list with some of {list(FORMATS)}.")
    return tuple(formats)


def require_rows_per_part(rows_per_part: int) -> int:
    """Return the rows of a part, or raise InvalidSettingError for too few."""
    is_right = is_integer(rows_per_part, FEWEST_ROWS_PER_PART)
    require(is_right, "rows_per_part", rows_per_part, ROWS_OF_A_PART, "Nothing was released.")
    return int(rows_per_part)


def _write_report(path: Path, manifest: Mapping[str, Any], material: "ReportMaterial | None") -> dict[str, Any]:
    """Write the report and return its entry in the manifest."""
    # Imports Jinja, which is not needed to verify a release.
    from privacy_assets.release.report import ReportMaterial, render_report

    page = render_report(manifest, material or ReportMaterial()).encode()
    write_file(path, lambda file: file.write(page), RELEASED_FILE_MODE)
    return _described(path)


def _manifest(
    record: ReleaseRecord, directory: Path, table: Table | RelatedTables, content: str, created_at: datetime
) -> dict[str, Any]:
    return manifest_without_files(record, table, content, created_at) | {
        "formats": sorted({path.suffix.removeprefix(".") for path in directory.iterdir()}),
        "files": {
            path.relative_to(directory).as_posix(): _described(path)
            for path in sorted(directory.rglob("*"))
            if path.is_file()
        },
    }


def render_refusal(
    record: ReleaseRecord, table: Table | RelatedTables | None, content: str, report: "ReportMaterial", note: str
) -> str:
    """Return the page of a refusal as HTML: the report that the release would have, with the verdicts that refused it.

    The table is None, and its fingerprint empty, if it cannot be read. The note names the step at which the run ended,
    and what is therefore missing from the page.
    """
    from privacy_assets.release.report import render_report

    manifest = manifest_without_files(record, table, content, clock.now())
    return render_report(manifest | {"formats": [], "files": {}, "signed_by": None}, report, note)


def manifest_without_files(
    record: ReleaseRecord, table: Table | RelatedTables | None, content: str, created_at: datetime
) -> dict[str, Any]:
    """Return the content of a manifest in addition to the files."""
    related = described_tables(table) if isinstance(table, RelatedTables) else {}
    leaving = [] if table is None else manifest_entries(table, record.columns, record.stage, record.acknowledged)
    return {
        "manifest_version": MANIFEST_VERSION,
        "release": record.release,
        "stage": record.stage,
        "partition": record.partition,
        "created_at": created_at.isoformat(timespec="seconds"),
        "run_id": record.run_id,
        "fingerprint": content,
        "n_records": 0 if table is None else len(table.people if isinstance(table, RelatedTables) else table),
        **related,
        "columns": [dict(column) for column in record.columns],
        MANIFEST_KEY: leaving,
        "policy": record.policy.to_json(),
        "verdicts": [asdict(verdict) for verdict in record.verdicts],
        "settings": dict(record.settings),
        "figures": dict(record.figures),
        "refusals_before": record.refusals_before,
        "options_compared": record.options_compared,
        **({"declaration": dict(record.declaration)} if record.declaration else {}),
        **({WITHHELD_KEY: True} if record.figures_withheld else {}),
        **({"approvals": list(record.approvals)} if record.approvals else {}),
        **({"withdrawn_before": record.withdrawn_before} if record.withdrawn_before else {}),
        "engine": record.engine,
        "waivers": [waiver.to_json() for waiver in record.waivers],
        "versions": {"python": sys.version.split()[0], **{name: version(name) for name in RECORDED_VERSIONS}},
    }


def _remove_abandoned(directory: Path) -> None:
    for abandoned in directory.glob(f"{TEMPORARY_MARK}*"):
        if abandoned.is_symlink():
            abandoned.unlink()
        else:
            shutil.rmtree(abandoned, ignore_errors=True)


def link_to(final: Path) -> Path:
    """Return a new link to a release, which replaces ``latest`` by a renaming."""
    latest = final.parent / LATEST
    if latest.exists() and not latest.is_symlink():
        raise InvalidTableError(
            f"{str(latest)!r} exists and is not a link to a release. Nothing was released. Move it away and release "
            "again."
        )
    link = final.parent / f"{TEMPORARY_MARK}{LATEST}-{final.name}"
    link.symlink_to(final.name)
    return link


def _described(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "bytes": path.stat().st_size}
