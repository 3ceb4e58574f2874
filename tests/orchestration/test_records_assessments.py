"""Re-identification and semantic risk of anonymized records through the gate; other releases; records withheld."""

import copy

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.orchestration.anonymized_settings import (
    AnonymizationSettings,
    OtherReleaseSettings,
    ReidentificationSettings,
    SemanticRiskSettings,
)
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.tables.artifact_files import read_artifact, write_artifact
from privacy_assets.tables.errors import InvalidSettingError
from privacy_assets.tables.policy import Limit, Policy
from privacy_assets.tables.release_model import ReleaseModel
from tests.orchestration.project import CONTRACT, blocked_by, failure_of, key, people, refusal
from tests.orchestration.test_anonymized_release import (
    assert_refused,
    assert_released,
    definitions_of,
    released_table,
    run_release,
)

CANDIDATES = "reidentification_assessment"
SEMANTIC = "semantic_assessment"
PROBABILITY = Limit("max_reidentification_probability", 0.2)


def candidates_policy(*limits, known=()):
    return Policy((Limit("smallest_class", 5), *(limits or (PROBABILITY,))), known=known)


class TestReidentification:
    def test_records_with_enough_candidates_are_released_with_their_figures(self, project):
        result = project.run(definitions_of(project, policy=candidates_policy()))
        assert_released(project, result)
        manifest = released_table(project)[1]
        scores = manifest["figures"][CANDIDATES]
        assert 0 < scores["max_reidentification_probability"] <= 0.2
        assert manifest["settings"][CANDIDATES]["known"] == [["age", "plan", "joined"]]
        metadata = result.asset_materializations_for_node(f"people__{CANDIDATES}")[0].metadata
        assert metadata["privacy_assets/candidates"].value.startswith("![Mean re-identification probability")
        assert metadata["privacy_assets/share_of_singletons"].value == 0

    def test_a_limit_that_is_not_met_refuses_in_every_run(self, project):
        strict = definitions_of(project, policy=candidates_policy(Limit("mean_reidentification_probability", 0.001)))
        assert blocked_by(project.run(strict)) == {"mean_reidentification_probability_is_at_most_its_limit"}
        assert_refused(project, run_release(project, strict), "mean_reidentification_probability is")
        assert_released(project, project.run(definitions_of(project, policy=candidates_policy())))

    def test_what_an_attacker_knows_is_the_policys_to_say(self, project):
        # The cost is not generalized: who knows it, and the age, finds people.
        knows_costs = candidates_policy(known=(("age",), ("age", "cost")))
        refused = project.run(definitions_of(project, policy=knows_costs))
        assert blocked_by(refused) == {"max_reidentification_probability_is_at_most_its_limit"}
        assert project.everything_released() == []
        with pytest.raises(InvalidSettingError, match=r"an attacker knows \['income'\], which the release 'people'"):
            definitions_of(project, policy=candidates_policy(known=(("income",),)))

    def test_an_assessment_under_weaker_assumptions_is_refused(self, project):
        project.run(definitions_of(project, policy=candidates_policy(known=(("age",),))), "source", "anonymized")
        project.run(definitions_of(project, policy=candidates_policy(known=(("age",),))), CANDIDATES)
        today = definitions_of(project, policy=candidates_policy())
        assert_refused(project, run_release(project, today), "1 sets of columns that an attacker may know were not")
        project.run(today, CANDIDATES)
        assert_released(project, run_release(project, today))

    def test_an_assessment_of_another_table_or_an_edited_one_is_refused(self, project):
        definitions = definitions_of(project, policy=candidates_policy())
        assert_refused(project, run_release(project, definitions), f"no readable {CANDIDATES}")
        project.run(definitions, "source", "anonymized", CANDIDATES)
        project.run(definitions_of(project, policy=candidates_policy(), k=9), "anonymized")
        assert_refused(project, run_release(project, definitions), "it was made of another anonymized table")
        project.run(definitions, CANDIDATES)
        stored = read_artifact(project.stored(CANDIDATES))
        header = copy.deepcopy(dict(stored.header))
        header["scores"]["max_reidentification_probability"] = 0.0
        write_artifact(project.stored(CANDIDATES), type(stored)(stored.kind, header, stored.frames, stored.made_of))
        assert_refused(project, run_release(project, definitions), "it was changed")
        project.run(definitions, CANDIDATES)
        assert_released(project, run_release(project, definitions))

    def test_an_attacker_who_knows_little_does_not_protect(self, project):
        little = Policy((Limit("max_reidentification_probability", 0.5),), known=(("plan",),))
        with pytest.raises(InvalidSettingError, match="assumes that an attacker never knows all quasi-identifiers"):
            definitions_of(project, policy=little, anonymized=AnonymizationSettings(k=1))

    def test_an_assessment_with_other_hierarchies_is_refused(self, project):
        def by(prefixes):
            hierarchies = {"age": {"intervals": [5, 20]}, "plan": prefixes, "joined": {"dates": ["month", "year"]}}
            settings = AnonymizationSettings(method="lattice", hierarchies=hierarchies)
            return definitions_of(project, policy=candidates_policy(), anonymized=settings)

        project.run(by({"prefixes": [1]}), "source", "anonymized")
        project.run(by({"prefixes": [2, 1]}), CANDIDATES)
        reason = refusal(run_release(project, by({"prefixes": [1]})), "anonymized")
        assert "own_hierarchies is not what" in reason or f"no readable {CANDIDATES}" in reason

    def test_hierarchies_are_known_to_the_assessment(self, project):
        hierarchies = {"age": {"intervals": [5, 20]}, "plan": {"prefixes": [1]}, "joined": {"dates": ["month", "year"]}}
        settings = AnonymizationSettings(method="lattice", hierarchies=hierarchies)
        result = project.run(definitions_of(project, policy=candidates_policy(), anonymized=settings))
        assert_released(project, result)


