"""The public domain is the contract's alone, has a code for every value, and never leaves itself."""

import datetime as dt

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.synthesis.private.domain import PublicDomain
from tests.examples import examples

COLUMNS = {
    "ward": {"type": "category", "role": "other", "categories": ["a", "b", "c"]},
    "grade": {"type": "category", "role": "other", "categories": [3, 1, 2], "ordered": True, "nullable": True},
    "word": {"type": "text", "role": "other", "isin": ["yes", "no"], "nullable": True},
    "one": {"type": "text", "role": "other", "isin": ["only"]},
    "plan": {"type": "integer", "role": "other", "isin": [0, 25, 95]},
    "smokes": {"type": "boolean", "role": "other", "nullable": True},
    "female": {"type": "bool", "role": "other"},
    "age": {"type": "integer", "role": "other", "min": -3, "max": 120, "nullable": True},
    "fixed": {"type": "integer", "role": "other", "min": 7, "max": 7},
    "weight": {"type": "float", "role": "other", "min": 0.5, "max": 99.25, "precision": 1, "nullable": True},
    "level": {"type": "float", "role": "other", "min": 2.0, "max": 2.0},
    "born": {"type": "datetime", "role": "other", "min": "1900-01-01", "max": "2020-12-31", "nullable": True},
    "seen": {"type": "datetime64[us, Europe/Vienna]", "role": "other", "min": "2000-01-01", "max": "2030-01-01"},
}


def contract_of(**columns):
    return TableContract.from_mapping({"columns": columns})


@st.composite
def admitted(draw):
    """A contract of some columns, and a table that it admits."""
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=6, unique=True))
    n_rows = draw(st.integers(2, 30))
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    contract = contract_of(**{name: COLUMNS[name] for name in names})
    values = {
        "ward": lambda: random.choice(["a", "b", "c"], n_rows),
        "grade": lambda: random.choice(np.array([3, 1, 2, None], dtype=object), n_rows),
        "word": lambda: random.choice(np.array(["yes", "no", None], dtype=object), n_rows),
        "one": lambda: ["only"] * n_rows,
        "plan": lambda: random.choice([0, 25, 95], n_rows),
        "smokes": lambda: random.choice(np.array([True, False, None], dtype=object), n_rows),
        "female": lambda: random.random(n_rows) < 0.5,
        "age": lambda: pd.array(random.integers(-3, 121, n_rows), dtype="Int64"),
        "fixed": lambda: [7] * n_rows,
        "weight": lambda: np.where(random.random(n_rows) < 0.2, np.nan, random.uniform(0.5, 99.25, n_rows)),
        "level": lambda: [2.0] * n_rows,
        "born": lambda: pd.Timestamp("1900-01-01") + pd.to_timedelta(random.integers(0, 44_000, n_rows), unit="D"),
        "seen": lambda: (
            pd.Timestamp("2001-01-01", tz="Europe/Vienna")
            + pd.to_timedelta(random.integers(0, 9_000, n_rows), unit="h")
        ),
    }
    table = pd.DataFrame({name: values[name]() for name in names})
    for name in names:
        if table[name].isna().all():
            table[name] = {"grade": 1, "word": "no", "smokes": True, "weight": 1.0}[name]
    return contract, contract.admit(table), draw(st.integers(1, 40))


@settings(max_examples=examples(80), deadline=None)
@given(admitted(), st.integers(0, 1000))
def test_drawn_values_keep_the_contract_and_their_codes(case, seed):
    contract, table, bins = case
    domain = PublicDomain.from_contract(contract, bins=bins)
    codes = domain.encode(table)
    assert (codes >= 0).all()
    assert (codes < np.array(domain.sizes)).all()
    random = np.random.default_rng(seed)
    every = np.column_stack([random.integers(0, size, 50) for size in domain.sizes])
    for column, size in enumerate(domain.sizes):
        every[:size, column] = np.arange(size)[:50]
    made = domain.decode(every, random)
    for name in made:
        if made[name].isna().all():  # A contract refuses a column without values.
            return
    again = contract.admit_synthetic(made)
    for name in made:
        assert made[name].dtype == table[name].dtype
    rounded = [place for place, column in enumerate(domain.columns) if column.decimals is not None]
    exact = [place for place in range(len(domain.columns)) if place not in rounded]
    assert (domain.encode(again)[:, exact] == every[:, exact]).all()


@settings(max_examples=examples(60), deadline=None)
@given(admitted())
def test_values_of_lists_survive_a_round_trip(case):
    contract, table, bins = case
    domain = PublicDomain.from_contract(contract, bins=bins)
    made = domain.decode(domain.encode(table), np.random.default_rng(0))
    for column in domain.columns:
        assert (made[column.name].isna() == table[column.name].isna()).all()
        if column.kind == "values":
            pd.testing.assert_series_equal(made[column.name], table[column.name])


ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.datetimes(), st.dates(),
    st.lists(st.integers(), max_size=2), st.binary(max_size=3),
)  # fmt: skip


