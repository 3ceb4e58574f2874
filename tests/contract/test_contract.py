import datetime as dt
import decimal
import io

import numpy as np
import pandas as pd
import pandera.pandas as pa
import pytest

from privacy_assets.contract.contract import ROLES, TableContract
from privacy_assets.errors import ContractError, InvalidSettingError, InvalidTableError

SECRET = "SENTINEL-73"

MAPPING = {
    "columns": {
        "patient": {"type": "text", "role": "direct_identifier", "person": True},
        "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120},
        "income": {"type": "float", "role": "sensitive", "nullable": True, "precision": 2},
        "sex": {"type": "category", "role": "quasi_identifier", "categories": ["female", "male"]},
        "ill": {"type": "boolean", "role": "sensitive", "nullable": True},
        "seen": {"type": "datetime", "role": "other", "nullable": True, "precision": "D"},
        "moment": {"type": "datetime64[us, UTC]", "role": "other", "nullable": True, "min": "2000-01-01"},
        "ward": {"type": "text", "role": "other", "nullable": True, "isin": ["x", "y"], "hierarchy": ["x", "*"]},
        "visits": {"type": "integer", "role": "sensitive", "nullable": True, "scale": "ordinal"},
    }
}


def good_table():
    """A table as files and databases give it: text for numbers, objects for dates."""
    return pd.DataFrame(
        {
            "patient": ["c", "a", "c"],
            "age": ["30", "31", 5],
            "income": [decimal.Decimal("1.5"), None, 2],
            "sex": ["female", "male", "female"],
            "ill": ["true", None, False],
            "seen": ["2020-01-01", None, dt.date(2020, 1, 2)],
            "moment": ["2020-01-01T00:00:00Z", None, "2021-01-01T00:00:00Z"],
            "ward": ["x", None, "y"],
            "visits": [1.0, np.nan, 3.0],
        }
    )


def contract(**columns):
    """A contract with a column ``a`` of type integer unless told otherwise."""
    return TableContract.from_mapping({"columns": {name: {"role": "other", **own} for name, own in columns.items()}})


def failures_of(table, of, method="admit"):
    with pytest.raises(ContractError) as raised:
        getattr(of, method)(table)
    assert raised.value.__context__ is None
    assert raised.value.__cause__ is None
    for column, _, _ in raised.value.failures:
        assert (column if column.startswith("(positions") else repr(column)) in str(raised.value) or column == "(table)"
    return set(raised.value.failures)


