"""Disclosure by synthetic people and their rows: one test of all views of related tables.

In each view the records are scored as those of one table, and the scores averaged by person; who has no records in a
view has the mean of the others. The scores of all views and criteria stand side by side, and people are divided again
at random, so that one adjusted p value holds for all. It is exact, because no score uses who is an original.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.spelling import SPELLING, spelled_keys
from privacy_assets.contract.related import PEOPLE, RelatedTables
from privacy_assets.contract.views import related_views
from privacy_assets.disclosure.criteria import Criterion, Evidence, weights_of
from privacy_assets.disclosure.examination import FEW_MORE, LEVEL, SPLIT_LEVEL
from privacy_assets.disclosure.exposed import exposed_scores, measure_exposure, worst_exposure
from privacy_assets.disclosure.findings import by_column, criteria_frame, overall, rare_by_column
from privacy_assets.disclosure.people import (
    OfPeople,
    PlantedCopies,
    Scored,
    draw_copied,
    effect_of_copies,
    most_planted,
    people_to_examine,
    people_within,
)
from privacy_assets.disclosure.permutation_test import (
    adjusted_p_values,
    as_integers,
    detectable_people,
    p_values,
    sums_to_decide,
)
from privacy_assets.disclosure.pooled_records import PooledRecords, pool_records
from privacy_assets.disclosure.result import CONFIDENCE, DisclosureAssessment
from privacy_assets.disclosure.scores import Attack, Workers, gather_evidence, score_all
from privacy_assets.disclosure.settings import MOST_KNOWN, DisclosureSettings
from privacy_assets.disclosure.sides import (
    FEWEST_PEOPLE,
    Compared,
    compare_tables,
    require_examined,
    require_strangers,
    require_usable,
)
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.preprocess import check_columns
from privacy_assets.storage.algorithms import ALGORITHM, algorithm_of


@dataclass(frozen=True, eq=False)
class View:
    """A view whose records are scored.

    ``places`` are those of the people of ``of_people`` among all examined people, and ``scores`` are of shape
    (n_examined, n_criteria), also of those who have no records in the view.
    """

    name: str
    records: PooledRecords
    attack: Attack
    of_people: OfPeople
    places: NDArray[np.int64]
    evidence: Evidence
    scores: NDArray[np.float64]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are compared."""
        return self.records.columns

    @property
    def compared(self) -> Compared:
        """The records, for the comparison of originals and controls."""
        owner = self.places[self.of_people.owner]
        return Compared(self.records.binned.real.take(self.attack.rows), self.records.n_binned, owner)

    @property
    def asked(self) -> Mapping[str, Criterion]:
        """The criteria."""
        return self.attack.criteria(self.records)

    def planted(self, copied: NDArray[np.int64], workers: Workers, rng: np.random.Generator) -> PlantedCopies | None:
        """Plant copies of examined people, given by their places; None if none of them has records in the view."""
        scored = Scored(self.of_people, self.evidence, self.scores[self.places])
        own = np.flatnonzero(np.isin(self.places, copied))
        return effect_of_copies(self.records, self.attack, scored, workers, rng, own) if len(own) else None


class InView(NamedTuple):
    """Planted copies in a view, the columns of its criteria, and the places of the copied people with records in it."""

    columns: slice
    copies: PlantedCopies | None
    members: NDArray[np.int64]