@settings(max_examples=examples(80), deadline=None)
@given(st.lists(ANYTHING, min_size=1, max_size=12), st.sampled_from(sorted(COLUMNS)))
def test_no_value_is_an_error_or_a_new_code(values, name):
    column = PublicDomain.from_contract(contract_of(**{name: COLUMNS[name]})).columns[0]
    codes = column.encode(pd.Series(values, dtype=object))
    assert ((codes >= 0) & (codes < column.n_codes)).all()
    # A person's code does not depend on anybody else.
    assert codes.tolist() == [int(column.encode(pd.Series([value], dtype=object))[0]) for value in values]


def test_values_outside_are_moved_to_the_nearest_end():
    domain = PublicDomain.from_contract(contract_of(age=COLUMNS["age"], born=COLUMNS["born"]), bins=10)
    table = pd.DataFrame({"age": [-999, 10**30, None], "born": [dt.datetime(1, 1, 1), dt.datetime(9999, 1, 1), None]})
    assert domain.encode(table).tolist() == [[0, 0], [9, 9], [10, 10]]


def test_the_domain_does_not_depend_on_any_table():
    contract = contract_of(**COLUMNS)
    assert PublicDomain.from_contract(contract) == PublicDomain.from_contract(contract_of(**COLUMNS))
    sizes = dict(zip(COLUMNS, PublicDomain.from_contract(contract).sizes, strict=True))
    assert sizes["ward"] == 3
    assert sizes["grade"] == 4
    assert sizes["one"] == sizes["fixed"] == sizes["level"] == 1
    assert sizes["smokes"] == 3
    assert sizes["age"] == 33


def test_all_columns_without_a_public_domain_are_named_at_once():
    contract = contract_of(
        name={"type": "text", "role": "other"},
        ward={"type": "category", "role": "other"},
        age={"type": "integer", "role": "other", "min": 0},
        code={"type": "integer", "role": "other", "min": 0, "max": 9, "unique": True},
        fine={"type": "boolean", "role": "other"},
    )
    with pytest.raises(InvalidSettingError, match=r"'name' .*'ward' .*'age' .*'code' .*No record was read") as refused:
        PublicDomain.from_contract(contract)
    assert "fine" not in str(refused.value)


def test_bins_can_start_where_the_owner_says():
    gain = {"type": "integer", "role": "other", "min": 0, "max": 99_999}
    column = PublicDomain.from_contract(contract_of(gain=gain), bin_starts={"gain": [0, 1, 5000, 99_999]}).columns[0]
    assert column.encode(pd.Series([0, 1, 4999, 5000, 99_998, 99_999])).tolist() == [0, 1, 1, 2, 2, 3]
    drawn = column.decode(np.array([0, 3] * 50), np.random.default_rng(0))
    assert set(drawn) == {0, 99_999}


@pytest.mark.parametrize("starts", [[1, 5], [0, 5, 5], [5, 0], [0, 11], [], "0", [0, 2.5], [0, "x"], [0, None], 3])
def test_wrong_bins_are_refused_by_column(starts):
    contract = contract_of(n={"type": "integer", "role": "other", "min": 0, "max": 10})
    with pytest.raises(InvalidSettingError, match=r"'n' has `bin_starts`"):
        PublicDomain.from_contract(contract, bin_starts={"n": starts})
    with pytest.raises(InvalidSettingError, match=r"'m' has `bin_starts`, but is not released"):
        PublicDomain.from_contract(contract, bin_starts={"m": [0]})


@pytest.mark.parametrize("bins", [0, 10_001, 2.0, True, "many"])
def test_wrong_numbers_of_bins_are_refused(bins):
    with pytest.raises(InvalidSettingError, match=r"`bins`"):
        PublicDomain.from_contract(contract_of(age=COLUMNS["age"]), bins=bins)


def test_bounds_that_are_not_allowed_themselves_are_not_in_the_domain():
    checks = [pa.Check.gt(0), pa.Check.lt(10), pa.Check.in_range(-5, 9, include_max=False)]
    schema = pa.DataFrameSchema(
        {
            "n": pa.Column("int64", checks=checks, metadata={"role": "other"}),
            "x": pa.Column("float64", checks=checks, metadata={"role": "other"}),
        }
    )
    whole, real = PublicDomain.from_contract(TableContract(schema)).columns
    assert whole.edges == tuple(range(1, 10))
    assert real.edges[0] > 0
    assert real.edges[-1] < 9
