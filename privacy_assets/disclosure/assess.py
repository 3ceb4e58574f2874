"""Disclosure by synthetic records about the people they were made from, compared with other people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from privacy_assets.columns.spelling import SPELLING
from privacy_assets.contract.related import RelatedTables, refuse_with_related
from privacy_assets.disclosure.divided_evidence import placed_by
from privacy_assets.disclosure.examination import (
    LEVEL,
    SPLIT_LEVEL,
    compare_split,
    examine_alone,
    examine_criteria,
    exposure_of,
    find_power,
)
from privacy_assets.disclosure.exposed import (
    SHARE_OF_LEVEL,
    column_sets,
    exposed_scores,
    share_in_homogeneous_cells,
    smallest_shared_cell,
)
from privacy_assets.disclosure.findings import by_column, criteria_frame, inferred, overall, rare_by_column
from privacy_assets.disclosure.membership import measure_membership
from privacy_assets.disclosure.people import (
    MOST_PAIRS,
    draw_people,
    people_to_examine,
)
from privacy_assets.disclosure.pooled_records import PooledRecords, pool_records
from privacy_assets.disclosure.related import assess_related
from privacy_assets.disclosure.result import CONFIDENCE, DisclosureAssessment
from privacy_assets.disclosure.scores import (
    Attack,
    Workers,
)
from privacy_assets.disclosure.settings import KNOWN_OF_RELATED, LARGEST_SET, DisclosureSettings
from privacy_assets.disclosure.sides import require_examined, require_usable
from privacy_assets.display.progress_bar import StageProgress, shows_progress
from privacy_assets.engine.protocol import Engine
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.preprocess import check_columns, separate_people
from privacy_assets.setting_checks import threads_to_use
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import Table as StoredOrFrame
from privacy_assets.storage.table import frame_of

Table = TypeVar("Table", pd.DataFrame, RelatedTables)


@shows_progress
def assess_disclosure(
    original: Table,
    synthetic: Table,
    control: Table,
    *,
    sensitive: Sequence[str] = (),
    known: Sequence[str] | None = None,
    max_known: int | None = None,
    n_permutations: int = 999,
    seed: int = 0,
    sample: int | None = None,
    person: str | None = None,
    synthetic_person: str | None = None,
    quasi_identifiers: Sequence[str] = (),
    invented: Sequence[str] = (),
    published_before: Sequence[pd.DataFrame] = (),
    n_threads: int | None = None,
    engine: Engine | None = None,
    progress: Callable[[StageProgress], None] | None = None,
) -> DisclosureAssessment:
    """Test whether synthetic records single out, link, or allow inferences about originals more than controls.

    Parameters
    ----------
    original, synthetic : DataFrame or RelatedTables
        Tables with the same columns, direct identifiers removed. Of related tables, all `related_views` are tested at
        once, by person; columns are then named with their view.
    control : DataFrame or RelatedTables
        Records of other people from the same population, which the synthesizer never saw; at least 50 people.
    sensitive : sequence of str
        Columns whose inference is reported. Default: all. The test always covers all columns.
    known : sequence of str, optional
        Columns that an attacker knows, at most 64. Default: all.
    max_known : int
        Columns of the largest sets by which people are singled out and linked and values are inferred, from 1 to 3.
        Default: 3, or 2 for related tables.
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
    engine : Engine, optional
        If the tables have more rows than one of its tasks, it compares the records; the result is the same. Default:
        everything in this process.
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
    is_related = isinstance(original, RelatedTables)
    size = (KNOWN_OF_RELATED if is_related else LARGEST_SET) if max_known is None else max_known
    settings = DisclosureSettings(
        _names(sensitive), _names(known), _names(quasi_identifiers), size, n_permutations, seed, sample
    )
    n_used = threads_to_use(n_threads)
    if control is None:
        raise InvalidTableError(
            "There is no control. Expected records of at least 50 people whom the synthesizer has not seen: without "
            "them, leakage cannot be distinguished from chance. Split the records before they are synthesized. Nothing "
            "was assessed."
        )
    if isinstance(original, RelatedTables):
        refuse_with_related(
            sensitive=sensitive or None,
            quasi_identifiers=quasi_identifiers or None,
            known=known,
            invented=invented or None,
            published_before=published_before or None,
            person=person,
            synthetic_person=synthetic_person,
        )
        with Workers(n_used, progress) as workers:
            tables = {"original": original, "synthetic": synthetic, "control": control}
            return assess_related(tables, settings, workers)
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
    drawn = np.unique(records.people[rows])
    require_examined(int((drawn < records.n_original_people).sum()), len(drawn))
    attack = Attack(attack_columns, settings.max_known, rows, settings.wanted_of(columns), earlier)
    with Workers(n_used, progress) as workers, placed_by(records, engine) as records:
        return _assess(records, attack, settings, synthetic_person, workers, divisions, others)


def _with_published(
    frames: Mapping[str, StoredOrFrame], published: Sequence[pd.DataFrame], records: PooledRecords, seed: int
) -> dict[str, StoredOrFrame]:
    """Append what was published before to the synthetic records.

    Of many, so few are drawn that as many people are examined as without them.
    """
    for each in published:
        check_columns({**frames, "synthetic": each})
    before = pd.concat(published, ignore_index=True)
    n_most = max(MOST_PAIRS // records.n_real - records.n_synthetic, records.n_synthetic)
    drawn = before.sample(min(len(before), n_most), random_state=seed)
    return {**frames, "synthetic": pd.concat([frame_of(frames["synthetic"]), drawn], ignore_index=True)}


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
    n_original = of_people.n_original
    # A criterion counts by the columns on which it shows most; together, the false alarms are at most the level.
    least = np.minimum(examined.adjusted * (LEVEL / level), 1.0)
    for j, name in enumerate(attack.criteria(records)):
        least[j] = min(least[j], *(each.adjusted.get(name, 1.0) for each in alone), 1.0)
    closeness = of_people.mean(-evidence["relative_distance"][:, None])[:, 0]
    copies = examined.p, least, copied
    criteria = criteria_frame(attack.criteria(records), examined.scores, n_original, *copies)
    counts = {
        "n_original": records.n_original_people,
        "n_control": records.n_people - records.n_original_people,
        "n_synthetic": records.n_synthetic,
        "n_examined": of_people.n,
    }
    return DisclosureAssessment(
        overall(criteria, float(split.min()), records.unknown_values, counts, alone)
        | exposed_scores(exposure, [(each.exposure, each.is_asked) for each in alone])
        | {
            "smallest_shared_cell": smallest_shared_cell(records),
            "share_in_homogeneous_cells": share_in_homogeneous_cells(
                records, settings.quasi_identifiers, settings.sensitive
            ),
        }
        | inferred(records, evidence, of_people, settings.sensitive or records.columns)
        | measure_membership(closeness, n_original, settings.seed),
        criteria,
        by_column(records, evidence, of_people, settings.sensitive or records.columns, attack.named),
        pd.DataFrame({"column": list(records.columns), "adjusted_p_value": split}),
        rare_by_column(records, evidence, of_people),
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


def _names(names: Any) -> Any:
    """Return column names as a tuple; anything else is returned unchanged and refused later."""
    is_list = isinstance(names, Sequence) and not isinstance(names, str)
    return tuple(names) if is_list or isinstance(names, pd.Index) else names
