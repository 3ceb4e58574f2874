from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacy_assets as pa
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification import CandidateIndex, linked_rows
from privacy_assets.reidentification.code_sets import from_lists
from privacy_assets.reidentification.linked_rows import (
    LinkedRows,
    is_constant,
    link_rows,
    read_known_rows,
)
from privacy_assets.reidentification.masked_columns import MaskedColumn
from tests.examples import examples
from tests.reference import linked_rows as reference

N_CODES = 4


@st.composite
def releases(draw, overlap=None):
    """Rows, boxes that contain them (in all cases, classes of codes or any sets), people, groups and values."""
    n_rows, n_columns = draw(st.integers(1, 8)), draw(st.integers(1, 2))
    code = st.integers(0, N_CODES - 1)
    rows = draw(st.lists(st.tuples(*[code] * n_columns), min_size=n_rows, max_size=n_rows))
    if overlap is None:
        overlap = draw(st.booleans())
    if overlap:
        boxes = [[frozenset({own, *draw(st.frozensets(code, max_size=2))}) for own in row] for row in rows]
    else:
        classes = [draw(st.lists(st.integers(0, 2), min_size=N_CODES, max_size=N_CODES)) for _ in range(n_columns)]
        boxes = [
            [frozenset(c for c in range(N_CODES) if of[c] == of[own]) for own, of in zip(row, classes, strict=True)]
            for row in rows
        ]
    small = st.lists(st.integers(0, 2), min_size=n_rows, max_size=n_rows)
    return rows, boxes, draw(small), draw(small), draw(small)


def arranged(rows, boxes):
    columns = []
    for j in range(len(rows[0])):
        codes = np.array([row[j] for row in rows], np.int32)
        lists = [np.array(sorted(box[j]), np.int64) for box in boxes]
        columns.append(MaskedColumn(codes, N_CODES, from_lists(lists, np.arange(len(rows))), None))
    return read_known_rows(columns, np.arange(len(rows)))


def linked(rows, boxes, people, groups):
    return LinkedRows.of_groups(arranged(rows, boxes), np.array(people), np.array(groups))


@pytest.mark.parametrize("overlap", [False, True])
@settings(max_examples=examples(150), deadline=None)
@given(data=st.data())
def test_people_left_and_their_bounds_are_those_of_trying_everything(overlap, data):
    rows, boxes, people, groups, _ = data.draw(releases(overlap))
    found = linked(rows, boxes, people, groups)
    for n_rows in (1, 2, 3, 4, "all"):
        exact = reference.fewest(len(rows) if n_rows == "all" else n_rows, rows, boxes, people, groups)
        for k in (1, 2, 3):
            worst = found.worst(n_rows, k)
            fewest, n_below = min(exact.values()), sum(size < k for size in exact.values())
            if n_rows in (1, 2, "all") or fewest < k:
                assert worst.at_least == worst.found == fewest
            assert min(fewest, k) <= worst.at_least <= fewest <= worst.found
            assert (worst.n_people_below, worst.n_people_open) == (n_below, 0)
            assert worst.outcome == ("refused" if n_below else "admitted")


@settings(max_examples=examples(150), deadline=None)
@given(release=releases(), seed=st.integers(0, 5))
def test_samples_leave_the_people_and_the_values_of_trying_everything(release, seed):
    rows, boxes, people, groups, values = release
    random, own = np.random.default_rng(seed), arranged(rows, boxes)
    row_of_known = dict(zip(own.known_of_row.tolist(), rows, strict=True))
    people_left = LinkedRows.of_groups(own, np.array(people), np.array(groups))
    values_left = LinkedRows.of_values(own, np.array(people), np.array(values))
    for found, expected in (
        (people_left, lambda known: reference.people_left(known, boxes, people, groups)),
        (values_left, lambda known: reference.values_left(known, boxes, values)),
    ):
        samples = []
        for begin, end in pairwise(found.first):
            rows_of_target = found.known[begin:end]
            samples += [random.choice(rows_of_target, min(m, end - begin), replace=False) for m in (1, 2, 3)]
        first = np.cumsum([0, *map(len, samples)])
        sizes = found.count(first, np.concatenate([np.sort(sample) for sample in samples]))
        assert sizes.tolist() == [len(expected([row_of_known[q] for q in sample.tolist()])) for sample in samples]


@settings(max_examples=examples(100), deadline=None)
@given(data=st.data())
def test_links_make_the_groups_of_merging_one_by_one(data):
    n_rows, n_links = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    code = st.integers(0, 5)
    links = [data.draw(st.lists(code, min_size=n_rows, max_size=n_rows)) for _ in range(n_links)]
    groups = link_rows([np.array(own) for own in links])
    found = {frozenset(np.flatnonzero(groups == g).tolist()) for g in groups}
    assert found == reference.groups_of(links)


def test_a_column_is_constant_if_nearly_all_people_with_several_rows_have_one_value():
    people = np.repeat(np.arange(40), 2)
    values = people % 7
    assert is_constant(people, values)
    for n_differing, expected in ((2, True), (3, False)):
        differing = values.copy()
        differing[: 2 * n_differing : 2] = 9
        assert is_constant(people, differing) is expected
    assert not is_constant(np.arange(40), np.zeros(40, np.int64))


def purchases(n_people=60, n_each=4):
    """Rows of people with a pseudonym, and an illness that is the same in all rows of a person."""
    random = np.random.default_rng(0)
    customer = np.repeat(np.arange(n_people), n_each)
    return pd.DataFrame(
        {
            "customer": customer,
            "age": random.integers(20, 60, len(customer)),
            "item": random.choice(["a", "b", "c"], len(customer)),
            "pseudonym": random.permutation(n_people)[customer],
            "illness": random.choice(6, n_people)[customer],
        }
    )


