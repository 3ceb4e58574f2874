"""Change releases in ways that a recipient can undo, and examine whether the gate's verdict gets better.

Usage: python -m benchmarks.campaigns.undoable [--tables NAME ...] [--share 100] [--workers 1] [--json [FILE]]

A pair is a release and a transformation. The releases of eight tables are copies of 1, 5 and 100 % of the originals,
records made by CART and by interpolation, and an anonymized table of small classes, which must be refused; and records
of other people and of the copula, and an anonymized table of larger classes. For each pair the figures of all metrics
are computed by the public functions, before and after, and limits are decided as the gate does:

- better: a preset that refused the release, or one of its limits, admits it after the transformation; or a figure
  moved to its safe side although it may not (`PROMISES`); or a condition does not refuse, or a figure does not become
  worse, although rows of a person are linked, or taken for several people (`Transformation.seen_by`)
- changed: a figure moved although the transformation changes nothing for anybody
- unexplained: a figure has no value, and no sentence says why
- refused: something cannot be measured any more, and a sentence says why
- worse, equal: what remains

Verdicts by chance are left out: `leakage_detected` counts where its p value is at most .01 before.
"""

import argparse
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any, NamedTuple

from benchmarks.campaigns.undoable_changes import (
    DIGITS,
    DILUTION,
    FILTER,
    KINDS,
    LINKED,
    MORE,
    NOISE,
    NOTATION,
    ONE_TO_ONE,
    ORDER,
    OWNER,
    PARTS,
    REPEATS,
    SEPARATE,
    SHIFT,
    SHUFFLE,
    SPELLING,
    TRANSFORMATIONS,
    UNITS,
    Transformation,
)
from benchmarks.campaigns.undoable_tables import TABLES, Anonymized, Synthetic, random_of, releases_of
from benchmarks.measurements import Measurements, add_json_option
from privacy_assets.anonymization.anonymized_table import links_of, measure_anonymity
from privacy_assets.anonymization.measured_loss import require_measured
from privacy_assets.columns.unknown_values import said_of_blind
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.disclosure.declared_unit import UNIT_CHECK, decide_on_unit, examine_unit
from privacy_assets.disclosure.rare_values import RARE_VALUES, RARE_VALUES_RELEASED, count_rare_values
from privacy_assets.errors import PrivacyAssetsError
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.pipeline.measure import figures_in_manifest
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.release.evidence import Evidence
from privacy_assets.release.gate import Verdict, limit_verdict
from privacy_assets.release.leakage import figures_of_disclosure
from privacy_assets.release.metrics import (
    ANONYMITY,
    DISCLOSURE,
    LEAKAGE_DETECTED,
    METRICS,
    MPUCC,
    PRIVACY_BUDGET,
    REIDENTIFICATION,
    SEMANTIC,
    STATISTICS,
    UTILITY,
    figures_of,
)
from privacy_assets.release.policy import INSTEAD, USE_CASES, Policy, RequiredSettings
from privacy_assets.release.row_links import LinkEvidence, decide_on_links
from privacy_assets.semantic_risk.assess import assess_semantic_risk
from privacy_assets.semantic_risk.formal_context import released_scales
from privacy_assets.utility.assess import assess_utility
from privacy_assets.utility.foreign import why_foreign

OUTCOMES = ("better", "changed", "unexplained", "refused", "worse", "equal")
FAILURES = OUTCOMES[:3]
SURE = 0.01
ROOM, DEVIATIONS = 0.1, 3.0
"""What chance may do to a share: a tenth of it, or three standard deviations."""
MAX_COLUMNS = 3
KNOWN_ROWS = 2
"""Rows of a person that an attacker knows, the fewest of policies that count with more than one."""
PEOPLE_PER_VALUE = 5
# Copies of fewer people than a policy allows to go unnoticed are no reason of their own: the tables are small.
REQUIRED = RequiredSettings(detectable_share=None)
POLICIES = {name: Policy.for_use_case(name).with_required(detectable_share=None) for name in USE_CASES}


