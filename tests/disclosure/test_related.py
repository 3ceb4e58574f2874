"""One test of all views: it is that of enumeration, and finds what only related tables can leak."""

from dataclasses import replace
from itertools import combinations
from math import ceil, log

import numpy as np
import pandas as pd
import pytest

from privacy_assets.contract.related import Child, RelatedTables
from privacy_assets.contract.views import related_views
from privacy_assets.disclosure import permutation_test, related, sides
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.criteria import CRITERIA, criteria_asked
from privacy_assets.disclosure.result import DisclosureAssessment
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.reference import disclosure as reference
from tests.related import clinic, of_visits, with_lines

ASKED = list(criteria_asked(has_synthetic_people=False, has_named_columns=False))


def thirds(n, seed=0, drugs=False):
    tables = clinic(3 * n, seed)
    tables = tables if drugs else of_visits(tables)
    places = np.random.default_rng(seed).permutation(3 * n)
    return [tables.take(places[at : at + n]) for at in (0, n, 2 * n)]


def plant(synthetic, original, n, what, seed=0):
    """Give the visits of n originals to synthetic people: the ``whole`` person, ``moved`` by some days, or alone."""
    random = np.random.default_rng(seed)
    copied, receivers = (random.choice(len(t.people), n, replace=False) for t in (original, synthetic))
    keys = synthetic.people["patient"].to_numpy()
    people = synthetic.people.copy()
    if what == "whole":
        for name in ("age", "sex"):
            people.loc[receivers, name] = original.people[name].to_numpy()[copied]
    to = dict(zip(original.people["patient"].to_numpy()[copied], keys[receivers], strict=True))
    visits, own = (t.children["visits"].table for t in (synthetic, original))
    own = own[own["patient"].isin(to)]
    own = own.assign(patient=own["patient"].map(to))
    if what == "moved":
        days = dict(zip(keys[receivers], random.integers(1, 60, n), strict=True))
        own = own.assign(date=own["date"] + pd.to_timedelta(own["patient"].map(days), unit="D"))
    visits = pd.concat([visits[~visits["patient"].isin(keys[receivers])], own], ignore_index=True)
    return replace(of_visits(synthetic, table=visits), people=people)


def test_honest_tables_are_rarely_flagged():
    found = []
    for seed in range(6):
        original, control, synthetic = thirds(250, seed, drugs=True)
        found.append(assess_disclosure(original, synthetic, control, seed=seed).scores["leakage_detected"])
    assert found.count(True) <= 1


@pytest.mark.parametrize("what", ["whole", "moved", "alone"])
def test_copies_are_found_whoever_gets_them(what):
    original, control, synthetic = thirds(400, seed=1)
    found = assess_disclosure(original, plant(synthetic, original, 40, what), control)
    assert found.scores["leakage_detected"]
    seen = set(found.criteria.loc[found.criteria["adjusted_p_value"] <= 0.05, "view"])
    assert "histories of visits" in seen
    assert ("people" in seen) or what != "whole"
    assert "They reveal more about originals than about controls" in found.summary()
    assert " in " in found.summary()
    assert found.scores["exposed_share"] > (0.05 if what == "whole" else 0)


def test_copies_of_rows_of_rows_are_found_and_other_people_are_not():
    tables = with_lines(clinic(1200, seed=2))
    places = np.random.default_rng(2).permutation(1200)
    original, control, synthetic = (tables.take(places[at : at + 400]) for at in (0, 400, 800))
    honest = assess_disclosure(original, synthetic, control)
    assert not honest.scores["leakage_detected"]
    assert {"rows of lines", "histories of lines"} <= set(honest.settings["views"])
    # The visits of synthetic people get the lines of originals, visit by visit.
    visits, own = synthetic.children["visits"].table, original.children["visits"].table
    n = min(len(visits), len(own)) // 2
    to = dict(zip(own["visit"].head(n), visits["visit"].head(n), strict=True))
    copied = original.children["lines"].table
    copied = copied[copied["visit"].isin(to)].assign(visit=lambda rows: rows["visit"].map(to))
    kept = synthetic.children["lines"].table
    kept = kept[~kept["visit"].isin(to.values())]
    lines = replace(synthetic.children["lines"], table=pd.concat([kept, copied], ignore_index=True))
    found = assess_disclosure(original, replace(synthetic, children={**synthetic.children, "lines": lines}), control)
    assert found.scores["leakage_detected"]
    seen = found.criteria.loc[found.criteria["adjusted_p_value"] <= 0.05, "view"]
    assert set(seen) & {"rows of lines", "histories of lines"}


