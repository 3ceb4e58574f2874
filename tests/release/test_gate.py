import math
from dataclasses import replace

import pytest

from privacy_assets.columns.spelling import SPELLING
from privacy_assets.disclosure.column_examination import ColumnExamination
from privacy_assets.disclosure.declared_unit import UnitDecision
from privacy_assets.release.evidence import (
    SPLIT_STAGES,
    STAGES_ASSESSED,
    AssessmentEvidence,
    BudgetEvidence,
    Evidence,
    SigningEvidence,
    TableEvidence,
)
from privacy_assets.release.gate import is_admitted, limit_verdict, refusing, verdicts
from privacy_assets.release.metrics import DISCLOSURE, METRICS, MPUCC, REIDENTIFICATION, SEMANTIC, UTILITY
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.row_links import LinkEvidence
from privacy_assets.storage.algorithms import VERSIONS, algorithm_of

POLICY = Policy.for_use_case("research_sharing").with_limit(Limit("verbatim_copies", 3, severity="warn"))
MADE_OF = {"original": "o", "control": "c", "synthetic": "s", "preprocessed": "p"}
SETTINGS = {
    "algorithm": algorithm_of(MPUCC),
    "spelling": SPELLING,
    "search": "exact",
    "columns": ["age", "sex", "plan", "visits"],
    "complete_up_to": 3,
    "given_precision": {},
    "n_rows": {"original": 400, "control": 100},
    "confidence_level": 0.95,
    "deduplicate": True,
    "unknown_values": {"plan": {"unknown": 0.0, "expected": 0.01, "blind": False, "invented": False}},
    "foreign": "",
}
DISCLOSURE_SETTINGS = {
    "algorithm": algorithm_of(DISCLOSURE),
    "spelling": SPELLING,
    "columns": SETTINGS["columns"],
    "level": 0.05,
    "n_people": {"original": 400, "control": 100},
}

FIGURES = {
    "privacy_risk_score": 0.05,
    "score_of_strangers": 0.04,
    "score_of_related_columns": 0.05,
    "score_of_strangers_on_related_columns": 0.04,
    "originals_singled_out": 0.05,
    "originals_singled_out_by_strangers": 0.04,
    "copies_beyond_people": 0.0,
    "verbatim_copies": 1.0,
}
PLAN = ColumnExamination("plan", "other", "text", 500, 3, 0.006, 0.0, 6, 5.0)
NAMES = replace(
    PLAN, column="name", finding="identifying", reasons=("reads like names of people (98.0% of its texts)",)
)
WEIGHT = replace(
    PLAN, column="weight", kind="number", finding="nearly_unique", reasons=("40.0% of the people are alone",)
)


def good_evidence(**changes) -> Evidence:
    tables = {
        "original": TableEvidence("o", "o", "split run", made_of={"source": "r"}),
        "control": TableEvidence("c", "c", "split run", made_of={"source": "r"}),
        "preprocessed": TableEvidence("p", "p", "run"),
        "source": TableEvidence("r", "r", "run"),
        "synthetic": TableEvidence("s", "s", "run", made_of={"original": "o"}),
    }
    assessment = AssessmentEvidence(
        digest="a",
        recorded_digest="a",
        run_id="run",
        made_of=MADE_OF,
        metrics=FIGURES,
        settings=SETTINGS,
    )
    disclosure = AssessmentEvidence(
        digest="d",
        recorded_digest="d",
        run_id="run",
        made_of={name: MADE_OF[name] for name in ("original", "control", "synthetic")},
        metrics={"leakage_detected": 0.0, "exposed_share": 0.02},
        settings=DISCLOSURE_SETTINGS,
    )
    evidence = Evidence(
        "synthetic",
        "synthetic",
        ("age", "sex", "plan", "visits"),
        tables,
        {MPUCC: assessment, DISCLOSURE: disclosure},
        stands_on={MPUCC: STAGES_ASSESSED, DISCLOSURE: SPLIT_STAGES},
        asked_for={DISCLOSURE: {"columns": SETTINGS["columns"], "level": 0.05}},
        lineage={"synthetic": ("original",), "original": ("source",), "control": ("source",)},
        keeps_contract=True,
        measured={"rare_values": {"rare_values_released": 0.0}},
        examined={"synthetic": (PLAN,), "source": (PLAN,)},
        must_be_examined=("synthetic", "source"),
        links=LinkEvidence(),
        undeclared="",
        unit=UnitDecision(True, "each row is another person"),
    )
    return replace(evidence, **changes)


def with_assessment(name=MPUCC, **changes) -> Evidence:
    own = good_evidence().assessments
    return good_evidence(assessments={**own, name: replace(own[name], **changes)})


def with_table(stage, **changes) -> Evidence:
    evidence = good_evidence()
    return replace(evidence, tables={**evidence.tables, stage: replace(evidence.tables[stage], **changes)})


def with_metrics(**changes) -> Evidence:
    own = dict(good_evidence().assessments)
    for metric, value in changes.items():
        name = METRICS[metric].assessment
        own[name] = replace(own[name], metrics={**own[name].metrics, metric: value})
    return good_evidence(assessments=own)


def with_settings(**changes) -> Evidence:
    return with_assessment(settings={**SETTINGS, **changes})


def with_disclosure(**changes) -> Evidence:
    return with_assessment(DISCLOSURE, **changes)