class Promise(NamedTuple):
    """What transformations may do to a figure, by family.

    Attributes
    ----------
    equal : frozenset of str
        The figure stays as it is.
    not_better : frozenset of str
        It may only move away from its safe side.
    none : mapping of str to str
        Nothing is promised, for this reason.
    """

    equal: frozenset[str]
    not_better: frozenset[str] = frozenset()
    none: Mapping[str, str] = {}


NOTHING = (ORDER, OWNER)
"""Families that change nothing for anybody; they also apply to releases that can be admitted."""
HIDDEN = (FILTER, SHIFT, SHUFFLE)
"""Families that hide copies, which only the test sees."""
EVERYTHING = (MORE, DILUTION, REPEATS, PARTS, NOISE, UNITS, SPELLING, NOTATION, DIGITS, KINDS, ONE_TO_ONE, *HIDDEN)
"""All other families."""
FAMILIES = (*NOTHING, *EVERYTHING, LINKED, SEPARATE)


def _promise(
    equal: Sequence[str] = (), not_better: Sequence[str] = (), none: Mapping[str, str] | None = None
) -> Promise:
    none = {**dict.fromkeys({*HIDDEN} - {*equal, *not_better}, BY_THE_TEST), **(none or {}), SEPARATE: OTHER_PEOPLE}
    return Promise(frozenset({*NOTHING, *equal} - none.keys()), frozenset({*not_better, LINKED}), none)


OTHER_PEOPLE = "counted in other people than those of the table, for which the release is refused"
BY_THE_TEST = "no record is a copy any more; leakage_detected is the decision"
ADMITTED_LATER = "a later version decides without columns that depend on no other"
FEWER_COPIES_DRAWN = "a draw has fewer copies; leakage_detected is about all records"
WORTH = "no figure of risk"
AN_INTERVAL = "the upper end of an interval, which is narrower where more is known; leakage_detected is the decision"
EQUALLY_NEAR = "which of several nearest records is drawn depends on how often each is there"
OF_THE_CONTROL = "the control changes as well, or the figure is a difference from it"
RARER = "the distinct records of a larger table are rarer ones; verbatim_copies counts all of them"
OTHER_DRAWS = "other records are drawn where the values differ"
HIDDEN_BY_OTHERS = "a fresh record with the same values makes a combination common; leakage_detected is the decision"
BY_COLUMN = "counting queries are drawn by the places of columns, which the contract fixes"
ROUNDED = "values that differ only in what is rounded are one, also among the people"
BY_PLACE = "samples of the originals are drawn by their places"

