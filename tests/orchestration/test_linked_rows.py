"""A release whose values tie the rows of a person together, as Netflix published its ratings, through Dagster."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release.row_links import LINKS_CHECK, USED_CHECK
from tests.orchestration.project import Project, failure_of, refusal

CONTRACT = {
    "columns": {
        "customer": {"type": "text", "role": "direct_identifier", "person": True},
        "movie": {"type": "text", "role": "quasi_identifier"},
        "stars": {"type": "integer", "role": "quasi_identifier", "min": 1, "max": 5},
        "date": {"type": "datetime", "role": "quasi_identifier"},
        "pseudonym": {
            "type": "text",
            "role": "other",
            "leaves_as_is": "A random number of each customer, decided by the data team",
        },
    }
}
REASON = "Needed to follow customers over time, decided by the data team"


def ratings(n_people=300, n_movies=80, seed=1):
    """Make ratings: everybody rates movies by popularity, in some months of three years, under a random number."""
    random = np.random.default_rng(seed)
    popularity = 1 / (np.arange(n_movies) + 5.0)
    rated = []
    for person, n_rated in enumerate(3 + random.poisson(9, n_people)):
        movies = random.choice(n_movies, n_rated, replace=False, p=popularity / popularity.sum())
        days = random.integers(0, 900) + random.integers(0, 200, n_rated)
        rated.append(pd.DataFrame({"person": person, "movie": movies, "day": days}))
    table = pd.concat(rated, ignore_index=True)
    numbers = random.permutation(10 * n_people)[table["person"]]
    return pd.DataFrame(
        {
            "customer": [f"customer {person}" for person in table["person"]],
            "movie": [f"m{movie:02}" for movie in table["movie"]],
            "stars": 1 + random.binomial(4, 0.2 + 0.6 * (table["movie"] % 7) / 6),
            "date": pd.Timestamp("2000-01-01") + pd.to_timedelta(table["day"], unit="D"),
            "pseudonym": [f"u{number:04}" for number in numbers],
        }
    )


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def contract(**changes):
    """Return the contract with changes of the pseudonym; without it, if it has the role None."""
    own = copy.deepcopy(CONTRACT)
    own["columns"]["pseudonym"] |= changes
    if own["columns"]["pseudonym"]["role"] == "direct_identifier":
        del own["columns"]["pseudonym"]["leaves_as_is"]
    return own


def definitions_of(project, policy="research_sharing", source=ratings, **changes):
    settings = {"synthetic": None, "policy": policy, "anonymized": AnonymizationSettings(), "source": source}
    return project.definitions(contract=contract(**changes), **settings)


def test_a_released_number_of_each_customer_is_refused(project):
    result = project.run(definitions_of(project))
    assert not result.success
    found = refusal(result, "anonymized")
    assert (
        "released values link the rows of a person (1): 'pseudonym' (rows with one value are of one person in" in found
    )
    assert project.everything_released() == []
    # Nor if the release alone is materialized later, or for a use case with smaller classes.
    assert "'pseudonym'" in refusal(project.run(definitions_of(project), "anonymized_release"), "anonymized")
    assert "'pseudonym'" in project.refused_because(definitions_of(project, "development"), "anonymized")


def test_without_the_number_the_ratings_are_released(project):
    definitions = definitions_of(project, role="direct_identifier")
    result = project.run(definitions)
    assert result.success, failure_of(result)
    [written] = project.releases(side="anonymized")
    manifest = json.loads((written / "manifest.json").read_text())
    assert manifest["settings"]["unit"] == ["customer"]
    assert manifest["figures"]["links"] == {"found": []}
    verdict = next(each for each in manifest["verdicts"] if each["name"] == LINKS_CHECK)
    assert (verdict["passed"], verdict["reason"]) == (True, "no released values link the rows of a person")
    assert "pseudonym" not in (written / "report.html").read_text()


def test_a_random_number_of_each_row_may_stay_and_needs_no_reason(project):
    def of_rows():
        table = ratings()
        return table.assign(pseudonym=[f"r{n}" for n in np.random.default_rng(5).permutation(len(table))])

    result = project.run(definitions_of(project, source=of_rows, links_rows=REASON))
    assert result.success, failure_of(result)
    [written] = project.releases(side="anonymized")
    manifest = json.loads((written / "manifest.json").read_text())
    unused = next(each for each in manifest["verdicts"] if each["name"] == USED_CHECK)
    assert (unused["passed"], unused["severity"]) == (False, "warn")
    assert unused["reason"] == "the contract has links_rows for ['pseudonym'], which link no rows"
