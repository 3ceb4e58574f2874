"""The patient table of the Mondrian paper, and the mark of the adult table.

Source: K. LeFevre, D. J. DeWitt, R. Ramakrishnan (2006), "Mondrian multidimensional k-anonymity", ICDE,
doi:10.1109/ICDE.2006.101, section 1: the patient table and its 2-anonymous multidimensional recoding. The marks of the
adult table are those of ``docs/design/mondrian.md``, section "Marks".
"""

from collections import Counter

import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from tests.shared_data import shared_file

PATIENTS = pd.DataFrame(
    [
        (25, "Male", 53711, "Flu"),
        (25, "Female", 53712, "Hepatitis"),
        (26, "Male", 53711, "Bronchitis"),
        (27, "Male", 53710, "Broken Arm"),
        (27, "Female", 53712, "AIDS"),
        (28, "Male", 53711, "Hang Nail"),
    ],
    columns=["age", "sex", "zipcode", "disease"],
)
PUBLISHED = {
    "Flu": ("[25, 26]", "Male", "53711"),
    "Hepatitis": ("[25, 27]", "Female", "53712"),
    "Bronchitis": ("[25, 26]", "Male", "53711"),
    "Broken Arm": ("[27, 28]", "Male", "[53710, 53711]"),
    "AIDS": ("[25, 27]", "Female", "53712"),
    "Hang Nail": ("[27, 28]", "Male", "[53710, 53711]"),
}
ADULT = ["age", "workclass", "education_num", "marital_status", "occupation", "race", "sex", "native_country"]


def test_the_patient_table_is_recoded_as_published():
    found = anonymize(PATIENTS, quasi_identifiers=["age", "sex", "zipcode"], k=2, sensitive=["disease"])
    rows = found.table[["disease", "age", "sex", "zipcode"]].astype(str).itertuples(index=False)
    assert {disease: tuple(labels) for disease, *labels in rows} == PUBLISHED
    assert found.stats["average_class_ratio"] == 1
    assert Counter(found.classes["rows"]) == {2: 3}


@pytest.mark.parametrize(("k", "percent"), [(2, 0.83), (5, 2.77), (10, 4.86), (25, 8.47), (50, 12.17)])
def test_the_loss_on_adult_is_not_above_the_best_mark(k, percent):
    table = pd.read_csv(shared_file("data", "adult.csv"), na_values="?", skipinitialspace=True).dropna()
    assert len(table) == 30_162
    found = anonymize(table[[*ADULT, "income"]], quasi_identifiers=ADULT, k=k, sensitive=["income"])
    assert found.stats["smallest_class"] >= k
    assert 100 * found.stats["information_loss"] <= percent
    if k == 10:
        assert found.stats["discernibility"] <= 528_456
        assert found.stats["share_in_homogeneous_classes"] == pytest.approx(0.35, abs=0.01)