SHARES = _promise(
    equal=(REPEATS, PARTS, UNITS, SPELLING, KINDS),
    not_better=(MORE, NOISE, NOTATION, DIGITS, ONE_TO_ONE),
    none={DILUTION: FEWER_COPIES_DRAWN},
)
"""Shares of synthetic records, computed on at most as many as there are originals."""
COUNTS = _promise(
    equal=(REPEATS, PARTS, UNITS, SPELLING, KINDS),
    not_better=(MORE, NOISE, NOTATION, DIGITS, ONE_TO_ONE),
    none={DILUTION: HIDDEN_BY_OTHERS},
)
"""Counts over all records that are published."""
ORIGINALS = _promise(
    equal=(REPEATS, PARTS, UNITS, SPELLING, KINDS), not_better=(MORE, DILUTION, NOISE, NOTATION, DIGITS, ONE_TO_ONE)
)
BASELINE = _promise(
    equal=(MORE, DILUTION, REPEATS, PARTS, UNITS, SPELLING, KINDS, NOTATION, ONE_TO_ONE),
    none={
        NOISE: "a product over the columns, alone; privacy_risk_score becomes larger by it",
        DIGITS: ROUNDED,
    },
)
COPIES = _promise(
    equal=(REPEATS, PARTS, UNITS, SPELLING, KINDS),
    not_better=(MORE, DILUTION, NOTATION, DIGITS),
    none={
        NOISE: "no record is a copy in columns that are random",
        ONE_TO_ONE: "a record that differs in one column is no verbatim copy; leakage_detected sees near ones",
    },
)
VERBATIM = _promise(
    equal=(REPEATS, PARTS, UNITS, SPELLING, KINDS),
    not_better=(NOTATION,),
    none={**COPIES.none, MORE: RARER, DILUTION: FEWER_COPIES_DRAWN, DIGITS: ROUNDED, OWNER: BY_PLACE},
)
BEYOND_PEOPLE = _promise(
    equal=(PARTS, UNITS, SPELLING, KINDS),
    not_better=(NOTATION,),
    none={**COPIES.none, **dict.fromkeys((MORE, DILUTION, REPEATS), FEWER_COPIES_DRAWN), DIGITS: ROUNDED},
)
EXCESS = _promise(
    equal=(REPEATS, PARTS, UNITS, SPELLING, KINDS),
    not_better=(NOTATION,),
    none={**dict.fromkeys((MORE, DILUTION, NOISE, ONE_TO_ONE), OF_THE_CONTROL), DIGITS: ROUNDED, OWNER: BY_PLACE},
)
BESIDE_CONTROL = _promise(
    equal=(REPEATS, SPELLING, KINDS),
    none={
        **dict.fromkeys((MORE, DILUTION, NOISE, ONE_TO_ONE), OF_THE_CONTROL),
        **dict.fromkeys((PARTS, UNITS, NOTATION), OTHER_DRAWS),
        DIGITS: ROUNDED,
    },
)
TEST = _promise(
    equal=(SPELLING, KINDS),
    not_better=(REPEATS, MORE, DILUTION, PARTS, UNITS, NOTATION, DIGITS, ONE_TO_ONE, *HIDDEN),
    none={NOISE: ADMITTED_LATER},
)
UPPER_END = _promise(
    equal=(REPEATS, SPELLING, KINDS),
    none={
        **dict.fromkeys((MORE, DILUTION, PARTS, UNITS, NOTATION, DIGITS, ONE_TO_ONE), AN_INTERVAL),
        NOISE: ADMITTED_LATER,
    },
)
GUESSES = UPPER_END._replace(equal=UPPER_END.equal - {REPEATS}, none={**UPPER_END.none, REPEATS: EQUALLY_NEAR})
RARE = _promise(
    equal=(REPEATS, NOISE, UNITS, SPELLING, DIGITS, KINDS),
    not_better=(MORE, DILUTION, PARTS, NOTATION, ONE_TO_ONE),
)
OF_WORTH = _promise(none={**dict.fromkeys(EVERYTHING, WORTH), OWNER: BY_COLUMN})
OF_RULES = _promise(none=dict.fromkeys(EVERYTHING, "a rule judges values as they are written, and protects nobody"))
OF_THE_LEDGER = _promise(equal=EVERYTHING)
"""Figures that are read from the ledger, not from a table."""
OF_CLASSES = _promise(equal=(UNITS, SPELLING, DIGITS, KINDS, ONE_TO_ONE), not_better=(NOTATION,))
BY_ASSESSMENT = {
    **dict.fromkeys((ANONYMITY, REIDENTIFICATION, SEMANTIC), OF_CLASSES),
    UTILITY: OF_WORTH,
    PRIVACY_BUDGET: OF_THE_LEDGER,
}
"""What all metrics of an assessment promise."""
PROMISES: Mapping[str, Promise] = {
    **{name: BY_ASSESSMENT[own.assessment] for name, own in METRICS.items() if own.assessment in BY_ASSESSMENT},
    "privacy_risk_score": SHARES,
    "score_of_lone_people": SHARES,
    "score_of_strangers": BESIDE_CONTROL,
    "score_of_related_columns": BESIDE_CONTROL,
    "score_of_strangers_on_related_columns": BESIDE_CONTROL,
    "originals_singled_out_by_strangers": BESIDE_CONTROL,
    "overall_protection": SHARES,
    "main_protection": SHARES,
    "baseline_protection": BASELINE,
    "identification_rate": SHARES,
    "total_identified": COUNTS,
    "originals_singled_out": ORIGINALS,
    "copies_beyond_people": BEYOND_PEOPLE,
    "excess_identification_rate": EXCESS,
    "verbatim_rate": VERBATIM,
    "excess_verbatim_rate": EXCESS,
    "verbatim_copies": COPIES,
    "excess_copy_rate": EXCESS,
    "leakage_detected": TEST,
    **{f"{name}_excess": UPPER_END for name, criterion in CRITERIA.items() if criterion.share_of},
    "smallest_shared_cell": ORIGINALS,
    "share_in_homogeneous_cells": GUESSES,
    "exposed_share": GUESSES,
    "exposed_share_of_least_visible": GUESSES,
    "inference_excess": GUESSES,
    "membership_advantage_upper": UPPER_END,
    "rare_values_released": RARE,
    "rule_violations": OF_RULES,
}
"""What each metric promises; a new one of another assessment is added here, for every family of its side."""


