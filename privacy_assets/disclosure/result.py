"""The result of a disclosure assessment, and the intervals of its figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.unknown_values import frame_of, said_of_blind
from privacy_assets.disclosure.criteria import criteria_in_words
from privacy_assets.display.notebook import ShowsFigures, ShowsPictures
from privacy_assets.display.numbers import number, percent
from privacy_assets.display.pictures import Drawn
from privacy_assets.mpucc.intervals import Estimate, newcombe_interval, normal_quantile
from privacy_assets.storage.artifact import Artifact

CONFIDENCE: Final = 0.95
UNLUCKY: Final = 0.01
"""P value of the difference of originals and controls without synthetic records, up to which a leak may be its."""


@dataclass(frozen=True, eq=False, repr=False)
class DisclosureAssessment(ShowsFigures, ShowsPictures):
    """Result of `assess_disclosure`; ``docs/disclosure.md`` explains the figures.

    Attributes
    ----------
    scores : dict
        ``leakage_detected`` (True if the smallest adjusted p value is at most 0.05; otherwise False, or None if the
        question is not answered: a column is blind, originals and controls differ even without leakage, or even copies
        of all originals would have gone unnoticed), ``adjusted_p_value``, ``detectable_share`` and
        ``detectable_people`` (copied originals that would have been detected with a probability of 95 %); by criterion
        ``_excess`` (mean score of
        originals minus that of controls), ``_interval`` (95 %), ``_adjusted_p_value`` and ``_detectable_share``;
        ``membership_advantage`` (how well closeness to the synthetic records tells originals from controls, 2 AUC - 1)
        with its ``_interval`` and ``_upper`` (the larger end, without sign), ``membership_tpr_at_1_percent`` (share of
        originals closer than all but 1 % of controls; None below 200), ``most_exposed_people`` (closer than every
        control) and ``most_exposed_people_by_chance``;
        ``split_p_value``; ``n_original``, ``n_control`` and ``n_examined`` (people), ``n_synthetic`` (records). Of
        related tables, ``n_synthetic`` counts people, a criterion has the figures of the view on which it shows most,
        and membership is not measured.
    criteria : DataFrame
        One row per criterion, and of related tables per ``view``, which is then the first column: whether ``more`` or
        ``fewer`` is asked, the weight of its p value, mean score of originals and of controls, their difference with
        its interval, p values.
    sensitive : DataFrame
        By column and attack (``claims`` of sets, the ``nearest`` record, ``agreement`` on what a named attacker wants):
        how often values are right for originals and for controls, and the difference with its interval.
        ``n_original`` and ``n_control`` count claims or records.
    split : DataFrame
        By column, whether originals and controls differ in it, regardless of the synthetic records.
    rare : DataFrame
        By column, how many originals and controls have a rare value that some synthetic record has.
    settings : dict
        All settings that affect the result, as JSON values.
    """

    pictures = ("criteria", "columns")
    main_figures = (
        "leakage_detected",
        "adjusted_p_value",
        "detectable_people",
        "detectable_share",
        "n_original",
        "n_control",
        "n_synthetic",
    )

    scores: dict[str, Any]
    criteria: pd.DataFrame
    sensitive: pd.DataFrame
    split: pd.DataFrame
    rare: pd.DataFrame
    settings: dict[str, Any]

    @property
    def columns(self) -> pd.DataFrame:
        """By column, the share of synthetic values that nobody has (see `frame_of`), and people with ``rare`` ones."""
        return frame_of(self.settings["unknown_values"]).merge(self.rare, on="column", how="left")

    def _figures(self) -> Mapping[str, object]:
        return self.scores

    def _draw(self, what: str) -> Drawn:
        from privacy_assets.disclosure.pictures import draw_excess_by_criterion, draw_guessed_by_column

        if what == "columns":
            return draw_guessed_by_column(self.sensitive)
        is_answered = self.scores["leakage_detected"] is not None
        return draw_excess_by_criterion(self.criteria, level=self.settings["level"], is_answered=is_answered)

    def summary(self) -> str:
        """Return the findings in words, with shares and counts only."""
        found, level = self.scores, self.settings["level"]
        found_in = self.criteria[self.criteria["adjusted_p_value"] <= level]
        seen, unit = found_in["criterion"].unique(), "people" if "view" in found_in else "records"
        share = found["detectable_share"]
        said = [
            f"{found['n_synthetic']:,} synthetic {unit} were compared with {found['n_original']:,} originals and "
            f"{found['n_control']:,} controls"
            + (f", of whom {found['n_examined']:,} were drawn." if self._is_sample() else ".")
        ]
        if len(seen):
            said.append(
                f"They reveal more about originals than about controls: {criteria_in_words(seen)}"
                + (f" in {', '.join(found_in['view'].unique())}" if "view" in found_in else "")
                + f" (smallest adjusted p value {number(found['adjusted_p_value'])})."
            )
            if "rare_values" in set(seen):
                worst = self.rare.iloc[(self.rare["rare_original"] - self.rare["rare_control"]).argmax()]
                said.append(
                    f"Most rare values are in column {worst['column']!r}: of {worst['rare_original']:,} originals and "
                    f"{worst['rare_control']:,} controls."
                )
            if found["split_p_value"] <= UNLUCKY:
                said.append(
                    f"The split is unlucky (p value {number(found['split_p_value'])}): originals and controls differ "
                    "by chance, which alone can make records of other people look like a leak, and does not show that "
                    "the synthesizer copies."
                )
        elif blind := said_of_blind(self.settings["unknown_values"]):
            said.append(blind)
        else:
            said.append(f"No leak was detected (smallest adjusted p value {number(found['adjusted_p_value'])}).")
        if left_out := self.settings.get("left_out_views"):
            said.append(f"Not tested: {'; '.join(f'{view}, because {why}' for view, why in left_out.items())}.")
        if share is not None:
            said.append(
                f"Copies of whole records of fewer than {found['detectable_people']:,} people ({percent(share)} of the "
                "originals) might have gone unnoticed."
            )
        else:
            said.append("Even copies of all originals would have gone unnoticed: the tables are too small.")
        if found["split_p_value"] <= self.settings["split_level"]:
            apart = self.split.sort_values("adjusted_p_value", kind="stable")["column"].iloc[0]
            said.append(
                f"Originals and controls differ even without leakage, most in column {apart!r}: they do not come from "
                "one random split, so finding no leak does not answer the question."
            )
        return " ".join(said)

    def _is_sample(self) -> bool:
        return bool(self.scores["n_examined"] < self.scores["n_original"] + self.scores["n_control"])

    def to_artifact(self) -> Artifact:
        """Return everything as plain columns with a JSON header."""
        frames = {"criteria": self.criteria, "sensitive": self.sensitive, "split": self.split, "rare": self.rare}
        return Artifact("DisclosureAssessment", {"scores": self.scores, "settings": self.settings}, frames)

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> DisclosureAssessment:
        """Read the output of :meth:`to_artifact`."""
        frames = {name: artifact.frames[name] for name in ("criteria", "sensitive", "split", "rare")}
        return cls(scores=dict(artifact.header["scores"]), settings=dict(artifact.header["settings"]), **frames)


def difference_of_means(originals: NDArray[np.float64], controls: NDArray[np.float64]) -> Estimate:
    """Estimate the difference of the means of scores, with the pooled variance of all people."""
    both = np.concatenate([originals, controls])
    reach = normal_quantile(CONFIDENCE) * float(both.std(ddof=1)) * np.sqrt(1 / len(originals) + 1 / len(controls))
    return _within(float(originals.mean() - controls.mean()), float(reach))


def difference_of_shares(originals: NDArray[np.float64], controls: NDArray[np.float64]) -> Estimate:
    """Estimate the difference of the means of scores from 0 to 1, which has uncertainty even if all are equal."""
    sums, n = (float(originals.sum()), float(controls.sum())), (float(len(originals)), float(len(controls)))
    return newcombe_interval(sums, n, CONFIDENCE)


def difference_of_ratios(right: NDArray[np.float64], n: NDArray[Any], n_original: int) -> Estimate:
    """Estimate the difference of the shares of right values for originals (who come first) and for controls.

    The variance of each share is that of a ratio of two sums over people [1]_. As for a plain share, two people are
    added, one with only right and one with only wrong values [2]_: otherwise a side of few people, of whom nobody
    is guessed right, would have no uncertainty. It is NaN if a side has no values.

    References
    ----------
    .. [1] W. G. Cochran (1977), "Sampling Techniques", Wiley, section 2.11.
    .. [2] A. Agresti, B. Caffo (2000), "Simple and effective confidence intervals for proportions and differences of
       proportions result from adding two successes and two failures", doi:10.1080/00031305.2000.10474560.
    """
    difference, variance = 0.0, 0.0
    for side, sign in ((slice(n_original), 1), (slice(n_original, None), -1)):
        total = float(n[side].sum())
        if total == 0:
            return Estimate(float("nan"), float("nan"), float("nan"))
        difference += sign * float(right[side].sum()) / total
        each = total / len(n[side])
        own, own_n = np.append(right[side], [each, 0.0]), np.append(n[side], [each, each])
        share = own.sum() / own_n.sum()
        variance += float(((own - share * own_n) ** 2).sum()) / float(own_n.sum()) ** 2
    return _within(difference, normal_quantile(CONFIDENCE) * float(np.sqrt(variance)))


def _within(difference: float, reach: float) -> Estimate:
    return Estimate(difference, difference - reach, difference + reach)
