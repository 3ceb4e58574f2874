"""Related tables in a release: what its manifest says of them, and whether its files are those tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from privacy_assets.contract.related import RelatedTables, artifact_of, broken_links, named


def described_tables(tables: RelatedTables) -> dict[str, Any]:
    """Return what a manifest says of related tables: their files, rows and fingerprints, and how they are linked."""
    fingerprints = tables.to_artifact().fingerprints
    described = {
        name: {"file": f"{name}.parquet", "rows": len(own), "fingerprint": fingerprints[name]}
        for name, own in tables.tables.items()
    }
    return {"person": tables.person, "tables": described, "links": tables.links}


def related_problems(frames: Mapping[str, pd.DataFrame], manifest: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the tables of a release as read: each of them, the whole, and how they are linked."""
    artifact = artifact_of(frames, manifest["person"], manifest["links"])
    found = artifact.fingerprints
    problems = [
        f"the table {name!r} does not have the recorded fingerprint"
        for name, own in manifest["tables"].items()
        if found[name] != own["fingerprint"]
    ]
    problems += [
        f"the table {name!r} does not have the recorded number of rows"
        for name, own in manifest["tables"].items()
        if len(frames[name]) != own["rows"]
    ]
    if artifact.digest != manifest["fingerprint"]:
        problems.append("the tables as a whole do not have the recorded fingerprint")
    return problems + broken_links(frames, manifest["person"], manifest["links"])


def recorded_columns(name: str, manifest: Mapping[str, Any]) -> list[str]:
    """Return the recorded columns of one table of a release."""
    own = [each["column"] for each in manifest["columns"] if each.get("table") == name]
    return [column.removeprefix(named(name, "")) for column in own]


def records_in_words(manifest: Mapping[str, Any]) -> str:
    """Say how many records a release has; of related tables, how many people, and rows of each other table."""
    if "tables" not in manifest:
        return f"{manifest['n_records']:,} records"
    rows = [f"{own['rows']:,} rows of {name}" for name, own in manifest["tables"].items() if name in manifest["links"]]
    return f"{manifest['n_records']:,} synthetic people with {' and '.join(rows)}"
