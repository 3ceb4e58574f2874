"""The keys of YAML files and manifests are those of the committed list: none is lost, or added, unnoticed.

The list is ``tests/promised_keys.json``. A key that is new is added to it; one that is gone is a broken promise, see
``docs/compatibility.md``, section "Deprecation".
"""

import dataclasses
import json
import re

import pytest

from privacy_assets import Hierarchy, TableContract
from privacy_assets.contract.contract import ROLES
from privacy_assets.release.manifest import MANIFEST_KEYS, MANIFEST_VERSION, OPTIONAL_KEYS
from privacy_assets.release.waivers import Waiver
from tests.shared_data import REPOSITORY, TESTS

PROMISED = json.loads((TESTS / "promised_keys.json").read_text(encoding="utf-8"))
SECTION = re.compile(r"^## `([^`]+)`\n(.*?)(?=^## |\Z)", flags=re.MULTILINE | re.DOTALL)
SAME = re.compile(r"^The same settings are in (.*)\.$", flags=re.MULTILINE)
ROW = re.compile(r"^\| `(\w+)` \| ((?:\\\||[^|])*) \| ((?:\\\||[^|])*) \|", flags=re.MULTILINE)


def keys_of_the_component(page):
    """Return what the page on configuration lists: for each place its fields, and the words that each may be."""
    found = {}
    for place, section in SECTION.findall(page):
        fields = {
            name + (" (required)" if "required" in default else ""): sorted(re.findall(r"`([^`]+)`", takes))
            for name, takes, default in ROW.findall(section)
        }
        same = SAME.search(section)
        for each in [place, *(re.findall(r"`([^`]+)`", same[1]) if same else [])]:
            found[each] = fields
    return found


def flat(places):
    """Return each field, and each word that a field may be, as a path."""
    return {
        path
        for place, fields in places.items()
        for field, words in fields.items()
        for path in (f"{place}.{field}", *(f"{place}.{field} = {word}" for word in words))
    }


def test_the_keys_of_a_release_in_yaml_are_those_of_the_list():
    # A test of the component holds that the page is what the code takes.
    page = (REPOSITORY / "docs" / "configuration.md").read_text(encoding="utf-8")
    promised, found = flat(PROMISED["component"]), flat(keys_of_the_component(page))
    assert sorted(promised - found) == []
    assert sorted(found - promised) == []
    assert len(found) > 250


def test_a_page_is_read_with_its_choices_and_its_other_places():
    page = (
        "## `a`\n\nWords.\n\nThe same settings are in `b`, `c.<name>`.\n\n| field | takes | default | meaning |\n"
        "|---|---|---|---|\n| `x` | `one`, `two` or text | **required** | It. |\n| `y` | number | `1` | It. |\n\n"
        "## `d`\n| `z` | settings |  | It. |\n"
    )
    fields = {"x (required)": ["one", "two"], "y": []}
    assert keys_of_the_component(page) == {"a": fields, "b": fields, "c.<name>": fields, "d": {"z": []}}


@pytest.mark.parametrize("settings", PROMISED["hierarchies"], ids=json.dumps)
def test_hierarchies_are_given_as_before(settings):
    assert isinstance(Hierarchy.from_settings(settings), Hierarchy)


@pytest.mark.parametrize("scale", PROMISED["scales"], ids=json.dumps)
def test_scales_are_given_as_before(scale):
    column = {"type": "integer", "role": "quasi_identifier", "scale": scale}
    assert TableContract.from_mapping({"columns": {"age": column}}).released_columns


def test_roles_waivers_and_manifests_have_the_keys_of_the_list():
    assert sorted(ROLES) == PROMISED["roles"]
    assert sorted(field.name for field in dataclasses.fields(Waiver) if field.name != "file") == PROMISED["waiver"]
    assert sorted(MANIFEST_KEYS | OPTIONAL_KEYS) == PROMISED["manifest"][str(MANIFEST_VERSION)]
