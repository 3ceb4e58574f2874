"""Reference tables of the documentation: the fields of a release in YAML, metrics, and criteria of the disclosure test.

``python -m privacy_assets.orchestration.component.reference`` prints them; the documentation is built with them.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from math import isinf

from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.display.numbers import yes_or_no
from privacy_assets.drafting.yaml_text import in_yaml
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.component.fields import YamlField, fields_of
from privacy_assets.orchestration.component.yaml_settings import YamlSettings
from privacy_assets.release.metrics import METRICS, SIDES


def configuration_reference() -> str:
    """Return Markdown: a table of fields for the component and for each of its settings."""
    places: dict[type[YamlSettings], list[str]] = {PrivacyReleaseComponent: ["attributes"]}
    for model, place in _places(PrivacyReleaseComponent, ""):
        places.setdefault(model, []).append(place)
    return "\n".join(_section(model, named) for model, named in places.items())


def _places(model: type[YamlSettings], place: str) -> Iterator[tuple[type[YamlSettings], str]]:
    """Yield each model with the places of its settings in the file."""
    for field in fields_of(model):
        if field.settings is not None:
            inner = f"{place}{field.name}" + {"": "", "list": "[]", "mapping": ".<name>"}[field.entries]
            yield field.settings, inner
            yield from _places(field.settings, f"{inner}.")


def _section(model: type[YamlSettings], places: list[str]) -> str:
    lines = [f"## {_quoted(places[0])}\n", (model.__doc__ or "").splitlines()[0], ""]
    if len(places) > 1:
        lines += [f"The same settings are in {', '.join(map(_quoted, places[1:]))}.", ""]
    lines += ["| field | takes | default | meaning | example |", "|---|---|---|---|---|"]
    lines += [_row(field) for field in fields_of(model)]
    return "\n".join(lines) + "\n"


def _row(field: YamlField) -> str:
    default = "**required**" if field.required else "" if field.default is None else _quoted(field.default)
    return _cells(_quoted(field.name), field.kind, default, field.description, _quoted(in_yaml(field.example)))


def metrics_reference() -> str:
    """Return Markdown: a table of the metrics that a policy can limit."""
    heads = ("metric", "records", "safe side", "range", "default severity", "protects its side alone", "meaning")
    rows = [_cells(*heads), _cells(*["---"] * len(heads))]
    for name, metric in METRICS.items():
        records = "of both sides" if metric.is_on_both_sides else SIDES[metric.assessment]
        safe = "no" if metric.is_yes_no else metric.direction.replace("_", " ")
        reach = f"from {metric.low:g}" + ("" if isinf(metric.high) else f" to {metric.high:g}")
        alone = yes_or_no(metric.worst_for_copies) if (at := metric.protects_from) is None else f"{safe} {at:g}"
        rows.append(_cells(_quoted(name), records, safe, reach, metric.severity, alone, metric.meaning))
    return "\n".join(rows) + "\n"


def criteria_reference() -> str:
    """Return Markdown: a table of the criteria of the disclosure test."""
    heads = ("criterion", "legal criterion", "score of a real record x", "what helps if it fails")
    rows = [_cells(*heads), _cells(*["---"] * len(heads))]
    rows += [
        _cells(_quoted(name), own.law, own.definition, own.what_helps)
        for name, own in CRITERIA.items()
        if not own.is_of_all_releases
    ]
    return "\n".join(rows) + "\n"


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _quoted(text: str) -> str:
    return f"`{text}`"


TABLES: Mapping[str, Callable[[], str]] = {
    "fields": configuration_reference,
    "metrics": metrics_reference,
    "criteria": criteria_reference,
}
"""By the names of their places in the pages."""

if __name__ == "__main__":
    sys.stdout.write("\n".join(write() for write in TABLES.values()))