class TestAdmission:
    def test_a_table_is_brought_to_the_types_of_the_contract(self):
        admitted = TableContract.from_mapping(MAPPING).admit(good_table())
        assert admitted.dtypes.astype(str).replace("object", "str").to_dict() == {
            "patient": "int64",
            "age": "int64",
            "income": "float64",
            "sex": "category",
            "ill": "boolean",
            "seen": "datetime64[us]",
            "moment": "datetime64[us, UTC]",
            "ward": "str",
            "visits": "Int64",
        }
        assert admitted["age"].tolist() == [30, 31, 5]
        assert admitted["seen"].iloc[2] == pd.Timestamp("2020-01-02")

    def test_what_is_admitted_survives_parquet(self):
        admitted = TableContract.from_mapping(MAPPING).admit(good_table())
        file = io.BytesIO()
        admitted.to_parquet(file)
        pd.testing.assert_frame_equal(pd.read_parquet(file), admitted)

    def test_columns_come_in_the_order_of_the_contract_and_rows_are_numbered_anew(self):
        table = good_table()[::-1][list(MAPPING["columns"])[::-1]]
        admitted = TableContract.from_mapping(MAPPING).admit(table)
        assert list(admitted) == list(MAPPING["columns"])
        assert admitted.index.equals(pd.RangeIndex(3))

    def test_the_table_handed_in_stays_as_it_was(self):
        table, before = good_table(), good_table()
        TableContract.from_mapping(MAPPING).admit(table)
        pd.testing.assert_frame_equal(table, before)

    def test_direct_identifiers_leave_and_the_person_becomes_a_number(self):
        mapping = {"columns": {**MAPPING["columns"], "name": {"type": "text", "role": "direct_identifier"}}}
        admitted = TableContract.from_mapping(mapping).admit(good_table().assign(name=SECRET))
        assert "name" not in admitted
        assert admitted["patient"].tolist() == [0, 1, 0]

    def test_a_person_column_that_is_no_identifier_is_coded_too_and_not_released(self):
        own = contract(home={"type": "integer", "person": True}, a={"type": "integer"})
        assert own.admit(pd.DataFrame({"home": [900, 17, 900], "a": [1, 2, 3]}))["home"].tolist() == [0, 1, 0]
        assert own.released_columns == ("a",)

    def test_keys_that_are_spelled_alike_are_one_person_and_never_a_missing_one(self):
        own = contract(who={"type": "text", "person": True}, a={"type": "integer"})
        table = pd.DataFrame({"who": ["p-1", "P\u20111 ", "none", "007", "7.0", "NA"], "a": range(6)})
        assert own.admit(table)["who"].tolist() == [0, 0, 1, 2, 2, 3]

    def test_only_categories_that_are_listed_are_compared_as_categories(self):
        own = contract(
            listed={"type": "category", "categories": ["none", "a"]},
            ranked={"type": "category", "categories": ["none", "a"], "ordered": True},
            found={"type": "category"},
        )
        admitted = own.admit(pd.DataFrame({name: ["none", "a", "a"] for name in ("listed", "ranked", "found")}))
        compared = own.as_compared(admitted)
        assert [str(dtype) for dtype in compared.dtypes] == ["category", "category", "object"]
        pd.testing.assert_frame_equal(compared.astype(object), admitted.astype(object))

    def test_records_without_a_person_are_counted_even_where_the_schema_allows_them(self):
        own = contract(who={"type": "text", "person": True, "nullable": True}, a={"type": "integer"})
        table = pd.DataFrame({"who": ["a", None, None], "a": [1, 2, 3]})
        assert failures_of(table, own) == {("who", "is_not_missing", 2)}

    def test_a_constant_column_and_a_single_record_are_admitted(self):
        assert contract(a={"type": "integer"}).admit(pd.DataFrame({"a": [7]}))["a"].tolist() == [7]

    def test_narrow_floats_keep_their_decimals(self):
        table = pd.DataFrame({"a": np.array([0.1, 2.7], dtype=np.float32)})
        assert contract(a={"type": "float"}).admit(table)["a"].tolist() == [0.1, 2.7]

    def test_large_whole_numbers_keep_every_digit(self):
        values = [2**62 + 1, 2**53 + 1]
        for column in (values, [str(value) for value in values], pd.array(values, dtype="UInt64")):
            assert contract(a={"type": "integer"}).admit(pd.DataFrame({"a": column}))["a"].tolist() == values

    def test_whole_numbers_become_text_where_the_contract_says_text(self):
        assert contract(a={"type": "text"}).admit(pd.DataFrame({"a": [7, 8]}))["a"].tolist() == ["7", "8"]

    def test_time_zones_are_converted_to_that_of_the_contract(self):
        table = pd.DataFrame({"a": pd.to_datetime(["2020-06-01", "2020-06-02"]).tz_localize("Europe/Berlin")})
        admitted = contract(a={"type": "datetime64[us, UTC]"}).admit(table)
        assert admitted["a"].iloc[0] == pd.Timestamp("2020-05-31T22:00", tz="UTC")

    def test_dates_beyond_the_reach_of_nanoseconds_are_admitted(self):
        for kind, end in (("datetime", ""), ("datetime64[us, UTC]", "T00:00:00Z")):
            table = pd.DataFrame({"a": [f"9999-12-31{end}", f"1600-01-01{end}", f"2020-01-01{end}"]})
            assert contract(a={"type": kind}).admit(table)["a"].dt.year.tolist() == [9999, 1600, 2020]


