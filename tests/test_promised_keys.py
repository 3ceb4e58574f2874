"""No promised key of YAML files is lost, and those of manifests are exactly the promised ones of their version.

The promises are in ``tests/promised_keys.json``. A key that is gone is a broken promise, see ``docs/compatibility.md``,
section "Deprecation". New fields of a release, metrics and criteria are promised once
``python -m tests.test_promised_keys`` has added them, which ``RELEASING.md`` asks for; until then the changelog names
them.
"""

import dataclasses
import json
import re

import pytest

from privacy_assets import Hierarchy, TableContract
from privacy_assets.contract.contract import ROLES
from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.orchestration.component.reference import configuration_reference
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


OF_ONE_RELEASE = [name for name, criterion in CRITERIA.items() if not criterion.is_of_all_releases]
"""Criteria; those that are asked of several releases are named after them."""


def with_new_keys(promises):
    """Return the promises with the fields that a release has now, and with the criteria of the disclosure test."""
    own, now = promises["component"], keys_of_the_component(configuration_reference())
    component = own | {place: own.get(place, {}) | fields for place, fields in now.items()}
    criteria = list(dict.fromkeys([*promises["criteria"], *OF_ONE_RELEASE]))
    return promises | {"component": component, "criteria": criteria}


def flat(places):
    """Return each field, and each word that a field may be, as a path."""
    return {
        path
        for place, fields in places.items()
        for field, words in fields.items()
        for path in (f"{place}.{field}", *(f"{place}.{field} = {word}" for word in words))
    }


def test_the_promised_keys_of_a_release_in_yaml_exist():
    # Tests of the component hold that the tables are what the code takes.
    found = flat(keys_of_the_component(configuration_reference()))
    assert sorted(flat(PROMISED["component"]) - found) == []
    assert len(found) > 250


def test_new_keys_are_added_to_the_promises_and_none_is_taken_away():
    promises = {
        "component": {"split": {"gone": [], "seed": []}, "of_old": {"x": ["y"]}},
        "criteria": ["gone"],
        "roles": ["other"],
    }
    added = with_new_keys(promises)
    assert (added["roles"], added["criteria"]) == (
        ["other"],
        ["gone", *(name for name, each in CRITERIA.items() if not each.is_of_all_releases)],
    )
    found = keys_of_the_component(configuration_reference())
    assert added["component"] == {**found, "split": {"gone": [], **found["split"]}, "of_old": {"x": ["y"]}}
    assert flat(with_new_keys(PROMISED)["component"]) == flat(found)


def test_the_changelog_names_what_is_not_promised_yet():
    top = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    now = with_new_keys(PROMISED)
    new = flat(now["component"]) - flat(PROMISED["component"]) | set(now["criteria"]) - set(PROMISED["criteria"])
    # The settings of a new setting are not named again, if they are those of another, such as a source.
    own = {path for path in new if not any(path.startswith(f"{other}.") for other in new)}
    names = {re.split(r" = |\.", path.removesuffix(" (required)"))[-1] for path in own}
    assert {name for name in names if f"`{name}`" not in top} == set()


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


def test_roles_criteria_waivers_and_manifests_have_the_keys_of_the_list():
    assert set(PROMISED["criteria"]) <= set(CRITERIA)
    assert set(PROMISED["roles"]) <= set(ROLES)
    assert set(PROMISED["waiver"]) <= {field.name for field in dataclasses.fields(Waiver)} - {"file"}
    assert sorted(MANIFEST_KEYS | OPTIONAL_KEYS) == PROMISED["manifest"][str(MANIFEST_VERSION)]


if __name__ == "__main__":
    (TESTS / "promised_keys.json").write_text(json.dumps(with_new_keys(PROMISED), indent=1) + "\n", encoding="utf-8")