@dataclass
class Assessed:
    """The figures of a release, the sentence for each without a value, the p value of the test of leakage, refusals."""

    side: str
    figures: dict[str, float | None] = field(default_factory=dict)
    sentences: dict[str, str] = field(default_factory=dict)
    p_value: float = 1.0
    refusals: dict[str, str] = field(default_factory=dict)

    @property
    def evidence(self) -> Evidence:
        """The figures as the gate receives them."""
        measured: dict[str, dict[str, float | None]] = {}
        for metric, value in self.figures.items():
            measured.setdefault(METRICS[metric].assessment, {})[metric] = value
        return Evidence(self.side, self.side, (), {}, {}, measured=measured)

    def add(self, assessment: str, assess: Any) -> None:
        """Add the figures of an assessment; if it is refused, they have no value, and its sentence is why."""
        own = [name for name, metric in METRICS.items() if metric.assessment == assessment]
        try:
            found = assess()
        except PrivacyAssetsError as error:
            found, sentences = dict.fromkeys(own), dict.fromkeys(own, str(error))
            self.sentences |= sentences
        self.figures |= {name: found.get(name) for name in own}


def assess(release: Synthetic | Anonymized, family: str = ORDER) -> Assessed:
    """Compute the figures that a policy can limit, by the functions that a release uses, and ask conditions on people.

    Families that change nothing are also asked about worth, and those that declare other people about conditions alone.
    """
    found = Assessed("anonymized" if isinstance(release, Anonymized) else "synthetic")
    if family != SEPARATE:
        found = (
            _assess_anonymized(release)
            if isinstance(release, Anonymized)
            else _assess_synthetic(release, with_worth=family in NOTHING)
        )
    if family in (LINKED, SEPARATE):
        found.refusals = _refusals(release, family)
    return found


def _refusals(release: Synthetic | Anonymized, family: str) -> dict[str, str]:
    """Return the conditions by which the gate refuses a release for its people, each with its sentence."""
    contract = release.source.contract
    examined = examine_unit(contract.check(release.source.table), contract)
    decisions = {UNIT_CHECK: decide_on_unit({"source": examined}, contract)}
    if isinstance(release, Anonymized) and family == LINKED:
        links = links_of(release.made, contract, release.admitted, release.made.settings["k"])
        decisions |= decide_on_links(LinkEvidence(links=links), contract.links_rows)
    return {name: decision.reason for name, decision in decisions.items() if not decision.passed}


