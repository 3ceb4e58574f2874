"""A small Dagster project on disk, with a release whose gate the tests try to get around."""

import atexit
import contextlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import numpy as np
import pandas as pd

from privacy_assets.orchestration.column_checks import with_examined_columns
from privacy_assets.orchestration.evidence.evidence import gather_evidence
from privacy_assets.orchestration.evidence.spending import with_spending
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.private.directories import RELEASES_MARK_FILE
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings, ExternalSynthetic
from privacy_assets.orchestration.stages import RESOURCES
from privacy_assets.release.gate import Verdict, is_admitted, verdicts
from privacy_assets.release.metrics import DISCLOSURE, MPUCC
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.register import REGISTER_FILE
from privacy_assets.release.verification import verify_release
from tests.made_once import MadeOnce

PROJECT_VARIABLE = "PRIVACY_ASSETS_TEST_PROJECT"
NAME = "people"
CONTRACT = {
    "columns": {
        "patient": {"type": "text", "role": "direct_identifier", "person": True},
        "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120},
        "plan": {"type": "text", "role": "quasi_identifier", "nullable": True},
        "joined": {"type": "datetime", "role": "quasi_identifier"},
        "cost": {"type": "float", "role": "sensitive", "nullable": True},
    }
}
INSTANCE_CONFIGURATION = """
telemetry: {enabled: false}
storage: {sqlite: {base_dir: HOME/history}}
local_artifact_storage:
  module: dagster._core.storage.root
  class: LocalArtifactStorage
  config: {base_dir: HOME/artifacts}
compute_logs:
  module: dagster._core.storage.local_compute_log_manager
  class: LocalComputeLogManager
  config: {base_dir: HOME/compute_logs}
"""
ADMITS = 0.999
REFUSES = 0.0


def people(n_records: int, seed: int) -> pd.DataFrame:
    """Make people whose records are all alike in distribution and related to nobody else's."""
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "patient": [f"patient-{seed}-{number}" for number in range(n_records)],
            "age": random.integers(20, 60, n_records),
            "plan": random.choice(["free", "family", "single"], n_records),
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 60, n_records), unit="D"),
            "cost": random.integers(0, 300, n_records) / 10,
        }
    )


def synthetic_people(n_records: int, seed: int) -> pd.DataFrame:
    return people(n_records, seed).drop(columns="patient")


def configure(home: Path) -> None:
    (home / "dagster.yaml").write_text(INSTANCE_CONFIGURATION.replace("HOME", str(home)))


