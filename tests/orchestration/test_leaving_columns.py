"""Columns that leave as they are: refused at the source and by the gate until the contract says why they may leave."""

import copy
import json

import dagster as dg
import pandas as pd
import pytest

from privacy_assets.disclosure.column_examination import examine_columns
from privacy_assets.disclosure.text_shapes import shape_of
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.synthetic import ExternalSynthetic, GivenSplit, Synthesis
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.disclosure.planted_columns import planted
from tests.extras import NEEDS_TREES
from tests.orchestration.project import CONTRACT, Project, failure_of, key, people, refusal, synthetic_people

CHECK = "no_identifying_column_leaves_undecided"
REASON = "The names are made up <b>here</b>; A. Lovelace, data protection officer, decided it"
POLICY = Policy((Limit("smallest_class", 3), Limit("privacy_risk_score", 0.999)))
NAMES = planted("first and last name", 300, seed=9)


def contract_of(reason=None, role="other", **columns):
    contract = copy.deepcopy(CONTRACT)
    contract["columns"]["other"] = {"type": "text", "role": role} | ({} if reason is None else {"leaves_as_is": reason})
    contract["columns"] |= columns
    return contract


def with_names():
    return people(300, 1).assign(other=NAMES)


def definitions_of(project, reason=None, role="other", **settings):
    given = {
        "contract": contract_of(reason, role),
        "source": with_names,
        "synthetic": None,
        "policy": POLICY,
        "anonymized": AnonymizationSettings(k=3),
    }
    return project.definitions(**(given | settings))


def evaluation_of(result, check=CHECK):
    return next(each for each in result.get_asset_check_evaluations() if each.check_name == check)


def manifests(project, side="anonymized"):
    return [json.loads((path / "manifest.json").read_text()) for path in project.releases(side=side)]


def shows_a_name(project):
    """Search the whole instance for names of the table."""
    names = [name.encode() for name in NAMES]
    files = [path.read_bytes() for path in project.home.rglob("*") if path.is_file()]
    return any(name in content for content in files for name in names)


def _anonymized(project):
    decided = definitions_of(project, REASON)
    assert project.run(decided, "source", "anonymized").success
    assert project.refused_because(decided, "anonymized") == ""


@pytest.mark.parametrize("role", ["other", "sensitive"])
def test_names_are_refused_at_the_source_before_anything_is_computed(project, role):
    result = project.run(definitions_of(project, role=role))
    assert not result.success
    check = evaluation_of(result)
    assert not check.passed
    assert check.asset_key == key("source")
    assert check.severity == dg.AssetCheckSeverity.ERROR
    assert (
        "columns that would be released unchanged look identifying (1): column 'other': looks like names of people"
        in (failure_of(result))
    )
    assert "leaves_as_is" in failure_of(result)
    first, *_ = (record.data for record in check.metadata["columns"].records)
    assert (first["column"], first["sides"], first["finding"]) == ("other", "anonymized", "identifying")
    assert (first["values"], first["distinct"]) == (300, NAMES.nunique())
    assert not result.get_asset_materialization_events()
    assert not project.stored("source").exists()
    assert project.everything_released() == []
    assert not shows_a_name(project)


def test_a_reason_in_the_contract_releases_them_and_stands_in_manifest_and_report(project):
    result = project.run(definitions_of(project, REASON))
    assert result.success, failure_of(result)
    (manifest,) = manifests(project)
    listed = {each["column"]: each for each in manifest["columns_leaving_as_is"]}
    assert list(listed) == ["cost", "other"]
    assert listed["other"]["leaves_as_is"] == REASON
    assert listed["other"]["finding"] == "identifying"
    assert listed["cost"]["leaves_as_is"] is None
    original = people(300, 1)["cost"]
    assert listed["cost"]["share_distinct"] == original.nunique() / 300
    verdict = next(each for each in manifest["verdicts"] if each["name"] == CHECK)
    assert verdict["passed"]
    assert REASON in verdict["reason"]
    page = (project.releases(side="anonymized")[0] / "report.html").read_text()
    annex = page[page.index("Annex B.") :]
    assert "The names are made up &lt;b&gt;here&lt;/b&gt;; A. Lovelace" in annex
    assert "<b>here" not in page
    assert "Columns that are released unchanged" in annex
    assert "own values, unchanged: " in page[: page.index("<nav")]
    assert evaluation_of(result).passed
    assert not shows_a_name(project)


