"""The criteria of the disclosure test: everything that the package knows of each is said here, once.

The score of a real record is what the synthetic records reveal about it. No score uses who is an original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Evidence: TypeAlias = Mapping[str, NDArray[Any]]
"""What the synthetic records reveal about each examined real record, by the names that the functions below give."""
CLOSEST_SHARE: Final = 0.005
FEWEST_CLOSEST: Final = 12
CHANCE_OF_CLOSEST: Final = 0.0025
"""Probability, at most, that enough closest records to be evidence are all originals by chance."""
NEAR_SHARE: Final = 0.1
FEWEST_NEAR: Final = 30


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """A criterion of the disclosure test.

    Attributes
    ----------
    words : str
        Its name in words.
    law : str
        The criterion of the law, in the words of WP216.
    definition : str
        Score of a real record x, for the documentation.
    question, not_answered : str
        What the report says that it asks, and does not answer.
    what_helps : str
        Advice if it fails.
    needs : str
        Module of this folder and function that gathers its evidence, given records, attack and workers, and the
        evidence on all examined records if these are others. It is imported when it is used.
    score : callable
        Returns the scores of records from their evidence and from the evidence on all examined records.
    share_of : str
        Completes "share of originals ..." if the mean score is one; then policies can limit its excess.
    is_rationed : bool
        Whether a fixed number of records, those with the largest ``closeness``, score 1, so that copies compete.
    needs_synthetic_people, needs_named_columns : bool
        Whether it is only asked of synthetic records of which it is known who they belong to; only if it is named what
        attackers want to learn.
    weight : float
        Its p value counts as this many times itself, so that heavier criteria leave more of the level to others.
    finds_copies : bool
        Whether copies of whole records raise its score; if not, it has no detectable share.
    counts_copies : bool
        Whether its excess grows in proportion to the share of originals who are copied.
    direction : str
        ``more`` if it asks whether the records reveal more about originals; ``fewer`` if it asks who is missing.
    is_of_all_releases : bool
        Whether it is asked of the records together with those that were published before.
    """

    words: str
    law: str
    definition: str
    question: str
    not_answered: str
    what_helps: str
    needs: str
    score: Callable[[Evidence, Evidence], NDArray[Any]]
    share_of: str = ""
    is_rationed: bool = False
    needs_synthetic_people: bool = False
    needs_named_columns: bool = False
    weight: float = 1.0
    finds_copies: bool = True
    counts_copies: bool = False
    direction: str = "more"
    is_of_all_releases: bool = False


def number_of_closest(n_records: float, share: float) -> float:
    """Return how many of n records count as the closest, given the share of originals among the people.

    If all of m are originals, the p value is ``share**m``, which must not be too large to be evidence.
    """
    fewest = max(FEWEST_CLOSEST, int(np.ceil(np.log(CHANCE_OF_CLOSEST) / np.log(share))))
    return max(CLOSEST_SHARE * n_records, min(fewest, n_records))


def _surprise_of_guesses(own: Evidence, whole: Evidence) -> NDArray[np.float64]:
    rates = whole["guessed"].mean(axis=1)
    return np.asarray(-np.log(np.where(rates > 0, rates, 1.0)) @ own["guessed"], np.float64)


def _is_among_largest(figures: NDArray[Any], of_all: NDArray[Any], n: float) -> NDArray[np.float64]:
    """Return 1 for figures among the n largest of all; those at the edge share the remaining score."""
    edge = np.sort(of_all)[::-1][int(np.ceil(n)) - 1]
    at_edge = (n - (of_all > edge).sum()) / (of_all == edge).sum()
    return np.asarray(np.where(figures == edge, at_edge, figures > edge), np.float64)


def _is_absent(own: Evidence, whole: Evidence) -> NDArray[np.float64]:
    """Return -1 for the records that are nearest to synthetic ones, in comparison with other real records."""
    n = len(whole["relative_distance"])
    n_near = max(NEAR_SHARE * n, min(FEWEST_NEAR, n))
    return -_is_among_largest(-own["relative_distance"], -whole["relative_distance"], n_near)


COARSEN = "Coarsen or leave out the columns with the most distinct values."
STATISTICS = "what can be inferred about everybody: statistics"
TOGETHER: Final = "_together"
"""What names of criteria end with that are asked of records together with those that were published before."""
_OF_ONE_RELEASE: Final[Mapping[str, Criterion]] = {
    "singling_out": Criterion(
        words="singling out",
        law="Singling out",
        definition="1 if some set has x's values in exactly one synthetic record and of exactly one real person. "
        "Numbers of more than 20 values are in 20 bins",
        question="Do some known columns have a person's values in one synthetic record, and nobody else's?",
        not_answered="who can also be found in the control by rare values",
        what_helps=COARSEN,
        needs="column_set_evidence.single_out_records",
        score=lambda own, _: own["singled_out"],
        share_of="singled out",
        weight=4.0,
    ),
    "linkability": Criterion(
        words="linkability",
        law="Linkability",
        definition="1 if two sets without a common column each match exactly one synthetic record, the same for both",
        question="Do two sets of columns without a common column lead to the same single synthetic record?",
        not_answered="other releases of the same people",
        what_helps=COARSEN,
        needs="column_set_evidence.link_records",
        score=lambda own, _: own["linked"],
        counts_copies=True,
        share_of="whose records can be linked",
        weight=4.0,
    ),
    "inference_exact": Criterion(
        words="inference by claims",
        law="Inference",
        definition="a set *claims* a value of another column if some synthetic record equals x on the set and all that "
        "do agree on that column. The score sums, over its claims, 1 if the claim is right (otherwise 0) minus the "
        "share of right claims of the same set and column",
        question="If all synthetic records with a person's other values agree on a value, is it right?",
        not_answered=STATISTICS,
        what_helps="Coarsen the columns that are inferred: combinations that few people have are repeated as observed.",
        needs="column_set_evidence.count_claims_on_records",
        score=lambda own, _: own["claim_score"],
        counts_copies=True,
    ),
    "inference_near": Criterion(
        words="inference by the nearest record",
        law="Inference",
        definition="a column is guessed from the nearest synthetic record on all other known columns (Gower's distance "
        "[2]). The score sums the right guesses, each weighted by minus the logarithm of the frequency of right "
        "guesses for that column",
        question="Are values, especially rare ones, guessed right from the nearest synthetic record?",
        not_answered=STATISTICS,
        what_helps="Coarsen the columns that are inferred, or make them with larger leaves or more noise.",
        needs="nearest_evidence.guess_from_nearest",
        score=_surprise_of_guesses,
        counts_copies=True,
    ),
    "near_copies": Criterion(
        words="near copies",
        law="Membership",
        definition="1 for the 0.5 % of the records with the most surprising closest synthetic record: at least 12, and "
        "so many that they are all originals by chance with a probability of at most 0.25 %",
        question="Is some synthetic record surprisingly close?",
        not_answered="copies of so few people that they might have gone unnoticed",
        what_helps="Round numbers that are repeated exactly, use larger leaves or a smoother synthesizer, and never "
        "copy or interpolate between records.",
        needs="nearest_evidence.find_closest_records",
        score=lambda own, whole: _is_among_largest(own["closeness"], whole["closeness"], float(whole["n_closest"])),
        share_of="with a near copy",
        is_rationed=True,
    ),
    "rare_values": Criterion(
        words="rare values",
        law="Membership",
        definition="number of x's values, of any kind but booleans, that fewer than three real people have and that "
        "also occur in a synthetic record",
        question="Do synthetic records have values that fewer than 3 people have?",
        not_answered="values that the synthesizer invented",
        what_helps="Leave out the column or round its numbers (`precision`), or let the synthesizer redraw rare texts. "
        "Numbers must be drawn between those of several people: redrawing them is not enough, since neighbors differ "
        "by little.",
        needs="scores.count_rare_values",
        score=lambda own, _: own["is_rare"].sum(axis=0),
        weight=8.0,
    ),
    "shifted_copies": Criterion(
        words="shifted copies",
        law="Singling out",
        definition="subtract each synthetic record that equals x in all columns but numbers and moments of at least "
        "three values. Count the real people who share the difference with some synthetic record, minus those who "
        "share its opposite: differences of two samples of one population are symmetric. The score is the square of "
        "the largest count beyond zero. The difference zero is a copy and does not count",
        question="Do synthetic records differ from many people's by one and the same amount?",
        not_answered="shifts with noise, of few people, up for some and down for others; factors",
        what_helps="Make whole records anew, instead of moving copies by a constant, such as all dates by some weeks, "
        "or repeating records with another value in one column.",
        needs="shifted_copies.count_shared_differences",
        score=lambda own, _: own["n_beyond_opposite"] ** 2,
        weight=4.0,
        finds_copies=False,
    ),
    "absence": Criterion(
        words="absence",
        law="Membership",
        definition="-1 for the tenth of the records (at least 30) with the smallest log((s + 1) / (r + 1)), otherwise "
        "0; s is Gower's distance to the nearest synthetic record, r that to the nearest record of another person",
        question="Are there fewer synthetic records near the people than near others, so that gaps show who is there?",
        not_answered="gaps around few people, or so narrow that others have them, too",
        what_helps="Do not drop records because they are close to originals: who is missing around them is then known. "
        "Use a synthesizer whose records need no filter, and draw again.",
        needs="nearest_evidence.guess_from_nearest",
        score=_is_absent,
        weight=8.0,
        finds_copies=False,
        direction="fewer",
    ),
    "absence_inferred": Criterion(
        words="absence in inferences",
        law="Membership",
        definition="minus the score of the inference by the nearest record",
        question="Are values of the people guessed worse than those of others, so that failing shows who is there?",
        not_answered="gaps around few people",
        what_helps="Do not drop records because they are close to originals, and use no loss that pushes records away "
        "from them.",
        needs="nearest_evidence.guess_from_nearest",
        score=lambda own, whole: -_surprise_of_guesses(own, whole),
        weight=8.0,
        finds_copies=False,
        direction="fewer",
    ),
    "nearest_person": Criterion(
        words="nearest person",
        law="Singling out",
        definition="if the synthetic table has a person key: each synthetic person points to the real person with whom "
        "it shares most. On each set, a distinct row that both have counts minus the logarithm of the share of real "
        "people who have it. The score of x's person sums, over the synthetic people who point to it, the square of "
        "the lead over the second nearest",
        question="Are the rows of a synthetic person together those of one real person?",
        not_answered="copies of so few of a person's rows that others share as many",
        what_helps="Make each synthetic person anew, and not by copying or changing the rows of one person.",
        needs="nearest_person.point_to_nearest",
        score=lambda own, _: own["pointed"],
        needs_synthetic_people=True,
    ),
    "attribute_agreement": Criterion(
        words="agreement on a named attribute",
        law="Inference",
        definition="if it is named what attackers know or want to learn: minus the logarithm of the share of real "
        "people with x's values on the known columns and a wanted one, if some synthetic record has the same. Of "
        "several wanted columns, that with the sum over the originals farthest beyond random divisions counts",
        question="Does a synthetic record have what an attacker knows of a person and what he wants to learn?",
        not_answered="attackers who know other columns",
        what_helps="Coarsen the wanted column or the known ones, or make them with larger leaves or more noise.",
        needs="scores.find_agreement",
        score=lambda own, _: own["agreement"].T,
        needs_named_columns=True,
        finds_copies=False,
    ),
}


def _of_all_releases(own: Criterion) -> Criterion:
    question = f"{own.question.rstrip('?')}, with what was published before?"
    asked = replace(own, words=f"{own.words}, all releases", question=question, share_of="", is_rationed=False)
    return replace(asked, finds_copies=False, is_of_all_releases=True)


CRITERIA: Final[Mapping[str, Criterion]] = {
    **{name: own for name, own in _OF_ONE_RELEASE.items() if not own.needs_named_columns},
    **{
        f"{name}{TOGETHER}": _of_all_releases(own)
        for name, own in _OF_ONE_RELEASE.items()
        if not own.needs_synthetic_people and not own.needs_named_columns
    },
    **{name: own for name, own in _OF_ONE_RELEASE.items() if own.needs_named_columns},
}


def criteria_asked(
    *, has_synthetic_people: bool, has_named_columns: bool, has_earlier_records: bool = False
) -> dict[str, Criterion]:
    """Return the criteria that are asked of synthetic records; the one with several scores is the last."""
    return {
        name: own
        for name, own in CRITERIA.items()
        if (has_synthetic_people or not own.needs_synthetic_people)
        and (has_named_columns or not own.needs_named_columns)
        and (has_earlier_records or not own.is_of_all_releases)
    }


def weights_of(asked: Iterable[Criterion]) -> NDArray[np.float64]:
    """Return the weights of the p values of criteria, of shape (n_criteria,)."""
    return np.array([each.weight for each in asked])


def telling(names: Iterable[str]) -> list[str]:
    """Return names of failed criteria, without those of several releases that one release fails alone."""
    failed = list(names)
    return [name for name in failed if not (name.endswith(TOGETHER) and name.removesuffix(TOGETHER) in failed)]


def criteria_in_words(names: Iterable[str]) -> str:
    """Return failed criteria as a list in words."""
    return ", ".join(CRITERIA[name].words for name in telling(names))
