"""The page that is signed: what leaves, to whom and why, what could go wrong, what is not answered, and who decided.

It is one page of A4, whatever a release declares: every text is cut, and what is cut or left out is in an annex.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from privacy_assets.columns.unknown_values import said_of_blind
from privacy_assets.disclosure.leaving_columns import MANIFEST_KEY
from privacy_assets.release.approvals import Approval
from privacy_assets.release.declaration import DECLARED
from privacy_assets.release.gate import APPROVAL_CHECK, REJECTION_CHECK, Verdict, refusing
from privacy_assets.release.manifest import WITHHELD_IN_WORDS, are_withheld
from privacy_assets.release.metrics import DISCLOSURE, LEAKAGE_DETECTED, METRICS, MPUCC, REIDENTIFICATION
from privacy_assets.release.outcomes import Outcome, in_words, outcome_of
from privacy_assets.release.related_files import records_in_words
from privacy_assets.release.report_criteria import not_answered
from privacy_assets.release.report_words import (
    CHANCES,
    DECISIVE,
    NOT_BOUNDED,
    chance_in_words,
    changes_in_words,
    decisive_words,
    in_which_columns,
)

MOST_DECISIVE, MOST_POINTS = 3, 4
MOST_LINES, LINES_TO_SIGN = 39, 7
"""Lines of texts that fit beside what is always there, and how many more where nobody signs."""
LINE, LINE_BESIDE = 100, 90
"""Small letters of a line, and of one beside a question; wide letters count twice, narrow ones half."""
LONG, LENGTHS = (1_200, 800, 500), (340, 300, 270, 240, 210, 180, 150, 120, 90, 70)
"""Texts are cut to the first of these lengths with which the page has at most `MOST_LINES` lines: the names of columns
alone, then the open points, then all.
"""
LONGEST_NAME, LONGEST_KNOWN = 60, 140
QUESTIONS = {
    "To whom": ("recipient", "recipient_means"),
    "Why": ("purpose", "legal_basis"),
    "Until when": ("review_by", "retention"),
}
LAST_LATIN, NARROW, WIDE = 0x24F, " ijl.,:;'!|", "mw@%"
NOT_STATED, MISSING = "not stated, and not demanded by the policy", "missing, although the policy demands it"


@dataclass(frozen=True)
class FirstPage:
    """The content of the page, as text."""

    title: str
    columns: Sequence[tuple[str, str]]
    declared: Sequence[tuple[str, str]]
    policy: str
    found: Sequence[str]
    decisive: Sequence[tuple[str, Outcome | None, str]]
    unanswered: Sequence[str]
    open_points: Sequence[str]
    decided_by: Sequence[str]
    is_to_sign: bool

    def cut_to(self, longest: int, longest_point: int, longest_names: int) -> FirstPage:
        """Return the page with shorter texts, each with a pointer to the annex that has all of it."""
        return replace(
            self,
            columns=[(name, cut(each, longest_names, "D")) for name, each in self.columns],
            declared=[(name, cut(each, longest)) for name, each in self.declared],
            found=_most(self.found, MOST_DECISIVE, longest),
            decisive=[(name, outcome, cut(each, longest, "B")) for name, outcome, each in self.decisive],
            unanswered=_most(self.unanswered, MOST_POINTS, longest, "B"),
            open_points=_most(self.open_points, MOST_POINTS, longest_point),
            decided_by=_most(self.decided_by, MOST_POINTS, longest),
        )

    @property
    def n_lines(self) -> int:
        """How many lines the texts fill."""
        beside = [each for _, each in (*self.columns, *self.declared)]
        marks = [f"{own.name} {own.found} (limit: {own.bound})" if own else "" for _, own, _ in self.decisive]
        # A mark is bold, and has a frame.
        decisive = [
            f"{name} {mark} {'x' * (len(mark) // 5)} {each}"
            for (name, _, each), mark in zip(self.decisive, marks, strict=True)
        ]
        texts = [*self.found, *decisive, *self.unanswered, *self.open_points, *self.decided_by]
        return sum(_n_lines(each, LINE_BESIDE) for each in beside) + sum(_n_lines(each, LINE) for each in texts)


def first_page(
    manifest: Mapping[str, Any], decided: Sequence[Verdict], findings: Mapping[str, str], measured: str, rating: str
) -> FirstPage:
    """Return what is on the page, by a manifest and its verdicts.

    ``findings`` has those of all verdicts in words, by their names, ``measured`` is the change of columns that was
    measured to lower the identification rate most, and ``rating`` why a score is admitted that is rated worse.
    """
    figures, refused, declared = manifest["figures"], refusing(decided), manifest.get("declaration", {})
    declared = dict.fromkeys(manifest["policy"]["required"].get("declaration", ()), MISSING) | declared
    failed = [each for each in decided if not each.passed]
    failed.sort(key=lambda each: (each not in refused, not each.blocks, each.metric is None))
    points = [
        _sentences(
            findings[each.name] if each not in refused else _named(each),
            in_which_columns(each.metric, figures) or (measured if _is_on_identified(each.metric) else ""),
            each.advice,
        )
        for each in failed
    ]
    limited = {each.metric for each in decided if each.metric is not None}
    partition = [] if manifest["partition"] is None else [f"partition {manifest['partition']}"]
    waits = not refused and any(each.name == APPROVAL_CHECK and not each.passed for each in decided)
    page = FirstPage(
        ", ".join(cut(each, LONGEST_NAME) for each in (manifest["release"], *partition)),
        list(_columns(manifest)),
        [(question, _declared(names, declared)) for question, names in QUESTIONS.items()],
        _policy_name(manifest["policy"]),
        list(_found(refused, findings)),
        list(_decisive(decided, manifest)),
        [WITHHELD_IN_WORDS] if are_withheld(manifest) else not_answered(manifest, limited),
        [*points, *filter(None, [rating])] or ["None."],
        list(_people(manifest, decided, declared)),
        waits,
    )
    lengths = [(LENGTHS[0], LENGTHS[0], names) for names in LONG]
    lengths += [(each, point, each) for each in LENGTHS for point in LENGTHS if point <= each]
    most = MOST_LINES + (0 if waits else LINES_TO_SIGN)
    fitting = (shorter for each in lengths if (shorter := page.cut_to(*each)).n_lines <= most)
    return next(fitting, None) or page.cut_to(*lengths[-1])


def _named(refused: Verdict) -> str:
    is_unknown = refused.metric is not None and refused.value is None
    return in_words(refused.metric or refused.name).capitalize() + " is not known" * is_unknown


def _found(refused: Sequence[Verdict], findings: Mapping[str, str]) -> Iterator[str]:
    """Yield what refused a table; of limits only the names, because their figures and meaning follow on the page."""
    limited = [in_words(each.metric) for each in refused if each.metric is not None and each.value is not None]
    if limited:
        yield f"beyond the limit{'s' * (len(limited) > 1)}: {', '.join(limited)}"
    unknown = [in_words(each.metric) for each in refused if each.metric is not None and each.value is None]
    if unknown:
        yield f"the policy demands figures that are not known: {', '.join(unknown)}"
    yield from (findings[each.name] for each in refused if each.metric is None)


def cut(text: str, longest: int, annex: str = "A") -> str:
    """Cut a text to a length, counted in small letters, with a pointer to the annex that has all of it."""
    words = " ".join(text.split())
    n_shown = sum(reached <= longest for reached in accumulate(map(_width, words[: 2 * longest + 1])))
    return words if n_shown == len(words) else f"{words[:n_shown].rstrip()}\u2026 (all in Annex {annex})"


def _n_lines(text: str, longest: int) -> int:
    """Count the lines of a text that is broken between words, and within a word that is longer than a line."""
    n_lines, used = 1, 0.0
    for word in text.split():
        width, space = sum(map(_width, word)), _width(" ") * (used > 0)
        if used and used + space + width > longest:
            n_lines, used, space = n_lines + 1, 0.0, 0.0
        used += space + width
        n_lines, used = n_lines + int(used // (longest + 1)), used % (longest + 1)
    return n_lines


def _width(letter: str) -> float:
    if letter in NARROW:
        return 0.5
    return 2.0 if letter.isupper() or letter in WIDE or ord(letter) > LAST_LATIN else 1.0


def _is_on_identified(metric: str | None) -> bool:
    return metric is not None and METRICS[metric].assessment == MPUCC and METRICS[metric].worst_for_copies


def _most(texts: Sequence[str], most: int, longest: int, annex: str = "A") -> list[str]:
    n_others = len(texts) - most
    shown = [cut(each, longest, annex) for each in texts[:most]]
    return [*shown, *([f"{n_others:,} more in Annex {annex}."] if n_others > 0 else [])]


def _sentences(*parts: str) -> str:
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)


def _columns(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    columns, is_synthetic, names = manifest["columns"], manifest["stage"] == "synthetic", _names_of(manifest)
    of = f" for {len(names):,} of the source" if len(names) < len(columns) else ""
    yield "What", f"{leaves_in_words(manifest)}, in {len(columns):,} columns{of}: {_names(names)}"
    leaving = [each["column"] for each in manifest.get(MANIFEST_KEY, ())]
    if leaving:
        precise = "values as precise as those of the source" if is_synthetic else "the people's own values, unchanged"
        others = [each["column"] for each in columns if each["column"] not in leaving]
        which = f"all but {_names(others)}" if 0 < len(others) < len(leaving) / 2 else _names(leaving)
        yield "Not coarsened", f"{len(leaving):,} of these columns have {precise}: {which}"


def leaves_in_words(manifest: Mapping[str, Any]) -> str:
    """Say how many records leave; of related tables, how many people and rows of each table."""
    if "tables" in manifest:
        return records_in_words(manifest)
    kind = "synthetic records"
    if manifest["stage"] != "synthetic":
        kind = "records of real people, in classes of people who look alike"
    return f"{manifest['n_records']:,} {kind}"


def _names_of(manifest: Mapping[str, Any], role: str = "") -> list[str]:
    """Return the columns of the source that a release has, of all roles or of one."""
    own = [each for each in manifest["columns"] if role in ("", each["role"])]
    return list(dict.fromkeys(each.get("generalizes") or each["column"] for each in own))


def _names(names: Sequence[str]) -> str:
    return ", ".join(cut(each, LONGEST_NAME, "D") for each in names)


def _declared(names: Sequence[str], declared: Mapping[str, Any]) -> str:
    """Return declarations as one text, with what they are unless the question says it."""
    given = [name for name in names if name in declared]
    said = [f"{'' if name in ('recipient', 'purpose') else f'{DECLARED[name]}: '}{declared[name]}" for name in given]
    return "; ".join(said) or NOT_STATED


def _decisive(decided: Sequence[Verdict], manifest: Mapping[str, Any]) -> Iterator[tuple[str, Outcome | None, str]]:
    """Yield what could go wrong: the limited figures that decide, the failed ones first, then what figures bound.

    Each has what is bounded for one person, if something is, its outcome if it is limited, and its meaning in words.
    """
    kinds, places, side = ["refused", "waived", "warning", "good"], list(DECISIVE), manifest["stage"]
    known = "; ".join(map(", ".join, manifest["policy"]["known"])) or ", ".join(_names_of(manifest, "quasi_identifier"))
    figures = dict(manifest["figures"])
    figures[REIDENTIFICATION] = figures.get(REIDENTIFICATION, {}) | {"known": cut(known, LONGEST_KNOWN)}
    limited = {each.metric: each for each in decided if each.metric is not None}
    # What cannot be compared with people bounds nothing, nor does a figure that has no value for its limit.
    of_nobody = (MPUCC, DISCLOSURE) if _is_incomparable(manifest["settings"]) else ()
    chances = {
        metric: chance_in_words(metric, figures, side)
        for metric in CHANCES[side]
        if METRICS[metric].assessment not in of_nobody and (metric not in limited or limited[metric].value is not None)
    }
    chances = {metric: (name, words) for metric, (name, words) in chances.items() if words}
    outcomes = {metric: outcome_of(each, manifest) for metric, each in limited.items()}
    words = {
        metric: chances[metric][1]
        if metric in chances
        else decisive_words(metric, figures) * (each.value is not None or METRICS[metric].is_yes_no)
        for metric, each in limited.items()
    }
    first = sorted(
        limited, key=lambda each: (kinds.index(outcomes[each].kind), not words[each], [*places, each].index(each))
    )
    for metric in dict.fromkeys([*first[:MOST_DECISIVE], *chances]):
        name, said = chances.get(metric, ("", words.get(metric) or METRICS[metric].meaning))
        if metric == LEAKAGE_DETECTED and limited[metric].value is None:
            said = f"{in_words(limited[metric].reason)}."  # Nothing was found, which says nothing.
        elif metric == LEAKAGE_DETECTED and limited[metric].value and "exposed_share" in chances:
            said += " Of how many people, the figure on copies bounds."
        yield name, outcomes.get(metric), said
    unmeasured = [name.lower() for metric, (name, _) in CHANCES[side].items() if metric not in {*chances, "epsilon"}]
    unknown = [f"how many people are {', '.join(unmeasured)}"] if unmeasured else []
    # A guarantee is on whatever anybody does and knows.
    unbounded = "; ".join(unknown if "epsilon" in chances else [NOT_BOUNDED[side], *unknown])
    yield "Not bounded", None, f"{unbounded or 'nothing that is asked here'}."


def _is_incomparable(settings: Mapping[str, Any]) -> bool:
    own = [settings.get(name, {}) for name in (MPUCC, DISCLOSURE)]
    return any(each.get("foreign") or said_of_blind(each.get("unknown_values") or {}) for each in own)


def _policy_name(policy: Mapping[str, Any]) -> str:
    changed = ", changed," if policy["changes"] else ""
    return "" if policy["use_case"] is None else f" \u201c{in_words(policy['use_case'])}\u201d{changed}"


def _people(manifest: Mapping[str, Any], decided: Sequence[Verdict], declared: Mapping[str, Any]) -> Iterator[str]:
    policy, setter = manifest["policy"], declared.get("policy_decided_by")
    n_required, name = policy["required"].get("approvals", 0), _policy_name(policy).rstrip(",")
    approvals = [Approval.of(each).in_words for each in manifest.get("approvals", ())]
    open_ = {each.name: each.reason for each in decided if not each.passed}
    said = [open_[REJECTION_CHECK]] if REJECTION_CHECK in open_ else []
    said += [f"Nobody yet: it {open_[APPROVAL_CHECK]}"] if APPROVAL_CHECK in open_ else []
    said += [f"Approved by {each}" for each in approvals]
    why = f"of {n_required:,} approvals, none was given" if n_required else "the policy demands no approval"
    waived = [f"Waived: {each.reason}" for each in decided if each.waived_by is not None]
    who = "except the limits that people waived" if waived else "by its limits and conditions; no person"
    yield from said or [f"The policy{name}, {who}: {why}."]
    yield from waived
    changes = changes_in_words(policy)
    origin = "It is this release\u2019s own" if policy["use_case"] is None else "It is the preset, unchanged"
    origin = f"Changed from the preset: {changes}" if changes else origin
    yield f"{origin}. Who decided on the policy: {setter or 'not recorded'}."
    yield f"Roles of the columns: {declared.get('roles_decided_by', NOT_STATED)}"
