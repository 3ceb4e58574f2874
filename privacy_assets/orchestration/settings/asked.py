"""What a release can be asked for: the one list of its settings, for Python, for YAML and for their documentation."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import dagster as dg

from privacy_assets.contract.contract import TableContract
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.engine.local import LocalEngine
from privacy_assets.engine.spark import SparkEngine
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings, ReidentificationSettings
from privacy_assets.orchestration.settings.children import ChildTable
from privacy_assets.orchestration.settings.monitoring import MonitoringSettings
from privacy_assets.orchestration.settings.options import OptionsSettings
from privacy_assets.orchestration.settings.sources import TableSource
from privacy_assets.orchestration.settings.synthetic import (
    AssessmentSettings,
    ExternalSynthetic,
    GivenSplit,
    Split,
    Synthesis,
)
from privacy_assets.pipeline.settings.linkage import LinkageAuditSettings
from privacy_assets.pipeline.settings.privacy_budget import PrivacyBudget
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.pipeline.settings.utility import ReportSettings, UtilitySettings
from privacy_assets.release.files import FEWEST_ROWS_PER_PART
from privacy_assets.release.policy import Policy
from privacy_assets.release.signing import SigningKey
from privacy_assets.setting_checks import REQUIRED, described, setting
from privacy_assets.storage.parquet_parts import ROWS_PER_PART

DEFAULT_PRIVATE_PATH = ".dagster/private"
DEFAULT_RELEASE_PATH = "releases"
EXAMPLE_COLUMNS: dict[str, dict[str, Any]] = {
    "patient": {"type": "text", "role": "direct_identifier", "person": True},
    "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120},
    "sex": {"type": "category", "role": "quasi_identifier", "categories": ["female", "male", "diverse"]},
    "diagnosis": {"type": "text", "role": "sensitive", "nullable": True},
}


@described
@dataclass(frozen=True)
class Release:
    """All settings of one release, as its author writes them."""

    name: str = setting(
        REQUIRED,
        "Name of the release: prefix of the asset keys, name of the group. Letters, digits and underscores; "
        "in YAML by default the name of the folder.",
        "people",
    )
    _: KW_ONLY
    source: TableSource | None = setting(
        None,
        "Where the table comes from. Leave it out only if split gives original and control.",
        {"file": "data/people.csv"},
    )
    contract: TableContract | str | Mapping[str, Any] = setting(
        REQUIRED,
        "The table's contract: every column with its type and its privacy role, here or as the Python path of "
        "a pandera schema (my_project.contracts:people).",
        {"columns": EXAMPLE_COLUMNS},
    )
    children: Mapping[str, ChildTable] | None = setting(
        None,
        "Tables of rows that belong to the people, such as visits, by name; they are released together with the "
        "people, or refused together.",
        {
            "visits": {
                "source": {"file": "data/visits.parquet"},
                "contract": {
                    "columns": {
                        "patient": {"type": "text", "role": "direct_identifier"},
                        "date": {"type": "datetime", "role": "quasi_identifier"},
                    }
                },
                "key": "patient",
                "order": "date",
            }
        },
    )
    policy: Policy | str = setting(
        REQUIRED,
        "The limits that a table must meet to be released: the name of a use case (public_release, "
        "research_sharing, internal_analytics, development, high_risk_data), or your own limits.",
        "research_sharing",
        {"use_case": "research_sharing", "limits": [{"metric": "verbatim_copies", "value": 0, "severity": "warn"}]},
    )
    split: Split | GivenSplit | None = setting(
        None,
        "How people are divided into those whose records the synthesizer may see, and the control.",
        {"train_fraction": "auto"},
    )
    synthetic: Synthesis | ExternalSynthetic | None = setting(
        None,
        "How synthetic records are made. By default smooth_cart makes them, unless only anonymized is "
        "given: then there are no synthetic records.",
        {"method": "cart"},
    )
    assessment: AssessmentSettings | None = setting(
        None, "How synthetic records are assessed; by default as the policy requires.", {"max_baseline_cols": 3}
    )
    anonymized: AnonymizationSettings | None = setting(
        None, "Release anonymized records of the source, alone or together with synthetic records.", {"k": 5}
    )
    reidentification: ReidentificationSettings | None = setting(
        None,
        "How to assess whose the anonymized records can be; by default done if the policy limits it.",
        {"max_known": 3},
    )
    semantic_risk: SemanticRiskSettings | None = setting(
        None,
        "How to assess what the concepts of the records reveal; by default done if the policy limits it.",
        {"withhold": True, "risk_limit": 0.2},
    )
    linkage_audit: LinkageAuditSettings | None = setting(
        None,
        "Link the anonymized records to the source, and show what the method finds and can know. These "
        "figures only inform: no policy limits them.",
        {"method": "distance"},
    )
    utility: UtilitySettings | None = setting(
        None,
        "How to assess the worth of the records of each side; by default done if the policy limits it. If it is "
        "given, the policy of a use case warns of records that are worth little.",
        {"seed": 1},
    )
    disclosure: DisclosureSettings | None = setting(
        None,
        "How to test whether synthetic records reveal originals more than people of the control; by default "
        "done if the policy limits leakage_detected or the excess of a criterion.",
        {"known": ["age", "plan"]},
    )
    options: OptionsSettings | None = setting(
        None,
        "Compare candidate releases on demand: the asset release_options shows the risk and the worth of "
        "each; by default there is no such asset.",
        {"candidates": "standard"},
    )
    generalize_synthetic: AnonymizationSettings | None = setting(
        None,
        "Generalize synthetic records before they are assessed and released. Use it if they are refused "
        "because they single people out; originals and control are assessed with the same labels.",
        {"k": 5},
    )
    formats: Sequence[str] = setting(
        ("parquet",), "Files of a release; the Parquet file is always written.", ["parquet", "csv"]
    )
    rows_per_part: int = setting(
        ROWS_PER_PART,
        "A release with more records is a directory of Parquet files of this many records each, at least 1000.",
        5_000_000,
        at_least=FEWEST_ROWS_PER_PART,
    )
    waivers: str | Path | None = setting(
        None,
        "YAML file of approved exceptions, or a directory of such files, read at every decision of the gate; in "
        "YAML relative to the root of the project.",
        "waivers",
    )
    approvers: str | Path | None = setting(
        None,
        "YAML file of the people who may approve releases or sign waivers, read at every decision of the gate; in YAML "
        "relative to the root of the project.",
        "approvers.yaml",
    )
    signing: SigningKey | None = setting(
        None,
        "Key that signs releases (extra signing); a key that cannot be used refuses the release. By default "
        "releases are not signed.",
        {"key_file": "/etc/privacy_assets/signing_key.pem"},
    )
    privacy_budget: PrivacyBudget | None = setting(
        None,
        "The privacy budget that differentially private records (method mst) are charged to; by default that "
        "of the release. Unless the policy limits total_epsilon, at most 3 is spent.",
        {"population": "patients"},
    )
    declaration: Mapping[str, Any] | None = setting(
        None,
        "What is declared about the release: purpose, recipient, recipient_means, legal_basis, retention, "
        "roles_decided_by and policy_decided_by, each a sentence, sampling_fraction, intruder_test and review_by. A "
        "release waits for those that its policy demands (required.declaration).",
        {"purpose": "Teaching statistics", "recipient": "Students of the course", "review_by": "2027-09-30"},
    )
    engine: LocalEngine | SparkEngine | Any = setting(
        None,
        "Where mpUCCs are searched, records cut, and candidates counted, if not in the run itself; the engine "
        "does not change the release.",
        {"spark": {"remote": "sc://spark:15002"}},
    )
    memory: str | None = setting(
        None,
        "Memory of the process of a step, in MiB, GiB or TiB. A source too large for a later stage fails the check "
        "enough_memory. By default the limit of the control group of the step that admits it, or all of the machine.",
        "16 GiB",
    )
    report: ReportSettings | None = setting(None, "What is measured for the report.", {"column_changes": 0})
    monitoring: MonitoringSettings | None = setting(
        None, "How the release is monitored between its runs; by default it is not monitored.", {"drift_limit": 0.2}
    )
    partitions_def: dg.PartitionsDefinition[Any] | None = setting(
        None,
        "Partitions of every asset; each has its own evidence and its own releases.",
        {"type": "monthly", "start_date": "2026-01-01"},
    )
    owners: Sequence[str] = setting((), "Owners of the assets: team:name, or an email address.", ["team:privacy"])
    private_path: str = setting(
        DEFAULT_PRIVATE_PATH,
        "Private directory of the tables between the stages. It is relative to the root of the project, and "
        "the same for all releases of a project; it is closed to other users, so it must be new, empty, or already "
        "a private directory of this package.",
        DEFAULT_PRIVATE_PATH,
    )
    release_path: str = setting(
        DEFAULT_RELEASE_PATH,
        "Directory of the releases; relative and common to all releases like private_path. Or the address of an object "
        "store for pyarrow, such as s3://bucket/prefix?region=eu-west-1.",
        DEFAULT_RELEASE_PATH,
    )
