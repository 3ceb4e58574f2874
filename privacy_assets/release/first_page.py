"""The page that is signed: what leaves, to whom and why, what could go wrong, what is not answered, and who decided.

It is one page of A4, whatever a release declares: every text is cut, and what is cut or left out is in an annex.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from privacy_assets.disclosure.leaving_columns import MANIFEST_KEY
from privacy_assets.release.approvals import Approval
from privacy_assets.release.declaration import DECLARED
from privacy_assets.release.gate import APPROVAL_CHECK, REJECTION_CHECK, Verdict, refusing
from privacy_assets.release.manifest import WITHHELD_IN_WORDS, are_withheld
from privacy_assets.release.metrics import METRICS, MPUCC
from privacy_assets.release.outcomes import Outcome, in_words, outcome_of
from privacy_assets.release.related_files import rows_in_words
from privacy_assets.release.report_criteria import not_answered
from privacy_assets.release.report_words import DECISIVE, decisive_words, in_which_columns

MOST_DECISIVE, MOST_POINTS = 3, 4
MOST_LINES, LINES_TO_SIGN = 37, 6
"""Lines of texts that fit beside what is always there, and how many more where nobody signs, on a refusal."""
LINE, LINE_BESIDE, MARK = 95, 80, 45
"""Small letters of a line, of one beside a question, and of the mark of a figure; wide letters count twice."""
LENGTHS = (340, 300, 270, 240, 210, 180, 150, 120, 90, 70)
"""Texts are cut to the first of these lengths with which the page has at most `MOST_LINES` lines of them."""
LONGEST_NAME = 60
QUESTIONS = {
    "To whom": ("recipient", "recipient_means"),
    "Why": ("purpose", "legal_basis"),
    "Until when": ("review_by", "retention"),
}
LAST_LATIN = 0x24F
NOT_STATED, MISSING = "not stated, and not demanded by the policy", "missing, although the policy demands it"


@dataclass(frozen=True)
class FirstPage:
    """The content of the page, as text."""

    title: str
    columns: Sequence[tuple[str, str]]
    declared: Sequence[tuple[str, str]]
    found: Sequence[str]
    decisive: Sequence[tuple[Outcome, str]]
    unanswered: Sequence[str]
    open_points: Sequence[str]
    decided_by: Sequence[str]

    def cut_to(self, longest: int) -> FirstPage:
        """Return the page with shorter texts, each with a pointer to the annex that has all of it."""
        return replace(
            self,
            columns=[(name, cut(each, longest, "D")) for name, each in self.columns],
            declared=[(name, cut(each, longest)) for name, each in self.declared],
            found=_most(self.found, MOST_DECISIVE, longest),
            decisive=[(outcome, cut(each, longest, "B")) for outcome, each in self.decisive],
            unanswered=_most(self.unanswered, MOST_POINTS, longest, "B"),
            open_points=_most(self.open_points, MOST_POINTS, longest),
            decided_by=_most(self.decided_by, MOST_POINTS, longest),
        )

    @property
    def n_lines(self) -> int:
        """How many lines the texts fill."""
        beside = [each for _, each in (*self.columns, *self.declared)]
        texts = [*self.found, *self.unanswered, *self.open_points, *self.decided_by]
        n_lines = sum(_n_lines(each, LINE_BESIDE) for each in beside) + sum(_n_lines(each, LINE) for each in texts)
        return n_lines + sum(_n_lines(f"{'x' * MARK} {each}", LINE) for _, each in self.decisive)


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
            findings[each.name] if each not in refused else in_words(each.metric or each.name).capitalize(),
            in_which_columns(each.metric, figures) or (measured if _is_on_identified(each.metric) else ""),
            each.advice,
        )
        for each in failed
    ]
    limited = {each.metric for each in decided if each.metric is not None}
    partition = [] if manifest["partition"] is None else [f"partition {manifest['partition']}"]
    page = FirstPage(
        ", ".join(cut(each, LONGEST_NAME) for each in (manifest["release"], *partition)),
        list(_columns(manifest)),
        [(question, _declared(names, declared)) for question, names in QUESTIONS.items()],
        [findings[each.name] for each in refused],
        list(_decisive(decided, manifest)),
        [WITHHELD_IN_WORDS] if are_withheld(manifest) else not_answered(manifest, limited),
        [*points, *filter(None, [rating])] or ["None."],
        list(_people(manifest, decided, declared)),
    )
    pages = [page.cut_to(longest) for longest in LENGTHS]
    most = MOST_LINES + (LINES_TO_SIGN if refused else 0)
    return next((each for each in pages if each.n_lines <= most), pages[-1])


def cut(text: str, longest: int, annex: str = "A") -> str:
    """Cut a text to a length, counted in small letters, with a pointer to the annex that has all of it."""
    words = " ".join(text.split())
    n_shown = sum(reached <= longest for reached in accumulate(map(_width, words)))
    return words if n_shown == len(words) else f"{words[:n_shown].rstrip()}\u2026 (all in Annex {annex})"


def _n_lines(text: str, longest: int) -> int:
    """Count the lines of a text that is broken between words, and within a word that is longer than a line."""
    n_lines, used = 1, 0
    for word in text.split():
        width = sum(map(_width, word))
        if used and used + 1 + width > longest:
            n_lines, used = n_lines + 1, 0
        used += width + (used > 0)
        n_lines, used = n_lines + used // (longest + 1), used % (longest + 1)
    return n_lines


def _width(letter: str) -> int:
    return 2 if letter.isupper() or letter in "mw@%" or ord(letter) > LAST_LATIN else 1


def _is_on_identified(metric: str | None) -> bool:
    return metric is not None and METRICS[metric].assessment == MPUCC and METRICS[metric].worst_for_copies


def _most(texts: Sequence[str], most: int, longest: int, annex: str = "A") -> list[str]:
    n_others = len(texts) - most
    shown = [cut(each, longest, annex) for each in texts[:most]]
    return [*shown, *([f"{n_others:,} more in Annex {annex}."] if n_others > 0 else [])]


def _sentences(*parts: str) -> str:
    return " ".join(f"{part.rstrip('.')}." for part in parts if part)


def _columns(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    columns, is_synthetic = manifest["columns"], manifest["stage"] == "synthetic"
    names = list(dict.fromkeys(each.get("generalizes") or each["column"] for each in columns))
    of = f" for {len(names):,} of the source" if len(names) < len(columns) else ""
    yield "What", f"{leaves_in_words(manifest)}, in {len(columns):,} columns{of}: {_names(names)}"
    leaving = [each["column"] for each in manifest.get(MANIFEST_KEY, ())]
    if leaving:
        precise = "values as precise as those of the source" if is_synthetic else "the people's own values, unchanged"
        yield "Not coarsened", f"{len(leaving):,} of these columns have {precise}: {_names(leaving)}"


def leaves_in_words(manifest: Mapping[str, Any]) -> str:
    """Say how many records leave; of related tables, how many people and rows of each table."""
    if "tables" in manifest:
        return f"{manifest['n_records']:,} synthetic people with {rows_in_words(manifest)}"
    kind = "synthetic records"
    if manifest["stage"] != "synthetic":
        kind = "records of real people, in classes of people who look alike"
    return f"{manifest['n_records']:,} {kind}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(cut(each, LONGEST_NAME, "D") for each in names)


def _declared(names: Sequence[str], declared: Mapping[str, Any]) -> str:
    """Return declarations as one text, with what they are unless the question says it."""
    given = [name for name in names if name in declared]
    said = [f"{'' if name in ('recipient', 'purpose') else f'{DECLARED[name]}: '}{declared[name]}" for name in given]
    return "; ".join(said) or NOT_STATED


def _decisive(decided: Sequence[Verdict], manifest: Mapping[str, Any]) -> Iterator[tuple[Outcome, str]]:
    """Yield the limited figures that decide, the failed ones first, with their meaning in words."""
    kinds, places = ["refused", "waived", "warning", "good"], list(DECISIVE)
    limited = [
        (kinds.index(outcome.kind), not words, [*places, each.metric].index(each.metric), outcome, words, each.metric)
        for each in decided
        if each.metric is not None
        for outcome, words in [(outcome_of(each, manifest), decisive_words(each.metric, manifest["figures"]))]
    ]
    for *_, outcome, words, metric in sorted(limited)[:MOST_DECISIVE]:
        yield outcome, words or METRICS[metric].meaning


def _people(manifest: Mapping[str, Any], decided: Sequence[Verdict], declared: Mapping[str, Any]) -> Iterator[str]:
    n_required = manifest["policy"]["required"].get("approvals", 0)
    approvals = [Approval.of(each).in_words for each in manifest.get("approvals", ())]
    said = [each.reason for each in decided if each.name in (REJECTION_CHECK, APPROVAL_CHECK) and not each.passed]
    said += [f"Approved by {each}" for each in approvals]
    why = f"of {n_required:,} approvals, none was given" if n_required else "the policy demands no approval"
    waived = [f"Waived: {each.reason}" for each in decided if each.waived_by is not None]
    who = "except the limits that people waived" if waived else "by its limits and conditions; no person"
    yield from said or [f"The policy, {who}: {why}."]
    yield from waived
    yield f"Roles of the columns: {declared.get('roles_decided_by', NOT_STATED)}"
