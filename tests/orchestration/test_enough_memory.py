"""Whether later stages have enough memory is said when the source is admitted, before any of them runs."""

import dagster as dg
import pandas as pd
import pytest

from privacy_assets.contract.views import related_views
from privacy_assets.orchestration.memory_check import check_memory
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.asked import Release
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import Split, Synthesis
from privacy_assets.pipeline.memory_of_stages import BYTES_PER_CELL, cells_of_views
from privacy_assets.release.policy import Limit, Policy
from tests.orchestration.project import CONTRACT, Project, people
from tests.orchestration.related_project import RelatedProject
from tests.related import clinic, with_lines

CHECK = "enough_memory"
OF_ORIGINALS = AnonymizationSettings(k=3, of="original")
COPULA = Synthesis("gaussian_copula")
POLICY = Policy(
    (Limit("smallest_class", 3), Limit("privacy_risk_score", 0.9), Limit("max_reidentification_probability", 0.5))
)


def settings_of(**asked):
    given = {"contract": CONTRACT, "policy": POLICY, "source": people, "anonymized": AnonymizationSettings(k=3)}
    return ReleaseSettings.of(Release("people", **(given | {"synthetic": COPULA} | asked)))


def table_of(n_columns, value=0.5, n_rows=100_000):
    column = pd.Series(value, range(n_rows))
    return pd.DataFrame({str(place): column for place in range(n_columns)})


def test_the_message_names_the_stage_the_rows_it_accepts_and_what_would_be_needed():
    found = check_memory(settings_of(memory="301 MiB"), table_of(10))
    worst = max(set(BYTES_PER_CELL) - {"disclosure_assessment"}, key=BYTES_PER_CELL.get)
    accepted = 2**20 // (10 * BYTES_PER_CELL[worst])
    needed = (300 * 2**20 + 100_000 * 10 * BYTES_PER_CELL[worst]) / 2**30
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert found.description == (
        f"100,000 rows of 10 columns; {worst} accepts about {accepted:,} with 0.294 GiB, and needs about {needed:.3g} "
        "GiB. Give the steps more memory, release by partitions, or leave out columns. If steps run elsewhere with "
        "more, state it: memory."
    )
    shown = {name: value.value for name, value in found.metadata.items()}
    assert shown[f"rows_accepted_by_{worst}"] == accepted
    # Disclosure is not assessed, because the policy does not limit it.
    assert set(shown) == {f"rows_accepted_by_{stage}" for stage in BYTES_PER_CELL if "disclosure" not in stage}


@pytest.mark.parametrize(
    ("asked", "table", "is_error"),
    [
        ({}, table_of(10), True),
        ({}, table_of(16), True),
        # As many bytes as the measured width needs are there: only the further columns would need more.
        ({"memory": "400 MiB"}, table_of(60), False),
        ({"memory": "330 MiB"}, table_of(16, value=True), False),
        ({"synthetic": Synthesis("cart"), "anonymized": None}, table_of(10), True),
        ({"synthetic": Synthesis("gaussian_copula", n_records=50), "anonymized": None}, table_of(10), False),
        (
            {"synthetic": None, "anonymized": AnonymizationSettings(k=3, of="original"), "split": Split(0.8)},
            table_of(10),
            False,
        ),
        ({"synthetic": None}, table_of(10), True),
        # A half of the people in place of 0.8 of them: 15 of 24 MiB.
        ({"anonymized": None, "split": Split(0.5), "memory": "320 MiB"}, table_of(10), False),
        ({"anonymized": None, "split": Split(0.9), "memory": "320 MiB"}, table_of(10), True),
        ({"synthetic": Synthesis("cart", n_records=9), "anonymized": None, "memory": "9 MiB"}, table_of(10), False),
    ],
)
def test_what_was_not_measured_only_warns(asked, table, is_error):
    found = check_memory(settings_of(**({"memory": "301 MiB"} | asked)), table)
    severity = dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN
    assert (found.passed, found.severity) == (False, severity), found.description
    assert ("so nothing is stopped" in found.description) != is_error


def test_enough_memory_passes_and_by_default_it_is_that_of_the_process():
    for release in (settings_of(memory="1 TiB"), settings_of()):
        found = check_memory(release, table_of(10))
        assert found.passed
        assert "are enough for every stage whose memory was measured" in found.description


def test_rows_of_children_count_as_rows_of_views(tmp_path):
    tables = clinic(200, 1)
    for own in (tables, with_lines(tables)):
        assert cells_of_views(own) == sum(view.drop(columns="patient").size for view in related_views(own).values())
    project = RelatedProject(tmp_path)
    project.write(tables)
    for memory, passed in (("301 MiB", False), ("1 GiB", True)):
        result = project.run(project.definitions(memory=memory), "source")
        [found] = [each for each in result.get_asset_check_evaluations() if each.check_name == CHECK]
        assert (found.passed, found.severity == dg.AssetCheckSeverity.ERROR) == (passed, not passed)
        assert f"200 people with {len(tables.children['visits'].table)} rows of 'visits'" in found.description
        assert ("are not enough for disclosure_assessment, which needs about" in found.description) != passed
        assert result.success == passed


def test_a_source_too_large_is_stored_and_nothing_is_made_of_it(tmp_path):
    project = Project(tmp_path)
    project.write_tables()
    asked = {"synthetic": None, "policy": POLICY, "anonymized": AnonymizationSettings(k=3), "memory": "300 MiB"}
    result = project.run(project.definitions(**asked))
    [found] = [each for each in result.get_asset_check_evaluations() if each.check_name == CHECK]
    assert not found.passed
    assert not result.success
    made = [event.asset_key.path[-1] for event in result.get_asset_materialization_events()]
    assert made == ["source"]
    assert project.everything_released() == []