@pytest.fixture(scope="module")
def release():
    table = purchases()
    return table, pa.anonymize(table, quasi_identifiers=["age", "item"], k=5, subject="customer", sensitive=["illness"])


def test_scores_are_the_worst_up_to_the_known_rows(release):
    table, cut = release
    alone = pa.assess_reidentification(table, cut)
    assert alone.scores["max_reidentification_probability"] <= 0.2
    assert (alone.curve["n_rows"] == 1).all() and alone.settings["known_rows"] == 1 and alone.settings["links"] == []
    assert pa.assess_reidentification(table, cut, links=["pseudonym"]).curve.equals(alone.curve)
    linked = pa.assess_reidentification(table, cut, links=["pseudonym"], known_rows=3)
    several = linked.curve[linked.curve["n_rows"] > 1]
    assert several["n_rows"].tolist() == [2, 3] and set(several["chosen_as"]) == {"linked"}
    assert linked.scores["max_reidentification_probability"] == 1.0 and linked.scores["fewest_candidates"] == 1
    for name in ("mean_reidentification_probability", "share_of_singletons", "share_below_k"):
        assert linked.scores[name] == several[name].max() > alone.scores[name]
        assert (several[f"{name}_low"] <= several[name]).all() and (several[name] <= several[f"{name}_high"]).all()
    assert linked.figures(["age", "item"]) == alone.figures(["age", "item"])
    assert linked.settings["known_rows"] == 3 and linked.settings["links"] == ["pseudonym"]
    assert type(linked).from_artifact(linked.to_artifact()) == linked
    assert linked == pa.assess_reidentification(
        table, cut, links=["pseudonym"], groups=cut.table["pseudonym"], known_rows=3, n_threads=1
    )


def test_more_known_rows_than_anybody_has_are_all_of_them(release):
    table, cut = release
    found = [
        pa.assess_reidentification(table, cut, links=["pseudonym"], known_rows=known_rows).scores
        for known_rows in (4, 10**6, "all")
    ]
    assert [scores.pop("known_rows") for scores in found] == [4, 10**6, "all"]
    assert found[0] == found[1] == found[2]


def test_a_release_of_rows_has_no_rows_to_link(release):
    table, _ = release
    cut = pa.anonymize(table, quasi_identifiers=["age", "item"], k=5)
    linked = pa.assess_reidentification(table, cut, links=["pseudonym"], known_rows="all")
    alone = pa.assess_reidentification(table, cut)
    assert linked.curve.equals(alone.curve) and alone.scores.items() <= linked.scores.items()


def test_a_value_that_stays_the_same_becomes_certain(release):
    table, cut = release
    shares = []
    for known_rows in (1, 2, "all"):
        scores = pa.assess_reidentification(table, cut, known_rows=known_rows).scores
        assert scores["column_certain_by_rows"] == "illness" and scores["max_reidentification_probability"] <= 0.2
        shares.append(scores["share_certain_by_rows"])
    assert shares[0] < shares[1] < shares[2]
    changing = table.assign(illness=np.random.default_rng(1).choice(6, len(table)))
    other = pa.anonymize(changing, quasi_identifiers=["age", "item"], k=5, subject="customer", sensitive=["illness"])
    scores = pa.assess_reidentification(changing, other, known_rows=2).scores
    assert scores["share_certain_by_rows"] is None and scores["column_certain_by_rows"] is None


def test_one_row_without_links_leaves_the_candidates_of_the_index(release):
    table, cut = release
    for known in (["age", "item"], ["item"]):
        index = CandidateIndex.of_anonymization(table, cut)
        rows = read_known_rows(index.masked(known), index.truth)
        each = LinkedRows.of_groups(rows, index.people[index.truth], np.arange(index.n_released))
        sizes = each.count(np.arange(len(each.known) + 1), each.known)
        # Targets are in the order of their people.
        assert sizes.tolist() == index.sizes(known)[np.argsort(index.people[index.truth], kind="stable")].tolist()


@pytest.mark.parametrize("known_rows", [0, -1, True, 1.5, "most", None])
def test_known_rows_that_are_no_number_are_refused(release, known_rows):
    with pytest.raises(InvalidSettingError, match="known_rows"):
        pa.assess_reidentification(*release, known_rows=known_rows)


def test_links_that_are_not_released_are_refused(release):
    with pytest.raises(InvalidSettingError, match="links"):
        pa.assess_reidentification(*release, links=["customer"])


def test_rows_that_fit_too_many_boxes_are_refused(monkeypatch):
    monkeypatch.setattr(linked_rows, "MOST_FITS", 3)
    with pytest.raises(InvalidSettingError, match="2 different known rows fit 4 released records"):
        arranged([(0,), (1,)], [[frozenset({0, 1})], [frozenset({0, 1, 2})]])


@settings(max_examples=examples(80), deadline=None)
@given(release=releases(), k=st.integers(1, 3))
def test_a_search_without_steps_is_not_a_proof(release, k):
    rows, boxes, people, groups, _ = release
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(linked_rows, "N_CHOICES", 0)
        worst = linked(rows, boxes, people, groups).worst(3, k)
    exact = reference.fewest(3, rows, boxes, people, groups)
    fewest, n_below = min(exact.values()), sum(size < k for size in exact.values())
    assert worst.at_least <= fewest <= worst.found
    assert worst.n_people_below <= n_below <= worst.n_people_below + worst.n_people_open
    assert worst.outcome != "admitted" or n_below == 0
