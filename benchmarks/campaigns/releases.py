"""The work that the campaigns interrupt: storing a private table and writing a release.

The tables are ten, on both sides, and one of people with their rows.

Each attempt runs in a fork of this process. Afterwards `Place.problems` reports what remains: a directory that is only
half of a release, one that does not verify, an earlier release that is lost, and leftovers after a run that succeeded.
"""

import os
import shutil
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.contract.related import Child, RelatedTables, content_of, named
from privacy_assets.release.evidence import Evidence
from privacy_assets.release.files import ReleaseRecord, write_release
from privacy_assets.release.gate import Verdict, limit_verdict
from privacy_assets.release.manifest import MANIFEST_FILE
from privacy_assets.release.metrics import ANONYMITY, MPUCC
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.report import ReportMaterial
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.storage.durable_files import make_private_root

SIDES = ("synthetic", "anonymized")
OUTCOMES = (
    "partial",
    "unverified",
    "lost earlier releases",
    "leftovers",
    "unusable private storage",
    "failed next runs",
)
CONDITION = Verdict("the_table_is_as_recorded", True, "error", "the stored content is what the run recorded")


def tables(seed: int) -> list[pd.DataFrame]:
    """Make ten tables of different shapes: one row, one column, many columns, every kind of value, long texts."""
    random = np.random.default_rng(seed)

    def people(n_rows: int) -> pd.DataFrame:
        return pd.DataFrame(
            {
                "age": random.integers(18, 90, n_rows),
                "job": random.choice(["cook", "nurse", "=clerk", None], n_rows),
                "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n_rows), unit="D"),
                "cost": random.integers(0, 900, n_rows) / 10,
            }
        )

    wide = pd.DataFrame(random.integers(0, 5, (40, 60)), columns=[f"column {number}" for number in range(60)])
    long = people(30).assign(note=["x" * 20_000 + str(number) for number in range(30)])
    kinds = people(50).assign(
        flag=pd.array(random.choice([True, False, None], 50), dtype="boolean"),
        whole=pd.array(random.choice([1, 2, None], 50), dtype="Int64"),
        rank=pd.Categorical(random.choice(["low", "high"], 50), ["low", "high"], ordered=True),
        moment=pd.Timestamp("2020-01-01", tz="Europe/Amsterdam") + pd.to_timedelta(random.integers(0, 9, 50), unit="h"),
    )
    return [
        *(people(n_rows) for n_rows in (1, 2, 20, 200, 2_000)),
        people(30)[["age"]],
        people(30).rename(columns={"job": "a/b", "cost": "latest"}),
        wide,
        long,
        kinds,
    ]


def related(seed: int) -> RelatedTables:
    """Make people with their visits and what was prescribed in them, with the keys of a release."""
    random = np.random.default_rng(seed)
    people = pd.DataFrame({"person": np.arange(1, 201), "age": random.integers(18, 90, 200)})
    visits = pd.DataFrame({"person": np.sort(random.integers(1, 201, 700)), "day": random.integers(0, 900, 700)})
    visits["visit"] = np.arange(1, 701)
    drugs = pd.DataFrame({"visit": np.sort(random.integers(1, 701, 900)), "drug": random.integers(0, 40, 900)})
    children = {"visits": Child(visits, "person", "day", own_key="visit"), "drugs": Child(drugs, "visit", of="visits")}
    return RelatedTables(people, children, "person")


@dataclass
class Content:
    """The table that one attempt stores and releases."""

    side: str
    table: pd.DataFrame | RelatedTables
    artifact: Artifact
    record: ReleaseRecord

    @classmethod
    def of(cls, side: str, table: pd.DataFrame | RelatedTables) -> "Content":
        """Prepare a table for a side of a release, with verdicts that admit it."""
        if isinstance(table, RelatedTables):
            columns = [
                {"column": named(name, column), "table": name, "role": "other"}
                for name, own in table.tables.items()
                for column in own.columns
            ]
        else:
            columns = [{"column": name, "role": "other"} for name in table.columns]
        policy, measured = Policy((Limit("privacy_risk_score", 0.1),)), {"privacy_risk_score": 0.05}
        figures, settings = {MPUCC: measured}, {"split": {"seed": 0}}
        artifact = table.to_artifact() if isinstance(table, RelatedTables) else Artifact.of_table(table)
        if side == "anonymized":
            known, *_ = names = list(table.columns)
            found = anonymize(table, quasi_identifiers=[known], sensitive=names[1:], k=min(2, len(table)))
            artifact, table = found.to_artifact(), found.table
            labels = [name for name in table.columns if name not in names[1:]]
            report = verify_anonymity(table, labels, names[1:])
            policy = Policy((Limit("smallest_class", 2),))
            shares = {"share_in_homogeneous_classes": report.share_in_homogeneous_classes or 0.0}
            measured = {"smallest_class": float(report.k), **shares}
            figures = {"anonymity": report.to_header(), "statistics": found.stats, "model": found.model.to_json()}
            settings = {"anonymized": found.settings}
            role_of = dict.fromkeys(labels, "quasi_identifier") | dict.fromkeys(names[1:], "sensitive")
            columns = [{"column": name, "role": role_of[name]} for name in table.columns]
        evidence = Evidence(side, side, (), {}, {}, measured={ANONYMITY: measured, MPUCC: measured})
        decided = tuple(limit_verdict(limit, evidence) for limit in policy.limits_of(side))
        record = ReleaseRecord(
            *("people", side, None, "run", policy, (CONDITION, *decided), settings, figures, columns, 0),
            acknowledged=dict.fromkeys([each["column"] for each in columns], "Made for a campaign, of nobody"),
        )
        return cls(side, table, artifact, record)


