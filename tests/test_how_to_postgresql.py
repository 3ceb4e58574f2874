"""The YAML of the how-to is a release."""

import re

import pytest
import yaml

from privacy_assets import PrivacyReleaseComponent
from tests.shared_data import REPOSITORY


def test_the_release_of_the_page_loads():
    jsonschema = pytest.importorskip("jsonschema", reason="comes with dagster-dg-cli (extra `dev`)")
    page = (REPOSITORY / "docs" / "how-to-postgresql.md").read_text()
    (block,) = re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)
    described = yaml.safe_load(block)
    assert described["type"] == "privacy_assets.PrivacyReleaseComponent"
    schema = PrivacyReleaseComponent.get_model_cls().model_json_schema()
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(described["attributes"])) == []
    assert PrivacyReleaseComponent.from_attributes_dict(attributes=described["attributes"]).source.url_variable
