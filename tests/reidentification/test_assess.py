"""Candidate sets are those of the definition, figures follow from them, and wrong descriptions are refused."""

import json
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import (
    BoundedNoise,
    Exact,
    HierarchyMapping,
    Interval,
    Label,
    RankWindow,
    ReleaseModel,
    Suppressed,
    ValueSet,
)
from privacy_assets.errors import InvalidSettingError, InvalidTableError, MaskError
from privacy_assets.reidentification import candidate_index
from privacy_assets.reidentification.assess import ReidentificationAssessment, assess_reidentification
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.record_keys import match_keys
from privacy_assets.storage.fingerprint import fingerprint
from tests.anonymization.test_anonymize import SECRETS, is_missing, lies_inside, options, plan, tables
from tests.examples import examples
from tests.mixed_tables import through_parquet
from tests.reference import reidentification as reference


def predicates_of(model, names):
    """The masks as predicates of (released row, original value)."""

    def predicate(name):
        mask = model.masks[name]
        if isinstance(mask, Suppressed):
            return lambda row, value: True
        if isinstance(mask, Exact):
            return lambda row, value: (is_missing(value) and is_missing(row[mask.column])) or value == row[mask.column]
        if isinstance(mask, Interval):
            return lambda row, value: (
                (is_missing(value) or not is_missing(row[mask.low]))
                and lies_inside(value, {mask.missing: False, **row}, name, mask)
            )
        return lambda row, value: lies_inside(value, row, name, mask)

    return {name: predicate(name) for name in names}


def anonymized(drawn, chosen):
    table, names = drawn
    try:
        return table, names, plan(table, names, **chosen)
    except InvalidSettingError:
        return None


@given(tables(max_rows=15), options(), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_candidates_of_what_anonymize_released_are_those_of_its_masks(drawn, chosen, data):
    made = anonymized(drawn, chosen)
    if made is None:
        return
    table, names, found = made
    index = CandidateIndex.of_anonymization(table, found, n_threads=1)
    known = data.draw(st.lists(st.sampled_from([*names, *SECRETS]), max_size=4, unique=True))
    originals = table.astype(object).to_dict("records")
    released = found.table.astype(object).to_dict("records")
    predicates = predicates_of(found.model, known)
    sizes = index.sizes(known)
    truth = found.members["row"].tolist()
    for i, row in enumerate(released):
        own = reference.candidates(row, originals, predicates, known)
        assert truth[i] in own
        if not chosen["subject"]:
            assert index.members(i, known).tolist() == own
            assert sizes[i] == len(own)
        people = {table["person"].iloc[x] for x in own}
        if chosen["subject"]:
            assert sizes[i] == len(people) == len(index.members(i, known))
            assert {table["person"].iloc[x] for x in index.members(i, known)} == people
    # Members of a class are candidates, so that joint anonymity bounds the number of candidates.
    assert index.sizes(names).min() >= chosen["k"]


@given(tables(max_rows=20), options(), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_nonspecificity_never_rises_with_another_known_column_and_storage_changes_nothing(drawn, chosen, data):
    made = anonymized(drawn, chosen)
    if made is None:
        return
    table, names, found = made
    index = CandidateIndex.of_anonymization(table, found, n_threads=1)
    known = data.draw(st.lists(st.sampled_from([*names, *SECRETS]), min_size=1, unique=True))
    artifact = found.to_artifact()
    frames = {name: through_parquet(frame) for name, frame in artifact.frames.items()}
    # Parquet keeps no categories of numbers and no integers beyond 64 bits.
    kept = [name for name in table.columns if not name.startswith(("graded", "huge"))]
    original = table.assign(**through_parquet(table[kept]))
    stored = CandidateIndex.of_anonymization(original, Anonymization.from_artifact(replace(artifact, frames=frames)))
    assert stored.sizes(known).tolist() == index.sizes(known).tolist()
    assert (index.sizes(known) <= index.sizes(known[:-1])).all()
    i = data.draw(st.integers(0, len(found.table) - 1))
    belief, less = index.belief(i, known), index.belief(i, known[:-1])
    assert belief.nonspecificity() <= less.nonspecificity()
    assert np.isclose(belief.nonspecificity(), np.log(index.sizes(known)[i]))


@given(st.data(), st.integers(1, 15), st.booleans())
@settings(max_examples=examples(60), deadline=None)
def test_the_group_by_and_the_scan_agree_where_both_apply(data, n_rows, has_people):
    """Global recoding: each value belongs to one set."""
    columns, masks, names = {}, {}, [f"q{i}" for i in range(data.draw(st.integers(1, 3)))]
    for name in names:
        group_of = data.draw(st.lists(st.integers(0, 3), min_size=7, max_size=7))
        columns[name] = data.draw(st.lists(st.integers(0, 6), min_size=n_rows, max_size=n_rows))
        sets = {g: json.dumps([str(v) for v in range(7) if group_of[v] == g]) for g in group_of}
        masks[name] = (group_of, [sets[group_of[v]] for v in columns[name]])
    original = pd.DataFrame(
        {**columns, "person": data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))}
    )
    released = pd.DataFrame({name: texts for name, (_, texts) in masks.items()})
    model = ReleaseModel({name: ValueSet(name) for name in names})
    subject = "person" if has_people else None
    index = CandidateIndex(model, original, released, range(n_rows), subject=subject, n_threads=1)
    masked = index.masked(names)
    assert all(column.set_of_code is not None for column in masked)
    found = index._sizes_by_group(masked).tolist()
    assert found == index._sizes_by_scan(masked, None).tolist() == index.sizes(names).tolist()
    groups = [tuple(masks[name][0][columns[name][i]] for name in names) for i in range(n_rows)]
    own = [[x for x in range(n_rows) if groups[x] == groups[i]] for i in range(n_rows)]
    assert found == [len({original["person"][x] for x in each} if has_people else each) for each in own]


