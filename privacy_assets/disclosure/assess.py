"""Disclosure by synthetic records about the people they were made from, compared with other people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.spelling import SPELLING
from privacy_assets.columns.unknown_values import blind_columns
from privacy_assets.disclosure.criteria import Evidence
from privacy_assets.disclosure.examination import (
    LEVEL,
    SPLIT_LEVEL,
    ExaminedAlone,
    compare_split,
    examine_alone,
    examine_criteria,
    exposure_of,
    find_power,
    is_answered,
)
from privacy_assets.disclosure.exposed import (
    SHARE_OF_LEVEL,
    column_sets,
    exposed_scores,
    share_in_homogeneous_cells,
    smallest_shared_cell,
)
from privacy_assets.disclosure.membership import measure_membership
from privacy_assets.disclosure.people import (
    MOST_PAIRS,
    OfPeople,
    draw_people,
    people_to_examine,
)
from privacy_assets.disclosure.pooled_records import PooledRecords, pool_records
from privacy_assets.disclosure.result import (
    CONFIDENCE,
    DisclosureAssessment,
    difference_of_means,
    difference_of_ratios,
    difference_of_shares,
)
from privacy_assets.disclosure.scores import (
    Attack,
    Workers,
)
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.disclosure.sides import count_shared
from privacy_assets.display.progress_bar import StageProgress, shows_progress
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.preprocess import check_columns, separate_people
from privacy_assets.setting_checks import threads_to_use
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.storage.memory import give_back_memory

FEWEST_PEOPLE: Final = 50


@shows_progress
def assess_disclosure(
    original: pd.DataFrame,
    synthetic: pd.DataFrame,
    control: pd.DataFrame,
    *,
    sensitive: Sequence[str] = (),
    known: Sequence[str] | None = None,
    max_known: int = 3,
    n_permutations: int = 999,
    seed: int = 0,
    sample: int | None = None,
    person: str | None = None,
    synthetic_person: str | None = None,
    quasi_identifiers: Sequence[str] = (),
    invented: Sequence[str] = (),
    published_before: Sequence[pd.DataFrame] = (),
    n_threads: int | None = None,
    progress: Callable[[StageProgress], None] | None = None,
) -> DisclosureAssessment:
    """Test whether synthetic records single out, link, or allow inferences about originals more than controls.

    Parameters
    ----------
    original, synthetic : DataFrame
        Tables with the same columns, direct identifiers removed.
    control : DataFrame
        Records of other people from the same population, which the synthesizer never saw; at least 50 people.
    sensitive : sequence of str
        Columns whose inference is reported. Default: all. The test always covers all columns.
    known : sequence of str, optional
        Columns that an attacker knows, at most 64. Default: all.
    max_known : int
        Columns of the largest sets by which people are singled out and linked and values are inferred, from 1 to 3.
    n_permutations : int
        Random divisions of the people into originals and controls, 999 or more.
    seed : int
        Seed of the divisions and of the sample.
    sample : int, optional
        Number of real people whose scores are computed, drawn at random. Default: all, or 10,000 if there are more than
        2.5 billion pairs of real and synthetic records.
    person : str, optional
        Column of original and control with the person of each row; it is not compared, and the synthetic table does not
        have it. Default: every record is a person.
    synthetic_person : str, optional
        Column of the synthetic table with the synthetic person of each row. It adds the criterion ``nearest_person``,
        and is compared only if the original has it, too.
    quasi_identifiers : sequence of str
        Columns that are also tested without the others, as are columns that depend on each other but on no others.
    invented : sequence of str
        Columns of invented values, such as names by a generator: nobody knows them, if nine in ten are nobody's.
    published_before : sequence of DataFrame
        Synthetic tables of the same originals, under the same split, that were published before, with the same columns.
        The criteria are also asked of all of them together with ``synthetic``.
    n_threads : int, optional
        Threads; the result does not depend on their number. Default: all cores that this process may use.
    progress : callable, optional
        Called at the start of each stage and about twice a second; its exceptions end the assessment.

    Returns
    -------
    DisclosureAssessment

    Raises
    ------
    InvalidTableError
        If the tables cannot be compared, have one column or only equal values, a side (or its sample) has fewer than 50
        people, or the control contains originals.
    InvalidSettingError
        If a setting is out of range, or names columns that the tables do not have.

    Notes
    -----
    Cost: a pass over all records for each set, and a pass over all pairs of examined real and synthetic records.
    Definitions and limits: ``docs/disclosure.md``.
    """
    settings = DisclosureSettings(
        _names(sensitive), _names(known), _names(quasi_identifiers), max_known, n_permutations, seed, sample
    )
    n_used = threads_to_use(n_threads)
    if control is None:
        raise InvalidTableError(
            "There is no control. Expected records of at least 50 people whom the synthesizer has not seen: without "
            "them, leakage cannot be distinguished from chance. Split the records before they are synthesized. Nothing "
            "was assessed."
        )
    frames, people = separate_people(
        {"original": original, "synthetic": synthetic, "control": control}, person, synthetic_person
    )
    columns = check_columns(frames)
    attack_columns = np.array(settings.known_of(columns))
    records = pool_records(frames, people, invented)
    earlier = None
    if published_before:
        whole = _with_published(frames, published_before, records, settings.seed)
        earlier = replace(pool_records(whole, people, invented), synthetic_people=None)
    give_back_memory()
    require_usable(records)
    divisions, others = (np.random.default_rng([settings.seed, stream]) for stream in range(2))
    rows = draw_people(records, people_to_examine(records.n_real, records.n_synthetic, settings.sample), others)
    _require_examined(records, rows)
    attack = Attack(attack_columns, settings.max_known, rows, settings.wanted_of(columns), earlier)
    with Workers(n_used, progress) as workers:
        return _assess(records, attack, settings, synthetic_person, workers, divisions, others)


def _with_published(
    frames: Mapping[str, pd.DataFrame], published: Sequence[pd.DataFrame], records: PooledRecords, seed: int
) -> dict[str, pd.DataFrame]:
    """Append what was published before to the synthetic records.

    Of many, so few are drawn that as many people are examined as without them.
    """
    for each in published:
        check_columns({**frames, "synthetic": each})
    before = pd.concat(published, ignore_index=True)
    n_most = max(MOST_PAIRS // records.n_real - records.n_synthetic, records.n_synthetic)
    drawn = before.sample(min(len(before), n_most), random_state=seed)
    return {**frames, "synthetic": pd.concat([frames["synthetic"], drawn], ignore_index=True)}


def _assess(
    records: PooledRecords,
    attack: Attack,
    settings: DisclosureSettings,
    synthetic_person: str | None,
    workers: Workers,
    divisions: np.random.Generator,
    others: np.random.Generator,
) -> DisclosureAssessment:
    sets = column_sets(records, settings.quasi_identifiers)
    level, n_permutations = LEVEL * SHARE_OF_LEVEL if sets else LEVEL, settings.n_permutations
    examined = examine_criteria(records, attack, n_permutations, workers, divisions, level)
    evidence, of_people = examined.evidence, examined.of_people
    split = compare_split(records, attack, n_permutations, workers, divisions)
    copied, effect = find_power(examined, records, attack, workers, others, level)
    exposure = exposure_of(records, attack, examined, effect, workers, others)
    of_each, rngs = (LEVEL - level) / max(len(sets), 1), (divisions, others)
    alone = [examine_alone(records, attack, own, n_permutations, of_each, workers, rngs) for own in sets]
    rows, n_original = [], of_people.n_original
    # A criterion counts by the columns on which it shows most; together, the false alarms are at most the level.
    least = np.minimum(examined.adjusted * (LEVEL / level), 1.0)
    for j, name in enumerate(attack.criteria(records)):
        least[j] = min(least[j], *(each.adjusted.get(name, 1.0) for each in alone), 1.0)
    closeness = of_people.mean(-evidence["relative_distance"][:, None])[:, 0]
    asked = attack.criteria(records).items()
    for j, ((name, criterion), adjusted) in enumerate(zip(asked, least, strict=True)):
        own = examined.scores[:, j]
        difference = difference_of_shares if criterion.share_of else difference_of_means
        excess = difference(own[:n_original], own[n_original:])
        share = None if (n := copied[j]) is None else n / n_original
        means = float(own[:n_original].mean()), float(own[n_original:].mean())
        said = name, criterion.direction, criterion.weight
        rows.append((*said, *means, *excess, float(examined.p[j]), float(adjusted), share))
    figures = ("original", "control", "excess", "low", "high", "p_value", "adjusted_p_value")
    names = ("criterion", "direction", "weight", *figures)
    criteria = pd.DataFrame(rows, columns=[*names, "detectable_share"]).astype({"detectable_share": float})
    return DisclosureAssessment(
        _overall(criteria, float(split.min()), records, of_people, alone)
        | exposed_scores(exposure, [(each.exposure, each.is_asked) for each in alone])
        | {
            "smallest_shared_cell": smallest_shared_cell(records),
            "share_in_homogeneous_cells": share_in_homogeneous_cells(
                records, settings.quasi_identifiers, settings.sensitive
            ),
        }
        | _inferred(records, evidence, of_people, settings.sensitive or records.columns)
        | measure_membership(closeness, n_original, settings.seed),
        criteria,
        _by_column(records, evidence, of_people, settings.sensitive or records.columns, attack.named),
        pd.DataFrame({"column": list(records.columns), "adjusted_p_value": split}),
        _rare_by_column(records, evidence, of_people),
        {
            ALGORITHM: algorithm_of("disclosure_assessment"),
            "spelling": SPELLING,
            "unknown_values": records.unknown_values,
            **settings.to_json(),
            "columns": list(records.columns),
            "synthetic_person": synthetic_person,
            "n_published_before": 0 if attack.earlier is None else attack.earlier.n_synthetic - records.n_synthetic,
            "precision": records.precision,
            "n_divisions": len(examined.sums),
            "tested_alone": [each.to_json() for each in alone],
            "compared_share": float(evidence["compared_share"]),
            "confidence_level": CONFIDENCE,
            "level": LEVEL,
            "split_level": SPLIT_LEVEL,
            "n_people": {
                "original": records.n_original_people,
                "control": records.n_people - records.n_original_people,
            },
        },
    )


def _overall(
    criteria: pd.DataFrame,
    split_p_value: float,
    records: PooledRecords,
    of_people: OfPeople,
    alone: Sequence[ExaminedAlone],
) -> dict[str, Any]:
    least = float(criteria["adjusted_p_value"].min())
    shares = criteria["detectable_share"].dropna()
    on_all = float(shares.min()) if len(shares) else None
    on_each = [on_all, *(each.detectable_share for each in alone if each.is_asked)]
    known = [own for own in on_each if own is not None]
    share = max(known) if len(known) == len(on_each) else None
    n_original = records.n_original_people
    n_detectable = 0 if share is None else len(shares)
    is_seen = is_answered(n_detectable, split_p_value) and not blind_columns(records.unknown_values)
    scores: dict[str, Any] = {
        "leakage_detected": True if least <= LEVEL else (False if is_seen else None),
        "adjusted_p_value": least,
        "detectable_share": share,
        "detectable_people": None if share is None else int(np.ceil(share * n_original - 1e-9)),
    }
    for row in criteria.to_dict("records"):
        name = row["criterion"]
        scores[f"{name}_excess"] = row["excess"]
        scores[f"{name}_interval"] = [row["low"], row["high"]]
        scores[f"{name}_adjusted_p_value"] = row["adjusted_p_value"]
        scores[f"{name}_detectable_share"] = None if np.isnan(row["detectable_share"]) else row["detectable_share"]
    return scores | {
        "split_p_value": split_p_value,
        "n_original": n_original,
        "n_control": records.n_people - n_original,
        "n_synthetic": records.n_synthetic,
        "n_examined": of_people.n,
    }


def _inferred(records: PooledRecords, evidence: Evidence, of_people: OfPeople, names: Sequence[str]) -> dict[str, Any]:
    """Return how much more often these columns of originals are guessed from the nearest record."""
    columns = [records.columns.index(name) for name in names]
    right = of_people.sum(evidence["guessed"][columns].mean(axis=0))
    excess = difference_of_ratios(right, of_people.n_records, of_people.n_original)
    return {"inference_excess": excess.value, "inference_interval": [excess.low, excess.high]}


def _by_column(
    records: PooledRecords, evidence: Evidence, of_people: OfPeople, names: Sequence[str], named: Sequence[int]
) -> pd.DataFrame:
    """Return how often claims and guesses of each column are right, and named ones agree, for both sides."""
    first, rows = of_people.n_original, []
    for name in names:
        j = records.columns.index(name)
        claims, right, guessed = (
            of_people.sum(own[j]) for own in (evidence["n_claims"], evidence["n_right"], evidence["guessed"])
        )
        attacks = [("claims", right, claims), ("nearest", guessed, of_people.n_records)]
        if j in named:
            agreed = of_people.sum(evidence["agreed"][named.index(j)])
            attacks.append(("agreement", agreed, of_people.n_records))
        for attacker, correct, n in attacks:
            sides = [(correct[side].sum(), n[side].sum()) for side in (slice(first), slice(first, None))]
            shares = [float(a / b) if b else np.nan for a, b in sides]
            excess = difference_of_ratios(correct, n, first)
            rows.append((name, attacker, int(sides[0][1]), int(sides[1][1]), *shares, *excess))
    columns = ["column", "attack", "n_original", "n_control", "original", "control", "excess", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _rare_by_column(records: PooledRecords, evidence: Evidence, of_people: OfPeople) -> pd.DataFrame:
    """Count the people with a rare value that some synthetic record has, by column."""
    has_one = np.array([of_people.sum(own) > 0 for own in evidence["is_rare"]])
    original, control = (half.sum(axis=1) for half in np.split(has_one, [of_people.n_original], axis=1))
    return pd.DataFrame({"column": list(records.columns), "rare_original": original, "rare_control": control})


def _names(names: Any) -> Any:
    """Return column names as a tuple; anything else is returned unchanged and refused later."""
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    return tuple(names) if is_list or isinstance(names, pd.Index) else names


def _require_examined(records: PooledRecords, rows: NDArray[np.int64]) -> None:
    """Refuse a sample with too few people from one side."""
    people = np.unique(records.people[rows])
    n_original = int((people < records.n_original_people).sum())
    sides = {"original": n_original, "control": len(people) - n_original}
    if min(sides.values()) < FEWEST_PEOPLE:
        raise InvalidTableError(
            f"Of the {len(people):,} people who were drawn at random to be examined, too few are from one side: "
            f"{sides}. Expected at least {FEWEST_PEOPLE} from each. Draw more (`sample`), or keep more people on that "
            "side. Nothing was assessed."
        )


def require_usable(records: PooledRecords) -> None:
    """Refuse tables that cannot be tested."""
    if len(records.columns) < 2:
        raise InvalidTableError(
            f"The tables have only the column {records.columns[0]!r} to compare. Expected at least two columns, to "
            "link and to infer. Nothing was assessed."
        )
    n_original = records.n_original_people
    sides: Mapping[str, int] = {"original": n_original, "control": records.n_people - n_original}
    small = {name: n for name, n in sides.items() if n < FEWEST_PEOPLE}
    if small:
        raise InvalidTableError(
            f"There are too few people: {small}. Expected at least {FEWEST_PEOPLE} on each side, because otherwise "
            "most leaks go unnoticed. Keep more records as control. Nothing was assessed."
        )
    if (records.exact.real == records.exact.real[:, :1]).all():
        raise InvalidTableError(
            f"All {records.n_real} originals and controls are equal in all columns, so nobody can be distinguished. "
            "Expected columns with several values. Nothing was assessed."
        )
    n_shared, is_too_many = count_shared(records)
    if is_too_many:
        raise InvalidTableError(
            f"{n_shared} of {sides['control']} controls equal an original in all columns, far more than by chance. "
            "Expected people whom the synthesizer has not seen; these controls seem to be originals. Remove them from "
            "one side. Nothing was assessed."
        )
