"""Comparison of candidate releases of one table by risk and worth, without releasing anything."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

import pandas as pd

from privacy_assets import __version__
from privacy_assets.columns.safe_names import class_name
from privacy_assets.contract.contract import TableContract, resolve_contract
from privacy_assets.display.progress_bar import StageProgress, shows_progress
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.comparison.candidates import standard_candidates
from privacy_assets.orchestration.comparison.making import RISKS, Bench, Measured, OutOfTime, blocking_limits
from privacy_assets.orchestration.comparison.result import ReleaseOptions
from privacy_assets.orchestration.control_plans import train_fraction_of
from privacy_assets.orchestration.private.guard import speaks
from privacy_assets.orchestration.settings.options import STANDARD, Candidate, OptionsSettings
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import AUTO, AssessmentSettings, Split, Synthesis
from privacy_assets.pipeline.choice import SEPARATOR, WORTH, WORTH_LIMITED, risk_that_decides, table_of
from privacy_assets.release.metrics import LEAKAGE_DETECTED, METRICS
from privacy_assets.release.policy import Policy, resolve_policy
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.utility.result import LOWER, N_ORIGINALS, PEOPLE, UPPER

_TEXT_COLUMNS = ("candidate", "side", "digest", "failed", "problem")


@shows_progress
def compare_releases(
    table: pd.DataFrame,
    contract: TableContract | str | Mapping[str, Any],
    policy: Policy | str,
    *,
    candidates: Literal["standard"] | Sequence[Candidate] = STANDARD,
    n_seeds: int = 2,
    seed: int = 0,
    limit_seconds: float | None = None,
    assessment: AssessmentSettings | None = None,
    train_fraction: float | Literal["auto"] = 0.8,
    until: float | None = None,
    earlier: ReleaseOptions | None = None,
    progress: Callable[[StageProgress], None] | None = None,
) -> ReleaseOptions:
    """Make candidate releases of a table, and compare their risks and their worth.

    This neither releases nor admits anything: the gate judges the records that a release makes with its own seeds.
    Comparisons made here are not counted in a manifest; those of the asset ``release_options`` are.

    Parameters
    ----------
    table : DataFrame
        The source, as the contract expects it.
    contract : TableContract, str or mapping
        Types and roles of the columns, as for `build_release_definitions`.
    policy : Policy or str
        The limits, or the name of a use case. A required signature is ignored.
    candidates : {"standard"} or sequence of Candidate
        What to compare. The standard candidates are for the sides that the policy protects.
    n_seeds : int
        How often the synthetic records of each candidate are made, from 2 to 100.
    seed : int
        Number from which the comparison derives its seeds, at least 0: equal seeds give equal results.
    limit_seconds : float, optional
        After this many seconds no further candidate is begun, and searches and the built-in synthesizers end at their
        next step; the results so far are returned. Your own synthesizer is not interrupted while it learns, but it is
        not begun again if the first time took longer than the remaining time.
    assessment : AssessmentSettings, optional
        How synthetic records are assessed; by default as the policy requires.
    train_fraction : float or "auto"
        Share of the people that synthesizers may see, above 0 and below 1; the others are the control. ``"auto"`` is
        chosen as in `Split`.
    until : float, optional
        As soon as a candidate of a side can be proposed and its ``utility`` is at least this, between 0 and 1, no
        further candidate of that side is tried; the reasons of the others say so. Default: all are tried.
    earlier : ReleaseOptions, optional
        An earlier comparison; results for the same table with the same settings are taken from it.
    progress : callable, optional
        Called before each candidate.

    Returns
    -------
    ReleaseOptions
        The result includes candidates that cannot be made, with the reason.

    Raises
    ------
    ContractError
        If the table violates the contract.
    InvalidSettingError
        If a setting is out of range, or no standard candidate fits policy and contract.
    InvalidTableError
        If the contract leaves no record.

    Notes
    -----
    Synthetic records are judged by people whom the synthesizer never saw; anonymized records are made from all people
    and judged by a random half of them (``docs/how-to-choose.md``).
    """
    held_to, admitted_by = resolve_contract(contract), resolve_policy(policy).with_required(signature=False)
    options = OptionsSettings(
        candidates=candidates, n_seeds=n_seeds, seed=seed, limit_seconds=limit_seconds, until=until
    )
    asked = assessment or AssessmentSettings.required_by(admitted_by, held_to)
    release = ReleaseSettings(
        name="comparison",
        contract=held_to,
        policy=admitted_by,
        source=None,
        split=Split(train_fraction),
        synthetic=None,
        assessment=asked.resolve(held_to, ()),
        formats=("parquet",),
        asked_assessment=asked,
    )
    return compare_admitted(release, held_to.admit(table), options, earlier=earlier, progress=progress)


def compare_admitted(
    release: ReleaseSettings,
    table: pd.DataFrame,
    options: OptionsSettings,
    *,
    earlier: ReleaseOptions | None = None,
    progress: Callable[[StageProgress], None] | None = None,
) -> ReleaseOptions:
    """Compare candidates on a table that the contract of a release admitted; see `compare_releases`."""
    if not len(table):
        raise InvalidTableError("The table has no records, so nothing can be compared. Expected at least one record.")
    began = time.monotonic()
    deadline = began + options.limit_seconds if options.limit_seconds is not None else float("inf")
    digest_of_all = digest_of_comparison(release, options)
    if isinstance(release.split, Split) and release.split.train_fraction == AUTO:
        release = replace(release, split=Split(train_fraction_of(release, table), release.split.seed))
    bench = Bench(release, table, options, deadline)
    given = options.candidates
    chosen = standard_candidates(release, table) if isinstance(given, str) else tuple(given)
    if not chosen:
        raise InvalidSettingError(
            "There is no standard candidate: the policy has no blocking limit that prevents people from being singled "
            "out, or only one on anonymized records, for which the contract has no quasi-identifier. Nothing was "
            "compared."
        )
    candidates = {str(each.name): {"side": each.side, "kind": each.kind, "settings": each.in_yaml()} for each in chosen}
    content = fingerprint(table)
    known = {} if earlier is None else _by_digest(earlier.runs)
    runs: list[dict[str, Any]] = []
    made_here, found_on = set(), dict.fromkeys(RISKS, "")
    limits = {side: blocking_limits(release, side) for side in RISKS}
    for place, candidate in enumerate(chosen):
        if found := found_on[candidate.side]:
            problem = f"not tried: {found} can be proposed, and its worth is at least {options.until:g}"
            runs.append(_run_without(candidate, problem))
            continue
        if progress is not None:
            progress(StageProgress(str(candidate.name), place, len(chosen)))
        for repeat in range(options.n_seeds if candidate.side == "synthetic" else 1):
            digest = _digest_of_run(release, options, candidate, repeat, content)
            run = known.get(digest) if digest else None
            if run is None:
                before = runs[-1]["seconds"] if repeat else 0.0
                run = _run(bench, candidate, repeat, digest, before)
                made_here |= set() if run["problem"] else {candidate.name}
            runs.append({**run, "candidate": candidate.name})
            if runs[-1]["problem"]:
                break  # Other draws would have the same problem, or be too late.
        if options.until is not None:
            tried = {name: candidates[name] for name in dict.fromkeys(run["candidate"] for run in runs)}
            row = table_of(_frame(runs), tried, limits, options.n_seeds).iloc[-1]
            if row["is_proposed"] and row["utility"] >= options.until:
                found_on[candidate.side] = str(candidate.name)
    frame = _frame(runs)
    risks = {side: risk_that_decides(frame[frame["side"] == side], limits[side], risk) for side, risk in RISKS.items()}
    return ReleaseOptions(
        table_of(frame, candidates, limits, options.n_seeds),
        frame,
        candidates,
        {
            "fingerprint": content,
            "digest": digest_of_all,
            "n_seeds": options.n_seeds,
            "n_candidates": len(chosen),
            "n_made_here": len(made_here),
            "train_fraction": release.split.train_fraction if isinstance(release.split, Split) else None,
            "risks": risks,
            "limits": {side: {limit.metric: limit.value for limit in own} for side, own in limits.items()},
        },
    )


def digest_of_comparison(release: ReleaseSettings, options: OptionsSettings) -> str:
    """Return a digest of everything except the table that affects a comparison."""
    return _digest([*_shared(release), options.for_digest()])


def _run(bench: Bench, candidate: Candidate, repeat: int, digest: str, expected_seconds: float) -> dict[str, Any]:
    """Make and measure a candidate once; if it cannot be made, return the problem in words."""
    began = time.monotonic()
    problem, measured = "", None
    if began >= bench.deadline:
        problem = "not made: time had run out"
    elif began + expected_seconds >= bench.deadline:
        problem = "not made again: the first time took longer than the remaining time"
    else:
        try:
            measured = bench.measure(candidate, repeat)
        except OutOfTime:
            problem = "not finished: time ran out"
        except Exception as error:  # noqa: BLE001 - a user's synthesizer can raise anything
            said = (
                f": {BaseException.__str__(error)}"
                if speaks(error)
                else "; its text is withheld, because it may contain cells of the table"
            )
            problem = f"cannot be made: {class_name(type(error))}{said}"
    run = _run_without(candidate, problem) | {"repeat": repeat, "digest": digest if measured else ""}
    return run | {"seconds": time.monotonic() - began} | ({} if measured is None else _said(measured))


def _run_without(candidate: Candidate, problem: str) -> dict[str, Any]:
    of_candidate = {"candidate": candidate.name, "side": candidate.side, "repeat": 0, "digest": ""}
    return of_candidate | {"problem": problem, "failed": "", "seconds": 0.0}


def _said(measured: Measured) -> dict[str, Any]:
    scores = measured.worth.scores
    worth = [scores["utility"], scores.get("utility" + LOWER), scores.get("utility" + UPPER), scores.get(PEOPLE)]
    said = dict(zip(WORTH, [*worth, scores.get(N_ORIGINALS)], strict=True))
    # The limited figure of worth is the lower end of its interval.
    figures = {name: value for name, value in measured.figures.items() if name != "utility"}
    return {
        "failed": SEPARATOR.join(measured.failed),
        **said,
        **figures,
        WORTH_LIMITED: measured.figures.get("utility"),
    }


def _frame(runs: list[dict[str, Any]]) -> pd.DataFrame:
    """Return runs as plain columns: text, whole numbers, and floats with NaN for missing values."""
    figures = [name for name in METRICS if name != "utility" and any(name in run for run in runs)]
    numbers = list(dict.fromkeys([*WORTH, *RISKS.values(), LEAKAGE_DETECTED, *figures, WORTH_LIMITED]))
    frame = pd.DataFrame(runs, columns=[*_TEXT_COLUMNS, "repeat", "seconds", *numbers])
    kinds: dict[str, Any] = {**dict.fromkeys(_TEXT_COLUMNS, str), "repeat": "int64"}
    kinds |= dict.fromkeys(("seconds", *numbers), "float64")
    return frame.astype(kinds)


def _by_digest(runs: pd.DataFrame) -> dict[str, dict[str, Any]]:
    made = runs[runs["digest"] != ""]
    return {str(run["digest"]): {str(name): value for name, value in run.items()} for run in made.to_dict("records")}


def _digest_of_run(
    release: ReleaseSettings, options: OptionsSettings, candidate: Candidate, repeat: int, content: str
) -> str:
    """Return the digest that identifies a result; empty for a user's synthesizer, whose code may have changed."""
    if isinstance(candidate.synthetic, Synthesis) and not isinstance(candidate.synthetic.method, str):
        return ""
    seed = options.seeds.repeats[repeat]
    return _digest([content, *_shared(release), candidate.in_yaml(), seed, options.seeds.split, options.seeds.judge])


def _shared(release: ReleaseSettings) -> list[Any]:
    contract, split = release.contract, release.split
    asked = release.asked_assessment or release.assessment
    return [
        __version__,
        contract.describe(),
        contract.precisions,
        contract.person,
        contract.metadata("hierarchy"),
        contract.metadata("scale"),
        release.policy.to_json(),
        asdict(asked),
        split.train_fraction if isinstance(split, Split) else None,
        None if release.semantic_risk is None else repr(release.semantic_risk),
    ]


def _digest(parts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=repr).encode()).hexdigest()
