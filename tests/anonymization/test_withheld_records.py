"""Records that are withheld take with them what no longer has the protection that was asked for."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.withheld_records import note_on_tight_ends, withhold_records_at_risk
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidTableError

CONTRACT = TableContract.from_mapping(
    {
        "columns": {
            "who": {"type": "integer", "role": "direct_identifier", "person": True},
            "town": {"type": "text", "role": "quasi_identifier"},
            "illness": {"type": "text", "role": "sensitive"},
        }
    }
)
# Arles has six people with measles and four with mumps, Bonn and Como have five of each.
PEOPLE = pd.DataFrame(
    {
        "who": range(30),
        "town": np.repeat(["Arles", "Bonn", "Como"], 10),
        "illness": [*["measles"] * 6, *["mumps"] * 4, *(["measles"] * 5 + ["mumps"] * 5) * 2],
    }
)


def anonymized(k, subject=None, **kwargs):
    return anonymize(
        PEOPLE[["town", "illness"] if subject is None else ["who", "town", "illness"]],
        quasi_identifiers=["town"],
        sensitive=["illness"],
        subject=subject,
        k=k,
        **kwargs,
    )


def without(town, n_first):
    """Withhold the first records of a town that are asked about; ever again, as long as there are some."""

    def is_acceptable(table):
        is_own = (table["town"] == town).to_numpy()
        return ~is_own | (np.cumsum(is_own) > n_first)

    return is_acceptable


@pytest.mark.parametrize("subject", [None, "who"])
def test_a_class_that_falls_below_k_is_withheld_as_a_whole(subject):
    asked = []

    def is_acceptable(table):
        asked.append(len(table))
        return without("Arles", 3)(table)

    found = withhold_records_at_risk(anonymized(8, subject), PEOPLE, CONTRACT, is_acceptable)
    assert asked == [30, 20]
    assert found.table["town"].value_counts().to_dict() == {"Bonn": 10, "Como": 10}
    assert (found.stats["n_withheld"], found.stats["k"]) == (10, 10)
    found = withhold_records_at_risk(anonymized(7, subject), PEOPLE, CONTRACT, without("Arles", 3))
    assert found.table["town"].value_counts().to_dict() == {"Arles": 7, "Bonn": 10, "Como": 10}


def test_classes_are_counted_in_people_where_people_have_several_records():
    """Each person has two records: eight records are left of Arles, and only four of the five people asked for."""
    people = PEOPLE.assign(who=PEOPLE["who"] // 2)
    released = anonymize(people, quasi_identifiers=["town"], sensitive=["illness"], subject="who", k=5)
    found = withhold_records_at_risk(released, people, CONTRACT, without("Arles", 2))
    assert found.table["town"].value_counts().to_dict() == {"Bonn": 10, "Como": 10}
    assert (found.stats["k"], found.stats["unit"]) == (5, "people")
    released = anonymize(people, quasi_identifiers=["town"], sensitive=["illness"], subject="who", k=4)
    found = withhold_records_at_risk(released, people, CONTRACT, without("Arles", 2))
    assert found.table["town"].value_counts().to_dict() == {"Arles": 8, "Bonn": 10, "Como": 10}


def test_labels_of_a_class_of_which_a_part_was_withheld_are_told_to_be_those_of_the_whole():
    in_part = withhold_records_at_risk(anonymized(7), PEOPLE, CONTRACT, without("Arles", 3))
    assert in_part.stats["n_classes_withheld_in_part"] == 1
    assert "In 1 of 3 classes only a part of the records was withheld" in note_on_tight_ends(in_part)
    by_cell = withhold_records_at_risk(anonymized(7, bounds="cell"), PEOPLE, CONTRACT, without("Arles", 3))
    assert note_on_tight_ends(by_cell) == ""
    as_a_whole = withhold_records_at_risk(anonymized(8), PEOPLE, CONTRACT, without("Arles", 3))
    assert as_a_whole.stats["n_classes_withheld_in_part"] == 0
    assert note_on_tight_ends(as_a_whole) == ""


def test_classes_that_lose_their_diversity_are_refused_with_counts():
    one_illness = lambda table: ~((table["town"] == "Arles") & (table["illness"] == "mumps")).to_numpy()  # noqa: E731
    assert len(withhold_records_at_risk(anonymized(5), PEOPLE, CONTRACT, one_illness).table) == 26
    message = "4 of 30 records were to be withheld, but in the remaining classes distinct l is 1, expected at least 2"
    with pytest.raises(InvalidTableError, match=message):
        withhold_records_at_risk(anonymized(5, l_diversity=2), PEOPLE, CONTRACT, one_illness)


def test_where_every_class_falls_below_k_nothing_is_left():
    few = lambda table: np.arange(len(table)) % 2 == 0  # noqa: E731
    with pytest.raises(InvalidTableError, match="All 30 records would be withheld"):
        withhold_records_at_risk(anonymized(10), PEOPLE, CONTRACT, few)
