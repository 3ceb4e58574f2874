"""A release as a dataset of Croissant 1.1, which libraries of machine learning load, with fields of Croissant RAI."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from privacy_assets.contract.related import named
from privacy_assets.release.formats.described import (
    admitted_in_words,
    made_in_words,
    measures_in_words,
    open_points,
    release_uri,
    title_of,
)
from privacy_assets.release.manifest import data_files

CONFORMS_TO: Final = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")
OWN_TERMS: Final = (
    *("arrayShape", "citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileObject"),
    *("fileProperty", "fileSet", "format", "includes", "isArray", "isLiveDataset", "jsonPath", "key", "md5"),
    *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace", "samplingRate", "separator"),
    *("source", "subField", "transform"),
)
CONTEXT: Final[Mapping[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    **{term: f"cr:{term}" for term in OWN_TERMS},
}
"""The context that the specification recommends: readers warn about any other."""
MEDIA_TYPES: Final = {"csv": "text/csv", "parquet": "application/x-parquet"}
TYPES: Final = {"int": "sc:Integer", "float": "sc:Float", "bool": "sc:Boolean", "datetime": "sc:DateTime"}
"""Types by the beginning of the name of a column's type; all others are texts and categories."""
RECORDS: Final = "records"


def croissant_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dataset as JSON-LD, with a record set of the released columns; files are relative to its place.

    License, creator and address, which the specification requires, are not in a manifest: readers warn about them.
    A table in parts is a set of local files.

    References
    ----------
    .. [1] MLCommons (2026), "Croissant Format Specification 1.1", sections Dataset-level information, FileObject,
       FileSet, RecordSet and Field.
    .. [2] MLCommons (2024), "Croissant RAI specification 1.0".
    """
    declared = manifest.get("declaration", {})
    stated = {
        "rai:dataCollection": made_in_words(manifest),
        "rai:dataPreprocessingProtocol": [made_in_words(manifest)],
        "rai:personalSensitiveInformation": measures_in_words(manifest),
        "rai:dataLimitations": open_points(manifest),
        "rai:dataUseCases": declared.get("purpose"),
        "rai:dataReleaseMaintenancePlan": _maintenance(declared),
    }
    return {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "name": title_of(manifest),
        "description": admitted_in_words(manifest),
        "conformsTo": list(CONFORMS_TO),
        "identifier": release_uri(manifest),
        "datePublished": manifest["created_at"],
        **{name: value for name, value in stated.items() if value},
        "distribution": [*_files(manifest)],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": name,
                "name": name,
                "field": [
                    _field(name, each, manifest) for each in manifest["columns"] if each.get("table", name) == name
                ],
            }
            for name in manifest.get("tables", (RECORDS,))
        ],
    }


def _files(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    files = [_file(name, manifest["files"][name]) for name in data_files(manifest)]
    if "parts" in manifest:
        table, media_type = f"{manifest['stage']}.parquet", MEDIA_TYPES["parquet"]
        parts = {"@type": "cr:FileSet", "@id": table, "name": table, "encodingFormat": media_type}
        files.append(parts | {"includes": f"{table}/*.parquet"})
    return files


def _file(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{entry['bytes']} B",
        "encodingFormat": MEDIA_TYPES[name.rpartition(".")[2]],
        "sha256": entry["sha256"],
    }


def _field(records: str, column: Mapping[str, Any], manifest: Mapping[str, Any]) -> dict[str, Any]:
    file = f"{manifest['stage']}.parquet"
    name = column["column"]
    if "table" in column:
        name, file = name.removeprefix(named(records, "")), manifest["tables"][records]["file"]
    label = str(column.get("type", "")).lower()
    of = "fileSet" if "parts" in manifest else "fileObject"
    return {
        "@type": "cr:Field",
        "@id": f"{records}/{quote(name, safe='')}",
        "name": name,
        "description": f"Role: {column['role']}.",
        "dataType": next((kind for start, kind in TYPES.items() if label.startswith(start)), "sc:Text"),
        "source": {of: {"@id": file}, "extract": {"column": name}},
    }


def _maintenance(declared: Mapping[str, Any]) -> str:
    named = {"retention": "Retention", "review_by": "Review by"}
    return " ".join(f"{words}: {declared[name]}." for name, words in named.items() if name in declared)
