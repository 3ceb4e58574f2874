"""The stages without Dagster: `draft`, `check`, `assess`, `anonymize`. They do not make releases."""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacy_assets.cli.related import (
    add_children,
    assess_related,
    check_related,
    contracts_of,
    drafted_release,
    files_of_children,
)

if TYPE_CHECKING:
    import pandas as pd

    from privacy_assets.contract.contract import TableContract

NO_RELEASE = "This is not a release: only the gate of a release in Dagster applies a policy and writes one."
RELEASED_SUFFIXES = (".parquet", ".csv")


def add_stages(commands: Any) -> None:
    """Add the commands to a parser."""
    draft = commands.add_parser("draft", help="draft a release of a table, with its contract, for review")
    draft.add_argument("table", help="CSV or Parquet file; the path is written into the draft")
    draft.add_argument("children", nargs="*", help="files of rows that belong to the people of the table, if any")
    draft.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to this new file instead of printing")
    draft.add_argument("--contract-only", action="store_true", help="only the contract, without the release around it")
    draft.add_argument("--all", action="store_true", help="explain every setting, and give every reason in full")

    trial = commands.add_parser("try", help="draft a release, ask for what is open, and try both sides in memory")
    trial.add_argument("table", help="CSV or Parquet file; the path is written into the draft")
    trial.add_argument("-o", "--output", type=Path, metavar="FILE", help="new file of the draft (default: TABLE.yaml)")
    trial.add_argument("--policy", default="research_sharing", help="use case (default: research_sharing)")
    trial.add_argument(
        "--accept-proposals", action="store_true", help="take what is proposed; the draft still has to be decided"
    )
    trial.add_argument(
        "--limit-seconds", type=float, default=150, metavar="N", help="begin no option after N seconds (default: 150)"
    )

    check = commands.add_parser("check", help="check a table against its contract")
    check.add_argument("table", type=Path, help="CSV or Parquet file, or a directory of Parquet files")
    check.add_argument("contract", type=Path, help=CONTRACT_HELP)

    assess = commands.add_parser("assess", help="assess synthetic records against their originals")
    assess.add_argument("original", type=Path, help="records that the synthesizer saw: a CSV or Parquet file")
    assess.add_argument("synthetic", type=Path, help="synthetic records")
    assess.add_argument("--control", type=Path, metavar="FILE", help="records of people whom the synthesizer never saw")
    assess.add_argument("--contract", type=Path, required=True, metavar="FILE", help=CONTRACT_HELP)
    assess.add_argument("--max-cols", type=int, metavar="N", help="largest combination (default: 3, or all columns)")

    anonymize = commands.add_parser("anonymize", help="anonymize a table with Mondrian")
    anonymize.add_argument("table", type=Path, help="CSV or Parquet file")
    anonymize.add_argument("contract", type=Path, help=CONTRACT_HELP)
    anonymize.add_argument("--k", type=int, required=True, help="least number of people in each class")
    anonymize.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="new CSV or Parquet file")

    add_children(check, "rows that belong to the people, such as visits.csv of the child `visits` of the contract")
    add_children(assess, "original, synthetic and control rows of a child; the first is named after it, or NAME=FILE")

    for each in (check, assess, anonymize):
        each.add_argument("--json", action="store_true", help="print the figures as JSON")


CONTRACT_HELP = "YAML file of the contract, or of a release with one"


def run_stage(run: Callable[[argparse.Namespace], int], chosen: argparse.Namespace) -> int:
    """Run a command; print an error as one sentence."""
    from privacy_assets.errors import PrivacyAssetsError

    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: print(message, file=sys.stderr)
            return run(chosen)
    except PrivacyAssetsError as error:
        print(error, file=sys.stderr)
    return 1


