"""Plain-language explanations of the figures of a release."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil, exp
from string import Formatter
from typing import Any, TypeAlias

from privacy_assets.contract.rule_violations import RULE_VIOLATIONS, RULES
from privacy_assets.disclosure.criteria import criteria_in_words
from privacy_assets.disclosure.rare_values import RARE_VALUES, RARE_VALUES_RELEASED
from privacy_assets.display.numbers import against, number, percent
from privacy_assets.release.leakage import NOT_ANSWERABLE, failed_criteria, is_answerable, unseen_in_people
from privacy_assets.release.metrics import (
    ANONYMITY,
    CONTROL,
    DISCLOSURE,
    LEAKAGE_DETECTED,
    METRICS,
    MPUCC,
    PRIVACY_BUDGET,
    REIDENTIFICATION,
    SEMANTIC,
    STATISTICS,
    UTILITY,
    shown_figure,
)
from privacy_assets.release.policy import USE_CASES, Policy
from privacy_assets.release.ratings import rate_baseline, rate_score
from privacy_assets.release.report_criteria import GUESSED
from privacy_assets.semantic_risk.result import LACKED_COLUMNS

_NAMES_OF_CHANGES = {
    "known": "the columns that an attacker knows",
    "known_rows": "the rows of a person that an attacker knows",
    "required.detectable_share": "the share of the people of whom copies may go unnoticed",
}
LEAKAGE = {True: "yes", False: "no", None: "too few records to tell"}
"""Whether leakage is detected, as written in the figures of the manifest."""

CAVEATS = {
    "synthetic": (
        "A score of 0 does not prove safety: the figures show how far this attack gets, with these columns, against "
        "these originals.",
        "Anyone who receives the records today may attack them later with more data.",
    ),
    "anonymized": (
        "The figures apply to attackers who know only the quasi-identifiers of a person; the other columns are "
        "released unchanged.",
        "Anyone who receives the records today may attack them later with more data.",
    ),
}

FIGURES_IN_WORDS = {
    "records_kept": "records that withholding would keep",
    "records_not_kept": "records that withholding would leave out",
    "share_not_kept": "share that withholding would leave out",
    "rounds_of_suppression": "rounds that withholding would take",
}
"""Figures whose names would suggest that the release was changed, although it was only measured."""

MOST_COLUMNS = 3
IN_NATS = frozenset({"mean_nonspecificity", "min_nonspecificity", "mean_entropy", "min_entropy"})
"""Figures that are natural logarithms; reports have them in bits."""


_Saying: TypeAlias = tuple[Any, ...]
"""An assessment, a sentence with names of its figures or a function of them, and figures that the function needs."""


def plain_words(figures: Mapping[str, Any], limits: Mapping[str, float], *, rated: bool = True) -> tuple[str, ...]:
    """Explain the figures of a manifest in sentences with counts and shares only.

    A figure has enough digits to show whether it is above its limit. If ``rated``, figures are rated on general scales,
    which know neither the policy nor its verdict.
    """
    return _said(_SAYINGS, figures, limits, rated=rated)


def worth_in_words(figures: Mapping[str, Any]) -> tuple[str, ...]:
    """Explain the worth of the records in plain words; empty if it was not assessed."""
    return _said(_SAYINGS_OF_WORTH, figures, {})


def decisive_words(metric: str, figures: Mapping[str, Any]) -> str:
    """Explain a limited figure; empty if there are no words for it, or not all figures that they need."""
    return "".join(_said([DECISIVE[metric]] if metric in DECISIVE else [], figures, {}))


def chance_in_words(metric: str, figures: Mapping[str, Any], side: str) -> tuple[str, str]:
    """Say what a figure bounds for one person of the source, and what that is called; empty if it bounds nothing."""
    name, *sayings = CHANCES[side].get(metric, ("",))
    return name, "".join(_said(sayings, figures, {}) if METRICS[metric].of(figures) is not None else ())


def changes_in_words(policy: Mapping[str, Any]) -> str:
    """Describe each change of a policy from its preset: what was changed, from what to what."""
    names = policy["changes"]
    if policy["use_case"] not in USE_CASES:
        return ", ".join(map(_changed, names))
    before, now = (_in_words(each) for each in (Policy.for_use_case(policy["use_case"]).to_json(), policy))
    said = [(_changed(name), before.get(name, "none"), now.get(name, "none")) for name in names]
    return "; ".join(
        f"{name}: {own}, with other advice" if own == of else f"{name} from {of} to {own}" for name, of, own in said
    )


def _changed(name: str) -> str:
    kind, _, own = name.rpartition(".")
    return _NAMES_OF_CHANGES.get(name, f"the {'required' if kind else 'limit on'} {own}").replace("_", " ")


def _in_words(policy: Mapping[str, Any]) -> dict[str, str]:
    """Return what can differ between a policy and its preset, in words, by the names of `Policy.changes`."""
    said = {"known_rows": str(policy["known_rows"])}
    said["known"] = "; ".join(", ".join(columns) for columns in policy["known"]) or "all quasi-identifiers"
    for limit in policy["limits"]:
        metric, direction, value = (limit[name] for name in ("metric", "direction", "value"))
        bound = shown_figure(metric, direction, value, value)[1]
        instead = f" (or {limit['beyond'].replace('_', ' ')})" if limit["beyond"] else ""
        said[metric] = f"{bound}{instead}{', as a warning' * (limit['severity'] == 'warn')}"
    for name, value in policy["required"].items():
        own = ", ".join(map(str, value)) or "nothing" if isinstance(value, list | tuple) else value
        words = {True: "yes", False: "no"}[own] if isinstance(own, bool) else "any" if own is None else str(own)
        said[f"required.{name}"] = percent(own) if isinstance(own, float) else words
    return said


def in_which_columns(metric: str | None, figures: Mapping[str, Any]) -> str:
    """Name the columns in which a limited figure is worst, as far as that was measured; empty if it was not."""
    found: list[tuple[float, str]] = []
    if metric in (LEAKAGE_DETECTED, "inference_excess"):
        what = "guessed right more often of originals than of others"
        guessed = [row for row in figures.get(DISCLOSURE, {}).get(GUESSED, ()) if (row["low"] or 0) > 0]
        found = [(row["original"] - row["control"], row["column"]) for row in guessed]
    elif metric in ("share_in_homogeneous_classes", "l_diversity"):
        what = "certain most often"
        by_column = figures.get(ANONYMITY, {}).get("sensitive", {})
        found = [(own["share_in_homogeneous_classes"], name) for name, own in by_column.items()]
    elif metric == RARE_VALUES_RELEASED:
        by_column = figures.get(RARE_VALUES, {}).get("by_column", {})
        what, found = "rare values", [(own["n_values"], name) for name, own in by_column.items()]
    elif metric in ("maximum_semantic_risk", "medium_semantic_risk"):
        by_column = figures.get(SEMANTIC, {}).get(LACKED_COLUMNS, {})
        what, found = "records above the limit", [(n, name) for name, n in by_column.items()]
    worst = sorted(((size, name) for size, name in found if size), reverse=True)[:MOST_COLUMNS]
    sizes = [f"{name} ({percent(size) if isinstance(size, float) else f'{size:,}'})" for size, name in worst]
    return f"Measured by column, {what}: {', '.join(sizes)}" if sizes else ""


def _said(
    sayings: Sequence[_Saying], figures: Mapping[str, Any], limits: Mapping[str, float], *, rated: bool = False
) -> tuple[str, ...]:
    said = []
    for assessment, say, *needs in sayings:
        needed = set(needs) if callable(say) else {name for _, name, _, _ in Formatter().parse(say) if name}
        own = _Figures(figures.get(assessment, {}), limits, rated=rated)
        if needed <= {name for name, value in own.items() if value is not None}:
            said.append(say(own) if callable(say) else own.written(say))
    return tuple(said)


class _Figures(dict[str, Any]):
    """The figures of an assessment, each with the digits that its limit needs, and its rating if it has one."""

    def __init__(self, figures: Mapping[str, Any], limits: Mapping[str, float], *, rated: bool) -> None:
        super().__init__(figures)
        self._limits, self._rated = limits, rated

    def number(self, name: str) -> str:
        return against(self[name], self._limits[name])[0] if name in self._limits else number(self[name])

    def percent(self, name: str) -> str:
        return percent(self[name], self._limits.get(name))

    def rating(self, before: str, name: str, rate: Callable[[float], str]) -> str:
        return f"{before}{rate(self[name])}" if self._rated else ""

    def written(self, sentence: str) -> str:
        """Fill the names of figures into a sentence; ``%`` means a share, ``f`` and ``g`` formats, ``s`` text."""
        write: dict[str, Callable[[str], Any]] = {"%": self.percent, "s": self.get, "": self.number}
        write |= {"n": lambda name: of_1000(self[name]), "pairs": lambda name: of_1000((1 + self[name]) / 2)}
        write |= {"f": lambda name: f"{self[name]:.3f}", "g": lambda name: f"{self[name]:g}"}
        parts = Formatter().parse(sentence)
        return "".join(text + (str(write[form or ""](name)) if name else "") for text, name, form, _ in parts).rstrip()


def _identified(scores: _Figures) -> str:
    found = (
        f"{scores['total_identified']:,} of {scores['total_syn_records']:,} synthetic records "
        f"({scores.percent('identification_rate')})"
    )
    if "records_per_draw" in scores:
        found = (
            f"There are more synthetic records ({scores['total_syn_records']:,}) than originals, and anyone can draw "
            f"fewer of them. So the scores are means over draws of {scores['records_per_draw']:,} records: "
            f"{scores.percent('identification_rate')} of these ({scores.percent('identification_rate_lowest')} to "
            f"{scores.percent('identification_rate_highest')})"
        )
    if "people_identified" in scores:
        n_identified, n_people = scores["people_identified"], scores["people_assessed"]
        return (
            f"{found} can be pinned to one person: in some combination of up to "
            f"{scores['max_combo_size']} columns, every original record with the same values belongs to that person, "
            f"and at most as many synthetic as original records have these values. {n_identified:,} of "
            f"{n_people:,} people ({percent(n_identified / n_people)}) are singled out."
        )
    return (
        f"{found} can be pinned to one original: some combination of up to "
        f"{scores['max_combo_size']} columns occurs exactly once among the synthetic and once among the original "
        "records."
    )


def _score(scores: _Figures) -> str:
    drawn = ""
    if "privacy_risk_score_lowest" in scores:
        low, high = (scores.number(f"privacy_risk_score_{end}") for end in ("lowest", "highest"))
        drawn = f" ({low} to {high} over the draws)"
    lone = ""
    if scores.get("score_of_lone_people") != scores.get("privacy_risk_score"):
        lone = (
            f" Without people who share their record with two or more others, it is "
            f"{scores.number('score_of_lone_people')}."
        )
    return (
        f"The privacy risk score is {scores.number('privacy_risk_score')}{drawn}, on a scale from 0 (as "
        f"random data of this structure) to 1: the records have {scores.percent('overall_protection')} of the "
        f"protection that random data would have"
        f"{scores.rating('. On a general scale: ', 'privacy_risk_score', rate_score)}.{lone}"
    )


def _of_strangers(scores: _Figures) -> str:
    said = (
        f"As many real people whom the synthesizer never saw would score {scores.number('score_of_strangers')} in "
        "place of the synthetic records"
    )
    of_related = scores.get("score_of_related_columns")
    if of_related is None or of_related == scores.get("privacy_risk_score"):
        return f"{said}."
    return (
        f"{said}. Without columns that depend on no others, the records score "
        f"{scores.number('score_of_related_columns')} and these people "
        f"{scores.number('score_of_strangers_on_related_columns')}."
    )


def _baseline(scores: _Figures) -> str:
    rating = scores.rating(": ", "baseline_protection", rate_baseline)
    return f"The baseline protection is {scores.number('baseline_protection')}{rating}."


def _search(scores: _Figures) -> str:
    if scores["search"] == "exact":
        return "The search was exact, so no such combination was missed."
    return "The search was heuristic and may have missed combinations, so the true risk may be higher."


def _control(control: _Figures) -> str:
    found = {
        "yes": "By single columns and their combinations the originals are found more often than people whom the "
        "synthesizer never saw, by at least one of three intervals.",
        "no": "By single columns and their combinations the originals are not found more often than people whom the "
        "synthesizer never saw, beyond chance: the matches may be coincidence.",
        "too few records to tell": "There are too few control records to distinguish leakage from coincidence.",
    }[control["leakage"]]
    return (
        f"{found} Among {control['n_matched_records']:,} {control.get('counted', 'records')} of each, "
        f"{control.percent('matched_identification_rate')} of the synthetic records are pinned to an original and "
        f"{control.percent('control_identification_rate')} to a person of the control."
    )


def _leakage(scores: _Figures) -> str:
    compared = f"{scores['n_original']:,} originals and {scores['n_control']:,} people whom the synthesizer never saw"
    if scores.get(LEAKAGE_DETECTED):
        failed = criteria_in_words(failed_criteria(scores))
        return f"Of {compared}, the records reveal more about the originals than chance explains: {failed}."
    said = f"Of {compared}, the records reveal no more about the originals than chance explains"
    if not is_answerable(scores.get("detectable_share")):
        said = f"Of {compared}: whether the records reveal more about the originals is {NOT_ANSWERABLE}"
    return f"{said}."


def _leakage_and_unseen(scores: _Figures) -> str:
    unseen = "" if scores.get(LEAKAGE_DETECTED) else f" This has a limit: {unseen_in_people(scores)}."
    return _leakage(scores) + unseen


def _rare_values(counts: _Figures) -> str:
    least, found = counts["people_per_value"], counts[RARE_VALUES_RELEASED]
    if not found:
        return (
            f"Every text or category value in these records is shared by at least {least:,} people of the source, or "
            "does not occur there. No value proves that a particular person is in the source."
        )
    values = "1 text or category value" if found == 1 else f"{found:,} text and category values"
    records = counts["records_with_rare_values"]
    return (
        f"{values}, in {records:,} record{'' if records == 1 else 's'}, {'is' if found == 1 else 'are'} shared by "
        f"fewer than {least:,} people: anyone who recognizes a person by such a value learns that this person is in "
        "the source."
    )


def _classes(report: _Figures) -> str:
    size, unit = (report["k"], "records") if report.get("k_people") is None else (report["k_people"], "people")
    return (
        f"The records are in {report['n_classes']:,} classes. The records of a class are equal on all "
        f"quasi-identifiers; the smallest class has {size:,} {unit}."
    )


def _homogeneous(report: _Figures) -> str:
    if not report["share_in_homogeneous_classes"]:
        return "In every class each sensitive column has several values, so no value is certain for anybody."
    return (
        f"{report.percent('share_in_homogeneous_classes')} of the records are in classes where a sensitive column "
        "has only one value: anyone who knows that a person is in such a class knows that value, without singling out "
        "a record."
    )


def _suppressed(statistics: _Figures) -> str:
    if not statistics["suppressed_share"]:
        return "No record was left out."
    return f"{statistics.percent('suppressed_share')} of the records were left out of the release."


def _known_rows(scores: _Figures) -> str:
    by_rows, known_rows = scores["fewest_candidates_by_rows"], scores["known_rows"]
    *fewer, (_, fewest) = by_rows.items()
    rows = "all rows of a person" if known_rows == "all" else f"{known_rows} of a person's rows"
    people = "1 person" if fewest == 1 else f"{fewest:,} people"
    of_fewer = f" (by number of known rows: {', '.join(f'{n}: {own:,}' for n, own in fewer)})" if fewer else ""
    return (
        f"Released values show which rows are of one person. Somebody who knows {rows} finds the person among at least "
        f"{people}{of_fewer}."
    )


def _certain_by_rows(scores: _Figures) -> str:
    share, column = scores.percent("share_certain_by_rows"), scores["column_certain_by_rows"]
    return (
        f"The value of {column} is the same in all rows of a person. It is certain for {share} of the people, for "
        "somebody who knows as many of their rows as the policy assumes."
    )


def _concepts(scores: _Figures) -> str:
    largest, mean = scores.percent("maximum_semantic_risk"), scores.percent("medium_semantic_risk")
    risk = f"picks the right record with a probability of {mean} on average, and of {largest} in the worst case."
    attacker = "an attacker who knows all attributes of a record and one that it lacks"
    if scores.get("fewest_records_accepted") is None:
        return f"{attacker.capitalize()} {risk}"
    k, n_not_kept = scores["fewest_records_accepted"], scores["records_not_kept"]
    of_all = f"{n_not_kept:,} of {scores['records']:,} records ({percent(n_not_kept / scores['records'])})"
    if n_not_kept:
        return (
            f"{of_all} would have to be withheld so that {attacker} is always left with at least {k:,} records. "
            f"Without that, such an attacker {risk}"
        )
    return f"No record has to be withheld: {attacker} is always left with at least {k:,} records, and {risk}"


def _copied(scores: _Figures) -> str:
    share, least = scores["exposed_share"], scores.get("exposed_share_of_least_visible")
    if share >= 1:
        return "That the records have copies of everybody in the source cannot be excluded."
    # By chance the figure can be below what can be seen at all.
    seen = max(scores.get("detectable_share") or 0.0, 0.001)
    if_least = "any number" if least is None or least >= 1 else f"up to {of_1000(max(least, seen))}"
    return (
        f"At most {of_1000(max(share, seen))} people in the source have a copy among the records (95 % confidence), "
        f"as far as copying strikes people at random; of people who are hardest to notice, {if_least} could be copied."
    )


def _singled_out(scores: _Figures) -> str:
    others = scores.get("originals_singled_out_by_strangers")
    of_others = (
        ""
        if others is None
        else f" Records of other real people would fit {int(1_000 * others):,} of 1,000 like that, by coincidence."
    )
    return (
        f"For {of_1000(scores['originals_singled_out'])} people in the source (counted), some record fits only them by "
        f"up to {scores['max_combo_size']} columns, and somebody who knows these may take it for theirs.{of_others}"
    )


def _guessed(scores: _Figures) -> str:
    most = of_1000(max(scores["inference_interval"][1], 0.0))
    return (
        f"At most {most} sensitive values are guessed right from the nearest record only because their people are in "
        "the source (95 % confidence); what is guessed right of people who are not does not count."
    )


def _recognized(scores: _Figures) -> str:
    return (
        f"Somebody who knows the columns that the policy assumes ({scores['known']}) picks a person's record with a "
        f"chance of at most 1 in {scores['fewest_candidates']:,}, and on average that of "
        f"{of_1000(scores['mean_reidentification_probability'])} people (counted)."
    )


def _in_the_source(scores: _Figures) -> str:
    sure = "95 % confidence" if scores.get("membership_estimated") is None else "estimated without a control"
    return (
        f"To somebody who knows whole records, these show for at most {of_1000(scores['membership_advantage_upper'])} "
        f"people in the source that they are in it, net of others who only seem to be ({sure})."
    )


def _guaranteed(spent: _Figures) -> str:
    epsilon = spent["epsilon"]
    return (
        "Whatever somebody concludes from the records alone, one person's data makes it at most "
        f"{number(exp(epsilon))} times as likely (epsilon {number(epsilon)}; delta {spent['delta']:g})."
    )


def of_1000(share: float) -> str:
    """Write a share as so many of 1,000, never fewer than there are."""
    return f"{ceil(round(1_000 * share, 6)):,} of 1,000"


def _rules(scores: _Figures) -> str:
    n_judged, others = len(scores["by_rule"]), scores["not_judged"]
    found = f"{scores['records_with_violations']:,} records ({scores.percent(RULE_VIOLATIONS)})"
    left = f" Not judged, on generalized or removed columns: {', '.join(others)}." if others else ""
    return f"{found} violate one of {n_judged} rules of the contract.{left}"


_SAYINGS_OF_WORTH: tuple[_Saying, ...] = (
    (
        UTILITY,
        "On a scale from 0 (each column shuffled) to 1 (the originals) the records are worth {utility:f}, with a 95 % "
        "interval from {utility_lower:f} to {utility_upper:f}. {in_people:s}",
    ),
    (
        UTILITY,
        "Half of the counts on two or three columns are within {median_count_error:%} of the counts of other real "
        "people; counted in the originals, within {median_count_error_of_originals:%}.",
    ),
)
DECISIVE: Mapping[str, _Saying] = {
    LEAKAGE_DETECTED: (DISCLOSURE, _leakage, "n_original", "n_control", "adjusted_p_value"),
    "max_reidentification_probability": (
        REIDENTIFICATION,
        "An attacker who knows the columns that the policy assumes is left with at least {fewest_candidates} "
        "candidates for every record, and picks the right one with a probability of at most "
        "{max_reidentification_probability:%} ({mean_reidentification_probability:%} on average).",
    ),
    "originals_singled_out": (
        MPUCC,
        "{originals_singled_out:%} of the people in the source have some released record that, by up to "
        "{max_combo_size} columns, fits them and nobody else: whoever knows these values picks that record.",
    ),
    "exposed_share": (
        DISCLOSURE,
        "Copies of up to {exposed_share:%} of the originals cannot be excluded (95 % confidence, if those who were "
        "copied were drawn at random).",
    ),
    "copies_beyond_people": (
        MPUCC,
        "{unique_records_released:n} people with a record that nobody else has find it among equally many released "
        "records; among the records of other people, {unique_records_of_others:%} do.",
    ),
    "share_in_homogeneous_classes": (ANONYMITY, _homogeneous, "share_in_homogeneous_classes"),
    "share_certain_by_rows": (REIDENTIFICATION, _certain_by_rows, "share_certain_by_rows", "column_certain_by_rows"),
    "maximum_semantic_risk": (SEMANTIC, _concepts, "maximum_semantic_risk", "medium_semantic_risk"),
    **dict.fromkeys(
        ("privacy_risk_score", "identification_rate"),
        (
            MPUCC,
            "{identification_rate:%} of the synthetic records fit exactly one person of the source by up to "
            "{max_combo_size} columns.",
        ),
    ),
    RARE_VALUES_RELEASED: (
        *(RARE_VALUES, _rare_values, "people_per_value", RARE_VALUES_RELEASED, "records_with_rare_values"),
    ),
    RULE_VIOLATIONS: (RULES, _rules, RULE_VIOLATIONS, "records_with_violations", "by_rule"),
    "smallest_class": (ANONYMITY, _classes, "k", "n_classes"),
}
"""What limited figures mean, those first that decide most."""
CHANCES: Mapping[str, Mapping[str, tuple[str, _Saying]]] = {
    "synthetic": {
        "exposed_share": ("Copied", (DISCLOSURE, _copied, "exposed_share")),
        "originals_singled_out": ("Singled out", (MPUCC, _singled_out, "originals_singled_out", "max_combo_size")),
        "membership_advantage_upper": (
            "Known to be in the source",
            (
                DISCLOSURE,
                "Of a person in the source and one who is not, the distance to the nearest record tells which is which "
                "in at most {membership_advantage_upper:pairs} cases (95 % confidence; tossing a coin: 500).",
            ),
        ),
        "inference_excess": ("Guessed", (DISCLOSURE, _guessed, "inference_interval")),
        "epsilon": ("Any conclusion", (PRIVACY_BUDGET, _guaranteed, "epsilon", "delta")),
    },
    "anonymized": {
        "max_reidentification_probability": (
            "Recognized",
            (REIDENTIFICATION, _recognized, "known", "fewest_candidates", "mean_reidentification_probability"),
        ),
        "share_in_homogeneous_classes": (
            "Sensitive value certain",
            (
                ANONYMITY,
                "{share_in_homogeneous_classes:n} records are in classes with one value of a sensitive column, which "
                "is certain for whoever knows that a person is in such a class (counted).",
            ),
        ),
        "membership_advantage_upper": (
            "Known to be in the source",
            (REIDENTIFICATION, _in_the_source, "membership_advantage_upper"),
        ),
    },
}
"""By side and figure, what can happen to one person, and what the figure truly bounds; nothing is guessed."""
NOT_BOUNDED = {
    "synthetic": "other attacks than these, copies of parts of records, and what other tables add to these records",
    "anonymized": "attackers who know other columns, or other tables of these people",
}
"""By side, what no figure bounds, whatever is measured."""
_SAYINGS: tuple[_Saying, ...] = (
    (
        PRIVACY_BUDGET,
        "The records have a guarantee of epsilon {epsilon}; the figures and the decision were computed on the people's "
        "records and have no guarantee. All fits on these people together have spent epsilon {total_epsilon} at delta "
        "{delta:g}.",
    ),
    (MPUCC, _identified, "identification_rate", "total_identified", "total_syn_records", "max_combo_size"),
    (
        MPUCC,
        "{originals_singled_out:%} of the originals (interval {originals_singled_out_interval_low:%} to "
        "{originals_singled_out_interval_high:%}) are singled out by some released record.",
    ),
    DECISIVE["copies_beyond_people"],
    (
        MPUCC,
        "Larger combinations are too many to search. Of a sample of {any_size_records} synthetic records, "
        "{any_size_identification_rate:%} can be pinned to one original by some combination of any size (interval "
        "{any_size_interval_low:%} to {any_size_interval_high:%}).",
    ),
    (MPUCC, _score, "privacy_risk_score", "overall_protection"),
    (MPUCC, _of_strangers, "score_of_strangers"),
    (MPUCC, _baseline, "baseline_protection"),
    (MPUCC, _search, "search"),
    (
        CONTROL,
        _control,
        *("leakage", "n_matched_records", "matched_identification_rate", "control_identification_rate"),
    ),
    (DISCLOSURE, _leakage_and_unseen, *DECISIVE[LEAKAGE_DETECTED][2:]),
    *(DECISIVE[metric] for metric in ("exposed_share", RARE_VALUES_RELEASED, RULE_VIOLATIONS)),
    *(DECISIVE[metric] for metric in ("smallest_class", "share_in_homogeneous_classes")),
    (
        STATISTICS,
        "Generalizing cost {information_loss:%} of the precision of the quasi-identifiers on average (0 %: unchanged, "
        "100 %: no information left).",
    ),
    (STATISTICS, _suppressed, "suppressed_share"),
    DECISIVE["max_reidentification_probability"],
    (REIDENTIFICATION, _known_rows, "fewest_candidates_by_rows", "known_rows"),
    DECISIVE["share_certain_by_rows"],
    DECISIVE["maximum_semantic_risk"],
)
