"""Real health records for the quickstart: the RAND Health Insurance Experiment, 1974 to 1982.

Families in six places of the United States were assigned at random to insurance plans; the experiment recorded their
health and their use of medicine. The file comes with statsmodels (public domain): 20,190 person-years of 5,912 people.

References
----------
.. [1] W. G. Manning et al. (1987), "Health insurance and the demand for medical care: evidence from a randomized
   experiment", American Economic Review 77(3), 251-277.
.. [2] P. Deb, P. K. Trivedi (2002), "The structure of demand for health care: latent class versus two-part models",
   Journal of Health Economics 21(4), 601-625, doi:10.1016/S0167-6296(02)00008-5.
.. [3] A. C. Cameron, P. K. Trivedi (2005), "Microeconometrics: Methods and Applications", section 16.6; their extract
   is the file in statsmodels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError

SOURCE_COLUMNS: Final = (
    "zper", "year", "site", "coins", "xage", "female", "black", "educdec", "income", "num",
    "hlthg", "hlthf", "hlthp", "ghindx", "mhi", "disea", "physlm", "mdvis", "meddol",
)  # fmt: skip

HEALTH_RATINGS: Final = ("excellent", "good", "fair", "poor")

BANDS: Final[Mapping[str, Sequence[int]]] = {
    "age": (0, 6, 12, 18, 25, 35, 45, 55),
    "education_years": (0, 9, 12, 13, 16),
    "income": (0, 5_000, 10_000, 15_000, 20_000),
    "family_size": (1, 2, 3, 4, 5, 6),
    "general_health_index": tuple(range(0, 101, 10)),
    "mental_health_index": tuple(range(0, 101, 10)),
    "chronic_disease_index": (0, 3, 6, 10, 15, 20, 30),
    "doctor_visits": (0, 1, 2, 3, 4, 5, 6, 8, 11, 16),
    "medical_expenditure": (0, 1, 25, 50, 100, 200, 500, 1_000),
}
"""Lower limits of the bands of the generalized table; the last band of each column is open."""

YEARS: Final = {
    "person_id": "zper", "year": "year", "doctor_visits": "mdvis", "other_visits": "notmdvis",
    "mental_health_visits": "mentvis", "hospital_admissions": "totadm", "medical_expenditure": "meddol",
}  # fmt: skip
"""The columns of the years, and their names in the file."""
BANDS_OF_YEARS: Final[Mapping[str, Sequence[int]]] = {
    **{name: BANDS[name] for name in ("doctor_visits", "medical_expenditure")},
    "other_visits": (0, 1, 2, 3, 6, 11),
    "mental_health_visits": (0, 1, 2, 6, 16),
    "hospital_admissions": (0, 1, 2),
}

CONTRACT: Final[dict[str, dict[str, dict[str, Any]]]] = {
    "columns": {
        "person_id": {"type": "integer", "role": "direct_identifier", "person": True, "unique": True},
        "site": {"type": "category", "role": "quasi_identifier", "categories": ["1", "2", "3", "4", "5", "6"]},
        "coinsurance_percent": {"type": "integer", "role": "quasi_identifier", "isin": [0, 25, 50, 95, 100]},
        "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 65},
        "sex": {"type": "category", "role": "quasi_identifier", "categories": ["female", "male"]},
        "head_is_black": {"type": "boolean", "role": "quasi_identifier", "nullable": True},
        "education_years": {"type": "integer", "role": "quasi_identifier", "nullable": True, "min": 0, "max": 25},
        "income": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 30_000},
        "family_size": {"type": "integer", "role": "quasi_identifier", "min": 1, "max": 14},
        "self_rated_health": {
            "type": "category", "role": "sensitive", "categories": list(HEALTH_RATINGS), "ordered": True,
        },
        "general_health_index": {"type": "integer", "role": "sensitive", "nullable": True, "min": 0, "max": 100},
        "mental_health_index": {"type": "integer", "role": "sensitive", "min": 0, "max": 100},
        "chronic_disease_index": {"type": "integer", "role": "sensitive", "min": 0, "max": 100},
        "physical_limitation": {"type": "boolean", "role": "sensitive", "nullable": True},
        "doctor_visits": {"type": "integer", "role": "sensitive", "min": 0, "max": 100},
        "medical_expenditure": {"type": "integer", "role": "sensitive", "min": 0, "max": 50_000},
    }
}  # fmt: skip


DESCRIPTIONS: Final = {
    "site": "Place of the experiment, numbered",
    "coinsurance_percent": "Share of the costs that the family paid itself",
    "age": "Age in completed years at enrollment",
    "head_is_black": "Whether the head of the household is Black; missing where the file has an imputed mean",
    "education_years": "Years of school of the person who decides in the household",
    "income": "Family income in dollars of the time, in hundreds",
    "family_size": "Members of the family",
    "self_rated_health": "Health as rated by the person",
    "general_health_index": "Perception of general health, 0 to 100; higher is better",
    "mental_health_index": "Mental health, 0 to 100; higher is better",
    "chronic_disease_index": "Burden of chronic diseases",
    "physical_limitation": "Whether health limits physical activity",
    "doctor_visits": "Visits to a doctor in the year, without hospital",
    "medical_expenditure": "Expenditure on health in the year, in dollars",
}
for _name, _text in DESCRIPTIONS.items():
    CONTRACT["columns"][_name]["description"] = _text


def load_rand_hie(*, banded: bool = False) -> pd.DataFrame:
    """Load one row per person of the experiment, prepared as an owner of such data would.

    Each person's **first year** is used: the baseline measures of health (indices, ratings, limitations) belong to it,
    and everybody has it, whereas later years lack those who left (most families were enrolled for three years, the
    others for five). For 5,638 of the 5,912 people it is study year 1; the others joined later.

    Figures with odd precision in the file are stored as in the questionnaire: age in completed years,
    education in whole years, family income in hundreds of dollars of the time, expenditure in dollars, indices (0 to
    100) without decimals. If the race of the household head or the physical limitation is a mean imputed by the file's
    authors (neither 0 nor 1), it is missing here. The general health index is the one without imputation.

    Parameters
    ----------
    banded : bool
        Generalize ages, incomes, counts and indices to `BANDS`, as one would before sharing such a table. The contract
        of exact values admits either form, `rand_hie_contract(banded=True)` only this one.

    Returns
    -------
    DataFrame of 5,912 rows
        `person_id` (its first digit is the site), `site` (code 1 to 6), `coinsurance_percent` (the share of costs that
        the family paid), `age`, `sex`, `head_is_black` (race of the household head), `education_years` (of the head),
        `income`, `family_size`; `self_rated_health`, `general_health_index`, `mental_health_index`,
        `chronic_disease_index` (share of the chronic diseases in the questionnaire), `physical_limitation`,
        `doctor_visits` and `medical_expenditure` (of the year, in dollars, without dental care and outpatient
        psychotherapy).

    Raises
    ------
    InvalidSettingError
        If statsmodels is not installed.

    Notes
    -----
    Members of a family share site, plan, income and education, and the file does not identify families: a split by
    person leaves families on both sides, which makes the comparison with the control slightly weaker.
    """
    years = pd.read_csv(_path(), usecols=list(SOURCE_COLUMNS))
    first = years.sort_values(["zper", "year"], kind="stable").drop_duplicates("zper").reset_index(drop=True)
    rated = (first["hlthp"] == 1, first["hlthf"] == 1, first["hlthg"] == 1)
    ratings = np.select(rated, ("poor", "fair", "good"), default="excellent")
    table = pd.DataFrame(
        {
            "person_id": first["zper"],
            "site": pd.Categorical(first["site"].astype(str), categories=["1", "2", "3", "4", "5", "6"]),
            "coinsurance_percent": first["coins"],
            "age": np.floor(first["xage"]).astype("int64"),
            "sex": pd.Categorical(np.where(first["female"] == 1, "female", "male"), categories=["female", "male"]),
            "head_is_black": _yes_or_no(first["black"]),
            "education_years": first["educdec"].round().astype("Int64"),
            "income": _whole(first["income"], 100),
            "family_size": first["num"],
            "self_rated_health": pd.Categorical(ratings, categories=list(HEALTH_RATINGS), ordered=True),
            "general_health_index": first["ghindx"].round().astype("Int64"),
            "mental_health_index": _whole(first["mhi"], 1),
            "chronic_disease_index": _whole(first["disea"], 1),
            "physical_limitation": _yes_or_no(first["physlm"]),
            "doctor_visits": first["mdvis"],
            "medical_expenditure": _whole(first["meddol"], 1),
        }
    )
    return table.assign(**{name: _band(table[name], limits) for name, limits in BANDS.items()}) if banded else table


def load_rand_hie_people() -> pd.DataFrame:
    """Load the people of `load_rand_hie`, in bands, without what they used and what it cost."""
    return load_rand_hie(banded=True).drop(columns=list(BANDS_OF_YEARS), errors="ignore")


def load_rand_hie_years() -> pd.DataFrame:
    """Load what each person used in each year, and what it cost, in `BANDS_OF_YEARS`.

    Returns
    -------
    DataFrame of 20,190 rows
        `person_id`, `year` of the experiment (1 to 5), `doctor_visits`, `other_visits` (to other providers),
        `mental_health_visits`, `hospital_admissions`, and `medical_expenditure` in dollars.

    Raises
    ------
    InvalidSettingError
        If statsmodels is not installed.
    """
    table = pd.read_csv(_path(), usecols=list(YEARS.values()))
    table = table.sort_values(["zper", "year"], kind="stable", ignore_index=True)
    years = pd.DataFrame({name: _whole(table[source], 1) for name, source in YEARS.items()})
    return years.assign(**{name: _band(years[name], limits) for name, limits in BANDS_OF_YEARS.items()})


def rand_hie_people_contract() -> TableContract:
    """Return the contract of `load_rand_hie_people`."""
    columns = {name: own for name, own in _columns(banded=True).items() if name not in BANDS_OF_YEARS}
    return TableContract.from_mapping({"columns": columns})


def rand_hie_years_contract() -> TableContract:
    """Return the contract of `load_rand_hie_years`, whose rows belong to people by ``person_id``, by ``year``."""
    columns = {
        "person_id": {"type": "integer", "role": "direct_identifier"},
        "year": {"type": "integer", "role": "quasi_identifier", "min": 1, "max": 5},
    }
    of_bands = {name: {"type": "integer", "role": "sensitive", "isin": [*own]} for name, own in BANDS_OF_YEARS.items()}
    return TableContract.from_mapping(
        {"columns": columns | {name: of_bands[name] for name in YEARS if name in of_bands}}
    )


@cache
def rand_hie_contract(*, banded: bool = False) -> TableContract:
    """Return the contract of `load_rand_hie`: types, ranges and privacy roles.

    Parameters
    ----------
    banded : bool
        List the values of the columns in `BANDS` instead of their ranges, as `load_rand_hie(banded=True)` has them.
        Synthetic records then have only these values, and `mst` has its public domain.
    """
    return TableContract.from_mapping({"columns": _columns(banded=banded)})


def _columns(*, banded: bool) -> dict[str, dict[str, Any]]:
    columns = {name: dict(column) for name, column in CONTRACT["columns"].items()}
    for name, limits in BANDS.items() if banded else ():
        columns[name] = {key: value for key, value in columns[name].items() if key not in ("min", "max")}
        columns[name]["isin"] = list(limits)
    return columns


def _path() -> Path:
    """Find the file without importing statsmodels, which takes seconds."""
    package = find_spec("statsmodels")
    folders = package.submodule_search_locations if package is not None else None
    if not folders:
        raise InvalidSettingError(
            "The RAND Health Insurance Experiment comes with statsmodels, which is not installed: "
            "pip install 'privacy-assets[examples]'."
        )
    return Path(next(iter(folders))) / "datasets" / "randhie" / "src" / "randhie.csv"


def _whole(numbers: pd.Series, unit: int) -> pd.Series:
    return ((numbers / unit).round() * unit).astype("int64")


def _band(numbers: pd.Series, limits: Sequence[int]) -> pd.Series:
    """Replace each number by the lower limit of its band."""
    present = numbers.dropna().astype("int64")
    lower = np.asarray(limits)[np.searchsorted(limits, present, side="right") - 1]
    return pd.Series(lower, index=present.index).reindex(numbers.index).astype(numbers.dtype)


def _yes_or_no(share: pd.Series) -> pd.Series:
    return share.where(share.isin([0, 1])).astype("boolean")
