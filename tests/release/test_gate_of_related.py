"""The gate on related tables: rows with their people, and every view searched as the policy requires."""

from dataclasses import replace

import pytest

from privacy_assets.release.gate import is_admitted, verdicts
from privacy_assets.release.metrics import MPUCC
from privacy_assets.release.policy import Policy
from tests.release.test_gate import MADE_OF, SETTINGS, good_evidence

POLICY = Policy.for_use_case("research_sharing").for_related_tables()
PEOPLE = {"original": 400, "control": 100, "synthetic": 400}
VIEWS = {"people": ("age", "sex", "rows of visits"), "rows of visits": ("age", "sex", "date", "cost")}
OF_VIEWS = {view: SETTINGS | {"columns": list(columns), "n_people": PEOPLE} for view, columns in VIEWS.items()}


def evidence_of(settings=OF_VIEWS, broken=(), **changes):
    usual = good_evidence()
    whole = {**SETTINGS, "views": settings, "n_people": PEOPLE}
    made_of = {name: own for name, own in MADE_OF.items() if name != "preprocessed"}
    own = replace(usual.assessments[MPUCC], settings=whole, metrics={}, made_of=made_of)
    stands_on = {**usual.stands_on, MPUCC: ("original", "control")}
    return replace(
        usual,
        columns=(),
        assessments={**usual.assessments, MPUCC: own},
        stands_on=stands_on,
        views=VIEWS,
        broken_links=broken,
        has_person=True,
        **changes,
    )


def decided(evidence):
    return verdicts(POLICY, evidence, "s")


def failed(evidence):
    return {verdict.name: verdict.reason for verdict in decided(evidence) if verdict.blocks}


def test_tables_whose_views_were_assessed_are_admitted():
    assert failed(evidence_of()) == {}
    assert is_admitted(decided(evidence_of()))
    names = [verdict.name for verdict in decided(evidence_of())]
    assert names.count("every_row_has_its_person") == 1
    assert "every_row_has_its_person" not in [verdict.name for verdict in verdicts(POLICY, good_evidence(), "s")]


def test_rows_without_their_person_refuse_all_tables():
    broken = [
        "3 rows of 'visits' have a 'patient' that nobody in 'people' has",
        "2 rows of 'people' repeat a key",
    ]
    assert failed(evidence_of(broken=broken)) == {"every_row_has_its_person": "; ".join(broken)}


def in_view(**settings):
    return {**OF_VIEWS, "rows of visits": {**OF_VIEWS["rows of visits"], **settings}}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({}, "2 views differ from those of the tables that would be released"),
        ({"people": OF_VIEWS["people"]}, "1 views differ from those of the tables that would be released"),
        ({**OF_VIEWS, "rows of drugs": OF_VIEWS["people"]}, "1 views differ"),
        (in_view(search="heuristic"), "rows of visits: search is 'heuristic', expected 'exact'"),
        (in_view(columns=["age", "sex", "date"]), "rows of visits: 1 columns differ between the assessed table"),
        (
            in_view(complete_up_to=2),
            "rows of visits: combinations of up to 2 columns were searched completely",
        ),
        (in_view(n_people=None), "rows of visits: records were counted; expected people"),
        (in_view(deduplicate=False), "rows of visits: repeated records were kept, expected deduplicate=True"),
        (in_view(given_precision={"cost": 0}), "rows of visits: a precision was set by hand"),
    ],
)
def test_a_view_that_was_not_searched_as_required_refuses_all_tables(settings, reason):
    found = failed(evidence_of(settings))
    assert list(found) == ["mpucc_assessment_settings_meet_the_policy"]
    assert reason in found["mpucc_assessment_settings_meet_the_policy"]


def test_no_more_than_three_columns_of_a_view_are_asked_for():
    policy = POLICY.with_required(max_baseline_cols=None)
    assert is_admitted(verdicts(policy, evidence_of(), "s"))
