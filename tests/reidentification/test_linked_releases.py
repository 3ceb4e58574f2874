"""Other releases whose key repeats: groups of both with one key are one group."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacy_assets as pa
from privacy_assets.columns.masks import Exact, ReleaseModel
from privacy_assets.errors import ConflictError, InvalidSettingError, InvalidTableError
from privacy_assets.reidentification.code_sets import from_lists
from privacy_assets.reidentification.linked_releases import LinkedReleases, RowsOfRelease
from privacy_assets.reidentification.linked_rows import linked_curve, read_known_rows
from privacy_assets.reidentification.masked_columns import MaskedColumn
from privacy_assets.reidentification.other_releases import OtherRelease
from privacy_assets.reidentification.record_keys import match_keys
from tests.examples import examples
from tests.reference import linked_rows as reference

N_CODES = 4


@st.composite
def several_releases(draw):
    """Originals with two columns and their people; releases of some of them, in any columns and groups."""
    n = draw(st.integers(1, 6))
    code, few = st.integers(0, N_CODES - 1), st.integers(0, 2)
    originals = draw(st.lists(st.tuples(code, code), min_size=n, max_size=n))
    people = draw(st.lists(few, min_size=n, max_size=n))
    found = []
    for place in range(draw(st.integers(2, 3))):
        numbers = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
        # The assessed release has every group.
        columns = draw(st.sampled_from([(0,), (1,), (0, 1)]))
        release = []
        for number in numbers if place else range(n):
            row = tuple(originals[number][c] for c in columns)
            box = [frozenset({own, *draw(st.frozensets(code, max_size=2))}) for own in row]
            release.append((row, number, box, draw(few)))
        found.append(release)
    return originals, people, found


def arranged(people, found):
    read = []
    for release in found:
        truth = np.array([number for _, number, _, _ in release])
        columns = []
        for j in range(len(release[0][0])):
            codes = np.zeros(len(people), np.int32)
            codes[truth] = [row[j] for row, _, _, _ in release]
            lists = [np.array(sorted(box[j]), np.int64) for _, _, box, _ in release]
            columns.append(MaskedColumn(codes, N_CODES, from_lists(lists, np.arange(len(release))), None))
        groups = np.array([group for _, _, _, group in release])
        read.append(RowsOfRelease(read_known_rows(columns, truth), truth, groups))
    return LinkedReleases.of_releases(read, np.array(people))


@settings(max_examples=examples(150), deadline=None)
@given(several_releases(), st.integers(0, 3))
def test_people_left_by_all_releases_are_those_of_trying_everything(made, seed):
    _, people, found = made
    rows = arranged(people, found)
    for n_rows in (1, 2, 3, "all"):
        most = len(people) if n_rows == "all" else n_rows
        exact = reference.fewest_by_all(most, found, people)
        fewest = min(exact.values())
        for k in (2, 3):
            worst = rows.worst(n_rows, k)
            assert worst.at_least <= fewest <= worst.found
            n_below = sum(size < k for size in exact.values())
            assert worst.n_people_below <= n_below <= worst.n_people_below + worst.n_people_open
            if n_rows in (1, "all"):
                assert worst.at_least == worst.found == fewest and worst.n_people_open == 0
    # A sample of two originals leaves as many people as two, or all, of some target.
    sizes = {
        len(reference.people_left_by_all(known, target, found, people))
        for target in {(people[number], group) for release in found for _, number, _, group in release}
        for known in [*combinations(range(len(people)), 2), range(len(people))]
    }
    assert set(next(rows.sample([2], 20, seed)).tolist()) <= sizes


def test_each_sample_of_originals_is_counted_in_every_release_that_has_them():
    """Two people alike in the first release; the second tells them apart, but lacks a row of one of them."""
    people = [0, 0, 1, 1]
    box = [frozenset({0, 1})]
    first = [((0,), number, box, people[number]) for number in range(4)]
    second = [((number,), number, [frozenset({number})], people[number]) for number in (0, 2, 3)]
    rows = arranged(people, [first, second])
    items = rows.count_rows(np.arange(4)[:, None])
    # Row 1 is in the first release only, and constrains nothing in the other.
    assert items.tolist() == [1, 2, 1, 1]
    curve = linked_curve(rows, 2, 2, n_samples=200)
    assert [row["fewest_candidates"] for row in curve] == [1, 1]


def visits(seed=0, n_people=60, n_rows=6):
    random = np.random.default_rng(seed)
    person = np.repeat(np.arange(n_people), n_rows)
    return pd.DataFrame(
        {
            "patient": person,
            "alias": [f"a{each:03d}" for each in random.permutation(10 * n_people)[person]],
            "age": random.integers(20, 80, n_people)[person],
            "ward": random.choice(["w1", "w2", "w3", "w4", "w5"], len(person)),
            "day": random.integers(0, 30, len(person)),
        }
    )


TABLE = visits()
FIRST = pa.anonymize(TABLE.drop(columns="day"), quasi_identifiers=["age", "ward"], k=20, subject="patient")
SECOND = pa.anonymize(TABLE[["patient", "alias", "day"]], quasi_identifiers=["day"], k=20, subject="patient")


def assess(other=None, **settings):
    others = [] if other is None else [other]
    return pa.assess_reidentification(TABLE, FIRST, links=["alias"], other_releases=others, **settings)


def fewest_for_one_visit(*released):
    """The fewest people who have a visit with each label of some visit, by sets of people."""
    visits = [set() for _ in range(len(TABLE))]
    for place, release in enumerate(released):
        labels = release.table[release.settings["quasi_identifiers"]].astype(str).agg("|".join, axis=1)
        label_of = pd.Series(labels.to_numpy(), release.members["row"].to_numpy()).sort_index()
        people = TABLE["patient"].groupby(label_of).agg(set)
        own = [people[label] for label in label_of]
        visits = own if place == 0 else [one & other for one, other in zip(visits, own, strict=True)]
    return min(map(len, visits))


def test_one_visit_is_looked_up_in_both_releases():
    alone, both = assess(known_rows=1), assess(OtherRelease(SECOND, "alias"), known_rows=1)
    assert alone.scores["fewest_candidates"] == fewest_for_one_visit(FIRST)
    assert both.scores["fewest_candidates"] == fewest_for_one_visit(FIRST, SECOND)
    assert both.scores["fewest_candidates"] < alone.scores["fewest_candidates"]
    assert both.figures(["age", "ward"]) == alone.figures(["age", "ward"])


def test_an_attacker_may_know_only_what_the_other_release_has():
    other = OtherRelease(SECOND, "alias")
    found = assess(other, known=[["day"], ["age"]], known_rows=1)
    assert found.figures(["day"])["fewest_candidates"] == TABLE["patient"].nunique()
    linked = found.curve[found.curve["chosen_as"] == "linked"].set_index("known")["fewest_candidates"]
    assert linked[("day",)] == fewest_for_one_visit(SECOND)
    with pytest.raises(InvalidSettingError, match="does not describe"):
        assess(other, known=[["height"]])


def test_more_visits_and_more_releases_leave_fewer_people():
    found = {}
    for m in (1, 2, 4, "all"):
        alone, both = (assess(other, known_rows=m).scores for other in (None, OtherRelease(SECOND, "alias")))
        assert both["max_reidentification_probability"] >= alone["max_reidentification_probability"]
        found[m] = both["mean_reidentification_probability"]
    assert found[1] < found[2] < found[4] <= found["all"]
    assert found["all"] > 0.9


def as_plain(release, alias=None):
    table = release.table if alias is None else release.table.assign(alias=alias(release.table["alias"]))
    # The key needs no mask.
    model = ReleaseModel({name: mask for name, mask in release.model.masks.items() if name != "alias"})
    return {"table": table, "model": model, "truth": release.members["row"].to_numpy()}


@pytest.mark.parametrize(
    "alias", [lambda own: own.str.upper() + " ", lambda own: own.astype("category"), lambda own: own]
)
def test_keys_that_are_spelled_alike_are_one_key(alias):
    expected = assess(OtherRelease(SECOND, "alias"), known_rows=2).scores
    plain = OtherRelease(**as_plain(SECOND, alias), key="alias", quasi_identifiers=["day"])
    assert assess(plain, known_rows=2).scores == expected


def test_numbers_and_texts_of_numbers_are_one_key():
    table = TABLE.assign(alias=TABLE["alias"].str[1:].astype(int))
    first, second = (
        pa.anonymize(table[["patient", "alias", *names]], quasi_identifiers=names, k=20, subject="patient")
        for names in (["age", "ward"], ["day"])
    )
    found = []
    for alias in (lambda own: own, lambda own: own.astype(str).str.zfill(5), lambda own: own.astype(float)):
        other = OtherRelease(**as_plain(second, alias), key="alias", quasi_identifiers=["day"])
        found.append(pa.assess_reidentification(table, first, links=["alias"], other_releases=[other]).scores)
    assert found[0] == found[1] == found[2]
    rows = pd.DataFrame({"key": [3, 1, 2]})
    assert match_keys("key", rows, "one", rows.assign(key=["01", "2", "3.0"]), "other").tolist() == [2, 0, 1]


def test_rows_that_one_release_lacks_constrain_nothing_there():
    rows = SECOND.table["alias"].to_numpy() == SECOND.table["alias"].iloc[0]
    plain = as_plain(SECOND)
    lacking = {"table": plain["table"][rows], "model": plain["model"], "truth": plain["truth"][rows]}
    other = OtherRelease(**lacking, key="alias", quasi_identifiers=["day"])
    found, alone = (assess(each, known_rows="all") for each in (other, None))
    # Only the person whom the other release has is in it.
    assert found.scores["fewest_candidates"] == 1
    assert found.scores["mean_reidentification_probability"] <= alone.scores["mean_reidentification_probability"] + 0.1


def refused(error, message, other, **settings):
    with pytest.raises(error, match=message):
        assess(other, **settings)


def test_keys_and_rows_that_cannot_be_joined_are_refused():
    plain = as_plain(SECOND)
    without = {name: own for name, own in plain.items() if name != "truth"}
    refused(InvalidTableError, "but not from which original each comes", OtherRelease(**without, key="alias"))
    strangers = as_plain(SECOND, lambda own: "z" + own)
    refused(InvalidTableError, "No key 'alias' of release 'other' is in", OtherRelease(**strangers, key="alias"))
    names = sorted(TABLE["alias"].unique())
    swapped = as_plain(SECOND, lambda own: own.map(dict(zip(names, names[::-1], strict=True))))
    refused(ConflictError, "60 keys 'alias' belong to other people", OtherRelease(**swapped, key="alias"))
    wrong = plain | {"truth": np.roll(plain["truth"], 1)}
    refused(ConflictError, "contradicts the assessed release", OtherRelease(**wrong, key="alias"))
    lacking = plain | {"table": plain["table"].drop(columns="alias")}
    refused(InvalidTableError, "The key column 'alias' is not in", OtherRelease(**lacking, key="alias"))
    short = plain | {"truth": plain["truth"][:-1]}
    refused(
        InvalidSettingError,
        "Expected one position in the original per released row",
        OtherRelease(**short, key="alias"),
    )


def test_a_key_that_repeats_and_is_no_declared_link_is_still_refused():
    other = OtherRelease(SECOND, "alias")
    with pytest.raises(InvalidTableError, match="300 repeated"):
        pa.assess_reidentification(TABLE, FIRST, other_releases=[other])


def test_rows_with_an_own_key_are_joined_one_by_one_next_to_groups():
    table = TABLE.assign(number=np.random.default_rng(3).permutation(len(TABLE)))
    first, second, third = (
        pa.anonymize(table, quasi_identifiers=names, k=20, subject="patient")
        for names in (["age", "ward"], ["day"], ["age", "day"])
    )
    others = [OtherRelease(second, "alias"), OtherRelease(third, "number", name="third")]
    found = pa.assess_reidentification(table, first, links=["alias"], other_releases=others).scores
    for fewer in (others[:1], others[1:]):
        own = pa.assess_reidentification(table, first, links=["alias"], other_releases=fewer).scores
        assert found["fewest_candidates"] <= own["fewest_candidates"]


def test_the_model_of_a_plain_table_is_checked():
    model = ReleaseModel({"day": Exact("day")})
    other = OtherRelease(TABLE[["alias", "day"]], "alias", model, truth=np.arange(len(TABLE)))
    assert assess(other).scores["fewest_candidates"] >= 1
    moved = TABLE[["alias", "day"]].assign(day=TABLE["day"] + 1)
    refused(ConflictError, "contradicts", OtherRelease(moved, "alias", model, truth=np.arange(len(TABLE))))
