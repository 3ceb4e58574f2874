"""Bad input is refused with columns and counts, and without any cell of a table or score of a linker."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import (
    BoundedNoise,
    Exact,
    HierarchyMapping,
    Interval,
    Label,
    RankWindow,
    ReleaseModel,
    ValueSet,
)
from privacy_assets.errors import ConflictError, InvalidSettingError, InvalidTableError, MaskError
from privacy_assets.linkage.evaluation import evaluate_linker
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.reidentification.candidate_index import CandidateIndex, combine
from privacy_assets.reidentification.other_releases import OtherRelease, join_original

AGES = [7771, 7772, 7773, 7774]
TOWNS = ["Oz", "Utopia", "Avalon", "Atlantis"]
DAYS = pd.to_datetime(["1901-02-03", "1902-02-03", "1903-02-03", "1904-02-03"])
ORIGINAL = pd.DataFrame({"key": ["k1x", "k2x", "k3x", "k4x"], "age": AGES, "town": TOWNS, "day": DAYS})
CELLS = [
    *map(str, AGES),
    *TOWNS,
    *(str(day.year) for day in DAYS),
    *ORIGINAL["key"],
    "Nowhere",
    "8881",
    "0.125",
    "-3.5",
]
HIERARCHIES = {"towns": Hierarchy.from_mapping({"west": TOWNS[:2], "east": TOWNS[2:]})}


def released(**columns):
    return ORIGINAL[["key"]].assign(**columns)


def index_of(masks, table, truth="key"):
    return CandidateIndex(ReleaseModel(masks), ORIGINAL, table, truth, hierarchies=HIERARCHIES, keys=["key"])


def refused(error, words, call, *arguments, **options):
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    message = str(caught.value)
    for word in words:
        assert word in message, message
    assert not [cell for cell in CELLS if cell in message], message


@pytest.mark.parametrize(
    ("masks", "columns", "words"),
    [
        ({"age": Label("age")}, {"age": ["[Nowhere, 3]"] * 3 + ["*"]}, ["'age'", "1 of its", "3 rows"]),
        ({"town": Label("town")}, {"town": ["Nowhere", "Nowh*", "Oz", "Oz"]}, ["'town'", "2 of its", "2 rows"]),
        ({"day": Label("day")}, {"day": ["[1905-99-99, 1906-01-01]"] * 4}, ["'day'", "1 of its", "4 rows"]),
        ({"town": ValueSet("town")}, {"town": ["Nowhere", '["Oz"]', "[8881]", None]}, ["'town'", "3 of its", "3 rows"]),
        ({"town": HierarchyMapping("town", "towns")}, {"town": ["Nowhere", "west", "*", "*"]}, ["'town'", "1 of its"]),
        ({"age": RankWindow("age", 5)}, {"age": [8881, 8881, *AGES[:2]]}, ["'age'", "1 of its", "2 rows"]),
        ({"age": BoundedNoise("age", 5)}, {"age": ["Nowhere"] * 4}, ["'age'", "number", "text"]),
        ({"age": Exact("age")}, {"age": DAYS}, ["'age'", "number", "datetime"]),
        (
            {"age": Interval("low", "high", True)},
            {"low": AGES, "high": [8881.0, None, None, 8881.0]},
            ["'age'", "2 released rows"],
        ),
        ({"age": Exact("age"), "town": Label("town")}, {"age": ["Nowhere"] * 4, "town": ["8*"] * 4}, ["age", "town"]),
        ({"age": Exact("age")}, {"age": AGES, "town": TOWNS}, ["have no mask", "['town']"]),
        ({"age": Exact("age"), "town": Exact("town")}, {"age": AGES}, ["['town']"]),
    ],
)
def test_released_values_and_masks_that_do_not_fit(masks, columns, words):
    refused(InvalidTableError, words, index_of, masks, released(**columns))


def test_masks_that_exclude_the_truth():
    refused(MaskError, ["'age': 2", "of 4"], index_of, {"age": Exact("age")}, released(age=[7772, 7771, *AGES[2:]]))


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["k1x", "k1x", "k3x", "k4x"], ["'key'", "0 missing and 1 repeated"]),
        (["k1x", "k2x", None, None], ["'key'", "2 missing and 0 repeated"]),
        (["k1x", "k2x", "k8881", "k9"], ["2 of 4 keys 'key'"]),
        (None, ["key column 'key' is not in"]),
    ],
)
def test_keys_that_do_not_match(keys, words):
    def with_keys(table):
        return table.drop(columns="key") if keys is None else table.assign(key=keys)

    mine, theirs = released(age=AGES), released(town=TOWNS)
    model = ReleaseModel.from_labels([], exact=["age"])
    other = OtherRelease(with_keys(theirs), "key", ReleaseModel.from_labels([], exact=["town"]), "last year")
    options = {"truth": range(4), "other_releases": [other]}
    refused(InvalidTableError, [*words, "last year"], assess_reidentification, ORIGINAL, mine, model, **options)
    refused(InvalidTableError, words, index_of, {"age": Exact("age")}, with_keys(mine))
    refused(InvalidTableError, [*words, "last year"], join_original, mine, with_keys(theirs), "key", "last year")
    if keys is not None:
        indexes = [
            index_of({name: Exact(name)}, table, range(4))
            for name, table in (("age", mine), ("town", with_keys(theirs)))
        ]
        refused(InvalidTableError, words, combine, indexes, "key")


@pytest.mark.parametrize("n_copies", [0.5, 2])
def test_another_original_than_the_one_that_was_anonymized(n_copies):
    """More rows made candidates of everybody, and so a smaller risk."""
    made = anonymize(ORIGINAL, quasi_identifiers=["age"], k=2)
    other = ORIGINAL[:2] if n_copies < 1 else pd.concat([ORIGINAL] * n_copies, ignore_index=True)
    words = ["made from 4 rows", f"original has {len(other)}"]
    refused(InvalidTableError, words, assess_reidentification, other, made)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"other_releases": ["8881"]}, ["other_releases is ['str']", "OtherRelease"]),
        ({"known": [[["age"]]]}, ["known is a string", "not strings"]),
        ({"known": [[3]]}, ["not strings"]),
        ({"truth": [1, [2], 3]}, ["`truth` has the shape"]),
        ({"model": ReleaseModel({"age": "label", "town": Exact})}, ["{'age': 'str', 'town': 'type'}", "Label('age')"]),
    ],
)
def test_settings_that_are_of_no_right_kind(settings, words):
    model = ReleaseModel.from_labels([], exact=["age"])
    arguments = {"model": model, "truth": range(4)} | settings
    refused(InvalidSettingError, words, assess_reidentification, ORIGINAL, released(age=AGES)[["age"]], **arguments)


def test_views_that_contradict_each_other():
    swapped = released(town=["Utopia", "Oz", *TOWNS[2:]])
    other = OtherRelease(swapped, "key", ReleaseModel.from_labels([], exact=["town"]), "last year")
    refused(
        ConflictError, ["'last year' contradicts", "'town': 2", "of 4"], assess_reidentification, ORIGINAL,
        released(age=AGES), ReleaseModel.from_labels([], exact=["age"]), truth="key", other_releases=[other],
    )  # fmt: skip
    mine = index_of({"age": Exact("age")}, released(age=AGES))
    crossed = ORIGINAL.take([1, 0, 2, 3])[["town"]].assign(key=ORIGINAL["key"].tolist())
    theirs = index_of({"town": Exact("town")}, crossed, [1, 0, 2, 3])
    words = ["2 of 4 keys belong to different", "2 of them leave no candidate"]
    refused(ConflictError, words, combine, [mine, theirs], "key")


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        (np.full((4, 3), 0.125), ["(4, 3)", "(4, 4)"]),
        (np.full((3, 4), 0.125), ["(3, 4)", "(4, 4)"]),
        (np.full(4, 0.125), ["(4,)", "(4, 4)"]),
        (np.full((4, 4), 0.125) - np.eye(4) * 3.625, ["0 values that are not finite", "4 negative"]),
        (np.where(np.arange(4)[:, None] < 3, 0, np.full((4, 4), 0.125)), ["3 rows in which all are 0"]),
        (np.where(np.eye(4) > 0, np.nan, 0.125), ["4 values that are not finite"]),
        (np.full((4, 4), "Nowhere"), ["dtype"]),
        (np.array([0, 1, 2, 8881]), ["There are 4 links, 1 of them not to an original"]),
    ],
)
def test_claims_of_a_linker_that_are_none(claims, words):
    index = index_of({"age": Exact("age")}, released(age=AGES))
    refused(InvalidSettingError, words, evaluate_linker, index, claims)
