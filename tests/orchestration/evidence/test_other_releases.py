"""Other releases of the same people through the gate: what an attacker who holds both can tell."""

import copy
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.masks import GaussianNoise, ReleaseModel
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.evidence.published import published_besides
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.anonymized import (
    AnonymizationSettings,
    OtherReleaseSettings,
    ReidentificationSettings,
)
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.storage.artifact_files import read_artifact
from tests.orchestration.project import CONTRACT, blocked_by, failure_of, key, people, refusal
from tests.orchestration.test_records_assessments import CANDIDATES, candidates_policy

NUMBERED = copy.deepcopy(CONTRACT)
DECIDED = "Random numbers link the releases of a study, as its board decided"
NUMBERED["columns"]["number"] = {"type": "integer", "role": "other", "leaves_as_is": DECIDED}


def numbered() -> pd.DataFrame:
    return people(300, 1).assign(number=np.random.default_rng(7).permutation(300))


def released_as(project, name, contract=NUMBERED, source=numbered, **settings):
    return build_release_definitions(
        name,
        contract=contract,
        source=source,
        private_path=str(project.private),
        **(
            {
                "policy": candidates_policy(),
                "anonymized": AnonymizationSettings(k=5),
                "release_path": str(project.root / "releases"),
            }
            | settings
        ),
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


def fingerprints(project, name):
    return [json.loads(path.read_text())["fingerprint"] for path in released(project, name)]


def with_columns(*names, n_more=0):
    """Some columns of the numbered people, and a contract of these; ``n_more`` records of somebody else are added."""
    contract = {"columns": {name: NUMBERED["columns"][name] for name in ("patient", "number", *names)}}
    table = numbered()[["patient", "number", *names]]
    more = table[:n_more].assign(number=1000, patient="another")
    return {"contract": contract, "source": lambda: pd.concat([table, more], ignore_index=True) if n_more else table}


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
        assert "0 other releases were considered, expected the 1 configured ones" in reason

    def test_two_releases_of_the_quickstart_table_pass_alone_and_are_refused_together(self, project):
        pytest.importorskip("statsmodels", reason="needs the extra `examples`")
        from privacy_assets.examples.rand_hie import CONTRACT as RAND
        from privacy_assets.examples.rand_hie import load_rand_hie

        def half(*names):
            columns = {name: RAND["columns"][name] for name in ("person_id", *names)}
            number = {"record_number": {"type": "integer", "role": "other", "leaves_as_is": DECIDED}}

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
        assert refused.description == "max_reidentification_probability is 1; expected at most 0.2"
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
        assert "based on tables other than those recorded for ['other_first', 'other_first_published_" in refusal(
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
        assert "others_digests differs from what" in refusal(run_all(project, today, selection=alone), "anonymized")

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
        assert "based on tables other than those recorded for ['other_published']" in reason

    def test_the_default_knowledge_is_not_covered_by_less_when_there_are_other_releases(self, project):
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
        assert "known_to_the_policy differs from what" in refusal(
            run_all(project, first, today, selection=alone), "anonymized"
        )

    def test_other_releases_need_a_limit_that_they_count_for(self, project):
        with pytest.raises(InvalidSettingError, match="no blocking limit on re-identification that considers them"):
            self.second(
                project,
                policy=Policy((Limit("smallest_class", 5),)),
                reidentification=ReidentificationSettings(other_releases=self.others),
            )

    def test_columns_that_only_the_neighbor_has_are_joined_by_the_key(self, project):
        # k = 5 on the age in one release, and on the day in the other; both together find people.
        first = released_as(project, "first", **with_columns("joined", "plan"))
        alone = released_as(project, "people", **with_columns("age", "cost"))
        assert run_all(project, first, alone).success
        settings = {"reidentification": ReidentificationSettings(other_releases=self.others)}
        together = released_as(project, "people", **with_columns("age", "cost"), **settings)
        refused = run_all(project, first, together)
        assert blocked_by(refused) == {"max_reidentification_probability_is_at_most_its_limit"}

    def test_a_neighbor_that_is_released_as_centers_is_refused_and_not_overlooked(self, project):
        """Its model says of the columns that nothing is known, while its table shows the centers."""

        centers = {
            "policy": Policy((Limit("smallest_class", 5),)),
            "anonymized": AnonymizationSettings(k=5, output="centroid"),
        }
        first = released_as(project, "first", **with_columns("age", "joined"), **centers)
        settings = {"reidentification": ReidentificationSettings(other_releases=self.others)}
        failed = run_all(project, first, released_as(project, "people", **with_columns("plan", "cost"), **settings))
        assert "The release 'first' shows different values in ['age', 'joined']" in failure_of(failed)
        assert released(project, "people") == []

    def test_a_neighbor_whose_source_was_made_again_since_is_none_to_be_combined(self, project):
        """Its source of today was joined with its records of yesterday: nobody asked whether they belong together."""

        loose = candidates_policy(Limit("share_of_singletons", 0.999), Limit("max_reidentification_probability", 0.999))
        settings = {"policy": loose, "reidentification": ReidentificationSettings(other_releases=self.others)}
        coarse = {"anonymized": AnonymizationSettings(k=100)}
        first = released_as(project, "first", **with_columns("age", "joined"), **coarse)
        second = released_as(project, "people", **with_columns("plan", "cost"), **settings, **coarse)
        result = run_all(project, first, second)
        assert result.success, failure_of(result)
        again = released_as(project, "first", **with_columns("age", "joined", n_more=1), **coarse)
        made = dg.AssetSelection.assets(
            dg.AssetKey(["first", "source"]), *(key(stage) for stage in (CANDIDATES, "anonymized_release"))
        )
        reason = refusal(run_all(project, again, second, selection=made), "anonymized")
        assert "other_first was made from an earlier version of ['other_first_source']" in reason

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

        reasons = {shuffled: "contradicts the assessed release", some: "10 of 300 keys 'number'"}
        for source, reason in reasons.items():
            settings = {"reidentification": ReidentificationSettings(other_releases=self.others)}
            failed = run_all(project, released_as(project, "first", source=source), self.second(project, **settings))
            assert reason in failure_of(failed)
            assert released(project, "people") == []

    def test_keys_that_do_not_match_are_refused_with_columns_and_counts_and_no_value(self, project):
        contract = copy.deepcopy(NUMBERED)
        contract["columns"]["number"] |= {"type": "text", "nullable": True}

        def keyed(keys):
            return lambda: people(300, 1).assign(
                number=[None if each is None else f"pseudonym {each}" for each in keys]
            )

        whole, doubled, lacking = range(300), [0, 0, *range(1, 299)], [*range(298), None, None]
        cases = [
            (doubled, whole, "'number' of the release 'first' has 0 missing and 1 repeated."),
            (lacking, whole, "'number' of the release 'first' has 2 missing and 0 repeated."),
            (whole, doubled, "'number' of the release has 0 missing and 1 repeated."),
            (whole, range(3, 303), "3 of 300 keys 'number' of the release are not in the release 'first'."),
        ]
        settings = {"reidentification": ReidentificationSettings(other_releases=self.others)}
        for theirs, ours, reason in cases:
            first = released_as(project, "first", contract, keyed(theirs))
            second = self.second(project, contract=contract, source=keyed(ours), **settings)
            made = [dg.AssetKey(["first", stage]) for stage in ("source", "anonymized")]
            failed = run_all(project, first, second, selection=[*made, *map(key, ("source", "anonymized", CANDIDATES))])
            found = failure_of(failed)
            assert reason in found, found
            assert "Nothing was assessed" in found
            assert not any(
                "pseudonym" in str(event.message) + str(event.event_specific_data) for event in failed.all_events
            )

    def test_what_a_neighbor_published_counts_though_it_was_made_again(self, project):
        """The attacker holds the table that left, not the asset of today."""
        settings = {"reidentification": ReidentificationSettings(other_releases=self.others)}
        second = self.second(project, **settings)
        assert run_all(project, released_as(project, "first")).success
        harmless = released_as(project, "first", anonymized=AnonymizationSettings(k=140, criterion="range"))
        run_all(project, harmless, selection=[dg.AssetKey(["first", "anonymized"])])
        own = [key(stage) for stage in ("source", "anonymized", CANDIDATES, "anonymized_release")]
        selection = dg.AssetSelection.assets(*own)
        blocked = run_all(project, harmless, second, selection=selection)
        assert blocked_by(blocked) == {"max_reidentification_probability_is_at_most_its_limit"}
        names = [
            each["name"] for each in read_artifact(project.stored(CANDIDATES)).header["settings"]["other_releases"]
        ]
        published = fingerprints(project, "first")
        assert names == ["first", f"first (published as {published[0][:12]})"]
        alone = dg.AssetSelection.assets(key("anonymized_release"))
        assert "max_reidentification_probability is" in refusal(
            run_all(project, harmless, second, selection=alone), "anonymized"
        )
        # Had it never been published, the asset of today would be all that anybody may get.
        (project.root / "releases").rename(project.root / "elsewhere")
        gone = run_all(project, harmless, second, selection=selection)
        assert "1 cannot be read where they were written" in failure_of(gone)
        assert "other_first_published" in refusal(run_all(project, harmless, second, selection=alone), "anonymized")
        # A later publication takes no earlier one back. Meanwhile the refusals wrote a register.
        shutil.rmtree(project.root / "releases")
        (project.root / "elsewhere").rename(project.root / "releases")
        assert run_all(project, harmless).success
        blocked = run_all(project, harmless, second, selection=selection)
        assert blocked_by(blocked) == {"max_reidentification_probability_is_at_most_its_limit"}
        # It counts no more once somebody says that nobody has it; and that stands in the manifest.
        said = {published[0]: "Deleted by the only recipient; A. Lovelace"}
        others = (OtherReleaseSettings("first", key="number", release="first", withdrawn=said),)
        honest = self.second(project, reidentification=ReidentificationSettings(other_releases=others))
        assert run_all(project, harmless, honest, selection=selection).success
        manifest = json.loads(released(project, "people")[0].read_text())
        assert manifest["settings"][CANDIDATES]["withdrawn"] == {"first": said}

    def test_what_was_published_counts_wherever_it_was_written(self, project):
        """Definitions that write elsewhere since do not hide what left before, nor does a clock that ran ahead."""
        settings = {"reidentification": ReidentificationSettings(other_releases=self.others)}
        assert run_all(project, released_as(project, "first")).success
        written = released(project, "first")[0].parent
        ahead = written.with_name(written.name.replace("2026", "2999"))
        coarse = AnonymizationSettings(k=140, criterion="range")
        elsewhere = {"release_path": str(project.root / "moved")}
        harmless = released_as(project, "first", anonymized=coarse, **elsewhere)
        assert run_all(project, harmless).success
        moved = self.second(project, **settings, **elsewhere)
        own = [key(stage) for stage in ("source", "anonymized", CANDIDATES, "anonymized_release")]
        selection = dg.AssetSelection.assets(*own)
        assert blocked_by(run_all(project, harmless, moved, selection=selection))
        # Renamed within today's directory it is found by its content, and an altered copy is not taken for it.
        (project.root / "moved" / "first" / "anonymized" / ahead.name).parent.mkdir(parents=True, exist_ok=True)
        written.rename(project.root / "moved" / "first" / "anonymized" / ahead.name)
        assert blocked_by(run_all(project, harmless, moved, selection=selection))
        table = project.root / "moved" / "first" / "anonymized" / ahead.name / "anonymized.parquet"
        pd.read_parquet(table).head(5).to_parquet(table)
        altered = run_all(project, harmless, moved, selection=selection)
        assert "does not verify" in failure_of(altered)
        assert released(project, "people") == []

    def test_neighbors_that_are_made_and_published_again_in_one_run_are_combined(self, project):
        loose = candidates_policy(Limit("max_reidentification_probability", 0.5))
        settings = {"policy": loose, "reidentification": ReidentificationSettings(other_releases=self.others)}
        second = self.second(project, anonymized=AnonymizationSettings(k=100, criterion="range"), **settings)
        for k, n_releases in ((60, 1), (70, 2)):
            result = run_all(project, released_as(project, "first", anonymized=AnonymizationSettings(k=k)), second)
            assert result.success, failure_of(result)
            assert len(released(project, "people")) == n_releases

    def test_records_that_a_neighbor_withheld_are_none_that_its_release_lacks(self, project):
        withholding = {
            "policy": Policy((Limit("smallest_class", 3), Limit("maximum_semantic_risk", 0.5))),
            "anonymized": AnonymizationSettings(k=25),
            "semantic_risk": SemanticRiskSettings(scales={"cost": {"ordinal": [5, 10, 15, 20, 25]}}, withhold=True),
        }
        first = released_as(project, "first", **withholding)
        assert run_all(project, first).success
        written = sorted((project.root / "releases" / "first" / "anonymized").glob("2*"))[-1]
        assert len(pd.read_parquet(written / "anonymized.parquet")) < 300
        loose = candidates_policy(Limit("share_of_singletons", 0.999))
        settings = {"policy": loose, "reidentification": ReidentificationSettings(other_releases=self.others)}
        second = self.second(project, anonymized=AnonymizationSettings(k=100, criterion="range"), **settings)
        result = run_all(project, first, second)
        assert result.success, failure_of(result)
        held = read_artifact(project.stored(CANDIDATES)).header["settings"]["other_releases"]
        assert [each["name"] for each in held] == ["first"]

    def test_the_policy_may_name_columns_that_only_the_neighbor_has(self, project):
        first = released_as(project, "first", **with_columns("joined", "plan"))
        settings = with_columns("age", "cost") | {
            "reidentification": ReidentificationSettings(other_releases=self.others)
        }

        def knowing(*names):
            policy = candidates_policy(known=(("age",), names))
            return run_all(project, first, released_as(project, "people", **settings, policy=policy))

        assert blocked_by(knowing("age", "joined")) == {"max_reidentification_probability_is_at_most_its_limit"}
        assert read_artifact(project.stored(CANDIDATES)).header["settings"]["known"] == [["age"], ["age", "joined"]]
        assert knowing("plan").success
        assert "does not describe: ['income']" in failure_of(knowing("income"))
        alone = {**settings, "reidentification": None, "policy": candidates_policy(known=(("age",), ("joined",)))}
        with pytest.raises(InvalidSettingError, match=r"an attacker knows \['joined'\], which the release 'people'"):
            released_as(project, "people", **alone)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"key": "number"}, "needs one place"),
            ({"key": "number", "release": "first", "directory": "x"}, "needs one place"),
            ({"key": "number", "table": numbered}, "needs one place"),
            (
                {"key": "number", "table": numbered, "model": ReleaseModel({"age": GaussianNoise("age", sd=1)})},
                r"masks of \['age'\] make originals more or less probable",
            ),
            ({"key": "patient", "release": "first"}, "is linked by 'patient', which is not released"),
            ({"key": "number", "release": "people"}, "or is this release itself"),
            (
                {"key": "number", "release": "first", "quasi_identifiers": []},
                "'other' must be a non-empty list of distinct column names",
            ),
            (
                {"key": "number", "release": "first", "quasi_identifiers": "age"},
                "'other' must be a non-empty list of distinct column names",
            ),
        ],
    )
    def test_other_releases_that_cannot_be_are_refused_when_the_definitions_are_built(self, project, settings, message):
        with pytest.raises(InvalidSettingError, match=message):
            other = OtherReleaseSettings("other", **settings)
            self.second(project, reidentification=ReidentificationSettings(other_releases=(other,)))

    @pytest.mark.parametrize("second", ["first", "first_source", "first_published"])
    def test_other_releases_need_names_of_their_own(self, second):
        both = [
            OtherReleaseSettings("first", "number", release="a"),
            OtherReleaseSettings(second, "number", release="b"),
        ]
        with pytest.raises(InvalidSettingError, match="a different name for each"):
            ReidentificationSettings(other_releases=both)

    def test_what_was_published_counts_whatever_is_reported_by_hand_since(self, tmp_path):
        """The last event alone was looked at, and one without a version of its own hid that the table was gone."""
        stages = [dg.AssetKey(["first", stage]) for stage in ("anonymized", "anonymized_release")]

        def of_run(partitions=None):
            @dg.multi_asset(specs=[dg.AssetSpec(stage) for stage in stages], partitions_def=partitions)
            def publishing():
                for stage in stages:
                    yield dg.MaterializeResult(asset_key=stage, data_version=dg.DataVersion("content"))

            return publishing

        current = anonymize(pd.DataFrame({"number": range(4), "age": [1, 1, 2, 2]}), quasi_identifiers=["age"], k=2)
        store = SimpleNamespace(directory=lambda *_: tmp_path)
        partitions = dg.StaticPartitionsDefinition(["north"])
        with dg.DagsterInstance.ephemeral() as instance:
            private = PrivateParquetIOManager(str(tmp_path / "private"))

            def published(partition_key):
                return published_besides(
                    self.others[0], current, Storage(None, instance, private, store, partition_key)
                )

            dg.materialize([of_run()], instance=instance)
            for _ in range(60):
                instance.report_runless_asset_event(dg.AssetMaterialization(stages[1]))
            with pytest.raises(InvalidTableError, match="1 cannot be read where they were written"):
                published(None)
            with pytest.raises(InvalidTableError, match="'first/anonymized' has no partitions, but the release that"):
                published("north")
            dg.materialize([of_run(partitions)], instance=instance, partition_key="north")
            with pytest.raises(InvalidTableError, match="1 cannot be read where they were written"):
                published("north")
            with pytest.raises(InvalidTableError, match="'first/anonymized' has partitions, but the release .* has no"):
                published(None)

    def test_what_lies_beside_published_tables_is_none_and_a_damaged_one_is_an_error(self, tmp_path):
        table = pd.DataFrame({"number": range(4), "age": [1, 1, 2, 2]})
        current = anonymize(table, quasi_identifiers=["age"], k=2)
        store = SimpleNamespace(directory=lambda *_: tmp_path)
        with dg.DagsterInstance.ephemeral() as instance:
            private = PrivateParquetIOManager(str(tmp_path / "private"))
            arguments = (self.others[0], current, Storage(None, instance, private, store, None))
            assert published_besides(*arguments) == ()
            (tmp_path / "2099-notes").mkdir()
            assert published_besides(*arguments) == ()
            written = tmp_path / "20260101T000000.000000Z-0123456789ab"
            written.mkdir()
            for manifest in (None, "{", "{}", "[]"):
                if manifest is not None:
                    (written / "manifest.json").write_text(manifest)
                with pytest.raises(InvalidTableError, match="have a missing or damaged manifest.json"):
                    published_besides(*arguments)
            shutil.rmtree(written)
            for make in (os.mkfifo, Path.touch, lambda path: path.symlink_to("nothing")):
                make(written)
                with pytest.raises(InvalidTableError, match="have a missing or damaged manifest.json"):
                    published_besides(*arguments)
                written.unlink()


