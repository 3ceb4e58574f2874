import re
import runpy

import pytest
import yaml

from privacy_assets.orchestration.component import reference
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.component.fields import fields_of
from privacy_assets.orchestration.component.reference import configuration_reference, metrics_reference
from privacy_assets.orchestration.component.scaffolder import scaffold_text
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.policy import Limit
from tests.orchestration.component.yaml_cases import models_of
from tests.shared_data import REPOSITORY


def test_the_command_that_the_module_and_the_pages_name_prints_the_tables(capsys):
    command = f"python -m {reference.__name__}"
    assert f"``{command}``" in reference.__doc__
    for page in ("configuration.md", "how-to-limits.md", "disclosure.md"):
        assert f"`{command}`" in (REPOSITORY / "docs" / page).read_text()
    with pytest.warns(RuntimeWarning, match=f"'{reference.__name__}' found in sys.modules"):
        runpy.run_module(reference.__name__, run_name="__main__")
    assert capsys.readouterr().out == "\n".join(write() for write in reference.TABLES.values())


def test_every_metric_has_a_row_that_says_when_it_protects_alone():
    rows = re.findall(r"(?m)^\| `(\w+)` \| .+ \| (\w+) \| ([\w .]+) \| .+ \|$", metrics_reference())
    assert [(name, severity) for name, severity, _ in rows] == [(name, own.severity) for name, own in METRICS.items()]
    for name, _, alone in rows:
        low, high = METRICS[name].low, METRICS[name].high
        if words := re.fullmatch(r"at (?:least|most) ([\d.]+)", alone):
            at = float(words[1])
            step = -0.1 if METRICS[name].direction == "at_least" else 0.1
            assert [Limit(name, at + by, severity="error").protects for by in (0, step)] == [True, False], name
        else:
            some = (max(low, 0) + min(high, 3)) / 2
            direction = "below" if METRICS[name].is_yes_no else None
            assert Limit(name, some, direction, severity="error").protects == {"yes": True, "no": False}[alone], name


def test_the_reference_has_a_row_for_every_field_of_every_model():
    rows = re.findall(r"(?m)^\| `(\w+)` \| .+ \| .* \| .+\. \| `.+` \|$", configuration_reference())
    assert len(rows) == sum(len(model.model_fields) for model in set(models_of(PrivacyReleaseComponent)))


def test_every_example_and_default_is_read_back_from_the_text_of_the_tables():
    sections = dict(re.findall(r"(?ms)^## `([^`]+)`\n(.*?)(?=^## |\Z)", configuration_reference()))
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