def without(name) -> Evidence:
    return good_evidence(assessments={own: each for own, each in good_evidence().assessments.items() if own != name})


def with_rare_values(count, remark="") -> Evidence:
    return good_evidence(
        measured={"rare_values": {"rare_values_released": count}}, remarks={"rare_values_released": remark}
    )


def blocking(evidence, fingerprint="s", policy=POLICY) -> list[str]:
    return [verdict.name for verdict in verdicts(policy, evidence, fingerprint) if verdict.blocks]


@pytest.mark.parametrize(
    ("assessed", "declared", "is_accepted"),
    [
        ({"who": ["age", "sex"]}, {"who": ("age", "sex")}, True),
        ({}, {}, True),
        ({"who": ["age", "sex"]}, {}, False),
        ({}, {"who": ("age", "sex")}, False),
        ({"who": ["age", "sex"]}, {"person": ("age", "sex")}, False),
        ({"who": ["age", "sex"]}, {"who": ("sex", "age")}, False),
        (None, {}, False),
        ({"who": 3}, {"who": ("age", "sex")}, False),
    ],
)
def test_other_parts_of_columns_than_those_of_the_contract_are_refused(assessed, declared, is_accepted):
    evidence = replace(with_settings(parts=assessed), parts=declared)
    assert blocking(evidence) == ([] if is_accepted else ["mpucc_assessment_settings_meet_the_policy"])


def test_complete_evidence_within_the_limits_is_admitted_and_every_condition_is_shown():
    decided = verdicts(POLICY, good_evidence(), "s")
    assert is_admitted(decided)
    assert [verdict.name for verdict in decided] == [
        "the_policy_limits_the_synthetic_side",
        "synthetic_is_as_recorded",
        "synthetic_keeps_the_contract",
        "rows_belong_to_the_declared_people",
        "nothing_suggests_other_people_than_declared",
        "no_identifying_column_leaves_undecided",
        "no_nearly_unique_measure_leaves_undecided",
        "no_released_column_links_the_rows_of_a_person",
        "synthetic_was_made_of_the_recorded_tables",
        "original_was_made_of_the_recorded_tables",
        "control_was_made_of_the_recorded_tables",
        "one_run_made_original_and_control",
        "disclosure_assessment_exists",
        "disclosure_assessment_was_made_by_a_run",
        "disclosure_assessment_is_as_recorded",
        "disclosure_assessment_is_of_this_table",
        "disclosure_assessment_stands_on_the_recorded_tables",
        "disclosure_assessment_settings_meet_the_policy",
        "mpucc_assessment_exists",
        "mpucc_assessment_was_made_by_a_run",
        "mpucc_assessment_is_as_recorded",
        "mpucc_assessment_is_of_this_table",
        "mpucc_assessment_stands_on_the_recorded_tables",
        "mpucc_assessment_settings_meet_the_policy",
        "mpucc_assessment_can_see_copies",
        "privacy_risk_score_is_below_its_limit",
        "originals_singled_out_is_below_its_limit",
        "no_leakage_is_detected",
        "copies_beyond_people_is_at_most_its_limit",
        "rare_values_released_is_at_most_its_limit",
        "verbatim_copies_is_at_most_its_limit",
        "exposed_share_is_below_its_limit",
        "the_declaration_is_complete",
    ]
    assert all(verdict.reason for verdict in decided)


@pytest.mark.parametrize(
    ("undeclared", "policy", "waits"),
    [
        ("", POLICY, False),
        (None, POLICY, True),
        ("the declaration lacks purpose", POLICY, True),
        (None, POLICY.with_required(declaration=()), False),
        ("its review_by, 2020-01-01, has passed", POLICY.with_required(declaration=()), True),
    ],
)
def test_a_release_waits_for_what_is_not_declared_and_is_not_refused_for_it(undeclared, policy, waits):
    decided = verdicts(policy, good_evidence(undeclared=undeclared), "s")
    assert is_admitted(decided) is not waits
    assert refusing(decided) == ()
    assert [each.name for each in refusing(verdicts(policy, good_evidence(undeclared=undeclared), "other"))]


