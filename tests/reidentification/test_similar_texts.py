"""Texts with typing errors: the candidates are those within the distance, one by one."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidSettingError, InvalidTableError, MaskError, assess_reidentification
from privacy_assets.reidentification import CandidateIndex, ReleaseModel, SimilarText
from privacy_assets.reidentification.similar_texts import SimilarTexts
from tests.examples import examples

TEXTS = st.one_of(st.text("ab", max_size=9), st.text("aä\U0001f600\0 ", max_size=4))


@cache
def distance(text, other):
    """By definition: the fewest edits over all that the last characters may have undergone."""
    if not text or not other:
        return len(text) + len(other)
    return min(
        distance(text[:-1], other[:-1]) + (text[-1] != other[-1]),
        distance(text[:-1], other) + 1,
        distance(text, other[:-1]) + 1,
    )


@given(st.lists(TEXTS, max_size=8, unique=True), TEXTS, st.integers(0, 5))
@settings(max_examples=examples(400), deadline=None)
def test_texts_within_the_distance_are_found(texts, text, edits):
    expected = [t for t, own in enumerate(texts) if distance(own, text) <= edits]
    assert SimilarTexts(texts, edits).near(text).tolist() == expected


@given(
    st.lists(st.one_of(st.none(), st.text("abc", min_size=1, max_size=4)), min_size=1, max_size=6),
    st.text("abc"),
    st.data(),
)
@settings(max_examples=examples(60), deadline=None)
def test_candidates_are_those_within_the_distance(originals, typed, data):
    released = [None if own is None else (own + typed[:1])[data.draw(st.integers(0, 1)) :] or "a" for own in originals]
    model = ReleaseModel({"name": SimilarText("name", 2)})
    model = ReleaseModel.from_json(json.loads(json.dumps(model.to_json())))
    original, table = (pd.DataFrame({"name": pd.Series(own, dtype=object)}) for own in (originals, released))
    index = CandidateIndex(model, original, table, range(len(originals)), n_threads=1)
    for i, cell in enumerate(released):
        near = [
            x
            for x, own in enumerate(originals)
            if (own is None and cell is None) or (own is not None and cell is not None and distance(own, cell) <= 2)
        ]
        assert index.members(i, ["name"]).tolist() == near


def test_names_with_typing_errors_are_assessed():
    original = pd.DataFrame({"name": ["Meyer", "Meier", "Maier", "Schmidt"]})
    released = pd.DataFrame({"name": ["Meyer", "Meier", "Mayer", "Schmitt"]})
    model = ReleaseModel({"name": SimilarText("name", 1)})
    assessed = assess_reidentification(original, released, model, truth=range(4))
    # Meyer: Meyer, Meier; Meier: all three; Mayer: Meyer, Maier; Schmitt: Schmidt.
    assert assessed.scores["mean_reidentification_probability"] == pytest.approx((1 / 2 + 1 / 3 + 1 / 2 + 1) / 4)
    with pytest.raises(MaskError, match=r"\{'name': 2\} of 4"):
        assess_reidentification(original, released, ReleaseModel({"name": SimilarText("name", 0)}), truth=range(4))


def test_ordered_categories_are_texts():
    original = pd.DataFrame({"size": pd.Categorical(["small", "large", None], ["small", "large"], ordered=True)})
    released = pd.DataFrame({"size": ["smal", "larger", None]})
    model = ReleaseModel({"size": SimilarText("size", 1)})
    index = CandidateIndex(model, original, released, range(3), n_threads=1)
    assert [index.members(i, ["size"]).tolist() for i in range(3)] == [[0], [1], [2]]


@pytest.mark.parametrize("edits", [-1, 11, 1.0, True, "1", None])
def test_edits_that_are_no_number_are_refused(edits):
    table = pd.DataFrame({"name": ["a", "b"]})
    with pytest.raises(InvalidSettingError, match="Expected a whole number from 0 to 10"):
        CandidateIndex(ReleaseModel({"name": SimilarText("name", edits)}), table, table, range(2))


def test_other_kinds_are_refused():
    model = ReleaseModel({"name": SimilarText("name", 1)})
    texts, numbers = pd.DataFrame({"name": ["a", "b"]}), pd.DataFrame({"name": [1, 2]})
    with pytest.raises(InvalidSettingError, match="mask of similar texts, but number values"):
        CandidateIndex(model, numbers, texts, range(2))
    with pytest.raises(InvalidTableError, match="mask of similar texts, but number"):
        CandidateIndex(model, texts, numbers, range(2))
    nothing = pd.DataFrame({"name": pd.Series([None, None], dtype=object)})
    assert CandidateIndex(model, nothing, nothing, range(2)).sizes(["name"]).tolist() == [2, 2]


def test_many_names():
    """Every text of four of six letters, each within one edit of itself and of 20 others of its length."""
    letters = np.array(list("abcdef"))
    texts = ["".join(letters[list(own)]) for own in np.ndindex(6, 6, 6, 6)]
    similar = SimilarTexts(texts, 1)
    assert {len(similar.near(text)) for text in texts[::50]} == {21}