def run_draft(chosen: argparse.Namespace) -> int:
    """Draft a release and print it; remarks for the reader go to standard error."""
    from privacy_assets.contract.mapping import some_names
    from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
    from privacy_assets.orchestration.component.drafted import (
        TYPE,
        drafted_file,
        fields_in_yaml,
        forecast_of,
        release_in_yaml,
    )
    from privacy_assets.orchestration.component.scaffolder import scaffold_text

    brief = not chosen.all
    if chosen.children and chosen.contract_only:
        raise refused("With rows of people, a draft is that of a release: it has the keys. Leave out --contract-only.")
    if chosen.children:
        fields, drafts = drafted_release([chosen.table, *chosen.children], brief=brief)
    else:
        found = drafted_file(chosen.table, Path.cwd())
        drafts = {"": found.draft}
        is_whole = not chosen.contract_only
        fields = fields_in_yaml(found.source, found.draft, forecast_of(found), brief=brief) if is_whole else {}
    if chosen.contract_only:
        text = drafts[""].to_yaml(brief=brief)
    else:
        text = release_in_yaml(fields) if brief else scaffold_text(PrivacyReleaseComponent, TYPE, fields)
    if chosen.output is None:
        print(text, end="")
    else:
        write_new(chosen.output, lambda path: path.write_text(text, encoding="utf-8"))
        print(f"Written: {chosen.output}", file=sys.stderr)
    for name, draft in drafts.items():
        of = f" of {name}" if name else ""
        print(f"\nDrafted {len(draft.columns)} columns{of} of {draft.n_rows:,} rows.", file=sys.stderr)
        for line in draft.shown():
            print(f"  It contains {line}.", file=sys.stderr)
        is_open = f"the columns {some_names(draft.open_columns)}, and then " if draft.open_columns else ""
        print(f"  Decide {is_open}every proposed role, and remove the line `drafted: true`.", file=sys.stderr)
    return 0


def run_check(chosen: argparse.Namespace) -> int:
    """Check a table against its contract, or related tables against theirs."""
    from privacy_assets.contract.column_admission import admit_parquet
    from privacy_assets.contract.related import PEOPLE
    from privacy_assets.disclosure.declared_unit import decide_on_unit, examine_unit
    from privacy_assets.errors import ContractError
    from privacy_assets.storage.parquet_dataset import open_parquet_dataset

    contract, source, children = _contract(chosen.contract)
    if children or chosen.child:
        files = files_of_children(chosen.child, children, 1)
        contracts = contracts_of(contract, children)
        rows = {name: _read(own, children[name].get("source")) for name, (own,) in files.items()}
        figures, said = check_related(contracts, {PEOPLE: _read(chosen.table, source), **rows})
        _print(chosen, figures, said)
        return 0 if figures["admitted"] else 1
    contract.require_unit()
    broken, n_records, unit = None, 0, None
    try:
        if chosen.table.is_dir():
            with closing(Progress()) as progress:
                checked = admit_parquet(contract, open_parquet_dataset(chosen.table), progress=progress.tell).checked
        else:
            checked = contract.check(_read(chosen.table, source))
        n_records, examined = len(checked), examine_unit(checked, contract)
        unit = decide_on_unit({"the table": examined}, contract)
    except ContractError as error:
        broken = error
    is_admitted = unit is not None and unit.passed
    figures = {
        "admitted": is_admitted,
        "unit": None if unit is None else unit._asdict(),
        "records": n_records,
        "columns": contract.describe(),
        "failures": [dict(zip(("column", "check", "count"), each, strict=True)) for each in broken.failures]
        if broken
        else [],
    }
    said = [str(broken) if broken else f"{chosen.table} keeps its contract: {n_records:,} records."]
    said += [] if unit is None else [f"{each[0].upper()}{each[1:]}." for each in (unit.reason, unit.doubts) if each]
    said += [unit.advice] if unit is not None and unit.advice else []
    _print(chosen, figures, said)
    return 0 if is_admitted else 1


