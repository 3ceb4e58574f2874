"""Every field of the component: a right value reaches the release, a wrong one is said in words."""

import ast
import functools
import inspect
import operator
import re
import traceback
from dataclasses import MISSING, fields
from pathlib import Path

import pytest
from dagster.components.core.component_tree import ComponentTree

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.settings import AnonymizeSettings, LDiversity
from privacy_assets.linkage.audit import audit_linkage
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings.anonymized import (
    AnonymizationSettings,
    OtherReleaseSettings,
    ReidentificationSettings,
)
from privacy_assets.orchestration.settings.asked import Release
from privacy_assets.orchestration.settings.monitoring import MonitoringSettings
from privacy_assets.orchestration.settings.sources import SqlQuery
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings, Split, Synthesis
from privacy_assets.pipeline.settings.linkage import LinkageAuditSettings
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.semantic_risk.assess import assess_semantic_risk
from privacy_assets.semantic_risk.settings import SemanticSettings
from privacy_assets.synthesis.split import split_records
from privacy_assets.synthesis.synthesize import synthesize
from tests.orchestration.component.yaml_cases import ANONYMIZED, BASE, CASES, MORE_WRONG, install_objects, models_of
from tests.shared_data import REPOSITORY

install_objects()
jsonschema = pytest.importorskip("jsonschema", reason="comes with dagster-dg-cli (extra `dev`)")
SCHEMA = jsonschema.Draft202012Validator(PrivacyReleaseComponent.get_model_cls().model_json_schema())
OF_BOUNDS = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
# By default the seed of a relaxed anonymization is drawn; the policy may ask for k.
SAID_OTHERWISE = {AnonymizationSettings: {"k", "seed"}}
CONTEXT = ComponentTree.for_test().load_context


def arguments_of(attributes):
    component = PrivacyReleaseComponent.from_attributes_dict(attributes=attributes, context=CONTEXT)
    return component.arguments(Path("people"), Path("/project"))


def said_about(attributes):
    """Return what `dg check yaml` says, unless it only compares numbers, or else what the load says."""
    found = [error.message for error in SCHEMA.iter_errors(attributes) if error.validator not in OF_BOUNDS]
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
            column.description,
        )
        for name, column in contract.schema.columns.items()
    }
    rules = [(rule.name, rule.written) for rule in contract.rules]
    return arguments | {"contract": str((columns, rules))}


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


def test_the_schema_has_the_bounds_that_the_load_has():
    """Each bound of the schema is one of the settings, too: what it admits is read, what it refuses is refused."""
    n_bounds = 0
    for _, wrong, _ in CASES.values():
        found = [error for error in SCHEMA.iter_errors(BASE | wrong) if error.validator in OF_BOUNDS]
        n_bounds += bool(found)
        if found:
            with pytest.raises(Exception, match=re.escape(str(found[0].instance))):
                build_release_definitions(**arguments_of(BASE | wrong))
    assert n_bounds >= 20


BOUNDED = [
    (model, field, kind, bound)
    for model in dict.fromkeys(models_of(PrivacyReleaseComponent))
    for field, info in model.model_fields.items()
    for kind, bound in (info.json_schema_extra or {}).items()
]


@pytest.mark.parametrize(("model", "field", "kind", "bound"), BOUNDED)
def test_every_bound_of_the_schema_admits_the_examples_and_defaults(model, field, kind, bound):
    compare = {"minimum": operator.ge, "maximum": operator.le, "exclusiveMinimum": operator.gt}
    info = model.model_fields[field]
    given = [*info.examples, info.get_default(call_default_factory=True, validated_data={})]
    numbers = [each for each in given if isinstance(each, int | float)]
    assert numbers
    assert all(compare.get(kind, operator.lt)(each, bound) for each in numbers)


def test_every_field_has_a_case():
    models = set(models_of(PrivacyReleaseComponent))
    named = {f"{model.__name__}.{name}" for model in models for name in model.model_fields}
    assert set(CASES) == named


@pytest.mark.parametrize("field", [each.name for each in fields(Release)])
def test_every_setting_of_a_release_is_read(field):
    """By the settings themselves, by the factory, or by a stage: a key without a reader would do nothing."""
    assert field in read_of_a_release()


