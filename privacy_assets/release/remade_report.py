"""The report of a release, regenerated from its manifest and the pictures of the released page."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from privacy_assets.errors import InvalidTableError
from privacy_assets.release.manifest import REPORT_FILE, read_manifest
from privacy_assets.release.received_files import read_regular
from privacy_assets.release.report import PNG_SOURCE, Picture, ReportMaterial, render_report
from privacy_assets.release.signing import PublicKey
from privacy_assets.release.verification import MAX_BYTES, ReleaseVerification, verify_release

PNG_START = b"\x89PNG\r\n\x1a\n"
LEFT_OUT = (
    "This page was regenerated from the manifest. Measured effects of dropping or coarsening columns, advice on "
    f"attributes and the times of refusals are only on the released page, {REPORT_FILE}."
)


@dataclass(frozen=True)
class RemadeReport:
    """A regenerated page, the number of its pictures, and the verification of the release, which found no problem."""

    page: str
    n_pictures: int
    verification: ReleaseVerification


def remake_report(
    directory: Path, *, public_keys: Sequence[str | Path | PublicKey] = (), max_bytes: int | None = MAX_BYTES
) -> RemadeReport:
    """Regenerate the report page of a release, with the wording and the layout of the installed version.

    The release is verified first, with the keys and the limit of `verify_release`. The page shows its manifest, and the
    pictures of the released page. Nothing is written.
    Raises InvalidTableError if the release does not verify, or this version cannot show its manifest.
    """
    directory = Path(directory).resolve()
    found = verify_release(directory, public_keys=public_keys, max_bytes=max_bytes)
    if not found.verified:
        why = "; ".join(found.problems) or f"it was {found.withdrawn}"
        raise InvalidTableError(f"The release in {str(directory)!r} does not verify: {why}. No report was made.")
    problem = ""
    try:
        manifest = read_manifest(directory)
        recorded = manifest["files"][REPORT_FILE]
        released = read_regular(directory / REPORT_FILE, recorded["bytes"])
        if hashlib.sha256(released).hexdigest() != recorded["sha256"]:
            problem = f"{REPORT_FILE} was changed while it was read"
        else:
            pictures = pictures_of(released.decode())
            manifest["files"] = {name: entry for name, entry in manifest["files"].items() if name != REPORT_FILE}
            page = render_report(manifest, ReportMaterial(pictures=pictures, notes=(LEFT_OUT,)), is_remade=True)
    except Exception as error:  # noqa: BLE001 - the text of an error may quote unknown content
        problem = f"{type(error).__name__} while its manifest was shown"
    if problem:
        raise InvalidTableError(
            f"The release in {str(directory)!r} verifies, but this version of privacy_assets cannot show it: "
            f"{problem}. No report was made. Read {REPORT_FILE} in that directory."
        )
    return RemadeReport(page, len(pictures), found)


def pictures_of(page: str) -> tuple[Picture, ...]:
    """Return the pictures of a report, in their order, except those that are not PNG data in the page."""
    reader = _Figures()
    reader.feed(page)
    reader.close()
    return tuple(reader.pictures)


class _Figures(HTMLParser):
    """Collect the pictures of a page, with their alternative texts and captions."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures: list[Picture] = []
        self._title, self._png = "", b""
        self._caption: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag == "figure":
            self._title, self._png = "", b""
        elif tag == "img":
            self._title, self._png = named.get("alt") or "", _png_of(named.get("src") or "")
        elif tag == "figcaption":
            self._caption = []

    def handle_data(self, data: str) -> None:
        if self._caption is not None:
            self._caption.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "figcaption" and self._caption is not None:
            text = "".join(self._caption)
            if self._png:
                # A picture without an alternative text repeats its caption.
                self.pictures.append(Picture(text, self._png, "" if self._title == text else self._title))
            self._caption = None


def _png_of(source: str) -> bytes:
    """Return the PNG of a data URL; empty if the URL is not one."""
    if not source.startswith(PNG_SOURCE):
        return b""
    try:
        png = base64.b64decode(source.removeprefix(PNG_SOURCE), validate=True)
    except binascii.Error:
        return b""
    return png if png.startswith(PNG_START) else b""
