"""How many copied people a control could reveal, known before any synthetic record exists, and the split to choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from privacy_assets.mpucc.control import MIN_CONTROL_RECORDS

DEFAULT_POWER = 0.95
COPIED_SHARE = 0.01
"""Share of the originals whose copies a recommended control reveals."""
TRAIN_FRACTIONS = (0.9, 0.8, 0.75, 0.7, 2 / 3, 0.6, 0.5)
"""Splits that are tried, those with most people for the synthesizer first."""


@dataclass(frozen=True)
class ControlSize:
    """The copies that a control of a certain size could reveal.

    Attributes
    ----------
    n_original, n_control : int
        People on either side, or records if these are not assigned to people.
    detectable_copies : int or None
        Smallest number of people, copied with all their records, that is detected with the requested power; None if
        even copies of everybody are not detected.
    """

    n_original: int
    n_control: int
    detectable_copies: int | None

    @property
    def detectable_share(self) -> float | None:
        """``detectable_copies`` as a share of the originals, from 0 to 1."""
        return None if self.detectable_copies is None else self.detectable_copies / self.n_original


@dataclass(frozen=True)
class ControlPlan:
    """The control of a planned split, and the one to recommend.

    Attributes
    ----------
    planned : ControlSize
        With the planned share of people for the synthesizer.
    recommended_fraction : float or None
        The planned share if its control reveals copies of 1 % of the originals (or of the requested share). Otherwise
        the largest share whose control does; if there is no such share, the one that reveals the smallest share of the
        originals. None if the table has too few people for any control.
    recommended : ControlSize or None
        With that share.
    """

    planned: ControlSize
    recommended_fraction: float | None
    recommended: ControlSize | None


def people_in_original(n_people: int, train_fraction: float) -> int:
    """Return how many people the synthesizer may see: rounded to whole people, with at least one on each side."""
    return min(max(round(train_fraction * n_people), 1), n_people - 1)


def choose_split(
    judged: Callable[[float, float], ControlSize], train_fraction: float, copied_share: float, least_control: int
) -> ControlPlan:
    """Choose among the splits of a table as described in `ControlPlan`.

    ``judged`` returns the copies that the control reveals if this share of the people is for the synthesizer, at least
    if these are at most a second share, of the originals; it should reveal ``copied_share`` of them. With fewer than
    50 people on either side, there is no decision in any case.
    """
    planned = judged(train_fraction, 1.0)
    least_share = float("inf")
    best: float | None = None
    recommended: ControlSize | None = None
    # Judging takes long, and the first split that reveals enough is the one to recommend.
    for fraction in (train_fraction, *TRAIN_FRACTIONS):
        size = planned if fraction == train_fraction else judged(fraction, min(max(least_share, copied_share), 1.0))
        if size.n_control < max(least_control, MIN_CONTROL_RECORDS) or size.n_original < MIN_CONTROL_RECORDS:
            continue
        share = 2.0 if size.detectable_share is None else size.detectable_share
        if share < least_share:
            least_share, best, recommended = share, fraction, size
        if share <= copied_share:
            break
    return ControlPlan(planned, best, recommended)
