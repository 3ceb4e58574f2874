"""The checks of a release against its manifest: files, content, figures, verdicts and waivers."""

import json
import math
import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq

from privacy_assets.anonymity.report import AnonymityReport
from privacy_assets.columns.masks import ReleaseModel, columns_of
from privacy_assets.contract.related import PEOPLE, RelatedTables, artifact_of, named
from privacy_assets.contract.rule_violations import RULE_VIOLATIONS, RULES, count_rule_violations
from privacy_assets.contract.rules import read_rules
from privacy_assets.disclosure.leaving_columns import recorded_problems
from privacy_assets.disclosure.rare_values import RARE_VALUES, RARE_VALUES_RELEASED, RareColumn, is_text_or_category
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.release.approvals import Approval, Approver, decide, subject_of
from privacy_assets.release.declaration import lacks
from privacy_assets.release.formats.attestation import ATTESTATIONS, is_attested
from privacy_assets.release.formats.cards import CARDS
from privacy_assets.release.gate import EVERY_WAIVER_IS_USED, Verdict, is_admitted
from privacy_assets.release.manifest import (
    CARD_FILES,
    MANIFEST_FILE,
    REPORT_FILE,
    SIGNATURE_FILE,
    DamagedManifestError,
    are_withheld,
    digest_of,
    is_withheld,
    parse_manifest,
    table_files,
)
from privacy_assets.release.metrics import ANONYMITY, DISCLOSURE, METRICS, MPUCC, PRIVACY_BUDGET, SIDES, figures_of
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.received_files import (
    is_as_recorded,
    open_regular,
    parse_json_object,
    read_regular,
)
from privacy_assets.release.related_files import recorded_columns, records_in_words, related_problems
from privacy_assets.release.released_csv import digest_of_csv
from privacy_assets.release.signing import PublicKey, SignatureFound, agreement_problems
from privacy_assets.release.waivers import Waiver
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.artifact_files import read_frame
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import StoredTable, Table, UnreadableTableError

MAX_FILES = 1_000
MAX_PROBLEMS = 100
LONGEST_PROBLEM = 2_000
MOST_CHECKS_OF_FILES = 32
"""Checks among which the files are divided."""
# Messages show this many characters of a name in a manifest.
LONGEST_NAME = 100


def as_answer(
    problems: Sequence[str],
    of_files: Sequence[str] = (),
    *,
    is_last: bool = False,
    n_checks: int = 1,
    **head: Any,
) -> dict[str, Any]:
    """Return the answer of a check, and problems of the files that it reads, which others may have found, too.

    After a last check, problems of later ones would only follow from its own.
    """
    shown, of_files = ([each[:LONGEST_PROBLEM] for each in own[:MAX_PROBLEMS]] for own in (problems, of_files))
    head = {"fingerprint": None, "n_records": None} | head
    told = {"problems": shown, "of_files": of_files, "n_more": len(problems) - len(shown)}
    return told | {"is_last": is_last, "n_checks": n_checks, "head": head}


