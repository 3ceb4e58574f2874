"""Hierarchies of ARX, and its local recoding of UCI Adult.

Sources: F. Prasser, F. Kohlmayer, R. Lautenschlaeger, K. Kuhn (2014), "ARX - a comprehensive tool for anonymizing
biomedical data"; https://arx.deidentifier.org. The small table (seven people by age, gender and zip code) and the form
of its hierarchies are those of ARX's first examples. The trees for Adult, and the marks, are in "adult_hierarchies.py".
"""

import pandas as pd
import pytest

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.errors import InvalidTableError
from tests.published.adult_hierarchies import ADULT, ARX_LOSSES
from tests.shared_data import shared_file

PEOPLE = pd.DataFrame(
    [
        (34, "male", "81667"),
        (45, "female", "81675"),
        (66, "male", "81925"),
        (70, "female", "81931"),
        (34, "female", "81931"),
        (70, "male", "81931"),
        (45, "male", "81931"),
    ],
    columns=["age", "gender", "zipcode"],
)
AGES = {"<50": [34, 45], ">=50": [66, 70]}
ZIP_CODES = "\n".join(
    f"{code};{code[:4]}*;{code[:3]}**;{code[:2]}***;{code[:1]}****;*" for code in ("81667", "81675", "81925", "81931")
)


def by_lattice(table, hierarchies, **limits):
    return anonymize(table, quasi_identifiers=list(hierarchies), method="lattice", hierarchies=hierarchies, **limits)


@pytest.fixture
def hierarchies(tmp_path):
    (tmp_path / "zip.csv").write_text(ZIP_CODES)
    (tmp_path / "gender.csv").write_text("male;*\nfemale;*\n")
    return {
        "age": Hierarchy.from_mapping(AGES),
        "gender": Hierarchy.from_arx_csv(tmp_path / "gender.csv"),
        "zipcode": Hierarchy.from_arx_csv(tmp_path / "zip.csv"),
    }


def test_zip_codes_have_the_levels_of_the_file(hierarchies):
    leveled = hierarchies["zipcode"].apply(PEOPLE["zipcode"], "zipcode")
    first, merging = (
        [each.labels[node] for node in each.nodes[:, each.codes[0]]] for each in (leveled, leveled.merging())
    )
    assert first == ["81667", "8166*", "816**", "81***", "8****", "*"]
    # No two of these codes share four characters, and all share two: levels 1, 4 and 5 of the file join nothing more.
    assert merging == ["81667", "816**", "81***"]


@pytest.mark.parametrize("k", [2, 3])
def test_the_small_table_is_k_anonymous_and_loses_nobody(hierarchies, k):
    found = by_lattice(PEOPLE, hierarchies, k=k)
    assert found.stats["n_suppressed"] == 0
    assert verify_anonymity(found.table, list(hierarchies)).k >= k
    # One node for the whole table, ARX's default, is 3-anonymous with "<50" or ">=50", any gender and any zip code.
    assert found.stats["information_loss"] < (1 / 3 + 1 + 1) / 3


def test_a_zip_code_that_the_file_lacks_is_counted(hierarchies):
    table = PEOPLE.assign(zipcode=["99999", *PEOPLE["zipcode"][1:]])
    with pytest.raises(InvalidTableError, match=r"'zipcode' has 1 values \(in 1 rows\).*of 4 values lacks") as raised:
        by_lattice(table, hierarchies, k=2)
    assert "99999" not in str(raised.value)


@pytest.fixture(scope="module")
def adult():
    return pd.read_csv(shared_file("data", "adult.csv")).dropna().reset_index(drop=True)


@pytest.mark.parametrize(("k", "arx"), ARX_LOSSES.items())
def test_adult_loses_no_more_than_the_local_recoding_of_arx(adult, k, arx):
    found = by_lattice(adult, ADULT, k=k, sensitive=["income"])
    assert len(adult) == 30_162
    assert found.stats["n_suppressed"] == 0
    assert verify_anonymity(found.table, list(ADULT)).k == found.stats["smallest_class"] >= k
    assert found.stats["information_loss"] <= 1.01 * arx


def test_a_third_of_adult_is_in_classes_where_the_income_is_certain(adult):
    found = by_lattice(adult, ADULT, k=10, sensitive=["income"])
    assert 0.25 < found.stats["share_in_homogeneous_classes"] < 0.45
    diverse = by_lattice(adult, ADULT, k=10, sensitive=["income"], l_diversity=2)
    assert diverse.stats["share_in_homogeneous_classes"] == 0
    assert diverse.stats["sensitive"]["income"]["distinct_l"] == 2