def _assess_synthetic(release: Synthetic, *, with_worth: bool) -> Assessed:
    found = Assessed("synthetic")
    tables = (release.original, release.synthetic, release.control)
    incomparable: list[str] = []
    threads = {name: value for name, value in release.options.items() if name == "n_threads"}

    def decided(figures: Mapping[str, float | None]) -> Mapping[str, float | None]:
        """Leave figures out as the gate does where records cannot be compared with people; what was found stays."""
        if not incomparable:
            return figures
        found.sentences.update(dict.fromkeys(figures, " ".join(incomparable)))
        return {name: value if METRICS[name].is_yes_no and value else None for name, value in figures.items()}

    def searched() -> Mapping[str, float | None]:
        own = {"max_baseline_cols": min(MAX_COLUMNS, len(release.columns)), "person": release.person}
        assessment = assess_mpuccs(*tables, **own, **release.options)
        foreign = why_foreign(*tables, person=release.person)
        incomparable.extend(filter(None, [said_of_blind(assessment.settings["unknown_values"]), foreign]))
        return decided(figures_of(MPUCC, figures_in_manifest(assessment)))

    def tested() -> Mapping[str, float | None]:
        scores = assess_disclosure(*tables, person=release.person, **threads).scores
        figures = figures_of_disclosure(scores, REQUIRED)
        found.p_value = scores["adjusted_p_value"]
        found.sentences[LEAKAGE_DETECTED] = figures.remark
        return decided(figures.metrics)

    def counted() -> Mapping[str, float | None]:
        people = [release.original, release.control]
        counted = count_rare_values(release.synthetic, people, people_per_value=PEOPLE_PER_VALUE, person=release.person)
        found.sentences[RARE_VALUES_RELEASED] = counted.remark
        return counted.metrics

    def valued() -> Mapping[str, float | None]:
        # The columns of the originals, in their order, as those of a contract.
        own = [table[[name for name in release.original if name in release.columns]] for table in tables]
        return figures_of(UTILITY, {UTILITY: assess_utility(*own).shown_scores})

    found.add(MPUCC, searched)
    found.add(DISCLOSURE, tested)
    found.add(RARE_VALUES, counted)
    if with_worth:
        found.add(UTILITY, valued)
    return found


def _assess_anonymized(release: Anonymized) -> Assessed:
    found = Assessed("anonymized")
    made, source, links = release.made, release.admitted, list(release.contract.links_rows)
    person = made.settings["subject"]

    def measured() -> Mapping[str, float | None]:
        losses = require_measured(made, source)
        report, statistics = measure_anonymity(made, release.contract, source, person, losses)
        return figures_of(ANONYMITY, {ANONYMITY: report.to_header(), STATISTICS: statistics})

    def reidentified() -> Mapping[str, float | None]:
        return assess_reidentification(source, made, links=links, known_rows=KNOWN_ROWS, n_threads=1).scores

    def conceptual() -> Mapping[str, float | None]:
        scales = released_scales(made.table, made.settings["quasi_identifiers"], made.model)
        return assess_semantic_risk(
            made.table, scales, model=made.model, semantic_risk=False, advice=False, n_threads=1
        ).scores

    found.add(ANONYMITY, measured)
    found.add(REIDENTIFICATION, reidentified)
    found.add(SEMANTIC, conceptual)
    return found


