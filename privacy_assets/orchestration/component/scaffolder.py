"""The output of `dg scaffold defs privacy_assets.PrivacyReleaseComponent <folder>`: a release to fill in."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import dagster as dg

from privacy_assets.drafting.yaml_text import entry_in_yaml, in_yaml
from privacy_assets.errors import PrivacyAssetsError
from privacy_assets.orchestration.component.drafted import (
    DraftParams,
    drafted_table,
    fields_in_yaml,
    forecast_of,
    refuse_in_a_sentence,
    release_in_yaml,
)
from privacy_assets.orchestration.component.fields import YamlField, fields_of
from privacy_assets.orchestration.component.yaml_settings import YamlSettings

WIDTH = 110
HEAD = """\
# A release of a table about people. Replace source, contract and policy with your own; commented lines are
# optional. Remove the one # at the start of a line to use it. `dg check yaml` shows errors by line.
"""
DRAFTED_HEAD = """\
# A release of a table about people, drafted from the table. Decide the roles in the contract and the policy; commented
# lines are optional. Remove the one # at the start of a line to use it. `dg check yaml` shows errors by line.
"""
NOTHING: Mapping[str, str] = MappingProxyType({})
ComponentType = TypeVar("ComponentType", bound=YamlSettings)


class PrivacyReleaseScaffolder(dg.Scaffolder[Any]):
    """Write the `defs.yaml` of a component, which a subclass names.

    From a table it is a short draft, with ``all`` one that explains each field; without a table it is an example.
    """

    component: ClassVar[type[YamlSettings]]

    @classmethod
    def get_scaffold_params(cls) -> type[DraftParams]:
        """Return the options of `dg scaffold`."""
        return DraftParams

    def scaffold(self, request: dg.ScaffoldRequest[Any]) -> None:
        """Write the file; Dagster scaffolds a component in Python."""
        if request.scaffold_format != "yaml":
            dg.scaffold_component(request)
            return
        drafted, is_explained = _drafted(request), getattr(request.params, "all", False)
        text = (
            scaffold_text(self.component, request.type_name, drafted)
            if is_explained or not drafted
            else release_in_yaml(drafted, request.type_name)
        )
        if not request.append:
            (request.target_path / "defs.yaml").write_text(text)
            return
        with request.target_path.open("a") as file:
            file.write(f"---\n{text}")


def scaffolded(component: type[ComponentType]) -> type[ComponentType]:
    """Let `dg scaffold` write a component of this class with its fields explained."""
    scaffolder = type("PrivacyReleaseScaffolder", (PrivacyReleaseScaffolder,), {"component": component})
    return dg.scaffold_with(scaffolder)(component)


def _drafted(request: dg.ScaffoldRequest[Any]) -> Mapping[str, str]:
    """Draft fields from a table, if one is given; if that fails, leave no folder behind."""
    refusal: Exception | None = None
    try:
        found = drafted_table(request.params, request.project_root or Path.cwd())
    except PrivacyAssetsError as error:
        refusal = refuse_in_a_sentence(error)
    if refusal is not None:
        if not request.append and request.target_path.is_dir() and not any(request.target_path.iterdir()):
            request.target_path.rmdir()
        raise refusal
    if found is None:
        return NOTHING
    return fields_in_yaml(found.source, found.draft, forecast_of(found), brief=not request.params.all)


def scaffold_text(component: type[YamlSettings], type_name: str, drafted: Mapping[str, str] = NOTHING) -> str:
    """Return the file: the fields that a release needs, and the others as comments.

    ``drafted`` are fields in YAML that were drafted from a table; they replace the examples.
    """
    explained: dict[type[YamlSettings], str] = {}
    lines: list[str] = []
    for field in fields_of(component):
        if field.name in drafted:
            lines += ["", *_explanation(field, explained), *drafted[field.name].splitlines()]
        else:
            lines += ["", *_field(field, explained)]
    body = textwrap.indent("\n".join(lines).strip("\n"), "  ")
    head = DRAFTED_HEAD if drafted else HEAD
    return f"{head}type: {type_name}\n\nattributes:\n{body}\n"


def _field(field: YamlField, explained: dict[type[YamlSettings], str]) -> Iterator[str]:
    """Write a field of the component; optional fields are comments."""
    first, *others = field.examples
    is_used = field.required or field.name in ("source", "split")
    yield from _explanation(field, explained)
    yield from _used(_written(field, first, explained), is_used=is_used)
    for other in others:
        yield from _comment(f"Or {field.name} with settings of its own:")
        yield from _used(_written(field, other, explained), is_used=False)


def _written(field: YamlField, example: Any, explained: dict[type[YamlSettings], str]) -> Iterator[str]:
    """Write a field with an example, and explain the settings inside it the first time they come."""
    model = field.settings
    if field.entries and not isinstance(example, str):
        yield f"{field.name}:"
        if field.entries == "mapping":
            yield from (f"  {entry_in_yaml(name, each)}" for name, each in example.items())
        else:
            yield from (f"  - {in_yaml(each)}" for each in example)
    elif model is None or not isinstance(example, Mapping) or model in explained:
        yield entry_in_yaml(field.name, example)
    else:
        explained[model] = field.name
        yield f"{field.name}:"
        for each in fields_of(model):
            is_used = each.name in example
            lines = list(_explanation(each, explained))
            lines += _used(_written(each, example.get(each.name, each.example), explained), is_used=is_used)
            yield from (f"  {line}" for line in lines)


def _explanation(field: YamlField, explained: dict[type[YamlSettings], str]) -> Iterator[str]:
    model = field.settings
    known = f" Settings as in {explained[model]}." if model is not None and model in explained else ""
    yield from _comment(field.description + known)
    if model is not None and field.entries and model not in explained:
        explained[model] = field.name
        for each in fields_of(model):
            yield from _comment(f"  {each.name}: {each.description}", " " * 6)


def _used(lines: Iterable[str], *, is_used: bool) -> Iterator[str]:
    return (line if is_used else f"#{line}" for line in lines)


def _comment(text: str, further: str = "") -> Iterator[str]:
    wrapped = textwrap.wrap(text, WIDTH, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)
    return (f"# {line}" for line in wrapped)
