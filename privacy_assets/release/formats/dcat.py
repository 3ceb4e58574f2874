"""A release as a dataset of DCAT-AP 3, with the properties of HealthDCAT-AP that a manifest has."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from privacy_assets.release.formats.described import admitted_in_words, made_in_words, release_uri, title_of
from privacy_assets.release.manifest import REPORT_FILE, data_files

CONTEXT: Final = {
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "dpv": "https://w3id.org/dpv#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "healthdcatap": "http://healthdataportal.eu/ns/health#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "spdx": "http://spdx.org/rdf/terms#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
}
SYNTHETIC: Final = "http://publications.europa.eu/resource/authority/dataset-type/SYNTHETIC_DATA"
MEDIA_TYPES: Final = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
IANA: Final = "http://www.iana.org/assignments/media-types/"
DECLARED_AS: Final = {
    "purpose": ("dpv:hasPurpose", "dpv:Purpose", "dct:description"),
    "legal_basis": ("dpv:hasLegalBasis", "dpv:LegalBasis", "dct:description"),
    "recipient": ("dpv:hasRecipient", "dpv:Recipient", "dct:description"),
    "retention": ("healthdcatap:retentionPeriod", "dct:PeriodOfTime", "rdfs:comment"),
}
"""For a declaration, the property, the class of its value, and the property with the sentence."""


def dcat_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the dataset as JSON-LD; the places of its files are relative to that of this description.

    Publisher, contact, access rights and theme, which catalogs demand in addition, are not in a manifest.

    References
    ----------
    .. [1] SEMIC (2024), "DCAT-AP 3.0", sections Dataset, Distribution and Checksum.
    .. [2] European Commission, "HealthDCAT-AP", release 5, section Dataset.
    .. [3] W3C Data Privacy Vocabularies and Controls Community Group, "Data Privacy Vocabulary", hasPurpose,
       hasLegalBasis and hasRecipient.
    """
    declared = manifest.get("declaration", {})
    people = unique_individuals(manifest)
    return {
        "@context": CONTEXT,
        "@id": release_uri(manifest),
        "@type": "dcat:Dataset",
        "dct:title": title_of(manifest),
        "dct:description": admitted_in_words(manifest),
        "dct:identifier": manifest["fingerprint"],
        "dct:issued": _typed(manifest["created_at"], "dateTime"),
        "dct:provenance": {"@type": "dct:ProvenanceStatement", "rdfs:label": made_in_words(manifest)},
        **({"dct:type": {"@id": SYNTHETIC}} if manifest["stage"] == "synthetic" else {}),
        **{
            name: {"@type": kind, sentence: declared[field]}
            for field, (name, kind, sentence) in DECLARED_AS.items()
            if field in declared
        },
        "healthdcatap:numberOfRecords": _typed(manifest["n_records"], "nonNegativeInteger"),
        **({} if people is None else {"healthdcatap:numberOfUniqueIndividuals": _typed(people, "nonNegativeInteger")}),
        "foaf:page": {"@id": REPORT_FILE, "@type": "foaf:Document"},
        "dcat:distribution": [_distribution(name, manifest["files"][name]) for name in data_files(manifest)],
    }


def unique_individuals(manifest: Mapping[str, Any]) -> int | None:
    """Return the number of people in an anonymized release, rounded down to a multiple of its k.

    None if the manifest does not have it: for synthetic records, which are nobody's, if people have several rows, and
    if figures are withheld.
    """
    k = manifest["settings"].get("anonymized", {}).get("k")
    if manifest["stage"] != "anonymized" or k is None:
        return None
    findings = manifest["figures"].get("unit", {}).get("findings", ())
    is_one_row = any(each["kind"] == "never_repeats" and each["n_values"] == each["n_rows"] for each in findings)
    if manifest["settings"].get("unit") != "rows" and not is_one_row:
        return None
    return int(manifest["n_records"] // k * k)


def _distribution(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    place, media_type = {"@id": quote(name)}, MEDIA_TYPES[name.rpartition(".")[2]]
    return {
        "@type": "dcat:Distribution",
        "dct:title": name,
        "dcat:accessURL": place,
        "dcat:downloadURL": place,
        "dcat:mediaType": {"@id": f"{IANA}{media_type}", "@type": "dct:MediaType"},
        "dcat:byteSize": _typed(entry["bytes"], "nonNegativeInteger"),
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256", "@type": "spdx:ChecksumAlgorithm"},
            "spdx:checksumValue": _typed(entry["sha256"], "hexBinary"),
        },
    }


def _typed(value: Any, kind: str) -> dict[str, str]:
    return {"@type": f"xsd:{kind}", "@value": str(value)}
