import re

import yaml

from privacy_assets.orchestration.component import reference
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.component.fields import fields_of
from privacy_assets.orchestration.component.reference import configuration_reference
from privacy_assets.orchestration.component.scaffolder import scaffold_text
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


def test_every_example_and_default_is_read_back_from_the_text_of_the_page():
    page = (REPOSITORY / "docs" / "configuration.md").read_text()
    sections = dict(re.findall(r"(?ms)^## `([^`]+)`\n(.*?)(?=^## |\Z)", page))
    places = {"attributes": PrivacyReleaseComponent}
    for model, place in reference._places(PrivacyReleaseComponent, ""):
        if model not in places.values():
            places[place] = model
    assert list(sections) == list(places)
    n_defaults = 0
    for place, model in places.items():
        rows = re.findall(r"(?m)^\| `(\w+)` \| .+? \| (\*\*required\*\*|`.*?`|) \| .+ \| `(.+)` \|$", sections[place])
        fields = list(fields_of(model))
        assert [name for name, _, _ in rows] == [field.name for field in fields]
        for (name, default, example), field in zip(rows, fields, strict=True):
            assert "`" not in example
            assert plain(yaml.safe_load(example.replace("\\|", "|"))) == plain(field.example), (place, name)
            if default.startswith("`"):
                value = model.model_fields[name].get_default(call_default_factory=True, validated_data={})
                assert plain(yaml.safe_load(default.strip("`"))) == plain(value), (place, name)
                n_defaults += 1
    assert n_defaults > 20


def plain(value):
    """Values as YAML has them: sequences are lists, and the types of numbers count."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else (type(value), value)


def under(name, value):
    """Yield the values of a key at any depth."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from under(name, each)
    if isinstance(value, dict):
        yield from (each for key, each in value.items() if key == name)
        for each in value.values():
            yield from under(name, each)


def test_every_example_is_read_back_from_the_scaffold():
    text = scaffold_text(PrivacyReleaseComponent, "privacy_assets.PrivacyReleaseComponent")
    # Not the explanations, which begin with a number sign and a blank.
    lines = re.findall(r"(?m)^(?:#?  )*#?([a-z_]+): (.+)$", text.partition("attributes:")[2])
    fields = [field for model in set(models_of(PrivacyReleaseComponent)) for field in fields_of(model)]
    assert len(lines) > 100
    for name, written in lines:
        examples = [{field.name: each} for field in fields for each in field.examples]
        assert plain(yaml.safe_load(written)) in [plain(each) for each in under(name, examples)], (name, written)
