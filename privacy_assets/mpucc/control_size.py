"""How many verbatim copies a control could reveal: known from its size, before any synthetic record exists."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.control import MIN_CONTROL_RECORDS, probability_of_a_draw, reach_of_copies
from privacy_assets.mpucc.preprocess import DatetimePrecision, NumericPrecision, preprocess
from privacy_assets.mpucc.settings import MAX_CONFIDENCE_LEVEL
from privacy_assets.setting_checks import is_integer, is_number, require

DEFAULT_POWER = 0.95
COPIED_SHARE = 0.01
"""Share of the originals whose copies a recommended control reveals."""
TRAIN_FRACTIONS = (0.9, 0.8, 0.75, 0.7, 2 / 3, 0.6, 0.5)
"""Splits that are tried, those with most people for the synthesizer first."""
N_DRAWS = 500
# With fewer records, the frequency itself is the best estimate.
FEWEST_TO_ESTIMATE = 5


@dataclass(frozen=True)
class SharedRecords:
    """How many people share the records of a table, which decides how often copies happen by chance.

    Attributes
    ----------
    people_with : ndarray of shape (n_distinct,), dtype=int64
        People who have each distinct record.
    n_people : int
        Number of people, or of records if these are not assigned to people.
    records_per_person : float
        Mean number of distinct records of a person.
    """

    people_with: NDArray[np.int64]
    n_people: int
    records_per_person: float


@dataclass(frozen=True)
class ControlSize:
    """The copies that a control of a certain size could reveal.

    Attributes
    ----------
    n_original, n_control : int
        People on either side, or records if these are not assigned to people.
    detectable_copies : int or None
        Smallest number of people, copied with all their records, that is detected with the requested power; None if
        even copies of everybody are not detected. Only copies of records that nobody else has are counted.
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


def count_shared_records(
    table: pd.DataFrame,
    *,
    person: str | None = None,
    numeric_precision: NumericPrecision = None,
    datetime_precision: DatetimePrecision = None,
) -> SharedRecords:
    """Count the people who have each distinct record, at the precision of an assessment.

    Parameters
    ----------
    table : DataFrame
        Real records with the columns that will be assessed, and with ``person``.
    person, numeric_precision, datetime_precision
        See :func:`~privacy_assets.mpucc.preprocess.preprocess`.
    """
    require_unique_text_names(table)
    one = table.head(1) if person is None else table.drop(columns=person, errors="ignore").head(1)
    tables = preprocess(
        table, one, person=person, numeric_precision=numeric_precision, datetime_precision=datetime_precision
    )
    of_row, n_alike, _ = tables.original.subjects
    groups, n_groups = group_rows(tables.original.codes, tables.n_codes)
    people_with = np.bincount(groups, n_alike[of_row], n_groups).astype(np.int64)
    n_people = int(n_alike.sum())
    return SharedRecords(people_with, n_people, float(people_with.sum() / n_people))