@dataclass(frozen=True)
class Received:
    """A release, the bytes of its manifest, and its checks.

    If each check ``is_alone`` in its process, which may see other files than the others do, it first compares the files
    that it reads with the manifest.
    """

    directory: Path
    data: bytes
    signature: SignatureFound
    max_bytes: int | None
    is_alone: bool = False

    def answer(self, number: int) -> dict[str, Any]:
        """Make a check: the first one is of the manifest alone, the last one of the cards."""
        known: dict[str, Any] = {}
        of_files: list[str] = []
        try:
            manifest, checks = self._manifest, self._checks
            known = {
                "n_checks": len(checks),
                "fingerprint": manifest["fingerprint"],
                "n_records": manifest["n_records"],
                "figures_withheld": are_withheld(manifest),
                "records": records_in_words(manifest),
            }
            check, names = checks[number]
            if self.is_alone:
                of_files = changed_files(self.directory, manifest, self.max_bytes, names)
            return as_answer(check(), of_files, **known)
        except DamagedManifestError as error:
            problem = str(error)
        except UnreadableTableError:
            problem = f"the file {self._manifest['stage'] + '.parquet'!r} cannot be read as a table"
        except OSError as error:
            problem = f"a file cannot be read ({type(error).__name__})"
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - a release that breaks the check is not verified
            problem = f"{MANIFEST_FILE} is damaged or incomplete: {type(error).__name__} while it was checked"
        return as_answer([problem], of_files, is_last=True, **known)

    @cached_property
    def _manifest(self) -> dict[str, Any]:
        return parse_manifest(self.data)

    @property
    def _checks(self) -> list[tuple[Callable[[], list[str]], list[str]]]:
        """The checks, and the files that each of them reads as if they were as recorded."""
        # Not kept: it refers to this object, and so would keep the files of the table open.
        manifest, directory = self._manifest, self.directory
        names = list(manifest["files"])
        size = max(-(-len(names) // MOST_CHECKS_OF_FILES), 1)
        of_files = [
            partial(changed_files, directory, manifest, self.max_bytes, names[begin : begin + size])
            for begin in range(0, len(names), size)
        ]
        alone: list[Callable[[], list[str]]] = [
            partial(agreement_problems, manifest, self.signature),
            partial(_digest_problems, manifest),
            *of_files,
            partial(_added_problems, directory, manifest),
            partial(_verdict_problems, manifest),
            partial(approval_problems, manifest, None),
        ]
        tables, cards = (
            [each for each in own if each in manifest["files"]] for own in (table_files(manifest), CARD_FILES)
        )
        return [
            *((check, []) for check in alone),
            *((check, tables) for check in self._of_content()),
            (partial(_card_problems, directory, manifest), cards),
        ]

    def _of_content(self) -> list[Callable[[], list[str]]]:
        manifest, stage = self._manifest, self._manifest["stage"]
        expected = {f"{stage}.{data_format}" for data_format in manifest["formats"]}
        others = expected - {f"{stage}.parquet"}
        cards = set(CARD_FILES) & set(manifest["files"])
        listed = {*others, *table_files(manifest), REPORT_FILE, *(CARD_FILES if cards else ())}
        if set(manifest["files"]) != listed or len(others) == len(expected):
            return [lambda: ["the manifest does not list the files of its formats and its report"]]
        if "tables" in manifest:
            return [partial(_related_content_problems, self.directory, manifest)]
        of_table: list[Callable[[StoredTable, Mapping[str, Any]], list[str]]] = [recorded_problems]
        if "csv" in manifest["formats"]:
            of_table.insert(0, _csv_problems)
        if stage == "anonymized":
            of_table.append(_anonymity_problems)
        else:
            of_table.append(lambda table, manifest: _rare_values_problems(table, manifest, _policy_of(manifest)))
            if not are_withheld(manifest):
                of_table.append(lambda table, manifest: _rule_problems({"": table}, manifest))
                of_table.append(lambda _, manifest: _figure_problems(manifest, manifest["figures"]))
        return [self._fingerprint_problems, *(partial(self._of_table, check) for check in of_table)]

    @cached_property
    def _table(self) -> tuple[StoredTable | None, str]:
        return _read_table(self.directory, self._manifest)

    def _has_shape(self, table: StoredTable) -> bool:
        columns = [each["column"] for each in self._manifest["columns"]]
        return len(table) == self._manifest["n_records"] and list(table.columns) == columns

    def _fingerprint_problems(self) -> list[str]:
        """Compare a table that is read here for the first time with the manifest."""
        table, problem = self._table
        if table is None:
            return [problem] if problem else []  # A changed file is already reported.
        try:
            found = table.fingerprint
        except InvalidTableError:
            raise UnreadableTableError from None
        is_same = found == self._manifest["fingerprint"]
        problems = [] if is_same else ["the table does not have the recorded fingerprint"]
        if not self._has_shape(table):
            problems.append("the table does not have the recorded columns and number of records")
        return problems

    def _of_table(self, check: Callable[[StoredTable, Mapping[str, Any]], list[str]]) -> list[str]:
        """Make a check of a table whose shape was found to be right."""
        table, _ = self._table
        if table is None or not self._has_shape(table):
            return []
        give_back_memory()
        return check(table, self._manifest)


def _digest_problems(manifest: Mapping[str, Any]) -> list[str]:
    if "digest" not in manifest or manifest["digest"] == digest_of(manifest):
        return []
    return [f"{MANIFEST_FILE} was changed: it does not match the digest that it records"]


def present_files(directory: Path, manifest: Mapping[str, Any]) -> set[str]:
    """Return the names of the first files in a release directory and in that of the parts of its table."""
    with os.scandir(directory) as entries:
        present = {entry.name for entry in islice(entries, MAX_FILES)}
    return present | _files_of_parts(directory, manifest, MAX_FILES)


def _added_problems(directory: Path, manifest: Mapping[str, Any]) -> list[str]:
    added = present_files(directory, manifest) - set(manifest["files"]) - {MANIFEST_FILE, SIGNATURE_FILE}
    added -= set(ATTESTATIONS) if is_attested(manifest) else set()
    if "parts" in manifest:
        added -= {f"{manifest['stage']}.parquet"}
    return [f"{len(added)} files are not listed in the manifest"] if added else []


def changed_files(
    directory: Path, manifest: Mapping[str, Any], max_bytes: int | None = None, names: Sequence[str] | None = None
) -> list[str]:
    """Return which of its files, or of some, are missing, or differ from their recorded sizes and digests."""
    present = present_files(directory, manifest)
    problems = []
    for name in manifest["files"] if names is None else names:
        recorded = manifest["files"][name]
        shown = f"the file {name[:LONGEST_NAME]!r}"
        if name not in present:
            problems.append(f"{shown} is missing")
        elif max_bytes is not None and recorded["bytes"] > max_bytes:
            problems.append(f"{shown} has more than {max_bytes:,} bytes, the limit of this verification")
        else:
            problems += _changed(directory / name, shown, recorded)
    return problems


def _changed(path: Path, shown: str, recorded: Mapping[str, Any]) -> list[str]:
    try:
        with open_regular(path) as file:
            is_same = is_as_recorded(file, recorded["sha256"], recorded["bytes"])
    except FileNotFoundError:
        return [f"{shown} is missing, or is not a regular file"]
    return [] if is_same else [f"{shown} was changed"]


def _card_problems(directory: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Return which cards say something else than the manifest; another version may have said it in other words."""
    if manifest["versions"]["privacy-assets"] != version("privacy-assets"):
        return []
    made = {name: json.loads(json.dumps(CARDS[name](manifest))) for name in CARD_FILES if name in manifest["files"]}
    return [
        f"the file {name!r} is not what the manifest says"
        for name, card in made.items()
        if parse_json_object(read_regular(directory / name, manifest["files"][name]["bytes"])) != card
    ]


def _related_content_problems(directory: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Check each of related tables, the whole, and how they are linked; then the figures that the tables alone have."""
    frames = {}
    for name, own in manifest["tables"].items():
        table, problem = _read(directory, own["file"], manifest, read_frame, recorded_columns(name, manifest))
        if table is None:
            return [problem] if problem else []  # A changed file is already reported.
        frames[name] = table
    problems = related_problems(frames, manifest)
    if len(frames[PEOPLE]) != manifest["n_records"]:
        problems.append("the tables do not have the recorded number of people")
    if problems:
        return problems
    tables = RelatedTables.from_artifact(artifact_of(frames, manifest["person"], manifest["links"]))
    problems += recorded_problems(tables, manifest)
    cells = {named(name, str(column)): frame[column] for name, frame in frames.items() for column in frame}
    problems += _rare_values_problems(cells, manifest, _policy_of(manifest), sum(map(len, frames.values())))
    problems += _rule_problems({named(name, ""): frame for name, frame in frames.items()}, manifest)
    return problems + _figure_problems(manifest, manifest["figures"])


def _csv_problems(table: Table, manifest: Mapping[str, Any]) -> list[str]:
    """Compare the CSV file and its description with those written for the table.

    A file that is not as recorded is reported elsewhere, so the recorded digest represents its bytes.
    """
    if "csv" not in manifest:
        return ["the manifest does not describe its CSV file"]
    name = f"{manifest['stage']}.csv"
    sha256, described = digest_of_csv(table)
    if sha256 != manifest["files"][name]["sha256"]:
        return [f"the file {name!r} is not the recorded table"]
    return [] if described == manifest["csv"] else ["the manifest does not describe the CSV file of its table"]


def _files_of_parts(directory: Path, manifest: Mapping[str, Any], most: int) -> set[str]:
    """Return the files in the directory of the parts, at most this many; none if the directory is a link."""
    name = f"{manifest['stage']}.parquet"
    try:
        is_directory = stat.S_ISDIR(os.lstat(directory / name).st_mode)
    except FileNotFoundError:
        is_directory = False
    if "parts" not in manifest or not is_directory:
        return set()
    with os.scandir(directory / name) as entries:
        return {f"{name}/{entry.name}" for entry, _ in zip(entries, range(most), strict=False)}


def _read_table(directory: Path, manifest: Mapping[str, Any]) -> tuple[StoredTable | None, str]:
    """Open the table of a release whose files are as recorded; otherwise return None and the problem.

    The problem is empty if a file was changed, which is reported elsewhere.
    """
    columns = [each["column"] for each in manifest["columns"]]
    if "parts" not in manifest:
        (name,) = table_files(manifest)
        return _read(directory, name, manifest, lambda file: StoredTable([file]), columns)
    if sum(manifest["parts"]["rows"]) != manifest["n_records"]:
        return None, "the parts do not have the recorded number of records"
    tables: list[StoredTable] = []
    for name, n_rows in zip(table_files(manifest), manifest["parts"]["rows"], strict=True):
        table, problem = _read(directory, name, manifest, lambda file: StoredTable([file]), columns)
        if table is None:
            return None, problem
        if len(table) != n_rows:
            return None, "the parts do not have the recorded numbers of records"
        if tables and table.schema != tables[0].schema:
            return None, "the parts have different columns or types"
        tables.append(table)
    return StoredTable(tables), ""


def _read(
    directory: Path, name: str, manifest: Mapping[str, Any], read: Callable[[BinaryIO], Any], columns: Sequence[str]
) -> tuple[Any, str]:
    try:
        with open_regular(directory / name) as file:
            if os.fstat(file.fileno()).st_size != manifest["files"][name]["bytes"]:
                return None, ""
            # Pandas makes no column of an index, so neither the table nor its fingerprint would have it.
            schema = pq.read_schema(file)
            if schema.names != list(columns) or (schema.pandas_metadata or {}).get("index_columns"):
                return None, f"the file {name!r} does not have the recorded columns without an index"
            if not set(schema.metadata or {}) <= {b"pandas"} or (schema.pandas_metadata or {}).get("attributes"):
                return None, f"the file {name!r} has content beside its table, which nobody has assessed"
            return read(file), ""
    except FileNotFoundError:
        return None, ""
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - Parquet readers can raise anything for a malicious file
        return None, f"the file {name!r} cannot be read as a table"


def _rare_values_problems(
    table: Any, manifest: Mapping[str, Any], policy: Policy, n_rows: int | None = None
) -> list[str]:
    """Check the rare values recorded in a manifest for consistency, with each other and with the released table.

    Which values are rare cannot be determined without the source. Of related tables, the columns of all are given, and
    the number of their rows.
    """
    n_rows = len(table) if n_rows is None else n_rows
    if policy.limit_on(RARE_VALUES_RELEASED) is None:
        return []
    found = [verdict["value"] for verdict in manifest["verdicts"] if verdict["metric"] == RARE_VALUES_RELEASED]
    recorded = manifest["figures"].get(RARE_VALUES)
    if recorded is None:
        return [] if found == [None] else ["rare values are limited, but their counts by column are not recorded"]
    by_column = {name: RareColumn(**own) for name, own in recorded["by_column"].items()}
    total, records = recorded[RARE_VALUES_RELEASED], recorded["records_with_rare_values"]
    problems = []
    if recorded["people_per_value"] != policy.people_per_value:
        problems.append("rare values were not counted for the number of people that the policy requires")
    if found != [total] or total != sum(own.n_values for own in by_column.values()):
        problems.append(f"the figure for {RARE_VALUES_RELEASED!r} differs from the sum over its columns")
    of_labels = {each["column"]: each["generalizes"] for each in manifest["columns"] if "generalizes" in each}
    plain = {name for name in table if name not in of_labels and is_text_or_category(table[name])}
    if not plain <= set(by_column) <= plain | set(of_labels.values()):
        problems.append("rare values were not counted in the text and category columns of the table")
    most = {name: (table[name].nunique(), int(table[name].notna().sum())) for name in plain & set(by_column)}
    are_possible = all(_is_possible(own, *most.get(name, (None, n_rows))) for name, own in by_column.items())
    of_columns = [own.n_records for own in by_column.values()]
    if not are_possible or not max(of_columns, default=0) <= records <= min(sum(of_columns), n_rows):
        problems.append("the recorded rare values are impossible for the records of the table")
    return problems


def _rule_problems(tables: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """Judge the recorded rules again on the released tables; checks that are functions were only counted.

    The tables are given by the beginning of the names of their rules.
    """
    recorded = manifest["figures"].get(RULES)
    if recorded is None or recorded[RULE_VIOLATIONS] is None:
        return []
    labels = [each["column"] for each in manifest["columns"] if "generalizes" in each]
    least = most = n_rows = 0
    is_counted = True
    for start, table in tables.items():
        by_rule = {name.removeprefix(start): own for name, own in recorded["by_rule"].items() if name.startswith(start)}
        if not by_rule and not any(name.startswith(start) for name in recorded["not_judged"]):
            continue
        written = {name: own["rule"] for name, own in by_rule.items() if own["rule"] is not None}
        try:
            found = count_rule_violations(read_rules(written, table), table, {}, labels)
        except InvalidSettingError:
            return ["a recorded rule cannot be judged on the table"]
        is_counted &= found.by_rule.keys() == written.keys() and all(
            by_rule[name]["synthetic"] == own["synthetic"] for name, own in found.by_rule.items()
        )
        counts = [own["synthetic"] for own in by_rule.values()]
        least_here = max(found.n_violating or 0, *counts) if counts else 0
        least += least_here
        most += least_here if len(written) == len(by_rule) else min(sum(counts), len(table))
        n_rows += len(table)
    n_recorded = recorded["records_with_violations"]
    n_judged = n_rows or len(next(iter(tables.values())))
    if not is_counted or not least <= n_recorded <= most or recorded[RULE_VIOLATIONS] != n_recorded / n_judged:
        return ["the recorded violations of rules differ from those of the table"]
    return []


def _is_possible(own: RareColumn, n_values: int | None, n_records: int) -> bool:
    """Return whether a column can have this many rare values; one label may contain several."""
    if n_values is None:
        return own.n_values >= 0 and 0 <= own.n_records <= n_records and (own.n_values > 0) == (own.n_records > 0)
    return 0 <= own.n_values <= min(own.n_records, n_values) and own.n_records <= n_records * (own.n_values > 0)


def withheld_problems(manifest: Mapping[str, Any]) -> list[str]:
    """Check that a release that withholds its figures has none of them, and has a guarantee."""
    if not are_withheld(manifest):
        return []
    problems = []
    if manifest["stage"] != SIDES[PRIVACY_BUDGET] or "epsilon" not in manifest["figures"].get(PRIVACY_BUDGET, {}):
        problems.append("figures are withheld, but the records have no guarantee of differential privacy")
    withheld = [each for each in manifest["verdicts"] if each["metric"] is not None and is_withheld(each["metric"])]
    if any(each["value"] is not None for each in withheld) or set(manifest["figures"]) - {PRIVACY_BUDGET}:
        problems.append("figures are recorded although the manifest declares them withheld")
    if manifest["waivers"]:
        problems.append("a limit is waived, but its figure is withheld")
    return problems


def _anonymity_problems(table: Table, manifest: Mapping[str, Any]) -> list[str]:
    """Measure the released table again, with classes counted in records, because it does not show people."""
    if table.empty:
        return ["the table has no records, so it has no classes to measure"]
    by_role = {
        role: [each["column"] for each in manifest["columns"] if each["role"] == role]
        for role in ("quasi_identifier", "sensitive")
    }
    recorded = AnonymityReport.from_header(manifest["figures"]["anonymity"])
    try:
        found = _measured(table, by_role, recorded)
    except InvalidTableError:
        return ["the classes of the table cannot be measured"]
    wrong = _other_measures(found, recorded)
    problems = [f"{', '.join(wrong)} of the table differ from the manifest"] if wrong else []
    problems += _people_problems(found, recorded, manifest["settings"]["anonymized"]["subject"])
    statistics = manifest["figures"]["statistics"]
    problems += _statistics_problems(len(table), statistics)
    masks = ReleaseModel.from_json(manifest["figures"]["model"]).masks
    told = {column for mask in masks.values() for column in columns_of(mask)}
    if not told <= set(table.columns) <= told | set(masks):
        problems.append("the model does not describe the columns of the table")
    # The table does not show people, so their number is the recorded one.
    measured = {ANONYMITY: found.to_header() | {"k_people": recorded.k_people}}
    return problems + _figure_problems(manifest, {**manifest["figures"], **measured})


def _figure_problems(manifest: Mapping[str, Any], figures: Mapping[str, Any]) -> list[str]:
    """Read every figure of a verdict again; one that nobody knows how to read is a problem, too."""
    required = _policy_of(manifest).required

    def read(metric: str) -> float | None:
        return METRICS[metric].of(figures, required) if metric in METRICS else math.nan

    return [
        f"the figure for {verdict['metric']!r} differs from that of the table"
        for verdict in manifest["verdicts"]
        if verdict["metric"] is not None and verdict["value"] != read(verdict["metric"])
    ]


def _measured(table: Table, by_role: Mapping[str, list[str]], recorded: AnonymityReport) -> AnonymityReport:
    """Measure the table up to the recorded l, but no further than its classes allow."""
    # Imports Numba, which is not needed to verify a synthetic release.
    from privacy_assets.anonymity.kernels.measures import LARGEST_RECURSIVE_L
    from privacy_assets.anonymity.verify import verify_anonymity

    found = verify_anonymity(table, by_role["quasi_identifier"], by_role["sensitive"])
    largest = max((l_ for own in recorded.sensitive.values() for l_ in own.l_recursive_c), default=0)
    # A class of k records has at most k values; a larger l is forged and would fill the memory.
    if not LARGEST_RECURSIVE_L < largest <= found.k:
        return found
    return verify_anonymity(table, by_role["quasi_identifier"], by_role["sensitive"], recursive_l=largest)


def _other_measures(found: AnonymityReport, recorded: AnonymityReport) -> list[str]:
    """Return the measures in records that differ from the recorded ones; the table does not show people."""
    own, told = found.to_header(), recorded.to_header()
    names = ("n_rows", "n_classes", "k", "class_sizes", "share_in_homogeneous_classes")
    wrong = [name for name in names if canonical_json(own[name]) != canonical_json(told[name])]
    if sorted(own["quasi_identifiers"]) != sorted(told["quasi_identifiers"]):
        wrong.append("quasi_identifiers")
    if set(own["sensitive"]) != set(told["sensitive"]):
        return [*wrong, "sensitive"]
    return wrong + [
        f"{measure} of {column!r}"
        for column, measures in own["sensitive"].items()
        for measure, value in measures.items()
        if canonical_json(value) != canonical_json(told["sensitive"][column][measure])
    ]


def _people_problems(found: AnonymityReport, recorded: AnonymityReport, subject: str | None) -> list[str]:
    """Check the recorded counts of people for consistency, with each other and with the records of the table."""
    people = recorded.class_people
    if not (subject is None) == (recorded.k_people is None) == (people is None):
        return ["people are not counted as the settings require"]
    if recorded.k_people is None or people is None:
        return []
    problems = []
    if recorded.k_people > found.k:
        problems.append("more people are recorded for the smallest class than it has records")
    own = found.class_sizes
    is_possible = people.mean <= own.mean and people.median <= own.median and people.largest <= own.largest
    if people.smallest != recorded.k_people or not 1 <= people.smallest <= people.mean <= people.largest:
        is_possible = False
    return problems if is_possible else [*problems, "the recorded numbers of people in the classes are impossible"]


def _statistics_problems(n_released: int, statistics: Mapping[str, Any]) -> list[str]:
    """Check the figures that depend on the original for consistency."""
    n_rows, n_suppressed = statistics["n_rows"], statistics["n_suppressed"]
    losses = [statistics["information_loss"], *statistics.get("certainty_penalty", {}).values()]
    is_right = (
        statistics["n_released"] == n_released == n_rows - n_suppressed
        and n_suppressed >= 0
        and n_rows > 0
        and statistics["suppressed_share"] == n_suppressed / n_rows
        and all(0 <= loss <= 1 for loss in losses)
    )
    return [] if is_right else ["the recorded statistics are impossible for the records of the table"]


def _verdict_problems(manifest: Mapping[str, Any]) -> list[str]:
    """Decide the recorded limits again on the recorded figures, and check the conditions on the evidence."""
    described = manifest["policy"]
    policy = _policy_of(manifest)
    try:
        decided = [Verdict.from_json(verdict) for verdict in manifest["verdicts"]]
    except (TypeError, ValueError):
        return ["a recorded verdict is invalid"]
    if not policy.limits_of(manifest["stage"]):
        return [f"the policy has no limit on {manifest['stage']!r} records"]
    is_preset = described["changes"] == list(policy.changes)
    problems = [] if is_preset else ["the policy differs from the preset that it names"]
    if not set(described) <= set(policy.to_json()):
        problems.append("the policy has unknown keys")
    failed = [str(verdict.name)[:LONGEST_NAME] for verdict in decided if verdict.blocks]
    problems += [f"the condition {name!r} is recorded as failed" for name in failed]
    if not any(verdict.metric is None and verdict.name != EVERY_WAIVER_IS_USED for verdict in decided):
        problems.append("no condition on the evidence is recorded")
    by_metric = {verdict.metric: verdict for verdict in decided if verdict.metric is not None}
    for limit in policy.limits_of(manifest["stage"]):
        verdict = by_metric.get(limit.metric)
        if verdict is not None and verdict.waived_by is not None:
            problems += _waived_problems(manifest, limit, verdict)
        elif verdict is None or not _follows(verdict, limit, manifest):
            problems.append(f"the limit on {limit.metric!r} is not decided as recorded")
        elif verdict.severity == "error" and not verdict.passed:
            problems.append(f"the limit on {limit.metric!r} is not met")
    missing = lacks(manifest.get("declaration", {}), policy.required.declaration)
    problems += [f"the declaration lacks {', '.join(missing)}, which the policy demands"] if missing else []
    problems += withheld_problems(manifest)
    limited = [limit.metric for limit in policy.limits_of(manifest["stage"])]
    waived = [(verdict.waived_by, verdict.metric) for verdict in decided if verdict.waived_by is not None]
    recorded_waivers = [(waiver["file"], waiver["metric"]) for waiver in manifest["waivers"]]
    if Counter(waived) != Counter(recorded_waivers) or not all(metric in limited for _, metric in waived):
        problems.append("the waivers differ from those that the verdicts name")
    return problems


def _follows(verdict: Verdict, limit: Limit, manifest: Mapping[str, Any]) -> bool:
    """Return whether a verdict follows from the figures; if its figure is withheld, the verdict is only stated."""
    if verdict.limit != limit.value:
        return False
    if are_withheld(manifest) and is_withheld(limit.metric):
        return verdict.severity == limit.severity or (limit.beyond is not None and verdict.severity == "warn")
    outcome = limit.outcome({**_figures_of(manifest), limit.metric: verdict.value})
    severity = "warn" if outcome == "beyond" else limit.severity
    return (verdict.severity, verdict.passed) == (severity, outcome == "met")


def _figures_of(manifest: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the recorded figures on which limits are decided that other figures can decide."""
    required = RequiredSettings(**manifest["policy"]["required"])
    return {
        metric: value
        for name in (MPUCC, DISCLOSURE)
        for metric, value in figures_of(name, manifest["figures"], required).items()
    }


def _is_of_another(verdict: Verdict, limit: Limit) -> bool:
    return (verdict.severity, verdict.limit) != (limit.severity, limit.value)


def _policy_of(manifest: Mapping[str, Any]) -> Policy:
    described = manifest["policy"]
    limits = tuple(Limit(**recorded) for recorded in described["limits"])
    own = {name: described[name] for name in ("use_case", "known", "known_rows")}
    return Policy(limits, RequiredSettings(**described["required"]), **own)


def _waived_problems(manifest: Mapping[str, Any], limit: Limit, verdict: Verdict) -> list[str]:
    """Check the recorded waiver of a limit again, as of the day of the release."""
    recorded = [waiver for waiver in manifest["waivers"] if waiver["file"] == verdict.waived_by]
    if len(recorded) != 1:
        return [f"the limit on {limit.metric!r} is waived without a waiver"]
    outcome = limit.outcome({**_figures_of(manifest), limit.metric: verdict.value})
    if not verdict.passed or outcome != "not met" or _is_of_another(verdict, limit) or not limit.blocks:
        return [f"the limit on {limit.metric!r} is not decided as recorded"]
    on = datetime.fromisoformat(manifest["created_at"]).astimezone(UTC).date()
    try:
        waiver = Waiver.from_json(recorded[0])
        found = waiver.problems(manifest["release"], manifest["fingerprint"], limit, verdict.value, on)
    except InvalidSettingError as error:
        found = (str(error),)
    return [f"the waiver of the limit on {limit.metric!r} does not apply: {', '.join(found)}"] if found else []


def approval_problems(manifest: Mapping[str, Any], approvers: Sequence[Approver] | None) -> list[str]:
    """Decide again, as of the time of the release; who signed is known only with the file of the approvers."""
    n_required = max(_policy_of(manifest).required.approvals, 0 if approvers is None else 1)
    recorded = manifest.get("approvals", ())
    released = datetime.fromisoformat(manifest["created_at"])
    signers = None if approvers is None else [each.key for each in approvers if each.is_one_on(released.date())]
    problems = _unsigned(manifest, signers) if _policy_of(manifest).required.signed_waivers else []
    if problems or (not n_required and not recorded):
        return problems
    try:
        given = {f"approval {place}": Approval.of(each) for place, each in enumerate(recorded, start=1)}
    except ValueError:
        return ["a recorded approval is invalid"]
    decision = decide(subject_of(manifest), n_required, approvers, given, released)
    if len(decision.counted) < len(given) or not is_admitted(decision.verdicts):
        return [f"it was not approved as recorded: {decision.verdicts[-1].reason}"]
    return []


def _unsigned(manifest: Mapping[str, Any], signers: Sequence[PublicKey] | None) -> list[str]:
    """Return which waivers no approver signed; without their keys, which have no signature."""
    waivers = [Waiver.from_json(each) for each in manifest["waivers"]]
    found = [each for each in waivers if not (each.signature if signers is None else each.is_signed_by(signers))]
    return [f"no approver signed the waiver of the limit on {each.metric!r}" for each in found]
