import json
import stat
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization import dataset as dataset_module
from privacy_assets.anonymization.anonymize import anonymize, anonymize_with
from privacy_assets.anonymization.dataset import anonymize_dataset
from privacy_assets.columns.masks import columns_of
from privacy_assets.contract import column_admission
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import ContractError, InvalidSettingError, InvalidTableError
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.parquet_dataset import ParquetDataset
from privacy_assets.storage.parquet_parts import write_parts
from tests.examples import examples

COLUMNS = {
    "patient": {"type": "text", "role": "direct_identifier", "person": True},
    "phone": {"type": "text", "role": "direct_identifier", "nullable": True},
    "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120, "nullable": True},
    "plan": {"type": "category", "role": "quasi_identifier", "categories": ["free", "paid", "unused"]},
    "weight": {"type": "float", "role": "quasi_identifier", "nullable": True},
    "seen": {"type": "datetime", "role": "quasi_identifier"},
    "ill": {"type": "category", "role": "sensitive"},
    "cost": {"type": "float", "role": "other", "nullable": True},
}
CONTRACT = TableContract.from_mapping({"columns": COLUMNS})


def people(n_rows, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "patient": [f"SENTINEL-{number}" for number in random.integers(0, max(2 * n_rows // 3, 1), n_rows)],
            "phone": [None if number % 3 else f"+1 {number}" for number in range(n_rows)],
            "age": pd.array([None if own == 20 else own for own in random.integers(20, 60, n_rows)], "Int64"),
            "plan": random.choice(["free", "paid"], n_rows),
            "weight": np.where(random.random(n_rows) < 0.1, np.nan, random.integers(400, 900, n_rows) / 10),
            "seen": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 90, n_rows), unit="D"),
            "ill": random.choice(["a", "b", "c"], n_rows),
            "cost": random.integers(0, 300, n_rows) / 10,
        }
    )


def write_source(directory, table, rows_per_file):
    directory.mkdir()
    for place, begin in enumerate(range(0, len(table), rows_per_file)):
        table.iloc[begin : begin + rows_per_file].to_parquet(directory / f"{place:04}.parquet", index=False)
    return directory


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def anonymized_frame(table, **options):
    return anonymize(
        CONTRACT.admit(table),
        quasi_identifiers=["age", "plan", "weight", "seen"],
        sensitive=["ill"],
        subject="patient",
        **options,
    )


