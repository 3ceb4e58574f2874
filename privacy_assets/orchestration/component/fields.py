"""The fields of the component as its models describe them, for the scaffold and the reference page."""

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from privacy_assets.drafting.yaml_text import in_yaml
from privacy_assets.orchestration.component.yaml_settings import Written, YamlSettings

WORDS: Mapping[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Any: "any value",
    type(None): "null",
}


@dataclass(frozen=True)
class YamlField:
    """One field of a model: the ``kind`` of its values in words, and the model of its ``settings`` or ``entries``.

    The ``default`` is YAML; None if the field is required, or if the default depends on other settings.
    """

    name: str
    description: str
    kind: str
    required: bool
    default: str | None
    examples: tuple[Any, ...]
    settings: type[YamlSettings] | None
    entries: str

    @property
    def example(self) -> Any:
        """The first example; every field has one."""
        return self.examples[0]


def fields_of(model: type[YamlSettings]) -> Iterator[YamlField]:
    """Describe the fields of a model, in order."""
    for name, info in model.model_fields.items():
        annotation = info.rebuild_annotation()
        settings, entries = _settings(annotation)
        yield YamlField(
            name,
            str(info.description),
            " or ".join(dict.fromkeys(_kinds(annotation))),
            info.is_required(),
            _default(info),
            tuple(info.examples or ()),
            settings,
            entries,
        )


def _default(info: FieldInfo) -> str | None:
    if info.is_required():
        return None
    value = info.get_default(call_default_factory=True, validated_data={})
    return None if value is None or value in ([], (), {}) else in_yaml(value)


def _settings(annotation: Any) -> tuple[type[YamlSettings] | None, str]:
    if isinstance(annotation, type) and issubclass(annotation, YamlSettings):
        return annotation, ""
    for part in getattr(annotation, "__metadata__", ()):
        if isinstance(part, Written):
            return part.model, part.entries
    containers = {list: "list", dict: "mapping"}
    for argument in get_args(annotation):
        found, entries = _settings(argument)
        if found is not None:
            return found, containers.get(get_origin(annotation), entries)
    return None, ""


def _kinds(annotation: Any) -> Iterator[str]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        written = next((part for part in arguments if isinstance(part, Written)), None)
        if written is not None:
            yield f"{written.entries} of settings".removeprefix(" of ")
        yield from _kinds(arguments[0] if written is None else written.or_else)
    elif origin in (Union, types.UnionType):
        for argument in arguments:
            if argument not in (type(None), Any) and not (argument is int and float in arguments):
                yield from _kinds(argument)
    elif origin is Literal:
        yield ", ".join(f"`{each}`" for each in arguments)
    elif origin is list:
        yield f"list of {' or '.join(_kinds(arguments[0]))}"
    elif origin is dict:
        yield f"mapping of {' or '.join(_kinds(arguments[1]))} by name"
    elif isinstance(annotation, type) and issubclass(annotation, YamlSettings):
        yield "settings"
    elif annotation in WORDS:
        yield WORDS[annotation]
