"""Definitions that a code server loads in a process of its own, of the project that the environment names."""

import contextlib
import os
from pathlib import Path

import dagster as dg

from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings, ReidentificationSettings
from tests.orchestration import faster_runs
from tests.orchestration.evidence.test_other_releases import TestOtherReleases as OtherReleases
from tests.orchestration.evidence.test_other_releases import candidates_policy, released_as
from tests.orchestration.project import CONTRACT, PROJECT_VARIABLE, Project, people

PARTITIONS = ("a", "b")


def _of_partition(partition_key):
    # Too few people for classes of five in one of the partitions.
    return people(300 if partition_key == "a" else 4, 1)


def _definitions(project: Project) -> dg.Definitions:
    others = ReidentificationSettings(other_releases=OtherReleases.others)
    parts = build_release_definitions(
        "parts",
        contract=CONTRACT,
        source=_of_partition,
        policy=candidates_policy(),
        anonymized=AnonymizationSettings(k=5),
        partitions_def=dg.StaticPartitionsDefinition(list(PARTITIONS)),
        private_path=str(project.private),
        release_path=str(project.root / "releases"),
    )
    return dg.Definitions.merge(
        released_as(project, "first"),
        OtherReleases().second(project, reidentification=others),
        parts,
        # A process per run is enough; one per step would take minutes.
        dg.Definitions(executor=dg.in_process_executor),
    )


# Each run loads this in a process of its own, and is faster until that ends.
FASTER = contextlib.ExitStack()
FASTER.enter_context(faster_runs.kept_engines())
FASTER.enter_context(faster_runs.no_log_followers())
FASTER.enter_context(faster_runs.blank_pictures())
defs = _definitions(Project(Path(os.environ[PROJECT_VARIABLE])))
