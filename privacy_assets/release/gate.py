"""The verdict: whether a table may be released, given the evidence about it.

`verdicts` is a pure function. Asset checks show its result; the release step calls it again for the exact content that
it would write. It fails closed: evidence that is missing, unreadable, from another table, made with weaker settings,
reported by hand or altered afterwards gives a failed verdict. A missing or NaN figure fails every limit.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from privacy_assets.columns.spelling import SPELLING
from privacy_assets.columns.unknown_values import said_of_blind
from privacy_assets.contract.rule_violations import RULES
from privacy_assets.disclosure.declared_unit import DOUBT_CHECK, UNIT_CHECK
from privacy_assets.disclosure.leaving_columns import IDENTIFYING_CHECK, MEASURE_CHECK, decide_on
from privacy_assets.disclosure.rare_values import RARE_VALUES
from privacy_assets.display.numbers import in_full
from privacy_assets.mpucc.settings import MOST_COLUMNS_OF_VIEW
from privacy_assets.release.evidence import (
    SPLIT_STAGES,
    AssessmentEvidence,
    BudgetEvidence,
    Evidence,
    SigningEvidence,
    SplitEvidence,
)
from privacy_assets.release.metrics import (
    ANONYMITY,
    DISCLOSURE,
    METRICS,
    MPUCC,
    PRIVACY_BUDGET,
    REIDENTIFICATION,
    SEVERITIES,
    SIDES,
    Severity,
    shown_figure,
)
from privacy_assets.release.policy import (
    OF_STRANGERS,
    Limit,
    LimitInstead,
    Policy,
    RequiredSettings,
    is_decided_instead,
)
from privacy_assets.release.row_links import LINKS_CHECK, decide_on_links
from privacy_assets.release.waivers import UnusableWaiver, Waiver, Waivers
from privacy_assets.setting_checks import is_number
from privacy_assets.storage.algorithms import algorithm_of, is_of_this_version

MEASURED_AT_THE_GATE = (ANONYMITY, RARE_VALUES, RULES, PRIVACY_BUDGET)
"""Assessments without an asset; the gate measures them on exactly the table that it would release."""
EXAMPLE_METRICS = {"synthetic": "privacy_risk_score", "anonymized": "smallest_class"}
EVERY_WAIVER_IS_USED = "every_waiver_is_used"
LINKED_CHECK = "every_row_has_its_person"
DECLARATION_CHECK = "the_declaration_is_complete"
APPROVAL_CHECK = "the_release_is_approved"
REJECTION_CHECK = "nobody_rejected_the_release"
WITHDRAWN_CHECK = "the_content_was_not_withdrawn"
WAITS = frozenset({DECLARATION_CHECK, APPROVAL_CHECK})
"""Conditions for which a release waits: what they ask of people is still to come, and nothing is refused."""
MOST_WAIVERS_SHOWN = 20
MOST_OTHER_SPLITS = 1
INCOMPARABLE_ADVICE = (
    "Write the values as the source does, or leave the column out. If its values are invented on purpose, state in the "
    "contract why: invented."
)
REMAKE_ADVICE = "Materialize the assessment again, then the release."
_ANOTHER_VERSION = "another version of the algorithm made {}; expected {}"


@dataclass(frozen=True)
class Verdict:
    """One condition of the gate, decided; those on limits have the metric, its value and the bound.

    The name is a sentence that is true when the verdict passes. A failed ``"error"`` refuses the release. No text
    contains a cell of a table. ``waived_by`` is the file of the waiver under which a failed limit passes.
    """

    name: str
    passed: bool
    severity: Severity
    reason: str
    advice: str = ""
    metric: str | None = None
    value: float | None = None
    limit: float | None = None
    direction: str | None = None
    waived_by: str | None = None

    @classmethod
    def from_json(cls, recorded: Mapping[str, Any]) -> "Verdict":
        """Read a verdict from a manifest; raise TypeError or ValueError for keys or values that no verdict has."""
        read = cls(**recorded)
        texts = (read.advice, read.metric, read.direction, read.waived_by)
        is_right = isinstance(read.name, str) and isinstance(read.reason, str) and type(read.passed) is bool
        is_right &= all(text is None or isinstance(text, str) for text in texts) and read.severity in SEVERITIES
        if not is_right or not all(number is None or is_number(number) for number in (read.value, read.limit)):
            raise ValueError("not a verdict")
        return read

    @property
    def blocks(self) -> bool:
        """Whether this verdict alone refuses the release."""
        return not self.passed and self.severity == "error"


def verdicts(
    policy: Policy, evidence: Evidence, fingerprint: str, waivers: Waivers | None = None
) -> tuple[Verdict, ...]:
    """Decide every condition of a policy for one table.

    Waivers are approved exceptions from limits; they cannot excuse a failed condition on the evidence or a missing
    figure. Conditions on the evidence come first, then one verdict per limit on this side in the policy's order; if
    there are waivers, the last verdict is on whether each was used. The table may be released if and only if
    `is_admitted` returns True for the verdicts.
    """
    limits = policy.limits_of(evidence.side)
    decided = [_a_limit_protects(policy, evidence.side)]
    decided.append(_table_is_as_recorded(evidence, fingerprint))
    decided.extend(_table_is_of_this_version(evidence))
    decided.append(_table_keeps_the_contract(evidence))
    if evidence.broken_links is not None:
        decided.append(_every_row_has_its_person(evidence.stage, evidence.broken_links))
    if evidence.other_forms is not None:
        decided.append(_rows_leave_in_one_form(evidence.other_forms))
    decided.extend(_rows_are_of_the_declared_people(evidence))
    decided.extend(_columns_may_leave(evidence))
    decided.extend(_rows_are_not_linked(evidence))
    decided.extend(_made_of_what_is_recorded(stage, evidence) for stage in evidence.lineage)
    if evidence.side == SIDES[MPUCC]:
        decided.append(_split_was_made_at_once(evidence))
    if evidence.splits is not None:
        decided.extend(_tests_of_other_splits(evidence.splits))
    if evidence.budget is not None:
        decided.append(_budget_is_recorded(evidence.budget))
    needed = {limit.assessment_on(evidence.side) for limit in limits} | set(evidence.must_succeed)
    needed |= {MPUCC} if evidence.side == SIDES[MPUCC] else set()
    for name in sorted(needed - set(MEASURED_AT_THE_GATE)):
        decided.extend(_assessment_verdicts(name, policy, evidence, fingerprint))
    if policy.required.signature or evidence.signing is not None:
        decided.append(_release_is_signed(evidence.signing))
    waivers = waivers or Waivers("", date.min)
    on_limits = {limit: waived_verdict(limit, limit_verdict(limit, evidence), waivers, fingerprint) for limit in limits}
    decided.extend(on_limits.values())
    if policy.required.declaration or evidence.undeclared:
        decided.append(_declaration_is_complete(evidence.undeclared))
    if waivers.of_the_release:
        decided.append(_every_waiver_is_used(on_limits, waivers, fingerprint))
    return tuple(decided)


def is_admitted(decided: tuple[Verdict, ...]) -> bool:
    """Return whether verdicts admit the table: there is at least one, and none of severity ``"error"`` failed."""
    return bool(decided) and not any(verdict.blocks for verdict in decided)


def refusing(decided: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """Return the verdicts that refuse a table; if there are none, those that block it let the release wait."""
    return tuple(verdict for verdict in decided if verdict.blocks and verdict.name not in WAITS)


def limit_verdict(limit: Limit, evidence: Evidence) -> Verdict:
    """Decide one limit on the figures of its assessment; `Limit.beyond` can leave the decision to another figure."""
    figures = _figures(limit, evidence)
    value = figures.get(limit.metric)
    incomparable = why_incomparable(limit.assessment_on(evidence.side), evidence)
    outcome = limit.outcome(figures)
    passed = outcome == "met"
    remark = incomparable if value is None and incomparable else evidence.remarks.get(limit.metric)
    origin = f" ({remark})" if remark else ""
    if value is None or math.isnan(value):
        reason = f"{limit.metric} has no value; expected {limit.bound}{origin}"
        value = None
    else:
        # A waiver must state figure and limit exactly.
        can_be_waived = limit.blocks and outcome == "not met" and not METRICS[limit.metric].is_yes_no
        found, expected = shown_figure(limit.metric, str(limit.direction), value, limit.value, exact=can_be_waived)
        if can_be_waived and found != in_full(value):
            found += f" (exactly {in_full(value)})"
        reason = f"{limit.metric} is {found}; expected {expected}"
        # The origin of a yes/no figure is always shown.
        if not passed or METRICS[limit.metric].is_yes_no:
            reason += origin
    if isinstance(limit, LimitInstead) and passed and not limit.holds_for(value):
        shared = figures.get("smallest_shared_cell")
        reason += (
            f"; every record is that of at least {shared:.0f} people of the source, so nobody can be singled out"
            if shared is not None and limit.is_shared(figures)
            else "; it is not asked, because the limits that it could decide are decided by their own figures"
        )
    if limit.beyond is not None and not passed:
        reason += _said_of_strangers(limit, outcome, figures)
    own_advice = INCOMPARABLE_ADVICE if value is None and incomparable else limit.advice
    advice = (
        ""
        if passed or outcome == "beyond"
        else own_advice or evidence.advised.get(limit.metric) or limit.default_advice
    )
    severity: Severity = "error" if limit.blocks and outcome != "beyond" else "warn"
    return Verdict(
        limit.check_name, passed, severity, reason, advice, limit.metric, value, limit.value, limit.direction
    )


def _figures(limit: Limit, evidence: Evidence) -> dict[str, float | None]:
    """Return the figures on which a limit is decided, by their metric; None where records cannot be compared."""
    figures: dict[str, float | None] = {}
    names = {limit.assessment_on(evidence.side)}
    names |= {MPUCC} if is_decided_instead(limit) else set()
    for name in sorted(names):
        assessment = evidence.assessments.get(name)
        own = evidence.measured.get(name, {}) if assessment is None else assessment.metrics
        is_known = not why_incomparable(name, evidence)
        figures |= {
            metric: value if is_known or (value and METRICS[metric].is_yes_no) else None
            for metric, value in own.items()
        }
    return figures


def _said_of_strangers(limit: Limit, outcome: str, figures: Mapping[str, float | None]) -> str:
    """Say what real people would reach in the place of the records, where the figure fails most."""
    for own, other in OF_STRANGERS[limit.metric]:
        value, of_others = figures.get(own), figures.get(other)
        if (
            value is None
            or of_others is None
            or limit.holds_for(value)
            or (outcome == "not met" and not limit.holds_for(of_others))
        ):
            continue
        found, _ = shown_figure(limit.metric, str(limit.direction), value, limit.value)
        strangers, _ = shown_figure(limit.metric, str(limit.direction), of_others, limit.value)
        if outcome == "beyond":
            return (
                f"; real people whom the synthesizer never saw would have at least {strangers} in their place: even "
                f"records that copy nobody fail the limit, so it only warns, and the one on {limit.beyond} decides"
            )
        of_columns = "" if own == limit.metric else f" on columns that depend on no others, where they have {found}"
        return f"; real people whom the synthesizer never saw would have {strangers} in their place{of_columns}"
    return ""


def why_incomparable(name: str, evidence: Evidence) -> str:
    """Return why an assessment cannot compare synthetic records with people; empty if it can, or was not asked to.

    A column is blind, or the records are foreign, which the mpUCC assessment of the same table knows.
    """
    assessment, judge = evidence.assessments.get(name), evidence.assessments.get(MPUCC)
    if assessment is None or name not in (MPUCC, DISCLOSURE):
        return ""
    settings = assessment.settings or {}
    is_judged = judge is not None and judge.made_of.get(evidence.stage) == assessment.made_of.get(evidence.stage)
    foreign = (judge.settings or {}).get("foreign") if judge is not None and is_judged else ""
    return said_of_blind(settings.get("unknown_values") or {}) or foreign or ""


def waived_verdict(limit: Limit, verdict: Verdict, waivers: Waivers, fingerprint: str) -> Verdict:
    """Return the verdict on a limit after waivers: a blocking verdict passes, and is marked, if a waiver applies."""
    if not verdict.blocks:
        return verdict
    reasons = []
    for waiver in waivers.usable:
        if waiver.metric != limit.metric:
            continue
        problems = waivers.problems(waiver, fingerprint, limit, verdict.value)
        if not problems:
            reason = f"{verdict.reason}; waived by {waiver.person} until {waiver.expires_on}: {waiver.reason}"
            return replace(verdict, passed=True, reason=reason, waived_by=waiver.file)
        reasons.append(f"{waiver.file}: {', '.join(problems)}")
    if not reasons:
        return verdict
    return replace(verdict, reason=f"{verdict.reason}; not waived ({first_of(reasons)})")


def _every_waiver_is_used(on_limits: Mapping[Limit, Verdict], waivers: Waivers, fingerprint: str) -> Verdict:
    used = {verdict.waived_by for verdict in on_limits.values()}
    unused = [
        f"{each.file}: {_why_unused(each, on_limits, waivers, fingerprint)}"
        for each in waivers.of_the_release
        if each.file not in used
    ]
    n_waivers = len(waivers.of_the_release)
    reason = first_of(unused) or f"{n_waivers} of {n_waivers} waivers apply to a failed limit"
    advice = "Fix or remove the waiver: one that is unused today could apply tomorrow." if unused else ""
    return Verdict(EVERY_WAIVER_IS_USED, not unused, "warn", reason, advice)


def first_of(reasons: Sequence[str]) -> str:
    """Join the first reasons and count the others, because an event cannot contain a thousand."""
    n_others = len(reasons) - MOST_WAIVERS_SHOWN
    return "; ".join(reasons[:MOST_WAIVERS_SHOWN]) + (f"; and {n_others} more" if n_others > 0 else "")


def _why_unused(
    each: Waiver | UnusableWaiver, on_limits: Mapping[Limit, Verdict], waivers: Waivers, fingerprint: str
) -> str:
    if isinstance(each, UnusableWaiver):
        return each.problem
    limit = next((limit for limit in on_limits if limit.metric == each.metric), None)
    if limit is None:
        return f"the policy has no limit on {each.metric} here"
    if not limit.blocks:
        return f"the limit on {each.metric} only warns"
    problems = waivers.problems(each, fingerprint, limit, on_limits[limit].value)
    return ", ".join(problems) or f"the limit on {each.metric} is met, or is already waived"


def settings_verdict(name: str, policy: Policy, evidence: Evidence) -> Verdict:
    """Decide whether an assessment was made with settings that the policy accepts."""
    sentence = f"{name}_settings_meet_the_policy"
    assessment = evidence.assessments.get(name)
    if assessment is None or not assessment.settings:
        return _failed(sentence, f"{name} does not record the settings that it was made with", REMAKE_ADVICE)
    if name == MPUCC:
        weaker = list(_weaker_settings(assessment.settings, policy.required, evidence))
        if any(limit.needs_control for limit in policy.limits):
            weaker += _too_small_control(assessment.settings, policy.required)
            weaker += _too_confident(assessment.settings, policy.required)
    else:
        weaker = list(_other_settings(name, assessment.settings, evidence.asked_for.get(name)))
        if name == DISCLOSURE and any(limit.needs_control for limit in policy.limits):
            weaker += _too_small_control(assessment.settings, policy.required)
    if not is_of_this_version(assessment.settings, name):
        weaker.append(_ANOTHER_VERSION.format(name, algorithm_of(name)))
    if name in (MPUCC, DISCLOSURE) and assessment.settings.get("spelling") != SPELLING:
        weaker.append(f"texts were compared by other rules than {SPELLING}")
    advice = "Assess again, with the settings that the policy requires, or change the policy."
    return _verdict(sentence, not weaker, "; ".join(weaker) or "the settings are as the policy requires", advice)


def _assessment_verdicts(name: str, policy: Policy, evidence: Evidence, fingerprint: str) -> Iterator[Verdict]:
    assessment = evidence.assessments.get(name)
    if assessment is None or assessment.digest is None:
        reason = f"there is no readable {name} in storage"
        yield _failed(f"{name}_exists", reason, "Materialize the assessment, then the release.")
        return
    yield _verdict(f"{name}_exists", True, f"{name} was found in storage")
    yield _verdict(
        f"{name}_was_made_by_a_run",
        assessment.made_by_run,
        f"a run made the latest materialization of {name}"
        if assessment.made_by_run
        else f"no run made the latest materialization of {name}: it is missing, was reported by hand, or its run was "
        "deleted",
        REMAKE_ADVICE,
    )
    yield _verdict(
        f"{name}_is_as_recorded",
        assessment.digest == assessment.recorded_digest,
        f"the stored {name} is what the run recorded"
        if assessment.digest == assessment.recorded_digest
        else f"the stored {name} is not what the run recorded: it was changed, or a run was interrupted",
        REMAKE_ADVICE,
    )
    of_this_table = assessment.made_of.get(evidence.stage) == fingerprint
    yield _verdict(
        f"{name}_is_of_this_table",
        of_this_table,
        f"{name} was made from this {evidence.stage} table"
        if of_this_table
        else f"{name} was made from a different {evidence.stage} table than the one that would be released",
        REMAKE_ADVICE,
    )
    yield _stands_on_what_is_recorded(name, assessment, evidence)
    yield settings_verdict(name, policy, evidence)
    if name == MPUCC:
        why = why_incomparable(name, evidence)
        is_judged = (assessment.settings or {}).get("foreign") is not None
        reason = why or ("its values and columns are like people's" if is_judged else "it was not judged")
        yield _verdict(f"{name}_can_see_copies", is_judged and not why, reason, INCOMPARABLE_ADVICE)


def _stands_on_what_is_recorded(name: str, assessment: AssessmentEvidence, evidence: Evidence) -> Verdict:
    stages = evidence.stands_on.get(name, ())
    others = [
        stage
        for stage in stages
        if stage not in evidence.tables
        or not evidence.tables[stage].made_by_run
        or assessment.made_of.get(stage) is None
        or assessment.made_of[stage] != evidence.tables[stage].recorded_digest
        or evidence.tables[stage].digest != evidence.tables[stage].recorded_digest
    ]
    reason = (
        f"it is based on tables other than those recorded for {others}"
        if others
        else f"it is based on the recorded {', '.join(stages) or 'table alone'}"
    )
    return _verdict(f"{name}_stands_on_the_recorded_tables", not others, reason, REMAKE_ADVICE)


def _a_limit_protects(policy: Policy, side: str) -> Verdict:
    protects = policy.protects(side)
    reason = (
        f"the policy has a blocking limit that protects {side} records"
        if protects
        else f"the policy has no limit of severity 'error' that prevents singling people out of {side} records"
    )
    advice = f"Add a limit to the policy, for example on {EXAMPLE_METRICS[side]}."
    return _verdict(f"the_policy_limits_the_{side}_side", protects, reason, advice)


def _table_is_as_recorded(evidence: Evidence, fingerprint: str) -> Verdict:
    table = evidence.tables.get(evidence.stage)
    sentence = f"{evidence.stage}_is_as_recorded"
    advice = f"Materialize {evidence.stage} again, then the assessment and the release."
    if table is None or not table.made_by_run:
        reason = f"no run made the latest {evidence.stage}: it is missing, was reported by hand, or its run was deleted"
        return _failed(sentence, reason, advice)
    same = table.digest == table.recorded_digest and fingerprint == (table.content or table.digest)
    reason = (
        f"the stored {evidence.stage} table is what the run recorded"
        if same
        else f"the stored {evidence.stage} table is not what the run recorded: it was overwritten, or a run was "
        "interrupted"
    )
    return _verdict(sentence, same, reason, advice)


def _table_is_of_this_version(evidence: Evidence) -> Iterator[Verdict]:
    """Decide on the version of an anonymization; other tables are not made by an algorithm of this package alone."""
    table, stage = evidence.tables.get(evidence.stage), evidence.stage
    if table is not None and table.settings is not None:
        is_ours = is_of_this_version(table.settings, "anonymization")
        expected = algorithm_of("anonymization")
        reason = f"{expected} made {stage}" if is_ours else _ANOTHER_VERSION.format(stage, expected)
        yield _verdict(f"this_version_made_{stage}", is_ours, reason, f"Materialize from {stage} on.")


def _table_keeps_the_contract(evidence: Evidence) -> Verdict:
    keeps = evidence.keeps_contract
    reason = (
        f"{evidence.stage} has the columns that the current contract releases, and meets it"
        if keeps
        else f"{evidence.stage} could not be measured: {evidence.problem}"
        if evidence.problem
        else f"{evidence.stage} does not meet the current contract: its columns, types or ranges differ"
    )
    return _verdict(f"{evidence.stage}_keeps_the_contract", keeps, reason, f"Materialize from {evidence.stage} on.")


def _every_row_has_its_person(stage: str, broken_links: Sequence[str]) -> Verdict:
    """Decide on related tables as they would be written. Nothing excuses rows without their person."""
    reason = (
        "; ".join(broken_links)
        or "people, and rows with rows, are numbered from 1 on, and every row has the number of its own"
    )
    return _verdict(LINKED_CHECK, not broken_links, reason, f"Materialize from {stage} on.")


def _rows_leave_in_one_form(others: Sequence[str]) -> Verdict:
    """Decide whether rows of these people left in another form: figures of a person and rows are joined by sums."""
    reason = (
        f"{first_of(others)} has rows of the same people in another form, and sums show whose rows are whose"
        if others
        else "no other release has rows of these people in another form"
    )
    advice = "Keep the form that was published; if nobody received that release, remove its directory."
    return _verdict("rows_leave_in_one_form", not others, reason, advice)


def _rows_are_of_the_declared_people(evidence: Evidence) -> Iterator[Verdict]:
    """Decide on whose the rows are. Only the contract can say what a column numbers, not a waiver."""
    if evidence.unit is None:
        yield _failed(UNIT_CHECK, "nothing is known about whose the rows are", "Materialize everything again.")
        return
    passed, reason, advice, doubts = evidence.unit
    yield Verdict(UNIT_CHECK, passed, "error", reason, advice)
    yield Verdict(DOUBT_CHECK, not doubts, "warn", doubts or "no column suggests it")


def _columns_may_leave(evidence: Evidence) -> Iterator[Verdict]:
    """Decide on columns that are released unchanged. Only a reason in the contract excuses them, not a waiver."""
    stages = (evidence.stage, *evidence.must_be_examined)
    passed, reason, advice = decide_on("identifying", stages, evidence.examined, evidence.acknowledged)
    yield Verdict(IDENTIFYING_CHECK, passed, "error", reason, advice)
    passed, reason, advice = decide_on("nearly_unique", stages, evidence.examined, evidence.acknowledged)
    yield Verdict(MEASURE_CHECK, passed, "warn", reason, advice)


def _rows_are_not_linked(evidence: Evidence) -> Iterator[Verdict]:
    """Decide on columns that show which rows are of one person. Only a reason in the contract excuses them."""
    for name, (passed, reason, advice) in decide_on_links(evidence.links, evidence.may_link):
        yield Verdict(name, passed, "error" if name == LINKS_CHECK else "warn", reason, advice)


def _made_of_what_is_recorded(stage: str, evidence: Evidence) -> Verdict:
    made_of = evidence.lineage[stage]
    table = evidence.tables.get(stage)
    recorded = {other: evidence.tables.get(other) for other in made_of}
    stale = [
        other
        for other, made in recorded.items()
        if table is None
        or made is None
        or not made.made_by_run
        or table.made_of.get(other) is None
        or table.made_of[other] != made.recorded_digest
    ]
    overwritten = [other for other, made in recorded.items() if made is None or made.digest != made.recorded_digest]
    if stale:
        reason = f"{stage} was made from an earlier version of {stale}"
    elif overwritten:
        reason = f"the content stored for {overwritten} is not what the run recorded: it was overwritten"
    else:
        reason = f"{stage} was made from the recorded {' and '.join(made_of)}"
    stale += overwritten
    return _verdict(f"{stage}_was_made_of_the_recorded_tables", not stale, reason, f"Materialize from {stage} on.")


def _split_was_made_at_once(evidence: Evidence) -> Verdict:
    runs = {evidence.tables[stage].run_id if stage in evidence.tables else None for stage in SPLIT_STAGES}
    at_once = len(runs) == 1 and None not in runs
    reason = (
        "one run made original and control"
        if at_once
        else "original and control were not made by the same run, so a person may be in both"
    )
    return _verdict("one_run_made_original_and_control", at_once, reason, "Materialize everything from the split on.")


def _tests_of_other_splits(splits: SplitEvidence) -> Iterator[Verdict]:
    passed, advice = False, "Change how the records are made: trying splits until one finds no leak is no test."
    if not splits.n_splits:
        reason, advice = "the private record does not have the disclosure test of this table", REMAKE_ADVICE
    elif splits.n_others_with_leak:
        reason = f"records of this synthesis leaked on another split of these people ({splits.n_others_with_leak})"
    elif splits.n_tried_before > MOST_OTHER_SPLITS:
        reason = f"{splits.n_tried_before} other splits of these people were tried before; expected at most one"
        advice = "Use the first split, or the second. Trying splits until one finds no leak is no test."
    else:
        passed, reason = True, f"{splits.n_splits} split{'s' * (splits.n_splits > 1)} of these people were tested"
    yield _verdict("no_other_split_was_chosen", passed, reason, advice)
    n, how = (splits.untested, "not yet ") if splits.untested else (len(splits.published_together), "")
    reason = f"tables published before of the same originals, {how}tested together with this one: {n:,}"
    yield _verdict("what_was_published_before_is_tested_together", not splits.untested, reason, REMAKE_ADVICE)


def _budget_is_recorded(budget: BudgetEvidence) -> Verdict:
    advice = "Restore the newest copy of the ledger. A budget cannot be reset."
    return _verdict("the_privacy_budget_is_recorded", budget.is_recorded, budget.reason, advice)


def _release_is_signed(signing: SigningEvidence | None) -> Verdict:
    if signing is None:
        reason = "the policy requires a signature, and the release has no signing key"
        advice = "Configure one with signing=SigningKey(path=...) or SigningKey(variable=...)."
        return _failed("the_release_is_signed", reason, advice)
    if signing.key_id is None:
        advice = "Restore the key, or configure a new one and give recipients its public key (docs/signing.md)."
        return _failed("the_release_is_signed", signing.problem, advice)
    return _verdict("the_release_is_signed", True, f"the release is signed with the key {signing.key_id}")


def _declaration_is_complete(undeclared: str | None) -> Verdict:
    reason = "the declaration was not read" if undeclared is None else undeclared or "it has what the policy demands"
    advice = "Declare it in the settings of the release (declaration), then materialize the release again."
    return _verdict(DECLARATION_CHECK, undeclared == "", reason, advice)


def _weaker_settings(settings: Mapping[str, Any], required: RequiredSettings, evidence: Evidence) -> Iterator[str]:
    if evidence.views:
        own = settings.get("views") or {}
        if set(own) != set(evidence.views):
            yield f"{len(set(own) ^ set(evidence.views))} views differ from those of the tables that would be released"
        # Combinations of more columns single everybody out in wide views, and no limit depends on them.
        size = min(required.max_baseline_cols or MOST_COLUMNS_OF_VIEW, MOST_COLUMNS_OF_VIEW)
        for name, columns in evidence.views.items():
            of_view = replace(evidence, columns=columns, views={}, parts={})
            asked = replace(required, max_baseline_cols=size)
            yield from (f"{name}: {weaker}" for weaker in _weaker_settings(own.get(name, {}), asked, of_view))
        return
    if required.exact_search and settings.get("search") != "exact":
        yield f"search is {settings.get('search')!r}, expected 'exact'"
    assessed = settings.get("columns")
    if settings.get("parts", {}) != {name: list(own) for name, own in evidence.parts.items()}:
        yield "other columns were searched as one than those that the contract declares as parts of one (part_of)"
    elif not isinstance(assessed, list | tuple) or set(assessed) != set(evidence.columns):
        count = len(set(evidence.columns).symmetric_difference(assessed or ()))
        yield f"{count} columns differ between the assessed table and the table that would be released"
    expected_columns = min(required.max_baseline_cols or len(evidence.columns), len(evidence.columns))
    searched = settings.get("complete_up_to")
    if not isinstance(searched, int) or searched < expected_columns:
        yield f"combinations of up to {searched} columns were searched completely, expected at least {expected_columns}"
    given = settings.get("given_precision")
    if required.default_precision and (not isinstance(given, Mapping) or not _are_declared(given, evidence)):
        yield "a precision was set by hand; expected the precision found in the originals or declared in the contract"
    if evidence.has_person and not isinstance(settings.get("n_people"), Mapping):
        yield "records were counted; expected people, because the contract has a person column"
    if required.deduplicated and settings.get("deduplicate") is not True:
        yield "repeated records were kept, expected deduplicate=True"


def _too_small_control(settings: Mapping[str, Any], required: RequiredSettings) -> Iterator[str]:
    counted, unit = (settings["n_people"], "people") if "n_people" in settings else (settings.get("n_rows"), "records")
    n_control = counted.get("control", 0) if isinstance(counted, Mapping) else 0
    if not isinstance(n_control, int) or n_control < required.control_records:
        yield f"the control has {n_control} {unit}, expected at least {required.control_records}"


def _too_confident(settings: Mapping[str, Any], required: RequiredSettings) -> Iterator[str]:
    level = settings.get("confidence_level")
    if not isinstance(level, float) or not level <= required.confidence_level:
        yield f"intervals have confidence {level}, expected at most {required.confidence_level}"


def _other_settings(assessment: str, settings: Mapping[str, Any], asked_for: Mapping[str, Any] | None) -> Iterator[str]:
    if asked_for is None:
        yield "the settings that it must be made with are not known"
        return
    for name, expected in asked_for.items():
        found = settings.get(name)
        if name == "known" and assessment == REIDENTIFICATION:
            assessed = [frozenset(columns) for columns in found or ()]
            # More knowledge never leaves more candidates, so a superset covers a set.
            lacking = [columns for columns in expected if not any(known >= frozenset(columns) for known in assessed)]
            if lacking:
                yield f"{len(lacking)} sets of columns that an attacker may know were not assessed"
        elif name == "other_releases":
            held = [[other.get("name"), other.get("key")] for other in found or ()]
            # More releases, such as earlier publications of one of these, never leave more candidates.
            if not all(other in held for other in expected):
                yield f"{len(held)} other releases were considered, expected the {len(expected)} configured ones"
        elif found != expected:
            yield f"{name} differs from what the current policy and contract require"


def _are_declared(given: Mapping[str, Any], evidence: Evidence) -> bool:
    return all(evidence.declared_precisions.get(column) == precision for column, precision in given.items())


def _verdict(name: str, passed: bool, reason: str, advice: str = "") -> Verdict:
    return Verdict(name, passed, "error", reason, "" if passed else advice)


def _failed(name: str, reason: str, advice: str) -> Verdict:
    return Verdict(name, False, "error", reason, advice)
