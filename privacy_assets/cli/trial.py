"""The command `try`: a draft of a table, answers to what it asks, and both sides of its release, tried in memory."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from privacy_assets.contract.contract import TableContract
    from privacy_assets.drafting.answers import Question
    from privacy_assets.drafting.draft import ContractDraft
    from privacy_assets.orchestration.comparison.result import ReleaseOptions
    from privacy_assets.orchestration.settings.options import Candidate
    from privacy_assets.pipeline.forecast import Forecast

UNTIL = 0.8
"""Worth at which no further options of a side are tried."""


def run_try(chosen: argparse.Namespace) -> int:
    """Draft a table, ask, try both sides, and write the draft with the best settings; return 1 if none is admitted."""
    from privacy_assets.cli.releases import print_compiling
    from privacy_assets.cli.stages import NO_RELEASE, write_new
    from privacy_assets.contract.contract import TableContract
    from privacy_assets.errors import InvalidSettingError
    from privacy_assets.kernels.compilation_progress import reported_to
    from privacy_assets.orchestration.component.comparing import in_lines
    from privacy_assets.orchestration.component.drafted import (
        drafted_file,
        fields_in_yaml,
        forecast_of,
        release_in_yaml,
    )
    from privacy_assets.release.policy import Policy

    Policy.for_use_case(chosen.policy)
    output = chosen.output or Path(f"{Path(chosen.table).stem}.yaml")
    if output.exists():
        raise InvalidSettingError(f"{str(output)!r} already exists, and is not overwritten. Nothing was tried.")
    tell = _teller()
    tell("drafting the contract")
    found = drafted_file(chosen.table, Path.cwd())
    print(f"{chosen.table}: {found.draft.n_rows:,} rows, {len(found.draft.columns)} columns.")
    draft = answered(found.draft, input if sys.stdin.isatty() else None, accepts=chosen.accept_proposals)
    contract = TableContract.from_mapping(replace(draft, is_decided=True).mapping)
    found = found._replace(draft=replace(draft, is_decided=not chosen.accept_proposals))
    if chosen.accept_proposals:
        print(f"Nobody decided these proposals: {'; '.join(proposals(draft))}.")
    table = found.read(None)
    _require_unit(contract, table)
    with reported_to(print_compiling):
        tell("forecasting the decision")
        forecasts = forecast_of(found, chosen.policy)
        print("\n".join(["", *(each.sentence for each in forecasts.values())]), flush=True)
        options = _tried(table, contract, chosen, forecasts, tell)
    print("\n".join([*in_lines(options), "", *verdicts(options)]))
    fields = fields_in_yaml(found.source, found.draft, forecasts, policy=chosen.policy) | _settings(options)
    write_new(output, lambda path: path.write_text(release_in_yaml(fields), encoding="utf-8"))
    print(f"\nWritten: {output}. {NO_RELEASE}")
    return 0 if options.recommended else 1


def _teller() -> Callable[[str], None]:
    """Return what prints the beginning of each step, with the seconds since the first."""
    began = time.monotonic()
    return lambda step: print(f"  {time.monotonic() - began:5.1f} s  {step}", file=sys.stderr, flush=True)


def _require_unit(contract: TableContract, table: pd.DataFrame) -> None:
    """Refuse a table whose rows are of other people than was answered, as the source of a release does."""
    from privacy_assets.disclosure.declared_unit import decide_on_unit, examine_unit
    from privacy_assets.errors import InvalidTableError

    unit = decide_on_unit({"the table": examine_unit(contract.check(table), contract)}, contract)
    if not unit.passed:
        raise InvalidTableError(f"{unit.reason[0].upper()}{unit.reason[1:]}. {unit.advice} Nothing was tried.")


def _tried(
    table: pd.DataFrame,
    contract: TableContract,
    chosen: argparse.Namespace,
    forecasts: Mapping[str, Forecast],
    tell: Callable[[str], None],
) -> ReleaseOptions:
    """Compare options of both sides; stop with a side once one of them has the worth."""
    from privacy_assets.orchestration.comparison.compare import compare_releases

    fraction = forecasts["synthetic"].train_fraction if "synthetic" in forecasts else None
    return compare_releases(
        table,
        contract,
        chosen.policy,
        candidates=_options(table, contract, chosen.policy, forecasts),
        limit_seconds=chosen.limit_seconds,
        train_fraction=fraction or "auto",
        until=UNTIL,
        progress=lambda at: tell(f"trying {at.stage} ({at.n_done + 1} of {at.n_total})"),
    )


def _options(
    table: pd.DataFrame, contract: TableContract, policy: str, forecasts: Mapping[str, Forecast]
) -> list[Candidate]:
    """Return the standard options that may be admitted, those that change less first; one of a side without a yes.

    Classes are as large as the policy demands, or twice as large.
    """
    from privacy_assets.orchestration.comparison.candidates import standard_candidates
    from privacy_assets.orchestration.component.drafted import planned_release

    release = planned_release(contract, policy)
    k = release.policy.people_per_class
    by_side: dict[str, list[Candidate]] = {"synthetic": [], "anonymized": []}
    for each in standard_candidates(release, contract.admit(table)):
        if each.anonymized is None or k <= (each.anonymized.k or k) <= 2 * k:
            by_side[each.side].append(each)
    by_side["anonymized"].sort(key=lambda each: each.anonymized.k or k)  # type: ignore[union-attr]
    no = [side for side, forecast in forecasts.items() if not forecast.is_yes]
    anonymized, synthetic = (by_side[side][: 1 if side in no else None] for side in ("anonymized", "synthetic"))
    # The side with a yes first, in case time runs out.
    return [*anonymized, *synthetic] if "synthetic" in no else [*synthetic[:1], *anonymized, *synthetic[1:]]


def verdicts(options: ReleaseOptions) -> list[str]:
    """Say for each side whether an option would be admitted, and its worth."""
    said = []
    for side in options.table["side"].unique():
        name = options.recommended.get(side)
        if name is None:
            n_made = int((options.table.loc[options.table["side"] == side, "n_made"] > 0).sum())
            said.append(f"{side}: no, none of {n_made} options would be admitted.")
            continue
        row = options.table.set_index("candidate").loc[name]
        people = f"{row['worth_in_people']:,.0f} of {row['n_originals']:,.0f} people"
        worth = f"with a worth of {row['utility']:.2f} (as {people})"
        if row.isna()["utility"]:
            worth = "whose worth too few people can judge: the manifest states the loss of information"
        said.append(f"{side}: yes, {name}, {worth}.")
    return said


def _settings(options: ReleaseOptions) -> dict[str, str]:
    """Return the recommended settings of the side with the larger worth, as fields of a release; others are removed."""
    if not options.recommended:
        return {}
    worth = options.table.set_index("candidate")["utility"]
    best = max(options.recommended.values(), key=worth.fillna(0.0).__getitem__)
    tried = "\n".join([*(f"# {line}" for line in verdicts(options)), options.yaml(best).rstrip()])
    return {"split": tried, "anonymized": ""}


def answered(draft: ContractDraft, ask: Callable[[str], str] | None, *, accepts: bool) -> ContractDraft:
    """Ask for the person, for what is open, and unless proposals are accepted for every other role.

    ``ask`` shows a prompt and returns a line; None if nobody can be asked, which is refused if an answer is needed.
    """
    from privacy_assets.contract.mapping import some_names
    from privacy_assets.drafting.answers import open_questions, question_of_person
    from privacy_assets.errors import InvalidSettingError

    person = question_of_person(draft)
    if ask is None:
        needed = [each.column or "the person" for each in (person, *open_questions(draft)) if each.proposed is None]
        needed = list(dict.fromkeys(needed))
        if needed:
            raise InvalidSettingError(
                f"There is no proposed answer for {some_names(needed)}, and nobody can be asked, because this is not a "
                "terminal. Nothing was tried: run it in a terminal, or decide a draft (`privacy_assets draft`)."
            )
        if not accepts:
            raise InvalidSettingError(
                "The roles are proposals, and nobody can be asked, because this is not a terminal. Nothing was tried: "
                "run it in a terminal, or with --accept-proposals."
            )
        return draft
    if not (accepts and person.proposed):
        draft = _asked(draft, person, ask)
    while remaining := open_questions(draft):
        draft = _asked(draft, remaining[0], ask)
    return draft if accepts else _reviewed(draft, ask)


def _asked(draft: ContractDraft, question: Question, ask: Callable[[str], str]) -> ContractDraft:
    """Ask until the answer is one."""
    from privacy_assets.drafting.answers import answer
    from privacy_assets.errors import InvalidSettingError

    proposed = f" [{question.proposed}]" if question.proposed else ""
    while True:
        try:
            return answer(draft, question, ask(f"{question.words}{proposed}: ").strip() or question.proposed or "")
        except InvalidSettingError as error:
            print(error)


def _reviewed(draft: ContractDraft, ask: Callable[[str], str]) -> ContractDraft:
    """Show the roles, and let them be changed until somebody decides them as they are shown."""
    from privacy_assets.drafting.answers import decide_role
    from privacy_assets.errors import InvalidSettingError

    for column in draft.columns:
        print(f"  {column.name}: {column.description['role']} ({column.comment})")
    while line := ask("Write a column and its role to change it, or press Enter to decide all as shown: ").strip():
        try:
            draft = decide_role(draft, *line.rpartition(" ")[::2])
        except InvalidSettingError as error:
            print(error)
    return draft


def proposals(draft: ContractDraft) -> list[str]:
    """Return what was proposed and nobody decided, by role."""
    by_role: dict[str, list[str]] = {}
    for column in draft.columns:
        by_role.setdefault(str(column.description["role"]), []).append(column.name)
    person = [f"person {draft.person}"] if draft.person else []
    return person + [f"{role} {', '.join(names)}" for role, names in by_role.items()]
