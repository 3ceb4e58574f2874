"""The reference page of the configuration, written from the models.

``python -m privacy_assets.orchestration.component.reference`` prints it.
"""

import sys
from collections.abc import Iterator

from privacy_assets.drafting.yaml_text import in_yaml
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.component.fields import YamlField, fields_of
from privacy_assets.orchestration.component.yaml_settings import YamlSettings

HEAD = """\
# Configuration

A release in YAML is the file `defs.yaml` in its own folder below the `defs` folder of a Dagster project. This command
starts one, with every field explained in comments:

```sh
dg scaffold defs privacy_assets.PrivacyReleaseComponent people
```

`dg check yaml` shows all errors of one release by line. If a project has several releases, it examines only one file
(Dagster 1.13), so use `dg check defs` there: it loads all files and stops at the first error, with file and line. It
also finds errors that only the whole release shows, such as a key that is defined twice.
Every value may be a template (`"{{ env.SEED }}"`, or a variable of `template_vars_module`); templates may also give a
contract, a policy, a function or a synthesizer as Python objects. `post_processing` changes tags, groups, owners,
descriptions and automation of the assets. Several releases of a project need different names, and the same
`private_path` and `release_path`.

Set `DAGSTER_HOME` to a persistent directory, as for every Dagster project. The release step looks up in the history
there which run made its evidence; without it each `dg launch` has its own history, and a release in a later run is
refused.

This page is generated from the models of the settings.
"""


def configuration_reference() -> str:
    """Return the page in Markdown: a table of fields for the component and for each of its settings."""
    places: dict[type[YamlSettings], list[str]] = {PrivacyReleaseComponent: ["attributes"]}
    for model, place in _places(PrivacyReleaseComponent, ""):
        places.setdefault(model, []).append(place)
    return HEAD + "".join(_section(model, named) for model, named in places.items())


def _places(model: type[YamlSettings], place: str) -> Iterator[tuple[type[YamlSettings], str]]:
    """Yield each model with the places of its settings in the file."""
    for field in fields_of(model):
        if field.settings is not None:
            inner = f"{place}{field.name}" + {"": "", "list": "[]", "mapping": ".<name>"}[field.entries]
            yield field.settings, inner
            yield from _places(field.settings, f"{inner}.")


def _section(model: type[YamlSettings], places: list[str]) -> str:
    lines = [f"\n## {_quoted(places[0])}\n", (model.__doc__ or "").splitlines()[0], ""]
    if len(places) > 1:
        lines += [f"The same settings are in {', '.join(map(_quoted, places[1:]))}.", ""]
    lines += ["| field | takes | default | meaning | example |", "|---|---|---|---|---|"]
    lines += [_row(field) for field in fields_of(model)]
    return "\n".join(lines) + "\n"


def _row(field: YamlField) -> str:
    default = "**required**" if field.required else "" if field.default is None else _quoted(field.default)
    cells = (_quoted(field.name), field.kind, default, field.description, _quoted(in_yaml(field.example)))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _quoted(text: str) -> str:
    return f"`{text}`"


if __name__ == "__main__":
    sys.stdout.write(configuration_reference())
