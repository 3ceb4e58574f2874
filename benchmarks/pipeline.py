"""Time the whole pipeline from a table to both releases through Dagster, by step, next to the kernels.

    python benchmarks/pipeline.py [--rows 100000 1000000] [--five-million] [--reidentification] [--step-processes]
                                 [--side anonymized] [--by-rows] [--spark] [--json [FILE]]

The tables are generated: 15 columns of mixed kinds and a person, who has one to many rows; numbers, texts and
categories are skewed, some values are missing, and one sensitive column is continuous. Eight columns are
quasi-identifiers, a class has at least 5 people, and both sides are released as Parquet and CSV. Each number of rows
has a separate process, in which every step runs once on a small table before anything is measured, so that compiled
code is loaded. A step counts from its start to its end: reading its inputs, its body, and storing its outputs.

The kernels are those that every pipeline needs, on the same codes: `factorize` of every column, one mpUCC
search of the synthetic records against the originals, one cut into classes by people, and the evidence of disclosure.
The run calls more of them (eight more searches for the control, others of changed columns for the report, and the
evidence on planted copies), so the time inside all functions of the ``kernels`` folders, and the ratio to it, are shown
as well.
Fingerprints are compared with SHA-256 of the columns' own bytes, and `admit` with pandas' `factorize` of its columns.
Re-identification is left out by default (``reidentification.py`` has it).

In one process, the peak of a step includes memory that earlier steps freed and the process kept. With
``--step-processes`` each step has a separate process, as with Dagster's multiprocess executor: its peak is that of
the step alone, and its CPU seconds include importing Dagster and loading the definitions. Kernels are not timed then.
The bars on memory apply to these peaks, as do the lines of the check `enough_memory` (not with `--by-rows`); all
others apply to the run in one process. With ``--spark`` (Java and the extra `spark` are needed), every step runs once
without an engine and once with two workers of a Spark Connect server, which also read the table, and whose CPU seconds
are not counted: what is left is the work of the process of the run. The exit code is 1 if a bar is missed.
"""

import argparse
import cProfile
import ctypes
import hashlib
import importlib
import itertools
import json
import math
import os
import pkgutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from measurements import Measurements, add_json_option
from memory import peak_mib, start_peak

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

ROWS, MOST_ROWS, WARM_UP_ROWS = (100_000, 1_000_000), 5_000_000, 3_000
MOST_GENERATED = 10_000_000
NAME, K = "people", 5
RATIO_BAR, EXPONENT_BAR, FINGERPRINT_BAR, ADMIT_BAR = 5.0, 1.1, 3.0, 2.5
PEAK_BAR_MIB, LARGEST_PEAK_BAR_MIB = 1.2e9 / 2**20, 12e9 / 2**20
LEAST_THAT_LEAVES, TASKS = 2 / 3, 4
LARGE = 500_000
"""From here on, fixed costs are small, and a bar on a ratio is checked."""

FEWEST_ROWS_OF_LINE = 400_000
"""From here on, the lines of `enough_memory` are checked."""

REASON = "generated for a benchmark, no person decided"
CONTRACT: dict[str, dict[str, Any]] = {
    "patient": {"type": "text", "role": "direct_identifier", "person": True},
    "birth_year": {"type": "integer", "role": "quasi_identifier", "min": 1900, "max": 2020},
    "sex": {"type": "category", "role": "quasi_identifier", "categories": ["sex 0", "sex 1", "sex 2"]},
    "region": {"type": "category", "role": "quasi_identifier"},
    "postcode": {"type": "text", "role": "quasi_identifier"},
    "marital": {"type": "category", "role": "quasi_identifier", "nullable": True},
    "occupation": {"type": "text", "role": "quasi_identifier"},
    "height": {"type": "integer", "role": "quasi_identifier"},
    "admitted": {"type": "datetime", "role": "quasi_identifier"},
    "diagnosis": {"type": "category", "role": "sensitive"},
    "cost": {"type": "float", "role": "sensitive", "min": 0, "leaves_as_is": REASON},
    "visits": {"type": "integer", "role": "other", "nullable": True},
    "score": {"type": "float", "role": "other", "nullable": True},
    "smoker": {"type": "boolean", "role": "other"},
    "insurer": {"type": "category", "role": "other"},
    "ward": {"type": "text", "role": "other"},
}