class TestRefusal:
    def test_all_violations_are_reported_at_once_by_column_and_check_without_a_value(self):
        bad = pd.DataFrame(
            {
                "patient": [SECRET, None, "a"],
                "age": [1.5, 130, np.inf],
                "income": [SECRET, None, 2],
                "sex": ["female", SECRET, None],
                "ill": [SECRET, None, False],
                "seen": ["2020-01-01", None, SECRET],
                "moment": ["2020-01-01T00:00:00Z", None, "2021-01-01T00:00:00"],
                "ward": [SECRET, None, "y"],
                "extra": [1, 2, 3],
            }
        )
        assert failures_of(bad, TableContract.from_mapping(MAPPING)) == {
            ("(positions 8)", "is_in_the_contract", 1),
            ("visits", "is_present", 1),
            ("patient", "is_not_missing", 1),
            ("age", "is_finite", 1),
            ("age", "has_type_integer", 1),
            ("age", "less_than_or_equal_to(120)", 1),
            ("income", "has_type_float", 1),
            ("sex", "is_a_category", 1),
            ("sex", "is_not_missing", 1),
            ("ill", "has_type_boolean", 1),
            ("seen", "has_type_datetime", 1),
            ("moment", "has_one_time_zone", 1),
            ("ward", "isin", 1),
        }
        with pytest.raises(ContractError) as raised:
            TableContract.from_mapping(MAPPING).admit(bad)
        assert SECRET not in str(raised.value)
        assert "Nothing was admitted" in str(raised.value)

    @pytest.mark.parametrize(
        ("kind", "values", "check", "count"),
        [
            ("integer", [1.5, 2.0, 2.5], "has_type_integer", 2),
            ("integer", ["1", "two", ""], "has_type_integer", 2),
            ("integer", [1e300, 1.0, 2.0], "has_type_integer", 1),
            ("integer", [dt.datetime(2020, 1, 1), 1, 2], "has_type_integer", 1),
            ("integer", pd.to_datetime(["2020-01-01"] * 3), "has_type_integer", 3),
            ("float", [np.inf, -np.inf, 1.0], "is_finite", 2),
            ("float", ["1,5", "2.5", "3"], "has_type_float", 1),
            ("boolean", ["no", "yes", "true"], "has_type_boolean", 2),
            ("boolean", [0, 1, 2], "has_type_boolean", 1),
            ("text", [1.5, "a", b"c"], "has_type_text", 2),
            ("datetime", [1, 2, 3], "has_type_datetime", 3),
            ("datetime", ["01/02/2020", "2020-01-02", "2020-13-01"], "has_type_datetime", 2),
            ("datetime", ["2020-01-01T00:00:00+01:00", "2020-01-01", None], "has_one_time_zone", 1),
            ("datetime64[us, UTC]", ["2020-01-01"] * 3, "has_a_time_zone", 3),
            ("datetime64[us, UTC]", ["2020-01-01T00:00Z", "2020-01-01T00:00", None], "has_one_time_zone", 1),
            ("datetime", pd.to_datetime([1, 2000, 5000], unit="ns"), "has_no_more_than_microseconds", 1),
        ],
    )
    def test_nothing_is_converted_that_would_lose_something(self, kind, values, check, count):
        table = pd.DataFrame({"a": values})
        assert failures_of(table, contract(a={"type": kind, "nullable": True})) >= {("a", check, count)}

    def test_datetimes_with_and_without_a_zone_in_one_column_are_refused(self):
        zones = [dt.UTC, None]
        table = pd.DataFrame({"a": pd.Series([dt.datetime(2020, 1, 1, tzinfo=z) for z in zones], dtype=object)})
        own = contract(a={"type": "datetime64[us, UTC]"})
        assert failures_of(table, own) == {("a", "has_one_time_zone", 1)}
        with pytest.raises(ContractError, match="give all datetimes a time zone, or none"):
            own.admit(table)

    @pytest.mark.parametrize("kind", ["integer", "float", "boolean", "text", "category", "datetime"])
    def test_a_column_without_any_value_is_refused(self, kind):
        table = pd.DataFrame({"a": [None, None]})
        own = contract(a={"type": kind, "nullable": True})
        assert failures_of(table, own) == {("a", "is_not_all_missing", 2)}

    def test_missing_values_are_counted_where_none_are_allowed(self):
        assert failures_of(pd.DataFrame({"a": [1, None, None]}), contract(a={"type": "integer"})) == {
            ("a", "is_not_missing", 2)
        }

    def test_values_that_must_be_unique_are_counted(self):
        own = contract(a={"type": "integer", "unique": True})
        assert {(column, check) for column, check, _ in failures_of(pd.DataFrame({"a": [1, 1, 2]}), own)} == {
            ("a", "is_unique")
        }

    def test_an_empty_table_is_refused(self):
        own = contract(a={"type": "integer"})
        assert failures_of(pd.DataFrame({"a": []}), own) == {("(table)", "has_records", 1)}

    def test_repeated_column_names_are_refused(self):
        table = pd.DataFrame([[1, 2]], columns=["a", "a"])
        found = failures_of(table, contract(a={"type": "integer"}))
        assert found == {("(table)", "has_different_texts_as_names", 1)}

    def test_names_of_a_file_read_without_its_header_are_not_shown(self):
        with pytest.raises(ContractError, match=r"has_any_of_the_columns \['a'\]") as raised:
            contract(a={"type": "integer"}).admit(pd.DataFrame({SECRET: [1]}))
        assert SECRET not in str(raised.value)

    def test_what_is_no_table_is_refused(self):
        with pytest.raises(InvalidTableError, match="got list"):
            contract(a={"type": "integer"}).admit([1])

    @pytest.mark.parametrize("table_check", [True, False])
    def test_checks_of_the_user_are_counted_and_their_errors_hidden(self, table_check):
        def explode(_):
            raise ValueError(SECRET)

        def is_small(values):
            return values < 2

        checks = [pa.Check(explode, name="explodes")]
        column = pa.Column(int, [pa.Check(is_small), *([] if table_check else checks)], metadata={"role": "other"})
        own = TableContract(pa.DataFrameSchema({"a": column}, checks=checks if table_check else None))
        place = "(table)" if table_check else "a"
        found = failures_of(pd.DataFrame({"a": [1, 2, 3]}), own)
        assert found == {("a", "is_small", 2), (place, "explodes (could not be evaluated)", 1)}


