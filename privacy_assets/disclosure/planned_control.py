"""Forecast of what the disclosure test will detect with a control, before there is a synthetic record.

The assessment is rehearsed: some of the people replace the synthetic records of a synthesizer that copies nobody, and
copies of the others are planted among them. The effect of a copy on the scores, and the variation of the scores, give
the smallest number of copied people that is detected with any split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, comb
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.disclosure.criteria import number_of_closest, weights_of
from privacy_assets.disclosure.examination import LEVEL, attack_on
from privacy_assets.disclosure.exposed import SHARE_OF_LEVEL, column_sets, combine_criteria, reach_of_exposure
from privacy_assets.disclosure.people import (
    OfPeople,
    PlantedCopies,
    Scored,
    draw_people,
    effect_of_copies,
    people_to_examine,
)
from privacy_assets.disclosure.permutation_test import (
    as_integers,
    joined,
    needed_deviations,
    people_to_detect,
    permuted_sums,
    raise_until_detected,
)
from privacy_assets.disclosure.pooled_records import PooledRecords, pool_records
from privacy_assets.disclosure.scores import Attack, Workers, gather_evidence, score_records
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.disclosure.sides import FEWEST_PEOPLE
from privacy_assets.mpucc.control_size import ControlSize, people_in_original
from privacy_assets.mpucc.preprocess import check_columns, separate_people
from privacy_assets.setting_checks import threads_to_use
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import Table, take_rows

MOST_REHEARSED: Final = 10_000
"""Number of people of a larger table who take part."""
MOST_SCORED: Final = 3_000
MOST_SETS: Final = 3_000
N_PERMUTATIONS: Final = 499
MOST_TIMES, GROWTH = 10, 1.25


class Rehearsal(NamedTuple):
    """Scores of people for records that copy nobody, of shape (n_scored, n_scores), and the effect of copies.

    ``weights`` are of shape (n_criteria,); the last criterion can have several scores. ``exposure_deviation`` is the
    standard deviation of people in units of a copied person (`combine_criteria`), None if no copy adds anything.
    ``alone`` are rehearsals of the columns that are tested without the others.
    """

    scores: NDArray[np.float64]
    weights: NDArray[np.float64]
    effect: PlantedCopies
    exposure_deviation: float | None
    n_people: int
    records_per_person: float
    settings: DisclosureSettings
    alone: tuple[Rehearsal, ...] = ()


def rehearse(
    table: Table,
    settings: DisclosureSettings,
    *,
    columns: Sequence[str] | None = None,
    person: str | None = None,
    has_synthetic_people: bool = False,
    n_threads: int | None = None,
) -> Rehearsal | None:
    """Rehearse the assessment of a table of real records; None if there are too few people for any control.

    The table has the ``columns`` that will be assessed, by default all, and ``person``; the synthetic table may have a
    key of people, too.
    Sets are smaller than ``max_known`` if there are more than `MOST_SETS` of them. The result does not depend on the
    number of threads.
    """
    rng = np.random.default_rng([settings.seed, 2])
    owner, n_people = _owners(table, person)
    if n_people < 2 * FEWEST_PEOPLE:
        return None
    order = rng.permutation(n_people)[:MOST_REHEARSED].copy()
    side = np.full(n_people, -1, np.int8)
    for number, own in enumerate(np.array_split(order, 4)):
        side[own] = number
    # Only the rows of those who take part are read.
    n_rows, of_row = len(table), side[owner]
    takes_part = of_row >= 0
    table = take_rows(table, takes_part, table.columns if columns is None else columns)
    owner, of_row = owner[takes_part], of_row[takes_part]
    del side, takes_part
    give_back_memory()
    # If those who are taken for synthetic people have one row each, their key says nothing.
    has_synthetic_people &= bool(pd.Series(owner[of_row >= 2]).duplicated().any())
    drop = [] if person is None or has_synthetic_people else [person]
    # The labels of the real records do not matter, so half of them count as originals.
    parts = {"original": of_row == 0, "synthetic": of_row >= 2, "control": of_row == 1}

    def pooled(parts: Mapping[str, NDArray[np.bool_]]) -> PooledRecords:
        tables = {name: table[is_own].reset_index(drop=True) for name, is_own in parts.items()}
        tables["synthetic"] = tables["synthetic"].drop(columns=drop)
        frames, people = separate_people(tables, person, person if has_synthetic_people else None)
        check_columns(frames)
        return pool_records(frames, people)

    records = pooled(parts)
    columns = records.columns
    known = np.array(settings.known_of(columns))
    rows = draw_people(records, MOST_SCORED, rng)
    attack = Attack(known, settings.max_known, rows, settings.wanted_of(columns))
    with Workers(threads_to_use(n_threads), None) as workers:

        def rehearsed(records: PooledRecords, attack: Attack, alone: tuple[Rehearsal, ...] = ()) -> Rehearsal:
            attack = replace(attack, max_known=_size_of_sets(len(attack.known), attack.max_known))
            evidence = gather_evidence(records, attack, workers)
            of_people = OfPeople(records, rows)
            criteria = attack.criteria(records)
            asked = criteria.values()
            scores = of_people.mean(score_records(asked, evidence, evidence))
            effect = effect_of_copies(records, attack, Scored(of_people, evidence, scores), workers, rng)
            combined = combine_criteria(criteria, scores, effect.added)
            deviation = None if combined is None else float(combined[0].std())
            n_each = n_rows / n_people
            return Rehearsal(scores, weights_of(asked), effect, deviation, n_people, n_each, settings, alone)

        # The assessment finds them among all people, of whom fewer depend visibly on each other here.
        everybody = pooled(parts | {"original": of_row != 1})
        sets = [own.places for own in column_sets(everybody, ()) if own.is_asked]
        alone = (rehearsed(*attack_on(attack, records, own)) for own in sets)
        return rehearsed(records, attack, tuple(alone))


def judge_by(
    rehearsal: Rehearsal, n_original: int, n_control: int, n_synthetic: int | None = None, most_share: float = 1.0
) -> ControlSize:
    """Return how many copied people the test will detect with these numbers of originals and controls.

    By default there are as many synthetic records as records of originals; they affect only the number of examined
    people. If some columns are tested without the others, copies are seen only if they are seen there, too. Larger
    shares of the originals than ``most_share`` may count as not detected, which takes less time.
    """
    level = LEVEL * (SHARE_OF_LEVEL if rehearsal.alone else 1)
    of_each = (LEVEL - level) / max(len(rehearsal.alone), 1)
    asked = [(rehearsal, level), *((own, of_each) for own in rehearsal.alone)]
    detected = 0
    for each, own in asked:
        found = _least_detected(each, n_original, n_control, n_synthetic, own, most_share)
        if found is None:
            return ControlSize(n_original, n_control, None)
        detected = max(detected, found)
    return ControlSize(n_original, n_control, detected)


def _least_detected(
    rehearsal: Rehearsal, n_original: int, n_control: int, n_synthetic: int | None, level: float, most_share: float
) -> int | None:
    if min(n_original, n_control) < FEWEST_PEOPLE:
        return None
    n_people, n_each = n_original + n_control, rehearsal.records_per_person
    made = n_synthetic or round(n_original * n_each)
    sample = people_to_examine(round(n_people * n_each), made, rehearsal.settings.sample)
    n_examined = n_people if sample is None else min(sample, n_people)
    share = n_original / n_people
    n_examined_original = people_in_original(n_examined, share)
    if min(n_examined_original, n_examined - n_examined_original) < FEWEST_PEOPLE:
        return None
    rng = np.random.default_rng([rehearsal.settings.seed, 3])
    n_drawn = min(n_examined, MOST_SCORED)
    drawn = rehearsal.scores[rng.integers(0, len(rehearsal.scores), n_drawn)]
    whole, units = as_integers(drawn)
    n_drawn_original = people_in_original(n_drawn, share)
    weights = rehearsal.weights
    sums = joined(permuted_sums(whole, n_drawn_original, N_PERMUTATIONS, rng), len(weights))
    whole, units = whole[:, : len(weights)], units[: len(weights)]
    needed = needed_deviations(sums, whole, weights, n_drawn_original, level)
    variances = rehearsal.scores[:, : len(weights)].var(axis=0)
    copied = people_to_detect(needed, variances, rehearsal.effect.added, n_examined, n_examined_original)
    # The spread of sums grows with the square root of the number of people.
    deviations = (sums - sums.mean(axis=0)) * units * np.sqrt(n_examined / n_drawn)
    n_records = round(n_examined * n_each)
    effect = replace(rehearsal.effect, n_records=n_records, n_closest=number_of_closest(n_records, share))
    most = min(ceil(most_share * n_examined_original), n_examined_original)
    copied = raise_until_detected(
        copied, deviations, weights, effect, n_examined, n_examined_original, level, rng, most
    )
    least = min((m for m in copied if m is not None), default=None)
    if least is None:
        return None
    return int(np.ceil(least / n_examined_original * n_original - 1e-9))


def reach_of(rehearsal: Rehearsal, n_original: int, n_control: int) -> float | None:
    """Return the ``exposed_share`` to expect of records that copy nobody; None if it cannot be measured."""
    deviations = [each.exposure_deviation for each in (rehearsal, *rehearsal.alone)]
    known = [each for each in deviations if each is not None]
    return reach_of_exposure(max(known), n_original, n_control) if len(known) == len(deviations) else None


def people_needed(rehearsal: Rehearsal, copied_share: float) -> int | None:
    """Return how many people at least reveal copies of a share of the originals if half of them are the control.

    As if people were no more alike in a larger table, where copies of them show less. None if `MOST_TIMES` as many
    people as there are would not.
    """
    n_people = float(rehearsal.n_people)
    while n_people <= MOST_TIMES * rehearsal.n_people:
        n_original = round(n_people / 2)
        share = judge_by(rehearsal, n_original, n_original, most_share=copied_share).detectable_share
        if share is not None and share <= copied_share:
            return round(n_people)
        n_people *= GROWTH
    return None


def _owners(table: Table, person: str | None) -> tuple[NDArray[np.int64], int]:
    if person is None:
        return np.arange(len(table)), len(table)
    owner, names = pd.factorize(table[person], use_na_sentinel=False)
    return owner.astype(np.int64), len(names)


def _size_of_sets(n_known: int, max_known: int) -> int:
    size = max_known
    while size > 1 and sum(comb(n_known, n) for n in range(1, size + 1)) > MOST_SETS:
        size -= 1
    return size
