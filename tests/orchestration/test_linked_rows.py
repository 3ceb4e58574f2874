"""A release whose values tie the rows of a person together, as Netflix published its ratings, through Dagster."""

import copy
import json

import numpy as np
import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.row_links import LINKS_CHECK, USED_CHECK
from tests.declared import DECLARED
from tests.orchestration.project import Project, blocked_by, failure_of, refusal
from tests.orchestration.test_synthetic_person import definitions as synthetic_definitions
from tests.orchestration.test_synthetic_person import synthetic

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
    return project.definitions(contract=contract(**changes), declaration=DECLARED, **settings)


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
    assert "Released values that show which rows are of one person" not in (written / "report.html").read_text()


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


def test_a_number_that_is_kept_is_counted_and_refused_for_two_known_ratings(project):
    result = project.run(definitions_of(project, links_rows=REASON))
    assert not result.success
    failed = "max_reidentification_probability_is_at_most_its_limit"
    assert blocked_by(result) == {failed}
    verdicts = {each.name: each for each in project.decided(definitions_of(project, links_rows=REASON), "anonymized")}
    assert verdicts[LINKS_CHECK].passed
    assert REASON in verdicts[LINKS_CHECK].reason
    assert verdicts[USED_CHECK].passed
    assert verdicts[failed].value == 1.0
    assert "c_2 = 1: somebody who knows 2 rows of a person is left with 1 person" in verdicts[failed].reason
    assert verdicts[failed].advice.startswith("Leave out the columns with links_rows.")
    page = next(project.private.rglob("refusal.html")).read_text()
    assert "Somebody who knows 4 of a person&#39;s rows finds the person among at least 1 person" in page


def test_evidence_of_fewer_known_rows_or_other_links_is_refused(project):
    assert project.run(definitions_of(project, "development", links_rows=REASON)).success
    [written] = project.releases(side="anonymized")
    manifest = json.loads((written / "manifest.json").read_text())
    settings = manifest["settings"]["reidentification_assessment"]
    assert (settings["links"], settings["known_rows"]) == (["pseudonym"], 1)
    [link] = manifest["figures"]["links"]["found"]
    assert (link["columns"], link["links_rows"]) == (["pseudonym"], {"pseudonym": REASON})
    later = project.refused_because(definitions_of(project, "internal_analytics", links_rows=REASON), "anonymized")
    assert "known_rows differs from what the current policy and contract require" in later
    without = project.refused_because(definitions_of(project, "development"), "anonymized")
    assert "links differs from what the current policy and contract require" in without


def test_links_that_nobody_counts_are_refused_when_defined(project):
    policy = Policy((Limit("smallest_class", 5), Limit("max_reidentification_probability", 0.2, severity="warn")))
    with pytest.raises(InvalidSettingError, match=r"lets \['pseudonym'\] link the rows .* no blocking limit on re-id"):
        definitions_of(project, policy, links_rows=REASON)


@pytest.mark.parametrize(("policy", "severity"), [("research_sharing", "error"), ("development", "warn")])
def test_a_sensitive_value_that_a_persons_rows_repeat(project, policy, severity):
    def ill():
        table = ratings().drop(columns="pseudonym")
        number = table["customer"].str.split().str[1].astype(int)
        return table.assign(illness=("illness " + (number * 7 % 12).astype(str)))

    own = copy.deepcopy(CONTRACT)
    own["columns"]["illness"] = {"type": "text", "role": "sensitive"}
    del own["columns"]["pseudonym"]
    settings = {"synthetic": None, "policy": policy, "anonymized": AnonymizationSettings(), "source": ill}
    definitions = project.definitions(contract=own, **settings)
    result = project.run(definitions)
    assert result.success == (severity == "warn")
    name = "share_certain_by_rows_is_at_most_its_limit"
    verdict = next(each for each in project.decided(definitions, "anonymized") if each.name == name)
    assert (verdict.passed, verdict.severity) == (False, severity)
    assert "one row per person" in verdict.advice
    if severity == "error":
        page = next(project.private.rglob("refusal.html")).read_text()
        assert "The value of illness is the same in all rows of a person. It is certain for" in page


def links_of(project, definitions):
    """Run everything up to the gate, and return its decision on links."""
    project.run(definitions)
    return next(each for each in project.decided(definitions) if each.name == LINKS_CHECK)


def test_rows_of_synthetic_people_are_linked_only_if_disclosure_is_tested_with_their_key(project):
    def made():
        table = synthetic()
        return table.assign(year=3000 + pd.factorize(table["trace"])[0])

    tested = links_of(project, synthetic_definitions(project, made))
    assert tested.passed
    assert "as the test of disclosure did: 'year'" in tested.reason
    risk_alone = Policy((Limit("privacy_risk_score", 0.999, "at_most"),), RequiredSettings(control_records=40))
    refused = links_of(project, synthetic_definitions(project, made, policy=risk_alone))
    assert not refused.passed
    assert "'year' (rows with one value are of one person" in refused.reason
    without = links_of(project, synthetic_definitions(project, lambda: synthetic().drop(columns="trace"), person=None))
    assert without.passed
    assert "no key of synthetic people was given" in without.reason


@pytest.mark.parametrize("role", ["direct_identifier", "other"])
def test_a_column_that_is_called_no_person_is_tried_as_one(project, role):
    own = copy.deepcopy(CONTRACT)
    del own["columns"]["pseudonym"]
    own["columns"]["card"] = {
        "type": "text",
        "role": role,
        "not_a_person": "Number of a card, decided by the data team",
    }
    if role == "other":
        own["columns"]["card"]["leaves_as_is"] = "A random number of each card, decided by the data team"
    own["columns"]["income"] = {"type": "integer", "role": "sensitive"}

    def with_cards():
        table = ratings().drop(columns="pseudonym")
        # Two customers share a card, by which only the income goes: no value is of one customer.
        card = table["customer"].str.split().str[1].astype(int) // 2
        return table.assign(card=("card " + card.astype(str)), income=card * 10)

    settings = {"synthetic": None, "policy": "development", "anonymized": AnonymizationSettings(), "source": with_cards}
    result = project.run(project.definitions(contract=own, **settings))
    assert not result.success
    said = failure_of(result) if role == "direct_identifier" else refusal(result, "anonymized")
    assert "'income' (rows with one value are of one 'card' (not_a_person) in 100.0% of the pairs" in said
    assert project.everything_released() == []
