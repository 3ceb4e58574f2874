"""Tables of the documentation from the figures that benchmarks keep in ``results/``.

``python -m benchmarks.result_tables`` prints them; the documentation is built with them.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.campaigns.undoable import FAILURES, FAMILIES, OUTCOMES, key_of
from benchmarks.campaigns.undoable_changes import LATER, TRANSFORMATIONS
from benchmarks.measurements import RESULTS
from privacy_assets import __version__

LEAKS = {
    "copies_0_3_percent": "copies of 0.3 % of the originals",
    "copies_1_percent": "copies of 1 %",
    "near_copies_1_percent": "near copies of 1 % (one or two values are another original's)",
    "near_copies_5_percent_1_value": "near copies of 5 %, one value changed",
    "near_copies_5_percent_2_values": "near copies of 5 %, two values changed",
    "smote": "interpolated people (SMOTE, 5 neighbors)",
    "cart": "CART, leaves of 5",
    "copula": "Gaussian copula",
}
"""What `benchmarks/disclosure.py` makes, by the names of its figures."""


def changes_tried() -> str:
    """Return Markdown: what a recipient can undo, by family, with the outcomes of the kept run."""
    figures = figures_of("undoable")
    shown = [outcome for outcome in reversed(OUTCOMES) if outcome not in FAILURES]
    rows = []
    for family in FAMILIES:
        own = [each for each in TRANSFORMATIONS if each.family == family]
        counts = {name: sum(figures[key_of(each, name)] for each in own) for name in OUTCOMES}
        failed = sum(counts[name] for name in FAILURES)
        changes = ", ".join(dict.fromkeys(each.name for each in own))
        rows.append([family, changes, sum(counts.values()), *(counts[name] for name in shown), failed])
    return _table(["family", "changes", "pairs", *shown, "better, changed or unexplained"], rows)


def changes_not_tried() -> str:
    """Return Markdown: what a recipient may be able to undo, and what is missing to judge it."""
    return _table(["change", "undone by", "what is missing"], LATER)


def score_by_width() -> str:
    """Return Markdown: the score of the mpUCC assessment by the number of columns, next to that of other people."""
    figures = figures_of("score_by_width")
    names = ("privacy_risk_score", "score_at_control_size", "score_of_control", "score_beyond_control")
    widths = sorted({int(name.split("_")[1]) for name in figures if name.startswith("columns_")})
    rows = []
    for width in widths:
        honest, copied = (
            {name: figures.get(f"columns_{width}_copied_{share}_{name}") for name in names} for share in (0, 20)
        )
        shown = [*honest.values(), copied["score_beyond_control"]]
        rows.append([width, *("no value" if value is None else f"{value:.3f}" for value in shown)])
    return _table(["columns", *(f"`{name}`" for name in names), "the same, a fifth copied"], rows)


def power_of_disclosure() -> str:
    """Return Markdown: the tables with leaks, and honest ones, that the disclosure test detects."""
    figures = figures_of("disclosure")
    tables = list(dict.fromkeys(name.split("_")[1] for name in figures if name.startswith("detected_")))
    rows = [[words, *(figures[f"detected_{table}_{kind}"] for table in tables)] for kind, words in LEAKS.items()]
    return _table(["records", *tables], rows)


def figures_of(benchmark: str) -> Mapping[str, float]:
    """Return the figures that a benchmark kept for this version."""
    kept = json.loads((RESULTS / __version__ / f"{benchmark}.json").read_text(encoding="utf-8"))
    return kept["figures"]


def _table(heads: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def _cell(cell: object) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


TABLES: Mapping[str, Callable[[], str]] = {
    "changes_tried": changes_tried,
    "changes_not_tried": changes_not_tried,
    "score_by_width": score_by_width,
    "power_of_disclosure": power_of_disclosure,
}
"""By the names of their places in the pages."""

if __name__ == "__main__":
    sys.stdout.write("\n".join(write() for write in TABLES.values()))
