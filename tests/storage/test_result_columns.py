import json

import pandas as pd
import pytest

from privacy_assets.storage.result_columns import texts_to_tuples, tuples_to_text

SHARED = ("a", None)
TUPLES = [SHARED, ("é", "1"), SHARED, (), (1,), (True,), (1.0,), ("a", None)]


def test_tuples_are_written_as_each_would_be_alone():
    written = tuples_to_text(pd.Series(TUPLES, dtype=object))
    # Equal tuples of different types are different JSON.
    assert written.tolist() == [json.dumps(value) for value in TUPLES]


@pytest.mark.parametrize("kept", [slice(None), slice(0, 0), slice(0, 1)])
def test_tuples_read_back_in_their_order(kept):
    read = texts_to_tuples(tuples_to_text(pd.Series(TUPLES[kept], dtype=object)))
    assert read.tolist() == TUPLES[kept]
    assert [tuple(map(type, value)) for value in read] == [tuple(map(type, value)) for value in TUPLES[kept]]


def test_a_missing_tuple_is_refused():
    with pytest.raises(TypeError):
        texts_to_tuples(pd.Series(["[]", None], dtype="str"))
