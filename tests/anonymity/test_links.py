"""Released values that show which rows are of one person are found, whatever their names and however they are cut."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymity.kernels.row_pairs import count_changes
from privacy_assets.anonymity.links import find_links, groups_of
from privacy_assets.storage import coded_columns
from privacy_assets.storage.table import store
from tests.examples import examples
from tests.reference import links as reference

K = 5
CELLS = st.one_of(st.none(), st.integers(0, 12))


@st.composite
def small_tables(draw):
    n_rows = draw(st.integers(2, 14))
    people = draw(st.lists(st.integers(0, 5), min_size=n_rows, max_size=n_rows))
    columns = [draw(st.lists(CELLS, min_size=n_rows, max_size=n_rows)) for _ in range(draw(st.integers(1, 3)))]
    # Texts that are those of numbers, as a key in another column may be written.
    texts = [["x" if own is None else f"00{own}" for own in columns[0]]] if draw(st.booleans()) else []
    return people, columns, texts


@given(small_tables(), st.integers(2, 6))
@settings(max_examples=examples(400), deadline=None)
def test_shares_and_precisions_agree_with_every_pair_of_rows(given_table, k):
    people, columns, texts = given_table
    names = "abc"[: len(columns)]
    frame = pd.DataFrame({name: pd.array(own, "Int64") for name, own in zip(names, columns, strict=True)})
    plain = dict(zip(names, columns, strict=True))
    if texts:
        frame["t"] = texts[0]
        plain["t"] = [own if own == "x" else int(own) for own in texts[0]]
    found = find_links(frame, np.array(people), k)
    if not reference.rows_with_several(people):
        assert found == ()
        return
    assert {each.columns[0] for each in found if each.how == "alone"} == set(plain)
    for link in found:
        own = [plain[name] for name in link.columns]
        expected = {
            "alone": lambda own=own: reference.alone(own[0], people, k),
            "together": lambda own=own: reference.together(own, people, k),
            "across": lambda own=own: reference.across(*own, people, k),
        }
        if link.how in expected:
            assert (link.share, link.precision) == pytest.approx(expected[link.how]()), link
        else:
            column = [str(cell) if "t" in link.columns else cell for cell in own[0]]
            forward = reference.in_order(column, people, lambda cell: cell)
            backward = reference.in_order(own[0], people, lambda cell: str(cell)[::-1])
            if k > 2:
                assert any((link.share, link.precision) == pytest.approx(each) for each in (forward, backward)), link


@given(small_tables())
@settings(max_examples=examples(200), deadline=None)
def test_changes_within_people_agree_with_the_definition(given_table):
    people, columns, _ = given_table
    for own in columns:
        codes = np.array([-1 if cell is None else cell for cell in own], np.int32)
        n_changes, n_several, n_same = count_changes(codes, np.array(people, np.int32))
        found = n_changes, n_same / n_several if n_several else 1.0
        assert found == pytest.approx(reference.changes(own, people))


@given(small_tables(), st.integers(2, 6))
@settings(max_examples=examples(200), deadline=None)
def test_groups_are_the_connected_components(given_table, k):
    people, columns, _ = given_table
    frame = pd.DataFrame({f"c{place}": pd.array(own, "Int64") for place, own in enumerate(columns)})
    links = [each for each in find_links(frame, np.array(people), k) if each.how in ("alone", "across")]
    joined = []
    for link in links:
        own = [columns[int(name[1:])] for name in link.columns]
        common = set.intersection(*map(set, own)) - {None}
        groups = [[row for row in range(len(people)) if value in [each[row] for each in own]] for value in common]
        joined += [rows for rows in groups if len({people[row] for row in rows}) < k]
    found, expected = groups_of(frame, links, np.array(people), k), reference.components(len(people), joined)
    assert len(set(zip(found.tolist(), expected, strict=True))) == len(set(found)) == len(set(expected))


def visits(n_people=500, n_each=6, seed=0):
    """Visits of people with numbers of several kinds; what links is named so."""
    random = np.random.default_rng(seed)
    who = np.repeat(np.arange(n_people), n_each)
    n = len(who)
    place, number = np.tile(np.arange(n_each), n_people), random.permutation(n_people)[who]
    visit = random.permutation(10 * n)[:n]
    previous = pd.Series(visit).groupby(who).shift()
    table = pd.DataFrame(
        {
            "pseudonym": [f"u{own:05}" for own in random.permutation(10 * n_people)[:n_people][who]],
            "two_spellings": [f"U{own}" if last else f" u{own}" for own, last in zip(number, place % 2, strict=True)],
            "serial": number * 100 + place,
            "suffix": [f"P{own}-{last}" for own, last in zip(number, place, strict=True)],
            "prefix": [f"{last}-P{own}" for own, last in zip(number, place, strict=True)],
            "half": number // 25,
            "other_half": [f"b{own % 25}" for own in number],
            "visit": visit,
            "previous": [None if pd.isna(own) else f"{own:08.0f}" for own in previous],
            "cost": random.lognormal(4, 1, n).round(2),
            "row": random.permutation(n),
            "clerk": random.integers(0, 40, n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 50, n), unit="D"),
        }
    )
    order = random.permutation(n)
    return table.iloc[order].reset_index(drop=True), who[order]


@pytest.mark.parametrize(
    ("columns", "how"),
    [
        (["pseudonym"], "alone"),
        (["two_spellings"], "alone"),
        (["serial"], "in order"),
        (["suffix"], "in order"),
        (["prefix"], "in order"),
        (["half", "other_half"], "together"),
        (["visit", "previous"], "across"),
    ],
)
@pytest.mark.parametrize("k", [2, 3, 11, 20])
def test_a_key_links_whole_cut_in_two_with_a_suffix_or_across_columns(columns, how, k):
    table, person = visits()
    found = [each for each in find_links(table[[*columns, "cost", "clerk"]], person, k) if each.is_found]
    assert [(each.columns, each.how) for each in found] == [(tuple(columns), how)]
    assert found[0].share > 0.9
    assert found[0].precision > 0.8


@pytest.mark.parametrize("k", [2, 3, 5, 11, 20])
@pytest.mark.parametrize("n_people", [10, 40, 300])
def test_what_is_not_of_people_links_nothing(n_people, k):
    for seed in range(10):
        table, person = visits(n_people, seed=seed)
        free = table[["cost", "row", "clerk", "day", "visit"]]
        assert [each for each in find_links(free, person, k) if each.is_found] == []


def test_missing_and_wrong_cells_hide_no_link():
    table, person = visits()
    random = np.random.default_rng(1)
    table.loc[random.random(len(table)) < 0.5, "pseudonym"] = None
    wrong = random.random(len(table)) < 0.1
    table["half"] = np.where(wrong, random.integers(0, 20, len(table)), table["half"])
    found = find_links(table[["pseudonym", "half", "other_half"]], person, K)
    assert {each.columns for each in found if each.is_found} == {("pseudonym",), ("half", "other_half")}


def test_unknown_people_are_never_one_person():
    table, person = visits()
    unknown = np.random.default_rng(2).random(len(table)) < 0.3
    table["ward"] = np.where(unknown, "unknown", "known")
    person = np.where(unknown, -1, person)
    found = find_links(table[["ward", "cost"]], person, K)
    assert not any(each.is_found for each in found)


def test_a_person_with_most_of_the_rows_makes_no_measure_a_link():
    random = np.random.default_rng(3)
    person = np.concatenate([np.zeros(6000, int), np.arange(1, 2001).repeat(2)])
    cost = random.integers(0, 20_000, len(person))
    found = find_links(pd.DataFrame({"cost": cost, "key": person}), person, K)
    assert [each.columns for each in found if each.is_found] == [("key",)]


def test_a_vague_link_that_is_wanted_is_also_tried_with_the_others():
    table, person = visits()
    table["household"] = person // 3
    table["born"] = 1940 + (person * 7) % 50
    frame = table[["household", "born", "cost"]]
    assert [each.columns for each in find_links(frame, person, K) if each.is_found] == [("household",)]
    wanted = [each for each in find_links(frame, person, K, ["household"]) if each.is_found]
    assert [(each.columns, each.how) for each in wanted] == [
        (("household",), "alone"),
        (("household", "born"), "together"),
    ]
    assert wanted[0].precision < 0.5
    assert wanted[1].precision > 0.99
    assert pd.Series(person).groupby(groups_of(frame, wanted[1:], person, K)).nunique().max() == 1
    assert pd.Series(person).groupby(groups_of(frame, wanted, person, K)).nunique().max() == 3
    # The last household has two people, whom it links even among three.
    assert len(set(groups_of(frame, wanted, person, 3))) == len(set(person)) - 1


def test_groups_across_columns_are_chains_of_visits():
    table, person = visits()
    frame = table[["visit", "previous"]]
    link = next(each for each in find_links(frame, person, K) if each.how == "across")
    groups = groups_of(frame, [link], person, K)
    assert len(set(groups)) == len(set(person)) == len(set(zip(groups.tolist(), person.tolist(), strict=True)))


@pytest.mark.parametrize("n_rows", [0, 1, 5])
def test_tables_of_which_no_person_has_two_rows_have_no_links(n_rows):
    assert find_links(pd.DataFrame({"a": range(n_rows)}), np.arange(n_rows), K) == ()


@given(small_tables(), st.integers(2, 6), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_a_stored_table_has_the_links_of_its_frame_whatever_people_are_called(tmp_path_factory, given_table, k, data):
    people, columns, texts = given_table
    frame = pd.DataFrame({name: pd.array(own, "Int64") for name, own in zip("abc", columns, strict=False)})
    frame["whole"] = np.array(people) % 3
    frame["t"] = pd.Series(texts[0] if texts else [None] * len(people), dtype="str")
    frame["c"] = frame["t"].astype("category")
    person = np.array([*data.draw(st.permutations(people[:-1])), -1])
    found = find_links(frame, person, k)
    factor, dtype = data.draw(st.sampled_from([(1, np.int32), (1, np.int64), (3, np.int32), (2**40, np.int64)]))
    # As pandas returns the values of a column.
    called = pd.Series(np.where(person < 0, -factor, person * factor).astype(dtype)).to_numpy()
    middle = data.draw(st.integers(1, len(frame) - 1))
    stored = store([frame.iloc[:middle], frame.iloc[middle:]], tmp_path_factory.getbasetemp())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded_columns, "FEWEST_REPEATED", data.draw(st.sampled_from([0, 4])))
        assert find_links(stored, called, k) == found
    assert groups_of(stored, found, called, k).tolist() == groups_of(frame, found, person, k).tolist()


def test_people_may_be_unsigned_numbers():
    frame, person = pd.DataFrame({"a": [1, 1, 2, 2, 3]}), np.array([0, 0, 1, 1, 2])
    for dtype in (np.uint8, np.uint64):
        assert find_links(frame, person.astype(dtype), 2) == find_links(frame, person, 2) != ()