def judge_control(
    n_original: int,
    n_control: int,
    shared: SharedRecords | None = None,
    *,
    n_synthetic: int | None = None,
    confidence_level: float = 0.95,
    power: float = DEFAULT_POWER,
    seed: int = 0,
) -> ControlSize:
    """Return how many copied people a comparison with a control would reveal.

    Parameters
    ----------
    n_original, n_control : int
        People on either side of the split, or records if these are not assigned to people.
    shared : SharedRecords, optional
        Shared records of the table that is split. Default: no two people share a record, so there are no copies by
        chance.
    n_synthetic : int, optional
        Synthetic records, after deduplication. Default: as many as originals.
    confidence_level : float
        Confidence level of the comparison.
    power : float
        Probability of detection, from 0.5 to below 1.
    seed : int
        Seed of the divisions of shared records between the sides.

    Returns
    -------
    ControlSize

    Raises
    ------
    InvalidSettingError
        If a setting is out of its range.

    Notes
    -----
    This is the test of ``excess_copy`` in :func:`~privacy_assets.mpucc.control.compare_with_control`. A copied original
    that nobody else shares is among the matched originals with probability n_matched / n_original, and never in the
    control, so without chance copies the answer is exact: the smallest k with k > z sqrt(k + z**2 (n_original /
    n_matched)**2). This is 7 at 1:1, 10 at 2:1, 18 at 4:1 (95 %).

    Chance copies make this less exact. They are expected as from a synthesizer that draws new people from the same
    population, whose records are estimated by Good and Turing's method [1]_ from the number of people who share each
    record. Their excess is assumed to be normal around 0. Copies that the other two differences reveal are not counted,
    so a leak can be detected with fewer.

    References
    ----------
    .. [1] I. J. Good (1953), "The population frequencies of species and the estimation of population parameters",
       doi:10.1093/biomet/40.3-4.237.
    """
    require(is_integer(n_original, 1), "n_original", n_original, "an integer above 0")
    require(is_integer(n_control, 1), "n_control", n_control, "an integer above 0")
    require(n_synthetic is None or is_integer(n_synthetic, 1), "n_synthetic", n_synthetic, "an integer above 0")
    require(is_integer(seed, 0), "seed", seed, "an integer of at least 0")
    require(is_number(power, 0.5, 1) and power < 1, "power", power, "from 0.5 to below 1")
    is_level = is_number(confidence_level, 0, MAX_CONFIDENCE_LEVEL) and confidence_level > 0
    expected = f"more than 0 and at most {MAX_CONFIDENCE_LEVEL}"
    require(is_level, "confidence_level", confidence_level, expected)
    shared = shared or SharedRecords(np.ones(0, np.int64), n_original + n_control, 1.0)
    n_each = max(shared.records_per_person, 1.0)
    squares, moved = _chance_copies(n_original, n_control, shared, n_synthetic or round(n_original * n_each), seed)
    n_matched = min(n_original, n_control)
    drawn = float(probability_of_a_draw(np.ones(1, np.int64), n_original, n_matched)[0])
    spread = NormalDist().inv_cdf(power) * squares**0.5

    def is_detected(n_copied: int) -> bool:
        excess = n_copied * n_each * drawn
        of_copies = n_copied * (n_each * drawn) ** 2
        reach = reach_of_copies(squares + of_copies, moved + excess, moved + excess * n_each, confidence_level)
        return bool(excess - spread > reach)

    n_copied = bisect_left(range(1, n_original + 1), True, key=is_detected) + 1
    return ControlSize(n_original, n_control, n_copied if n_copied <= n_original else None)


def _chance_copies(
    n_original: int, n_control: int, shared: SharedRecords, n_synthetic: int, seed: int
) -> tuple[float, float]:
    """Return the expected contributions of chance copies to the sums of the squares and sizes of the differences."""
    n_with, n_records = np.unique(shared.people_with, return_counts=True)
    if len(n_with) == 0:
        return 0.0, 0.0
    n_people, n_matched = n_original + n_control, min(n_original, n_control)
    random = np.random.default_rng(seed)
    held = np.minimum(n_with, n_people)
    in_original = random.hypergeometric(held, n_people - held, n_original, (N_DRAWS, len(held)))
    difference = probability_of_a_draw(in_original, n_original, n_matched)
    difference -= probability_of_a_draw(held - in_original, n_control, n_matched)
    n_draws = n_synthetic / (n_people * shared.records_per_person)
    is_made = -np.expm1(-n_draws * _expected_people_with(n_with, n_records))
    squares, moved = (difference**2).mean(axis=0), np.abs(difference).mean(axis=0)
    return float((n_records * is_made * squares).sum()), float((n_records * is_made * moved).sum())