PEOPLE = pd.DataFrame(
    {
        "id": list("abcdefgh"),
        "age": [21, 23, 25, 31, 34, 38, 52, 57],
        "zip": ["81667", "81668", "81675", "81925", "81931", "81925", "80331", "80332"],
        "sex": list("FMFMFMFM"),
        "income": [10.5, 11.0, 12.25, 13.0, 20.0, 21.0, 22.0, None],
    }
)


def release(**columns):
    return pd.DataFrame({"id": PEOPLE["id"], **columns})


def sizes(masks, released, known=None, **options):
    index = CandidateIndex(ReleaseModel(masks), PEOPLE, released, "id", **options)
    return index.sizes(list(masks) if known is None else known).tolist()


AGE_BANDS = ["20-29"] * 3 + ["[30, 40["] * 3 + [">=50", "50+"]


@pytest.mark.parametrize(
    ("name", "labels", "expected"),
    [
        ("age", AGE_BANDS, [3, 3, 3, 3, 3, 3, 2, 2]),
        ("age", ["(20,30]"] * 3 + ["[30; 40)"] * 3 + ["{52, 57}", "57"], [3, 3, 3, 3, 3, 3, 2, 1]),
        ("age", ["*"] * 7 + [57], [8] * 7 + [1]),
        ("age", ["<=25"] * 3 + ["]30, Inf)"] * 4 + [None], [3, 3, 3, 5, 5, 5, 5, 8]),
        ("zip", ["8166*"] * 2 + ["816**"] + ["819**"] * 3 + ["*"] * 2, [2, 2, 3, 3, 3, 3, 8, 8]),
        (
            "zip",
            ["{81667, 81668}"] * 2 + ["81675"] + ["81925"] * 1 + ["8193*"] + ["81925", "*", "*"],
            [2, 2, 1, 2, 1, 2, 8, 8],
        ),
        ("income", ["[10, 13)"] * 3 + ["[13.0, 21.5]"] * 3 + ["22 or missing", "missing"], [3, 3, 3, 3, 3, 3, 2, 1]),
        ("sex", ["{F, M}", "M", '"F"', "*", "{F, M}", "M", "F", "M"], [8, 4, 4, 8, 8, 4, 4, 4]),
    ],
)
def test_labels_of_other_programs_are_read(name, labels, expected):
    assert sizes({name: Label(name)}, release(**{name: labels})) == expected