def run_assess(chosen: argparse.Namespace) -> int:
    """Assess synthetic records by the search for mpUCCs, and with a control also by the disclosure test."""
    from privacy_assets.columns.unknown_values import said_of_blind
    from privacy_assets.disclosure.assess import assess_disclosure
    from privacy_assets.mpucc.assess import assess_mpuccs
    from privacy_assets.mpucc.readings import comparable_scores
    from privacy_assets.pipeline.measure import admit_people
    from privacy_assets.release.policy import RequiredSettings
    from privacy_assets.utility.foreign import why_foreign

    contract, source, children = _contract(chosen.contract)
    if children or chosen.child:
        return _assess_related(chosen, contract, source, children)
    original = _read(chosen.original, source)
    control = None if chosen.control is None else _read(chosen.control, source)
    original, control = admit_people(contract, original, control)
    synthetic = contract.admit_synthetic(_read(chosen.synthetic, source))
    n_columns = len(contract.released_columns)
    n_searched = len(contract.searched_columns)
    required = min(RequiredSettings().max_baseline_cols or n_searched, n_searched)
    max_cols = required if chosen.max_cols is None else chosen.max_cols
    tables = (original, synthetic, control)
    whose: dict[str, Any] = {"person": contract.person, "invented": contract.invented}
    with closing(Progress()) as progress:
        assessment = assess_mpuccs(
            *tables, max_baseline_cols=max_cols, parts=contract.parts, progress=progress.tell, **whose
        )
        why = said_of_blind(assessment.settings["unknown_values"]) or why_foreign(*tables, **whose)
        scores = comparable_scores(assessment.scores, is_comparable=not why)
        figures: dict[str, Any] = {"scores": scores, "incomparable": why}
        lines = [f"{name}: {_shown(value)}" for name, value in scores.items()]
        if why:
            lines.insert(0, why)
        if control is not None and n_columns > 1:
            sensitive = contract.columns_with_role("sensitive")
            disclosure = assess_disclosure(
                original, synthetic, control, sensitive=sensitive, progress=progress.tell, **whose
            )
            figures["disclosure"] = {"scores": dict(disclosure.scores), "summary": disclosure.summary()}
            lines += ["", disclosure.summary()]
        elif control is not None:
            lines += ["", "Leakage is not assessed: nothing can be linked or inferred in a single column."]
        else:
            lines += ["", "Leakage is not assessed: give --control FILE with records that the synthesizer never saw."]
    _print(chosen, figures, lines)
    return 0


def _assess_related(
    chosen: argparse.Namespace, contract: "TableContract", source: Any, children: Mapping[str, Any]
) -> int:
    from privacy_assets.contract.related import PEOPLE

    if chosen.control is None or chosen.max_cols is not None:
        raise refused("With children, `assess` needs --control, and takes no --max-cols: views have sets of up to 3.")
    files = files_of_children(chosen.child, children, 3)
    contracts = contracts_of(contract, children)
    sides = [
        {PEOPLE: _read(people, source)}
        | {name: _read(own[place], children[name].get("source")) for name, own in files.items()}
        for place, people in enumerate((chosen.original, chosen.synthetic, chosen.control))
    ]
    with closing(Progress()) as progress:
        figures, lines = assess_related(contracts, sides, progress)
    of_views = [
        f"{name} of {view}: {_shown(scores.get(name))}"
        for view, scores in figures["views"].items()
        for name in ("privacy_risk_score", "score_of_strangers")
    ]
    _print(chosen, figures, [*of_views, "", *lines])
    return 0