def test_the_result_has_a_row_for_each_view_and_criterion(tmp_path):
    original, control, synthetic = thirds(200, drugs=True)
    found = assess_disclosure(original, synthetic, control)
    views = ["people", "rows of visits", "histories of visits", "rows of drugs"]
    assert list(found.settings["views"])[:4] == views
    for view in found.settings["views"]:
        assert found.criteria.loc[found.criteria["view"] == view, "criterion"].tolist() == ASKED
    assert found.scores["adjusted_p_value"] == found.criteria["adjusted_p_value"].min()
    assert found.scores["split_p_value"] == found.split["adjusted_p_value"].min()
    for name in ASKED:
        own = found.criteria[found.criteria["criterion"] == name]
        worst = own.iloc[own["adjusted_p_value"].argmin()]
        assert found.scores[f"{name}_adjusted_p_value"] == worst["adjusted_p_value"]
        assert (
            found.scores[f"{name}_excess"]
            in own.loc[own["adjusted_p_value"] == worst["adjusted_p_value"], "excess"].tolist()
        )
    assert {name.partition(": ")[0] for name in found.split["column"]} == set(found.settings["views"])
    assert not found.columns["rare_original"].isna().any()
    assert found.settings["max_known"] == 2
    assert (found.scores["n_original"], found.scores["n_control"], found.scores["n_synthetic"]) == (200, 200, 200)
    write_artifact(tmp_path / "found", found.to_artifact())
    again = DisclosureAssessment.from_artifact(read_artifact(tmp_path / "found"))
    pd.testing.assert_frame_equal(again.criteria, found.criteria)
    for what in found.pictures:
        assert found.drawn(what).text


def among_largest(figures, n):
    """1 for the n largest; those at the edge share what is left."""
    found, left = [0.0] * len(figures), float(n)
    for value in sorted(set(figures), reverse=True):
        at = [i for i, own in enumerate(figures) if own == value]
        for i in at:
            found[i] = min(1.0, left / len(at))
        left = max(left - len(at), 0.0)
    return found


def reference_scores(pool, owners, made, share_of_originals):
    """Scores of records by criterion, each by enumeration, on plain tables of one view."""
    real, synthetic, has_distance = reference.plain_tables(pool.astype(object), made.astype(object))
    n, columns = len(real), range(len(real[0]))
    sets = reference.all_sets(columns, 2)
    in_bins, made_in_bins = reference.binned(real, synthetic, has_distance)
    unique, unique_in_bins = (reference.distinct(rows, synthetic) for rows in (synthetic, made_in_bins))
    placed, made_placed = reference.places(real, synthetic, has_distance, 1000)
    claims = [float(own) for own in reference.claims(real, synthetic, sets)[0]]
    guessed = [
        [
            float(reference.guess(in_bins[i], placed[i], made_placed, made_in_bins, j, columns, has_distance, 1000))
            for j in columns
        ]
        for i in range(n)
    ]
    rates = np.mean(guessed, axis=0)
    surprise = np.array(guessed) @ np.array([-np.log(rate) if rate > 0 else 0.0 for rate in rates])
    may_be_rare = [
        not isinstance(next((row[j] for row in real if row[j] is not None), True), (bool, np.bool_)) for j in columns
    ]
    rare = [sum(reference.are_rare(x, real, owners, synthetic, may_be_rare)) for x in real]
    closeness = [max(reference.closeness(x, other, real, has_distance) for other in synthetic) for x in real]
    n_closest = min(max(12, ceil(log(0.0025) / log(share_of_originals))), n)
    far = [reference.relative_distance(i, placed, owners, made_placed, has_distance, 1000) for i in range(n)]
    nearest = among_largest([round(-own, 9) for own in far], min(30, n))
    return {
        "singling_out": [reference.is_singled_out(x, in_bins, owners, unique_in_bins, sets) for x in in_bins],
        "linkability": [reference.is_linked(x, unique, sets) for x in real],
        "inference_exact": claims,
        "inference_near": surprise,
        "near_copies": among_largest(closeness, n_closest),
        "rare_values": rare,
        "shifted_copies": [own**2 for own in reference.beyond_opposite(real, owners, synthetic, has_distance)],
        "absence": [-own for own in nearest],
        "absence_inferred": -surprise,
    }