def test_labels_of_times_and_ordered_categories_are_read():
    days = pd.to_datetime(["2020-01-05", "2020-02-01", "2021-03-04"])
    original = pd.DataFrame(
        {"day": days, "grade": pd.Categorical(["low", "mid", "high"], ["low", "mid", "high"], ordered=True)}
    )
    released = pd.DataFrame(
        {"day": ["[2020-01-01, 2020-12-31]"] * 2 + ["2021-03-04"], "grade": ["[low, mid]"] * 2 + ["high"]}
    )
    index = CandidateIndex(ReleaseModel.from_labels(["day", "grade"]), original, released, [0, 1, 2])
    assert index.sizes(["day"]).tolist() == index.sizes(["grade"]).tolist() == [2, 2, 1]
    aware = original.assign(day=days.tz_localize("Europe/Berlin"))
    assert CandidateIndex(ReleaseModel.from_labels(["day", "grade"]), aware, released, [0, 1, 2]).sizes(["day"])[0] == 2


def test_floats_are_exact_and_those_with_fewer_digits_are_found_all_the_same():
    original = pd.DataFrame({"dose": [0.1 + 0.2, 0.5, 3e-12, 4e-12]})
    tens = Hierarchy.intervals([1.0, 10.0], origin=0.0)
    cases = [
        (Exact("dose"), [0.1 + 0.2, 0.5, 3e-12, 4e-12], [1, 1, 1, 1]),
        (Exact("dose"), [0.3, 0.5, 3e-12, 4e-12], [1, 1, 1, 1]),
        (Label("dose"), ["0.3", "0.5", "[0, 3.5e-12)", "[0, 4e-12]"], [1, 1, 1, 2]),
        (BoundedNoise("dose", 0.1), [0.4, 0.4, 0.0, 0.0], [2, 2, 2, 2]),
        (HierarchyMapping("dose", "tens", 1), ["[0.0, 1.0)"] * 4, [4, 4, 4, 4]),
    ]
    for mask, released, expected in cases:
        model, table = ReleaseModel({"dose": mask}), pd.DataFrame({"dose": released})
        index = CandidateIndex(model, original, table, range(4), hierarchies={"tens": tens})
        assert index.sizes(["dose"]).tolist() == expected


def test_far_dates_in_another_unit_of_time_are_ends_like_others():
    original = pd.DataFrame({"day": pd.Series(["1700-01-01", "2000-01-01", "2200-01-01"], dtype="M8[ns]")})
    ends = [["0001-01-01", "1999-12-31", "2200-01-01"], ["9999-01-01", "2100-01-01", "2200-01-01"]]
    released = pd.DataFrame({name: pd.Series(days, dtype="M8[s]") for name, days in zip("ab", ends, strict=True)})
    index = CandidateIndex(ReleaseModel({"day": Interval("a", "b", True)}), original, released, [0, 1, 2])
    assert index.sizes(["day"]).tolist() == [3, 1, 1]


@pytest.mark.parametrize("kind", [int, float, str])
def test_ordered_categories_that_are_numbers_are_read_as_such(kind):
    dtype = pd.CategoricalDtype([kind(1), kind(3), kind(2)], ordered=True)
    original = pd.DataFrame({"grade": pd.Series([kind(1), kind(3), kind(2)], dtype=dtype)})
    for released in ([kind(1), kind(3), kind(2)], original["grade"], [str(kind(v)) for v in (1, 3, 2)]):
        table = pd.DataFrame({"grade": released})
        for mask in (Exact("grade"), Label("grade")):
            assert CandidateIndex(ReleaseModel({"grade": mask}), original, table, range(3)).sizes(["grade"])[1] == 1
    ends = pd.DataFrame({"low": [1, 1, 2], "high": [3, 3, 2]})
    index = CandidateIndex(ReleaseModel({"grade": Interval("low", "high", True)}), original, ends.map(kind), range(3))
    assert index.sizes(["grade"]).tolist() == [2, 2, 1]


def test_what_anonymize_writes_as_text_can_be_read_back():
    """The labels alone, as a CSV file has them, tell what the typed columns tell."""
    table = PEOPLE.assign(note=["a, b", "missing", "{x}", "*", '"q"', "81**", "", None])
    names = ["age", "zip", "sex", "income", "note"]
    for k in (1, 2, 3):
        found = anonymize(table, quasi_identifiers=names, k=k, direct_identifiers=["id"])
        typed = CandidateIndex.of_anonymization(table, found)
        model = ReleaseModel({name: Label(name, missing_means="missing") for name in names})
        by_label = CandidateIndex(model, table, found.table[names].astype(str), found.members["row"].to_numpy())
        for size in (1, 2, 5):
            for known in combinations(names, size):
                assert by_label.sizes(known).tolist() == typed.sizes(known).tolist(), (k, known)


