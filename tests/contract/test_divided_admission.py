"""A table that workers admit is the whole table in an order of its own, and is refused in the same words."""

import datetime as dt
import logging
from decimal import Decimal

import numpy as np
import pandas as pd
import pandera.pandas as pandera
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.row_hashes import hash_rows
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.divided_admission import AdmitRows, DividedAdmission
from privacy_assets.contract.gathered_rows import GatheredRows, SendRows
from privacy_assets.disclosure.declared_unit import examine_unit
from privacy_assets.errors import ContractError, EngineError, InvalidTableError
from privacy_assets.storage.arrow_frames import as_frame
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.table import frame_of
from tests.examples import examples

BERLIN = dt.timezone(dt.timedelta(hours=1))
KINDS = {
    "integer": ({"type": "integer", "min": 0}, pa.int32(), [0, 1, 2, -3, None]),
    "exact": ({"type": "integer"}, pa.decimal128(9, 2), [Decimal("1.00"), Decimal("2.50"), None]),
    "written": ({"type": "integer", "nullable": True}, pa.string(), ["10", "9", "SENTINEL", None]),
    "number": ({"type": "float", "nullable": True, "max": 5}, pa.float64(), [0.5, -1.5, 7.0, float("inf"), None]),
    "boolean": ({"type": "boolean"}, pa.bool_(), [True, False, None]),
    "text": ({"type": "text", "nullable": True, "isin": ["a", "b"]}, pa.string(), ["a", "b", "c", "ä", None]),
    "unique": ({"type": "text", "unique": True}, pa.string(), [*"abcdefgh"]),
    "category": ({"type": "category", "categories": ["v", "u"]}, pa.string(), ["u", "v", "w", None]),
    "numbered": ({"type": "category", "categories": [3, 1], "nullable": True}, pa.int64(), [1, 3, None]),
    "free": ({"type": "category", "nullable": True}, pa.string(), ["u", "v", "w", None]),
    "date": (
        {"type": "datetime", "nullable": True, "min": "2020-01-01"},
        pa.date32(),
        [dt.date(2021, 1, 1), dt.date(2019, 1, 1), None],
    ),
    "moment": (
        {"type": "datetime64[us, Europe/Berlin]", "nullable": True},
        pa.timestamp("us", "UTC"),
        [dt.datetime(2020, 5, 1, tzinfo=dt.UTC), dt.datetime(2021, 5, 1, 3, tzinfo=BERLIN), None],
    ),
    "zones": (
        {"type": "datetime64[us, UTC]", "nullable": True, "unique": True},
        pa.string(),
        ["2020-01-01T00:00:00Z", "2020-01-01T00:00:00+01:00", "2020-01-01", None],
    ),
    "person": ({"type": "text", "person": True}, pa.string(), ["q", "p", "s", "Q\u200b", None]),
}


WAYS = ["returned", "into a directory", "staged"]


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True))
    n_rows = draw(st.integers(0, 12))
    columns, described = {}, {}
    for kind in kinds:
        own, arrow, pool = KINDS[kind]
        pool = draw(st.lists(st.sampled_from(pool), min_size=1, max_size=len(pool), unique=True))
        columns[kind] = pa.array(draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows)), arrow)
        described[kind] = {"role": draw(st.sampled_from(["other", "direct_identifier"])), **own}
    if draw(st.integers(0, 9)) == 0:
        columns["extra"] = pa.array([1] * n_rows, pa.int64())
    if draw(st.integers(0, 9)) == 0:
        described["absent"] = {"type": "text", "role": "other"}
    return pa.table(columns), described


