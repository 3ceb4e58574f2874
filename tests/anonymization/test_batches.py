from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization import release as release_module
from privacy_assets.anonymization.anonymize import anonymize_with
from privacy_assets.anonymization.settings import AnonymizeSettings, diversities, spread
from privacy_assets.columns.masks import columns_of
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage import coded_columns
from privacy_assets.storage import table as stored_table
from privacy_assets.storage.table import fingerprint_of, frame_of, store
from tests.examples import examples
from tests.mixed_tables import POOLS, UNREACHABLE, through_parquet

KINDS = sorted(set(POOLS) - {"missing", "date"})
SETTINGS = {
    "plain": {},
    "range": {"normalize": "range", "criterion": "range"},
    "cell": {"bounds": "cell"},
    "centroid": {"output": "centroid"},
    "l": {"l_diversity": 2, "max_suppression": 0.5},
    "t": {"t_closeness": 0.5},
    "people": {"subject": "person"},
}
# Values of which some are equal, but not written alike.
UNCHANGED = {
    "zero": [0.0, -0.0, 1.5],
    "whole": [3, -7, 2**40],
    "note": ["a", "", None],
    "flag": [True, False],
    "maybe": [1, None, 2],
}


def stored(table, rows_per_batch, directory):
    begins = range(0, len(table), rows_per_batch)
    return store((table.iloc[begin : begin + rows_per_batch] for begin in begins), directory)


@st.composite
def tables(draw):
    n_rows = draw(st.integers(4, 40))
    columns = {}
    for place in range(draw(st.integers(2, 4))):
        kind = draw(st.sampled_from(KINDS))
        pool, dtype = POOLS[kind]
        columns[f"{kind} {place}"] = pd.Series(
            draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows)), dtype=dtype
        )
    columns["person"] = draw(st.lists(st.integers(0, 9), min_size=n_rows, max_size=n_rows))
    columns["ill"] = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n_rows, max_size=n_rows))
    for name, pool in UNCHANGED.items():
        own = draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows))
        columns[name] = pd.array(own, "Int64") if name == "maybe" else own
    # In the dtypes that storage gives back.
    return through_parquet(pd.DataFrame(columns))


def settings_for(table, **own):
    names = [name for name in table.columns if name not in ("person", "ill", *UNCHANGED)]
    return AnonymizeSettings(
        quasi_identifiers=tuple(names),
        k=2,
        sensitive=("ill",),
        direct_identifiers=() if "subject" in own else ("person",),
        seed=7,
        **{
            **own,
            "l_diversity": diversities(own.get("l_diversity"), ["ill"]),
            "t_closeness": spread(own.get("t_closeness"), ["ill"], "t_closeness"),
        },
    )


@settings(max_examples=examples(120), deadline=None)
@given(tables(), st.sampled_from(sorted(SETTINGS)), st.integers(1, 9), st.integers(1, 9))
def test_a_table_in_batches_is_anonymized_as_the_frame_is(tmp_path_factory, table, which, rows_read, rows_released):
    own, directory = settings_for(table, **SETTINGS[which]), tmp_path_factory.getbasetemp()
    columns = stored(table, rows_read, directory)
    try:
        expected = anonymize_with(table, own)
    except InvalidSettingError as error:
        with pytest.raises(InvalidSettingError) as raised:
            anonymize_with(columns, own, directory=directory)
        assert str(raised.value) == str(error)
        assert str(error).startswith(UNREACHABLE)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(release_module, "ROWS_LABELED_AT_ONCE", rows_released)
        patch.setattr(coded_columns, "FEWEST_REPEATED", 0)
        patch.setattr(stored_table, "ROWS_PER_BATCH", rows_released)
        found = anonymize_with(columns, own, directory=directory)
        assert replace(found, table=frame_of(found.table)) == expected
        pd.testing.assert_frame_equal(found.table.frame().astype(object), expected.table.astype(object))
        assert fingerprint_of(found.table) == fingerprint_of(expected.table)
        assert np.signbit(found.table["zero"]).tolist() == np.signbit(expected.table["zero"]).tolist()
        if which == "centroid":
            return
        labels = [name for mask in own.quasi_identifiers for name in columns_of(expected.model.masks[mask])]
        assert verify_anonymity(found.table, labels, ["ill"]) == verify_anonymity(expected.table, labels, ["ill"])


@pytest.mark.parametrize(
    ("own", "error", "message"),
    [
        ({"quasi_identifiers": ("nothing",)}, InvalidSettingError, "columns that the table does not have"),
        ({"k": 9}, InvalidSettingError, "k is 9, but the table has 4 rows"),
        ({"subject": "person"}, InvalidTableError, "2 rows have no value in the subject column 'person'"),
    ],
)
def test_what_cannot_be_anonymized_is_refused_without_values(own, error, message, tmp_path):
    table = pd.DataFrame({"age": [1, 2, 3, 4], "person": ["SENTINEL", None, None, "p"]})
    given_settings = AnonymizeSettings(**{"quasi_identifiers": ("age",), "k": 2, **own})
    with pytest.raises(error, match=message) as raised:
        anonymize_with(stored(table, 2, tmp_path), given_settings, directory=tmp_path)
    assert "SENTINEL" not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
