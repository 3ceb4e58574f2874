"""A release on disk: the data, a manifest with the reasons for admitting it, and digests that tie both together."""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from privacy_assets.columns.column_names import require_unique_text_names
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
    table_files,
)
from privacy_assets.release.policy import Policy
from privacy_assets.release.received_files import open_regular
from privacy_assets.release.related_files import described_tables
from privacy_assets.release.released_csv import write_csv
from privacy_assets.release.signing import Signer, write_signature
from privacy_assets.release.verification import MAX_BYTES, verify_release
from privacy_assets.release.waivers import Waiver
from privacy_assets.setting_checks import is_integer, require
from privacy_assets.storage.durable_files import (
    PRIVATE_DIRECTORY_MODE,
    TEMPORARY_MARK,
    locked,
    sync_directory,
    temporary_sibling,
    write_file,
    write_json,
)
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.parquet_parts import ROWS_PER_PART, schema_of, write_parts
from privacy_assets.storage.private_directories import RELEASED_DIRECTORY_MODE, make_released_directory
from privacy_assets.storage.table import StoredTable, Table, batches_of, write_batches

if TYPE_CHECKING:
    from privacy_assets.release.report import ReportMaterial

RELEASED_FILE_MODE = 0o644
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
) -> Path:
    """Publish a table as a new directory below ``directory``, point ``latest`` to it, and return the new directory.

    Related tables are published together, each as one file.

    Everything is written to a temporary directory, read back, verified and renamed in one step. Earlier releases stay.
    Parquet is always written, because the fingerprint, ``content``, is verified on it. The signature exists before the
    release appears. A table of more than ``rows_per_part`` is a directory of Parquet files; its CSV is a single file.
    If the release was ``waiting`` for people, the files in that directory are published, which are what they approved.
    The release appears inside the context ``uploaded``, of its files and its name; if that fails, nothing is published.

    Raises
    ------
    InvalidTableError
        If the content, or the content of the files as read back, is not what the verdicts admitted, or the policy
        requires a signature and there is no key.
    """
    table = _without_extras(table)
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
            data = _written_data(temporary, table, record.stage, formats, rows_per_part) if waiting is None else {}
            data |= {} if waiting is None else _copied_data(waiting, temporary)
            write_manifest(temporary, table, content, record, data, report, signer, created_at)
            trusted = () if signer is None else (signer.public_key,)
            give_back_memory()
            # The files written here are no larger than the table in memory.
            found = verify_release(temporary, public_keys=trusted, max_bytes=None)
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
    table = _without_extras(table)
    data = _written_data(directory, table, record.stage, formats, rows_per_part)
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


def _written_data(
    directory: Path, table: Table | RelatedTables, stage: str, formats: Sequence[str], rows_per_part: int
) -> dict[str, Any]:
    """Write the files of the data and return their entries in the manifest."""
    if isinstance(table, RelatedTables):
        for name, own in table.tables.items():
            _write_table(directory / f"{name}.parquet", own, max(len(own), 1))
        return {}
    parts = _write_table(directory / f"{stage}.parquet", table, rows_per_part)
    return parts | ({"csv": _write_csv(directory / f"{stage}.csv", table)} if "csv" in formats else {})


def _copied_data(waiting: Path, directory: Path) -> dict[str, Any]:
    """Copy the files of the data of a waiting release and return their entries in the manifest."""
    manifest = read_manifest(waiting)
    # Not the names in the manifest, which could lead out of the directory.
    for name in [*table_files(manifest), *([f"{manifest['stage']}.csv"] if "csv" in manifest else [])]:
        (directory / name).parent.mkdir(PRIVATE_DIRECTORY_MODE, exist_ok=True)
        with open_regular(waiting / name) as file:
            write_file(directory / name, lambda copy, file=file: shutil.copyfileobj(file, copy), RELEASED_FILE_MODE)  # type: ignore[misc]
    return {name: manifest[name] for name in ("parts", "csv") if name in manifest}


def _without_extras(table: Any) -> Any:
    """Return the table without unused categories and attributes, which the fingerprint does not cover."""
    if isinstance(table, RelatedTables):
        return table.map(lambda _, own: _without_extras(own))
    if isinstance(table, StoredTable):
        return table  # Each batch is written without extras.
    require_unique_text_names(table)
    # The columns are shared with the table, because they are not changed.
    return pd.DataFrame({name: _used_categories(table[name]).array for name in table.columns}, copy=False)


def _used_categories(column: "pd.Series[Any]") -> "pd.Series[Any]":
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column
    n_used = column.cat.codes.nunique() - column.hasnans
    return column if n_used == len(column.cat.categories) else column.cat.remove_unused_categories()


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


def _write_table(path: Path, table: Table, rows_per_part: int) -> dict[str, Any]:
    """Write the Parquet file, or a directory of parts, and return the entry of the parts in the manifest."""
    ordered = _orders_of(table)
    frames = (_without_extras(rows).astype(ordered) for rows in batches_of(table, list(table.columns)))
    if len(table) <= rows_per_part:
        at_once = None if isinstance(table, StoredTable) else partial(table.to_parquet, index=False)
        write_file(path, at_once or (lambda file: write_batches(file, frames)), RELEASED_FILE_MODE)
        return {}
    path.mkdir(PRIVATE_DIRECTORY_MODE)
    # The values of objects determine the schema of a frame; a stored table has no objects.
    schema = schema_of(next(table.batches()) if isinstance(table, StoredTable) else table)
    written = write_parts(path, frames, rows_per_part, RELEASED_FILE_MODE, schema)
    return {"parts": {"rows_per_part": rows_per_part, "rows": list(written.rows)}}


def _orders_of(table: Table) -> dict[str, Any]:
    """Return the dtypes of the ordered categories of a stored table, because a batch may lack one of them."""
    if not isinstance(table, StoredTable):
        return {}
    ordered = [str(name) for name, dtype in table.dtypes.items() if getattr(dtype, "ordered", False)]
    return {name: table[name].cat.remove_unused_categories().dtype for name in ordered}


def _write_csv(path: Path, table: Table) -> dict[str, Any]:
    """Write the CSV file and return its entry in the manifest."""
    described: dict[str, Any] = {}
    write_file(path, lambda file: described.update(write_csv(file.write, table)), RELEASED_FILE_MODE)
    return described


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
