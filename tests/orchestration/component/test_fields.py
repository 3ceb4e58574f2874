"""Every field of the component: a right value reaches the release, a wrong one is said in words."""

from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from dagster.components.core.component_tree import ComponentTree

from privacy_assets.anonymization.settings import LDiversity
from privacy_assets.orchestration.component.anonymized import (
    AnonymizedYaml,
    LDiversityYaml,
    OtherReleaseYaml,
    ReidentificationYaml,
    SemanticRiskYaml,
)
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.component.source import LimitYaml, RequiredYaml
from privacy_assets.orchestration.component.synthetic import AssessmentYaml
from privacy_assets.orchestration.component.yaml_settings import YamlSettings
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings import anonymized as anonymized_settings
from privacy_assets.orchestration.settings import release as settings
from privacy_assets.release.policy import Limit, RequiredSettings
from tests.orchestration.component.yaml_cases import BASE, CASES, MORE_WRONG, install_objects

install_objects()
jsonschema = pytest.importorskip("jsonschema", reason="comes with dagster-dg-cli (extra `dev`)")
SCHEMA = jsonschema.Draft202012Validator(PrivacyReleaseComponent.get_model_cls().model_json_schema())
CONTEXT = ComponentTree.for_test().load_context


def arguments_of(attributes):
    component = PrivacyReleaseComponent.from_attributes_dict(attributes=attributes, context=CONTEXT)
    return component.arguments(Path("people"), Path("/project"))


def said_about(attributes):
    """Return what `dg check yaml` or, where it finds nothing, the load says."""
    found = [error.message for error in SCHEMA.iter_errors(attributes)]
    if found:
        return " ".join(found)
    with pytest.raises(Exception) as raised:
        build_release_definitions(**arguments_of(attributes))
    return str(raised.value)


def comparable(arguments):
    contract = arguments["contract"]
    columns = {
        name: (
            str(column.dtype.type),
            getattr(column.dtype.type, "ordered", None),
            str(getattr(column.dtype.type, "categories", None)),
            column.checks,
            column.nullable,
            column.unique,
            column.metadata,
        )
        for name, column in contract.schema.columns.items()
    }
    return arguments | {"contract": str(columns)}


@pytest.mark.parametrize("field", CASES)
def test_a_right_value_reaches_the_release(field):
    right, _, _ = CASES[field]
    attributes = BASE | right
    assert [error.message for error in SCHEMA.iter_errors(attributes)] == []
    arguments = arguments_of({name: value for name, value in attributes.items() if value is not None})
    build_release_definitions(**arguments)
    assert comparable(arguments) != comparable(arguments_of(BASE))


@pytest.mark.parametrize("field", CASES)
def test_a_wrong_value_is_said(field):
    _, wrong, message = CASES[field]
    assert message
    assert message in said_about(BASE | wrong)


@pytest.mark.parametrize(("wrong", "message"), MORE_WRONG)
def test_what_only_the_values_can_tell_is_said(wrong, message):
    attributes = {name: value for name, value in (BASE | wrong).items() if value is not None}
    # `dagster dev` asks no schema: the load says it, whatever `dg check yaml` finds.
    with pytest.raises(Exception) as raised:
        build_release_definitions(**arguments_of(attributes))
    assert message in str(raised.value)


def test_every_field_has_a_case():
    models = [
        PrivacyReleaseComponent,
        *(each for each in YamlSettings.__subclasses__() if each.__module__.startswith("privacy_assets")),
    ]
    named = {f"{model.__name__}.{name}" for model in models for name in model.model_fields}
    assert set(CASES) == named


@pytest.mark.parametrize(
    ("model", "stands_for", "renamed"),
    [
        (AnonymizedYaml, anonymized_settings.AnonymizationSettings, {"l_diversity_by_column"}),
        (ReidentificationYaml, anonymized_settings.ReidentificationSettings, set()),
        (SemanticRiskYaml, anonymized_settings.SemanticRiskSettings, set()),
        (OtherReleaseYaml, anonymized_settings.OtherReleaseSettings, {"masks", "model"}),
        (AssessmentYaml, settings.AssessmentSettings, set()),
        (LDiversityYaml, LDiversity, set()),
        (LimitYaml, Limit, set()),
        (RequiredYaml, RequiredSettings, set()),
    ],
)
def test_fields_and_defaults_are_those_of_the_settings_they_stand_for(model, stands_for, renamed):
    defaults = {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(stands_for)
    }
    for name, info in model.model_fields.items():
        if name not in renamed:
            expected = defaults.pop(name)
            found = MISSING if info.is_required() else info.get_default(call_default_factory=True)
            assert found == (list(expected) if isinstance(expected, tuple) else expected), name
    assert set(defaults) <= renamed


def test_every_argument_of_the_factory_can_be_written():
    import inspect

    taken = set(inspect.signature(build_release_definitions).parameters)
    assert set(arguments_of(BASE)) == taken
