"""How settings are written in YAML: models of the settings classes, with a schema that locates errors.

Dagster lets every setting be a template (``"{{ ... }}"``), which its schema expresses as "this, or any text". With that
schema, a validator reports for a mistyped key only that its whole block is neither, and accepts any text for a number.
The schema here first tests for a template, and otherwise names the one thing that is expected.
"""

import collections.abc
import dataclasses
import functools
import operator
import types
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any, Self, TypeAlias, Union, get_args, get_origin, get_type_hints

import dagster as dg
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from privacy_assets.columns.safe_names import type_name
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.dagster_internals import resolve_fields

FUNCTION: Any = Callable
"""The type of settings that are given as a function."""
Place: TypeAlias = tuple[int | str, ...]
WRITTEN_ELSEWHERE: Mapping[int | str, str] = {"n_cols": "Write max_baseline_cols: 3 instead of n_cols: [1, 2, 3]."}
"""Advice for keys that are named differently in the publications of the methods."""
TEMPLATE: dict[str, Any] = {"type": "string", "pattern": r"\{\{"}
"""Text that Dagster evaluates as a template."""


def _resolve(context: dg.ResolutionContext, value: Any) -> Any:
    return context.resolve_value(value)


# Only the type that YAML is read into is strict; otherwise templates would have to be strict, too.
Whole: TypeAlias = Annotated[int, dg.Resolver(_resolve, model_field_type=StrictInt)]
Flag: TypeAlias = Annotated[bool, dg.Resolver(_resolve, model_field_type=StrictBool)]
Number: TypeAlias = Annotated[int | float, dg.Resolver(_resolve, model_field_type=StrictInt | StrictFloat)]