class TestSynthetic:
    def test_exactly_the_released_columns_are_admitted(self):
        own = TableContract.from_mapping(MAPPING)
        released = own.admit(good_table())[list(own.released_columns)]
        pd.testing.assert_frame_equal(own.admit_synthetic(released), released)
        assert "patient" not in own.released_columns

    def test_identifiers_missing_columns_and_broken_ranges_are_refused(self):
        own = TableContract.from_mapping(MAPPING)
        synthetic = own.admit(good_table()).drop(columns="sex").assign(age=[130, 1, 2])
        assert failures_of(synthetic, own, "admit_synthetic") == {
            ("patient", "is_in_the_contract", 1),
            ("sex", "is_present", 1),
            ("age", "less_than_or_equal_to(120)", 1),
        }

    def test_joint_uniqueness_with_an_identifier_is_not_asked_of_synthetic_records(self):
        columns = {
            "who": pa.Column(int, metadata={"role": "direct_identifier"}),
            "year": pa.Column(int, metadata={"role": "other"}),
        }
        own = TableContract(pa.DataFrameSchema(columns, unique=["who", "year"]))
        assert len(own.admit_synthetic(pd.DataFrame({"year": [1, 1]}))) == 2
        repeated = pd.DataFrame({"who": [1, 1], "year": [2, 2]})
        assert {check for _, check, _ in failures_of(repeated, own)} == {"is_unique"}


class Model(pa.DataFrameModel):
    age: int = pa.Field(ge=0, metadata={"role": "quasi_identifier"})
    town: str = pa.Field(nullable=True, metadata={"role": "other"})


def made_contract():
    return TableContract(Model)


BROKEN = 3