def _expected_people_with(n_with: NDArray[np.int64], n_records: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how many people would have a record in another table of the population, if this many have it in this one.

    By Good and Turing: for m, (m + 1) times the number of records that m + 1 people have, divided by the number of
    those that m people have. For larger m that too few records have, the result is m.
    """
    number = dict(zip(n_with.tolist(), n_records.tolist(), strict=True))
    expected = n_with.astype(np.float64)
    for place, m in enumerate(n_with.tolist()):
        n_own, n_next = number[m], number.get(m + 1, 0)
        if m == 1 or min(n_own, n_next) >= FEWEST_TO_ESTIMATE:
            expected[place] = (m + 1) * n_next / n_own
    return expected


def plan_control(
    table: pd.DataFrame,
    train_fraction: float = 0.8,
    *,
    person: str | None = None,
    numeric_precision: NumericPrecision = None,
    datetime_precision: DatetimePrecision = None,
    n_synthetic: int | None = None,
    confidence_level: float = 0.95,
    power: float = DEFAULT_POWER,
    copied_share: float = COPIED_SHARE,
    least_control: int = MIN_CONTROL_RECORDS,
) -> ControlPlan:
    """Judge the control of a planned split of a table, and recommend a split.

    Parameters
    ----------
    table : DataFrame
        Real records that are to be divided: the columns that will be assessed, and ``person``.
    train_fraction : float
        Planned share of the people whom the synthesizer sees, above 0 and below 1.
    person, numeric_precision, datetime_precision
        See :func:`~privacy_assets.mpucc.preprocess.preprocess`.
    n_synthetic, confidence_level, power
        See :func:`judge_control`.
    copied_share : float
        Share of the originals whose copies the control should reveal, above 0 and at most 1.
    least_control : int
        Smallest accepted number of people in the control, such as the ``control_records`` of a policy. With fewer than
        50 on either side, there is no decision in any case.

    Raises
    ------
    InvalidTableError
        If the table cannot be assessed, or has fewer than two people.
    InvalidSettingError
        If a setting is out of its range.
    """
    require(is_number(train_fraction, 0, 1) and 0 < train_fraction < 1, "train_fraction", train_fraction, "in (0, 1)")
    require(is_number(copied_share, 0, 1) and copied_share > 0, "copied_share", copied_share, "in (0, 1]")
    require(is_integer(least_control, 0), "least_control", least_control, "an integer of at least 0")
    shared = count_shared_records(
        table, person=person, numeric_precision=numeric_precision, datetime_precision=datetime_precision
    )
    return plan_by(
        shared,
        train_fraction,
        n_synthetic=n_synthetic,
        confidence_level=confidence_level,
        power=power,
        copied_share=copied_share,
        least_control=least_control,
    )


def plan_by(
    shared: SharedRecords,
    train_fraction: float,
    *,
    copied_share: float = COPIED_SHARE,
    least_control: int = MIN_CONTROL_RECORDS,
    n_synthetic: int | None = None,
    confidence_level: float = 0.95,
    power: float = DEFAULT_POWER,
) -> ControlPlan:
    """Plan a control as `plan_control` does, for a table whose shared records were counted.

    Raises
    ------
    InvalidTableError
        If it has fewer than two people.
    """
    if shared.n_people < 2:
        raise InvalidTableError(f"The table has {shared.n_people} person; a split needs one on each side. Add records.")

    def judged(fraction: float) -> ControlSize:
        n_original = people_in_original(shared.n_people, fraction)
        return judge_control(
            n_original,
            shared.n_people - n_original,
            shared,
            n_synthetic=n_synthetic,
            confidence_level=confidence_level,
            power=power,
        )

    return choose_split(judged, train_fraction, copied_share, least_control)


def choose_split(
    judged: Callable[[float], ControlSize], train_fraction: float, copied_share: float, least_control: int
) -> ControlPlan:
    """Choose among the splits of a table as described in `ControlPlan`.

    Parameters
    ----------
    judged : callable
        Returns the copies that the control reveals if this share of the people is for the synthesizer.
    train_fraction, copied_share, least_control
        See `plan_control`.
    """
    planned = judged(train_fraction)
    least_share = float("inf")
    best: float | None = None
    recommended: ControlSize | None = None
    # Judging takes long, and the first split that reveals enough is the one to recommend.
    for fraction in (train_fraction, *TRAIN_FRACTIONS):
        size = planned if fraction == train_fraction else judged(fraction)
        if size.n_control < max(least_control, MIN_CONTROL_RECORDS) or size.n_original < MIN_CONTROL_RECORDS:
            continue
        share = 2.0 if size.detectable_share is None else size.detectable_share
        if share < least_share:
            least_share, best, recommended = share, fraction, size
        if share <= copied_share:
            break
    return ControlPlan(planned, best, recommended)
