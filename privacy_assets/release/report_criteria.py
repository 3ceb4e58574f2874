"""The legal criteria for a release, in the words of WP216, with the answers of its figures in one table.

A row is a question: its criterion, the question, the people it is about, the finding with its interval, what would
have gone unnoticed, and what the figures do not answer.

References
----------
.. [1] Article 29 Working Party (2014), "Opinion 05/2014 on anonymisation techniques", WP216, section 3.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.display.numbers import number, percent
from privacy_assets.release.leakage import LEVEL, NOT_ANSWERABLE, is_answerable, unseen_in_people
from privacy_assets.release.metrics import ANONYMITY, DISCLOSURE, MPUCC, REIDENTIFICATION, SEMANTIC

ROWS = "criteria"
GUESSED = "guessed_columns"
MEMBERSHIP = "Membership"
IN_THE_SOURCE = "Can somebody who knows a record tell that its person is in the source?"
IS_SENSITIVE = "whether being in the source is itself sensitive"
UNNOTICED = "Would go unnoticed"
NOTHING = "nothing: counted"
HEADINGS = ("Criterion", "Question", "About", "Finding", "Difference, 95 % interval", UNNOTICED, "Not answered")


def questions_of_the_law(figures: Mapping[str, Any], settings: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the table of criteria, with the columns of `HEADINGS`; empty if no criterion was assessed."""
    others = settings.get(REIDENTIFICATION, {}).get("other_releases", ())
    return [*_of_synthetic(figures.get(DISCLOSURE, {})), *_of_anonymized(figures, len(others))]


def not_answered(manifest: Mapping[str, Any], limited: Collection[str]) -> list[str]:
    """Return what the figures of a manifest do not answer, with its size; ``limited`` are the metrics with limits."""
    figures = manifest["figures"]
    is_synthetic, searched = manifest["stage"] == "synthetic", figures.get(MPUCC, {})
    said = list(_unanswered_of_synthetic(figures.get(DISCLOSURE, {}))) if is_synthetic else []
    if searched.get("search") == "heuristic":
        said.append("The search for combinations of columns was heuristic, and may have missed some.")
    if searched.get("max_combo_size", 0) < searched.get("columns_assessed", 0):
        size, n_columns = searched["max_combo_size"], searched["columns_assessed"]
        said.append(f"Whom combinations of more than {size} of the {n_columns} columns single out was not searched.")
    if not is_synthetic and "fewest_candidates" not in figures.get(REIDENTIFICATION, {}):
        said.append("How many people a record can belong to: no figure says so.")
    for row in questions_of_the_law(figures, manifest["settings"]):
        finding = dict(zip(HEADINGS, row, strict=True))["Finding"]
        if finding.startswith("not asked"):
            said.append(f"{row[0]}: {finding}.")
        elif row[1] == IN_THE_SOURCE and "membership_advantage_upper" not in limited:
            said.append("The policy has no limit on whether somebody can tell that a person is in the source.")
    return said


def _unanswered_of_synthetic(found: Mapping[str, Any]) -> Iterator[str]:
    if ROWS not in found:
        yield "Whether the records reveal more about the originals than about people never seen: no figure says so."
        return
    share, unseen = found.get("detectable_share"), unseen_in_people(found)
    yield f"Whether anybody at all was copied: {unseen}{'' if is_answerable(share) else f': {NOT_ANSWERABLE}'}."
    unseen_by: dict[str, list[str]] = {}
    for row in found[ROWS]:
        criterion, share = CRITERIA[row["criterion"]], row["detectable_share"]
        if criterion.finds_copies and row["adjusted_p_value"] > LEVEL and not is_answerable(share):
            n_unseen = "everybody" if share is None else f"up to {round(share * found['n_original']):,}"
            unseen_by.setdefault(n_unseen, []).append(criterion.words)
    if unseen_by:
        each = [f"{', '.join(dict.fromkeys(names))} ({whose})" for whose, names in unseen_by.items()]
        yield (
            f"{NOT_ANSWERABLE.capitalize()}: whether people were copied, by one criterion alone (so many could be, "
            f"unseen): {'; '.join(each)}."
        )