class TestDescription:
    def test_a_model_class_is_a_contract_too(self):
        own = TableContract(Model)
        assert dict(own.roles) == {"age": "quasi_identifier", "town": "other"}
        assert own.admit(pd.DataFrame({"town": ["a", None], "age": [1, 2]}))["age"].tolist() == [1, 2]

    @pytest.mark.parametrize("attribute", ["Model", "made_contract"])
    def test_a_contract_can_be_named_by_its_python_path(self, attribute):
        assert TableContract.from_path(f"tests.contract.test_contract:{attribute}").columns == ("age", "town")

    @pytest.mark.parametrize(
        ("path", "reason"),
        [
            ("tests.contract.test_contract", "not a Python path"),
            ("tests.tables.nowhere:Model", "could not be imported: ModuleNotFoundError"),
            ("tests.contract.test_contract:nothing", "could not be imported: AttributeError"),
            ("tests.contract.test_contract:BROKEN", "got int"),
        ],
    )
    def test_a_path_that_leads_nowhere_says_so(self, path, reason):
        with pytest.raises(InvalidSettingError, match=reason) as raised:
            TableContract.from_path(path)
        assert raised.value.__context__ is None

    def test_roles_person_precisions_and_metadata_can_be_asked_for(self):
        own = TableContract.from_mapping(MAPPING)
        assert own.columns_with_role("sensitive") == ("income", "ill", "visits")
        assert own.person == "patient"
        assert dict(own.precisions) == {"income": 2, "seen": "D"}
        assert own.metadata("hierarchy") == {"ward": ["x", "*"]}
        assert own.metadata("scale") == {"visits": "ordinal"}
        with pytest.raises(InvalidSettingError, match="no role 'secret'"):
            own.columns_with_role("secret")

    def test_parts_of_one_column_are_known_by_its_name(self):
        own = {name: dict(described) for name, described in MAPPING["columns"].items()}
        for name, what in (("ill", "course"), ("visits", "course")):
            own[name]["part_of"] = what
        contract = TableContract.from_mapping({"columns": own})
        assert contract.parts == {"course": ("ill", "visits")}
        before = TableContract.from_mapping(MAPPING)
        assert before.parts == {}
        assert before.searched_columns == before.released_columns == contract.released_columns
        expected = ["course" if name == "ill" else name for name in before.released_columns if name != "visits"]
        assert list(contract.searched_columns) == expected

    def test_the_description_is_plain_data_without_values(self):
        described = TableContract.from_mapping(MAPPING).describe()
        assert described[1] == {"column": "age", "type": "int64", "role": "quasi_identifier", "nullable": False}
        assert described[3]["type"] == "category"
        assert "female" not in str(described)
        assert "female" not in repr(TableContract.from_mapping(MAPPING))

    def test_a_contract_cannot_be_changed(self):
        with pytest.raises(AttributeError, match="cannot be changed"):
            TableContract(Model).person = "age"