def generate(n_rows: int, seed: int = 0):
    """Make a table of people with one to many rows each; the columns of a person do not change between rows."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    n_people = max(int(n_rows * 0.6), 1)
    whose = np.concatenate([np.arange(n_people), (rng.power(3, n_rows - n_people) * n_people).astype(np.int64)])
    rng.shuffle(whose)

    def skewed(n_values: int, size: int) -> np.ndarray:
        return (rng.zipf(1.4, size) - 1) % n_values

    def texts(prefix: str, codes: np.ndarray) -> pd.Series:
        values = [f"{prefix} {number}" for number in range(int(codes.max()) + 1)]
        # Plain text, as a CSV file or a database gives it; the contract makes categories of some.
        return pd.Series(pd.Categorical.from_codes(codes, values)).astype("str")

    marital = np.where(rng.random(n_people) < 0.05, -1, skewed(5, n_people))
    days = np.minimum(rng.lognormal(5, 1, n_rows), 1500).astype("timedelta64[D]")
    visits = pd.array(skewed(60, n_rows), dtype="Int64")
    visits[rng.random(n_rows) < 0.1] = pd.NA
    score = np.round(rng.normal(50, 12, n_rows), 1)
    score[rng.random(n_rows) < 0.03] = np.nan
    return pd.DataFrame(
        {
            "patient": texts("patient", whose),
            "birth_year": np.clip(rng.normal(1975, 18, n_people), 1900, 2020).astype(np.int64)[whose],
            "sex": texts("sex", rng.integers(0, 3, n_people)[whose]),
            "region": texts("region", skewed(40, n_people)[whose]),
            "postcode": texts("postcode", skewed(1000, n_people)[whose]),
            "marital": texts("status", marital[whose]),
            "occupation": texts("occupation", skewed(300, n_people)[whose]),
            "height": np.clip(rng.normal(170, 10, n_people), 120, 220).astype(np.int64)[whose],
            "admitted": np.datetime64("2020-01-01", "us") + days,
            "diagnosis": texts("diagnosis", skewed(200, n_rows)),
            "cost": np.round(rng.lognormal(6, 1.2, n_rows), 2),
            "visits": visits,
            "score": score,
            "smoker": rng.random(n_rows) < 0.2,
            "insurer": texts("insurer", skewed(12, n_rows)),
            "ward": texts("ward", skewed(80, n_rows)),
        }
    )


class Asked(NamedTuple):
    """The optional parts of the release, or not, and the number of its columns."""

    reidentification: bool
    side: str | None
    columns: int = len(CONTRACT) - 1
    by_rows: bool = False
    spark: bool = False

    @property
    def contract(self) -> dict[str, dict[str, Any]]:
        """The person, and every second column or all, in their order, so that kinds and roles stay mixed."""
        names = list(CONTRACT)[1:]
        kept = sorted(names, key=lambda name: (names.index(name) % 2, names.index(name)))[: self.columns]
        first = [] if self.by_rows else ["patient"]
        return {name: own for name, own in CONTRACT.items() if name in first or name in kept}


def write_table(n_rows: int, root: Path, asked: Asked) -> None:
    """Write a table with the columns that are asked for, in blocks of which each has its own people."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for block, begin in enumerate(range(0, n_rows, MOST_GENERATED)):
        rows = generate(min(MOST_GENERATED, n_rows - begin), seed=block)[list(asked.contract)]
        if block and "patient" in rows:
            rows["patient"] = f"{block} " + rows["patient"]
        table = pa.Table.from_pandas(rows, preserve_index=False)
        writer = writer or pq.ParquetWriter(root / "people.parquet", table.schema)
        writer.write_table(table)
    writer.close()


