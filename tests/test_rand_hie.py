"""The quickstart's data: what the file holds, and that its contract describes it."""

import subprocess
import sys
from importlib import util

import pandas as pd
import pytest

from privacy_assets.errors import ContractError, InvalidSettingError
from privacy_assets.examples import rand_hie
from privacy_assets.examples.rand_hie import BANDS, load_rand_hie, rand_hie_contract
from privacy_assets.synthesis.split import people_on_both_sides, split_records
from privacy_assets.synthesis.synthesize import synthesize

pytest.importorskip("statsmodels", reason="needs the extra `examples`")
N_PEOPLE = 5912


@pytest.fixture(scope="module")
def people():
    return load_rand_hie()


def test_there_is_one_row_per_person(people):
    assert len(people) == people["person_id"].nunique() == N_PEOPLE


@pytest.mark.parametrize("banded", [False, True])
def test_the_contract_admits_it_and_takes_the_identifier_away(banded):
    people, contract = load_rand_hie(banded=banded), rand_hie_contract()
    admitted = contract.admit(people)
    assert contract.columns == tuple(people)
    assert admitted["person_id"].max() == N_PEOPLE - 1
    assert len(contract.released_columns) == 15
    assert contract.columns_with_role("direct_identifier") == ("person_id",)


def test_the_contract_of_the_bands_lists_their_values_and_admits_no_others(people):
    contract, banded = rand_hie_contract(banded=True), load_rand_hie(banded=True)
    assert contract.admit(banded).equals(rand_hie_contract().admit(banded))
    with pytest.raises(ContractError, match="medical_expenditure"):
        contract.admit(people)
    assert rand_hie_contract().schema.columns["age"].checks != contract.schema.columns["age"].checks


def test_the_first_year_of_each_person_is_taken(people):
    source = pd.read_csv(rand_hie._path())
    first = source.loc[source.groupby("zper")["year"].idxmin()].sort_values("zper")
    assert (first["year"] == 1).sum() == 5638
    assert people["doctor_visits"].tolist() == first["mdvis"].tolist()


def test_missing_values_are_those_of_the_file_and_its_imputed_means(people):
    assert people.isna().sum()[lambda count: count > 0].to_dict() == {
        "head_is_black": 81,
        "education_years": 4,
        "general_health_index": 1486,
        "physical_limitation": 433,
    }


def test_the_first_digit_of_a_person_is_the_site(people):
    assert (people["person_id"] // 100_000 == people["site"].astype(int)).all()


def test_bands_keep_missing_values_and_only_their_lower_limits():
    banded = load_rand_hie(banded=True)
    people = load_rand_hie()
    assert banded.dtypes.equals(people.dtypes)
    for name, limits in BANDS.items():
        assert set(banded[name].dropna()) <= set(limits)
        assert (banded[name].isna() == people[name].isna()).all()
        assert (banded[name] <= people[name]).fillna(True).all()


@pytest.mark.parametrize("method", ["gaussian_copula", "cart"])
@pytest.mark.parametrize("banded", [False, True])
def test_synthetic_records_keep_the_contract(method, banded):
    contract = rand_hie_contract(banded=banded)
    admitted = contract.admit(load_rand_hie(banded=banded))
    split = split_records(admitted, person=contract.person)
    assert people_on_both_sides(split.original, split.control, "person_id") == 0
    original = split.original[list(contract.released_columns)]
    synthetic = contract.admit_synthetic(synthesize(original, method=method))
    assert synthetic.dtypes.equals(original.dtypes)


def test_statsmodels_is_found_without_being_imported():
    found = "from privacy_assets.examples.rand_hie import _path; found = _path().exists()"
    code = f"import sys; {found}; sys.exit(not found or 'statsmodels' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_absent_statsmodels_names_the_extra(monkeypatch):
    monkeypatch.setattr(rand_hie, "find_spec", lambda name: None if name == "statsmodels" else util.find_spec(name))
    with pytest.raises(InvalidSettingError, match=r"privacy-assets\[examples\]"):
        load_rand_hie()