def test_noise_and_ranks_and_hierarchies_leave_what_they_can_have_come_from():
    noisy = release(age=PEOPLE["age"] + [2, -1, 0, 2, -2, 0, 1, 1])
    assert sizes({"age": BoundedNoise("age", 2)}, noisy) == [
        sum(abs(x - y) <= 2 for x in PEOPLE["age"]) for y in noisy["age"]
    ]
    income = release(income=[10.7, 10.8, 12.05, 13.2, 19.8, 21.2, 22.2, None])
    assert sizes({"income": BoundedNoise("income", 0.2)}, income) == [1, 1, 1, 1, 1, 1, 1, 1]
    swapped = release(age=[23, 21, 31, 25, 38, 34, 57, 52])
    assert sizes({"age": RankWindow("age", 13)}, swapped) == [3, 2, 3, 3, 3, 3, 2, 3]
    assert sizes({"age": RankWindow("age", 100)}, swapped) == [8] * 8
    mapped = release(zip=["816*", "81667"[:4] + "*", "*", "819*", "8193*", "819*", "80331", "803*"])
    hierarchies = {"zips": Hierarchy.prefixes([4, 3])}
    assert sizes({"zip": HierarchyMapping("zip", "zips")}, mapped, hierarchies=hierarchies) == [3, 2, 8, 3, 1, 3, 1, 2]
    third = release(zip=[text[:3] + "*" for text in PEOPLE["zip"]])
    assert sizes({"zip": HierarchyMapping("zip", "zips", 2)}, third, hierarchies=hierarchies) == [
        3,
        3,
        3,
        3,
        3,
        3,
        2,
        2,
    ]


def test_ends_of_intervals_are_rounded_like_the_originals():
    original = pd.DataFrame({"x": [1 / 3, 2 / 3, 1.0]})
    released = pd.DataFrame({"low": [1 / 3, 2 / 3, 1.0], "high": [1 / 3, 2 / 3, 1.0]})
    index = CandidateIndex(ReleaseModel({"x": Interval("low", "high", True)}), original, released, range(3))
    assert index.sizes(["x"]).tolist() == [1, 1, 1]
    labels = pd.DataFrame({"x": [f"[{1 / 3}, {2 / 3}]"] * 2 + ["1"]})
    assert CandidateIndex(ReleaseModel.from_labels(["x"]), original, labels, range(3)).sizes(["x"]).tolist() == [
        2,
        2,
        1,
    ]


def test_equal_ranks_count_for_all_of_them():
    original = pd.DataFrame({"age": [1, 2, 2, 2, 3, 9]})
    index = CandidateIndex(
        ReleaseModel({"age": RankWindow("age", 17)}), original, pd.DataFrame({"age": [2, 3]}), [0, 4]
    )
    # Ranks 0, 1 to 3, 4, 5; one rank away from 2 are 1 and 3, and all of 2 are one rank away from 3.
    assert index.sizes(["age"]).tolist() == [5, 5]


def test_missing_values_are_nodes_of_hierarchies():
    original = pd.DataFrame({"age": [20, 21, 39, None], "town": ["A", "B", "C", None]})
    released = pd.DataFrame({"age": ["[20, 29]", "21", "*", "missing"], "town": ["north", "B", "*", "missing"]})
    towns = Hierarchy.from_mapping({"north": ["A", "B"], "south": ["C"]})
    model = ReleaseModel({"age": HierarchyMapping("age", "ages"), "town": HierarchyMapping("town", "towns")})
    hierarchies = {"ages": Hierarchy.intervals([10, 40]), "towns": towns}
    index = CandidateIndex(model, original, released, range(4), hierarchies=hierarchies)
    assert index.sizes(["age"]).tolist() == index.sizes(["town"]).tolist() == [2, 1, 4, 1]