class YamlSettings(dg.Model, dg.Resolvable):
    """Base class of the models that YAML is read into; unknown keys are errors."""

    # The input may contain a password.
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, hide_input_in_errors=True)

    @classmethod
    def model(cls) -> type[BaseModel]:
        """Return the model that a YAML document is read into."""
        derived: type[BaseModel] = super().model()
        extra = derived.model_config.get("json_schema_extra")
        if isinstance(extra, Mapping):
            title = {"title": cls.__name__, "description": (cls.__doc__ or "").splitlines()[0]}
            derived.model_config["json_schema_extra"] = functools.partial(_pointed, cls, {**extra, **title})
        if not derived.model_config.get("hide_input_in_errors"):
            derived.model_config["hide_input_in_errors"] = True
            derived.model_rebuild(force=True)
        return derived

    @classmethod
    def resolve_from_model(cls, context: dg.ResolutionContext, model: BaseModel) -> Any:
        """Evaluate templates and make the settings; Dagster shows this package's message at the line."""
        resolved = resolve_fields(model, cls, context)
        kept = {name: _text_kept(getattr(model, name, None), value) for name, value in resolved.items()}
        return _placed(context, lambda: _said_plainly(lambda: cls(**kept)))

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Self:
        """Make the settings from plain values; an `InvalidSettingError` names every problem."""
        made: Self = _said_plainly(lambda: cls.model_validate(dict(mapping)))
        return made

    def given(self) -> dict[str, Any]:
        """Return the settings that were written, without defaults."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class WrongFieldsError(InvalidSettingError):
    """Problems of settings, each with the keys that lead to it: enclosing settings can name the whole path."""

    def __init__(self, *problems: tuple[Place, str]) -> None:
        places = [".".join(map(str, place)) for place, _ in problems]
        super().__init__(
            " ".join(f"{place}: {said}" if place else said for place, (_, said) in zip(places, problems, strict=True))
        )
        self.problems = problems

    def below(self, place: Place) -> "WrongFieldsError":
        """Return the same errors with their places in the enclosing settings."""
        return WrongFieldsError(*(((*place, *inner), said) for inner, said in self.problems))


class Written(dg.Resolver):
    """How settings are written in YAML, for the ``Annotated`` type of a field of such settings.

    Dagster reads the YAML into a model of their described fields, and ``make`` makes the settings from it, so that
    errors are shown at their line. Objects of the classes ``settings`` may be given directly. Plain values of the type
    ``or_else`` may be written instead; ``read_plain`` reads them.
    """

    entries = ""
    """Whether the YAML is a list of such settings."""

    def __init__(
        self,
        settings: type[Any] | tuple[type[Any], ...],
        model: type[YamlSettings],
        make: Callable[[YamlSettings], Any],
        or_else: Any = None,
        read_plain: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self.settings = settings if isinstance(settings, tuple) else (settings,)
        self.model, self.make, self.or_else = model, make, or_else
        self._read_plain = read_plain
        self.kind: Any = model.model()
        super().__init__(self._resolve, model_field_type=self.kind if or_else is None else or_else | self.kind)

    def or_plain(self, kind: Any) -> "Written":
        """Return a copy for a field that also takes plain values."""
        return Written(self.settings, self.model, self.make, kind)

    def _resolve(self, context: dg.ResolutionContext, value: Any) -> Any:
        if not isinstance(value, BaseModel):
            return self._read_plain(value)
        model = self.model.resolve_from_model(context, value)
        return _placed(context, lambda: self.make(model))

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        """Let pydantic accept objects of the settings, or a mapping as in YAML."""
        if self.kind in get_args(source):
            # Dagster passes the annotations of a field on to the field of its YAML model.
            schema: core_schema.CoreSchema = handler(source)
            return schema
        return core_schema.no_info_plain_validator_function(self._read)

    def _read(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            value = self.model.from_mapping(value)
        if isinstance(value, self.model):
            return self.make(value)
        if isinstance(value, self.settings) or self.or_else is not None:
            return self._read_plain(value)
        raise WrongFieldsError(((), f"Expected {self._expected}; found {type_name(value)}."))

    @property
    def _expected(self) -> str:
        names = ["a function" if each is FUNCTION else each.__name__ for each in self.settings if each is not dict]
        if not names:
            return f"a mapping of the fields of {self.model.__name__}"
        return f"{', '.join(names)} or a mapping of {'its' if len(names) == 1 else 'their'} fields"


class WrittenList(Written):
    """How a list of settings, or a word instead, is written; Dagster would not report the errors in either."""

    entries = "list"

    def __init__(self, each: Written, or_else: Any) -> None:
        super().__init__(each.settings, each.model, each.make, or_else)
        self.kind = list[self.kind]  # type: ignore[name-defined]
        self.model_field_type = or_else | self.kind

    def _resolve(self, context: dg.ResolutionContext, value: Any) -> Any:
        if not isinstance(value, list):
            return value
        return [Written._resolve(self, context.at_path(place), each) for place, each in enumerate(value)]

    def _read(self, value: Any) -> Any:
        return tuple(map(super()._read, value)) if isinstance(value, list | tuple) else value


class WrittenMapping(Written):
    """How a mapping of settings by name is written."""

    entries = "mapping"

    def __init__(self, each: Written) -> None:
        super().__init__(each.settings, each.model, each.make)
        self.model_field_type = self.kind = dict[str, self.kind]  # type: ignore[name-defined]

    def _resolve(self, context: dg.ResolutionContext, value: Any) -> Any:
        return {name: Written._resolve(self, context.at_path(name), each) for name, each in value.items()}

    def _read(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise WrongFieldsError(((), f"Expected a mapping of names to settings; found {type_name(value)}."))
        return {name: Written._read(self, each) for name, each in value.items()}


def written(
    settings: type[Any],
    *,
    kinds: Mapping[str, Any] = MappingProxyType({}),
    read: Mapping[str, Callable[[Any], Any]] = MappingProxyType({}),
    names: Mapping[str, str] = MappingProxyType({}),
    check: Callable[[Any], None] | None = None,
) -> Written:
    """Return how a dataclass of settings is written: with the fields that `setting` describes, read strictly.

    ``kinds``, ``read`` and ``names`` are the types, readers and names of fields whose YAML differs from Python;
    ``check`` raises if the settings are wrong.
    """
    model = model_of(settings, kinds, names)
    own_names = {as_written: name for name, as_written in names.items()}

    def make(given: YamlSettings) -> Any:
        values = {own_names.get(name, name): value for name, value in given.given().items()}
        for name, reader in read.items():
            if values.get(name) is not None:
                values[name] = reader(values[name])
        made = settings(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})
        if check is not None:
            check(made)
        return made

    return Written(settings, model, make)


def model_of(
    settings: type[Any],
    kinds: Mapping[str, Any],
    names: Mapping[str, str],
    defaults: Mapping[str, Any] = MappingProxyType({}),
) -> type[YamlSettings]:
    """Return the model of the fields that `setting` describes, see `written`; ``defaults`` are those only of YAML."""
    hints = get_type_hints(settings)
    described: dict[str, Any] = {}
    for each in dataclasses.fields(settings):
        if each.metadata:
            found = {"default": defaults.get(each.name, each.default), "default_factory": each.default_factory}
            about: dict[str, Any] = {key: value for key, value in found.items() if value is not dataclasses.MISSING}
            kind = kinds.get(each.name) or _strict(hints[each.name])
            described[names.get(each.name, each.name)] = (kind, Field(**about, **each.metadata))
    return create_model(
        settings.__name__, __base__=YamlSettings, __doc__=settings.__doc__, __module__=settings.__module__, **described
    )


def written_as_one_of(
    name: str, description: str, choose: Callable[[Mapping[str, Any]], str], /, **alternatives: Written
) -> Written:
    """Return how one of several kinds of settings is written: with the fields of exactly one kind.

    ``choose`` names the kind that has the given fields, none of which is null, or raises.
    """
    described: dict[str, Any] = {}
    for each in alternatives.values():
        for field, info in each.model.model_fields.items():
            shown = Field(description=info.description, examples=info.examples)
            optional = (info.rebuild_annotation() | None, FieldInfo.merge_field_infos(shown, default=None))
            described[field] = optional if info.is_required() else (info.rebuild_annotation(), info)
    model = create_model(name, __base__=YamlSettings, __doc__=description, **described)

    def make(given: YamlSettings) -> Any:
        values = {field: value for field, value in given.given().items() if value is not None}
        chosen = alternatives[_chosen(choose, values)]
        own = {field: value for field, value in values.items() if field in chosen.model.model_fields}
        return chosen.make(chosen.model.from_mapping(own))

    return Written(tuple(kind for each in alternatives.values() for kind in each.settings), model, make)


def _chosen(choose: Callable[[Mapping[str, Any]], str], values: Mapping[str, Any]) -> str:
    problem = ""
    try:
        return choose(values)
    except InvalidSettingError as error:
        problem = str(error)
    raise WrongFieldsError(((), problem))


def _strict(annotation: Any) -> Any:
    """Return the type that accepts YAML values of a type, without converting other values to it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return functools.reduce(operator.or_, map(_strict, arguments))
    if origin in (tuple, collections.abc.Sequence):
        return list[_strict(arguments[0])]  # type: ignore[misc]
    if origin is collections.abc.Mapping:
        return dict[str, _strict(arguments[1])]  # type: ignore[misc]
    if dataclasses.is_dataclass(annotation) and any(each.metadata for each in dataclasses.fields(annotation)):
        return Annotated[annotation, written(annotation)]  # type: ignore[arg-type]
    return {int: Whole, float: Number, bool: Flag}.get(annotation, annotation)