class TestBadContracts:
    def test_columns_without_a_role_or_with_an_unknown_one_are_all_listed(self):
        columns = {
            "a": pa.Column(int),
            "b": pa.Column(int, metadata={"role": "secret"}),
            "c": pa.Column(int, metadata={"role": "other", "presision": 3}),
            "d": pa.Column(int, metadata={"precision": 3, "role": "other"}),
            "e": pa.Column(object, metadata={"role": "other"}),
            "f": pa.Column(metadata={"role": "other"}),
            "g": pa.Column(float, metadata={"role": "other", "precision": 11}),
            "h": pa.Column("datetime64[ns]", metadata={"role": "other", "precision": "week"}),
            "i": pa.Column(int, metadata={"role": "other", "scale": {"interval": [[3, 1]]}}),
        }
        with pytest.raises(InvalidSettingError) as raised:
            TableContract(pa.DataFrameSchema(columns))
        message = str(raised.value)
        assert "(9 problems)" in message
        for expected in (
            "'a' has no role",
            "'b' has the unknown role 'secret'",
            "'c' has unknown metadata ['presision']",
            "'d' has a precision, which only",
            "'e' has the type object",
            "'f' has no type",
            "'g' has the precision 11",
            "'h' has the precision 'week'",
            "'i' has a scale that cannot be used: An interval scale has the window [3, 1]",
        ):
            assert expected in message
        assert all(role in message for role in ROLES)

    @pytest.mark.parametrize(
        ("columns", "reason"),
        [
            ({"a": "x"}, "`part_of` makes names with fewer than two parts: ['x']"),
            ({"a": "x", "b": "x", "x": None}, "`part_of` makes names of other columns: ['x']"),
            ({"a": "x", "b": ""}, "`part_of` of ['a', 'b'] is no name"),
            ({"a": 3, "b": 3}, "`part_of` of ['a', 'b'] is no name"),
            ({"a": "x", "income": "x"}, "the parts of 'x' have different roles, {'a': 'other', 'income': 'sensitive'}"),
            ({"name": "x", "street": "x"}, "the parts of 'x', ['name', 'street'], are never released"),
            ({"a": "x", "who": "x"}, "the parts of 'x', ['a', 'who'], are never released"),
        ],
    )
    def test_parts_that_are_none_are_refused(self, columns, reason):
        roles = {"income": "sensitive", "name": "direct_identifier", "street": "direct_identifier"}
        described = {
            name: {"type": "text", "role": roles.get(name, "other"), "part_of": part_of, "person": name == "who"}
            for name, part_of in columns.items()
        }
        with pytest.raises(InvalidSettingError) as raised:
            TableContract.from_mapping({"columns": described})
        assert reason in str(raised.value)

    @pytest.mark.parametrize(
        ("schema", "reason"),
        [
            ({"columns": {}}, "has no columns"),
            ({"index": pa.Index(int)}, "describes an index"),
            ({"parsers": pa.Parser(lambda table: table)}, "has parsers"),
            ({"drop_invalid_rows": True}, "drops invalid rows"),
            ({"checks": pa.Check(lambda table: table["a"] > 0, raise_warning=True)}, "only warns"),
        ],
    )
    def test_features_that_would_pass_something_silently_are_refused(self, schema, reason):
        columns = {"a": pa.Column(int, metadata={"role": "other"})}
        with pytest.raises(InvalidSettingError, match=reason):
            TableContract(pa.DataFrameSchema(**{"columns": columns, **schema}))

    @pytest.mark.parametrize(
        ("column", "reason"),
        [
            ({"required": False}, "optional"),
            ({"default": 3}, "default"),
            ({"regex": True}, "a string as its name"),
            ({"checks": pa.Check(lambda values: values > 0, raise_warning=True)}, "only warns"),
        ],
    )
    def test_columns_that_would_pass_something_silently_are_refused(self, column, reason):
        with pytest.raises(InvalidSettingError, match=reason):
            TableContract(pa.DataFrameSchema({"a": pa.Column(int, metadata={"role": "other"}, **column)}))

    @pytest.mark.parametrize(
        ("own", "reason"),
        [
            ({"typ": "integer"}, r"unknown keys \['typ'\].*has no type"),
            ({"type": "integr"}, "unknown type 'integr'"),
            ({"type": "datetime64[us, Atlantis]"}, "unknown type"),
            ({"type": 3}, "unknown type 3"),
            ({"type": "integer", "nullable": "yes"}, "'nullable' that is not true or false"),
            ({"type": "integer", "person": "yes"}, "`person` that is neither"),
            ({"type": "integer", "min": "a"}, "'min' that its type 'integer' cannot be compared with"),
            ({"type": "text", "max": 3}, "'max' that its type 'text'"),
            ({"type": "datetime", "min": "soon"}, "'min' that its type 'datetime'"),
            ({"type": "integer", "min": 3, "max": 1}, "'min' above its 'max'"),
            ({"type": "text", "isin": "ab"}, "not a list of values"),
            ({"type": "text", "isin": ["a"], "categories": ["a"]}, "both 'categories' and 'isin'"),
            ({"type": "text", "ordered": True}, "which only a category can be"),
        ],
    )
    def test_mistakes_in_a_mapping_are_named(self, own, reason):
        with pytest.raises(InvalidSettingError, match=f"column 'a'.*{reason}"):
            contract(a=own)

    @pytest.mark.parametrize("mapping", [[], {}, {"columns": []}, {"columns": {"a": 3}}, {"columns": {}, "name": 1}])
    def test_what_is_no_such_mapping_is_refused(self, mapping):
        with pytest.raises(InvalidSettingError, match=r"columns|described by a mapping"):
            TableContract.from_mapping(mapping)

    def test_what_is_no_schema_is_refused(self):
        with pytest.raises(InvalidSettingError, match="DataFrameSchema or a DataFrameModel class; got dict"):
            TableContract({"a": int})