@pytest.mark.parametrize("seed", range(4))
def test_the_joint_test_is_that_of_enumeration(seed, monkeypatch):
    """All 84 divisions of nine people, and scores by loops, also over a view in which not everybody has records."""
    n_original, n_people = 6, 9
    tables = of_visits(clinic(14, seed + 3, mean_visits=1.0))
    original, control, synthetic = (tables.take(np.arange(a, b)) for a, b in ((0, 6), (6, 9), (9, 14)))
    synthetic = plant(synthetic, original, 3, "whole", seed)
    divisions = [own for own in combinations(range(n_people), n_original) if own != tuple(range(n_original))]
    kept, score_views = [], related.score_views

    def all_sums(scores, n_original, n_permutations, rng, on_done=None):
        return np.array([scores[list(own)].sum(axis=0) for own in divisions])

    def keep(*arguments):
        kept.append(score_views(*arguments))
        return kept[-1]

    monkeypatch.setattr(permutation_test, "permuted_sums", all_sums)
    monkeypatch.setattr(permutation_test, "MOST_PERMUTATIONS", 999)
    monkeypatch.setattr(related, "score_views", keep)
    for module in (related, sides):
        monkeypatch.setattr(module, "FEWEST_PEOPLE", 1)
    found = assess_disclosure(original, synthetic, control)
    frames = [related_views(own) for own in (original, control, synthetic)]
    keys, scores = [*original.people["patient"], *control.people["patient"]], []
    assert "histories of visits" in found.settings["views"]
    for view in kept[0][0]:
        pool = pd.concat([own[view.name] for own in frames[:2]], ignore_index=True)
        owners = [keys.index(key) for key in pool.pop("patient")]
        by_record = reference_scores(pool, owners, frames[2][view.name].drop(columns="patient"), 6 / 9)
        for place, name in enumerate(ASKED):
            own = {p: [float(s) for s, q in zip(by_record[name], owners, strict=True) if q == p] for p in set(owners)}
            means = {p: sum(values) / len(values) for p, values in own.items()}
            rest = sum(means.values()) / len(means)
            expected = [means.get(p, rest) for p in range(n_people)]
            assert view.scores[:, place].tolist() == pytest.approx(expected, abs=2e-3), (view.name, name)
            scores.append([round(own * 1e9) for own in view.scores[:, place].tolist()])
    sums = [[sum(own[p] for p in side) for own in scores] for side in (tuple(range(n_original)), *divisions)]
    # Means of several people differ in their last digits; equal sums must be equal.
    sums = [[round(own / 1e3) for own in side] for side in sums]
    weights = [int(CRITERIA[name].weight) for name in ASKED] * len(found.settings["views"])
    expected = reference.min_p_step_down(sums, weights)
    assert found.criteria["adjusted_p_value"].tolist() == pytest.approx([float(own) for own in expected])
    assert any(own < 1 for own in expected)


def test_who_has_no_records_in_a_view_has_the_mean_of_the_others():
    original, control, synthetic = thirds(200, seed=2)
    tables = {"original": original, "synthetic": synthetic, "control": control}
    by_side = {side: related_views(own) for side, own in tables.items()}
    with related.Workers(1, None) as workers:
        settings = related.DisclosureSettings(max_known=2)
        views, left_out = related.score_views(tables, by_side, np.arange(400), settings, workers)
    assert left_out == {}
    histories = views[2]
    without = np.setdiff1d(np.arange(400), histories.places)
    has_two = np.concatenate([np.bincount(t.whose["visits"], minlength=200) > 1 for t in (original, control)])
    assert without.tolist() == np.flatnonzero(~has_two).tolist()
    assert histories.scores[without] == pytest.approx(
        np.tile(histories.scores[histories.places].mean(axis=0), (len(without), 1))
    )


def test_planted_people_are_in_all_views():
    original, control, synthetic = thirds(200, seed=2)
    tables = {"original": original, "synthetic": synthetic, "control": control}
    by_side = {side: related_views(own) for side, own in tables.items()}
    with related.Workers(1, None) as workers:
        settings = related.DisclosureSettings(max_known=2)
        views, _ = related.score_views(tables, by_side, np.arange(400), settings, workers)
        planted = related.PlantedPeople(views, workers, np.random.default_rng(0))
    n_copied, n_scores = planted.added.shape
    assert n_scores == 3 * len(ASKED)
    assert n_copied <= 20
    counted = [j for j, name in enumerate(ASKED) if CRITERIA[name].counts_copies]
    for columns, copies, members in planted.views:
        own = planted.added[:, columns]
        assert (own[members] == copies.added).all()
        assert (own[np.setdiff1d(np.arange(n_copied), members)] == 0).all()
        assert (own[members][:, counted].mean(axis=0) > 0).all()
    # Copies of the same people are drawn in all views.
    d, left = planted.draw(30, np.random.default_rng(1))
    known = {tuple(np.delete(row, [4, 13, 22])) for row in planted.added.round(9).tolist()}
    assert {tuple(np.delete(row, [4, 13, 22])) for row in d.round(9).tolist()} <= known
    assert left.shape == (n_scores,)
    assert ((left >= 0) & (left <= 1)).all()


