"""The manifest of a release: its keys, their types, and the digest that covers them."""

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from privacy_assets.contract.related import MOST_TABLES, NAME_OF_TABLE, PEOPLE
from privacy_assets.release.declaration import is_declaration
from privacy_assets.release.metrics import METRICS, PRIVACY_BUDGET, SIDES
from privacy_assets.release.received_files import TooLargeError, parse_json_object, read_regular
from privacy_assets.setting_checks import is_integer
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.parquet_parts import MOST_PARTS, part_name

MANIFEST_FILE = "manifest.json"
REPORT_FILE = "report.html"
DIRECTORY_TIME = "%Y%m%dT%H%M%S.%fZ"
"""The beginning of the name of a release directory."""
RELEASE_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{12}")
"""Names of release directories: the time and the first digits of the fingerprint."""
LATEST = "latest"
SIGNATURE_FILE = "signature.json"
CROISSANT_FILE = "croissant.json"
DCAT_FILE = "dcat.jsonld"
CARD_FILES = (CROISSANT_FILE, DCAT_FILE)
"""Descriptions of a release for catalogs; older releases have none."""
MANIFEST_VERSION = 1
MAX_MANIFEST_BYTES = 64 * 2**20
LARGEST_COUNT = 2**63 - 1
ENGINE = re.compile(r"local|spark( at [^;@]+)?")
FORMATS = ("parquet", "csv")
MANIFEST_KEYS = {
    *("manifest_version", "release", "stage", "partition", "created_at", "run_id", "fingerprint", "n_records"),
    *("formats", "columns", "files", "policy", "verdicts", "settings", "figures", "refusals_before", "versions"),
    *("waivers", "columns_leaving_as_is", "signed_by", "digest"),
}
OPTIONAL_KEYS = frozenset(
    {
        *("csv", "options_compared", "declaration", "parts", "figures_withheld", "engine"),
        *("approvals", "withdrawn_before", "person", "tables", "links"),
    }
)
"""Keys that are not in every release, such as those for CSV files and tables in parts."""


WITHHELD_KEY = "figures_withheld"
"""True if the figures that were computed on people's records are left out of a differentially private release."""
WITHHELD = "withheld"
WITHHELD_IN_WORDS = (
    "The figures that were computed on the people's records are withheld, and so are their pictures. The decisions on "
    "limits and conditions, and the number of refusals, depend on these figures and have no guarantee."
)


class DamagedManifestError(ValueError):
    """A manifest that this version cannot have written. The message shows none of its content."""


def read_manifest_bytes(directory: Path) -> bytes:
    """Return the bytes of a manifest, which the signature covers; raise DamagedManifestError if it cannot be read."""
    try:
        return read_regular(directory / MANIFEST_FILE, MAX_MANIFEST_BYTES)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        problem = f"there is no regular file {MANIFEST_FILE}"
    except TooLargeError:
        problem = f"{MANIFEST_FILE} is too large for a manifest"
    except (OSError, ValueError) as error:
        problem = f"a file cannot be read ({type(error).__name__})"
    raise DamagedManifestError(problem)


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read the manifest of a release directory; raise DamagedManifestError for whatever cannot be one."""
    return parse_manifest(read_manifest_bytes(directory))


def parse_manifest(data: bytes) -> dict[str, Any]:
    """Read a manifest; raise DamagedManifestError if it is not JSON, or keys or values are not those of one."""
    problem = ""
    try:
        manifest = parse_json_object(data)
    except (ValueError, RecursionError) as error:
        problem = str(error) if type(error) is ValueError else "it is not JSON, or is nested too deeply"
    if problem:
        raise _damaged(problem)
    version = manifest.get("manifest_version")
    if not is_integer(version, 1):
        raise _damaged("it has no manifest_version")
    if version > MANIFEST_VERSION:
        raise _damaged(f"its version is later than {MANIFEST_VERSION}, which this version of privacy_assets reads")
    missing, n_unknown = sorted(MANIFEST_KEYS - set(manifest)), len(set(manifest) - MANIFEST_KEYS - OPTIONAL_KEYS)
    if missing or n_unknown:
        raise _damaged(f"it lacks {missing} and has {n_unknown} unknown keys")
    wrong = sorted(name for name, is_right in _SHAPES.items() if name in manifest and not is_right(manifest[name]))
    if wrong:
        raise _damaged(f"the values of {', '.join(wrong)} are invalid")
    related = [name in manifest for name in ("person", "tables", "links")]
    if any(related) and not (all(related) and set(manifest["links"]) == set(manifest["tables"]) - {PEOPLE}):
        raise _damaged("it does not say how its tables belong together")
    if any(related) and (manifest["stage"] != "synthetic" or {"parts", "csv", WITHHELD_KEY} & set(manifest)):
        raise _damaged("its tables are not released in this form")
    return manifest


def _damaged(how: str) -> DamagedManifestError:
    return DamagedManifestError(f"{MANIFEST_FILE} is damaged or incomplete: {how}")


def digest_of(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything in a manifest except the digest itself.

    It is computed over sorted keys without spaces, so that it depends only on the content. It reveals mistakes, not
    forgeries: anyone who edits the manifest can compute the digest again. A signature prevents that.
    """
    said = {name: value for name, value in manifest.items() if name != "digest"}
    return hashlib.sha256(canonical_json(said).encode()).hexdigest()