@functools.cache
def read_of_a_release():
    """Return the names that the code of the orchestration reads from a release, but not from what was asked for."""
    rooms = REPOSITORY / "privacy_assets" / "orchestration"
    names = set()
    for path in rooms.rglob("*.py"):
        holders = {"release.py": {"self"}, "factory.py": {"asked", "release"}}.get(path.name, {"release"})
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value).removeprefix("storage.") in holders:
                names.add(node.attr)
    return names


@pytest.mark.parametrize(
    ("function", "settings", "n_shared"),
    [
        (anonymize, AnonymizeSettings, 11),
        (anonymize, AnonymizationSettings, 10),
        (assess_mpuccs, AssessmentSettings, 13),
        (assess_semantic_risk, SemanticSettings, 9),
        (assess_semantic_risk, SemanticRiskSettings, 9),
        (assess_reidentification, ReidentificationSettings, 3),
        (audit_linkage, LinkageAuditSettings, 5),
        (split_records, Split, 2),
        (synthesize, Synthesis, 3),
    ],
)
def test_functions_have_the_defaults_of_their_settings(function, settings, n_shared):
    parameters = inspect.signature(function).parameters.values()
    of_function = {each.name: each.default for each in parameters if each.default is not each.empty}
    of_settings = {each.name: each.default for each in fields(settings) if each.default is not MISSING}
    shared = (of_function.keys() & of_settings.keys()) - SAID_OTHERWISE.get(settings, set())
    assert len(shared) == n_shared
    assert {name: of_function[name] for name in shared} == {name: of_settings[name] for name in shared}


@pytest.mark.parametrize("settings", [AnonymizationSettings, AssessmentSettings, OtherReleaseSettings, SqlQuery, Split])
def test_the_help_of_python_says_what_each_field_means(settings):
    head, _, meanings = settings.__doc__.partition("\n\nParameters\n----------\n")
    assert head
    # Fields without a description are for Python alone, where the function explains them.
    for field in [each for each in fields(settings) if each.metadata]:
        assert f"{field.name} : " in meanings
        assert field.metadata["description"] in meanings
    assert ("\n\nRaises\n------\n" in meanings) == (settings is SqlQuery)


def test_what_is_written_in_yaml_is_read_into_the_settings_themselves():
    attributes = BASE | {"anonymized": {"k": 3, "l_diversity": {"least": 2}}, "semantic_risk": {}, "monitoring": {}}
    component = PrivacyReleaseComponent.from_attributes_dict(attributes=attributes, context=CONTEXT)
    assert component.anonymized == AnonymizationSettings(k=3, l_diversity=LDiversity(2))
    assert component.semantic_risk == SemanticRiskSettings()
    assert component.monitoring == MonitoringSettings()
    in_python = PrivacyReleaseComponent(**BASE, anonymized=AnonymizationSettings(k=3, l_diversity=LDiversity(2)))
    assert in_python.anonymized == component.anonymized
    with pytest.raises(ValueError, match="Expected AnonymizationSettings or a mapping of its fields"):
        PrivacyReleaseComponent(**BASE, anonymized=3)


@pytest.mark.parametrize(
    ("as_default", "left_out"),
    [
        ({"synthetic": {"control_was_withheld": False}}, {"synthetic": {}}),
        ({"synthetic": {"external": None, "method": "cart"}}, {"synthetic": {"method": "cart"}}),
        (
            {"synthetic": {"external": {"file": "s.csv"}, "control_was_withheld": False, "n_records": None}},
            {"synthetic": {"external": {"file": "s.csv"}}},
        ),
        ({"source": {"asset": "a/b", "io_manager_key": None}}, {"source": {"asset": "a/b"}}),
        (
            {"source": {"file": "people.csv", "format": None, "url_variable": None, "io_manager_key": None}},
            {"source": {"file": "people.csv"}},
        ),
        ({"split": {"seed": 1, "original": None, "control": None}}, {"split": {"seed": 1}}),
    ],
)
def test_a_key_with_null_or_its_default_is_as_if_it_were_not_written(as_default, left_out):
    assert [error.message for error in SCHEMA.iter_errors(BASE | as_default)] == []
    (name,) = as_default
    assert arguments_of(BASE | as_default)[name] == arguments_of(BASE | left_out)[name]