def contents(seed: int, chance: Random, n: int) -> list[Content]:
    """Prepare up to ``n`` sides of the tables, drawn by chance, the related ones second.

    A single record has no classes of two.
    """
    chosen = [(side, table) for table in tables(seed) for side in SIDES if side == "synthetic" or len(table) > 1]
    chance.shuffle(chosen)
    chosen.insert(1, ("synthetic", related(seed)))
    return [Content.of(side, table) for side, table in chosen[: max(n, 1)]]


@dataclass
class Place:
    """A private directory and a directory of releases, and the content that must still exist after an attempt."""

    root: Path
    earlier: dict[Path, str] = field(default_factory=dict)

    @property
    def releases(self) -> Path:
        """Where the releases are."""
        return self.root / "releases" / "people"

    @property
    def stored(self) -> Path:
        """Where the private table is."""
        return self.root / "private" / "people" / "table.artifact"

    def write(self, content: Content) -> None:
        """Store the private table and release it, as the steps of a run do."""
        make_private_root(self.root / "private")
        write_artifact(self.stored, replace(content.artifact, made_of={"attempt": str(time.time_ns())}))
        make_private_root(self.root / "private")
        write_release(
            self.releases,
            content.table,
            content_of(content.table),
            content.record,
            ("parquet",) if isinstance(content.table, RelatedTables) else ("parquet", "csv"),
            ReportMaterial(),
        )

    def remember(self) -> None:
        """Record the present content as the content that later attempts must keep."""
        found = self.visible()
        self.earlier = {path: own.fingerprint or "" for path, own in found.items() if path.name != "latest"}

    def visible(self) -> dict:
        """Verify everything that a reader of the releases sees."""
        if not self.releases.exists():
            return {}
        return {
            path: verify_release(path, max_bytes=None)
            for path in sorted(self.releases.iterdir())
            if path.name[0] != "."
        }

    def problems(self, *, after_success: bool) -> Counter:
        """Count the problems."""
        found, counts = self.visible(), Counter()
        for path, verification in found.items():
            if not verification.verified:
                counts["unverified" if (path / MANIFEST_FILE).exists() else "partial"] += 1
        kept = [path for path, content in self.earlier.items() if path in found and found[path].fingerprint == content]
        counts["lost earlier releases"] += len(self.earlier) - len(kept)
        if self.earlier and self.releases / "latest" not in found:
            counts["lost earlier releases"] += 1
        if after_success:
            counts["leftovers"] += sum(1 for _ in self.root.rglob(".partial-*"))
            try:
                assert read_artifact(self.stored).digest
            except (OSError, ValueError, KeyError, AssertionError):
                counts["unusable private storage"] += 1
        return counts

    def prune(self, n_kept: int = 3) -> None:
        """Remove all but the last releases, so that verifying them takes no longer and longer."""
        latest = (self.releases / "latest").resolve()
        for path in [path for path in self.earlier if path != latest][:-n_kept]:
            shutil.rmtree(path)
        self.remember()


def forked(work: Callable[[], None], kill_after: float | None = None) -> int:
    """Run work in a fork of this process; return its exit status: 0, 1 for an exception, minus a signal."""
    with warnings.catch_warnings():
        # Python warns where there are other threads; the child only does this work, and ends.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            if "CAMPAIGN_DEBUG" not in os.environ:
                os.dup2(quiet, 2)
            work()
            status = 0
        except BaseException:  # noqa: BLE001 - whatever it was, the child ends here
            traceback.print_exc()
        finally:
            os._exit(status)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def summary(n_points: int, what: str, counts: Counter) -> str:
    """Report in one line what a campaign found."""
    return f"{n_points} points{what}: " + ", ".join(f"{counts[name]} {name}" for name in OUTCOMES)
