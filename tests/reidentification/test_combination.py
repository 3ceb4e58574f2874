"""Several releases of the same people: what is a candidate in all of them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.masks import Pram, ReleaseModel, Suppressed
from privacy_assets.errors import ConflictError, InvalidSettingError, InvalidTableError
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.reidentification.candidate_index import CandidateIndex, combine
from privacy_assets.reidentification.other_releases import OtherRelease
from tests.examples import examples


@st.composite
def people(draw):
    n_rows = draw(st.integers(2, 14))
    column = st.lists(st.integers(0, 5), min_size=n_rows, max_size=n_rows)
    return pd.DataFrame(
        {"pid": [f"p{i}" for i in range(n_rows)], "age": draw(column), "zip": draw(column), "sex": draw(column)}
    )


@given(people(), st.integers(1, 2), st.integers(1, 2))
@settings(max_examples=examples(60), deadline=None)
def test_a_candidate_of_several_releases_is_one_in_each(table, k, other_k):
    first = anonymize(table, quasi_identifiers=["age", "sex"], k=k)
    second = anonymize(table, quasi_identifiers=["zip", "sex"], k=other_k, criterion="range")
    indexes = [CandidateIndex.of_anonymization(table, each, keys=["pid"], n_threads=1) for each in (first, second)]
    found = combine(indexes, "pid")
    row_of_key = {key: i for i, key in enumerate(second.table["pid"])}
    known = ["age", "zip", "sex"]
    sizes = found.sizes(known)
    for i, key in enumerate(first.table["pid"]):
        # The age of the second release and the zip of the first are as they were.
        own = set(indexes[0].members(i, known)) & set(indexes[1].members(row_of_key[key], known))
        assert set(found.members(i, known)) == own
        assert sizes[i] == len(own)
        assert found.truth[i] in own
    assert (sizes <= indexes[0].sizes(known)).all()


TABLE = pd.DataFrame(
    {
        "pid": [f"person {i}" for i in range(25)],
        "age": np.repeat([25, 35, 45, 55, 65], 5),
        "zip": np.tile([28000, 28100, 28200, 28300, 28400], 5),
    }
)


def views():
    """Two releases, each 5-anonymous, that share a key."""
    bands = [f"{age // 10 * 10}-{age // 10 * 10 + 9}" for age in TABLE["age"]]
    areas = [f"{zip_ // 100}**" for zip_ in TABLE["zip"]]
    return (
        pd.DataFrame({"pid": TABLE["pid"], "age": bands}),
        pd.DataFrame({"pid": TABLE["pid"], "zip": areas})[::-1],
    )


def other_release(table, **options):
    return OtherRelease(table, "pid", ReleaseModel.from_labels(["zip"]), "of 2019", **options)


def assess(ages, *others):
    model = ReleaseModel.from_labels(["age"])
    return assess_reidentification(TABLE, ages, model, truth="pid", k=5, other_releases=others)


def test_releases_that_pass_alone_fail_together():
    ages, areas = views()
    assert assess(ages).scores["max_reidentification_probability"] == 0.2
    together = assess(ages, other_release(areas))
    assert together.scores["share_of_singletons"] == together.scores["max_reidentification_probability"] == 1.0
    assert together.settings["known"] == [["age", "zip"]]
    assert together.settings["other_releases"][0]["name"] == "of 2019"
    assert together.figures(["zip"])["max_reidentification_probability"] == 0.2
    assert len(together.records) == 25


def test_releases_of_anonymize_can_be_combined():
    first = anonymize(TABLE, quasi_identifiers=["age"], k=5)
    second = anonymize(TABLE, quasi_identifiers=["zip"], k=5)
    found = assess_reidentification(TABLE, first, other_releases=[OtherRelease(second, "pid")])
    assert found.scores["share_of_singletons"] == 1.0
    alone = assess_reidentification(TABLE, first, known=[["age"]], other_releases=[OtherRelease(second, "pid")])
    assert alone.scores["max_reidentification_probability"] == 0.2


@pytest.mark.parametrize("names", [[], (), "zip", ["zip", "zip"]])
def test_another_release_cannot_be_made_to_count_for_nothing(names):
    """Without quasi-identifiers all its columns were left out, and those of a text were its letters."""
    _, areas = views()
    refused(
        InvalidSettingError, r"quasi_identifiers of the other release 'of 2019' must be a non-empty list",
        lambda: other_release(areas, quasi_identifiers=names),
    )  # fmt: skip


def released_as_centroids():
    """Another release that shows centers of classes: its model says of the zip that nothing is known."""
    made = anonymize(TABLE[["pid", "zip"]], quasi_identifiers=["zip"], k=5, output="centroid")
    assert made.table["zip"].nunique() > 1
    return made


@pytest.mark.parametrize(
    "other",
    [
        lambda made: OtherRelease(made, "pid", name="centers"),
        lambda made: OtherRelease(made.table, "pid", made.model, "centers", quasi_identifiers=["zip"]),
        lambda made: OtherRelease(made.table, "pid", made.model, "centers"),
        lambda made: OtherRelease(made.table, "pid", ReleaseModel({"zip": Suppressed()}), "centers"),
    ],
)
def test_another_release_that_shows_what_its_model_does_not_describe_is_refused(other):
    """Its columns counted as suppressed, so that it changed nothing, and what it shows was overlooked."""
    first = anonymize(TABLE[["pid", "age"]], quasi_identifiers=["age"], k=5)
    with pytest.raises(InvalidSettingError, match=r"release 'centers' shows different values in \['zip'\]"):
        assess_reidentification(TABLE, first, other_releases=[other(released_as_centroids())])


def test_what_an_attacker_is_said_not_to_know_of_another_release_may_be_centers():
    table = TABLE.assign(sex=np.tile(["F", "M", "F", "M", "F"], 5))
    made = anonymize(table, quasi_identifiers=["zip", "sex"], k=5)
    model = ReleaseModel({**made.model.masks, "zip": Suppressed()})
    shown = made.table.drop(columns=[name for name in made.table if name.startswith("zip_")])
    first = anonymize(table[["pid", "age"]], quasi_identifiers=["age"], k=5)
    other = OtherRelease(shown, "pid", model, quasi_identifiers=["sex"])
    assert assess_reidentification(table, first, other_releases=[other]).settings["known"] == [["age", "sex"]]
    with pytest.raises(InvalidSettingError, match=r"'other' shows different values in \['zip'\]"):
        assess_reidentification(table, first, known=[["age", "zip"]], other_releases=[other])


def refused(error, match, call, *arguments):
    with pytest.raises(error, match=match) as caught:
        call(*arguments)
    assert "person" not in str(caught.value)


def test_contradictory_views_are_refused():
    ages, areas = views()
    swapped = areas.assign(zip=areas["zip"].to_numpy()[[1, 0, *range(2, 25)]])
    refused(ConflictError, r"Release 'of 2019' contradicts .*\{'zip': 2\} of 25", assess, ages, other_release(swapped))
    indexes = [
        CandidateIndex(ReleaseModel.from_labels([name]), TABLE, view, truth, keys=["pid"])
        for name, view, truth in (("age", ages, np.arange(25)), ("zip", areas, np.arange(25)[::-1]))
    ]
    assert combine(indexes, "pid").sizes(["age", "zip"]).tolist() == [1] * 25
    renamed = areas.assign(pid=areas["pid"].to_numpy()[[0, 2, 1, *range(3, 25)]])
    other = CandidateIndex(ReleaseModel.from_labels(["zip"]), TABLE, renamed, np.arange(25)[::-1], keys=["pid"])
    refused(ConflictError, "2 of 25 keys belong to different originals", combine, [indexes[0], other], "pid")


def test_keys_that_do_not_match_are_refused():
    ages, areas = views()
    doubled = areas.assign(pid=["person 1", *areas["pid"][1:]])
    refused(
        InvalidTableError, "of the release 'of 2019' has 0 missing and 1 repeated", assess, ages, other_release(doubled)
    )
    unknown = areas.assign(pid=["person x", *areas["pid"][1:]])
    refused(InvalidTableError, "1 of 25 keys 'pid' of the release are not in", assess, ages, other_release(unknown))
    # A record that only the other release holds, such as one that is withheld here, changes nothing.
    assert assess(ages[:24], other_release(areas)).scores["share_of_singletons"] == 1
    lacking = areas.drop(columns="pid")
    refused(InvalidTableError, "not in: .*of 2019", assess, ages, other_release(lacking))


def test_what_cannot_be_combined_is_refused():
    ages, areas = views()
    index = CandidateIndex(ReleaseModel.from_labels(["age"]), TABLE, ages, "pid", keys=["pid"])
    small = CandidateIndex(ReleaseModel.from_labels(["age"]), TABLE[:5], ages[:5], "pid", keys=["pid"])
    refused(InvalidSettingError, "at least two releases", combine, [index], "pid")
    refused(InvalidTableError, "20 of 25 keys", combine, [index, small], "pid")
    people = CandidateIndex(ReleaseModel.from_labels(["age"]), TABLE, ages, "pid", keys=["pid"], subject="zip")
    refused(InvalidSettingError, "one counts people", combine, [index, people], "pid")
    refused(InvalidSettingError, "model if and only if it is a plain table", OtherRelease, areas, "pid")


def test_another_release_with_a_mask_that_weighs_is_refused_before_any_table_is_read():
    weighs = ReleaseModel({"zip": Pram("zip", {"1": {"1": 0.5, "2": 0.5}, "2": {"2": 1.0}})})
    with pytest.raises(InvalidSettingError, match=r"masks of \['zip'\] make originals more or less probable"):
        OtherRelease(pd.DataFrame(), "pid", weighs)