@settings(max_examples=examples(25), deadline=None)
@given(
    st.integers(20, 120),
    st.integers(0, 5),
    st.integers(5, 60),
    st.integers(1, 50),
    st.sampled_from([{}, {"l_diversity": 2}, {"bounds": "cell", "normalize": "rank"}, {"max_suppression": 0.2}]),
)
def test_a_directory_is_anonymized_as_its_table_is(
    tmp_path_factory, n_rows, seed, rows_per_file, rows_per_part, options
):
    tmp_path = tmp_path_factory.mktemp("dataset")
    table = people(n_rows, seed)
    source = write_source(tmp_path / "source", table, rows_per_file)
    expected = anonymized_frame(table, k=3, seed=5, **options)
    found = anonymize_dataset(
        source, tmp_path / "released", CONTRACT, k=3, seed=5, rows_per_part=rows_per_part, **options
    )
    assert found.fingerprint == fingerprint(expected.table)
    read = pd.read_parquet(found.directory)
    pd.testing.assert_frame_equal(read.astype(object), expected.table.astype(object), check_dtype=False)
    assert [pq.read_metadata(path).num_rows for path in sorted(found.directory.iterdir())] == list(found.rows)
    assert set(found.rows[:-1]) <= {rows_per_part}
    assert (found.model, found.stats, found.settings) == (expected.model, expected.stats, expected.settings)
    labels = [label for name in ("age", "plan", "weight", "seen") for label in columns_of(expected.model.masks[name])]
    assert found.anonymity == verify_anonymity(expected.table, labels, ["ill"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["released", "source"]
    assert stat.S_IMODE(found.directory.stat().st_mode) == 0o700
    (tmp_path / "frame").mkdir()
    write_parts(tmp_path / "frame", [expected.table], rows_per_part)
    assert contents(found.directory) == contents(tmp_path / "frame")


def spoiled(table):
    return table.assign(
        age=pd.array([200, *table["age"].iloc[1:]], "Int64"), plan=["SENTINEL", *table["plan"].iloc[1:]]
    )


@pytest.mark.parametrize(
    ("change", "options", "error", "message"),
    [
        (spoiled, {}, ContractError, "'age' fails less_than_or_equal_to.120. in 1 records"),
        (spoiled, {}, ContractError, "'plan' fails is_a_category in 1 records"),
        (lambda table: table.assign(extra=1), {}, ContractError, "1 columns .* are not in the contract"),
        (lambda table: table, {"k": 1_000}, InvalidSettingError, "k is 1000, but the table has"),
        (lambda table: table, {"l_diversity": 9}, InvalidSettingError, "l_diversity is more than"),
        (lambda table: table, {"rows_per_part": 0}, InvalidSettingError, "rows_per_part"),
        (lambda table: table, {"bounds": "loose"}, InvalidSettingError, "bounds"),
    ],
)
def test_a_refusal_leaves_nothing_behind_and_shows_no_value(tmp_path, change, options, error, message):
    source = write_source(tmp_path / "source", change(people(40)), 15)
    with pytest.raises(error, match=message) as raised:
        anonymize_dataset(source, tmp_path / "released", CONTRACT, **{"k": 3, **options})
    assert "SENTINEL" not in str(raised.value)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_parts_that_are_not_read_back_as_written_never_appear(tmp_path, monkeypatch):
    source = write_source(tmp_path / "source", people(40), 15)

    def damaged(directory, frames, rows_per_part):
        written = write(directory, frames, rows_per_part)
        path = directory / written.names[0]
        table = pd.read_parquet(path)
        table.iloc[::-1].to_parquet(path, index=False)
        return written

    write = dataset_module.write_parts
    monkeypatch.setattr(dataset_module, "write_parts", damaged)
    with pytest.raises(InvalidTableError, match="differ from the rows that were measured"):
        anonymize_dataset(source, tmp_path / "released", CONTRACT, k=3)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_rows_with_other_classes_than_were_made_never_appear(tmp_path, monkeypatch):
    source = write_source(tmp_path / "source", people(40), 15)

    def altered(*given, **named):
        found = anonymize_with(*given, **named)
        # A class of which a row lies in another one.
        table = found.table.frame().copy()
        is_of_smallest = found.members["class"].to_numpy() == found.classes["rows"].idxmin()
        table.iloc[np.flatnonzero(is_of_smallest)[0]] = table.iloc[np.flatnonzero(~is_of_smallest)[0]]
        return replace(found, table=table)

    monkeypatch.setattr(dataset_module, "anonymize_with", altered)
    with pytest.raises(InvalidTableError, match="have other classes than those that were made"):
        anonymize_dataset(source, tmp_path / "released", CONTRACT, k=3)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize("most", [256, 3])
def test_checks_of_the_whole_table_hold_and_wide_tables_are_read_at_once(tmp_path, monkeypatch, most):
    monkeypatch.setattr(column_admission, "MOST_COLUMNS", most)
    contract = TableContract.from_mapping({"columns": COLUMNS, "rules": {"cheap": "cost <= weight"}})
    table = people(60).assign(cost=1.5)
    source = write_source(tmp_path / "source", table, 25)
    found = anonymize_dataset(source, tmp_path / "released", contract, k=3, seed=5)
    assert found.fingerprint == fingerprint(anonymized_frame(table, k=3, seed=5).table)
    write_source(tmp_path / "dear", table.assign(cost=91.0), 25)
    with pytest.raises(ContractError, match="cheap"):
        anonymize_dataset(tmp_path / "dear", tmp_path / "again", contract, k=3)


@pytest.mark.parametrize("most", [256, 3])
def test_a_part_that_is_replaced_while_it_is_read_is_refused(tmp_path, monkeypatch, most):
    monkeypatch.setattr(column_admission, "MOST_COLUMNS", most)
    source = write_source(tmp_path / "source", people(40), 20)
    read = ParquetDataset.read

    def replaced(dataset, *given):
        found = read(dataset, *given)
        people(20, 1).to_parquet(source / "0000.parquet", index=False)
        return found

    monkeypatch.setattr(ParquetDataset, "read", replaced)
    with pytest.raises(InvalidTableError, match="1 of 2 files changed while they were read"):
        anonymize_dataset(source, tmp_path / "released", CONTRACT, k=3)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_an_existing_directory_is_not_replaced(tmp_path):
    (tmp_path / "released").mkdir()
    with pytest.raises(InvalidSettingError, match="exists already"):
        anonymize_dataset(tmp_path, tmp_path / "released", CONTRACT, k=3)


def test_what_is_told_of_it_is_json(tmp_path):
    source = write_source(tmp_path / "source", people(40), 15)
    found = anonymize_dataset(source, tmp_path / "released", CONTRACT, k=3)
    assert json.loads(json.dumps(found.stats)) == found.stats
    assert found.stats["k"] >= 3
