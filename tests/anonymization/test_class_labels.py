"""Labels made for some classes at a time are those that are written one by one."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization import class_labels
from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.class_labels import IntervalLabels, SetLabels, labels_in_blocks
from privacy_assets.anonymization.generalization import generalize
from privacy_assets.anonymization.labels import interval_ends, quote, texts_of, typed_ends, widened
from privacy_assets.anonymization.quasi_identifiers import read_dimension
from tests.examples import examples
from tests.mixed_tables import POOLS

KINDS = sorted(set(POOLS) - {"missing", "date"})


@st.composite
def classes_of_a_column(draw):
    pool, dtype = POOLS[draw(st.sampled_from(KINDS))]
    values = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=24))
    edges = sorted({0, len(values), *draw(st.lists(st.integers(0, len(values)), max_size=8))})
    return read_dimension(pd.Series(values, dtype=dtype, name="x")), np.array(edges, np.int64)


def written_one_by_one(own, classes, cells):
    """Return the columns of a label; interval_ends and typed_ends have tests of their own."""
    scale = own.scale
    if not scale.is_ordered:
        texts = [*texts_of(scale), None]
        sets = [[texts[code] for code in own.values[own.first[c] : own.first[c + 1]]] for c in classes]
        shown = [["missing" if text is None else quote(text) for text in each] for each in sets]
        labels = [each[0] if len(each) == 1 else f"{{{', '.join(each)}}}" for each in shown]
        return {"x": pd.Series(labels), "x_values": pd.Series([json.dumps(s, ensure_ascii=False) for s in sets])}
    own = own if cells is None else widened(own, *cells)
    has_known, has_missing = own.has_known[classes], own.has_missing[classes]
    low = np.minimum(own.low[classes], max(scale.n_known - 1, 0))
    high = np.maximum(own.high[classes], 0)
    lows, highs, low_texts, high_texts = interval_ends(scale, low, high, is_cell=cells is not None)
    labels = []
    for i, (begin, end) in enumerate(zip(low_texts, high_texts, strict=True)):
        is_one = begin == end or (cells is None and low[i] == high[i])
        label = [begin if is_one else f"[{begin}, {end}{']' if scale.is_closed else ')'}"] if has_known[i] else []
        labels.append(" or ".join(label + ["missing"] * bool(has_missing[i])))
    rows = np.arange(len(classes))
    ends = {f"x_{name}": typed_ends(scale, own, has_known, rows) for name, own in (("low", lows), ("high", highs))}
    return {"x": pd.Series(labels)} | ends | ({"x_missing": pd.Series(has_missing)} if scale.has_missing else {})


@settings(max_examples=examples(200), deadline=None)
@given(classes_of_a_column(), st.booleans(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_labels_of_some_classes_are_those_written_one_by_one(drawn, is_cell, n_at_a_time, random):
    dimension, edges = drawn
    own, n_classes = generalize(dimension.scale, dimension.codes, edges), len(edges) - 1
    cells = None
    if is_cell and dimension.scale.is_ordered:
        last = dimension.scale.n_values - 1
        cells = (np.maximum(own.low.astype(np.int64) - 1, 0), np.minimum(own.high.astype(np.int64) + 1, last))
    # Rows of classes in any order, also several of one class.
    classes = np.array(random.choices(range(n_classes), k=2 * n_classes))
    expected = written_one_by_one(own, classes, cells)
    labels = IntervalLabels.of(own, cells) if dimension.scale.is_ordered else SetLabels.of(own)
    found = labels.columns(classes)
    assert list(found) == list(expected)
    for name, column in found.items():
        pd.testing.assert_series_equal(column.astype(object), expected[name].astype(object), check_names=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(class_labels, "CLASSES_AT_A_TIME", n_at_a_time)
        blocks = [pd.DataFrame(each) for each in labels_in_blocks(labels, n_classes)]
    assert [len(each) for each in blocks[:-1]] == [n_at_a_time] * (len(blocks) - 1)
    # A block without missing values has the type of the others.
    kinds = [[getattr(dtype, "categories", pd.Index([], dtype)).dtype for dtype in each.dtypes] for each in blocks]
    assert all(each == kinds[0] for each in kinds)
    whole = pd.concat(blocks, ignore_index=True).astype(object)
    pd.testing.assert_frame_equal(whole, pd.DataFrame(labels.columns(np.arange(n_classes))).astype(object))


def test_labels_in_memory_are_sorted_and_columns_of_the_user_stay_as_they_are():
    random = np.random.default_rng(3)
    stages = pd.CategoricalDtype(["mild", "severe", "a"], ordered=True)
    table = pd.DataFrame(
        {
            "age": random.integers(20, 90, 400),
            "town": random.choice(["z", "m", "a", "k"], 400),
            "age_values": pd.Series(random.choice(["mild", "severe", "a"], 400)).astype(stages),
            "other": pd.Series(random.choice(["z", "a"], 400)).astype(pd.CategoricalDtype(["z", "a"])),
        }
    )
    for own in ("age_values", "other"):
        assert anonymize(table, quasi_identifiers=["age", "town"], k=5).table[own].dtype == table[own].dtype
    plain = table.assign(age_values=1.0)
    released = anonymize(plain, quasi_identifiers=["age", "town"], k=5).table
    assert released["age_values"].tolist() == [1.0] * 400
    for name in ("age", "town", "town_values"):
        assert released[name].cat.categories.is_monotonic_increasing
        assert len(released[name].cat.categories) > 1
