"""Re-identification and semantic risk of anonymized records through the gate; records withheld."""

import copy
import shutil
from dataclasses import replace

import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings, ReidentificationSettings
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.orchestration.project import CONTRACT, blocked_by, failure_of, people, report_by_hand
from tests.orchestration.test_anonymized_release import (
    assert_refused,
    assert_released,
    definitions_of,
    released_table,
    run_release,
    visits,
)

CANDIDATES = "reidentification_assessment"
SEMANTIC = "semantic_assessment"
PROBABILITY = Limit("max_reidentification_probability", 0.2)


def candidates_policy(*limits, known=()):
    return Policy((Limit("smallest_class", 5), *(limits or (PROBABILITY,))), known=known)


def _assessed(project):
    definitions = definitions_of(project, policy=candidates_policy())
    assert project.run(definitions, "source", "anonymized", CANDIDATES).success
    assert refused_because(project, definitions) == ""


def refused_because(project, definitions):
    return project.refused_because(definitions, "anonymized")


class TestReidentification:
    def test_records_with_enough_candidates_are_released_with_their_figures(self, project):
        result = project.run(definitions_of(project, policy=candidates_policy()))
        assert_released(project, result)
        manifest = released_table(project)[1]
        scores = manifest["figures"][CANDIDATES]
        assert 0 < scores["max_reidentification_probability"] <= 0.2
        assert manifest["settings"][CANDIDATES]["known"] == [["age", "plan", "joined"]]
        metadata = result.asset_materializations_for_node(f"people__{CANDIDATES}")[0].metadata
        assert metadata["candidates"].value.startswith("![Knowing all 3 columns, an attacker picks the right record")
        assert metadata["share_of_singletons"].value == 0

    def test_a_limit_that_is_not_met_refuses_in_every_run(self, project):
        project.begin_as(_assessed)
        strict = definitions_of(project, policy=candidates_policy(Limit("mean_reidentification_probability", 0.001)))
        assert blocked_by(project.run(strict, CANDIDATES)) == {"mean_reidentification_probability_is_at_most_its_limit"}
        assert_refused(project, run_release(project, strict), "mean_reidentification_probability is")
        assert refused_because(project, definitions_of(project, policy=candidates_policy())) == ""

    def test_what_an_attacker_knows_is_the_policys_to_say(self, project):
        # The cost is not generalized: who knows it, and the age, finds people.
        knows_costs = candidates_policy(known=(("age",), ("age", "cost")))
        project.begin_as(_assessed)
        refused = project.run(definitions_of(project, policy=knows_costs), CANDIDATES, "anonymized_release")
        assert blocked_by(refused) == {"max_reidentification_probability_is_at_most_its_limit"}
        assert project.everything_released() == []
        with pytest.raises(InvalidSettingError, match=r"an attacker knows \['income'\], which the release 'people'"):
            definitions_of(project, policy=candidates_policy(known=(("income",),)))

    def test_an_assessment_under_weaker_assumptions_is_refused(self, project):
        project.begin_as(_assessed)
        weak = definitions_of(project, policy=candidates_policy(known=(("age",),)))
        assert project.run(weak, CANDIDATES).success
        assert refused_because(project, weak) == ""
        found = refused_because(project, definitions_of(project, policy=candidates_policy()))
        assert found.startswith("1 sets of columns that an attacker may know were not assessed; ")

    def test_an_assessment_of_another_table_is_refused(self, project):
        definitions = definitions_of(project, policy=candidates_policy())
        project.begin_as(_assessed)
        other = project.run(definitions_of(project, policy=candidates_policy(), k=9), "anonymized")
        assert other.success
        assert_refused(project, run_release(project, definitions), "was made from a different anonymized table")
        assert_released(project, project.run(definitions, CANDIDATES, "anonymized_release"))

    @pytest.mark.parametrize(
        ("place", "value"),
        [
            (("scores", "max_reidentification_probability"), 0.0),
            (("settings", "known"), [["age", "plan", "joined", "cost"]]),
            (("settings", "subject"), "nobody"),
        ],
    )
    def test_an_edited_assessment_is_refused(self, project, place, value):
        definitions = definitions_of(project, policy=candidates_policy())
        project.begin_as(_assessed)
        with project.kept(CANDIDATES):
            stored = read_artifact(project.stored(CANDIDATES))
            header = copy.deepcopy(dict(stored.header))
            group, name = place
            assert header[group][name] != value
            header[group][name] = value
            write_artifact(project.stored(CANDIDATES), type(stored)(stored.kind, header, stored.frames, stored.made_of))
            assert "it was changed" in refused_because(project, definitions)
        assert refused_because(project, definitions) == ""

    @pytest.mark.parametrize(
        ("stage", "conditions"),
        [
            (CANDIDATES, [f"{CANDIDATES}_was_made_by_a_run"]),
            ("anonymized", ["anonymized_is_as_recorded", "anonymized_was_made_of_the_recorded_tables"]),
            (
                "source",
                [
                    "rows_belong_to_the_declared_people",
                    "anonymized_was_made_of_the_recorded_tables",
                    f"{CANDIDATES}_stands_on_the_recorded_tables",
                ],
            ),
        ],
    )
    def test_no_stage_that_the_release_stands_on_may_be_reported_by_hand(self, project, stage, conditions):
        project.begin_as(_assessed)
        report_by_hand(project, stage)
        decided = project.decided(definitions_of(project, policy=candidates_policy()), "anonymized")
        assert [verdict.name for verdict in decided if verdict.blocks] == conditions

    def test_an_assessment_that_fails_refuses_though_no_limit_is_on_it(self, project):
        """The truth check is always an error."""
        asked = {"policy": Policy((Limit("smallest_class", 5),)), "reidentification": ReidentificationSettings()}
        definitions = definitions_of(project, **asked)
        project.begin_as(_assessed)
        assert refused_because(project, definitions) == ""
        shutil.rmtree(project.stored(CANDIDATES))
        assert refused_because(project, definitions) == f"there is no readable {CANDIDATES} in storage"
        reversed_ages = people(300, 1).assign(age=lambda table: table["age"].to_numpy()[::-1])
        reversed_ages.to_parquet(project.root / "data" / "people.parquet", index=False)
        failed = project.run(definitions, "source", CANDIDATES)
        assert "The true original is not among the candidates of released records, by column" in failure_of(failed)
        assert f"no readable {CANDIDATES}" in refused_because(project, definitions)
        assert_released(project, project.run(definitions))

    def test_an_attacker_who_knows_little_does_not_protect(self, project):
        little = Policy((Limit("max_reidentification_probability", 0.5),), known=(("plan",),))
        with pytest.raises(InvalidSettingError, match="assumes that an attacker never knows all quasi-identifiers"):
            definitions_of(project, policy=little, anonymized=AnonymizationSettings(k=1))

    def test_an_assessment_with_other_hierarchies_is_refused(self, project):
        def by(prefixes):
            hierarchies = {"age": {"intervals": [5, 20]}, "plan": prefixes, "joined": {"dates": ["month", "year"]}}
            settings = AnonymizationSettings(method="lattice", hierarchies=hierarchies)
            return definitions_of(project, policy=candidates_policy(), anonymized=settings)

        released, other = by({"prefixes": [1]}), by({"prefixes": [2, 1]})
        assert project.run(released, "source", "anonymized").success
        assert project.run(other, CANDIDATES).success
        found = refused_because(project, released)
        assert found == "own_hierarchies differs from what the current policy and contract require"
        assert refused_because(project, other) == ""

    def test_hierarchies_are_known_to_the_assessment(self, project):
        hierarchies = {"age": {"intervals": [5, 20]}, "plan": {"prefixes": [1]}, "joined": {"dates": ["month", "year"]}}
        settings = AnonymizationSettings(method="lattice", hierarchies=hierarchies)
        policy = candidates_policy(PROBABILITY, Limit("maximum_semantic_risk", 0.2))
        result = project.run(definitions_of(project, policy=policy, anonymized=settings))
        assert_released(project, result)
        scales = released_table(project)[1]["settings"][SEMANTIC]["scales"]
        assert scales == dict.fromkeys(("age", "plan", "joined"), "hierarchy")
        # Thresholds can be guessed, and a guess compared with a digest.
        assert "scale_digests" not in (project.releases(side="anonymized")[0] / "manifest.json").read_text()