@pytest.mark.parametrize(
    ("evidence", "refused_by"),
    [
        (without(MPUCC), "mpucc_assessment_exists"),
        (without(DISCLOSURE), "disclosure_assessment_exists"),
        (with_disclosure(digest=None), "disclosure_assessment_exists"),
        (with_disclosure(run_id=None), "disclosure_assessment_was_made_by_a_run"),
        (with_disclosure(digest="edited"), "disclosure_assessment_is_as_recorded"),
        (with_disclosure(made_of={**MADE_OF, "synthetic": "older"}), "disclosure_assessment_is_of_this_table"),
        (
            with_disclosure(made_of={**MADE_OF, "control": "other"}),
            "disclosure_assessment_stands_on_the_recorded_tables",
        ),
        (with_disclosure(settings={}), "disclosure_assessment_settings_meet_the_policy"),
        (
            with_disclosure(settings={**DISCLOSURE_SETTINGS, "columns": ["age"]}),
            "disclosure_assessment_settings_meet_the_policy",
        ),
        (
            with_disclosure(settings={**DISCLOSURE_SETTINGS, "level": 0.01}),
            "disclosure_assessment_settings_meet_the_policy",
        ),
        (
            with_disclosure(settings={**DISCLOSURE_SETTINGS, "n_people": {"original": 400, "control": 99}}),
            "disclosure_assessment_settings_meet_the_policy",
        ),
        (replace(good_evidence(), asked_for={}), "disclosure_assessment_settings_meet_the_policy"),
        (with_assessment(digest=None), "mpucc_assessment_exists"),
        (with_assessment(run_id=None), "mpucc_assessment_was_made_by_a_run"),
        (with_assessment(digest="edited"), "mpucc_assessment_is_as_recorded"),
        (with_assessment(recorded_digest=None), "mpucc_assessment_is_as_recorded"),
        (with_assessment(made_of={**MADE_OF, "synthetic": None}), "mpucc_assessment_is_of_this_table"),
        (
            with_assessment(made_of={**MADE_OF, "synthetic": "older"}),
            "mpucc_assessment_is_of_this_table",
        ),
        (
            with_assessment(made_of={**MADE_OF, "original": "other"}),
            "mpucc_assessment_stands_on_the_recorded_tables",
        ),
        (
            with_assessment(made_of={**MADE_OF, "preprocessed": "other"}),
            "mpucc_assessment_stands_on_the_recorded_tables",
        ),
        (with_table("control", run_id=None), "mpucc_assessment_stands_on_the_recorded_tables"),
        (with_table("preprocessed", digest="edited"), "mpucc_assessment_stands_on_the_recorded_tables"),
        (with_table("original", digest="edited"), "disclosure_assessment_stands_on_the_recorded_tables"),
        (with_table("control", run_id="another run"), "one_run_made_original_and_control"),
        (good_evidence(keeps_contract=False), "synthetic_keeps_the_contract"),
        (with_table("source", recorded_digest="newer"), "original_was_made_of_the_recorded_tables"),
        (with_table("source", run_id=None), "control_was_made_of_the_recorded_tables"),
        (with_table("synthetic", run_id=None), "synthetic_is_as_recorded"),
        (with_table("synthetic", recorded_digest="other"), "synthetic_is_as_recorded"),
        (with_table("synthetic", made_of={"original": "older"}), "synthetic_was_made_of_the_recorded_tables"),
        (with_table("synthetic", made_of={}), "synthetic_was_made_of_the_recorded_tables"),
        (with_settings(search="heuristic"), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(complete_up_to=2), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(complete_up_to="3"), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(complete_up_to=None, max_baseline_cols=None), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(columns=["age", "sex", "plan"]), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(columns=None), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(given_precision={"age": 0}), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(n_rows={"control": 99}), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(n_rows=None), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(n_people={"original": 400, "control": 99}), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(n_people=None), "mpucc_assessment_settings_meet_the_policy"),
        (good_evidence(has_person=True), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(confidence_level=0.99), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(given_precision=None), "mpucc_assessment_settings_meet_the_policy"),
        (with_settings(deduplicate=False), "mpucc_assessment_settings_meet_the_policy"),
        (with_assessment(settings={}), "mpucc_assessment_settings_meet_the_policy"),
        (good_evidence(unit=None), "rows_belong_to_the_declared_people"),
        (
            good_evidence(unit=UnitDecision(False, "'who' repeats", "Set `person: true`.")),
            "rows_belong_to_the_declared_people",
        ),
        (good_evidence(examined={}), "no_identifying_column_leaves_undecided"),
        (good_evidence(examined={"synthetic": (PLAN,)}), "no_identifying_column_leaves_undecided"),
        (good_evidence(examined={"source": (PLAN,)}, must_be_examined=()), "no_identifying_column_leaves_undecided"),
        (good_evidence(examined={"synthetic": (NAMES,), "source": ()}), "no_identifying_column_leaves_undecided"),
        (good_evidence(examined={"synthetic": (), "source": (NAMES,)}), "no_identifying_column_leaves_undecided"),
        (
            good_evidence(examined={"synthetic": (NAMES,), "source": ()}, acknowledged={"plan": "by the board"}),
            "no_identifying_column_leaves_undecided",
        ),
        (with_metrics(privacy_risk_score=0.1), "privacy_risk_score_is_below_its_limit"),
        (with_metrics(privacy_risk_score=math.nan), "privacy_risk_score_is_below_its_limit"),
        (with_metrics(privacy_risk_score=None), "privacy_risk_score_is_below_its_limit"),
        (with_metrics(leakage_detected=1.0), "no_leakage_is_detected"),
        (with_metrics(leakage_detected=None), "no_leakage_is_detected"),
        (good_evidence(measured={}), "rare_values_released_is_at_most_its_limit"),
        (with_rare_values(1.0), "rare_values_released_is_at_most_its_limit"),
        (with_rare_values(None), "rare_values_released_is_at_most_its_limit"),
        (with_rare_values(math.nan), "rare_values_released_is_at_most_its_limit"),
    ],
)
def test_each_gap_in_the_evidence_refuses_and_says_which_with_advice(evidence, refused_by):
    decided = verdicts(POLICY, evidence, "s")
    assert not is_admitted(decided)
    assert refused_by in blocking(evidence)
    assert all(verdict.advice for verdict in decided if verdict.blocks)


@pytest.mark.parametrize("name", [MPUCC, DISCLOSURE])
@pytest.mark.parametrize("settings", [{}, None])
def test_an_assessment_that_records_no_settings_is_said_to_record_none(name, settings):
    blocks = [verdict for verdict in verdicts(POLICY, with_assessment(name, settings=settings), "s") if verdict.blocks]
    (said,) = [verdict.reason for verdict in blocks if verdict.name == f"{name}_settings_meet_the_policy"]
    assert said == f"{name} does not record the settings that it was made with"