LINK = {
    "type": "text",
    "role": "other",
    "leaves_as_is": DECIDED,
    "links_rows": "Needed to follow patients over time; A. Lovelace",
}
OF_PATIENTS = {
    "patient": {"type": "integer", "role": "direct_identifier", "person": True},
    "alias": LINK,
    "age": {"type": "integer", "role": "quasi_identifier"},
    "day": {"type": "integer", "role": "quasi_identifier"},
}


def visits():
    random = np.random.default_rng(0)
    person = np.repeat(np.arange(80), 4)
    alias = np.char.add("a", random.permutation(800)[person].astype(str))
    return pd.DataFrame({"patient": person, "alias": alias}).assign(
        age=random.integers(20, 80, 80)[person], day=random.integers(0, 200, len(person))
    )


def visits_with(name, source=visits):
    columns = ["patient", "alias", name]
    contract = {"columns": {column: OF_PATIENTS[column] for column in columns}}
    policy = Policy((Limit("max_reidentification_probability", 0.1),), known_rows=1)
    return {
        "contract": contract,
        "source": lambda: source()[columns],
        "anonymized": AnonymizationSettings(k=20),
        "policy": policy,
    }


OF_PEOPLE = ReidentificationSettings(other_releases=(OtherReleaseSettings("ages", key="alias", release="ages"),))


def test_releases_that_a_key_of_people_joins_pass_alone_and_are_refused_together(project):
    ages, days = (
        released_as(project, "ages", **visits_with("age")),
        released_as(project, "people", **visits_with("day")),
    )
    assert run_all(project, ages, days).success
    both = released_as(project, "people", **visits_with("day"), reidentification=OF_PEOPLE)
    refused = run_all(project, ages, both)
    assert blocked_by(refused) == {"max_reidentification_probability_is_at_most_its_limit"}
    assert len(released(project, "people")) == 1


def test_sources_whose_rows_cannot_be_matched_by_place_are_refused(project):
    ages = released_as(project, "ages", **visits_with("age", lambda: visits().iloc[::-1]))
    both = released_as(project, "people", **visits_with("day"), reidentification=OF_PEOPLE)
    assert "do not have the same keys row by row" in failure_of(run_all(project, ages, both))


def test_a_table_of_others_that_a_key_of_people_joins_is_refused(project):
    other = OtherReleaseSettings("ages", key="alias", directory="releases/ages/anonymized/latest")
    with pytest.raises(InvalidSettingError, match="of people and not of rows"):
        released_as(
            project, "people", **visits_with("day"), reidentification=ReidentificationSettings(other_releases=(other,))
        )
