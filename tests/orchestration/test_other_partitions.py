"""Partitions in which each person has one row, and columns that show who is in several."""

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release.policy import Limit, Policy
from tests.orchestration.project import Project, failure_of

N_PEOPLE = 300
REASON = "A random number, decided by the data team"
KINDS = {
    "number of a person": (True, lambda month, random: np.random.default_rng(0).permutation(10**6)[:N_PEOPLE]),
    "spelled otherwise": (True, lambda month, random: [f" ID-{i}"[month > 1 :].upper() for i in range(N_PEOPLE)]),
    "of a tenth of the people": (True, lambda month, random: np.arange(N_PEOPLE) + 270 * month),
    "number of a row": (False, lambda month, random: random.permutation(10**6)[:N_PEOPLE] + month * 10**6),
    "measure": (False, lambda month, random: random.integers(0, 20_000, N_PEOPLE)),
    "school": (False, lambda month, random: np.arange(N_PEOPLE) // 30),
}


def people(month, kind):
    random = np.random.default_rng(month)
    return pd.DataFrame(
        {
            "age": random.integers(20, 80, N_PEOPLE),
            "sex": random.choice(["f", "m"], N_PEOPLE),
            "key": KINDS[kind][1](month, random),
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_that_another_partition_published_links_the_rows_of_a_person(tmp_path, kind):
    project = Project(tmp_path, partitions=("1", "2", "3"))
    is_text = isinstance(people(1, kind)["key"].iloc[0], str)
    columns = {
        "age": {"type": "integer", "role": "quasi_identifier"},
        "sex": {"type": "text", "role": "quasi_identifier"},
        "key": {"type": "text" if is_text else "integer", "role": "other", "leaves_as_is": REASON},
    }
    definitions = project.definitions(
        contract={"columns": columns, "one_row_per_person": True},
        policy=Policy((Limit("smallest_class", 3),)),
        source=lambda partition_key: people(int(partition_key), kind),
        synthetic=None,
        assessment=None,
        anonymized=AnonymizationSettings(k=3),
        partitions_def=dg.StaticPartitionsDefinition(["1", "2", "3"]),
    )
    first = project.run(definitions, partition="1")
    assert first.success, failure_of(first)
    again = project.run(definitions, partition="1")
    assert again.success, failure_of(again)
    later = project.run(definitions, partition="2")
    assert later.success != KINDS[kind][0]
    if not later.success:
        assert "values that other partitions published before link the rows of a person: 'key' (" in failure_of(later)
        alone = project.run(definitions, "anonymized_release", partition="2")
        assert not alone.success
