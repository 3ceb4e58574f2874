"""A release against its manifest: files, content, figures, verdicts and waivers, asked again without Dagster."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from privacy_assets.tables.anonymity_report import AnonymityReport
from privacy_assets.tables.errors import InvalidSettingError
from privacy_assets.tables.fingerprint import fingerprint
from privacy_assets.tables.gate import EVERY_WAIVER_IS_USED, Verdict
from privacy_assets.tables.policy import Limit, Policy, RequiredSettings
from privacy_assets.tables.release_model import ReleaseModel, columns_of
from privacy_assets.tables.waivers import Waiver

MANIFEST_FILE = "manifest.json"
REPORT_FILE = "report.html"
MANIFEST_VERSION = 1
MANIFEST_KEYS = {
    *("manifest_version", "release", "stage", "partition", "created_at", "run_id", "fingerprint", "n_records"),
    *("formats", "columns", "files", "policy", "verdicts", "settings", "figures", "refusals_before", "versions"),
    "waivers",
}
# Characters that messages show of a name in a manifest.
LONGEST_NAME = 100


@dataclass(frozen=True)
class ReleaseVerification:
    """What `verify_release` found: an empty ``problems`` means that the release is what its manifest says."""

    directory: Path
    fingerprint: str | None
    n_records: int | None
    problems: tuple[str, ...]

    @property
    def verified(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify_release(directory: Path) -> ReleaseVerification:
    """Check a received release against its manifest, without Dagster.

    The manifest must be complete, every file must have its recorded SHA-256 and size and none may be added, the report
    must be among them, the Parquet file must have the recorded fingerprint and columns, and the recorded verdicts must
    follow from the recorded figures and limits. A manifest is not signed: whoever can write all of it can invent
    figures.

    Parameters
    ----------
    directory : Path
        A release directory, or ``latest``.

    Returns
    -------
    ReleaseVerification
        All problems at once; the messages hold no cell.
    """
    directory = Path(directory)
    try:
        manifest = json.loads((directory / MANIFEST_FILE).read_bytes())
        missing = sorted(MANIFEST_KEYS - set(manifest))
        if missing or manifest["manifest_version"] != MANIFEST_VERSION:
            raise ValueError(missing)
        problems = [*_file_problems(directory, manifest), *_verdict_problems(manifest)]
        expected, n_records = manifest["fingerprint"], manifest["n_records"]
        problems += _content_problems(directory, manifest)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ReleaseVerification(directory, None, None, (f"there is no {MANIFEST_FILE}",))
    except OSError as error:
        return ReleaseVerification(directory, None, None, (f"a file cannot be read ({type(error).__name__})",))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return ReleaseVerification(directory, None, None, (f"{MANIFEST_FILE} is damaged or incomplete",))
    return ReleaseVerification(directory, expected, n_records, tuple(problems))


def _file_problems(directory: Path, manifest: Mapping[str, Any]) -> list[str]:
    problems = []
    present = {path.name for path in directory.iterdir()}
    for name, recorded in manifest["files"].items():
        path = directory / name
        if name not in present or path.is_symlink() or not path.is_file():
            problems.append(f"the file {name[:LONGEST_NAME]!r} is missing")
        elif path.stat().st_size != recorded["bytes"] or sha256_of(path) != recorded["sha256"]:
            problems.append(f"the file {name!r} was changed")
    added = present - set(manifest["files"]) - {MANIFEST_FILE}
    if added:
        problems.append(f"{len(added)} files are there that the manifest does not list")
    return problems


def _content_problems(directory: Path, manifest: Mapping[str, Any]) -> list[str]:
    stage = manifest["stage"]
    expected = {f"{stage}.{data_format}" for data_format in manifest["formats"]}
    if set(manifest["files"]) != {*expected, REPORT_FILE} or f"{stage}.parquet" not in expected:
        return ["the manifest does not list the files of its formats and its report"]
    path = directory / f"{stage}.parquet"
    try:
        table = pd.read_parquet(path, engine="pyarrow")
        found = fingerprint(table)
    except (OSError, ValueError):
        return [f"the file {path.name!r} cannot be read as a table"]
    problems = []
    if found != manifest["fingerprint"]:
        problems.append("the table does not have the recorded fingerprint")
    if len(table) != manifest["n_records"] or list(table.columns) != [each["column"] for each in manifest["columns"]]:
        problems.append("the table does not have the recorded columns and number of records")
    elif stage == "anonymized":
        problems += _anonymity_problems(table, manifest)
    return problems


def _anonymity_problems(table: pd.DataFrame, manifest: Mapping[str, Any]) -> list[str]:
    """Measure the released table again, classes in records: whose record a row is cannot be seen in it."""
    # Numba comes with it, which whoever verifies a synthetic release need not load.
    from privacy_assets.kernels.anonymity_measures import LARGEST_RECURSIVE_L
    from privacy_assets.tables.verify_anonymity import verify_anonymity

    by_role = {
        role: [each["column"] for each in manifest["columns"] if each["role"] == role]
        for role in ("quasi_identifier", "sensitive")
    }
    recorded = AnonymityReport.from_header(manifest["figures"]["anonymity"])
    recursive_l = max([LARGEST_RECURSIVE_L, *(l_ for own in recorded.sensitive.values() for l_ in own.l_recursive_c)])
    found = verify_anonymity(table, by_role["quasi_identifier"], by_role["sensitive"], recursive_l=recursive_l)
    wrong = _other_measures(found, recorded)
    problems = [f"{', '.join(wrong)} of the table are not what the manifest records"] if wrong else []
    problems += _people_problems(found, recorded, manifest["settings"]["anonymized"]["subject"])
    statistics = manifest["figures"]["statistics"]
    problems += _statistics_problems(len(table), statistics)
    masks = ReleaseModel.from_json(manifest["figures"]["model"]).masks
    told = {column for mask in masks.values() for column in columns_of(mask)}
    if not told <= set(table.columns) <= told | set(masks):
        problems.append("the model does not say what the columns of the table tell")
    figures = {
        "smallest_class": found.k if recorded.k_people is None else recorded.k_people,
        "l_diversity": found.l_distinct,
        "t_closeness": found.t,
        "suppressed_share": statistics["suppressed_share"],
        "share_in_homogeneous_classes": found.share_in_homogeneous_classes or 0.0,
        "information_loss": statistics["information_loss"],
    }
    return problems + [
        f"the figure for {verdict['metric']!r} is not the one of the table"
        for verdict in manifest["verdicts"]
        if verdict["metric"] in figures and verdict["value"] != figures[verdict["metric"]]
    ]


def _other_measures(found: AnonymityReport, recorded: AnonymityReport) -> list[str]:
    """Return the measures of records that are not as recorded; those of people cannot be seen in the table."""
    own, told = found.to_header(), recorded.to_header()
    names = ("n_rows", "n_classes", "k", "class_sizes", "share_in_homogeneous_classes")
    wrong = [name for name in names if own[name] != told[name]]
    if set(own["sensitive"]) != set(told["sensitive"]):
        return [*wrong, "sensitive"]
    return wrong + [
        f"{measure} of {column!r}"
        for column, measures in own["sensitive"].items()
        for measure, value in measures.items()
        if value != told["sensitive"][column][measure]
    ]


def _people_problems(found: AnonymityReport, recorded: AnonymityReport, subject: str | None) -> list[str]:
    """Compare what is recorded of people with itself and with the records of the table."""
    people = recorded.class_people
    if not (subject is None) == (recorded.k_people is None) == (people is None):
        return ["people are not counted as the settings ask for"]
    if recorded.k_people is None or people is None:
        return []
    problems = []
    if recorded.k_people > found.k:
        problems.append("more people are recorded for the smallest class than it has records")
    own = found.class_sizes
    is_possible = people.mean <= own.mean and people.median <= own.median and people.largest <= own.largest
    if people.smallest != recorded.k_people or not 1 <= people.smallest <= people.mean <= people.largest:
        is_possible = False
    return problems if is_possible else [*problems, "the recorded people of the classes are impossible"]


def _statistics_problems(n_released: int, statistics: Mapping[str, Any]) -> list[str]:
    """Compare the figures that only the original shows with themselves."""
    n_rows, n_suppressed = statistics["n_rows"], statistics["n_suppressed"]
    losses = [statistics["information_loss"], *statistics.get("certainty_penalty", {}).values()]
    is_right = (
        statistics["n_released"] == n_released == n_rows - n_suppressed
        and n_suppressed >= 0
        and statistics["suppressed_share"] == n_suppressed / n_rows
        and all(0 <= loss <= 1 for loss in losses)
    )
    return [] if is_right else ["the recorded statistics are impossible for the records of the table"]


def _verdict_problems(manifest: Mapping[str, Any]) -> list[str]:
    """Decide the recorded limits again on the recorded figures, and look for the conditions on the evidence."""
    described = manifest["policy"]
    limits = tuple(Limit(**recorded) for recorded in described["limits"])
    policy = Policy(limits, RequiredSettings(**described["required"]), described["use_case"], tuple(described["known"]))
    decided = tuple(Verdict(**verdict) for verdict in manifest["verdicts"])
    if not policy.limits_of(manifest["stage"]):
        return [f"the policy has no limit on {manifest['stage']!r} records"]
    problems = [] if described["changes"] == list(policy.changes) else ["the policy is not the preset that it names"]
    problems += [f"the condition {verdict.name!r} is recorded as failed" for verdict in decided if verdict.blocks]
    if not any(verdict.metric is None and verdict.name != EVERY_WAIVER_IS_USED for verdict in decided):
        problems.append("no condition on the evidence is recorded")
    by_metric = {verdict.metric: verdict for verdict in decided if verdict.metric is not None}
    for limit in policy.limits_of(manifest["stage"]):
        verdict = by_metric.get(limit.metric)
        if verdict is not None and verdict.waived_by is not None:
            problems += _waived_problems(manifest, limit, verdict)
        elif verdict is None or verdict.passed != limit.holds_for(verdict.value) or verdict.severity != limit.severity:
            problems.append(f"the limit on {limit.metric!r} is not decided as recorded")
        elif limit.severity == "error" and not verdict.passed:
            problems.append(f"the limit on {limit.metric!r} is not met")
    limited = [limit.metric for limit in policy.limits_of(manifest["stage"])]
    waived = [(verdict.waived_by, verdict.metric) for verdict in decided if verdict.waived_by is not None]
    recorded_waivers = [(waiver["file"], waiver["metric"]) for waiver in manifest["waivers"]]
    if Counter(waived) != Counter(recorded_waivers) or not all(metric in limited for _, metric in waived):
        problems.append("the waivers are not those that the verdicts name")
    return problems


def _waived_problems(manifest: Mapping[str, Any], limit: Limit, verdict: Verdict) -> list[str]:
    """Ask the recorded waiver of a limit again, as of the day of the release."""
    recorded = [waiver for waiver in manifest["waivers"] if waiver["file"] == verdict.waived_by]
    if len(recorded) != 1:
        return [f"the limit on {limit.metric!r} is waived without a waiver"]
    if not verdict.passed or limit.holds_for(verdict.value) or verdict.severity != limit.severity or not limit.blocks:
        return [f"the limit on {limit.metric!r} is not decided as recorded"]
    on = datetime.fromisoformat(manifest["created_at"]).astimezone(UTC).date()
    try:
        waiver = Waiver.from_json(recorded[0])
        found = waiver.problems(manifest["release"], manifest["fingerprint"], limit, verdict.value, on)
    except InvalidSettingError as error:
        found = (str(error),)
    return [f"the waiver of the limit on {limit.metric!r} does not hold: {', '.join(found)}"] if found else []


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
