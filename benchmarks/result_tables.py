"""Tables of the documentation from the figures that benchmarks keep in ``results/``.

``python -m benchmarks.result_tables`` prints them; the documentation is built with them.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.campaigns.undoable import FAILURES, FAMILIES, OUTCOMES, key_of
from benchmarks.campaigns.undoable_changes import LATER, TRANSFORMATIONS
from benchmarks.disclosure_leaks import BY_TABLE, LEAKS, SUBTLE
from benchmarks.disclosure_tables import CHOSEN_ON, FIRST, KEPT_ASIDE
from benchmarks.measurements import RESULTS, figure_name
from benchmarks.nist import OURS, SUBMISSIONS
from privacy_assets import __version__

TOOLS = {
    "made": "tables",
    "ours": "this test",
    "anonymeter": "Anonymeter",
    "sdmetrics": "SDMetrics",
    "distance": "distance",
    "agreement": "agreement",
    "differences": "differences",
    "density": "density",
}
"""Columns of the table of leaks, by the names of the figures of `benchmarks/disclosure_peers.py`."""


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


def leaks_seen() -> str:
    """Return Markdown: in how many tables each leak is found, by the test, by other tools and by plain attacks."""
    leaks, peers = figures_of("disclosure_leaks"), figures_of("disclosure_peers")
    tools = {name: words for name, words in TOOLS.items() if figure_name(name, "other people") in peers}
    rows: list[list[object]] = []
    for leak in ("other people", *LEAKS, "one value of 15 %", *SUBTLE):
        counts = {group: figure_name("found", group, leak) for group in ("all", "aside")}
        n_all, n_aside = (
            f"{leaks[name]} of {leaks[figure_name('made', group, leak)]}" if name in leaks else ""
            for group, name in counts.items()
        )
        rows.append([leak, n_all, n_aside, *(peers[figure_name(tool, leak)] for tool in tools)])
    return _table(["records", "all tables", "kept aside", *tools.values()], rows)


def leaks_by_table() -> str:
    """Return Markdown: in how many divisions of each table some leaks are found."""
    figures = figures_of("disclosure_leaks")

    def share(table: str, leak: str) -> str:
        n_found, n_made = (figures[figure_name(own, table, leak)] for own in ("found", "made"))
        return f"{n_found} of {n_made}"

    tables = {name: name for name in (*FIRST, *CHOSEN_ON)} | {name: f"{name} (kept aside)" for name in KEPT_ASIDE}
    rows = [[words, *(share(name, leak) for leak in BY_TABLE)] for name, words in tables.items()]
    return _table(["table", *BY_TABLE], rows)


def nist_board() -> str:
    """Return Markdown: the submissions to NIST's Collaborative Research Cycle, by our figures and by NIST's."""
    figures = figures_of("nist")
    rows = []
    for name, words in SUBMISSIONS.items():
        shown = [f"{figures[f'{name}_{own}']:.3f}" if f"{name}_{own}" in figures else "" for own in OURS[:2]]
        copies = [f"{100 * figures[f'{name}_{own}']:.2f}" for own in OURS[2:5]]
        theirs = [f"{figures[f'{name}_k_marginal']:.0f}", f"{figures[f'{name}_pmse']:.4f}"]
        exact = f"{100 * figures[f'{name}_unique_exact_matches_percent']:.2f}"
        rows.append([words, figures[f"{name}_columns"], *shown, *theirs, exact, *copies])
    heads = ["submission", "columns", "`utility`", "by area", "k-marginal", "pMSE", "exact matches"]
    return _table([*heads, "in other people", "in as many released", "beyond people"], rows)


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
    "leaks_seen": leaks_seen,
    "leaks_by_table": leaks_by_table,
    "nist_board": nist_board,
}
"""By the names of their places in the pages."""

if __name__ == "__main__":
    sys.stdout.write("\n".join(write() for write in TABLES.values()))