def answers_of(task, table, sizes=(3,), seed=0):
    """What workers answer that get the batches of a table in any order, two in a task, and one that gets none."""
    rng = np.random.default_rng(seed)
    table = table.take(rng.permutation(table.num_rows))
    batches, begin = [], 0
    while begin < table.num_rows:
        size = sizes[len(batches) % len(sizes)]
        batches.append(table.slice(begin, size).combine_chunks().to_batches()[0])
        begin += size
    tasks = [batches[place : place + 2] for place in range(0, len(batches), 2)]
    answers = [record for own in [*tasks, []] for answer in task(iter(own)) for record in answer.to_pylist()]
    rng.shuffle(answers)
    return answers


def divided(table, contract, sizes=(3,), seed=0, staging=None, directory=None):
    admission = DividedAdmission(contract, [(name, "string") for name in table.column_names])
    answers = answers_of(admission.task(staging), table.select(list(admission.columns)), sizes, seed)
    found = admission.finish(answers, GatheredRows(staging, directory), directory)
    return found._replace(table=frame_of(found.table))


def whole(table, described):
    """Admit a table at once, its rows in the order of their hashes; return it and the person of each row."""
    frame, contract = as_frame(table), TableContract.from_mapping({"columns": described})
    contract.admit(frame)
    without_person = {
        name: {key: value for key, value in own.items() if key != "person"}
        | ({"role": "other"} if "person" in own else {})
        for name, own in described.items()
    }
    converted = TableContract.from_mapping({"columns": without_person}).admit(frame)
    columns = [converted[name] for name in converted.columns]
    rows = np.lexsort([hash_rows(columns, len(frame), seed) for seed in (1, 0)]).tolist()
    people = None if contract.person is None else converted[contract.person].iloc[rows].tolist()
    return contract.admit(frame.iloc[rows].reset_index(drop=True)), people


@settings(max_examples=examples(300), deadline=None)
@given(tables(), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 9), st.sampled_from(WAYS))
def test_workers_admit_what_the_whole_table_is_or_refuse_it_in_the_same_words(tmp_path_factory, case, sizes, seed, way):
    table, described = case
    staging = tmp_path_factory.mktemp("staging") if way == "staged" else None
    directory = None if way == "returned" else tmp_path_factory.getbasetemp()
    contract = TableContract.from_mapping({"columns": described})
    expected, refused = None, None
    try:
        expected, people = whole(table, described)
    except ContractError as error:
        refused = error
    if refused is not None:
        with pytest.raises(ContractError) as raised:
            divided(table, contract, sizes, seed, staging, directory)
        assert str(raised.value) == str(refused)
        assert raised.value.failures == refused.failures
        return
    found = divided(table, contract, sizes, seed, staging, directory)
    pd.testing.assert_frame_equal(found.table, expected)
    assert fingerprint(found.table) == fingerprint(expected)
    if contract.person is not None:
        assert found.checked[contract.person].tolist() == people


def contract_of(**columns):
    return TableContract.from_mapping({"columns": columns})


def test_direct_identifiers_stay_on_the_cluster_unless_a_check_needs_them():
    name = {"type": "text", "role": "direct_identifier"}
    age = {"type": "integer", "role": "quasi_identifier"}
    columns = [("name", "string"), ("age", "long")]
    assert DividedAdmission(contract_of(name=name, age=age), columns).task(None).kept == ("age",)
    assert DividedAdmission(contract_of(name=name | {"unique": True}, age=age), columns).task(None).kept == (
        "name",
        "age",
    )
    table = pa.table({"name": ["a", "b", "a"], "age": [2, 1, 3]})
    with pytest.raises(ContractError, match="column 'name' fails is_unique in 2 records"):
        divided(table, contract_of(name=name | {"unique": True}, age=age))
    assert divided(table, contract_of(name=name, age=age)).table["age"].sort_values().tolist() == [1, 2, 3]


def test_the_order_does_not_depend_on_columns_that_only_a_check_needs():
    name = {"type": "text", "role": "direct_identifier"}
    age = {"type": "integer", "role": "quasi_identifier"}
    table = pa.table({"name": ["c", "b", "a"], "age": [1, 2, 3]})
    plain, unique = (divided(table, contract_of(name=each, age=age)).table for each in (name, name | {"unique": True}))
    assert fingerprint(plain) == fingerprint(unique)