OF_ANOTHER_VERSION = [None, "", "mpucc_assessment/0", "mpucc_assessment/1", "disclosure_assessment/1", "1", 1, ["a"]]


@pytest.mark.parametrize("found", OF_ANOTHER_VERSION)
def test_evidence_of_another_version_of_the_algorithm_is_stale(found):
    decided = verdicts(POLICY, with_settings(algorithm=found), "s")
    blocks = [verdict for verdict in decided if verdict.blocks]
    assert [verdict.name for verdict in blocks] == ["mpucc_assessment_settings_meet_the_policy"]
    expected = "another version of the algorithm made mpucc_assessment; expected mpucc_assessment/5"
    assert blocks[0].reason == expected
    assert "Assess again" in blocks[0].advice


@pytest.mark.parametrize("name", [MPUCC, DISCLOSURE])
@pytest.mark.parametrize("found", ["canonical/0", None])
def test_evidence_with_texts_compared_by_other_rules_is_stale(name, found):
    settings = {**good_evidence().assessments[name].settings, "spelling": found}
    blocks = [verdict for verdict in verdicts(POLICY, with_assessment(name, settings=settings), "s") if verdict.blocks]
    assert [verdict.name for verdict in blocks] == [f"{name}_settings_meet_the_policy"]
    assert blocks[0].reason == "texts were compared by other rules than canonical/1"


BLIND = {"zip": {"unknown": 1.0, "expected": 0.0, "blind": True, "invented": False, "by_range": False}}
SENTENCE = "Column 'zip': 100.0% of the synthetic values are values that nobody has (0.0% of real people's)."


def test_a_blind_column_leaves_no_figure_and_is_named():
    settings = {**DISCLOSURE_SETTINGS, "unknown_values": BLIND}
    evidence = with_settings(unknown_values=BLIND)
    evidence = replace(
        evidence,
        assessments={
            **evidence.assessments,
            DISCLOSURE: replace(evidence.assessments[DISCLOSURE], settings=settings),
        },
    )
    decided = {verdict.name: verdict for verdict in verdicts(POLICY, evidence, "s")}
    failed = [
        "mpucc_assessment_can_see_copies",
        "privacy_risk_score_is_below_its_limit",
        "originals_singled_out_is_below_its_limit",
        "no_leakage_is_detected",
        "copies_beyond_people_is_at_most_its_limit",
        "verbatim_copies_is_at_most_its_limit",
    ]
    assert [name for name, verdict in decided.items() if not verdict.passed] == failed
    for name in failed:
        assert SENTENCE in decided[name].reason
        assert decided[name].value is None
        assert "Write the values as the source does" in decided[name].advice
    # A found leak stays found.
    own = replace(evidence.assessments[DISCLOSURE], metrics={"leakage_detected": 1.0})
    found = limit_verdict(
        Limit("leakage_detected", 0), replace(evidence, assessments={**evidence.assessments, DISCLOSURE: own})
    )
    assert found.value == 1.0
    assert not found.passed


@pytest.mark.parametrize("why", ["The records cannot be compared with people: utility_pairs is -0.7.", None])
def test_foreign_records_and_records_that_were_not_judged_are_refused(why):
    decided = {verdict.name: verdict for verdict in verdicts(POLICY, with_settings(foreign=why), "s")}
    assert decided["mpucc_assessment_can_see_copies"].blocks
    assert decided["privacy_risk_score_is_below_its_limit"].passed is (why is None)
    assert decided["no_leakage_is_detected"].passed is (why is None)
    assert decided["rare_values_released_is_at_most_its_limit"].passed
    if why is not None:
        assert why in decided["no_leakage_is_detected"].reason


def test_a_policy_that_limits_leakage_alone_also_needs_records_that_can_be_compared():
    policy = Policy((Limit("leakage_detected", 0),))
    foreign = with_settings(foreign="They are foreign.")
    assert blocking(good_evidence(), policy=policy) == []
    refused = ["mpucc_assessment_can_see_copies", "no_leakage_is_detected"]
    assert blocking(foreign, policy=policy) == refused
    assert blocking(without(MPUCC), policy=policy) == ["mpucc_assessment_exists"]
    # The mpUCC assessment of an earlier table says nothing about this one.
    own = replace(foreign.assessments[MPUCC], made_of={**MADE_OF, "synthetic": "older"})
    earlier = replace(foreign, assessments={**foreign.assessments, MPUCC: own})
    assert limit_verdict(Limit("leakage_detected", 0), earlier).passed


@pytest.mark.parametrize("name", [MPUCC, DISCLOSURE, REIDENTIFICATION, SEMANTIC, UTILITY])
def test_every_assessment_that_a_policy_limits_has_a_version(name):
    assert name in VERSIONS
    evidence = replace(
        good_evidence(),
        assessments={name: AssessmentEvidence("d", "d", "run", settings={"algorithm": f"{name}/0"})},
        asked_for={name: {}},
        must_succeed=(name,),
    )
    (verdict,) = [each for each in verdicts(POLICY, evidence, "s") if each.name == f"{name}_settings_meet_the_policy"]
    assert not verdict.passed
    assert f"another version of the algorithm made {name}" in verdict.reason


