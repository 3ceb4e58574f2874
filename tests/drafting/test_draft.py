"""Drafts of contracts: types, formats, roles and what of a table they show, on real and planted tables."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import pytest
import yaml

from privacy_assets import InvalidSettingError, TableContract, draft_contract
from privacy_assets.examples.rand_hie import CONTRACT, load_rand_hie
from tests.drafting.planted_people import IDENTIFYING, planted_people
from tests.shared_data import shared_file

N = 400


def drafted(values, name="a"):
    """Draft a column of texts, as a CSV file gives them."""
    table = pd.DataFrame({name: pd.Series(values, dtype=object), "b": range(len(values))})
    return draft_contract(table).mapping["columns"][name]


def decided(draft):
    """Decide a draft as somebody would who accepts every proposal."""
    columns = {
        name: {key: value for key, value in own.items() if (key, value) != ("person", "decide")}
        | ({"role": "quasi_identifier"} if own["role"] == "decide" else {})
        | ({"not_a_person": "Decided in this test"} if "not_a_person" in own else {})
        for name, own in draft.mapping["columns"].items()
    }
    has_person = any("person" in own for own in columns.values())
    return TableContract.from_mapping({"columns": columns, "one_row_per_person": not has_person})


def types_of(draft):
    return {name: own["type"] for name, own in draft.mapping["columns"].items()}


class TestRealTables:
    def test_adult_from_its_file(self):
        path = shared_file("data", "adult.csv")
        draft = draft_contract(path)
        numbers = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")
        names = pd.read_csv(path, nrows=0).columns
        assert types_of(draft) == {name: "integer" if name in numbers else "category" for name in names}
        columns = draft.mapping["columns"]
        assert columns["education"]["categories"][::15] == ["Preschool", "Doctorate"]
        assert [name for name, own in columns.items() if own.get("ordered")] == ["education", "income"]
        nullable = [name for name, own in columns.items() if own.get("nullable")]
        assert nullable == ["workclass", "occupation", "native_country"]
        assert not [name for name, own in columns.items() if own["role"] == "direct_identifier"]
        # A sampling weight singles people out, and those of a stratum have one race: only a person can say what it is.
        assert draft.open_columns == ("fnlwgt",)
        admitted = decided(draft).admit(pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""]))
        assert len(admitted) == draft.n_rows == 32_561

    def test_fair_has_whole_numbers_and_halves(self):
        fair = pytest.importorskip("statsmodels.datasets.fair", reason="needs the extra `examples`").load_pandas().data
        draft = draft_contract(fair)
        halves = ("age", "yrs_married", "children", "affairs")
        assert types_of(draft) == {name: "float" if name in halves else "integer" for name in fair}
        assert {name: draft.mapping["columns"][name]["precision"] for name in halves[:3]} == dict.fromkeys(
            halves[:3], 1
        )
        assert draft.open_columns == ()
        assert len(decided(draft).admit(fair)) == len(fair)

    def test_rand_has_the_types_of_its_contract(self):
        pytest.importorskip("statsmodels", reason="needs the extra `examples`")
        table = load_rand_hie()
        draft = draft_contract(table)
        assert types_of(draft) == {name: own["type"] for name, own in CONTRACT["columns"].items()}
        columns = draft.mapping["columns"]
        assert {name for name, own in columns.items() if own.get("nullable")} == {
            name for name, own in CONTRACT["columns"].items() if own.get("nullable")
        }
        assert [name for name, own in columns.items() if own["role"] == "direct_identifier"] == ["person_id"]
        assert draft.person == "person_id"
        assert len(decided(draft).admit(table)) == len(table)

    @pytest.mark.parametrize("missing", ["NA", ""])
    def test_a_table_as_the_penguins(self, tmp_path, missing):
        path = tmp_path / "penguins.csv"
        as_the_penguins(missing).to_csv(path, index=False)
        draft = draft_contract(path)
        assert types_of(draft) == {
            "species": "category",
            "island": "category",
            "bill_length_mm": "float",
            "bill_depth_mm": "float",
            "flipper_length_mm": "integer",
            "body_mass_g": "integer",
            "sex": "category",
            "year": "integer",
        }
        columns = draft.mapping["columns"]
        assert columns["sex"]["categories"] == ["female", "male"]
        assert all(own.get("missing") == ["NA"] for own in columns.values() if own.get("nullable") and missing)
        assert [name for name, own in columns.items() if own.get("nullable")] == [
            *("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "sex")
        ]
        source = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
        assert decided(draft).admit(source)["sex"].isna().sum() == 11


def as_the_penguins(missing):
    """Make a table of the shape of the Palmer penguins: 344 rows, missing measures and sexes."""
    random = np.random.default_rng(0)
    species = random.choice(["Adelie", "Chinstrap", "Gentoo"], 344, p=[0.44, 0.2, 0.36])
    table = pd.DataFrame(
        {
            "species": species,
            "island": random.choice(["Biscoe", "Dream", "Torgersen"], 344),
            "bill_length_mm": random.normal(44, 5, 344).round(1).astype(str),
            "bill_depth_mm": random.normal(17, 2, 344).round(1).astype(str),
            "flipper_length_mm": random.integers(172, 232, 344).astype(str),
            "body_mass_g": (random.integers(54, 127, 344) * 50).astype(str),
            "sex": random.choice(["male", "female"], 344),
            "year": random.choice([2007, 2008, 2009], 344),
        }
    ).astype(object)
    table.loc[[3, 271], ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]] = missing
    table.loc[[3, 8, 9, 10, 11, 47, 178, 218, 256, 268, 271], "sex"] = missing
    return table


class TestTypes:
    @pytest.mark.parametrize(
        ("form", "expected"),
        [
            ("%Y-%m-%d", {"type": "datetime", "precision": "D"}),
            ("%Y-%m-%dT%H:%M:%S", {"type": "datetime", "precision": "s"}),
            ("%d.%m.%Y", {"type": "datetime", "precision": "D", "format": "%d.%m.%Y"}),
            ("%d.%m.%Y %H:%M", {"type": "datetime", "precision": "min", "format": "%d.%m.%Y %H:%M"}),
            ("%m/%d/%Y", {"type": "datetime", "precision": "D", "format": "%m/%d/%Y"}),
            ("%d/%m/%Y", {"type": "datetime", "precision": "D", "format": "%d/%m/%Y"}),
            ("%Y%m%d", {"type": "datetime", "precision": "D", "format": "%Y%m%d"}),
            ("%d.%m.%y", {"type": "datetime", "precision": "D", "format": "%d.%m.%y"}),
            ("%d %B %Y", {"type": "datetime", "precision": "D", "format": "%d %B %Y"}),
            ("%b %d, %Y", {"type": "datetime", "precision": "D", "format": "%b %d, %Y"}),
            ("%Y-%m-%dT%H:%M:%SZ", {"type": "datetime64[us, UTC]", "precision": "s"}),
        ],
    )
    def test_datetimes_in_common_formats_are_drafted_and_admitted(self, form, expected):
        times = pd.date_range("2001-01-03 04:05:06", periods=N, freq="29h7min3s")
        texts = times.strftime(form).tolist()
        own = drafted(texts)
        assert {key: own.get(key) for key in expected} == expected
        assert (own["min"], own["max"]) == ("2001-01-01", "2003-01-01")
        contract = TableContract.from_mapping({"columns": {"a": own | {"role": "other"}}})
        admitted = contract.admit(pd.DataFrame({"a": texts}))["a"]
        by_python = [dt.datetime.strptime(text, form) for text in texts]
        assert admitted.dt.tz_localize(None).tolist() == by_python

    def test_day_or_month_first_is_decided_by_a_person(self):
        own = drafted(["03/04/2020", "05/06/2020", "11/12/2021"] * 50)
        assert own["format"] == "decide"
        assert drafted(["03/04/2020", "13/06/2020"] * 50)["format"] == "%d/%m/%Y"

    def test_numbers_are_read_by_their_marks(self):
        assert drafted([f"{number},{number % 10}" for number in range(N)]) | {"role": 0} == {
            "type": "float", "role": 0, "min": 0.0, "max": 400.0, "precision": 1, "decimal": ",",
        }  # fmt: skip
        assert drafted(["1.234,50", "12,25", "3,00"] * 40)["decimal"] == ","
        assert drafted(["1,234.50", "12.25", "3.00"] * 40)["decimal"] == "."
        assert drafted(["1,234", "2,345"] * 50)["decimal"] == "decide"
        assert drafted([f"{number}.0" for number in range(20, 90)] * 3)["type"] == "integer"
        assert drafted([decimal.Decimal("1.25"), decimal.Decimal(3)] * 50)["precision"] == 2

    def test_codes_with_zeros_are_text(self):
        assert drafted([f"{number:05d}" for number in range(990, 1100)] * 4)["type"] == "text"

    def test_types_are_those_of_all_rows_and_not_of_the_first(self, tmp_path):
        path = tmp_path / "late.csv"
        lines = [f"{number},{number},{number}" for number in range(100_000)]
        pd.Series(["a,b,c", *lines, "x,1.5,"]).to_csv(path, index=False, header=False, quoting=3, sep="\t")
        columns = draft_contract(path).mapping["columns"]
        assert [columns[name]["type"] for name in "abc"] == ["text", "float", "integer"]
        assert columns["c"]["nullable"]
        assert "nullable" not in columns["a"]

    def test_mixed_types_are_text_and_to_be_decided(self):
        draft = draft_contract(pd.DataFrame({"a": ["12", "13", "fourteen", "15"] * 50, "b": ["x", 2, 3, "y"] * 50}))
        said = draft.to_yaml()
        assert {own["type"] for own in draft.mapping["columns"].values()} <= {"text", "category"}
        assert "decide: mixed types, 100 numbers, 100 texts" in said
        assert "decide: 75.0% of its texts are numbers, 50 are not. Are these values of one kind?" in said
        mostly = draft_contract(pd.DataFrame({"a": [*map(str, range(190)), *["?!"] * 10]}))
        assert "decide: 95.0% of its texts are numbers, 10 are not" in mostly.to_yaml()

    @pytest.mark.parametrize(
        ("categories", "ordered"),
        [
            (["low", "high", "medium"], ["low", "medium", "high"]),
            (["often", "never", "sometimes"], ["never", "sometimes", "often"]),
            (["18-24", "65+", "25-64", "<18"], ["<18", "18-24", "25-64", "65+"]),
            (["Stage II", "Stage I", "Stage IV"], ["Stage I", "Stage II", "Stage IV"]),
            (["M", "S", "XL", "L"], ["S", "M", "L", "XL"]),
            (["Wednesday", "Monday"], ["Monday", "Wednesday"]),
            (["10k-20k", "5k-10k", "over 20k"], ["5k-10k", "10k-20k", "over 20k"]),
            (["north", "south"], None),
            (["M", "F"], None),
        ],
    )
    def test_ordered_categories_are_known_by_common_scales(self, categories, ordered):
        own = drafted(categories * 50)
        assert own["type"] == "category"
        assert (own["categories"], own.get("ordered", False)) == (ordered or sorted(categories), ordered is not None)


class TestRoles:
    def test_planted_identifiers_are_proposed(self):
        table = planted_people()
        draft = draft_contract(table)
        proposed = {name for name, own in draft.mapping["columns"].items() if own["role"] == "direct_identifier"}
        assert len(IDENTIFYING) == 20
        assert len(IDENTIFYING & proposed) >= 19, IDENTIFYING - proposed
        assert proposed <= IDENTIFYING
        assert draft.person == "patient_id"

    def test_the_person_is_the_number_of_people_and_not_of_rows(self):
        random = np.random.default_rng(0)
        visits = pd.DataFrame(
            {
                "visit_id": np.arange(10_000, 10_000 + N),
                "patient_id": random.integers(500_000, 500_090, N),
                "hospital_id": random.integers(1, 6, N),
                "age": random.integers(20, 60, N),
            }
        )
        draft = draft_contract(visits)
        assert draft.person == "patient_id"
        roles = {name: own["role"] for name, own in draft.mapping["columns"].items()}
        assert (roles["visit_id"], roles["patient_id"]) == ("direct_identifier", "direct_identifier")
        assert roles["hospital_id"] != "direct_identifier"

    def test_what_nearly_everybody_has_alone_is_offered_as_a_direct_identifier_first(self):
        random = np.random.default_rng(0)
        days = pd.to_timedelta(random.choice(25_000, 300, replace=False), unit="D")
        table = pd.DataFrame(
            {
                "thing": random.choice(10**6, 300, replace=False),
                "word": [f"AB-{number}" for number in random.choice(10**6, 300, replace=False)],
                "seen": pd.Timestamp("1940-01-01") + days,
                "spent": np.exp(random.normal(7, 1, 300)).astype(int),
            }
        )
        draft = draft_contract(table)
        roles = {name: own["role"] for name, own in draft.mapping["columns"].items()}
        assert (roles["thing"], roles["word"], roles["spent"]) == ("direct_identifier", "direct_identifier", "decide")
        text = draft.to_yaml()
        for name, before in (("seen", "  thing: "), ("spent", "  seen: ")):
            assert ": direct_identifier, " in text[text.index(before) : text.index(f"  {name}: ")], name

    def test_a_column_without_values_and_one_with_one_value(self):
        own = draft_contract(pd.DataFrame({"a": [None, None], "b": ["x", "x"], "c": ["1", "2"]})).mapping["columns"]
        assert (own["a"]["role"], own["b"]["role"]) == ("direct_identifier", "other")


class TestDecisions:
    TABLE = pd.DataFrame({"age": [*range(20, 60)] * 5, "figure": np.arange(200) * 1.37 + 7, "plan": ["a", "b"] * 100})

    def test_a_draft_is_refused_until_somebody_decides(self):
        mapping = draft_contract(self.TABLE).mapping
        assert mapping["columns"]["figure"]["role"] == "decide"
        with pytest.raises(InvalidSettingError, match=r"\['age', 'plan'\] are proposals: read them"):
            TableContract.from_mapping(mapping)
        with pytest.raises(InvalidSettingError, match=r"\['figure'\] still have `decide` as a value: replace it"):
            TableContract.from_mapping({"columns": mapping["columns"]})
        mapping["columns"]["figure"]["role"] = "sensitive"
        assert TableContract.from_mapping({"columns": mapping["columns"]}).roles["figure"] == "sensitive"
        for wrong in ("no", 0, None):
            with pytest.raises(InvalidSettingError, match="is not decided yet"):
                TableContract.from_mapping(mapping | {"drafted": wrong})

    def test_the_yaml_is_the_mapping(self):
        draft = draft_contract(self.TABLE.assign(**{"a: [b]": "x", "yes": ["{{ x }}", "0x1"] * 100, "ä\u2028#": "1e5"}))
        assert yaml.safe_load(draft.to_yaml()) == draft.mapping
        # Dagster would evaluate the text as a template.
        assert "{{" not in draft.to_yaml()

    def test_the_repr_has_no_cell(self):
        assert repr(draft_contract(self.TABLE)) == "ContractDraft(3 columns of 200 rows; 1 with something to decide)"


class TestParts:
    """Columns that seem to be parts of one."""

    def dates(self, first="{}", n_rows=900):
        random = np.random.default_rng(0)
        days = pd.Timestamp("1950-01-01") + pd.to_timedelta(random.integers(0, 20_000, n_rows), unit="D")
        units = {"year": days.year, "month": days.month, "day": days.day}
        others = {"county": random.integers(0, 5, n_rows), "town": random.integers(0, 9, n_rows)}
        return pd.DataFrame({first.format(name): own for name, own in units.items()} | others)

    @pytest.mark.parametrize(
        ("first", "name"),
        [
            ("birth_{}", "birth_date"),
            ("Birth {}", "birth_date"),
            ("birth_date_{}", "birth_date"),
            ("{}_of_birth", "birth_date"),
            ("birth.{}", "birth_date"),
            ("birth{}", "birth_date"),
            ("{}", "date"),
        ],
    )
    def test_a_date_in_parts_is_proposed_by_names(self, first, name):
        table = self.dates(first)
        draft = draft_contract(table)
        assert decided(draft).parts == {name: tuple(table.columns[:3])}
        assert yaml.safe_load(draft.to_yaml())["columns"] == draft.mapping["columns"]
        assert len(decided(draft).admit(table)) == len(table)

    def test_parts_with_proposals_of_different_roles_are_not_proposed(self):
        table = self.dates("birth_{}").assign(birth_day=[f"d{i:05d}" for i in range(900)])
        draft = draft_contract(table)
        assert not any("part_of" in column.description for column in draft.columns)

    def test_names_that_only_end_like_a_unit_are_no_parts(self):
        table = pd.DataFrame({"holiday": [1, 2] * 30, "birthday": [1, 3] * 30, "education_years": [9, 10] * 30})
        assert not any("part_of" in own for own in draft_contract(table).mapping["columns"].values())

    def test_a_name_that_is_taken_is_not_proposed(self):
        table = self.dates("birth_{}").assign(birth_date="unknown")
        assert not any("part_of" in own for own in draft_contract(table).mapping["columns"].values())

    @pytest.mark.parametrize("n_parts", [2, 3])
    def test_a_column_beside_its_parts_has_a_remark(self, n_parts):
        table = self.dates()[["county", "town"]]
        table["side"] = np.random.default_rng(1).integers(0, 3, len(table))
        names = list(table.columns[:n_parts])
        table["code"] = table[names].astype(str).agg("-".join, axis=1)
        remarks = {column.name: " ".join(column.remarks) for column in draft_contract(table).columns}
        assert f"determined by {', '.join(names)} together, and determines them" in remarks["code"]
        assert not any("determined" in remarks[name] for name in ("county", "town", "side"))

    def test_a_number_of_each_row_determines_others_by_chance_only(self):
        table = self.dates()[["county", "town"]].assign(number=range(900))
        assert not any("determined" in " ".join(column.remarks) for column in draft_contract(table).columns)
