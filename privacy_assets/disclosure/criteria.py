"""The criteria of the disclosure test: everything that the package knows of each is said here, once.

The score of a real record is what the synthetic records reveal about it. No score uses who is an original.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Evidence: TypeAlias = Mapping[str, NDArray[Any]]
"""What the synthetic records reveal about each examined real record, by the names that the functions below give."""
CLOSEST_SHARE: Final = 0.005
FEWEST_CLOSEST: Final = 12
"""Fewer records are not evidence: with two originals per control, 12 are all originals in 0.8 % of the divisions."""


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
    needs_synthetic_people : bool
        Whether it is only asked of synthetic records of which it is known who they belong to.
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


def number_of_closest(n_records: float) -> float:
    """Return how many of n records count as the closest."""
    return max(CLOSEST_SHARE * n_records, min(FEWEST_CLOSEST, n_records))


def _surprise_of_guesses(own: Evidence, whole: Evidence) -> NDArray[np.float64]:
    rates = whole["guessed"].mean(axis=1)
    return np.asarray(-np.log(np.where(rates > 0, rates, 1.0)) @ own["guessed"], np.float64)


def _is_among_closest(own: Evidence, whole: Evidence) -> NDArray[np.float64]:
    """Return 1 for the closest records; records at the edge share the remaining score."""
    closeness, all_ = own["closeness"], whole["closeness"]
    n_closest = number_of_closest(len(all_))
    edge = np.sort(all_)[::-1][int(np.ceil(n_closest)) - 1]
    at_edge = (n_closest - (all_ > edge).sum()) / (all_ == edge).sum()
    return np.asarray(np.where(closeness == edge, at_edge, closeness > edge), np.float64)


COARSEN = "Coarsen or leave out the columns with the most distinct values."
STATISTICS = "what can be inferred about everybody: statistics"
CRITERIA: Final[Mapping[str, Criterion]] = {
    "singling_out": Criterion(
        words="singling out",
        law="Singling out",
        definition="1 if some set has x's values in exactly one synthetic record and of exactly one real person. "
        "Numbers of more than 20 values are in 20 bins",
        question="Do some known columns have a person's values in one synthetic record, and nobody else's?",
        not_answered="who can also be found in the control by rare values",
        what_helps=COARSEN,
        needs="scores.single_out_records",
        score=lambda own, _: own["singled_out"],
        share_of="singled out",
    ),
    "linkability": Criterion(
        words="linkability",
        law="Linkability",
        definition="1 if two sets without a common column each match exactly one synthetic record, the same for both",
        question="Do two sets of columns without a common column lead to the same single synthetic record?",
        not_answered="other releases of the same people",
        what_helps=COARSEN,
        needs="scores.link_records",
        score=lambda own, _: own["linked"],
        share_of="whose records can be linked",
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
        needs="scores.count_claims_on_records",
        score=lambda own, _: own["claim_score"],
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
        needs="scores.guess_from_nearest",
        score=_surprise_of_guesses,
    ),
    "near_copies": Criterion(
        words="near copies",
        law="Membership",
        definition="1 for the 0.5 % of the records (at least 12) with the most surprising closest synthetic record",
        question="Is some synthetic record surprisingly close?",
        not_answered="copies of so few people that they might have gone unnoticed",
        what_helps="Round numbers that are repeated exactly, use larger leaves or a smoother synthesizer, and never "
        "copy or interpolate between records.",
        needs="scores.find_closest_records",
        score=_is_among_closest,
        share_of="with a near copy",
        is_rationed=True,
    ),
    "rare_text": Criterion(
        words="rare texts",
        law="Membership",
        definition="number of x's text values that fewer than three real people have and that also occur in a "
        "synthetic record",
        question="Do synthetic records have texts that fewer than 3 people have?",
        not_answered="texts that the synthesizer invented",
        what_helps="Leave out the column, or let the synthesizer redraw its rare values.",
        needs="scores.count_rare_texts",
        score=lambda own, _: own["n_rare"],
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
}


def criteria_asked(*, has_synthetic_people: bool) -> dict[str, Criterion]:
    """Return the criteria that are asked of synthetic records, with or without a person key."""
    return {name: own for name, own in CRITERIA.items() if has_synthetic_people or not own.needs_synthetic_people}


def criteria_in_words(names: Iterable[str]) -> str:
    """Return criteria as a list in words."""
    return ", ".join(CRITERIA[name].words for name in names)
