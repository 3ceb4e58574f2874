import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymity.verify import verify_anonymity, verify_coded
from privacy_assets.anonymization.anonymize import anonymize_with
from privacy_assets.anonymization.batches import anonymize_coded
from privacy_assets.anonymization.settings import AnonymizeSettings, diversities, spread
from privacy_assets.columns import row_hashes
from privacy_assets.columns.masks import columns_of
from privacy_assets.columns.row_hashes import hash_coded_rows, hash_rows
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.coded_columns import ColumnCoder
from tests.examples import examples
from tests.mixed_tables import POOLS, UNREACHABLE

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


def coded(table, rows_per_batch):
    with ColumnCoder() as coder:
        for begin in range(0, len(table), rows_per_batch):
            coder.add(table.iloc[begin : begin + rows_per_batch].reset_index(drop=True))
        return coder.finish()


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
    return pd.DataFrame(columns)


def settings_for(table, **own):
    names = [name for name in table.columns if name not in ("person", "ill")]
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
def test_a_table_in_batches_is_anonymized_as_the_frame_is(table, which, rows_read, rows_released):
    own = settings_for(table, **SETTINGS[which])
    columns = coded(table, rows_read)
    try:
        expected = anonymize_with(table, own)
    except InvalidSettingError as error:
        with pytest.raises(InvalidSettingError) as raised:
            anonymize_coded(columns, own)
        assert str(raised.value) == str(error)
        assert str(error).startswith(UNREACHABLE)
        return
    found = anonymize_coded(columns, own)
    released = pd.concat([batch.astype(object) for batch in found.batches(rows_released)], ignore_index=True)
    pd.testing.assert_frame_equal(released, expected.table.astype(object))
    types = expected.table.dtypes.to_dict()
    if which != "centroid":
        # Batches have no categories in common.
        texts = {label for name in own.quasi_identifiers for label in (name, f"{name}_values")}
        types |= {name: pd.Series(["text"]).dtype for name in texts & set(types)}
    assert next(found.batches(rows_released)).dtypes.to_dict() == types
    assert (found.model, found.stats, found.settings) == (expected.model, expected.stats, expected.settings)
    assert found.tree == expected.tree
    pd.testing.assert_frame_equal(found.classes, expected.classes)
    assert found.records.tolist() == expected.members["row"].tolist()
    assert found.class_of_row.tolist() == expected.members["class"].tolist()
    if which == "centroid":
        return
    labels = [name for mask in own.quasi_identifiers for name in columns_of(expected.model.masks[mask])]
    report = verify_coded(coded(expected.table, rows_released), labels, ["ill"])
    assert report == verify_anonymity(expected.table, labels, ["ill"])


@settings(max_examples=examples(60), deadline=None)
@given(tables(), st.integers(1, 5))
def test_measures_of_coded_columns_are_those_of_the_frame(table, rows_per_batch):
    names = [name for name in table.columns if name not in ("person", "ill")]
    found = verify_coded(coded(table, rows_per_batch), names[:1], [*names[1:], "ill"], subject="person")
    assert found == verify_anonymity(table, names[:1], [*names[1:], "ill"], subject="person")


def test_hashes_of_coded_rows_are_those_of_the_rows(monkeypatch):
    monkeypatch.setattr(row_hashes, "ROWS_PER_BLOCK", 3)
    table = pd.DataFrame({"a": [1, 2, None, 1, 1, 5, 1], "b": ["x", None, "y", "x", "z", "x", "x"]})
    columns = coded(table, 2).values()
    pairs = [(column.distinct, lambda begin, stop, column=column: column.codes[begin:stop]) for column in columns]
    expected = hash_rows((table[name] for name in table), len(table), 3)
    np.testing.assert_array_equal(hash_coded_rows(pairs, len(table), 3), expected)


@pytest.mark.parametrize(
    ("own", "error", "message"),
    [
        ({"relaxed": True}, InvalidSettingError, "relaxed=False"),
        ({"method": "lattice"}, InvalidSettingError, "method='mondrian'"),
        ({"quasi_identifiers": ("nothing",)}, InvalidSettingError, "columns that the table does not have"),
        ({"k": 9}, InvalidSettingError, "k is 9, but the table has 4 rows"),
        ({"quasi_identifiers": ("lists",)}, InvalidTableError, "'lists'"),
        ({"subject": "person"}, InvalidTableError, "2 rows have no value in the subject column 'person'"),
    ],
)
def test_what_cannot_be_anonymized_in_batches_is_refused(own, error, message):
    table = pd.DataFrame({"age": [1, 2, 3, 4], "person": ["SENTINEL", None, None, "p"]})
    table["lists"] = pd.Series(["SENTINEL", 1, "a", 2], dtype=object)
    given_settings = AnonymizeSettings(**{"quasi_identifiers": ("age",), "k": 2, **own})
    with pytest.raises(error, match=message) as raised:
        anonymize_coded(coded(table, 2), given_settings)
    assert "SENTINEL" not in str(raised.value)