def is_sha256(value: object) -> bool:
    """Return whether a value is 64 hexadecimal digits."""
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None


def are_withheld(manifest: Mapping[str, Any]) -> bool:
    """Return whether a release withholds its figures."""
    return manifest.get(WITHHELD_KEY) is True


def is_withheld(metric: str) -> bool:
    """Return whether the figure of a limit is withheld if figures are: all except those of the guarantee."""
    return METRICS[metric].assessment != PRIVACY_BUDGET


def table_files(manifest: Mapping[str, Any]) -> list[str]:
    """Return the names of the Parquet files of a release, in the order of their rows."""
    if "tables" in manifest:
        return [own["file"] for own in manifest["tables"].values()]
    name = f"{manifest['stage']}.parquet"
    if "parts" not in manifest:
        return [name]
    return [f"{name}/{part_name(place)}" for place in range(len(manifest["parts"]["rows"]))]


def data_files(manifest: Mapping[str, Any]) -> list[str]:
    """Return the names of the files of a release except its report and its cards."""
    return [name for name in manifest["files"] if name not in (REPORT_FILE, *CARD_FILES)]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return is_integer(value, 0, LARGEST_COUNT)


def _is_mapping(value: object) -> bool:
    return isinstance(value, dict)


def _are_mappings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def is_instant(value: object) -> bool:
    """Return whether a value is the text of a time with its zone."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _are_formats(value: object) -> bool:
    if not isinstance(value, list) or not all(each in FORMATS for each in value):
        return False
    return value == sorted(set(value))


def _are_parts(value: object) -> bool:
    if not isinstance(value, dict) or set(value) != {"rows_per_part", "rows"}:
        return False
    each, rows = value["rows_per_part"], value["rows"]
    if not is_integer(each, 1) or not isinstance(rows, list) or not 1 < len(rows) <= MOST_PARTS:
        return False
    return all(is_integer(own, 1) for own in rows) and all(own == each for own in rows[:-1]) and rows[-1] <= each


def _are_columns(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return False
    names = [each.get("column") for each in value]
    are_text = all(isinstance(text, str) for each in value for text in (each.get("column"), each.get("role")))
    return are_text and len(set(names)) == len(names)


def _are_tables(value: object) -> bool:
    if not isinstance(value, dict) or PEOPLE not in value or not 1 < len(value) <= MOST_TABLES:
        return False
    return all(
        NAME_OF_TABLE.fullmatch(name)
        and isinstance(own, dict)
        and set(own) == {"file", "rows", "fingerprint"}
        and own["file"] == f"{name}.parquet"
        and _is_count(own["rows"])
        and is_sha256(own["fingerprint"])
        for name, own in value.items()
    )


def _are_links(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(own, dict)
        and set(own) - {"own_key"} == {"parent", "key", "order"}
        and (own["parent"] == PEOPLE or _is_of_rows(own, value))
        and _is_text(own.get("own_key", own["key"]))
        and _is_text(own["key"])
        and (own["order"] is None or _is_text(own["order"]))
        for own in value.values()
    )


def _is_of_rows(link: Mapping[str, Any], links: Mapping[str, Any]) -> bool:
    """Whether a link leads to rows of people, which have its key as their own."""
    above = links.get(link["parent"]) if isinstance(link["parent"], str) else None
    return isinstance(above, dict) and above.get("parent") == PEOPLE and above.get("own_key") == link["key"]


def _are_files(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(each, dict)
        and set(each) == {"sha256", "bytes"}
        and is_sha256(each["sha256"])
        and _is_count(each["bytes"])
        for each in value.values()
    )


_SHAPES: Mapping[str, Callable[[object], bool]] = {
    "release": _is_text,
    "stage": lambda value: value in set(SIDES.values()) if isinstance(value, str) else False,
    "partition": lambda value: value is None or _is_text(value),
    "created_at": is_instant,
    "run_id": _is_text,
    "fingerprint": is_sha256,
    "n_records": _is_count,
    "formats": _are_formats,
    "columns": _are_columns,
    "files": _are_files,
    "policy": _is_mapping,
    "verdicts": _are_mappings,
    "settings": _is_mapping,
    "figures": _is_mapping,
    "refusals_before": _is_count,
    "options_compared": _is_count,
    "waivers": _are_mappings,
    "approvals": _are_mappings,
    "withdrawn_before": _is_count,
    "versions": lambda value: isinstance(value, dict) and all(map(_is_text, value.values())),
    "columns_leaving_as_is": _are_mappings,
    "csv": _is_mapping,
    "person": _is_text,
    "tables": _are_tables,
    "links": _are_links,
    "parts": _are_parts,
    "engine": lambda value: isinstance(value, str) and ENGINE.fullmatch(value) is not None,
    "declaration": is_declaration,
    "figures_withheld": lambda value: value is True,
    "signed_by": lambda value: value is None or is_sha256(value),
    "digest": is_sha256,
}