def test_times_of_different_units_are_compared_as_times():
    """In nanoseconds the year 9999 lies before 2020."""
    days = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"])
    original = pd.DataFrame({"day": days.astype("datetime64[ns]")})
    released = pd.DataFrame(
        {
            "low": pd.Series(["1000-01-01", "2020-01-02", "2020-01-02"], dtype="datetime64[us]"),
            "high": pd.Series(["9999-12-31", "2020-01-02", "9999-12-31"], dtype="datetime64[us]"),
        }
    )
    model = ReleaseModel({"day": Interval("low", "high", True)})
    assert CandidateIndex(model, original, released, [0, 1, 2]).sizes(["day"]).tolist() == [3, 1, 2]
    coarse = original.astype("datetime64[s]")
    # In NumPy, because pandas 2 makes nanoseconds of far times when it adds to them.
    step = np.timedelta64(1, "us")
    fine = pd.DataFrame({"low": released["low"].to_numpy()[:1] + step, "high": released["high"].to_numpy()[:1] - step})
    assert CandidateIndex(model, coarse, fine, [0]).sizes(["day"]).tolist() == [3]
    same = pd.DataFrame({"day": days.astype("datetime64[us]")})
    assert CandidateIndex(ReleaseModel.from_labels([], exact=["day"]), original, same, [0, 1, 2]).sizes(["day"])[0] == 1


def test_people_are_counted_where_one_has_several_records():
    original = pd.DataFrame({"person": [1, 1, 2, 3, None], "age": [20, 21, 22, 50, 51]})
    released = pd.DataFrame({"age": ["20-29", "20-29", "20-29", "50-59", "50-59"]})
    index = CandidateIndex(ReleaseModel.from_labels(["age"]), original, released, range(5), subject="person")
    assert index.sizes(["age"]).tolist() == [2, 2, 2, 2, 2]
    assert index.sizes([]).tolist() == [4] * 5
    assert index.members(1, ["age"]).tolist() == [0, 2]


def test_the_assessment_names_records_at_risk_and_the_columns_that_single_them_out():
    released = release(age=AGE_BANDS, sex=PEOPLE["sex"], zip=[text[:3] + "**" for text in PEOPLE["zip"]])
    model = ReleaseModel.from_labels(["age", "zip"], exact=["sex"])
    found = assess_reidentification(PEOPLE, released, model, truth="id", k=2)
    assert found.scores["max_reidentification_probability"] == 1.0
    assert found.scores["share_of_singletons"] == found.scores["share_below_k"] == 4 / 8
    assert found.scores["mean_reidentification_probability"] == pytest.approx((4 + 4 * 0.5) / 8)
    assert found.scores["fewest_candidates"] == 1
    assert found.scores["n_records_at_risk"] == len(found.records) == 4
    assert found.records["released"].tolist() == found.records["original"].tolist() == [1, 4, 6, 7]
    assert set(found.records["known"]) == {("age", "sex")}
    assert found.curve["known"].tolist() == [
        ("age",), ("zip",), ("sex",), ("age", "zip"), ("age", "sex"), ("zip", "sex"), ("age", "zip", "sex")
    ]  # fmt: skip
    assert found.figures(["sex", "age"])["share_of_singletons"] == 0.5
    assert found.figures(["zip"])["mean_reidentification_probability"] == pytest.approx(3 / 8)
    with pytest.raises(InvalidSettingError, match=r"\['id'\] were not assessed"):
        found.figures(["id"])


def test_scores_are_the_worst_over_the_sets_that_are_named():
    released = release(age=AGE_BANDS, sex=PEOPLE["sex"], zip=[text[:3] + "**" for text in PEOPLE["zip"]])
    model = ReleaseModel.from_labels(["age", "zip"], exact=["sex"])
    options = {"truth": "id", "quasi_identifiers": ["age", "zip"], "max_known": 1}
    found = assess_reidentification(PEOPLE, released, model, known=[["zip"], ["sex", "age"]], **options)
    assert found.scores["share_of_singletons"] == found.figures(["age", "sex"])["share_of_singletons"] == 0.5
    assert found.scores["share_below_k"] is None and found.figures(["zip"])["share_below_k"] is None
    assert found.settings["known"] == [["zip"], ["sex", "age"]]
    assert found.curve["chosen_as"].tolist() == ["subset", "subset", "all", "named"]