@cache
def new_home() -> Path:
    """Make the home of an instance that has run nothing yet, once: its tables are copied faster than created."""
    home = Path(tempfile.mkdtemp(prefix="new-instance-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    configure(home)
    dg.DagsterInstance.from_config(str(home)).dispose()
    return home


@dataclass
class Project:
    """A project directory: instance, tables, private storage and releases."""

    made_once: ClassVar[MadeOnce | None] = None
    root: Path
    partitions: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    written_in_pictures: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.root / "data").mkdir(exist_ok=True)
        if not self.home.exists():
            shutil.copytree(new_home(), self.home)
        configure(self.home)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def private(self) -> Path:
        return self.root / "private"

    def instance(self) -> dg.DagsterInstance:
        return dg.DagsterInstance.from_config(str(self.home))

    def write_tables(self, seed: int = 1, partition: str | None = None) -> None:
        suffix = f"-{partition}" if partition else ""
        people(300, seed).to_parquet(self.root / "data" / f"people{suffix}.parquet", index=False)
        self.write_synthetic(seed + 1000, partition)

    def write_synthetic(self, seed: int, partition: str | None = None) -> None:
        suffix = f"-{partition}" if partition else ""
        synthetic_people(180, seed).to_parquet(self.root / "data" / f"synthetic{suffix}.parquet", index=False)

    def definitions(
        self, limit: float = ADMITS, severity: str = "error", *, name: str = NAME, **settings: Any
    ) -> dg.Definitions:
        suffix = "-{partition_key}" if self.partitions else ""
        policy = Policy(
            (Limit("privacy_risk_score", limit, "at_most", severity=severity), Limit("leakage_detected", 0)),
            RequiredSettings(control_records=40, detectable_share=None),
        )
        arguments = {
            "contract": CONTRACT,
            "policy": policy,
            "source": TableFile(str(self.root / "data" / f"people{suffix}.parquet")),
            "synthetic": ExternalSynthetic(
                TableFile(str(self.root / "data" / f"synthetic{suffix}.parquet")), control_was_withheld=True
            ),
            "assessment": AssessmentSettings(max_baseline_cols=3, n_matched_samples=2),
            "partitions_def": dg.StaticPartitionsDefinition(list(self.partitions)) if self.partitions else None,
            "private_path": str(self.private),
            "release_path": str(self.root / "releases"),
        }
        return build_release_definitions(name, **(arguments | self.settings | settings))

    def run(
        self,
        definitions: dg.Definitions,
        *stages: str,
        checks: bool = True,
        partition: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> dg.ExecuteInProcessResult:
        """Materialize some stages, or all, in a run of its own."""
        keys = [key(stage) for stage in stages]
        selection = dg.AssetSelection.assets(*keys) if keys else dg.AssetSelection.all()
        if not checks:
            # Checks inside a step (contract, split, gate) cannot be left out: Dagster itself refuses.
            made = {each for definition in definitions.assets for each in definition.keys}
            assessed = [each for each in map(key, ASSESSMENTS) if each in made]
            selection = selection - dg.AssetSelection.checks_for_assets(*assessed)
        with self.instance() as instance:
            return dg.materialize(
                [*definitions.assets, *definitions.asset_checks],
                selection=selection,
                resources=dict(definitions.resources),
                instance=instance,
                partition_key=partition,
                tags=dict(tags or {}),
                raise_on_error=False,
            )

    def decided(
        self, definitions: dg.Definitions, side: str = "synthetic", partition: str | None = None
    ) -> tuple[Verdict, ...]:
        """Gather the evidence that is stored now and decide on it, as a run of the release alone does."""
        release = settings_of(definitions)
        used = {name: definitions.resources[name] for name in RESOURCES}
        with self.instance() as instance, dg.build_resources(used, instance) as at_hand:
            storage = Storage(release, instance, at_hand.private_tables, at_hand.release_store, partition)
            gathered = gather_evidence(storage, side, with_details=False)
            gathered = with_spending(gathered, storage) if side == "synthetic" else gathered
            gathered = with_examined_columns(gathered, storage, side)
            return verdicts(release.policy, gathered.evidence, gathered.content, release.waivers_of(side))

    def refused_because(
        self, definitions: dg.Definitions, side: str = "synthetic", partition: str | None = None
    ) -> str:
        """Return why the release of what is stored now would be refused; empty if it would not be."""
        decided = self.decided(definitions, side, partition)
        reasons = "; ".join(verdict.reason for verdict in decided if verdict.blocks)
        assert is_admitted(decided) == (not reasons)
        return reasons

    @contextlib.contextmanager
    def kept(self, *stages: str) -> Iterator[None]:
        """Put the stored content of stages back afterwards, whatever was done to it."""
        copies = {self.stored(stage): self.root / f"copy of {stage}" for stage in stages}
        for path, copy in copies.items():
            shutil.copytree(path, copy)
        yield
        for path, copy in copies.items():
            shutil.rmtree(path, ignore_errors=True)
            copy.rename(path)

    def assess(self) -> None:
        """Bring a new project to where everything but the release has run, with its usual definitions."""
        self.begin_as(_assessed)

    def refuse(self) -> None:
        """Bring a new project to where all was run, and its limit refused the release."""
        self.begin_as(_refused)

    def begin_as(self, prepare: Callable[["Project"], None]) -> None:
        """Bring a new project to where a function brings it, which is called once for all tests."""
        assert not self.private.exists(), "something was run already"
        assert self.made_once is not None

        def make(directory: Path) -> None:
            made = directory / "made"
            made.mkdir()
            project = Project(made)
            project.write_tables()
            prepare(project)
            # Places that its events name are gone, so that no copy finds what is another's.
            made.rename(directory / "prepared")

        # SQLite makes its index of a log again; that of a file that moved would be another's.
        ignored = shutil.ignore_patterns("*-shm")
        begun = self.made_once.directory(f"{prepare.__module__}.{prepare.__qualname__}", make) / "prepared"
        shutil.copytree(begun, self.root, symlinks=True, dirs_exist_ok=True, ignore=ignored)
        configure(self.home)

    def releases(self, partition: str | None = None, side: str = "synthetic") -> list[Path]:
        directory = self.root / "releases" / NAME / side
        directory = directory if partition is None else directory / partition
        return [path for path in sorted(directory.glob("2*")) if verify_release(path, max_bytes=None).verified]

    def everything_released(self) -> list[Path]:
        found = (self.root / "releases").rglob("*")
        return [path for path in found if path.is_file() and path.name not in (RELEASES_MARK_FILE, REGISTER_FILE)]

    @property
    def register(self) -> Path:
        return self.root / "releases" / REGISTER_FILE

    def stored(self, stage: str, partition: str | None = None) -> Path:
        path = self.private / NAME / stage
        return path.with_name(f"{stage}.artifact") if partition is None else path / f"{partition}.artifact"


def _assessed(project: Project) -> None:
    assert project.run(project.definitions(), *BEFORE_THE_RELEASE).success


def _refused(project: Project) -> None:
    assert not project.run(project.definitions(REFUSES)).success


def settings_of(definitions: dg.Definitions) -> ReleaseSettings:
    """Return the settings of the release that definitions were built for: its assets refer to them."""
    for asset in definitions.assets:
        function = inspect.unwrap(asset.op.compute_fn.decorated_fn)
        for value in inspect.getclosurevars(function).nonlocals.values():
            if isinstance(value, ReleaseSettings):
                return value
    raise AssertionError("no asset refers to the settings of a release")


def key(stage: str) -> dg.AssetKey:
    return dg.AssetKey([NAME, stage])


def refusal(result: dg.ExecuteInProcessResult, side: str = "synthetic") -> str:
    """Return why the release step of a run was refused; fails when it was not."""
    failures = [event for event in result.all_events if event.is_step_failure]
    assert [event.step_key for event in failures] == [f"{NAME}__{side}_release"], [
        event.step_failure_data.error_display_string for event in failures
    ]
    data = failures[0].step_failure_data.user_failure_data
    assert "verdicts" in data.metadata
    gate = [each for each in result.get_asset_check_evaluations() if each.check_name == "release_gate"]
    assert [evaluation.passed for evaluation in gate] == [False]
    return str(data.description)


def failure_of(result: dg.ExecuteInProcessResult) -> str:
    """Return what the failed steps of a run say."""
    failures = [event for event in result.all_events if event.is_step_failure]
    data = [event.step_failure_data.user_failure_data for event in failures]
    return " ".join(str(each.description) for each in data if each is not None)


def blocked_by(result: dg.ExecuteInProcessResult) -> set[str]:
    """Return the checks of the assessment that failed in a run."""
    return {each.check_name for each in result.get_asset_check_evaluations() if not each.passed}


def report_by_hand(project: Project, stage: str) -> None:
    """Report a materialization with the data version of the last that a run made."""
    with project.instance() as instance:
        recorded = instance.get_latest_materialization_event(key(stage)).asset_materialization
        version = recorded.tags["dagster/data_version"]
        instance.report_runless_asset_event(dg.AssetMaterialization(key(stage), tags={"dagster/data_version": version}))


def refused_job() -> dg.JobDefinition:
    """Return the job that is refused, of the project that the environment names; for runs that load it themselves."""
    return _release_job(REFUSES)


def admitted_job() -> dg.JobDefinition:
    """Return the same job with the limit that admits the release."""
    return _release_job(ADMITS)


def _release_job(limit: float) -> dg.JobDefinition:
    return Project(Path(os.environ[PROJECT_VARIABLE])).definitions(limit).resolve_job_def(f"{NAME}_release")


ASSESSMENT = MPUCC
ASSESSMENTS = (MPUCC, DISCLOSURE)
BEFORE_THE_RELEASE = ("source", "original", "control", "synthetic", "preprocessed", *ASSESSMENTS)