def test_the_gate_asks_again_when_only_the_release_is_made(project):
    project.begin_as(_anonymized)
    undecided = definitions_of(project)
    reason = refusal(project.run(undecided, "anonymized_release", checks=False), "anonymized")
    assert "look identifying (1): column 'other': looks like names of people" in reason
    assert project.everything_released() == []
    assert not shows_a_name(project)
    result = project.run(definitions_of(project, REASON), "anonymized_release")
    assert result.success, failure_of(result)
    assert [manifest["refusals_before"] for manifest in manifests(project)] == [1]


def test_the_gate_counts_people_where_the_source_tells_them_apart(project):
    def visits():
        numbers = planted("medical record number", 60)
        table = people(60, 1).assign(other=numbers)
        return table.loc[table.index.repeat(5)].reset_index(drop=True)

    assert "'other': looks like identification codes" in failure_of(project.run(definitions_of(project, source=visits)))
    decided = definitions_of(project, REASON, source=visits)
    assert project.run(decided, "source", "anonymized").success
    # In the records alone every number stands five times.
    reason = project.refused_because(definitions_of(project, source=visits), "anonymized")
    assert "'other': looks like identification codes" in reason
    # The reason excuses how the numbers look, and not that they link the rows of a person.
    reason = project.refused_because(decided, "anonymized")
    assert reason.startswith("released values link the rows of a person")
    assert "looks like" not in reason


def test_what_the_source_says_is_needed_at_the_gate(project):
    decided = definitions_of(project, REASON)
    project.begin_as(_anonymized)
    with project.kept("source"):
        table = read_artifact(project.stored("source")).frames["table"]
        write_artifact(project.stored("source"), Artifact.of_table(table.assign(other="x")))
        reason = project.refused_because(decided, "anonymized")
        assert "the columns of ['source'] that would be released unchanged could not be examined" in reason
    assert project.refused_because(decided, "anonymized") == ""


@NEEDS_TREES
def test_synthetic_records_that_repeat_names_are_refused_whatever_their_role(project):
    for role in ("other", "quasi_identifier"):
        settings = {"synthetic": Synthesis("cart"), "anonymized": None}
        result = project.run(definitions_of(project, role=role, **settings))
        assert "'other': looks like names of people" in failure_of(result)
        assert evaluation_of(result).metadata["columns"].records[0].data["sides"] == "synthetic"
    assert project.everything_released() == []


def test_both_sides_of_a_release_are_looked_at(project):
    # Names that are to leave are not to be redrawn either.
    copula = Synthesis("gaussian_copula", settings={"min_atom": 1})
    settings = {"synthetic": copula, "anonymized": AnonymizationSettings(k=3)}
    release = project.run(definitions_of(project, **settings))
    first = evaluation_of(release).metadata["columns"].records[0].data
    assert (first["column"], first["sides"]) == ("other", "synthetic, anonymized")
    result = project.run(definitions_of(project, REASON, **settings))
    assert result.success, failure_of(result)
    for side in ("synthetic", "anonymized"):
        (manifest,) = manifests(project, side)
        listed = {each["column"]: each["leaves_as_is"] for each in manifest["columns_leaving_as_is"]}
        assert listed["other"] == REASON
        assert ("plan" in listed) == (side == "synthetic")


def test_records_that_are_brought_in_with_names_are_refused_before_they_are_assessed(project):
    source = lambda: people(300, 1).assign(other="x")  # noqa: E731
    brought = ExternalSynthetic(lambda: synthetic_people(180, 3).assign(other=NAMES[:180]), control_was_withheld=True)
    result = project.run(definitions_of(project, source=source, synthetic=brought, anonymized=None))
    failed = [each for each in result.get_asset_check_evaluations() if not each.passed]
    assert [(each.check_name, each.asset_key) for each in failed] == [(CHECK, key("synthetic"))]
    assert "In synthetic columns that would be released unchanged look identifying (1)" in failure_of(result)
    assert not project.stored("preprocessed").exists()