def test_a_greedy_chain_leads_to_all_columns():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({f"q{i}": rng.integers(0, 2 + i, 200) for i in range(6)})
    found = assess_reidentification(table, anonymize(table, quasi_identifiers=list(table), k=3), max_known=2)
    by_size = found.curve.groupby("n_known").size()
    assert by_size.to_dict() == {1: 6, 2: 15, 3: 4, 4: 3, 5: 2, 6: 1}
    worst = found.curve.loc[found.curve.groupby("n_known")["mean_reidentification_probability"].idxmax(), "known"]
    assert all(set(smaller) < set(larger) for smaller, larger in pairwise(worst[1:]))
    assert worst.iloc[-1] == tuple(table)
    progress = []
    again = assess_reidentification(
        table, anonymize(table, quasi_identifiers=list(table), k=3), max_known=2, progress=progress.append
    )
    assert again == found
    read = [each.n_done for each in progress if each.n_total == 0]
    assert read == list(range(1, 7)) and progress[5].n_total == 0
    progress = progress[6:]
    done = [each.n_done for each in progress]
    assert done == sorted(done) and done[0] == 0 and done[-1] == len(found.curve)
    assert {each.n_total for each in progress} == {len(found.curve) + 1}


def test_progress_is_reported_while_the_candidates_of_all_columns_are_counted(monkeypatch):
    count = candidate_index.count_candidates
    seen = []

    def counting(points, boxes, n_codes, n_threads, on_wait):
        seen.append("counting")
        on_wait()
        seen.append("counted")
        return count(points, boxes, n_codes, n_threads, on_wait)

    monkeypatch.setattr(candidate_index, "count_candidates", counting)
    found = anonymize(PEOPLE, quasi_identifiers=["age", "zip"], k=2)
    assess_reidentification(PEOPLE, found, progress=lambda each: seen.append(each.n_total))
    first = seen.index("counting")
    assert seen[first + 1 : first + 3] == [4, "counted"]


def test_an_assessment_returns_from_its_artifact_and_holds_no_cell():
    table = PEOPLE.assign(zip=[f"secret {i % 3}" for i in range(8)])
    found = assess_reidentification(
        table, anonymize(table, quasi_identifiers=["age", "zip", "sex"], k=2, direct_identifiers=["id"])
    )
    released = release(age=AGE_BANDS, sex=PEOPLE["sex"])
    risky = assess_reidentification(PEOPLE, released, ReleaseModel.from_labels(["age"], exact=["sex"]), truth="id")
    assert len(risky.records) and not len(found.records)
    for each in (found, risky):
        artifact = each.to_artifact()
        header = json.loads(json.dumps(artifact.header, allow_nan=False))
        frames = {name: through_parquet(frame) for name, frame in artifact.frames.items()}
        again = ReidentificationAssessment.from_artifact(replace(artifact, header=header, frames=frames))
        assert again == each
        assert {name: fingerprint(frame) for name, frame in frames.items()} == {
            name: fingerprint(frame) for name, frame in artifact.frames.items()
        }
    text = json.dumps(artifact.header) + found.curve.to_csv() + found.records.to_csv()
    assert "secret" not in text
    assert again != found and found != "something else"


def refused(error, match, call, *arguments, **options):
    with pytest.raises(error, match=match) as caught:
        call(*arguments, **options)
    assert not any(f"{value}" in str(caught.value) for value in ["81667", "secret", "20.5", "Paris"])


@pytest.mark.parametrize(
    ("masks", "columns", "match"),
    [
        ({"age": Label("age")}, {"age": ["secret"] * 6 + [21, 21]}, r"'age': 1 of its released values \(in 6 rows\)"),
        ({"age": Label("age")}, {"age": ["[secret, 3]"] * 8}, "neither a value of the original nor a label"),
        ({"zip": Label("zip")}, {"zip": ["[81667, 81668]"] * 8}, "neither a value of the original nor a label"),
        ({"zip": Label("zip")}, {"zip": ["9*"] * 8}, "neither a value of the original nor a label"),
        ({"age": BoundedNoise("age", 2)}, {"age": ["secret"] * 8}, "number values in the original and text in the rel"),
        ({"zip": ValueSet("zip")}, {"zip": ["secret"] * 8}, "are not sets. Expected JSON arrays of text"),
        ({"zip": ValueSet("zip")}, {"zip": ['["81667"]'] * 7 + [None]}, r"1 of its released values \(in 1 rows\)"),
        ({"zip": ValueSet("zip")}, {"zip": ["[81667]"] * 8}, "are not sets"),
        ({"age": RankWindow("age", 3)}, {"age": [20.5] * 8}, "are not original values"),
        ({"age": Interval("low", "high", True)}, {"low": [1] * 8, "high": [99] * 7 + [None]}, "one end of an interval"),
        ({"age": Exact("age")}, {"sex": ["F"] * 8}, r"lacks the columns \['age'\], which masks read"),
        ({"age": Exact("age")}, {"age": PEOPLE["age"], "town": ["Paris"] * 8}, r"columns \['town'\] have no mask"),
        ({"town": Exact("town")}, {"town": ["Paris"] * 8}, r"The original lacks the columns \['town'\]"),
        ({}, {"age": PEOPLE["age"]}, "no mask"),
    ],
)  # fmt: skip
def test_releases_that_their_masks_do_not_describe_are_refused(masks, columns, match):
    refused((InvalidTableError, InvalidSettingError), match, sizes, masks, release(**columns))