@pytest.mark.parametrize(("settings", "blocks"), [({}, True), ({"algorithm": "anonymization/0"}, True), (None, False)])
def test_an_anonymization_of_another_version_is_stale(settings, blocks):
    made = TableEvidence("artifact", "artifact", "run", made_of={"source": "r"}, content="t", settings=settings)
    evidence = anonymized_evidence(tables={**anonymized_evidence().tables, "anonymized": made})
    refused = [verdict.name for verdict in verdicts(ANONYMIZED, evidence, "t") if verdict.blocks]
    assert ("this_version_made_anonymized" in refused) is blocks
    ours = replace(made, settings={"algorithm": algorithm_of("anonymization")})
    evidence = anonymized_evidence(tables={**anonymized_evidence().tables, "anonymized": ours})
    assert "this_version_made_anonymized" not in [v.name for v in verdicts(ANONYMIZED, evidence, "t") if v.blocks]


def test_another_content_than_the_assessed_is_refused():
    assert blocking(good_evidence(), fingerprint="t") == [
        "synthetic_is_as_recorded",
        "disclosure_assessment_is_of_this_table",
        "mpucc_assessment_is_of_this_table",
    ]
    assert blocking(good_evidence(), fingerprint="") == [
        "synthetic_is_as_recorded",
        "disclosure_assessment_is_of_this_table",
        "mpucc_assessment_is_of_this_table",
    ]


def test_no_verdicts_admit_nothing():
    assert not is_admitted(())


def test_nothing_known_is_refused():
    empty = Evidence("synthetic", "synthetic", (), {}, {}, lineage={"synthetic": ("original",)})
    decided = verdicts(POLICY, empty, "")
    assert not is_admitted(decided)
    passed = [verdict.name for verdict in decided if verdict.severity == "error" and verdict.passed]
    # The exposed share is not asked, because the limits that it could decide fail without figures.
    assert passed == ["the_policy_limits_the_synthetic_side", "exposed_share_is_below_its_limit"]


ANONYMIZED = Policy((Limit("smallest_class", 5), Limit("privacy_risk_score", 0.1), Limit("information_loss", 0.2)))


def anonymized_evidence(**changes) -> Evidence:
    evidence = Evidence(
        "anonymized",
        "anonymized",
        ("age", "age_low", "age_high"),
        {
            "source": TableEvidence("r", "r", "run"),
            "anonymized": TableEvidence("artifact", "artifact", "run", made_of={"source": "r"}, content="t"),
        },
        {},
        lineage={"anonymized": ("source",)},
        keeps_contract=True,
        unit=UnitDecision(True, "each row is another person"),
        measured={"anonymity": {"smallest_class": 5.0, "information_loss": 0.3, "share_in_homogeneous_classes": 0.0}},
        examined={"anonymized": (), "source": ()},
        must_be_examined=("anonymized", "source"),
        links=LinkEvidence(),
        undeclared="",
    )
    return replace(evidence, **changes)


def with_anonymized(stage, **changes) -> Evidence:
    tables = anonymized_evidence().tables
    return anonymized_evidence(tables={**tables, stage: replace(tables[stage], **changes)})


def test_the_anonymized_side_is_held_by_its_own_limits_measured_on_the_table_at_hand():
    decided = verdicts(ANONYMIZED, anonymized_evidence(), "t")
    assert is_admitted(decided)
    assert [verdict.name for verdict in decided] == [
        "the_policy_limits_the_anonymized_side",
        "anonymized_is_as_recorded",
        "anonymized_keeps_the_contract",
        "rows_belong_to_the_declared_people",
        "nothing_suggests_other_people_than_declared",
        "no_identifying_column_leaves_undecided",
        "no_nearly_unique_measure_leaves_undecided",
        "no_released_column_links_the_rows_of_a_person",
        "anonymized_was_made_of_the_recorded_tables",
        "smallest_class_is_at_least_its_limit",
        "information_loss_is_at_most_its_limit",
        "share_in_homogeneous_classes_is_at_most_its_limit",
    ]
    assert [verdict.severity for verdict in decided if not verdict.passed] == ["warn"]


@pytest.mark.parametrize(
    ("evidence", "content", "refused_by"),
    [
        (anonymized_evidence(), "another table", "anonymized_is_as_recorded"),
        (with_anonymized("anonymized", digest="edited"), "t", "anonymized_is_as_recorded"),
        (with_anonymized("anonymized", run_id=None), "t", "anonymized_is_as_recorded"),
        (with_anonymized("anonymized", made_of={}), "t", "anonymized_was_made_of_the_recorded_tables"),
        (with_anonymized("source", recorded_digest="new"), "t", "anonymized_was_made_of_the_recorded_tables"),
        (with_anonymized("source", digest="overwritten"), "t", "anonymized_was_made_of_the_recorded_tables"),
        (with_anonymized("source", run_id=None), "t", "anonymized_was_made_of_the_recorded_tables"),
        (anonymized_evidence(keeps_contract=False), "t", "anonymized_keeps_the_contract"),
        (anonymized_evidence(measured={}), "t", "smallest_class_is_at_least_its_limit"),
        (
            anonymized_evidence(measured={"anonymity": {"smallest_class": 4.0}}),
            "t",
            "smallest_class_is_at_least_its_limit",
        ),
    ],
)
def test_an_anonymized_table_that_is_not_what_was_measured_is_refused(evidence, content, refused_by):
    decided = verdicts(ANONYMIZED, evidence, content)
    assert not is_admitted(decided)
    assert [verdict.name for verdict in decided if verdict.blocks] == [refused_by]