@NEEDS_TREES
def test_originals_that_are_given_are_looked_at_as_the_source_is(project):
    split = GivenSplit(lambda: with_names()[:240], lambda: with_names()[240:].assign(patient=range(60)))
    given = {"source": None, "split": split, "synthetic": Synthesis("cart"), "anonymized": None}
    result = project.run(definitions_of(project, **given))
    assert evaluation_of(result).asset_key == key("original")
    assert "In original columns that would be released unchanged look identifying (1)" in failure_of(result)
    assert not project.stored("original").exists()


def test_a_measure_that_is_nearly_unique_is_released_with_a_warning_until_it_is_decided(project):
    table = people(300, 1).assign(other="x", cost=lambda frame: frame["cost"] + frame.index / 1_000)
    assert project.run(definitions_of(project, source=lambda: table)).success
    decided = contract_of()
    decided["columns"]["cost"]["leaves_as_is"] = "Costs are known to the clinic alone, says the ethics board"
    assert project.run(definitions_of(project, source=lambda: table, contract=decided), "anonymized_release").success
    name = "no_nearly_unique_measure_leaves_undecided"
    warned, passed = (
        next(each for each in manifest["verdicts"] if each["name"] == name) for manifest in manifests(project)
    )
    assert (warned["passed"], warned["severity"]) == (False, "warn")
    assert "column 'cost': 100.0% of the people have a unique value" in warned["reason"]
    assert passed["passed"]


class TestReasonsThatCannotStand:
    def test_a_column_that_is_gone_is_said_to_be_and_what_to_do_with_its_reason(self, project):
        result = project.run(definitions_of(project, REASON, source=lambda: people(300, 1)))
        assert "column 'other' is missing" in failure_of(result)
        assert "remove ['other'], with its `leaves_as_is`, from the contract if it no longer exists" in failure_of(
            result
        )

    @pytest.mark.parametrize(
        ("reason", "said"),
        [
            ("", "column 'other' has a `leaves_as_is` without a reason; expected why it may be released"),
            ("   ", "column 'other' has a `leaves_as_is` without a reason"),
            ("board decided", "column 'other' has a `leaves_as_is` without a reason"),
            ("---- ---- ----", "column 'other' has a `leaves_as_is` without a reason"),
            ("x y z", "column 'other' has a `leaves_as_is` without a reason"),
            ("??? ??? ???", "column 'other' has a `leaves_as_is` without a reason"),
            ("n/a, see n/a", "column 'other' has a `leaves_as_is` without a reason"),
            ("asdf asdf asdf", "column 'other' has a `leaves_as_is` without a reason"),
            (True, "column 'other' has a `leaves_as_is` that is not text"),
            (["a", "b", "c"], "column 'other' has a `leaves_as_is` that is not text"),
            ("the board " * 60, "column 'other' has a `leaves_as_is` of 600 characters; expected at most 500"),
            ("decided by\x1b[31m us", "column 'other' has a `leaves_as_is` with characters that cannot be printed"),
        ],
    )
    def test_what_is_no_reason_is_refused_when_the_definitions_are_built(self, project, reason, said):
        with pytest.raises(InvalidSettingError) as raised:
            definitions_of(project, reason)
        assert said in str(raised.value)

    def test_a_column_that_never_leaves_needs_no_reason(self, project):
        contract = contract_of()
        contract["columns"]["patient"]["leaves_as_is"] = REASON
        with pytest.raises(InvalidSettingError, match="column 'patient' has a `leaves_as_is`, but is never released"):
            definitions_of(project, contract=contract)

    def test_a_column_that_is_reduced_on_every_side_needs_none_either(self, project):
        with pytest.raises(InvalidSettingError, match=r"has reasons to release \['other'\] unchanged, but no side"):
            definitions_of(project, REASON, "quasi_identifier")
        generalized = {"generalize_synthetic": AnonymizationSettings(k=3), "synthetic": Synthesis()}
        with pytest.raises(InvalidSettingError, match=r"has reasons to release \['other'\] unchanged, but no side"):
            definitions_of(project, REASON, "quasi_identifier", **generalized, anonymized=None)
        definitions_of(project, REASON, "quasi_identifier", synthetic=Synthesis(), anonymized=None)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("released"))
    assert project.run(definitions_of(project, REASON)).success
    (written,) = project.releases(side="anonymized")
    return written