class PlantedPeople:
    """The effect of copies of people, with all their records in all views; see `PlantedCopies`."""

    def __init__(self, views: Sequence[View], workers: Workers, rng: np.random.Generator) -> None:
        order = rng.permutation(len(views[0].scores))
        most = len(order)
        n_records = np.zeros((len(views), len(order)), np.int64)
        for own, view in zip(n_records, views, strict=True):
            own[view.places] = view.of_people.n_records
            most = min(most, people_within(own[order], most_planted(view.records)))
        copied = np.sort(order[:most])
        self.views = [
            InView(columns, view.planted(copied, workers, rng), np.flatnonzero(own[copied]))
            for columns, view, own in zip(columns_of(views), views, n_records, strict=True)
        ]
        self.added = np.zeros((len(copied), self.views[-1].columns.stop))
        for columns, copies, members in self.views:
            if copies is not None:
                self.added[members, columns] = copies.added

    def draw(self, m: int, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what copies of m people add to their scores, and the remaining share of each score for all others."""
        drawn = draw_copied(len(self.added), m, rng)
        d, left = self.added[drawn], np.ones(self.added.shape[1])
        for columns, copies, members in self.views:
            if copies is not None:
                has_records = np.isin(drawn, members)
                of_view = copies.of_drawn(np.searchsorted(members, drawn[has_records]))
                d[has_records, columns], left[columns] = of_view
        return d, left


def columns_of(views: Sequence[View]) -> list[slice]:
    """Return the columns of each view's criteria among those of all views."""
    ends = np.cumsum([len(view.asked) for view in views]).tolist()
    return [slice(end - len(view.asked), end) for end, view in zip(ends, views, strict=True)]


def assess_related(
    tables: Mapping[str, RelatedTables], settings: DisclosureSettings, workers: Workers
) -> DisclosureAssessment:
    """Test all views of original, synthetic and control tables at once; see `assess_disclosure`."""
    _check_tables(tables)
    divisions, others = (np.random.default_rng([settings.seed, stream]) for stream in range(2))
    n_original, n_synthetic = len(tables["original"].people), len(tables["synthetic"].people)
    n_real = n_original + len(tables["control"].people)
    by_side = {side: related_views(own) for side, own in tables.items()}
    examined = _examined(by_side, n_original, n_real, settings.sample, others)
    is_original = examined < n_original
    n_own, n_divisions = int(is_original.sum()), settings.n_permutations
    views, left_out = score_views(tables, by_side, examined, settings, workers)
    asked: dict[Any, Criterion] = {(view.name, name): own for view in views for name, own in view.asked.items()}
    scores, weights = np.hstack([view.scores for view in views]), weights_of(asked.values())
    whole, units = as_integers(scores)
    report = workers.counter("permutations", n_divisions)
    sums = sums_to_decide(whole, n_own, n_divisions, weights, LEVEL, divisions, report)
    p = p_values(sums)
    adjusted = adjusted_p_values(p * weights)
    report = workers.counter("comparison of originals and controls", n_divisions)
    split = compare_tables([view.compared for view in views], is_original, n_divisions, divisions, report)
    effect = PlantedPeople(views, workers, others)
    copied = detectable_people(sums[1:], whole, units, weights, effect, n_own, LEVEL, others)
    exposure = [measure_exposure(asked, scores, effect.added, n_own)]
    if n_synthetic > FEW_MORE * n_original:
        # Publishing more people beside copies does not make the copies fewer.
        drawn = tables["synthetic"].take(np.sort(others.choice(n_synthetic, n_original, replace=False)))
        fewer = {**tables, "synthetic": drawn}, {**by_side, "synthetic": related_views(drawn)}
        of_fewer, _ = score_views(*fewer, examined, settings, workers)
        added = PlantedPeople(of_fewer, workers, others).added
        exposure.append(measure_exposure(asked, np.hstack([view.scores for view in of_fewer]), added, n_own))
    frames = []
    for view, own in zip(views, columns_of(views), strict=True):
        frame = criteria_frame(view.asked, view.scores, n_own, p[0, own], adjusted[own], copied[own])
        frame.insert(0, "view", view.name)
        frames.append(frame)
    criteria = pd.concat(frames, ignore_index=True)
    unknown = {f"{view.name}: {name}": own for view in views for name, own in view.records.unknown_values.items()}
    counts = {"n_original": n_original, "n_control": n_real - n_original, "n_synthetic": n_synthetic}
    # A criterion counts by the view on which it shows most, which is the last one here.
    in_order = criteria.sort_values("adjusted_p_value", ascending=False, kind="stable")
    return DisclosureAssessment(
        overall(in_order, float(split.min()), unknown, {**counts, "n_examined": len(examined)})
        | exposed_scores(worst_exposure(exposure), []),
        criteria,
        _of_views(views, [by_column(each.records, each.evidence, each.of_people, each.columns, ()) for each in views]),
        _of_views(views, [pd.DataFrame({"column": each.columns}) for each in views]).assign(adjusted_p_value=split),
        _of_views(views, [rare_by_column(each.records, each.evidence, each.of_people) for each in views]),
        {
            ALGORITHM: algorithm_of("disclosure_assessment"),
            "spelling": SPELLING,
            "unknown_values": unknown,
            **settings.to_json(),
            "views": {view.name: list(view.columns) for view in views},
            "left_out_views": left_out,
            "precision": {view.name: view.records.precision for view in views},
            "n_divisions": len(sums) - 1,
            "confidence_level": CONFIDENCE,
            "level": LEVEL,
            "split_level": SPLIT_LEVEL,
            "n_people": {"original": n_original, "control": n_real - n_original},
        },
    )


def score_views(
    tables: Mapping[str, RelatedTables],
    by_side: Mapping[str, Mapping[str, pd.DataFrame]],
    examined: NDArray[np.int64],
    settings: DisclosureSettings,
    workers: Workers,
) -> tuple[list[View], dict[str, str]]:
    """Score the examined people, given as places among all, in each view; return what is left out with the reason.

    Which views are left out does not depend on who is an original.
    """
    n_original = len(tables["original"].people)
    share = float((examined < n_original).mean())
    views, left_out = [], {}
    for name in by_side["original"]:
        frames = {side: own[name].drop(columns=tables[side].person) for side, own in by_side.items()}
        numbers = {side: _places(tables[side], by_side[side][name]) for side in ("original", "control")}
        local = {side: np.unique(own, return_inverse=True) for side, own in numbers.items()}
        places = np.concatenate([local["original"][0], local["control"][0] + n_original])
        n_have = int(np.isin(places, examined).sum())
        reason = ""
        if frames["original"].shape[1] < 2:
            reason = "it has fewer than 2 columns"
        elif not len(frames["synthetic"]):
            reason = "there are no synthetic records in it"
        elif n_have * min(share, 1 - share) < FEWEST_PEOPLE:
            reason = f"only {n_have:,} people have records in it"
        elif without := [side for side, own in numbers.items() if not len(own)]:
            raise InvalidTableError(
                f"Nobody of the {without[0]} has records in the view {name!r}, and {n_have:,} others have. Expected "
                "two random samples of the same people. Divide them anew. Nothing was assessed."
            )
        if reason and name != PEOPLE:
            left_out[name] = reason
            continue
        check_columns(frames)
        if len(frames["original"].columns) > MOST_KNOWN:
            raise InvalidTableError(
                f"View {name!r} has {len(frames['original'].columns)} columns. Expected at most {MOST_KNOWN}, because "
                "all sets of some of them are examined. Leave columns out. Nothing was assessed."
            )
        records = pool_records(frames, {side: own for side, (_, own) in local.items()})
        require_usable(records) if name == PEOPLE else require_strangers(records)
        rows = np.flatnonzero(np.isin(places, examined)[records.people])
        attack = Attack(np.arange(len(records.columns)), settings.max_known, rows)
        evidence, of_people = gather_evidence(records, attack, workers), OfPeople(records, rows)
        own = of_people.mean(score_all(records, attack, evidence, workers))
        at = np.searchsorted(examined, places[of_people.people])
        scores = np.tile(own.mean(axis=0), (len(examined), 1))
        scores[at] = own
        views.append(View(name, records, attack, of_people, at, evidence, scores))
    return views, left_out


def _examined(
    by_side: Mapping[str, Mapping[str, pd.DataFrame]],
    n_original: int,
    n_real: int,
    sample: int | None,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw the people who are examined, as places among all: all, unless there are too many pairs of records."""
    n_pairs = [
        (len(by_side["original"][name]) + len(by_side["control"][name]), len(own))
        for name, own in by_side["synthetic"].items()
    ]
    n_drawn = people_to_examine(*max(n_pairs, key=lambda pair: pair[0] * pair[1]), sample)
    if n_drawn is None or n_drawn >= n_real:
        return np.arange(n_real)
    drawn = np.sort(rng.choice(n_real, n_drawn, replace=False))
    require_examined(int((drawn < n_original).sum()), n_drawn)
    return drawn


def _places(tables: RelatedTables, view: pd.DataFrame) -> NDArray[np.int64]:
    """Return the place of the person of each row of a view."""
    return np.asarray(pd.Index(tables.people[tables.person]).get_indexer(view[tables.person]), np.int64)


def _check_tables(tables: Mapping[str, RelatedTables]) -> None:
    """Refuse tables that are not of the same kind, and people who are on both sides."""
    children = None
    for side, own in tables.items():
        is_related = isinstance(own, RelatedTables)
        found = {name: (child.of, child.order) for name, child in own.children.items()} if is_related else None
        children = found if children is None else children
        if found is None or found != children:
            raise InvalidTableError(
                f"The {side} tables are not RelatedTables with the children of the others, in their order: expected "
                f"{list(children or ())}. Nothing was assessed."
            )
    keys = [pd.Index(spelled_keys(tables[side].people[tables[side].person])) for side in ("original", "control")]
    if n_on_both := int(keys[0].isin(keys[1]).sum()):
        raise InvalidTableError(
            f"{n_on_both} people are in both original and control. The control must contain only people whom the "
            "synthesizer has not seen. Split the tables by person (`split_records`). Nothing was assessed."
        )


def _of_views(views: Sequence[View], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Join frames by column; the names of columns have the view before them."""
    named = [frame.assign(column=f"{view.name}: " + frame["column"]) for view, frame in zip(views, frames, strict=True)]
    return pd.concat(named, ignore_index=True)