@pytest.mark.parametrize(
    "limit",
    [
        Limit("information_loss", 0.5),
        Limit("information_loss", 0.5, severity="error"),
        Limit("smallest_class", 5, severity="warn"),
        Limit("smallest_class", 1.5),
    ],
)
def test_a_side_that_no_limit_protects_is_refused(limit):
    loose = Policy((Limit("privacy_risk_score", 0.1), limit))
    decided = verdicts(loose, anonymized_evidence(), "t")
    assert "the_policy_limits_the_anonymized_side" in [verdict.name for verdict in decided if verdict.blocks]


CANDIDATES = Policy((Limit("smallest_class", 5), Limit("max_reidentification_probability", 0.2)), known=(("age",),))
ASKED_FOR = {"known": [["age"]], "subject": "person", "other_releases": [["last_year", "number"]]}
ASSESSED = {
    "algorithm": algorithm_of(REIDENTIFICATION),
    "known": [["age", "sex"]],
    "subject": "person",
    "other_releases": [{"name": "last_year", "key": "number", "model": {}}],
}


def assessed_evidence(settings=ASSESSED, **changes) -> Evidence:
    assessment = AssessmentEvidence(
        "d", "d", "run", {"source": "r", "anonymized": "t", "other_last_year": "o"},
        metrics={"max_reidentification_probability": 0.2}, settings=settings,
    )  # fmt: skip
    return anonymized_evidence(
        tables={**anonymized_evidence().tables, "other_last_year": TableEvidence("o", "o", "run")},
        assessments={"reidentification_assessment": replace(assessment, **changes)},
        stands_on={"reidentification_assessment": ("source", "other_last_year")},
        asked_for={"reidentification_assessment": ASKED_FOR},
    )


def test_an_assessment_of_at_least_what_is_asked_for_is_admitted():
    assert is_admitted(verdicts(CANDIDATES, assessed_evidence(), "t"))
    published = {"name": "last_year (last published)", "key": "number", "model": {}}
    more = {**ASSESSED, "other_releases": [*ASSESSED["other_releases"], published]}
    assert is_admitted(verdicts(CANDIDATES, assessed_evidence(more), "t"))


def test_an_assessment_that_must_succeed_is_held_to_all_but_a_limit():
    without_limit = Policy((Limit("smallest_class", 5),))
    name = "reidentification_assessment"
    assert is_admitted(verdicts(without_limit, replace(assessed_evidence(), assessments={}), "t"))
    needed = replace(assessed_evidence(metrics={}), must_succeed=(name,))
    assert is_admitted(verdicts(without_limit, needed, "t"))
    for evidence, refused_by in [
        (replace(needed, assessments={}), f"{name}_exists"),
        (replace(assessed_evidence(made_of={}), must_succeed=(name,)), f"{name}_is_of_this_table"),
        (replace(assessed_evidence({"known": []}), must_succeed=(name,)), f"{name}_settings_meet_the_policy"),
    ]:
        assert refused_by in [verdict.name for verdict in verdicts(without_limit, evidence, "t") if verdict.blocks]


@pytest.mark.parametrize(
    ("evidence", "refused_by"),
    [
        (assessed_evidence({**ASSESSED, "known": [["sex"]]}), "settings_meet_the_policy"),
        (assessed_evidence({**ASSESSED, "known": None}), "settings_meet_the_policy"),
        (assessed_evidence({**ASSESSED, "subject": None}), "settings_meet_the_policy"),
        (assessed_evidence({**ASSESSED, "other_releases": []}), "settings_meet_the_policy"),
        (
            assessed_evidence({**ASSESSED, "other_releases": [{"name": "another_year", "key": "number"}]}),
            "settings_meet_the_policy",
        ),
        (
            assessed_evidence({**ASSESSED, "other_releases": [{"name": "last_year", "key": "another"}]}),
            "settings_meet_the_policy",
        ),
        (assessed_evidence({}), "settings_meet_the_policy"),
        (replace(assessed_evidence(), asked_for={}), "settings_meet_the_policy"),
        (assessed_evidence(made_of={"source": "r", "anonymized": "other", "other_last_year": "o"}), "of_this_table"),
        (assessed_evidence(made_of={"source": "r", "anonymized": "t"}), "stands_on_the_recorded_tables"),
        (assessed_evidence(made_of={"source": "x", "anonymized": "t", "other_last_year": "o"}), "stands_on"),
        (assessed_evidence(run_id=None), "was_made_by_a_run"),
        (assessed_evidence(digest="edited"), "is_as_recorded"),
        (assessed_evidence(metrics={"max_reidentification_probability": 0.25}), "max_reidentification_probability"),
        (assessed_evidence(metrics={}), "max_reidentification_probability"),
    ],
)
def test_an_assessment_of_less_than_what_is_asked_for_is_refused(evidence, refused_by):
    blocking = [verdict.name for verdict in verdicts(CANDIDATES, evidence, "t") if verdict.blocks]
    assert len(blocking) == 1
    assert refused_by in blocking[0]


def test_a_failed_warning_is_shown_but_does_not_refuse():
    decided = verdicts(POLICY, with_metrics(verbatim_copies=7.0), "s")
    assert is_admitted(decided)
    assert [verdict.name for verdict in decided if not verdict.passed] == ["verbatim_copies_is_at_most_its_limit"]