class TestWhatIsRecorded:
    @staticmethod
    def problems_of(written, change):
        path = written / "manifest.json"
        manifest = path.read_text()
        changed = json.loads(manifest)
        change(changed)
        if "digest" in changed:
            changed["digest"] = digest_of(changed)
        try:
            path.write_text(json.dumps(changed))
            return " ".join(verify_release(written, max_bytes=None).problems)
        finally:
            path.write_text(manifest)

    @pytest.mark.parametrize(
        ("name", "value", "problem"),
        [
            ("share_alone", 0.0, "the record of the column 'other' differs from the table"),
            ("n_distinct", 3, "the record of the column 'other' differs from the table"),
            ("finding", "ordinary", "the record of the column 'other' differs from the table"),
            ("added", 1, "the record of the column 'other' differs from the table"),
            ("reasons", [], "the record of the column 'other' differs from the table"),
            (
                "leaves_as_is",
                None,
                "column 'other' looks identifying, but no reason for releasing it is recorded",
            ),
            ("leaves_as_is", "", "column 'other' looks identifying, but no reason for releasing it is recorded"),
            ("leaves_as_is", "- - -", "column 'other' looks identifying, but no reason for releasing it is recorded"),
            ("column", "another", "does not list the columns that are released unchanged"),
        ],
    )
    def test_what_is_recorded_of_a_column_is_compared_with_the_table(self, released, name, value, problem):
        assert verify_release(released, max_bytes=None).verified
        said = self.problems_of(released, lambda manifest: manifest["columns_leaving_as_is"][1].update({name: value}))
        assert problem in said

    def test_a_list_that_lacks_a_column_or_is_missing_is_no_list(self, released):
        said = "does not list the columns that are released unchanged"
        assert said in self.problems_of(released, lambda manifest: manifest["columns_leaving_as_is"].pop())
        lacking = self.problems_of(released, lambda manifest: manifest.pop("columns_leaving_as_is"))
        assert "it lacks ['columns_leaving_as_is']" in lacking
        assert "damaged" in self.problems_of(released, lambda manifest: manifest.update(columns_leaving_as_is=[5]))

    def test_what_another_version_made_of_the_counts_is_not_compared_but_the_counts_are(self, released):
        def by_another(manifest, **changes):
            manifest["versions"]["privacy-assets"] = "0.0.1"
            manifest["columns_leaving_as_is"][1].update(changes)

        assert self.problems_of(released, lambda manifest: by_another(manifest, reasons=["other words"])) == ""
        assert "differs from the table" in self.problems_of(
            released, lambda manifest: by_another(manifest, share_alone=0.5)
        )


def test_every_release_has_the_check_where_its_records_come_in(project):
    def checked(**settings):
        graph = definitions_of(project, **settings).resolve_asset_graph()
        return {each.asset_key.path[-1] for each in graph.asset_check_keys if each.name == CHECK}

    assert checked() == {"source"}
    assert checked(synthetic=Synthesis(), anonymized=None) == {"source"}
    brought = ExternalSynthetic(lambda: pd.DataFrame(), control_was_withheld=True)
    assert checked(synthetic=brought, anonymized=None) == {"source", "synthetic"}
    split = GivenSplit(lambda: pd.DataFrame(), lambda: pd.DataFrame())
    assert checked(source=None, split=split, synthetic=Synthesis(), anonymized=None) == {"original"}


def test_verdicts_on_texts_are_forgotten_when_a_step_ends(project):
    examine_columns(with_names(), {"other": "other"})
    assert shape_of.cache_info().currsize > 100
    result = project.run(definitions_of(project, REASON), "source")
    assert result.success, failure_of(result)
    assert shape_of.cache_info().currsize == 0
