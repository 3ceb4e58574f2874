"""What a policy will probably decide on a table, said before there is a record to decide on."""

from math import ceil, floor, log2, log10
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from privacy_assets.contract.contract import TableContract
from privacy_assets.disclosure.planned_control import Rehearsal, people_needed, reach_of
from privacy_assets.display.numbers import number, percent
from privacy_assets.mpucc.control_size import ControlSize, people_in_original
from privacy_assets.mpucc.preprocess import PreprocessedTables
from privacy_assets.mpucc.strangers import forecast_strangers
from privacy_assets.pipeline.measure import Asked, prepared_people
from privacy_assets.release.metrics import LEAKAGE_DETECTED
from privacy_assets.release.policy import INSTEAD, Policy, is_decided_instead
from privacy_assets.storage.table import Table, take_rows

MOST_FORECAST: Final = 20_000
"""Number of people of whom scores are forecast; those of larger tables are continued."""
FEWEST_FORECAST: Final = 100
FLAGGED: Final = "`smooth_cart` leaked in 28 of 60 trials with 3,000 originals"
"""How far records of the default synthesizer are from copying nobody (``benchmarks/admitted.py --smooth``)."""
LARGEST_SHARE: Final = 0.05
"""Detectable share up to which a policy is advised to accept it."""


class Planned(NamedTuple):
    """People of a table, their split, and what a rehearsal of the leakage test says of it."""

    n_people: int
    unit: str
    size: ControlSize
    rehearsal: Rehearsal | None


class Strangers(NamedTuple):
    """What people never seen would score by set of columns, all columns first.

    ``found`` is what the assessment can show with the control of the split, ``true`` with as many people on both sides.
    """

    found: list[float]
    true: list[float]


class Forecast(NamedTuple):
    """The expected decision in a sentence, whether it is a yes for records that copy nobody, and for which split."""

    sentence: str
    is_yes: bool
    train_fraction: float | None = None