NUMBERED = copy.deepcopy(CONTRACT)
NUMBERED["columns"]["number"] = {"type": "integer", "role": "other"}


def numbered() -> pd.DataFrame:
    return people(300, 1).assign(number=np.random.default_rng(7).permutation(300))


def released_as(project, name, contract=NUMBERED, source=numbered, **settings):
    return build_release_definitions(
        name,
        contract=contract,
        source=source,
        private_path=str(project.private),
        release_path=str(project.root / "releases"),
        **({"policy": candidates_policy(), "anonymized": AnonymizationSettings(k=5)} | settings),
    )


def run_all(project, *definitions, selection=None):
    merged = dg.Definitions.merge(*definitions)
    with project.instance() as instance:
        return dg.materialize(
            [*merged.assets, *merged.asset_checks],
            selection=selection,
            resources=dict(merged.resources),
            instance=instance,
            raise_on_error=False,
        )


def released(project, name):
    return list((project.root / "releases" / name).rglob("manifest.json"))


class TestOtherReleases:
    """Two releases of the same people, each of which passes alone, are refused together."""

    others = (OtherReleaseSettings("first", key="number", release="first"),)

    def second(self, project, **settings):
        # Cut another way, so that the classes of both cross.
        anonymized = AnonymizationSettings(k=5, criterion="range", normalize="range")
        return released_as(project, "people", **({"anonymized": anonymized} | settings))

    def test_each_passes_alone_and_both_are_refused_together_with_the_reason(self, project):
        first, alone = released_as(project, "first"), self.second(project)
        assert run_all(project, first, alone).success
        assert len(released(project, "first")) == len(released(project, "people")) == 1
        together = self.second(project, reidentification=ReidentificationSettings(other_releases=self.others))
        refused = run_all(project, first, together)
        assert blocked_by(refused) == {"max_reidentification_probability_is_at_most_its_limit"}
        assert len(released(project, "people")) == 1
        # Nor does the assessment of the release alone stand for both.
        run_all(project, first, alone, selection=[key(CANDIDATES)])
        with_both = dg.AssetSelection.assets(key("anonymized_release"))
        reason = refusal(run_all(project, first, together, selection=with_both), "anonymized")
        assert "0 other releases were taken into account, and not the 1 asked for" in reason

    def test_two_releases_of_the_quickstart_table_pass_alone_and_are_refused_together(self, project):
        pytest.importorskip("statsmodels", reason="needs the extra `examples`")
        from privacy_assets.examples.rand_hie import CONTRACT as RAND
        from privacy_assets.examples.rand_hie import load_rand_hie

        def half(*names):
            columns = {name: RAND["columns"][name] for name in ("person_id", *names)}
            number = {"record_number": {"type": "integer", "role": "other"}}

            def source() -> pd.DataFrame:
                table = load_rand_hie()[["person_id", *names]]
                return table.assign(record_number=np.random.default_rng(3).permutation(len(table)))

            return {"contract": {"columns": columns | number}, "source": source}

        place, household = (
            half("site", "coinsurance_percent", "age", "sex"),
            half("income", "family_size", "doctor_visits"),
        )
        first, alone = released_as(project, "first", **place), released_as(project, "people", **household)
        result = run_all(project, first, alone)
        assert result.success, failure_of(result)
        others = (OtherReleaseSettings("place", key="record_number", release="first"),)
        settings = household | {"reidentification": ReidentificationSettings(max_known=1, other_releases=others)}
        together = run_all(project, first, released_as(project, "people", **settings))
        certain = "share_in_homogeneous_classes_is_at_most_its_limit"
        assert blocked_by(together) - {certain} == {"max_reidentification_probability_is_at_most_its_limit"}
        checks = {each.check_name: each for each in together.get_asset_check_evaluations()}
        refused = checks["max_reidentification_probability_is_at_most_its_limit"]
        assert refused.description == "max_reidentification_probability is 1; expected at most 0.2 (off by 0.8)"
        assert len(released(project, "people")) == 1

    def test_a_neighbor_that_was_made_again_makes_the_assessment_stale(self, project):
        first = released_as(project, "first")
        loose = candidates_policy(Limit("share_of_singletons", 0.999), Limit("max_reidentification_probability", 0.5))
        settings = {"policy": loose, "reidentification": ReidentificationSettings(other_releases=self.others)}
        coarse = AnonymizationSettings(k=100, criterion="range")
        second = self.second(project, anonymized=coarse, **settings)
        all_but_it = dg.AssetSelection.all() - dg.AssetSelection.assets(key("anonymized_release"))
        run_all(project, first, second, selection=all_but_it)
        again = released_as(project, "first", anonymized=AnonymizationSettings(k=8))
        run_all(project, again, selection=[dg.AssetKey(["first", "anonymized"])])
        alone = dg.AssetSelection.assets(key("anonymized_release"))
        assert "stands on tables other than those recorded for ['other_first']" in refusal(
            run_all(project, first, second, selection=alone), "anonymized"
        )

    def test_another_place_or_mask_of_the_same_name_is_another_release(self, project):
        assert run_all(project, released_as(project, "first")).success
        directory = str(project.root / "releases" / "first" / "anonymized" / "latest")

        def nothing() -> pd.DataFrame:
            return numbered()[["number"]].assign(age="*")

        harmless = OtherReleaseSettings("other", "number", table=nothing, model=ReleaseModel.from_labels(["age"]))
        settings = {"reidentification": ReidentificationSettings(other_releases=(harmless,))}
        loose = self.second(project, **settings)
        run_all(project, loose, selection=dg.AssetSelection.all() - dg.AssetSelection.assets(key("anonymized_release")))
        telling = OtherReleaseSettings("other", "number", directory=directory)
        today = self.second(project, reidentification=ReidentificationSettings(other_releases=(telling,)))
        alone = dg.AssetSelection.assets(key("anonymized_release"))
        assert "others_digests is not what" in refusal(run_all(project, today, selection=alone), "anonymized")

    def test_a_directory_that_moved_on_makes_the_assessment_stale(self, project):
        coarse = released_as(project, "first", anonymized=AnonymizationSettings(k=140))
        assert run_all(project, coarse).success
        directory = str(project.root / "releases" / "first" / "anonymized" / "latest")
        published = (OtherReleaseSettings("published", key="number", directory=directory),)
        second = self.second(project, reidentification=ReidentificationSettings(other_releases=published))
        assert run_all(project, second).success
        assert run_all(project, released_as(project, "first")).success
        alone = dg.AssetSelection.assets(key("anonymized_release"))
        reason = refusal(run_all(project, second, selection=alone), "anonymized")
        assert "stands on tables other than those recorded for ['other_published']" in reason

    def test_the_default_knowledge_is_not_covered_by_less_when_there_are_other_releases(self, project):
        def with_columns(*names):
            contract = {"columns": {name: NUMBERED["columns"][name] for name in ("patient", "number", *names)}}
            return {"contract": contract, "source": lambda: numbered()[["patient", "number", *names]]}

        first = released_as(project, "first", **with_columns("joined", "plan"))
        settings = with_columns("age", "cost") | {
            "reidentification": ReidentificationSettings(other_releases=self.others)
        }
        less = released_as(project, "people", **settings | {"policy": candidates_policy(known=(("age",),))})
        run_all(
            project,
            first,
            less,
            selection=dg.AssetSelection.all() - dg.AssetSelection.assets(key("anonymized_release")),
        )
        today = released_as(project, "people", **settings)
        alone = dg.AssetSelection.assets(key("anonymized_release"))
        assert "known_to_the_policy is not what" in refusal(
            run_all(project, first, today, selection=alone), "anonymized"
        )

    def test_other_releases_need_a_limit_that_they_count_for(self, project):
        with pytest.raises(InvalidSettingError, match="no blocking limit on re-identification that they would count"):
            self.second(
                project,
                policy=Policy((Limit("smallest_class", 5),)),
                reidentification=ReidentificationSettings(other_releases=self.others),
            )

    def test_columns_that_only_the_neighbor_has_are_joined_by_the_key(self, project):
        # k = 5 on the age in one release, and on the day in the other; both together find people.
        def with_columns(*names):
            contract = {"columns": {name: NUMBERED["columns"][name] for name in ("patient", "number", *names)}}
            return {"contract": contract, "source": lambda: numbered()[["patient", "number", *names]]}

        first = released_as(project, "first", **with_columns("joined", "plan"))
        alone = released_as(project, "people", **with_columns("age", "cost"))
        assert run_all(project, first, alone).success
        settings = {"reidentification": ReidentificationSettings(other_releases=self.others)}
        together = released_as(project, "people", **with_columns("age", "cost"), **settings)
        refused = run_all(project, first, together)
        assert blocked_by(refused) == {"max_reidentification_probability_is_at_most_its_limit"}

    def test_a_published_release_and_a_table_from_elsewhere_count_as_well(self, project):
        assert run_all(project, released_as(project, "first")).success
        directory = str(project.root / "releases" / "first" / "anonymized" / "latest")
        published = (OtherReleaseSettings("published", key="number", directory=directory),)
        by_directory = self.second(project, reidentification=ReidentificationSettings(other_releases=published))
        assert blocked_by(run_all(project, by_directory)) == {"max_reidentification_probability_is_at_most_its_limit"}

        def banded() -> pd.DataFrame:
            ages = numbered()["age"] // 3 * 3
            bands = [f"[{age}, {age + 2}]" for age in ages]
            return pd.DataFrame({"age": bands, "number": numbered()["number"]})

        elsewhere = OtherReleaseSettings("bands", key="number", table=banded, model=ReleaseModel.from_labels(["age"]))
        by_table = self.second(project, reidentification=ReidentificationSettings(other_releases=(elsewhere,)))
        assert blocked_by(run_all(project, by_table)) == {"max_reidentification_probability_is_at_most_its_limit"}

    def test_a_neighbor_that_contradicts_or_misses_keys_is_an_error_with_counts(self, project):
        def shuffled() -> pd.DataFrame:
            return numbered().assign(age=lambda table: table["age"].to_numpy()[::-1])

        def some() -> pd.DataFrame:
            return numbered().iloc[:290]

        reasons = {shuffled: "contradicts the release that is assessed", some: "10 of 300 keys 'number'"}
        for source, reason in reasons.items():
            settings = {"reidentification": ReidentificationSettings(other_releases=self.others)}
            failed = run_all(project, released_as(project, "first", source=source), self.second(project, **settings))
            assert reason in failure_of(failed)
            assert released(project, "people") == []

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"key": "number"}, "needs one place"),
            ({"key": "number", "release": "first", "directory": "x"}, "needs one place"),
            ({"key": "number", "table": numbered}, "needs one place"),
            ({"key": "patient", "release": "first"}, "is linked by 'patient', which is not released"),
            ({"key": "number", "release": "people"}, "or is this release itself"),
        ],
    )
    def test_other_releases_that_cannot_be_are_refused_when_the_definitions_are_built(self, project, settings, message):
        with pytest.raises(InvalidSettingError, match=message):
            other = OtherReleaseSettings("other", **settings)
            self.second(project, reidentification=ReidentificationSettings(other_releases=(other,)))