RISK = "maximum_semantic_risk_is_at_most_its_limit"


def semantic_policy(limit=0.2):
    return Policy((Limit("smallest_class", 5), Limit("maximum_semantic_risk", limit)))


def unlimited_policy():
    return Policy((Limit("smallest_class", 3),))


ORDINAL = {"cost": {"ordinal": [5, 10, 15, 20, 25]}}


class TestSemanticRisk:
    def test_a_table_that_passes_k_and_fails_the_semantic_limit_is_refused(self, project):
        definitions = definitions_of(
            project, policy=semantic_policy(), semantic_risk=SemanticRiskSettings(scales=ORDINAL)
        )
        assert blocked_by(project.run(definitions)) == {RISK}
        assert_refused(project, run_release(project, definitions), "maximum_semantic_risk is")

    def test_with_the_records_at_risk_withheld_it_is_released_and_the_manifest_counts_them(self, project):
        policy = Policy((Limit("smallest_class", 3), Limit("maximum_semantic_risk", 0.5)))
        settings = {
            "policy": policy,
            "anonymized": AnonymizationSettings(k=25),
            "semantic_risk": SemanticRiskSettings(scales=ORDINAL, withhold=True),
        }
        result = project.run(definitions_of(project, **settings))
        assert_released(project, result)
        table, manifest = released_table(project)
        withheld = manifest["settings"]["suppressed"]["records_withheld"]
        assert withheld > 0
        assert len(table) == 300 - withheld == manifest["figures"]["statistics"]["n_released"]
        assert manifest["figures"]["statistics"]["n_withheld"] == withheld
        assert manifest["figures"][SEMANTIC]["maximum_semantic_risk"] <= 0.5
        # What an assessment would not keep is no record withheld, and has another name.
        assert manifest["figures"][SEMANTIC]["records_not_kept"] == 0
        assert "records_withheld" not in manifest["figures"][SEMANTIC]
        page = (project.releases(side="anonymized")[0] / "report.html").read_text()
        assert "The information loss by column is unknown" in page
        assert "Information loss by column" not in page

    def test_what_is_left_keeps_what_was_asked_of_the_classes(self, project):
        settings = {
            "policy": Policy((Limit("smallest_class", 3), Limit("maximum_semantic_risk", 0.5))),
            "semantic_risk": SemanticRiskSettings(scales={"cost": {"ordinal": [10, 20]}}, withhold=True),
        }
        # The rest of the class of a record at risk has fewer than ten, and goes with it.
        result = project.run(definitions_of(project, anonymized=AnonymizationSettings(k=10), **settings))
        assert_released(project, result)
        table, manifest = released_table(project)
        assert manifest["figures"]["statistics"]["k"] == 10
        assert manifest["figures"]["statistics"]["n_withheld"] == 300 - len(table) == 52
        # Of classes that kept ten a part was withheld, and their labels are those of the whole.
        (note,) = manifest["settings"]["suppressed"]["notes"]
        assert "a part of the records was withheld" in note and "tight bounds" in note
        page = (project.releases(side="anonymized")[0] / "report.html").read_text()
        assert "a part of the records was withheld" in page
        asked = AnonymizationSettings(k=10, t_closeness=0.15)
        failed = failure_of(project.run(definitions_of(project, anonymized=asked, **settings)))
        assert "of 300 records were to be withheld, but in the remaining classes the distance is" in failed
        assert "expected at most 0.15, in column 'cost'. Nothing was stored." in failed

    def test_withheld_records_of_an_earlier_anonymization_are_stale(self, project):
        settings = {
            "policy": Policy((Limit("smallest_class", 3), Limit("maximum_semantic_risk", 0.5))),
            "semantic_risk": SemanticRiskSettings(withhold=True),
        }
        definitions = definitions_of(project, anonymized=AnonymizationSettings(k=25), **settings)
        project.run(definitions, "source", "anonymized", "suppressed", SEMANTIC)
        assert refused_because(project, definitions) == ""
        project.run(definitions_of(project, anonymized=AnonymizationSettings(k=30), **settings), "anonymized")
        found = refused_because(project, definitions)
        assert found == "suppressed was made from an earlier version of ['anonymized']"

    def test_where_nobody_is_left_nothing_is_stored(self, project):
        policy = semantic_policy(0.001)
        failed = project.run(definitions_of(project, policy=policy, semantic_risk=SemanticRiskSettings(withhold=True)))
        assert "All 300 records would be withheld" in failure_of(failed)
        assert project.everything_released() == []

    def test_an_assessment_under_other_scales_is_refused(self, project):
        policy = semantic_policy(0.999)
        nominal = definitions_of(project, policy=policy)
        ordinal = definitions_of(project, policy=policy, semantic_risk=SemanticRiskSettings(scales=ORDINAL))
        assert project.run(nominal, "source", "anonymized", SEMANTIC).success
        assert refused_because(project, ordinal).startswith("scale_digests differs from what the current policy")
        assert refused_because(project, nominal) == ""

    def test_people_with_several_records_are_not_counted_as_many(self, project):
        """Sixty people with five records each: every group of five is one person."""
        visits(60).to_parquet(project.root / "data" / "people.parquet", index=False)
        scales = SemanticRiskSettings(scales={"cost": "nominal"})
        asked = {"anonymized": AnonymizationSettings(k=3), "semantic_risk": scales}
        unlimited = definitions_of(project, policy=unlimited_policy(), **asked)
        limited = definitions_of(
            project, policy=Policy((Limit("smallest_class", 3), Limit("maximum_semantic_risk", 0.2))), **asked
        )
        assert_released(project, project.run(unlimited))
        notes = released_table(project)[1]["figures"][SEMANTIC]["notes"]
        assert "The semantic risk counts records, not people: 60 people have 300 of the 300 records" in notes[-1]
        found = refused_because(project, limited)
        assert found.startswith("people_with_several_records differs from what the current policy")
        failed = failure_of(project.run(limited, SEMANTIC))
        assert "60 people have 300 of the 300 records. Expected one record per person" in failed
        withheld = replace(scales, withhold=True, risk_limit=0.2)
        withholding = definitions_of(project, policy=unlimited_policy(), **asked | {"semantic_risk": withheld})
        assert "60 people have 300 of the 300 records" in failure_of(project.run(withholding, "suppressed"))

    def test_scales_come_from_the_contract_and_the_source_is_assessed_on_request(self, project):
        contract = copy.deepcopy(CONTRACT)
        contract["columns"]["cost"]["scale"] = {"ordinal": [15]}
        settings = {
            "contract": contract,
            "policy": semantic_policy(0.5),
            "anonymized": AnonymizationSettings(k=30),
            "semantic_risk": SemanticRiskSettings(of_source=True),
        }
        result = project.run(definitions_of(project, **settings))
        assert_released(project, result)
        assert released_table(project)[1]["settings"][SEMANTIC]["scales"]["cost"] == "ordinal"
        of_source = result.asset_materializations_for_node(f"people__source_{SEMANTIC}")[0].metadata
        assert of_source["maximum_semantic_risk"].value == 1.0
        shown = result.asset_materializations_for_node(f"people__{SEMANTIC}")[0].metadata
        advice = shown["what_forgetting_columns_would_do"].value.records
        assert [record.data["columns"] for record in advice][:5] == ["none", "age", "plan", "joined", "cost"]
        assert all(isinstance(record.data["maximum_semantic_risk"], float) for record in advice)
        for picture in ("risk_distribution", "riskiest_concept"):
            assert shown[picture].value.startswith("![")

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"scales": {"cost": "cardinal"}}, "The scale is 'cardinal'"),
            ({"scales": {"patient": "nominal"}}, "a scale for 'patient', which is not released"),
            (
                {"scales": {"age": "generalized"}, "of_source": True},
                "Column 'age' has a generalized scale, but of_source",
            ),
            ({"three_way": (0.5, 0.2)}, "alpha < beta"),
            ({"risk_limit": 2.0}, "risk_limit"),
        ],
    )
    def test_settings_that_cannot_work_are_refused_when_the_definitions_are_built(self, project, settings, message):
        with pytest.raises(InvalidSettingError, match=message):
            definitions_of(project, semantic_risk=SemanticRiskSettings(**settings))

    @pytest.mark.parametrize("scale", ["ordinal", {"ordinal": [30, 40]}, {"interval": [[20, 40]]}, "generalized"])
    def test_scales_of_numbers_on_nodes_of_a_hierarchy_are_refused(self, project, scale):
        hierarchies = {"age": {"intervals": [5, 20]}, "plan": {"prefixes": [1]}, "joined": {"dates": ["month", "year"]}}
        lattice = AnonymizationSettings(method="lattice", hierarchies=hierarchies)
        of_age, of_cost = SemanticRiskSettings(scales={"age": scale}), SemanticRiskSettings(scales=ORDINAL)
        with pytest.raises(InvalidSettingError, match="Column 'age' has a scale of .* as nodes of its hierarchy"):
            definitions_of(project, anonymized=lattice, semantic_risk=of_age)
        definitions_of(project, anonymized=lattice, semantic_risk=of_cost)

    def test_withholding_needs_a_limit(self, project):
        with pytest.raises(InvalidSettingError, match="defines that risk"):
            definitions_of(project, semantic_risk=SemanticRiskSettings(withhold=True))


@pytest.mark.parametrize(
    ("value", "direction", "accepted"),
    [(0.5, "at_most", 0.5), (0.5, "below", 1 / 3), (1 / 3, "below", 1 / 4), (0.4, "below", 1 / 3), (1, "below", 1 / 2)],
)
def test_what_is_withheld_by_is_a_risk_that_the_limit_admits(value, direction, accepted):
    limit = Limit("maximum_semantic_risk", value, direction)
    assert SemanticRiskSettings(withhold=True).limit(Policy((Limit("smallest_class", 3), limit))) == accepted
    assert limit.holds_for(accepted)


def test_assessments_without_anonymized_records_are_refused(project):
    with pytest.raises(InvalidSettingError, match="assesses anonymized records, but makes none"):
        project.definitions(reidentification=ReidentificationSettings())