def scores_of_strangers_in(release: Asked, table: Table, fraction: float) -> list[float] | None:
    """Forecast the scores of people never seen with a split; None if no limit needs them, or people are too few.

    The people are drawn regardless of the seed of the split, and of everything that is made of it later.
    """
    person, limit = release.contract.person, release.policy.limit_on("privacy_risk_score")
    if limit is None or not limit.blocks:
        return None
    owner, names = (np.arange(len(table)), table) if person is None else pd.factorize(table[person])
    n_people = len(names)
    if n_people < FEWEST_FORECAST:
        return None
    place = np.random.default_rng(0).permutation(n_people)[owner]

    def part(n: int) -> PreprocessedTables:
        n_original = people_in_original(n, fraction)
        sides = (place < n_original, (place >= n_original) & (place < n))
        return prepared_people(release, *(take_rows(table, side, table.columns) for side in sides))

    n = min(n_people, MOST_FORECAST)
    parts = [part(n // by) for by in ((1, 2, 4) if n < n_people else (1,))]
    return forecast_strangers(parts, release.assessment, log2(n_people / n))


def forecast_synthetic(
    policy: Policy, contract: TableContract, planned: Planned, strangers: Strangers | None
) -> Forecast:
    """Say what the policy will probably decide on synthetic records that copy nobody, and what is missing."""
    said, missing = [], []
    limit = policy.limit_on("privacy_risk_score")
    instead = next(filter(is_decided_instead, policy.limits_of("synthetic")), None)
    if strangers is not None and limit is not None and limit.blocks:
        failed = [found for found, true in zip(*strangers, strict=True) if not limit.holds_for(true)]
        columns = f"{len(contract.released_columns)} columns (limit {number(limit.value)})"
        is_shown = not any(map(limit.holds_for, failed))
        scores = strangers.found if is_shown else strangers.true
        score = f"{number(scores[0])} on these {columns}"
        if failed and limit.holds_for(scores[0]):
            score += f", and {number(max(scores[1:]))} on a group of them that depends on no others"
        decides = "the score decides"
        if failed and limit.beyond is None:
            decides = "no records can be expected to meet it"
            missing.append(f"`beyond: {INSTEAD}`")
        elif failed and not is_shown:
            decides = f"but a control of {planned.size.n_control:,} shows only {number(min(failed))}: the score decides"
            missing.append("a smaller `train_fraction`")
        elif failed and instead is not None:
            decides = f"the exposed share decides (limit {percent(instead.value)})"
            missing += _for_exposed_share(planned, instead.value)
        comma = "" if decides.startswith("but") else "so "
        said.append(f"people never seen would score about {score}, {comma}{decides}")
    of_copies, more = _for_leakage(policy, planned)
    said, missing = said + of_copies, more or missing
    start = f"Under {policy.use_case or 'this policy'}: {'; '.join(said) or 'no figure can be forecast'}"
    if not missing:
        return Forecast(f"{start}. Expect a yes from records that copy nobody; {FLAGGED}.", is_yes=True)
    k = _classes(policy, contract, planned.n_people)
    missing += [] if k is None else [f"the anonymized side (k = {k})"]
    return Forecast(f"{start}; you need {', or '.join(missing)}.", is_yes=False)


def _for_leakage(policy: Policy, planned: Planned) -> tuple[list[str], list[str]]:
    """Say which copies the test will see, and what is missing for those that the policy requires."""
    size, unit, share = planned.size, planned.unit, planned.size.detectable_share
    leakage, required = policy.limit_on(LEAKAGE_DETECTED), policy.required.detectable_share
    if leakage is None or not leakage.blocks:
        return [], []
    if share is not None and (required is None or share <= required):
        limited = "" if required is None else f", limit {percent(required)}"
        split = percent(size.n_original / planned.n_people)
        seen = f"copies of {size.detectable_copies:,} {unit} ({percent(share)}{limited})"
        return [f"with a split of {split} the test sees {seen}"], []
    asked = required or 1.0
    about = "not even of all" if share is None else f"about {size.detectable_copies:,} {unit}, {percent(share)}"
    needed = None if planned.rehearsal is None or share is None else people_needed(planned.rehearsal, asked)
    missing = [f"{_many(needed)} {unit}"]
    if share is not None and share <= LARGEST_SHARE:
        missing.append(f"`required.detectable_share: {ceil(share * 200) / 200:g}`")
    return [f"copies of {percent(asked)} cannot be seen with {size.n_original:,} originals ({about})"], missing


def _for_exposed_share(planned: Planned, limit: float) -> list[str]:
    """Return what is missing for the exposed share of records that copy nobody to meet its limit in most draws."""
    rehearsal, size = planned.rehearsal, planned.size
    reach = None if rehearsal is None else reach_of(rehearsal, size.n_original, size.n_control)
    if reach is not None and reach <= limit / 2:
        return []
    needed = None if reach is None else planned.n_people * (2 * reach / limit) ** 2
    return [f"{_many(needed)} {planned.unit} for an exposed share below its limit"]


def forecast_anonymized(
    policy: Policy, contract: TableContract, n_people: int, unit: str, k_set: int | None
) -> Forecast:
    """Say what the policy will probably decide on anonymized records, for which no control is needed."""
    start = f"Under {policy.use_case or 'this policy'}: {n_people:,} {unit}"
    k = _classes(policy, contract, n_people)
    if k is None:
        least = f"{start} cannot be divided into classes of {policy.people_per_class}; you need at least twice as many."
        return Forecast(least, is_yes=False)
    if k_set is not None and k_set < k:
        return Forecast(f"{start} would be in classes of {k_set}; you need `k: {k}`.", is_yes=False)
    sensitive = contract.columns_with_role("sensitive")
    unless = " unless too many classes share one sensitive value" if sensitive else ""
    n_columns = len(contract.columns_with_role("quasi_identifier"))
    said = f"{start} are in classes of at least {max(k, k_set or k)} on {n_columns} columns. Expect a yes{unless}."
    return Forecast(said, is_yes=True)


def _classes(policy: Policy, contract: TableContract, n_people: int) -> int | None:
    """Return the size of classes with which the anonymized side is open; None if it is not."""
    k = policy.people_per_class
    is_open = policy.protects("anonymized") and bool(contract.columns_with_role("quasi_identifier"))
    return k if is_open and n_people >= 2 * k else None


def _many(people: float | None) -> str:
    """Return an estimated number of people with two significant digits, rounded up."""
    if people is None:
        return "many more"
    step = 10.0 ** max(floor(log10(people)) - 1, 0)
    return f"at least {int(ceil(people / step) * step):,}"