def test_checks_of_whole_columns_and_tables_and_functions_of_the_user_are_the_drivers():
    role = {"role": "other"}
    schema = pandera.DataFrameSchema(
        {
            "a": pandera.Column(int, [pandera.Check.gt(0), pandera.Check(lambda s: s.mean() > 5)], metadata=role),
            "b": pandera.Column(int, pandera.Check(lambda v: v > 0, element_wise=True, name="own"), metadata=role),
            "c": pandera.Column(int, metadata={"role": "direct_identifier"}),
        },
        checks=pandera.Check(lambda t: t["a"] < t["c"], name="a_below_c"),
        unique=["a", "b"],
    )
    contract = TableContract(schema)
    table = pa.table({"a": [1, 1, 0, 2], "b": [1, 1, -1, 2], "c": [9, 9, 9, 1]})
    admission = DividedAdmission(contract, [(name, "long") for name in "abc"])
    assert not [column for column in admission.task(None).schema.columns.values() if column.checks]
    refusals = []
    for admit in (lambda: contract.admit(as_frame(table)), lambda: divided(table, contract)):
        with pytest.raises(ContractError) as raised:
            admit()
        refusals.append(str(raised.value))
    assert refusals[0] == refusals[1]
    assert "own in 1 records" in refusals[0]
    assert "a_below_c fails" in refusals[0]


def test_rules_are_judged_by_the_driver_in_the_same_words():
    columns = {name: {"type": "text", "role": "direct_identifier"} for name in ("who", "other")}
    columns |= {name: {"type": "integer", "role": "other", "min": 0} for name in "abc"}
    rules = {"rises": "a < b", "of_who": {"determines": ["who", "a"]}, "adds": {"sum": ["a", "b"], "equals": "c"}}
    contract = TableContract.from_mapping({"columns": columns, "rules": rules})
    table = pa.table(
        {"who": ["x", "x", "y"], "other": ["o"] * 3, "a": [1, 1, 5], "b": [2, 3, 4], "c": [3, 4, 8]},
    )
    assert DividedAdmission(contract, [(name, "string") for name in columns]).task(None).kept == ("who", "a", "b", "c")
    refusals = []
    for admit in (lambda: contract.admit(as_frame(table)), lambda: divided(table, contract)):
        with pytest.raises(ContractError) as raised:
            admit()
        refusals.append((str(raised.value), raised.value.failures))
    assert refusals[0] == refusals[1]
    assert "rule 'rises' is violated in 1 records; rule 'adds' is violated in 1 records" in refusals[0][0]
    assert len(divided(table.slice(0, 2), contract).table) == 2


def test_a_check_that_changes_its_name_when_it_sees_a_table_says_no_value():
    def other_than_the_first(values):
        check.name = values.iloc[0]
        return values != values.iloc[0]

    check = pandera.Check(other_than_the_first, name="own")
    contract = TableContract(pandera.DataFrameSchema({"a": pandera.Column(str, check, metadata={"role": "other"})}))
    for _ in range(2):
        with pytest.raises(ContractError, match="fails own in 2 records") as raised:
            divided(pa.table({"a": ["SENTINEL", "SENTINEL"]}), contract)
        assert "SENTINEL" not in str(raised.value)


def test_a_worker_that_fails_says_only_how_and_logs_nothing(caplog, capfd):
    contract = contract_of(a={"type": "category", "role": "other"})
    admission = DividedAdmission(contract, [("a", "string")])
    answers = answers_of(admission.task(None), pa.table({"a": pa.array([0], pa.timestamp("s", "Mars/SENTINEL"))}))
    with (
        caplog.at_level(logging.DEBUG),
        pytest.raises(EngineError, match=r"its rows of the table \(InvalidTableError\)") as raised,
    ):
        admission.finish(answers, GatheredRows(None, None), None)
    assert "SENTINEL" not in str(raised.value)
    assert not [answer for answer in answers if "SENTINEL" in str(answer)]
    assert "SENTINEL" not in "".join([*capfd.readouterr(), caplog.text])


