"""Cards and attestations of a release, made anew from its manifest into another directory."""

from collections.abc import Sequence
from pathlib import Path

from privacy_assets.errors import InvalidSettingError
from privacy_assets.release.formats.attestation import ATTESTATIONS, write_attestations
from privacy_assets.release.formats.cards import CARDS
from privacy_assets.release.manifest import parse_manifest, read_manifest_bytes
from privacy_assets.release.signing import PublicKey, SigningKey, load_signer
from privacy_assets.release.verification import MAX_BYTES, verify_release
from privacy_assets.storage.durable_files import write_json

FILE_MODE = 0o644
UNSIGNED = "an envelope without a signature says nothing. Name the private key of who states it: --key FILE"


def remake_cards(
    directory: Path,
    output: Path,
    *,
    key: SigningKey | None = None,
    public_keys: Sequence[str | Path | PublicKey] = (),
    max_bytes: int | None = MAX_BYTES,
) -> dict[str, bool]:
    """Write the cards of a verified release, and with a key also its attestations, to a new directory.

    Return for each file whether the release has the same bytes.

    Raises
    ------
    InvalidTableError
        If the release does not verify, or was withdrawn.
    InvalidSettingError
        If the output exists, is in the release or cannot be written, or the key cannot be used.
    """
    directory, output = Path(directory).resolve(), Path(output).absolute()
    signer = None if key is None else load_signer(key)
    found = verify_release(directory, public_keys=public_keys, max_bytes=max_bytes)
    found.require("Nothing was made.")
    if output.resolve().is_relative_to(directory):
        raise InvalidSettingError(
            f"The output {str(output)!r} is in the release, which would then no longer verify. Name a directory "
            "elsewhere: -o DIRECTORY. Nothing was made."
        )
    data, problem = read_manifest_bytes(directory), ""
    manifest = parse_manifest(data)
    try:
        output.mkdir()
        for name, made_of in CARDS.items():
            write_json(output / name, made_of(manifest), FILE_MODE)
        if signer is not None:
            write_attestations(output, manifest, data, signer, FILE_MODE)
        made = [name for name in (*CARDS, *ATTESTATIONS) if (output / name).exists()]
        same = {name: _content(directory / name) == _content(output / name) for name in made}
    except OSError as error:
        problem = type(error).__name__
    if problem:
        raise InvalidSettingError(f"{str(output)!r} could not be written ({problem}): expected a new directory.")
    return same


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