def _text_kept(written: Any, resolved: Any) -> Any:
    """Return the values of templates, and all other text as written: Dagster turns the text ``"1"`` into a number."""
    if isinstance(written, str) and isinstance(resolved, int | float | str | list | tuple | dict | set | None):
        return resolved if "{{" in written or "{%" in written else written
    if isinstance(written, list | tuple) and isinstance(resolved, list | tuple):
        return [_text_kept(*pair) for pair in zip(written, resolved, strict=True)]
    if isinstance(written, dict) and isinstance(resolved, dict):
        return {name: _text_kept(value, resolved[name]) for name, value in written.items()}
    return resolved


def _said_plainly(make: Callable[[], Any]) -> Any:
    problems: list[tuple[Place, str]] = []
    try:
        return make()
    except ValidationError as error:
        problems = [problem for each in error.errors() for problem in _problems(each)]
    raise WrongFieldsError(*problems)


def _problems(error: Any) -> tuple[tuple[Place, str], ...]:
    """Return the messages of one pydantic error with their places."""
    own, place = error.get("ctx", {}).get("error"), error["loc"]
    if isinstance(own, WrongFieldsError):
        return own.below(place).problems
    if error["type"] == "extra_forbidden" and place and place[-1] in WRITTEN_ELSEWHERE:
        return ((place, WRITTEN_ELSEWHERE[place[-1]]),)
    # Messages of this package already name the setting.
    return (((), str(own)) if isinstance(own, InvalidSettingError) else (place, f"{error['msg']}."),)