def test_types_with_several_values_in_a_cell_are_refused_by_name_and_type():
    contract = contract_of(a={"type": "text", "role": "other"}, b={"type": "text", "role": "other"})
    with pytest.raises(InvalidTableError, match=r"\{'b': 'array'\}"):
        DividedAdmission(contract, [("a", "string"), ("b", "array")])
    with pytest.raises(ContractError, match=r"has_any_of_the_columns \['a', 'b'\] fails") as raised:
        DividedAdmission(contract, [("SENTINEL", "array")])
    assert "SENTINEL" not in str(raised.value)


def test_rows_without_a_contract_come_unchanged_and_in_one_order():
    table = pa.table(
        {
            "a": pa.array([2, None, 1, 2]),
            "b": pa.array(["b", "c", None, "a"]),
            "c": pa.array([Decimal("1.5"), None, Decimal("0.5"), Decimal("1.5")]),
        }
    )
    names = ("a", "b", "c")
    task, frames = AdmitRows(None, names, SendRows(None, names)), []
    for sizes, seed in [((1,), 3), ((4,), 0), ((2, 1), 5)]:
        rows = GatheredRows(None, None)
        assert {rows.add(answer) for answer in answers_of(task, table, sizes, seed)} == {None}
        frames.append(rows.read(names))
        pd.testing.assert_frame_equal(frames[0], frames[-1])
    expected = as_frame(table)
    assert (frames[0].dtypes == expected.dtypes).all()
    found = frames[0].astype(object).where(frames[0].notna(), None).to_dict("records")
    assert sorted(map(str, found)) == sorted(map(str, table.to_pylist()))


def test_of_direct_identifiers_keyed_hashes_arrive_and_it_is_judged_whose_the_rows_are():
    who = np.repeat(np.arange(300), 4)
    table = pa.table(
        {
            "patient": pa.array([f"patient-{each}" if each else None for each in who]),
            "number": pa.array(who + 1_000),
            "age": pa.array(np.random.default_rng(0).integers(0, 99, 300)[who]),
        }
    )
    described = {
        "patient": {"type": "text", "role": "direct_identifier", "nullable": True},
        "number": {"type": "integer", "role": "direct_identifier"},
        "age": {"type": "integer", "role": "quasi_identifier"},
    }
    contract = TableContract.from_mapping({"columns": described, "one_row_per_person": True})
    found = divided(table, contract, sizes=(100, 7))
    assert list(found.table.columns) == ["age"]
    hashes = found.checked["patient"]
    assert hashes.dtype == "Int64"
    assert (hashes.isna().sum(), hashes.nunique()) == (4, 299)
    assert set(found.checked[["patient", "number"]].groupby("patient")["number"].nunique()) == {1}
    assert not set(hashes.dropna()) & set(divided(table, contract).checked["patient"].dropna())
    assert not set(found.checked["number"]) & set(who + 1_000)
    kinds = {each.column: each.kind for each in examine_unit(found.checked, contract).findings}
    assert kinds["patient"] == kinds["number"] == "rows_of_one_person"


@pytest.mark.parametrize("person", [{}, {"person": True}])
def test_an_identifier_that_a_check_needs_whole_arrives_once(person):
    described = {
        "patient": {"type": "text", "role": "direct_identifier", "unique": True, **person},
        "age": {"type": "integer", "role": "other"},
    }
    contract = TableContract.from_mapping({"columns": described})
    found = divided(pa.table({"patient": ["a", "b", "c"], "age": [1, 2, 3]}), contract)
    assert sorted(found.checked["patient"]) == ["a", "b", "c"]