@pytest.mark.parametrize(
    ("mask", "match"),
    [
        (BoundedNoise("age", -1), "width of its noise is -1"),
        (BoundedNoise("age", float("nan")), "width of its noise is nan"),
        (RankWindow("age", 101), "101 percent"),
        (HierarchyMapping("age", "ages"), "hierarchy 'ages', which is missing"),
        (Label("age", missing_means="what"), "missing_means is 'what'"),
    ],
)
def test_masks_out_of_their_range_are_refused(mask, match):
    refused(InvalidSettingError, match, sizes, {"age": mask}, release(age=PEOPLE["age"]))


def test_a_wrong_description_is_an_error_not_a_low_risk():
    noisy = release(age=PEOPLE["age"] + [2, -1, 0, 2, -2, 0, 1, 1], sex=PEOPLE["sex"])
    masks = {"age": BoundedNoise("age", 1), "sex": Exact("sex")}
    refused(MaskError, r"by column: \{'age': 3\} of 8", sizes, masks, noisy)
    refused(MaskError, r"by column: \{'age': 8\} of 8", sizes, {"age": Exact("age")}, release(age=PEOPLE["age"] + 0.5))
    shuffled = release(sex=PEOPLE["sex"])
    refused(
        MaskError, r"\{'sex': 2\}", CandidateIndex, ReleaseModel({"sex": Exact("sex")}), PEOPLE, shuffled[["sex"]],
        [1, 0, 2, 3, 4, 5, 6, 7],
    )  # fmt: skip


def test_a_label_without_original_is_caught_with_the_truth():
    """An interval in which no original lies can be read, but not be true."""
    refused(MaskError, r"\{'age': 8\}", sizes, {"age": Label("age")}, release(age=["[26, 30]"] * 8))


@pytest.mark.parametrize(
    ("truth", "match"),
    [
        ([0, 1], r"`truth` has the shape \(2,\)"),
        ([0.0] * 8, "dtype float64"),
        ([0] * 7 + [8], "1 positions outside"),
        ("name", r"key column 'name' is not in: \['release', 'original'\]"),
        ("sex", "of the release has 0 missing and 6 repeated"),
    ],
)
def test_a_truth_that_names_no_originals_is_refused(truth, match):
    released = release(sex=PEOPLE["sex"], age=PEOPLE["age"])
    model = ReleaseModel.from_labels([], exact=["sex", "age", "id"])
    refused((InvalidSettingError, InvalidTableError), match, CandidateIndex, model, PEOPLE, released, truth)


def test_keys_without_a_partner_are_refused():
    released = release(sex=PEOPLE["sex"]).assign(id=["a", "x", "y", "d", "e", "f", "g", None])
    refused(InvalidTableError, "1 missing and 0 repeated", sizes, {"sex": Exact("sex")}, released)
    refused(InvalidTableError, "2 of 7 keys 'id' of the release", sizes, {"sex": Exact("sex")}, released[:7])