def compare(
    before: Assessed, after: Assessed, family: str, n_drawn: int = 0, seen_by: str = ""
) -> tuple[str, list[str]]:
    """Decide what a transformation of this family did to the verdict; return the outcome and what it is made of.

    If it drew records, ``n_drawn`` is how many were scored together. ``seen_by`` names what must see the change.
    """
    found: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
    sure = {name for name in before.figures if name != LEAKAGE_DETECTED or before.p_value <= SURE}
    for name in sure:
        value, promise = before.figures[name], PROMISES[name]
        now = after.figures.get(name)
        if (
            value is None
            or family in promise.none
            or (now is not None and math.isclose(now, value, rel_tol=1e-12, abs_tol=1e-12))
        ):
            continue
        if family in promise.equal and (now is not None or family in NOTHING):
            found["changed"].append(f"{name} {value:.6g} -> {now}")
        elif now is None:
            explained = after.sentences.get(name)
            found["refused" if explained else "unexplained"].append(f"{name}: {explained}")
        elif family in promise.not_better and _is_safer(name, now, value, n_drawn):
            found["better"].append(f"{name} {value:.6g} -> {now:.6g}")
        else:
            found["worse"].append(f"{name} {value:.6g} -> {now:.6g}")
    for use_case, policy in POLICIES.items():
        limits = [limit for limit in policy.limits_of(before.side) if limit.blocks and limit.metric in sure]
        own = [limit for limit in limits if before.figures[limit.metric] is not None and _verdict(limit, before).blocks]
        is_promised = any(family not in PROMISES[limit.metric].none for limit in own)
        if is_promised and not any(_verdict(limit, after).blocks for limit in limits):
            found["better"].append(f"admitted by {use_case}")
        # What decides where people never seen fail a limit, too, says nothing alone.
        found["better"] += [
            f"limit of {use_case} on {limit.metric}"
            for limit in own
            if limit.metric != INSTEAD and family not in PROMISES[limit.metric].none and _verdict(limit, after).passed
        ]
    if seen_by in METRICS:
        value, now = before.figures[seen_by], after.figures[seen_by]
        if value is not None and now is not None and not _is_safer(seen_by, value, now, 0):
            found["better"].append(f"{seen_by} {value} -> {now}")
    elif seen_by and seen_by in before.refusals:
        found["unexplained"].append(f"{seen_by} refused before: {before.refusals[seen_by]}")
    elif seen_by:
        said = after.refusals.get(seen_by)
        found["refused" if said else "better"].append(f"{seen_by}: {said}")
    outcome = next((name for name in OUTCOMES if found[name]), "equal")
    return outcome, found[outcome]


def _verdict(limit: Any, assessed: Assessed) -> Verdict:
    return limit_verdict(limit, assessed.evidence)


def _is_safer(metric: str, now: float, value: float, n_drawn: int) -> bool:
    """Whether a figure moved to its safe side, by more than chance if it is a share of records that were drawn."""
    is_low_safe = METRICS[metric].direction in ("below", "at_most")
    risk, before = (now, value) if is_low_safe else (-now, -value)
    if not n_drawn or METRICS[metric].high != 1:
        return risk < before
    share = value if is_low_safe else 1 - value
    return risk < before - max(ROOM * share, DEVIATIONS * math.sqrt(max(share * (1 - share), 0) / n_drawn))


class Pair(NamedTuple):
    """A release and a transformation, with the outcome and the figures that it is made of."""

    table: str
    release: str
    number: int
    outcome: str = ""
    details: Sequence[str] = ()
    seconds: float = 0.0

    @property
    def transformation(self) -> Transformation:
        """The transformation; it is not part of the pair, because other processes cannot receive it."""
        return TRANSFORMATIONS[self.number]


REFUSED = ("copies of 1 %", "copies of 5 %", "copies of 100 %", "CART", "interpolated", "k below the limit")


def pairs(tables: Sequence[str], share: float = 100.0, families: Sequence[str] = FAMILIES) -> list[Pair]:
    """List the pairs of tables and families; of a share in percent, those of each transformation in turn.

    All transformations apply to releases that must be refused, and those that change nothing to the others; those that
    a condition or figure must see apply to releases that can be admitted.
    """
    every = [
        Pair(table, release, number)
        for table in tables
        for release in releases_of(table)
        for number, each in enumerate(TRANSFORMATIONS)
        if each.family in families
        and each.family in (TABLES[table].families or FAMILIES)
        and (each.form == "anonymized") == release.startswith("k ")
        and (each.family in NOTHING or (release in REFUSED) != bool(each.seen_by))
    ]
    order = random_of("share").permutation(len(every))
    seen: Counter[int] = Counter()
    turns = {}
    for place in order:
        number = every[place].number
        turns[place] = (seen[number], place)
        seen[number] += 1
    chosen = sorted(order, key=turns.__getitem__)[: round(len(every) * share / 100)]
    return [every[place] for place in sorted(chosen)]


