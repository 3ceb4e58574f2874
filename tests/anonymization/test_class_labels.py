"""Labels made for some classes at a time are those that are made for all at once."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization import class_labels
from privacy_assets.anonymization.class_labels import IntervalLabels, SetLabels, labels_in_blocks
from privacy_assets.anonymization.generalization import generalize
from privacy_assets.anonymization.labels import generalized_columns
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


@settings(max_examples=examples(200), deadline=None)
@given(classes_of_a_column(), st.booleans(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_labels_of_some_classes_are_those_of_all(drawn, is_cell, n_at_a_time, random):
    dimension, edges = drawn
    own, n_classes = generalize(dimension.scale, dimension.codes, edges), len(edges) - 1
    cells = None
    if is_cell and dimension.scale.is_ordered:
        last = dimension.scale.n_values - 1
        cells = (np.maximum(own.low.astype(np.int64) - 1, 0), np.minimum(own.high.astype(np.int64) + 1, last))
    # Rows of classes in any order, also several of one class.
    classes = np.array(random.choices(range(n_classes), k=2 * n_classes))
    expected = generalized_columns(own, classes, cells)
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
    assert all((each.dtypes == blocks[0].dtypes).all() for each in blocks)
    whole = pd.concat(blocks, ignore_index=True).astype(object)
    pd.testing.assert_frame_equal(whole, pd.DataFrame(labels.columns(np.arange(n_classes))).astype(object))