OTHER = {"name": "last", "key": "age", "masks": {"age": {"kind": "exact", "column": "age"}}}
A_SOURCE = "Expected TableFile, SqlQuery, SparkSource, UpstreamAsset, a function or a mapping of their fields"
AN_ANONYMIZATION = "Expected AnonymizationSettings or a mapping of its fields; found int."
WRONG_KINDS = [
    ({"source": "people.csv"}, f"source: {A_SOURCE}; found str."),
    ({"source": "{{ 30712 }}"}, f"source: {A_SOURCE}; found int."),
    ({"split": "text"}, "split: Expected Split, GivenSplit or a mapping of their fields; found str."),
    (
        {"split": {"original": "{{ 30712 }}", "control": {"file": "b.csv"}}},
        f"split.original: {A_SOURCE}; found int.",
    ),
    ({"synthetic": "cart"}, "synthetic: Expected Synthesis, ExternalSynthetic or a mapping of their fields; found str"),
    ({"synthetic": {"external": "people.csv"}}, f"synthetic.external: {A_SOURCE}; found str."),
    (
        ANONYMIZED | {"reidentification": {"other_releases": [OTHER | {"table": "{{ 30712 }}"}]}},
        f"reidentification.other_releases.0.table: {A_SOURCE}; found int.",
    ),
    ({"anonymized": "{{ 30712 }}"}, f"anonymized: {AN_ANONYMIZATION}"),
    ({"generalize_synthetic": "{{ 30712 }}"}, f"generalize_synthetic: {AN_ANONYMIZATION}"),
    (
        {"policy": {"required": "{{ 30712 }}"}},
        "policy.required: Expected a mapping of the fields of RequiredSettings; found int.",
    ),
    (
        {"policy": {"required": "{{ {'control_recordz': 30712} }}"}},
        "policy.required.control_recordz: Extra inputs are not permitted.",
    ),
    ({"assessment": "{{ {'n_cols': [1, 2, 3]} }}"}, "assessment.n_cols: Write max_baseline_cols: 3 instead of n_cols"),
    ({"policy": "{{ {'limits': [30712]} }}"}, "policy.limits.0: Expected Limit or a mapping of its fields; found int."),
    ({"children": "{{ 30712 }}"}, "children: Expected a mapping of names to settings; found int."),
    ({"children": "{{ {'visits': 30712} }}"}, "children: Expected ChildTable or a mapping of its fields; found int."),
    ({"split": "{{ {30: 712} }}"}, "split.30: Keys should be strings."),
    ({"synthetic": {"seed": "{{ 'one' }}"}}, "synthetic.seed: Input should be a valid integer"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG_KINDS)
def test_a_value_of_another_kind_is_refused_at_load_by_its_key_and_not_shown(wrong, message):
    # `dagster dev` asks no schema, and templates are evaluated after it.
    with pytest.raises(Exception) as raised:
        PrivacyReleaseComponent.from_attributes_dict(attributes=BASE | wrong, context=CONTEXT)
    said = str(raised.value).partition("InvalidSettingError: ")[2] or str(raised.value)
    assert said.startswith(message)
    assert "30712" not in said


@pytest.mark.parametrize("name", ["source", "split", "synthetic"])
def test_a_value_of_another_kind_is_refused_in_python(name):
    with pytest.raises(ValueError, match=rf"(?s){name}\n.*or a mapping of their fields; found int\."):
        PrivacyReleaseComponent(**BASE | {name: 3})


def test_settings_and_functions_are_taken_as_they_are():
    objects = {"split": Split(seed=1), "synthetic": Synthesis(seed=2), "source": list}
    component = PrivacyReleaseComponent(**BASE | objects)
    assert {name: getattr(component, name) for name in objects} == objects


def test_every_argument_of_the_factory_can_be_written():
    taken = set(inspect.signature(build_release_definitions).parameters)
    assert set(arguments_of(BASE)) == taken


@pytest.mark.parametrize(
    "given",
    [
        {"source": {"query": "SELECT 1", "url": "postgresql://u:S3CRET@h/db", "nope": 1}},
        {"source": ["postgresql://u:S3CRET@h/db"]},
        {"signing": {"key_file": "a", "password": "S3CRET"}},
        {"signing": ["S3CRET"]},
        {"engine": {"spark": {"remote": "sc://h", "token": "S3CRET"}}},
        {"engine": ["S3CRET"]},
        {"partitions": ["S3CRET"]},
        {"rows_per_part": ["S3CRET"]},
    ],
)
def test_no_error_of_the_load_shows_what_was_written(given):
    with pytest.raises(Exception, match=next(iter(given))) as raised:
        PrivacyReleaseComponent.from_attributes_dict(attributes=BASE | given, context=CONTEXT)
    assert "S3CRET" not in "".join(traceback.format_exception(raised.value))
