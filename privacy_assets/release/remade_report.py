"""The report of a release, regenerated from its manifest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from privacy_assets.errors import InvalidTableError
from privacy_assets.release.manifest import REPORT_FILE, read_manifest
from privacy_assets.release.report import ReportMaterial, render_report
from privacy_assets.release.signing import PublicKey
from privacy_assets.release.verification import MAX_BYTES, ReleaseVerification, verify_release

LEFT_OUT = (
    "This page was regenerated from the manifest. Pictures, measured effects of dropping or coarsening columns, advice "
    f"on attributes and the times of refusals are only on the released page, {REPORT_FILE}."
)


@dataclass(frozen=True)
class RemadeReport:
    """A regenerated page, and the verification of the release, which found no problem."""

    page: str
    verification: ReleaseVerification


def remake_report(
    directory: Path, *, public_keys: Sequence[str | Path | PublicKey] = (), max_bytes: int | None = MAX_BYTES
) -> RemadeReport:
    """Regenerate the report page of a release, with the wording and the layout of the installed version.

    The release is verified first, with the keys and the limit of `verify_release`. The page shows its manifest. Nothing
    is written.
    Raises InvalidTableError if the release does not verify, or this version cannot show its manifest.
    """
    directory = Path(directory).resolve()
    found = verify_release(directory, public_keys=public_keys, max_bytes=max_bytes)
    found.require("No report was made.")
    problem = ""
    try:
        manifest = read_manifest(directory)
        del manifest["files"][REPORT_FILE]
        page = render_report(manifest, ReportMaterial(notes=(LEFT_OUT,)), is_remade=True)
    except Exception as error:  # noqa: BLE001 - the text of an error may quote unknown content
        problem = f"{type(error).__name__} while its manifest was shown"
    if problem:
        raise InvalidTableError(
            f"The release in {str(directory)!r} verifies, but this version of privacy_assets cannot show it: "
            f"{problem}. No report was made. Read {REPORT_FILE} in that directory."
        )
    return RemadeReport(page, found)