def _placed(context: dg.ResolutionContext, make: Callable[[], Any]) -> Any:
    """Add the place in the file to an error that does not name it yet."""
    problem = ""
    try:
        return make()
    except WrongFieldsError as error:
        # In a file, the settings of the component are under `attributes`.
        place = context.path[1:] if context.path[:1] == ["attributes"] else context.path
        problem = str(error.below(tuple(place)))
    raise InvalidSettingError(problem)


def _pointed(settings: type[YamlSettings], extra: Mapping[str, Any], schema: dict[str, Any]) -> None:
    """Rewrite the schema of a model in place: a template, or one kind of value after the other."""
    schema.update(extra)
    for name, described in schema.get("properties", {}).items():
        field = settings.model_fields[name]
        bounds = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        described |= {"description": field.description, "examples": field.examples, **bounds}
        variants = described.pop("anyOf", None)
        if variants is None:
            continue
        text = {"type": "string"}
        others = [variant for variant in _flat(variants) if variant != text]
        if _takes_text(field.annotation):
            nulls = [variant for variant in others if variant == {"type": "null"}]
            described |= _by_kind([*(variant for variant in others if variant not in nulls), text, *nulls])
        else:
            described |= {"if": TEMPLATE, "else": _by_kind(others)}


def _by_kind(variants: list[dict[str, Any]]) -> dict[str, Any]:
    """Test for mappings and lists by their type, so that errors inside them are shown at their place."""
    scalars: list[tuple[Any, dict[str, Any]]] = []
    chained: list[tuple[Any, dict[str, Any]]] = []
    for variant in variants:
        kind = "object" if "$ref" in variant else variant.get("type")
        (chained if kind in ("object", "array") else scalars).append((kind, variant))
    kinds = [kind for kind, _ in (*chained, *scalars)]
    if all(isinstance(kind, str) for kind in kinds) and not any("enum" in variant for _, variant in scalars):
        # Only types: one sentence names them all.
        last: dict[str, Any] = {"type": kinds}
        for _, variant in scalars:
            last |= {key: value for key, value in variant.items() if key != "type"}
    else:
        last = _listed([variant for _, variant in scalars]) or {"anyOf": [variant for _, variant in scalars]}
    if len(chained) == 1 and not scalars:
        only: dict[str, Any] = chained[0][1]
        return only
    for kind, variant in reversed(chained):
        last = {"if": {"type": kind}, "then": variant, "else": last}
    return last


def _flat(variants: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for variant in variants for each in (_flat(variant["anyOf"]) if "anyOf" in variant else [variant])]


def _listed(variants: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Join enumerated values and null into one list of values."""
    values: list[Any] = []
    for variant in variants:
        if "enum" in variant:
            values += variant["enum"]
        elif "const" in variant:
            values.append(variant["const"])
        elif variant == {"type": "null"}:
            values.append(None)
        else:
            return None
    return {"enum": values} if values else None


def _takes_text(annotation: Any) -> bool:
    """Whether a setting takes any text, not only templates."""
    if get_origin(annotation) in (Annotated, Union, types.UnionType):
        return any(_takes_text(each) for each in get_args(annotation))
    return annotation is str


def import_path(path: str, setting: str) -> Any:
    """Import ``package.module:attribute``; a refusal omits the text of the error, because it may contain values."""
    module, _, attribute = path.partition(":")
    if not module or not attribute:
        raise InvalidSettingError(
            f"{setting} is {path!r}, which is not a Python path of the form 'package.module:attribute'."
        )
    problem = ""
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # noqa: BLE001 (whatever the user's module raises)
        problem = type(error).__name__
    raise InvalidSettingError(f"{setting} is {path!r}, which could not be imported: {problem}. Check path and module.")