def test_more_synthetic_people_do_not_hide_the_share_of_copies():
    original, control, synthetic = thirds(200, seed=4)
    copied = plant(synthetic, original, 40, "whole")
    others = clinic(800, seed=9).people
    keys = ["q" + key for key in others["patient"]]
    visits = clinic(800, seed=9).children["visits"].table
    diluted = RelatedTables(
        pd.concat([copied.people, others.assign(patient=keys)], ignore_index=True),
        {
            "visits": Child(
                pd.concat(
                    [copied.children["visits"].table, visits.assign(patient="q" + visits["patient"])], ignore_index=True
                ),
                key="patient",
                order="date",
            )
        },
        "patient",
    )
    alone, beside = (assess_disclosure(original, own, control).scores for own in (copied, diluted))
    assert beside["n_synthetic"] == 1000
    assert beside["exposed_share"] > alone["exposed_share"] / 5


def test_the_same_people_on_both_sides_are_refused_and_counted():
    original, _, synthetic = thirds(100)
    with pytest.raises(InvalidTableError, match="100 people are in both original and control"):
        assess_disclosure(original, synthetic, original)
    visits = original.children["visits"].table
    visits = visits.assign(patient="z" + visits["patient"])
    people = original.people.assign(patient="z" + original.people["patient"])
    renamed = RelatedTables(people, {"visits": Child(visits, key="patient", order="date")}, "patient")
    with pytest.raises(InvalidTableError, match="controls equal an original"):
        assess_disclosure(original, synthetic, renamed)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sensitive", ["age"]),
        ("known", ["age", "sex"]),
        ("quasi_identifiers", ["age"]),
        ("invented", ["age"]),
        ("person", "patient"),
        ("synthetic_person", "patient"),
        ("published_before", [pd.DataFrame({"age": [1]})]),
    ],
)
def test_what_is_not_built_for_related_tables_is_refused_by_name(name, value):
    with pytest.raises(InvalidSettingError, match=f"`{name}` cannot be set with RelatedTables"):
        assess_disclosure(*thirds(60), **{name: value})


def test_tables_that_cannot_be_compared_are_refused():
    original, control, synthetic = thirds(100)
    with pytest.raises(InvalidTableError, match="The synthetic tables are not RelatedTables"):
        assess_disclosure(original, synthetic.people, control)
    with pytest.raises(InvalidTableError, match="There is no control"):
        assess_disclosure(original, synthetic, None)
    unordered = of_visits(synthetic, order=None)
    with pytest.raises(InvalidTableError, match="The synthetic tables are not RelatedTables with the children"):
        assess_disclosure(original, unordered, control)
    with pytest.raises(InvalidTableError, match="too few people"):
        assess_disclosure(original, synthetic, control.take(np.arange(40)))
    without = of_visits(synthetic, table=synthetic.children["visits"].table.drop(columns="cost"))
    with pytest.raises(InvalidTableError, match="does not have the columns of the original"):
        assess_disclosure(original, without, control)


def test_a_view_of_too_few_people_is_left_out_and_named():
    original, control, synthetic = (
        of_visits(t, table=t.children["visits"].table.drop_duplicates("patient")) for t in thirds(120)
    )
    found = assess_disclosure(original, synthetic, control)
    assert list(found.settings["views"]) == ["people", "rows of visits"]
    assert found.settings["left_out_views"] == {"histories of visits": "there are no synthetic records in it"}
    assert "Not tested: histories of visits, because there are no synthetic records in it." in found.summary()


def test_a_sample_is_drawn_of_people():
    original, control, synthetic = thirds(250)
    found = assess_disclosure(original, synthetic, control, sample=200)
    assert found.scores["n_examined"] == 200
    assert found.scores["leakage_detected"] in (False, None)


def test_a_control_without_records_in_a_view_is_no_sample_of_the_same_people():
    original, control, synthetic = thirds(400)
    once = of_visits(control, table=control.children["visits"].table.drop_duplicates("patient"))
    with pytest.raises(InvalidTableError, match="Nobody of the control has records in the view 'histories of visits'"):
        assess_disclosure(original, synthetic, once)
