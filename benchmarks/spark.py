"""The mpUCC search and Mondrian on a Spark Connect server of this machine, against the kernels, in one run.

    python benchmarks/spark.py [--parts search skew mondrian] [--json]

A server with two workers is started here (`local[2]`), so Java and the extra `spark` are needed. CPU seconds are those
of this process, of the server, and of all Python workers that it starts. Tables are generated codes: the search gets
0.8 synthetic and 0.8 original rows for each row of a table, 15 columns, and combinations of up to 3. The cost model is
fitted to the smallest and the largest size, and checked against the others. There is no network on one machine, so what
a cluster needs for it is in bytes, not in seconds. The exit code is 1 if a bar is missed.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from measurements import Measurements, add_json_option
from memory import peak_mib
from mondrian import skewed_columns

from privacy_assets import SparkEngine
from privacy_assets.anonymization.divided_cuts import partition_by
from privacy_assets.anonymization.kernels.models import row_models
from privacy_assets.anonymization.kernels.mondrian import Partition, make_dimensions, partition_rows
from privacy_assets.anonymization.kernels.mondrian_rows import pack_matrix
from privacy_assets.mpucc.divided_level import LARGEST_SHARE, BucketRows, Division, rows_per_tuple
from privacy_assets.mpucc.divided_search import DividedSearch
from privacy_assets.mpucc.kernels.search import SearchInput, SearchResult, find_mpuccs, search_levels
from privacy_assets.mpucc.placed_tables import ROWS_PER_BLOB, columns_to_place

MARK = "PRIVACY_ASSETS_BENCHMARK"
"""A variable in the environment of the server and its workers, by which they are found."""
MAX_SIZE = 3
# Distinct codes and how they are drawn: a few continuous columns, codes of areas and illnesses, and small categories.
KINDS = [
    (60_000, "lognormal"), (20_000, "lognormal"), (10_000, "zipf"), (1_500, "even"), (800, "zipf"), (400, "normal"),
    (200, "even"), (100, "normal"), (50, "normal"), (40, "zipf"), (30, "zipf"), (8, "normal"), (5, "even"), (3, "zipf"),
    (3, "even"),
]  # fmt: skip
PLANNED_ROWS = (10**9, 10**10)
PLANNED_ROWS_PER_TASK = 10**6
MAX_TIMES_SEARCH, MAX_FIXED_SECONDS, MAX_TIMES_MONDRIAN, MAX_MODEL_ERROR = 2, 60, 8, 0.25

Tables = tuple[list[np.ndarray], list[int], int, np.ndarray]


class Processes:
    """The processes of a server that was started here, its own children included."""

    def __init__(self) -> None:
        self.mark = uuid4().hex
        os.environ[MARK] = self.mark

    def own(self) -> Iterator[Path]:
        """Yield the folders of the processes under /proc."""
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit() and int(folder.name) != os.getpid():
                try:
                    if f"{MARK}={self.mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                        yield folder
                except OSError:
                    continue

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of this process and those, and of children that ended."""
        ticks = 0
        for folder in self.own():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += sum(int(field) for field in fields[11:15])
        return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")

    def peak_mib(self) -> float:
        """Return the largest peak of one of them, which is that of the server."""
        peaks = [0]
        for folder in self.own():
            try:
                lines = (folder / "status").read_text().splitlines()
            except OSError:
                continue
            peaks += [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
        return max(peaks) / 1024


@contextmanager
def spark_session(memory: str, directory: Path | None) -> Iterator[Any]:
    """Start a Spark Connect server, and stop it at the end."""
    from pyspark.sql import SparkSession

    files = Path(tempfile.mkdtemp(prefix="spark-", dir=directory))
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        # A server that lives for minutes would spend them compiling what one that lives for weeks compiles once.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "16",
        "spark.local.dir": files,
    }
    (files / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    os.environ |= {"SPARK_CONF_DIR": str(files), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    session = SparkSession.builder.remote("local[2]").getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(files, ignore_errors=True)


def draw_search(n_rows: int, seed: int = 0) -> Tables:
    """Draw codes of synthetic and original rows from the same distribution."""
    rng = np.random.default_rng(seed)
    n = int(1.6 * n_rows)
    columns = []
    for n_codes, kind in KINDS:
        if kind == "zipf":
            drawn = rng.zipf(1.4, n) % n_codes
        elif kind == "even":
            drawn = rng.integers(0, n_codes, n)
        else:
            drawn = (
                rng.lognormal(np.log(n_codes) - 3, 1.0, n)
                if kind == "lognormal"
                else rng.normal(0.5, 0.15, n) * n_codes
            )
        columns.append(np.clip(drawn, 0, n_codes - 1).astype(np.int32))
    return columns, [n_codes for n_codes, _ in KINDS], n // 2, np.ones(n, np.int32)


def draw_skewed(n_rows: int) -> Tables:
    """Draw columns in each of which one value has 90 % of the rows."""
    rng = np.random.default_rng(1)
    n_codes = [5_000, 900, 400, 100, 30, 2, 1]
    columns = [np.where(rng.random(n_rows) < 0.9, 0, rng.integers(0, n, n_rows)).astype(np.int32) for n in n_codes]
    return columns, n_codes, n_rows // 2, np.ones(n_rows, np.int32)


class Searched(NamedTuple):
    """A search by the engine: CPU seconds in all and up to the first level, and what the tasks got."""

    found: SearchResult
    cpu: float
    cpu_to_place: float
    n_tasks: int
    largest_task: int
    n_bytes: int


def search_by(engine: SparkEngine, tables: Tables, cpu_seconds: Callable[[], float]) -> Searched:
    """Run a search as `find_mpuccs_by` does, and keep the sizes of its tasks."""
    columns, _, _, weights = tables
    begin = cpu_seconds()
    with engine.place(columns_to_place(columns, weights, None)) as batches:
        search = DividedSearch(engine, batches, SearchInput(*tables, MAX_SIZE))
        to_place = cpu_seconds() - begin
        found = search_levels(search, 1, None)
    return Searched(found, cpu_seconds() - begin, to_place, search.n_tasks, search.largest_task, search.n_bytes_sent)


def are_equal(one: SearchResult, other: SearchResult) -> bool:
    """Compare all arrays."""
    arrays = [[*found[:4], *found.profile, *found[5:]] for found in (one, other)]
    return all(np.array_equal(own, same) for own, same in zip(*arrays, strict=True))


def are_equal_partitions(one: Partition, other: Partition) -> bool:
    """Compare classes and cuts; the order of the records within a class may differ."""
    if not (np.array_equal(one.begins, other.begins) and np.array_equal(one.cuts, other.cuts)):
        return False
    class_of = []
    for found in (one, other):
        sizes = np.diff(np.append(found.begins, len(found.records)))
        own = np.empty(len(found.records), np.int64)
        own[found.records] = np.repeat(np.arange(len(sizes)), sizes)
        class_of.append(own)
    return np.array_equal(*class_of)


def measure_search(
    options: argparse.Namespace, processes: Processes, engine: SparkEngine, started: float, measured: Measurements
) -> None:
    """Search tables of several sizes, and fit the cost model."""
    find_mpuccs(SearchInput(*draw_search(500), MAX_SIZE))
    print("search of 15 columns, up to 3; CPU seconds")
    print(f"{'rows':>12}{'kernel':>9}{'Spark':>9}{'of it placing':>15}{'tasks':>8}{'largest task':>14}{'B a row':>9}")
    kernel, spark, sent, driver = {}, {}, {}, {}
    for n_rows in sorted(options.rows):
        tables = draw_search(n_rows)
        n = len(tables[3])
        begin = time.process_time()
        expected = find_mpuccs(SearchInput(*tables, MAX_SIZE))
        kernel[n] = time.process_time() - begin
        done = search_by(engine, tables, processes.cpu_seconds)
        spark[n], sent[n], driver[n] = done.cpu, done.n_bytes, peak_mib()
        print(
            f"{n:>12,}{kernel[n]:>9.1f}{done.cpu:>9.1f}{done.cpu_to_place:>15.1f}{done.n_tasks:>8,}"
            f"{done.largest_task:>14,}{done.n_bytes / n:>9.0f}",
            flush=True,
        )
        measured.keep(**{
            f"search_{n}_kernel_cpu_s": kernel[n], f"search_{n}_cpu_s": done.cpu,
            f"search_{n}_bytes_sent": done.n_bytes, f"search_{n}_tasks": done.n_tasks,
            f"search_{n}_largest_task": done.largest_task,
            f"search_{n}_driver_peak_mib": driver[n],
        })  # fmt: skip
        measured.check(f"search of {n:,} rows: every array is that of the kernel", are_equal(done.found, expected))
        check_largest(measured, f"search of {n:,} rows", done.largest_task, options.rows_per_task)
    if len(spark) < 2:
        return
    small, large = min(spark), max(spark)
    slope = (spark[large] - spark[small]) / (large - small)
    times = slope * (large - small) / (kernel[large] - kernel[small])
    fixed = started + spark[small] - slope * small
    measured.keep(search_times_kernel=times, search_fixed_cpu_s=fixed)
    measured.check(
        f"search, marginal CPU: {times:.2f} times the kernel; at most {MAX_TIMES_SEARCH}", times <= MAX_TIMES_SEARCH
    )
    measured.check(
        f"search, fixed cost: {fixed:.0f} CPU s, {started:.0f} of them to start; at most {MAX_FIXED_SECONDS}",
        fixed <= MAX_FIXED_SECONDS,
    )
    sent_a_row = (sent[large] - sent[small]) / (large - small)
    driver_a_row = (driver[large] - driver[small]) * 2**20 / (large - small)
    for name, unit, runs, a_row in (("CPU", "s", spark, slope), ("bytes sent", "B", sent, sent_a_row)):
        for n in sorted(runs):
            if n not in (small, large):
                expected_cost = runs[small] + a_row * (n - small)
                error = abs(runs[n] / expected_cost - 1)
                words = (
                    f"cost model, {name} of {n:,} rows: {runs[n]:,.0f} {unit} where {expected_cost:,.0f} was expected"
                )
                measured.check(f"{words}; at most {MAX_MODEL_ERROR:.0%} away", error <= MAX_MODEL_ERROR)
    print(f"\ncost model of the search, {PLANNED_ROWS_PER_TASK:,} rows a task, from {small:,} to {large:,} rows")
    print(f"{'rows':>16}{'CPU hours':>11}{'shuffled GB':>13}{'tasks':>9}{'largest task':>14}{'driver GB':>11}")
    tables = draw_search(max(options.rows))
    for planned in PLANNED_ROWS:
        n_tasks, largest = planned_tasks(tables, planned)
        figures = {
            "cpu_hours": (fixed + slope * planned) / 3600,
            "shuffled_gb": sent_a_row * planned / 1e9,
            "tasks": n_tasks,
            "largest_task": largest,
            "driver_gb": (driver[large] * 2**20 + driver_a_row * (planned - large)) / 1e9,
        }
        print(
            f"{planned:>16,}{figures['cpu_hours']:>11,.1f}{figures['shuffled_gb']:>13,.0f}{n_tasks:>9,}{largest:>14,}"
            f"{figures['driver_gb']:>11,.0f}",
            flush=True,
        )
        measured.keep(**{f"model_{planned:.0e}_{name}".replace("+", ""): value for name, value in figures.items()})


def planned_tasks(tables: Tables, planned: int) -> tuple[int, int]:
    """Count the tasks of a larger table with the same shares of codes, and the rows of the largest one.

    A table of a thousandth of the rows is divided alike by tasks and blobs of a thousandth of the rows.
    """
    columns, n_codes, _, weights = tables
    scale = planned / len(weights)
    per_task = max(round(PLANNED_ROWS_PER_TASK / scale), 1)
    per_tuple = max(round(rows_per_tuple(-(-planned // ROWS_PER_BLOB), 1, by_person=False) / scale), 1)
    bucket_rows = BucketRows(columns, n_codes)
    n_tasks = largest = 0
    for size in range(1, MAX_SIZE + 1):
        combos = np.array(list(combinations(range(len(columns)), size)), np.int16)
        division = Division(bucket_rows, combos, per_task, per_tuple)
        n_tasks += sum(len(part.numbers) for part in division.parts)
        largest = max(largest, division.largest)
    return n_tasks, round(largest * scale)


def check_largest(measured: Measurements, words: str, largest: int, rows_per_task: int) -> None:
    """Check that no task got too many rows."""
    most = LARGEST_SHARE * rows_per_task
    measured.check(f"{words}: the largest task got {largest:,} rows; at most {most:,}", largest <= most)


def measure_skew(
    options: argparse.Namespace, processes: Processes, engine: SparkEngine, measured: Measurements
) -> None:
    """Search a table in each of whose columns one value has 90 % of the rows."""
    tables = draw_skewed(options.skewed_rows)
    done = search_by(engine, tables, processes.cpu_seconds)
    name = f"90 % one value, {options.skewed_rows:,} rows"
    print(f"\n{name}: {done.cpu:.1f} CPU s, {done.n_tasks:,} tasks, largest {done.largest_task:,} rows", flush=True)
    measured.keep(skewed_cpu_s=done.cpu, skewed_tasks=done.n_tasks, skewed_largest_task=done.largest_task)
    measured.check(
        f"{name}: every array is that of the kernel", are_equal(done.found, find_mpuccs(SearchInput(*tables, MAX_SIZE)))
    )
    check_largest(measured, name, done.largest_task, options.rows_per_task)


def measure_mondrian(
    options: argparse.Namespace, processes: Processes, engine: SparkEngine, measured: Measurements
) -> None:
    """Cut a table of 8 columns by rows."""
    codes, coordinates, n_values = skewed_columns(2_000, 8)
    # Both have loaded their compiled code before anything is measured.
    dimensions = make_dimensions(coordinates, n_values)
    small = [codes[:, j].copy() for j in range(8)]
    partition_by(replace(engine, rows_per_task=200), small, n_values, dimensions, row_models(10))
    partition_rows(pack_matrix(codes), dimensions, row_models(10))
    codes, coordinates, n_values = skewed_columns(options.mondrian_rows, 8)
    dimensions = make_dimensions(coordinates, n_values)
    columns = [codes[:, j].copy() for j in range(8)]
    begin = time.process_time()
    expected = partition_rows(pack_matrix(codes), dimensions, row_models(10))
    kernel = time.process_time() - begin
    # Each level of cuts reads all rows once, until a class fits a task, so tasks are as large as they are by default.
    engine = replace(engine, rows_per_task=SparkEngine.rows_per_task)
    begin = processes.cpu_seconds()
    found = partition_by(engine, columns, n_values, dimensions, row_models(10))
    spark = processes.cpu_seconds() - begin
    times = spark / kernel
    name = f"Mondrian, {options.mondrian_rows:,} rows"
    print(f"\n{name} x 8, k = 10: kernel {kernel:.1f} CPU s, Spark {spark:.1f}", flush=True)
    measured.keep(mondrian_kernel_cpu_s=kernel, mondrian_cpu_s=spark, mondrian_times_kernel=times)
    measured.check(f"{name}: the partition is that of the kernel", are_equal_partitions(found, expected))
    measured.check(f"{name}: {times:.1f} times the kernel; at most {MAX_TIMES_MONDRIAN}", times <= MAX_TIMES_MONDRIAN)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--parts", nargs="+", choices=["search", "skew", "mondrian"], default=["search", "skew", "mondrian"]
    )
    parser.add_argument(
        "--rows", type=int, nargs="+", default=[100_000, 300_000, 1_000_000], help="sizes of the tables"
    )
    parser.add_argument("--rows-per-task", type=int, default=400_000)
    parser.add_argument("--skewed-rows", type=int, default=1_600_000)
    parser.add_argument("--mondrian-rows", type=int, default=10_000_000)
    parser.add_argument("--memory", default="3g", help="of the server")
    parser.add_argument(
        "--directory", type=Path, help="where the server keeps its files; by default that for temporary files"
    )
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("spark", options)
    processes = Processes()
    begin = processes.cpu_seconds()
    with (
        spark_session(options.memory, options.directory) as session,
        tempfile.TemporaryDirectory(prefix="staging-", dir=options.directory) as staging,
    ):
        named = {"tag": "privacy_assets: benchmark", "staging": str(Path(staging).absolute())}
        engine = SparkEngine(session=session, rows_per_task=options.rows_per_task, **named)
        with engine.place({"number": np.arange(10)}) as batches:
            engine.collect(batches)
        started = processes.cpu_seconds() - begin
        print(f"server, session and workers started: {started:.1f} CPU s\n", flush=True)
        measured.keep(start_cpu_s=started)
        if "search" in options.parts:
            measure_search(options, processes, engine, started, measured)
        if "skew" in options.parts:
            measure_skew(options, processes, engine, measured)
        if "mondrian" in options.parts:
            measure_mondrian(options, processes, engine, measured)
        measured.keep(server_peak_mib=processes.peak_mib(), driver_peak_mib=peak_mib())
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
