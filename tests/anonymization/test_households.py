"""A household as the person: everybody in it counts as one, and the people in it nest in what counts."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymity.links import find_links
from privacy_assets.anonymization.anonymize import anonymize

KNOWN = ["income", "day"]
K = 5


def purchases(n_households=200, seed=0):
    """Purchases of households of one to four people, each with a random number."""
    random = np.random.default_rng(seed)
    household = np.repeat(np.arange(n_households), random.integers(1, 5, n_households))
    customer = np.repeat(np.arange(len(household)), random.integers(2, 6, len(household)))
    of_row = household[customer]
    return pd.DataFrame(
        {
            "household": of_row,
            "customer": customer,
            "pseudonym": random.permutation(10 * len(household))[customer],
            "income": random.integers(10, 90, n_households)[of_row],
            "day": random.integers(0, 365, len(customer)),
        }
    )


def fewest_in_a_class(table, released):
    """Count the households and the customers behind the rows that are released with the same values."""
    whose = table.iloc[released.members["row"]].reset_index(drop=True)
    labels = released.labels[KNOWN].reset_index(drop=True)
    classes = whose[["household", "customer"]].groupby([labels[name] for name in KNOWN])
    return classes.nunique().min().to_dict()


def test_k_households_are_k_people():
    table = purchases()
    found = fewest_in_a_class(table, anonymize(table, quasi_identifiers=KNOWN, k=K, subject="household"))
    assert found["customer"] >= found["household"] >= K


def test_k_people_may_be_fewer_households():
    table = purchases()
    found = fewest_in_a_class(table, anonymize(table, quasi_identifiers=KNOWN, k=K, subject="customer"))
    assert found["customer"] >= K > found["household"]


@pytest.mark.parametrize("unit", ["household", "customer"])
def test_a_number_of_each_member_links_rows_of_one_household(unit):
    table = purchases()
    released = anonymize(table, quasi_identifiers=KNOWN, k=K, subject=unit)
    person = table[unit].to_numpy()[released.members["row"]]
    pseudonym = next(link for link in find_links(released.table, person, K) if link.columns == ("pseudonym",))
    assert pseudonym.is_found
    assert pseudonym.precision == 1.0
    assert pseudonym.share == 1.0  # every member has several rows
    without = released.table.drop(columns=["pseudonym", "household", "customer"], errors="ignore")
    assert not [link for link in find_links(without, person, K) if link.is_found]