def test_a_table_that_was_brought_in_need_not_be_made_of_the_original():
    evidence = replace(with_table("synthetic", made_of={}), lineage={})
    assert is_admitted(verdicts(POLICY, evidence, "s"))


def test_a_precision_that_the_contract_declares_is_accepted():
    evidence = replace(with_settings(given_precision={"age": 0}), declared_precisions={"age": 0})
    assert is_admitted(verdicts(POLICY, evidence, "s"))


def test_a_narrow_table_is_searched_in_full_and_a_policy_may_ask_for_all_columns():
    all_columns = POLICY.with_required(max_baseline_cols=None)
    assert blocking(good_evidence(), policy=all_columns) == ["mpucc_assessment_settings_meet_the_policy"]
    assert not blocking(with_settings(complete_up_to=4), policy=all_columns)
    narrow = replace(with_settings(columns=["age", "sex"], complete_up_to=2), columns=("age", "sex"))
    assert not blocking(narrow)


OF_OTHERS = "real people whom the synthesizer never saw would have 0.04 in their place"


def test_a_failed_limit_says_in_three_digits_what_was_found_and_exactly_what_a_waiver_must_name():
    verdict = limit_verdict(POLICY.limits[0], with_metrics(privacy_risk_score=0.2271))
    assert verdict.reason == "privacy_risk_score is 0.227 (exactly 0.2271); expected below 0.1; " + OF_OTHERS
    assert (verdict.value, verdict.limit, verdict.direction) == (0.2271, 0.1, "below")
    warns = Limit("privacy_risk_score", 0.1, severity="warn")
    verdict = limit_verdict(warns, with_metrics(privacy_risk_score=0.788058))
    assert verdict.reason == "privacy_risk_score is 0.788; expected below 0.1"
    assert verdict.value == 0.788058


def test_a_large_figure_has_commas_for_people_but_not_where_a_waiver_must_name_it():
    limit = Limit("rare_values_released", 2_000_000)
    for figure in (1_999_999, 2_000_001):
        evidence = replace(good_evidence(), measured={"rare_values": {"rare_values_released": figure}})
        shown = {1_999_999: "1,999,999; expected at most 2,000,000", 2_000_001: "2000001; expected at most 2000000"}
        assert limit_verdict(limit, evidence).reason == f"rare_values_released is {shown[figure]}"


@pytest.mark.parametrize(
    ("value", "said"), [(1.0, "is yes; expected no"), (0.0, "is no; expected no"), (None, "has no value; expected no")]
)
def test_leakage_is_said_with_what_was_seen_or_might_not_have_been(value, said):
    evidence = replace(
        with_metrics(leakage_detected=value),
        remarks={"leakage_detected": "near copies"},
        advised={"leakage_detected": "Round numbers."},
    )
    limit = POLICY.limit_on("leakage_detected")
    verdict = limit_verdict(limit, evidence)
    assert verdict.reason == f"leakage_detected {said} (near copies)"
    assert verdict.advice == ("" if value == 0.0 else "Round numbers.")
    of_the_policy = replace(limit, advice="Ask the data office.")
    assert limit_verdict(of_the_policy, evidence).advice == ("" if value == 0.0 else "Ask the data office.")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0412345, "0.0412"),
        (0.0999, "0.0999"),
        (0.09996, "0.09996"),
        (0.09999999, "0.09999999"),
        (0.1, "0.1"),
        (0.1004, "0.1004"),
        (0.10000001, "0.10000001"),
        (0.1 + 2e-17, "0.10000000000000002"),
        (0.1006, "0.101 (exactly 0.1006)"),
    ],
)
def test_a_figure_is_not_shown_as_the_limit_that_it_is_not(value, shown):
    assert (
        f"is {shown}; expected below 0.1"
        in limit_verdict(POLICY.limits[0], with_metrics(privacy_risk_score=value)).reason
    )


@pytest.mark.parametrize(
    ("is_demanded", "signing", "expected"),
    [
        (False, None, None),
        (False, SigningEvidence("ab"), True),
        (False, SigningEvidence(None, "the key file 'key.pem' does not exist"), False),
        (True, None, False),
        (True, SigningEvidence("ab"), True),
        (True, SigningEvidence(None, "the key file 'key.pem' does not exist"), False),
    ],
)
def test_a_key_that_is_named_or_demanded_must_be_there(is_demanded, signing, expected):
    policy = POLICY.with_required(signature=is_demanded)
    decided = verdicts(policy, good_evidence(signing=signing), "s")
    found = [each for each in decided if each.name == "the_release_is_signed"]
    assert [each.passed for each in found] == ([] if expected is None else [expected])
    assert is_admitted(decided) is (expected is not False)
    if expected is False:
        missing = "the release has no signing key" if signing is None else "the key file 'key.pem' does not exist"
        assert missing in found[0].reason
        assert found[0].advice


def test_rare_values_are_refused_with_the_columns_they_are_in():
    decided = verdicts(POLICY, with_rare_values(3.0, "by column: 'plan': 3"), "s")
    (verdict,) = [each for each in decided if each.blocks]
    assert verdict.reason == "rare_values_released is 3; expected at most 0 (by column: 'plan': 3)"
    assert "min_atom" in verdict.advice
    warned = POLICY.with_limit(Limit("rare_values_released", 0, severity="warn"))
    assert is_admitted(verdicts(warned, with_rare_values(3.0), "s"))
    unlimited = Policy(tuple(limit for limit in POLICY.limits if limit.metric != "rare_values_released"))
    assert is_admitted(verdicts(unlimited, good_evidence(measured={}), "s"))


