import re

import yaml

from privacy_assets.orchestration.component import reference
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.component.fields import in_yaml
from privacy_assets.orchestration.component.reference import configuration_reference
from tests.orchestration.component.yaml_cases import models_of
from tests.shared_data import REPOSITORY


def test_the_reference_page_is_up_to_date():
    page = (REPOSITORY / "docs" / "configuration.md").read_text()
    assert page == configuration_reference(), (
        "run python -m privacy_assets.orchestration.component.reference > docs/configuration.md"
    )


def test_the_module_names_the_command_that_prints_the_page():
    assert f"``python -m {reference.__name__}``" in reference.__doc__


def test_the_reference_has_a_row_for_every_field_of_every_model():
    rows = re.findall(r"(?m)^\| `(\w+)` \| .+ \| .* \| .+\. \| `.+` \|$", configuration_reference())
    assert len(rows) == sum(len(model.model_fields) for model in set(models_of(PrivacyReleaseComponent)))


def test_values_in_one_line_are_the_values_again():
    texts = [
        "",
        "a b",
        "a: b",
        "1",
        "true",
        "no",
        "off",
        "~",
        "[x]",
        "#5",
        "it's",
        'say "no"',
        "c:\\d",
        "2026-01-01",
        "1e5",
    ]
    for value in (*texts, 5, 0.5, True, None, ["a", 1], {"a": {"b": [1]}}):
        assert yaml.safe_load(in_yaml(value)) == value