def test_keys_are_matched_in_any_spelling_unless_it_is_ambiguous():
    keys = pd.DataFrame({"id": ["P-1", "p-2", "3"]})
    written = pd.DataFrame({"id": ["03", "p\u20111 ", "P-2"]})
    assert match_keys("id", written, "release", keys, "original").tolist() == [2, 0, 1]
    ambiguous = pd.DataFrame({"id": ["P-1", "p-1", "3"]})
    assert match_keys("id", ambiguous, "release", ambiguous, "original").tolist() == [0, 1, 2]
    refused(InvalidTableError, "3 of 3 keys 'id'", match_keys, "id", written, "release", ambiguous, "original")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"known": [["age", "height"]]}, r"does not describe: \['height'\]"),
        ({"known": ["age"]}, "a list of strings"),
        ({"known": []}, "known is empty"),
        ({"known": [[]]}, "has an empty set"),
        ({"max_known": 0}, "max_known is 0"),
        ({"quasi_identifiers": []}, "quasi_identifiers must be a non-empty list"),
        ({"quasi_identifiers": ["age", "age"]}, "distinct column names"),
        ({"k": 0}, "k is 0"),
        ({"truth": None}, r"\['truth'\] are missing"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"subject": "person"}, r"lacks the columns \['person'\]"),
    ],
)
def test_settings_out_of_their_range_are_refused(options, match):
    released = release(age=AGE_BANDS)
    model = ReleaseModel.from_labels(["age"])
    options = {"truth": "id", **options}
    refused(
        (InvalidSettingError, InvalidTableError), match, assess_reidentification, PEOPLE, released, model, **options
    )


def test_too_many_sets_are_refused():
    table = pd.DataFrame({f"q{i}": [0, 1] for i in range(40)})
    model = ReleaseModel.from_labels([], exact=list(table))
    refused(InvalidSettingError, "gives 10700 sets of 40", assess_reidentification, table, table, model, truth=[0, 1])
    assert len(assess_reidentification(table, table, model, truth=[0, 1], max_known=1).curve) > 40


def test_centres_of_classes_are_not_mistaken_for_nothing():
    found = anonymize(PEOPLE, quasi_identifiers=["age", "sex"], k=2, output="centroid", direct_identifiers=["id"])
    assert CandidateIndex.of_anonymization(PEOPLE, found).sizes(["age", "sex"]).tolist() == [8] * 8
    refused(InvalidSettingError, r"different values in \['age', 'sex'\]", assess_reidentification, PEOPLE, found)
    model = ReleaseModel.from_labels(["zip"], suppressed=["age", "id"])
    hidden = release(zip=[text[:3] + "**" for text in PEOPLE["zip"]], age="*").drop(columns="id")
    settings_ = {"truth": range(8), "quasi_identifiers": ["zip", "age"]}
    found = assess_reidentification(PEOPLE, hidden, model, **settings_)
    assert found.figures(["zip", "age"]) == found.figures(["zip"])


def test_tables_and_models_of_other_kinds_are_refused():
    model = ReleaseModel.from_labels([], exact=["sex"])
    refused(InvalidTableError, "original table is a list", CandidateIndex, model, [], PEOPLE[["sex"]], "id")
    refused(InvalidTableError, "released table has no rows", CandidateIndex, model, PEOPLE, PEOPLE[["sex"]][:0], [])
    refused(InvalidSettingError, "model is a dict", CandidateIndex, {}, PEOPLE, PEOPLE[["sex"]], range(8))
    found = anonymize(PEOPLE, quasi_identifiers=["age", "sex"], k=2)
    refused(InvalidSettingError, r"together with \['k'\]", assess_reidentification, PEOPLE, found, k=3)
    refused(InvalidTableError, "made from 8 rows, but the original has 5", assess_reidentification, PEOPLE[:5], found)
    index = CandidateIndex.of_anonymization(PEOPLE, found)
    refused(InvalidSettingError, "no released record 8", index.members, 8, ["age"])
    refused(InvalidSettingError, "`known` is a string", index.sizes, "age")


def test_models_return_from_json():
    masks = {
        "a": Label("a", "missing"), "b": BoundedNoise("b", 1.5), "c": RankWindow("c", 5), "d": Exact("d"),
        "e": HierarchyMapping("e", "h", 2), "f": ValueSet("f"), "g": Interval("l", "h", True), "h": Suppressed(),
    }  # fmt: skip
    model = ReleaseModel(masks)
    assert ReleaseModel.from_json(json.loads(json.dumps(model.to_json()))) == model
    with pytest.raises(InvalidSettingError, match=r"repeat these columns: \['a'\]"):
        ReleaseModel.from_labels(["a"], exact=["a"])