RISK = "max_basic_semantic_risk_is_at_most_its_limit"


def semantic_policy(limit=0.2):
    return Policy((Limit("smallest_class", 5), Limit("max_basic_semantic_risk", limit)))


ORDINAL = {"cost": {"ordinal": [5, 10, 15, 20, 25]}}


class TestSemanticRisk:
    def test_a_table_that_passes_k_and_fails_the_semantic_limit_is_refused(self, project):
        definitions = definitions_of(
            project, policy=semantic_policy(), semantic_risk=SemanticRiskSettings(scales=ORDINAL)
        )
        assert blocked_by(project.run(definitions)) == {RISK}
        assert_refused(project, run_release(project, definitions), "max_basic_semantic_risk is")

    def test_with_the_records_at_risk_withheld_it_is_released_and_the_manifest_counts_them(self, project):
        policy = Policy((Limit("smallest_class", 3), Limit("max_basic_semantic_risk", 0.5)))
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
        assert manifest["figures"][SEMANTIC]["max_basic_semantic_risk"] <= 0.5
        page = (project.releases(side="anonymized")[0] / "report.html").read_text()
        assert "what each column lost is not known of the rest" in page
        assert "Information loss by column" not in page

    def test_withheld_records_of_an_earlier_anonymization_are_stale(self, project):
        settings = {
            "policy": Policy((Limit("smallest_class", 3), Limit("max_basic_semantic_risk", 0.5))),
            "semantic_risk": SemanticRiskSettings(withhold=True),
        }
        definitions = definitions_of(project, anonymized=AnonymizationSettings(k=25), **settings)
        project.run(definitions, "source", "anonymized", "suppressed", SEMANTIC)
        project.run(definitions_of(project, anonymized=AnonymizationSettings(k=30), **settings), "anonymized")
        assert_refused(project, run_release(project, definitions), "suppressed was made of an earlier version of")
        assert_released(project, project.run(definitions))

    def test_where_nobody_is_left_nothing_is_stored(self, project):
        policy = semantic_policy(0.001)
        failed = project.run(definitions_of(project, policy=policy, semantic_risk=SemanticRiskSettings(withhold=True)))
        assert "All 300 records would be withheld" in failure_of(failed)
        assert project.everything_released() == []

    def test_an_assessment_under_other_scales_is_refused(self, project):
        policy = semantic_policy(0.999)
        nominal = definitions_of(project, policy=policy)
        ordinal = definitions_of(project, policy=policy, semantic_risk=SemanticRiskSettings(scales=ORDINAL))
        project.run(nominal, "source", "anonymized", SEMANTIC)
        assert_refused(project, run_release(project, ordinal), "scale_digests is not what the policy and the contract")
        assert_released(project, run_release(project, nominal))

    def test_scales_come_from_the_contract_and_the_source_is_assessed_on_request(self, project):
        contract = copy.deepcopy(CONTRACT)
        contract["columns"]["cost"]["scale"] = {"ordinal": [15]}
        settings = {
            "contract": contract,
            "policy": semantic_policy(0.5),
            "anonymized": AnonymizationSettings(k=30),
            "semantic_risk": SemanticRiskSettings(of_source=True, advice=True),
        }
        result = project.run(definitions_of(project, **settings))
        assert_released(project, result)
        assert released_table(project)[1]["settings"][SEMANTIC]["scales"]["cost"] == "ordinal"
        of_source = result.asset_materializations_for_node(f"people__source_{SEMANTIC}")[0].metadata
        assert of_source["privacy_assets/max_basic_semantic_risk"].value == 1.0
        shown = result.asset_materializations_for_node(f"people__{SEMANTIC}")[0].metadata
        advice = shown["privacy_assets/what_forgetting_columns_would_do"].value.records
        assert [record.data["columns"] for record in advice][:5] == ["none", "age", "plan", "joined", "cost"]
        assert all(isinstance(record.data["max_basic_semantic_risk"], float) for record in advice)
        for picture in ("risk_distribution", "riskiest_concept"):
            assert shown[f"privacy_assets/{picture}"].value.startswith("![")

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"scales": {"cost": "cardinal"}}, "The scale is 'cardinal'"),
            ({"scales": {"patient": "nominal"}}, "a scale for 'patient', which is not released"),
            ({"three_way": (0.5, 0.2)}, "alpha < beta"),
            ({"risk_limit": 2.0}, "risk_limit"),
        ],
    )
    def test_settings_that_cannot_work_are_refused_when_the_definitions_are_built(self, project, settings, message):
        with pytest.raises(InvalidSettingError, match=message):
            definitions_of(project, semantic_risk=SemanticRiskSettings(**settings))

    def test_withholding_needs_a_limit(self, project):
        with pytest.raises(InvalidSettingError, match="says from which risk on"):
            definitions_of(project, semantic_risk=SemanticRiskSettings(withhold=True))


def test_assessments_without_anonymized_records_are_refused(project):
    with pytest.raises(InvalidSettingError, match="assesses anonymized records, but releases none"):
        project.definitions(reidentification=ReidentificationSettings())