def test_a_reason_in_the_contract_lets_an_identifying_column_leave_and_is_told():
    evidence = good_evidence(
        examined={"synthetic": (PLAN, NAMES), "source": (NAMES, PLAN)}, acknowledged={"name": "made-up names, says Ada"}
    )
    decided = {verdict.name: verdict for verdict in verdicts(POLICY, evidence, "s")}
    assert is_admitted(tuple(decided.values()))
    reason = decided["no_identifying_column_leaves_undecided"].reason
    assert reason == (
        "the contract has a reason for every released column that looks identifying: 'name' (made-up names, says Ada)"
    )


def test_a_refused_column_is_named_once_with_what_was_found():
    evidence = good_evidence(examined={"synthetic": (NAMES, WEIGHT), "source": (NAMES,)})
    refused = [verdict for verdict in verdicts(POLICY, evidence, "s") if verdict.blocks]
    assert [verdict.reason for verdict in refused] == [
        "columns that would be released unchanged look identifying (1): column 'name': reads like names of people "
        "(98.0% of "
        "its texts)"
    ]
    assert "leaves_as_is" in refused[0].advice


@pytest.mark.parametrize("use_case", ["public_release", "internal_analytics", "development", "high_risk_data"])
def test_an_identifying_column_refuses_and_a_nearly_unique_measure_warns_under_every_preset(use_case):
    policy = Policy.for_use_case(use_case)
    evidence = good_evidence(examined={"synthetic": (NAMES, WEIGHT), "source": ()})
    decided = {verdict.name: verdict for verdict in verdicts(policy, evidence, "s")}
    assert decided["no_identifying_column_leaves_undecided"].blocks
    warned = decided["no_nearly_unique_measure_leaves_undecided"]
    assert (warned.passed, warned.severity) == (False, "warn")
    assert "'weight': 40.0% of the people are alone" in warned.reason


def test_a_thousand_refused_columns_are_counted_and_the_first_are_named():
    columns = tuple(replace(NAMES, column=f"c{number}") for number in range(1_000))
    decided = verdicts(POLICY, good_evidence(examined={"synthetic": columns, "source": columns}), "s")
    reason = next(verdict.reason for verdict in decided if verdict.blocks)
    assert reason.startswith("columns that would be released unchanged look identifying (1000)")
    assert reason.endswith("; and 980 more columns")
    assert len(reason) < 2_000


def test_records_are_enough_only_if_the_contract_names_no_person():
    by_person = with_settings(n_people={"original": 400, "control": 100}, n_rows={"original": 900, "control": 250})
    assert not blocking(replace(by_person, has_person=True))
    few = replace(with_settings(n_people={"original": 400, "control": 99}, n_rows={"control": 250}), has_person=True)
    reasons = {verdict.name: verdict.reason for verdict in verdicts(POLICY, few, "s")}
    assert reasons["mpucc_assessment_settings_meet_the_policy"] == "the control has 99 people, expected at least 100"


def private_evidence(is_recorded=True, **figures) -> Evidence:
    return good_evidence(
        measured={
            "rare_values": {"rare_values_released": 0.0},
            "privacy_budget": {"epsilon": 1.0, "total_epsilon": 2.0, "delta": 1e-6, **figures},
        },
        budget=BudgetEvidence(is_recorded, "what was found"),
    )


LIMITED = (
    POLICY.with_limit(Limit("epsilon", 1.0)).with_limit(Limit("total_epsilon", 2.5)).with_limit(Limit("delta", 1e-6))
)


def test_a_private_release_within_its_budget_is_admitted():
    assert is_admitted(verdicts(LIMITED, private_evidence(), "s"))


@pytest.mark.parametrize(
    ("evidence", "refused_by"),
    [
        (private_evidence(is_recorded=False), "the_privacy_budget_is_recorded"),
        (private_evidence(epsilon=1.0000001), "epsilon_is_at_most_its_limit"),
        (private_evidence(total_epsilon=2.6), "total_epsilon_is_at_most_its_limit"),
        (private_evidence(delta=1e-5), "delta_is_at_most_its_limit"),
        (private_evidence(total_epsilon=math.nan), "total_epsilon_is_at_most_its_limit"),
        (private_evidence(epsilon=None), "epsilon_is_at_most_its_limit"),
    ],
)
def test_a_private_release_beyond_its_budget_is_refused(evidence, refused_by):
    assert [each.name for each in verdicts(LIMITED, evidence, "s") if each.blocks] == [refused_by]


def test_a_release_without_noise_fails_every_limit_on_epsilon():
    blocked = {each.name for each in verdicts(LIMITED, good_evidence(), "s") if each.blocks}
    assert blocked == {f"{name}_is_at_most_its_limit" for name in ("epsilon", "total_epsilon", "delta")}


def test_a_damaged_ledger_cannot_be_waived():
    decided = verdicts(POLICY, private_evidence(is_recorded=False), "s")
    (verdict,) = (each for each in decided if each.name == "the_privacy_budget_is_recorded")
    assert verdict.metric is None
    assert verdict.blocks