def definitions(root: Path, asked: Asked):
    """Build the definitions of a release of ``root / people.parquet``, of both sides unless one is asked for."""
    import pyarrow.parquet as pq

    from privacy_assets.disclosure.settings import DisclosureSettings
    from privacy_assets.engine.spark import SparkEngine
    from privacy_assets.orchestration.factory import build_release_definitions
    from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
    from privacy_assets.orchestration.settings.sources import TableFile
    from privacy_assets.orchestration.settings.spark_source import SparkSource
    from privacy_assets.orchestration.settings.synthetic import Synthesis
    from privacy_assets.release.policy import Limit, Policy, RequiredSettings

    # With a task for the whole table, a cluster would not be asked.
    table = str(root / "people.parquet")
    rows_per_task = max(pq.read_metadata(table).num_rows // TASKS, 1)
    limits = [
        Limit("leakage_detected", 0),
        Limit("privacy_risk_score", 0.1, severity="warn"),
        Limit("rare_values_released", 0, severity="warn"),
    ]
    if asked.side == "anonymized":
        limits = []
    if asked.side != "synthetic":
        limits += [Limit("smallest_class", K), Limit("share_in_homogeneous_classes", 0, severity="warn")]
    if asked.reidentification:
        limits.append(Limit("max_reidentification_probability", 1 / K))
    return build_release_definitions(
        NAME,
        contract={"columns": asked.contract, "one_row_per_person": asked.by_rows},
        # The small table of the warm-up may be released, although copies of many of its people would go unnoticed.
        policy=Policy(tuple(limits), RequiredSettings(detectable_share=None)),
        source=SparkSource(path=table) if asked.spark else TableFile(table),
        synthetic=None if asked.side == "anonymized" else Synthesis("gaussian_copula", seed=0),
        # With seed 0, the 10,000 people who are drawn of 1,000,000 rows raise a false alarm (inference by the nearest
        # record, p = 0.001 on the quasi-identifiers); 60,000 others do not (p from 0.23 to 0.82 in each 10,000).
        disclosure=None if asked.side == "anonymized" else DisclosureSettings(seed=1),
        anonymized=None if asked.side == "synthetic" else AnonymizationSettings(),
        formats=("parquet", "csv"),
        engine=SparkEngine("local[2]", rows_per_task=rows_per_task, staging=str(root), writes_releases=True)
        if asked.spark
        else None,
        private_path=str(root / "private"),
        release_path=str(root / "releases"),
    )


class StepClock:
    """CPU seconds and the peak of each step of a run, from Dagster's events."""

    def __init__(self) -> None:
        self.steps: dict[str, tuple[float, float]] = {}
        self.failed: list[str] = []
        self.own_seconds = 0.0
        self._start = 0.0

    def __call__(self, entry: Any) -> None:
        """Take an event; Dagster calls this for each."""
        event = entry.dagster_event
        if event is None or event.step_key is None:
            return
        if event.is_step_start:
            before = time.process_time()
            give_back_memory()
            start_peak()
            self._start = time.process_time()
            self.own_seconds += self._start - before
        if event.is_step_success:
            step = event.step_key.removeprefix(f"{NAME}__")
            self.steps[step] = (time.process_time() - self._start, peak_mib())
        if event.is_step_failure:
            self.failed.append(event.step_key)


STEPS_FILE, ASKED_VARIABLE = "steps.jsonl", "PRIVACY_ASSETS_BENCHMARK"


def job_with_step_processes():
    """Build the job of the folder in the environment; each step runs in a process that calls this again."""
    import dagster as dg

    asked, folder = json.loads(os.environ[ASKED_VARIABLE])
    root = Path(folder)

    @dg.success_hook
    def keep_figures(context: dg.HookContext) -> None:
        step = context.step_key.removeprefix(f"{NAME}__")
        with (root / STEPS_FILE).open("a") as file:
            file.write(json.dumps([step, time.process_time(), peak_mib()]) + "\n")

    one_at_a_time = dg.multiprocess_executor.configured({"max_concurrent": 1})
    built = dg.Definitions.merge(definitions(root, Asked(*asked)), dg.Definitions(executor=one_at_a_time))
    return built.resolve_job_def(f"{NAME}_release").with_hooks({keep_figures})


def run_step_processes(root: Path, asked: Asked) -> dict[str, tuple[float, float]]:
    """Materialize everything with a process for each step; return CPU seconds and the peak of each."""
    import dagster as dg

    os.environ[ASKED_VARIABLE] = json.dumps([asked, str(root)])
    # Python keeps the compiled modules of a package that is installed; otherwise each step would compile them again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    (root / "home").mkdir()
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    with dg.DagsterInstance.local_temp(str(root / "home")) as instance:
        job = dg.reconstructable(job_with_step_processes)
        with dg.execute_job(job, instance=instance, run_config=quiet) as result:
            if not result.success:
                failures = [
                    event.event_specific_data.error_display_string for event in result.get_step_failure_events()
                ]
                raise SystemExit("\n".join(["The run failed.", *failures]))
    rows = [json.loads(line) for line in (root / STEPS_FILE).read_text().splitlines()]
    return {step: (seconds, peak) for step, seconds, peak in rows}


class KernelClock:
    """CPU seconds while any thread is inside a function of the ``kernels`` folders."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._start, self._lock = 0, 0.0, threading.Lock()

    def watch_every_module(self) -> None:
        """Replace the names of kernels in all modules that use them, so that calls are timed."""
        import privacy_assets

        for found in pkgutil.walk_packages(privacy_assets.__path__, "privacy_assets."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
        for place, module in list(sys.modules.items()):
            if not place.startswith("privacy_assets.") or ".kernels" in place:
                continue
            for name, value in list(vars(module).items()):
                is_code = callable(value) and not isinstance(value, type)
                if is_code and ".kernels" in str(getattr(value, "__module__", "")):
                    setattr(module, name, self._timed(value))

    def _timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            with self._lock:
                if not self._depth:
                    self._start = time.process_time()
                self._depth += 1
            try:
                return function(*arguments, **named)
            finally:
                with self._lock:
                    self._depth -= 1
                    if not self._depth:
                        self.seconds += time.process_time() - self._start

        return timed


def give_back_memory() -> None:
    """Return what the step before freed to the system, so that it does not count for the next."""
    import gc

    import pyarrow as pa

    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)


def run(root: Path, asked: Asked) -> StepClock:
    """Materialize everything in one run of the in-process executor."""
    import dagster as dg

    clock = StepClock()
    run_id = str(uuid.uuid4())
    built = definitions(root, asked)
    (root / "home").mkdir()
    with dg.DagsterInstance.local_temp(str(root / "home")) as instance:
        instance.add_event_listener(run_id, clock)
        result = built.resolve_job_def(f"{NAME}_release").execute_in_process(
            instance=instance, run_id=run_id, raise_on_error=False
        )
    if not result.success:
        raise SystemExit(f"The run failed in {clock.failed}.")
    return clock


@contextmanager
def cpu_seconds(into: dict[str, float], name: str) -> Iterator[None]:
    start = time.process_time()
    yield
    into[name] = time.process_time() - start


def best(function: Callable[[], Any], repeats: int = 3) -> float:
    """Return the CPU seconds of the fastest of some calls."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def kernels(table, root: Path) -> dict[str, float]:
    """Time the kernels alone on the table and on the codes that the run stored."""
    import dagster as dg
    import pandas as pd

    from privacy_assets.anonymization.classes_by_cuts import code_table, cut_table
    from privacy_assets.anonymization.settings import AnonymizeSettings
    from privacy_assets.disclosure.people import draw_people, people_to_examine
    from privacy_assets.disclosure.pooled_records import pool_records
    from privacy_assets.disclosure.scores import Attack, Workers, gather_evidence
    from privacy_assets.disclosure.settings import DisclosureSettings
    from privacy_assets.mpucc.preprocess import PreprocessedTables, separate_people
    from privacy_assets.mpucc.results import SyntheticSearch
    from privacy_assets.mpucc.settings import MpuccSettings
    from privacy_assets.orchestration.private.resources import PrivateParquetIOManager

    seconds: dict[str, float] = {}
    with cpu_seconds(seconds, "factorize"):
        for name in table:
            pd.factorize(table[name])
    storage = PrivateParquetIOManager(str(root / "private"))

    def stored(stage: str) -> Any:
        return storage.load(dg.AssetKey([NAME, stage]), None)

    tables = PreprocessedTables.from_artifact(stored("preprocessed"))
    search = SyntheticSearch(tables, MpuccSettings(max_baseline_cols=3), 2, None)
    with cpu_seconds(seconds, "mpucc search"):
        search.against(tables.original, "original", with_profile=True)
    del tables, search
    sides = {name: stored(name) for name in ("original", "synthetic", "control")}
    records = pool_records(*separate_people(sides, "patient"))
    shape = DisclosureSettings()
    n_people = people_to_examine(records.n_real, records.n_synthetic, shape.sample)
    rows = draw_people(records, n_people, np.random.default_rng(0))
    attack = Attack(np.arange(len(records.columns)), shape.max_known, rows)
    with cpu_seconds(seconds, "disclosure"), Workers(2, None) as workers:
        gather_evidence(records, attack, workers)
    del sides, records
    known = tuple(name for name, own in CONTRACT.items() if own["role"] == "quasi_identifier")
    settings = AnonymizeSettings(quasi_identifiers=known, k=K, subject="patient")
    coded = code_table(table, settings)
    with cpu_seconds(seconds, "classes by people"):
        cut_table(coded, settings, 2, None)
    return seconds


def table_bytes(table) -> list[Any]:
    """Return the values of the columns as one buffer each, texts and categories as UTF-8."""
    import pyarrow as pa

    buffers = []
    for name in table:
        array = pa.Array.from_pandas(table[name])
        array = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        buffers += [memoryview(each) for each in array.buffers() if each is not None]
    return buffers


def parts(table) -> dict[str, float]:
    """Time `fingerprint` against its hash, and `admit` against `factorize`."""
    import pandas as pd

    from privacy_assets.contract.contract import TableContract
    from privacy_assets.storage.fingerprint import fingerprint

    contract = TableContract.from_mapping({"columns": CONTRACT})
    admitted = contract.admit(table)
    buffers = table_bytes(admitted)

    def hash_bytes() -> None:
        sha = hashlib.sha256()
        for each in buffers:
            sha.update(each)

    def factorize() -> None:
        for name in table:
            pd.factorize(table[name])

    return {
        "sha256": best(hash_bytes),
        "fingerprint": best(lambda: fingerprint(admitted)),
        "factorize": best(factorize),
        "admit": best(lambda: contract.admit(table)),
    }


def child_with_step_processes(n_rows: int, asked: Asked) -> None:
    """Measure each step of one number of rows in a process of its own; print the figures as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        # Whatever is compiled here is in Numba's cache for the processes of the steps.
        write_table(WARM_UP_ROWS, Path(folder), asked)
        run(Path(folder), asked._replace(spark=False))
    with tempfile.TemporaryDirectory() as folder:
        write_table(n_rows, Path(folder), asked)
        give_back_memory()
        steps = run_step_processes(Path(folder), asked)
    found = {"steps": steps}
    if asked.spark:
        with tempfile.TemporaryDirectory() as folder:
            write_table(n_rows, Path(folder), asked)
            give_back_memory()
            found["without"] = run_step_processes(Path(folder), asked._replace(spark=False))
    print(json.dumps(found))


def child(n_rows: int, asked: Asked, profile: Path | None) -> None:
    """Measure one number of rows in this process; print the figures as JSON."""
    inside = KernelClock()
    inside.watch_every_module()
    with tempfile.TemporaryDirectory() as folder:
        write_table(WARM_UP_ROWS, Path(folder), asked)
        run(Path(folder), asked)
    with tempfile.TemporaryDirectory() as folder:
        write_table(n_rows, Path(folder), asked)
        profiler = cProfile.Profile()
        inside.seconds = 0.0
        start = time.process_time()
        if profile is not None:
            profiler.enable()
        clock = run(Path(folder), asked)
        if profile is not None:
            profiler.disable()
            profiler.dump_stats(profile)
        total, in_kernels = time.process_time() - start - clock.own_seconds, inside.seconds
        give_back_memory()
        table = generate(n_rows)
        alone = kernels(table, Path(folder))
        found = {"total": total, "in_kernels": in_kernels, "steps": clock.steps, "kernels": alone}
        print(json.dumps(found | {"parts": parts(table)}))


def measure(n_rows: int, options: argparse.Namespace) -> dict[str, Any]:
    arguments = [sys.executable, __file__, "--child", str(n_rows)]
    arguments += ["--reidentification"] if options.reidentification else []
    arguments += ["--side", options.side] if options.side else []
    arguments += ["--by-rows"] if options.by_rows else []
    arguments += ["--step-processes"] if options.step_processes else []
    arguments += ["--spark"] if options.spark else []
    arguments += ["--columns", str(options.columns)]
    arguments += ["--profile", str(options.profile)] if options.profile else []
    done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{n_rows:,} rows failed.")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    show(n_rows, found)
    return found


def show(n_rows: int, found: dict[str, Any]) -> None:
    without = "  without: CPU s  peak MiB" if "without" in found else ""
    print(f"\n{n_rows:,} rows\n{'step':<48}{'CPU s':>9}{'peak MiB':>10}{without}")
    for step, (seconds, peak) in found["steps"].items():
        without = "{:>17.2f}{:>10.0f}".format(*found["without"][step]) if "without" in found else ""
        print(f"{step:<48}{seconds:>9.2f}{peak:>10.0f}{without}", flush=True)
    if "without" in found:
        print(f"{share_that_left(found):.0%} of the CPU seconds left the process of the run", flush=True)
    if "kernels" not in found:
        return
    alone = sum(found["kernels"].values())
    print(f"{'the whole run':<48}{found['total']:>9.2f}")
    print(f"{'of it inside kernels':<48}{found['in_kernels']:>9.2f}")
    print(f"{'kernels alone':<48}{alone:>9.2f}  {found['kernels']}")
    print(f"{'the run, times its kernels':<48}{found['total'] / alone:>9.2f}")
    without = alone - found["kernels"]["disclosure"]
    print(f"{'the run, times its kernels but disclosure':<48}{found['total'] / without:>9.2f}")
    print(f"{'the run, times all kernels that it calls':<48}{found['total'] / found['in_kernels']:>9.2f}")
    own = found["parts"]
    print(f"fingerprint {own['fingerprint']:.3f} s, SHA-256 {own['sha256']:.3f} s: {fingerprint_ratio(found):.2f}")
    print(f"admit {own['admit']:.3f} s, factorize {own['factorize']:.3f} s: {admit_ratio(found):.2f}", flush=True)


def share_that_left(found: dict[str, Any]) -> float:
    with_engine, without = (sum(seconds for seconds, _ in found[name].values()) for name in ("steps", "without"))
    return 1 - with_engine / without


def fingerprint_ratio(found: dict[str, Any]) -> float:
    return float(found["parts"]["fingerprint"] / found["parts"]["sha256"])


def admit_ratio(found: dict[str, Any]) -> float:
    return float(found["parts"]["admit"] / found["parts"]["factorize"])


def check_bars(measured: Measurements, found: dict[int, dict[str, Any]]) -> None:
    for n_rows, own in found.items():
        alone = sum(own["kernels"].values())
        measured.keep(
            **{
                f"run_cpu_seconds_{n_rows}": own["total"],
                f"kernels_cpu_seconds_{n_rows}": alone,
                f"inside_kernels_cpu_seconds_{n_rows}": own["in_kernels"],
                f"fingerprint_times_sha256_{n_rows}": fingerprint_ratio(own),
                f"admit_times_factorize_{n_rows}": admit_ratio(own),
            },
            **{f"{step}_cpu_seconds_{n_rows}": seconds for step, (seconds, _) in own["steps"].items()},
        )
        if n_rows < LARGE:
            continue
        what = f"{n_rows:,} rows"
        measured.check(
            f"{what}: the run takes at most {RATIO_BAR:g} times its kernels", own["total"] <= RATIO_BAR * alone
        )
        measured.check(
            f"{what}: fingerprint at most {FINGERPRINT_BAR:g} times SHA-256", fingerprint_ratio(own) <= FINGERPRINT_BAR
        )
        measured.check(f"{what}: admit at most {ADMIT_BAR:g} times factorize", admit_ratio(own) <= ADMIT_BAR)
    check_exponents(measured, {n_rows: own["total"] for n_rows, own in found.items()})


def check_exponents(measured: Measurements, seconds: dict[int, float]) -> None:
    for small, large in itertools.pairwise(sorted(seconds)):
        exponent = math.log(seconds[large] / seconds[small]) / math.log(large / small)
        print(f"exponent from {small:,} to {large:,} rows: {exponent:.3f}")
        measured.keep(**{f"exponent_{small}_to_{large}": exponent})
        measured.check(f"exponent from {small:,} to {large:,} rows at most {EXPONENT_BAR}", exponent <= EXPONENT_BAR)


def check_memory(measured: Measurements, found: dict[int, dict[str, Any]], n_columns: int | None) -> None:
    from privacy_assets.pipeline.memory_of_stages import BYTES_PER_CELL, FLOOR, WIDEST_MEASURED

    for n_rows, own in found.items():
        peaks = {step: peak for step, (_, peak) in own["steps"].items()}
        measured.keep(**{f"{step}_peak_mib_{n_rows}": peak for step, peak in peaks.items()})
        if n_rows >= LARGE:
            most = PEAK_BAR_MIB if n_rows <= ROWS[-1] else LARGEST_PEAK_BAR_MIB
            measured.check(f"{n_rows:,} rows: no step above {most:,.0f} MiB", max(peaks.values()) <= most)
        # Rows alone need less than people.
        for step in BYTES_PER_CELL.keys() & peaks if n_columns and n_rows >= FEWEST_ROWS_OF_LINE else ():
            line = (FLOOR + n_rows * n_columns * BYTES_PER_CELL[step]) / 2**20
            what = f"{n_rows:,} rows: {step} needs the {line:,.0f} MiB of enough_memory but for a tenth"
            is_right = line <= 1.1 * peaks[step]
            if n_rows >= MOST_ROWS and n_columns == WIDEST_MEASURED:
                what, is_right = f"{what}, and at most as much more", is_right and line >= 0.9 * peaks[step]
            measured.check(what, is_right)
    check_exponents(
        measured, {n_rows: sum(spent for spent, _ in own["steps"].values()) for n_rows, own in found.items()}
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--five-million", action="store_true", help=f"also {MOST_ROWS:,} rows")
    parser.add_argument("--reidentification", action="store_true", help="also limit and assess re-identification")
    parser.add_argument("--side", choices=("synthetic", "anonymized"), help="one side of the release alone")
    parser.add_argument("--by-rows", action="store_true", help="each row is a person, with --step-processes")
    parser.add_argument("--step-processes", action="store_true", help="a process for each step, to measure memory")
    parser.add_argument("--spark", action="store_true", help="also on a Spark Connect server; implies --step-processes")
    parser.add_argument("--columns", type=int, default=len(CONTRACT) - 1, help="columns besides the person")
    parser.add_argument("--profile", type=Path, help="write the profile of the (last) run to this file")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    add_json_option(parser)
    options = parser.parse_args()
    options.step_processes |= options.spark
    asked = Asked(options.reidentification, options.side, options.columns, options.by_rows, options.spark)
    if options.child and options.step_processes:
        child_with_step_processes(options.child, asked)
        return 0
    if options.child:
        child(options.child, asked, options.profile)
        return 0
    sizes = [*options.rows, *([MOST_ROWS] if options.five_million else [])]
    measured = Measurements("pipeline", options)
    found = {n_rows: measure(n_rows, options) for n_rows in sizes}
    if options.spark:
        for n_rows, own in found.items():
            share = share_that_left(own)
            measured.keep(**{f"share_that_left_{n_rows}": share})
            measured.check(
                f"{n_rows:,} rows: at least 2 of 3 CPU seconds leave the process", share >= LEAST_THAT_LEAVES
            )
    elif options.step_processes:
        check_memory(measured, found, None if options.by_rows else options.columns + 1)
    else:
        check_bars(measured, found)
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