def run_anonymize(chosen: argparse.Namespace) -> int:
    """Anonymize a table into a new file."""
    from privacy_assets.anonymization.anonymize import anonymize
    from privacy_assets.anonymization.anonymized_table import roles_of

    if chosen.output.suffix not in RELEASED_SUFFIXES:
        raise refused(f"The output {str(chosen.output)!r} is neither .parquet nor .csv.")
    contract, source, children = _contract(chosen.contract)
    if children:
        raise refused(
            f"The contract has the children {list(children)}, whose rows are not anonymized with their links. Use "
            "`aggregate_rows` or `unlinked` in Python."
        )
    table = contract.admit(_read(chosen.table, source))
    quasi_identifiers, sensitive, _ = roles_of(contract, contract.person)
    hierarchies = {name: each for name, each in contract.metadata("hierarchy").items() if name in quasi_identifiers}
    with closing(Progress()) as progress:
        found = anonymize(
            table,
            quasi_identifiers=quasi_identifiers,
            k=chosen.k,
            sensitive=sensitive,
            subject=contract.person,
            hierarchies=hierarchies or None,
            progress=progress.tell,
        )
    made = found.table
    is_csv = chosen.output.suffix == ".csv"
    write_new(chosen.output, lambda path: made.to_csv(path, index=False) if is_csv else made.to_parquet(path))
    figures = {"stats": dict(found.stats), "file": str(chosen.output)}
    shown = [(name, value) for name, value in found.stats.items() if isinstance(value, int | float | str | None)]
    _print(chosen, figures, [f"{name}: {_shown(value)}" for name, value in shown])
    return 0


STAGES: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "draft": run_draft,
    "check": run_check,
    "assess": run_assess,
    "anonymize": run_anonymize,
}


class Progress:
    """A line on the terminal with the progress of a stage."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._last = 0.0

    def tell(self, found: Any) -> None:
        """Show the counts of a progress report, a few times a second."""
        now = time.monotonic()
        if not self._is_shown or now - self._last < 0.2:
            return
        self._last = now
        counts = {name: value for name, value in found._asdict().items() if isinstance(value, int | float)}
        line = ", ".join(f"{name.removeprefix('n_').replace('_', ' ')} {value:,.0f}" for name, value in counts.items())
        print(f"\r\x1b[K{line[:100]}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Remove the line."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _contract(path: Path) -> "tuple[TableContract, Any, Mapping[str, Any]]":
    """Read a contract, the format of tables, and the children from the YAML of a contract or of a release."""
    import yaml

    from privacy_assets.contract.contract import resolve_contract

    problem, read = "", None
    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        problem = type(error).__name__
    if not isinstance(read, Mapping):
        raise refused(f"The contract {str(path)!r} cannot be read as YAML of one document ({problem or 'no mapping'}).")
    attributes = read.get("attributes", read)
    contract = attributes.get("contract", attributes) if isinstance(attributes, Mapping) else attributes
    source = attributes.get("source") if isinstance(attributes, Mapping) else None
    children = attributes.get("children") if isinstance(attributes, Mapping) else None
    if children is not None and not isinstance(children, Mapping):
        raise refused(f"The `children` of the contract {str(path)!r} do not map names to tables.")
    return resolve_contract(contract), source, children or {}


def _read(path: Path, source: Any) -> "pd.DataFrame":
    """Read a table as a release does whose source has these settings."""
    from privacy_assets.orchestration.settings.sources import TableFile

    separator = source.get("separator", ",") if isinstance(source, Mapping) else ","
    is_csv = path.suffix in (".csv", ".tsv", ".txt")
    table: pd.DataFrame = TableFile(str(path), "csv" if is_csv else None, separator).read(None)
    return table


def refused(message: str) -> Exception:
    """Return the error for what a command cannot do."""
    from privacy_assets.errors import InvalidSettingError

    return InvalidSettingError(f"{message} Nothing was made.")


def write_new(path: Path, write: Callable[[Path], object]) -> None:
    """Write a new file atomically, readable only by its owner."""
    if path.exists():
        raise refused(f"{str(path)!r} already exists, and is not overwritten.")
    partial = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
    try:
        partial.touch(mode=0o600)
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _print(chosen: argparse.Namespace, figures: Mapping[str, Any], lines: list[str]) -> None:
    if chosen.json:
        print(json.dumps({**figures, "is_release": False}, indent=1, default=_plain))
    else:
        print("\n".join([*lines, "", NO_RELEASE]))


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value._asdict() if hasattr(value, "_asdict") else str(value)


def _shown(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "unknown"}[value]
    return f"{value:.3g}" if isinstance(value, float) else str(value)