def _of_synthetic(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in found.get(ROWS, ()):
        criterion = CRITERIA[row["criterion"]]
        write = percent if criterion.share_of else number
        original, control = write(row["original"]), write(row["control"])
        meaning = "a higher score reveals more" if criterion.direction == "more" else "a higher score: fewer are near"
        found_on_both_sides = (
            f"{original} of originals, {control} of the control"
            if criterion.share_of
            else f"mean score {original} of originals, {control} of the control ({meaning})"
        )
        more = "more than of the control" if criterion.direction == "more" else "more gaps than around the control"
        is_told = not criterion.finds_copies or is_answerable(row["detectable_share"])
        less = "no more than chance explains" if is_told else NOT_ANSWERABLE
        verdict = more if row["adjusted_p_value"] <= LEVEL else less
        yield (
            criterion.law,
            criterion.question,
            _of_whom(found),
            f"{found_on_both_sides}: {verdict} (adjusted p value {number(row['adjusted_p_value'])})",
            f"{write(row['low'])} to {write(row['high'])}",
            _unseen(row["detectable_share"], found["n_original"])
            if criterion.finds_copies
            else "not known: it does not look for copies",
            criterion.not_answered,
        )
    yield from _membership_of_synthetic(found)


def _of_whom(found: Mapping[str, Any]) -> str:
    n_original, n_control = found["n_original"], found["n_control"]
    everybody = f"{n_original:,} originals and {n_control:,} people of the control"
    n_examined = found.get("n_examined", n_original + n_control)
    return everybody if n_examined == n_original + n_control else f"{everybody}, of whom {n_examined:,} were drawn"


def _of_others(n: int) -> str:
    if n == 0:
        return "not asked: no other release is configured"
    return f"{'1 other release is' if n == 1 else f'{n:,} other releases are'} part of the candidates above"


def _values(n: int) -> str:
    return "there is only 1 value" if n == 1 else f"there are only {n:,} values"


def _unseen(share: float | None, n_original: int) -> str:
    if share is None:
        return "copies of everybody"
    return f"copies of fewer than {round(share * n_original):,} people ({percent(share)})"


def _of_anonymized(figures: Mapping[str, Any], n_others: int) -> Iterator[tuple[str, ...]]:
    everybody, exact = "every released record", "measured, no interval"
    candidates, classes, concepts = (figures.get(name, {}) for name in (REIDENTIFICATION, ANONYMITY, SEMANTIC))
    if candidates.get("max_reidentification_probability") is not None:
        yield (
            "Singling out",
            "How many people can a record belong to, for an attacker who knows the columns that the policy assumes?",
            everybody,
            f"at least {candidates['fewest_candidates']:,}: the right person is picked with a probability of at most "
            f"{percent(candidates['max_reidentification_probability'])}",
            exact,
            NOTHING,
            "attackers who know other columns",
        )
        yield (
            "Linkability",
            "Do the configured other releases of these people leave fewer candidates?",
            everybody,
            _of_others(n_others),
            exact if n_others else "none",
            NOTHING if n_others else "everything",
            "releases that are not configured (other_releases)",
        )
    if classes.get("share_in_homogeneous_classes") is not None and classes.get("sensitive"):
        worst = [own["t"] for own in classes["sensitive"].values()]
        fewest = min(own["l_distinct"] for own in classes["sensitive"].values())
        yield (
            "Inference",
            "Is a sensitive value certain, or much more frequent, for everybody in a class?",
            everybody,
            f"certain for {percent(classes['share_in_homogeneous_classes'])}; in some class {_values(fewest)} "
            f"(l); distance from the table at most {number(max(worst))} (t)",
            exact,
            NOTHING,
            "what the columns reveal about everybody: statistics",
        )
    if concepts.get("maximum_semantic_risk") is not None:
        yield (
            "Inference",
            "Does knowing all attributes of a record, and one that it lacks, leave few records?",
            everybody,
            f"picked with a probability of at most {percent(concepts['maximum_semantic_risk'])}, "
            f"{percent(concepts['medium_semantic_risk'])} on average (semantic risk)",
            exact,
            NOTHING,
            "attackers without such knowledge, for whom the risk is lower",
        )
    if "membership_found" in candidates:
        yield _membership_of_anonymized(candidates, classes.get("k"))
    elif classes.get("k") is not None:
        asked = "not asked: whose a record can be is not assessed"
        yield MEMBERSHIP, IN_THE_SOURCE, "everybody", asked, "none", "everything", IS_SENSITIVE


def _membership_of_anonymized(found: Mapping[str, Any], k: int | None) -> tuple[str, ...]:
    n_source, n_control, reason = (found[f"membership_{name}"] for name in ("n_source", "n_control", "estimated"))
    low, high = (number(end) for end in found["membership_advantage_interval"])
    if reason is None:
        others = f"{percent(found['membership_found_control'])} of others"
        advantage = f"{number(found['membership_advantage'])} ({low} to {high})"
        of_known = number(found["membership_advantage_of_quasi_identifiers"])
    else:
        others = " to ".join(map(percent, found["membership_left_out_interval"]))
        others += f" of others, estimated without a control ({reason})"
        advantage = f"{low} to {high}"
        of_known = " to ".join(map(number, found["membership_advantage_interval_of_quasi_identifiers"]))
    return (
        MEMBERSHIP,
        IN_THE_SOURCE,
        f"{n_source:,} people in the source" + (f" and {n_control:,} others" if n_control else ""),
        f"somebody who knows a whole record finds a fitting one for {percent(found['membership_found'])} of the people "
        f"in the source and for {others}: advantage {advantage}. An attacker who knows only the quasi-identifiers: "
        f"{of_known}." + ("" if k is None else f" k = {k:,} does not limit this."),
        f"{low} to {high}",
        NOTHING,
        IS_SENSITIVE,
    )


def _membership_of_synthetic(found: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    if found.get("membership_advantage") is None:
        return
    low, high = (number(end) for end in found["membership_advantage_interval"])
    share = found["membership_tpr_at_1_percent"]
    seen = "" if share is None else f"; {percent(share)} of originals are closer than all but 1 % of the control"
    yield (
        MEMBERSHIP,
        IN_THE_SOURCE,
        _of_whom(found),
        f"by the distance to the nearest record, advantage {number(found['membership_advantage'])} ({low} to {high})"
        f"{seen}; {found['most_exposed_people']:,} originals are closer than everybody in the control "
        f"({number(found['most_exposed_people_by_chance'])} by chance)",
        f"{low} to {high}",
        "few copies",
        "few copies, which an average does not show; attackers who train such a synthesizer themselves",
    )