def examine(own: Sequence[Pair], size: float = 1.0) -> list[Pair]:
    """Examine the pairs of one release; those that have nothing to change are left out."""
    table, name = own[0].table, own[0].release
    release = releases_of(table, size)[name]()
    bases: dict[tuple[str, bool, bool], tuple[Any, Assessed]] = {}
    done = []
    for pair in own:
        change = pair.transformation
        kind = change.form, change.family == LINKED, change.family == SEPARATE
        if kind not in bases:
            base = release.as_text() if change.form == "text" else release
            bases[kind] = base, assess(base, change.family if change.seen_by else ORDER)
        base, before = bases[kind]
        start = time.process_time()
        changed = change.change(base, random_of(table, name, change.name))
        if changed is None:
            continue
        try:
            after = assess(changed, change.family)
            n_drawn = len(base.original) if change.draws else 0
            outcome, details = compare(before, after, change.family, n_drawn, change.seen_by)
        except Exception as error:  # noqa: BLE001 - an error that is not the package's own explains nothing
            outcome, details = "unexplained", [f"{type(error).__name__}: {error}"]
        done.append(pair._replace(outcome=outcome, details=details, seconds=time.process_time() - start))
    return done


def campaign(
    tables: Sequence[str] = tuple(TABLES),
    share: float = 100.0,
    n_workers: int = 1,
    size: float = 1.0,
    families: Sequence[str] = FAMILIES,
) -> Iterator[Pair]:
    """Examine the pairs of tables and families, or a share of them in percent, release by release."""
    by_release: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs(tables, share, families):
        by_release.setdefault((pair.table, pair.release), []).append(pair)
    if n_workers == 1:
        for own in by_release.values():
            yield from examine(own, size)
        return
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        for done in [pool.submit(examine, own, size) for own in by_release.values()]:
            yield from done.result()


def key_of(transformation: Transformation, outcome: str) -> str:
    """Return the name of a kept figure: the pairs of a transformation with an outcome."""
    return f"{transformation.form}_{transformation.name}_{outcome}".replace(" ", "_").replace(",", "")


def main() -> None:
    """Run the campaign, print what each transformation did and a summary; exit with 1 if a verdict got better."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES), metavar="NAME")
    parser.add_argument("--families", nargs="*", default=list(FAMILIES), choices=list(FAMILIES), metavar="NAME")
    parser.add_argument("--share", type=float, default=100.0, help="percent of the pairs")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--size", type=float, default=1.0, help="people, as a multiple of the usual number")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("undoable", options)
    counts: dict[int, Counter[str]] = {number: Counter() for number in range(len(TRANSFORMATIONS))}
    for pair in campaign(options.tables, options.share, options.workers, options.size, options.families):
        counts[pair.number][pair.outcome] += 1
        if pair.outcome in FAILURES:
            found = "; ".join(pair.details)
            print(f"{pair.outcome}: {pair.table}, {pair.release}, {pair.transformation.name}: {found}", flush=True)
    total: Counter[str] = sum(counts.values(), Counter())
    for number, own in counts.items():
        each = TRANSFORMATIONS[number]
        print(f"{each.form:>10}  {each.name}: " + ", ".join(f"{own[name]} {name}" for name in OUTCOMES if own[name]))
        for outcome in OUTCOMES:
            measured.keep(**{key_of(each, outcome): own[outcome]})
    print(f"{total.total()} pairs: " + ", ".join(f"{total[name]} {name}" for name in OUTCOMES))
    measured.keep(pairs=total.total(), **total)
    measured.check("no verdict is better", not any(total[name] for name in FAILURES))
    raise SystemExit(measured.finish())


if __name__ == "__main__":
    main()
