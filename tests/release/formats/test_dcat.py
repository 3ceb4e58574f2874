"""``dcat.jsonld``: read by another program, and checked with a shape."""

import hashlib
import json
from pathlib import Path

import pytest
from pyshacl import validate
from rdflib import RDF, Graph, Literal, Namespace, URIRef

from privacy_assets.release.formats.dcat import dcat_of, unique_individuals
from tests.release.formats.released import DECLARED, WRITTEN, declared, manifest_of, release
from tests.release.test_files import RECORD

# These libraries use what they, or others, deprecate.
pytestmark = pytest.mark.filterwarnings(r"ignore::DeprecationWarning:(rdflib|pyshacl|mlcroissant)\b.*")
SHAPE = Path(__file__).with_name("dcat_shape.ttl")
PLACE = "https://example.com/people/"
DCAT, DCT = Namespace("http://www.w3.org/ns/dcat#"), Namespace("http://purl.org/dc/terms/")
SPDX, DPV = Namespace("http://spdx.org/rdf/terms#"), Namespace("https://w3id.org/dpv#")
HEALTH = Namespace("http://healthdataportal.eu/ns/health#")


def graph_of(text):
    return Graph().parse(data=text, format="json-ld", publicID=PLACE)


def conforms(graph):
    return validate(graph, shacl_graph=str(SHAPE), shacl_graph_format="turtle")[0]


def read(directory):
    graph = graph_of((directory / "dcat.jsonld").read_text())
    assert conforms(graph)
    return graph


@pytest.mark.parametrize("rows_per_part", [1_000, 1])
def test_every_file_of_the_data_is_a_distribution_with_its_checksum(tmp_path, rows_per_part):
    directory = release(tmp_path, rows_per_part=rows_per_part)
    graph = read(directory)
    (dataset,) = graph.subjects(RDF.type, DCAT.Dataset)
    found = {}
    for each in graph.objects(dataset, DCAT.distribution):
        sha256 = graph.value(graph.value(each, SPDX.checksum), SPDX.checksumValue)
        found[str(graph.value(each, DCAT.downloadURL)).removeprefix(PLACE)] = str(sha256).lower()
        assert int(graph.value(each, DCAT.byteSize)) > 0
    data = [path for path in directory.rglob("*") if path.suffix in (".csv", ".parquet") and path.is_file()]
    assert len(data) == (2 if rows_per_part > 1 else 3)
    assert found == {
        path.relative_to(directory).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in data
    }
    assert str(dataset) == f"urn:privacy-assets:release:{manifest_of(directory)['fingerprint']}"


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_whatever_a_person_wrote_stays_a_text(tmp_path, text):
    graph = read(release(tmp_path, declared(text)))
    for name in ("hasPurpose", "hasLegalBasis", "hasRecipient"):
        (found,) = graph.objects(None, DPV[name])
        assert graph.value(found, DCT.description) == Literal(text)
    (period,) = graph.objects(None, HEALTH.retentionPeriod)
    assert Literal(text) in set(graph.objects(period))
    assert URIRef("http://example.com/x") not in set(graph.all_nodes())


def test_what_was_not_declared_is_left_out(tmp_path):
    text = (release(tmp_path, RECORD) / "dcat.jsonld").read_text()
    assert "dpv:has" not in text
    assert "retentionPeriod" not in text


def without_a_checksum(made):
    del made["dcat:distribution"][0]["spdx:checksum"]


def of_another_algorithm(made):
    made["dcat:distribution"][1]["spdx:checksum"]["spdx:algorithm"]["@id"] = "spdx:checksumAlgorithm_md5"


def with_a_text_for_a_number(made):
    made["healthdcatap:numberOfRecords"] = "two"


def with_a_purpose_that_is_a_text(made):
    made["dpv:hasPurpose"] = "Teaching"


def with_another_property(made):
    made["dct:license"] = "mine"


def without_files(made):
    made["dcat:distribution"] = []


@pytest.mark.parametrize(
    "damage",
    [
        *(without_a_checksum, of_another_algorithm, with_a_text_for_a_number, with_a_purpose_that_is_a_text),
        *(with_another_property, without_files),
    ],
)
def test_the_shape_finds_what_is_wrong(tmp_path, damage):
    made = json.loads((release(tmp_path, declared("Teaching statistics")) / "dcat.jsonld").read_text())
    assert conforms(graph_of(json.dumps(made)))
    damage(made)
    assert not conforms(graph_of(json.dumps(made)))


def anonymized(manifest, unit="rows", k=5, n_records=23, findings=()):
    return manifest | {
        "stage": "anonymized",
        "n_records": n_records,
        "settings": {"unit": unit, "anonymized": {"method": "mondrian", "k": k}},
        "figures": {"unit": {"findings": list(findings)}},
    }


NEVER_REPEATS = {"kind": "never_repeats", "n_values": 23, "n_rows": 23}


@pytest.mark.parametrize(
    ("settings", "people"),
    [
        ({}, 20),
        ({"n_records": 25}, 25),
        ({"k": 11}, 22),
        ({"k": 24}, 0),
        ({"unit": ["person"], "findings": [NEVER_REPEATS]}, 20),
        # A person has several records, and how many people there are is not in the manifest.
        ({"unit": ["person"]}, None),
        ({"unit": ["person"], "findings": [NEVER_REPEATS | {"kind": "weak"}]}, None),
        ({"unit": ["person"], "findings": [NEVER_REPEATS | {"n_values": 22}]}, None),
    ],
)
def test_people_are_counted_down_to_a_multiple_of_k(tmp_path, settings, people):
    manifest = anonymized(manifest_of(release(tmp_path)), **settings)
    assert unique_individuals(manifest) == people
    made = dcat_of(manifest)
    named = {} if people is None else {"@type": "xsd:nonNegativeInteger", "@value": str(people)}
    assert made.get("healthdcatap:numberOfUniqueIndividuals", {}) == named
    assert "dct:type" not in made


def test_synthetic_records_are_nobodys_and_withheld_figures_count_nobody(tmp_path):
    manifest = manifest_of(release(tmp_path))
    assert unique_individuals(manifest) is None
    assert "SYNTHETIC_DATA" in dcat_of(manifest)["dct:type"]["@id"]
    # Settings of a side are withheld with its figures.
    assert unique_individuals(anonymized(manifest) | {"settings": {"unit": "rows"}, "figures": {}}) is None


def test_each_declaration_has_a_place():
    assert set(DECLARED) == {"purpose", "recipient", "legal_basis", "retention"}
