"""Count the texts on the pages for people (report, refusal, register), by module: what a translation has to cover.

A text is a string or f-string of at least two words outside docstrings, or a run of text between tags or blocks of a
template. What is concatenated implicitly is one text.
"""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "privacy_assets"
WORDS = re.compile(r"[A-Za-z][a-z'-]+")
GROUPS = {
    "words of the report": ("release/report*.py", "release/remade_report.py", "display/numbers.py"),
    "figures, advice, ratings": ("release/metrics.py", "release/policy.py", "release/ratings.py", "release/leakage.py"),
    "verdicts of the gate and their evidence": ("release/gate.py", "release/evidence.py", "release/waivers.py"),
    "sentences of pictures": ("*/pictures.py", "pictures.py", "orchestration/shown/*.py"),
    "notes and summaries of assessments": (
        *("disclosure/result.py", "disclosure/words.py", "disclosure/column_examination.py", "utility/*.py"),
        *("semantic_risk/assess.py", "semantic_risk/attribute_advice.py", "mpucc/column_changes.py"),
        *("anonymization/withheld_records.py", "orchestration/report_material.py", "orchestration/refusal_page.py"),
    ),
    "register": ("release/register*.py",),
}


def texts_of(module: Path) -> list[tuple[str, bool]]:
    """Return the texts of a module, and whether each has figures or names in it."""
    tree = ast.parse(module.read_text())
    bodies = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(each.value)
        for body in ast.walk(tree)
        if isinstance(body, bodies)
        for each in body.body
        if isinstance(each, ast.Expr)
    }
    inside = {id(part) for each in ast.walk(tree) if isinstance(each, ast.JoinedStr) for part in ast.walk(each)}
    found = []
    for each in ast.walk(tree):
        if isinstance(each, ast.JoinedStr) and id(each) not in inside - {id(each)}:
            parts = [part.value for part in each.values if isinstance(part, ast.Constant)]
            found.append((" ".join(parts), len(parts) < len(each.values)))
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in inside | docstrings:
            found.append((each.value, False))
    return [(text, has_places) for text, has_places in found if len(WORDS.findall(text)) > 1 and " " in text.strip()]


def texts_of_template(page: Path) -> list[tuple[str, bool]]:
    """Return the runs of text of a template, and whether each has figures or names in it."""
    body = re.sub(r"<style>.*?</style>|<!--.*?-->", "", page.read_text(), flags=re.DOTALL)
    body = re.sub(r"{%.*?%}", "\0", re.sub(r"{{.*?}}", "\1", body, flags=re.DOTALL), flags=re.DOTALL)
    runs = re.split(r"<[^>]*>|\0", body)
    return [(run, "\1" in run) for run in runs if WORDS.search(run)]


def main() -> None:
    """Print a line for each group."""
    counted = {
        group: [text for pattern in patterns for path in sorted(PACKAGE.glob(pattern)) for text in texts_of(path)]
        for group, patterns in GROUPS.items()
    }
    pages = sorted((PACKAGE / "release" / "templates").glob("*.html"))
    counted["templates"] = [text for page in pages for text in texts_of_template(page)]
    total = [text for texts in counted.values() for text in texts]
    for group, texts in (*counted.items(), ("total", total)):
        n_words = sum(len(WORDS.findall(text)) for text, _ in texts)
        print(f"{group}: {len(texts):,} texts, {sum(places for _, places in texts):,} with places, {n_words:,} words")


if __name__ == "__main__":
    main()
