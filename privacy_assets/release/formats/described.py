"""What several formats say about a release, from its manifest alone."""

from collections.abc import Mapping
from typing import Any, Final

from privacy_assets.release.gate import Verdict
from privacy_assets.release.related_files import records_in_words

NOT_COLLECTED: Final = "how their records were collected is not stated in the manifest"
ROLES: Final = ("quasi_identifier", "sensitive")


def release_uri(manifest: Mapping[str, Any]) -> str:
    """Return a name for the content of a release; it leads to no page."""
    return f"urn:privacy-assets:release:{manifest['fingerprint']}"


def package_uri(manifest: Mapping[str, Any]) -> str:
    """Return the package URL of the version that released it."""
    return f"pkg:generic/privacy-assets@{manifest['versions']['privacy-assets']}"


def title_of(manifest: Mapping[str, Any]) -> str:
    """Return the name, the side and the partition of a release."""
    return ", ".join(str(manifest[part]) for part in ("release", "stage", "partition") if manifest[part] is not None)


def admitted_in_words(manifest: Mapping[str, Any]) -> str:
    """Return what was released, and under which policy."""
    use_case, is_changed = manifest["policy"]["use_case"], bool(manifest["policy"]["changes"])
    policy = f"the policy {use_case}{' with changes' * is_changed}" if use_case else "a policy of its own"
    records = f"{manifest['n_records']:,} {manifest['stage']} records"
    if "tables" in manifest:
        records = records_in_words(manifest)
    return f"{records}, admitted under {policy}."


def made_in_words(manifest: Mapping[str, Any]) -> str:
    """Return how the records were made from those of people."""
    own = manifest["settings"].get(manifest["stage"], {})
    stated = [f"{name.replace('_', ' ')} {own[name]}" for name in ("method", "k", "max_suppression") if name in own]
    settings = f" ({', '.join(stated)})" if stated else ""
    if manifest["stage"] == "synthetic":
        return f"Drawn from a model of people's records{settings}; {NOT_COLLECTED}."
    return f"People's records, generalized{settings}; {NOT_COLLECTED}."


def measures_in_words(manifest: Mapping[str, Any]) -> list[str]:
    """Return the columns by role and the limits that were decided."""
    named = {role: [each["column"] for each in manifest["columns"] if each["role"] == role] for role in ROLES}
    roles = [f"Columns with the role {role}: {', '.join(columns)}." for role, columns in named.items() if columns]
    limits = [each.reason for each in _decided(manifest) if each.metric is not None]
    return ["Direct identifiers are not released.", *roles, *limits]


def open_points(manifest: Mapping[str, Any]) -> list[str]:
    """Return the conditions and limits that are not met, or that somebody waived."""
    return [each.reason for each in _decided(manifest) if not each.passed or each.waived_by is not None]


def _decided(manifest: Mapping[str, Any]) -> list[Verdict]:
    return [Verdict.from_json(each) for each in manifest["verdicts"]]
