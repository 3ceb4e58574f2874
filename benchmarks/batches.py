"""The anonymized side in batches: peak memory, CPU seconds by step, and both next to those of the frame.

A directory of Parquet files of generated people is admitted by its contract, cut into classes, labeled, measured,
written in parts and read back: `anonymize_dataset`. Each size runs in a separate process, because a peak includes the
memory that a process keeps. With ``--frame-rows``, the same table is also read at once and anonymized by `anonymize`.

    python benchmarks/batches.py --rows 1000000 --frame-rows 1000000
    python benchmarks/batches.py --rows 1000000 10000000 50000000 --directory /somewhere/large
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from measurements import Measurements, add_json_option
from memory import OwnPeak, peak_mib, start_peak

from privacy_assets import TableContract, anonymize, anonymize_dataset
from privacy_assets.anonymization import anonymize as cuts
from privacy_assets.anonymization import dataset as steps
from privacy_assets.storage.fingerprint import fingerprint

ROWS_PER_FILE = 2**20
MAX_GIB, MAX_BYTES_PER_ROW, MAX_EXPONENT = 8, 100, 1.1
K = 5
COLUMNS = {
    "birth_year": ("integer", lambda random, n: random.integers(1930, 2010, n)),
    "zip": ("integer", lambda random, n: (random.pareto(1.2, n) * 300).astype(np.int64) % 10_000),
    "height": ("integer", lambda random, n: random.normal(170, 10, n).astype(np.int64)),
    "income": ("integer", lambda random, n: (random.lognormal(10, 0.6, n) // 100).astype(np.int64) % 5_000),
    "admitted": ("integer", lambda random, n: random.integers(0, 3_650, n)),
    "sex": ("category", lambda random, n: random.choice(["f", "m", "x"], n, p=[0.5, 0.49, 0.01])),
    "region": ("category", lambda random, n: np.array([f"r{i:02}" for i in range(20)])[random.integers(0, 20, n)]),
    "job": ("category", lambda random, n: np.array([f"job {i:03}" for i in range(100)])[random.integers(0, 100, n)]),
}
CONTRACT = TableContract.from_mapping(
    {
        "one_row_per_person": True,
        "columns": {
            **{name: {"type": kind, "role": "quasi_identifier"} for name, (kind, _) in COLUMNS.items()},
            "diagnosis": {"type": "category", "role": "sensitive"},
        },
    }
)


def write_source(directory: Path, n_rows: int, seed: int) -> None:
    """Write people in files of a million rows."""
    directory.mkdir(parents=True)
    for place, begin in enumerate(range(0, n_rows, ROWS_PER_FILE)):
        random, n = np.random.default_rng((seed, place)), min(ROWS_PER_FILE, n_rows - begin)
        columns = {name: pa.array(draw(random, n)) for name, (_, draw) in COLUMNS.items()}
        columns["diagnosis"] = pa.array([f"d{i:02}" for i in range(50)]).take(pa.array(random.integers(0, 50, n)))
        pq.write_table(pa.table(columns), directory / f"part-{place:05}.parquet")


def timed(seconds: dict[str, float], name: str, function, *arguments, **named):
    """Call a step, and remember the CPU seconds and the peak since the process started."""
    begin = time.process_time()
    result = function(*arguments, **named)
    seconds[name] = seconds.get(name, 0.0) + time.process_time() - begin
    print(f"STEP {name.replace(' ', '_')} {seconds[name]:.1f} {peak_mib():.0f}", flush=True)
    return result


def run_in_batches(source: Path, target: Path) -> None:
    """Run `anonymize_dataset`, with the CPU seconds of each of its steps."""
    seconds: dict[str, float] = {}
    for name, owner, function in (
        ("admit", steps, "admit_parquet"),
        ("cut and label", steps, "anonymize_with"),
        ("measure", steps, "_measured"),
        ("write parts", steps, "write_parts"),
        ("read back", steps, "_require_same"),
        ("of it cut", cuts, "cut_table"),
    ):
        setattr(owner, function, partial(timed, seconds, name, getattr(owner, function)))
    found = anonymize_dataset(source, target, CONTRACT, k=K)
    print(f"FOUND {found.fingerprint} {found.stats['n_classes']}")


def run_frame(source: Path) -> None:
    """Do the same with the whole table in a frame, up to its fingerprint, without writing."""
    table = CONTRACT.admit(pd.read_parquet(source))
    names = list(COLUMNS)
    found = anonymize(table, quasi_identifiers=names, sensitive=["diagnosis"], k=K)
    print(f"FOUND {fingerprint(found.table)} {found.stats['n_classes']}")


def run_alone(kind: str, source: Path, target: Path) -> dict[str, object]:
    """Run one size in a process of its own, after its compiled code was loaded."""
    command = [sys.executable, __file__, "--child", kind, str(source), str(target)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = [line.split() for line in process.stdout or ()]
    if process.returncode:
        raise SystemExit(f"The run of {source.name} ended with {process.returncode}.")
    found: dict[str, object] = {"steps": [line[1:] for line in lines if line[0] == "STEP"]}
    for line in lines:
        if line[0] in ("FOUND", "USED"):
            found[line[0]] = line[1:]
    return found


def child(kind: str, source: Path, target: Path) -> None:
    """Run one size here, and print its time and memory."""
    with tempfile.TemporaryDirectory() as place:
        small = Path(place)
        write_source(small / "source", 2_000, 1)
        anonymize_dataset(small / "source", small / "warm", CONTRACT, k=K)
    begin, base = time.process_time(), start_peak()
    with OwnPeak() as own:
        if kind == "frame":
            run_frame(source)
        else:
            run_in_batches(source, target)
    print(f"USED {time.process_time() - begin:.1f} {peak_mib():.0f} {base:.0f} {own.peak:.0f} {own.base:.0f}")


def main() -> None:
    """Measure all sizes, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000], help="sizes of the tables")
    parser.add_argument("--frame-rows", type=int, default=0, help="largest size that is also run in a frame")
    parser.add_argument("--directory", type=Path, help="where the tables lie; by default that for temporary files")
    parser.add_argument("--seed", type=int, default=0)
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("batches", options)
    used: dict[int, float] = {}
    for n_rows in options.rows:
        place = Path(tempfile.mkdtemp(prefix="batches-", dir=options.directory))
        try:
            write_source(place / "source", n_rows, options.seed)
            found = run_alone("batches", place / "source", place / "released")
            seconds, peak, base, own_peak, own_base = (float(value) for value in found["USED"])
            used[n_rows] = seconds
            per_row, own_per_row = (
                (most - least) * 2**20 / n_rows for most, least in ((peak, base), (own_peak, own_base))
            )
            print(
                f"{n_rows:,} rows: {seconds:,.0f} CPU s, peak {peak:,.0f} MiB, {per_row:,.0f} bytes a row; without "
                f"mapped files {own_peak:,.0f} MiB, {own_per_row:,.0f} bytes a row",
                flush=True,
            )
            for name, own, so_far in found["steps"]:
                print(f"  {name.replace('_', ' '):24} {float(own):8.1f} CPU s, peak so far {float(so_far):,.0f} MiB")
            measured.keep(**{f"cpu_s_{n_rows}": seconds, f"peak_mib_{n_rows}": peak, f"bytes_a_row_{n_rows}": per_row})
            measured.keep(**{f"own_peak_mib_{n_rows}": own_peak, f"own_bytes_a_row_{n_rows}": own_per_row})
            if n_rows >= 10_000_000:
                measured.check(f"at most {MAX_GIB} GiB at {n_rows:,} rows", peak <= MAX_GIB * 1024)
                measured.check(f"at most {MAX_BYTES_PER_ROW} bytes a row at {n_rows:,}", per_row <= MAX_BYTES_PER_ROW)
            if n_rows <= options.frame_rows:
                whole = run_alone("frame", place / "source", place / "released")
                frame_seconds, frame_peak, frame_base = (float(value) for value in whole["USED"][:3])
                measured.check(f"the frame of {n_rows:,} rows has the same rows", whole["FOUND"] == found["FOUND"])
                ratio = (frame_peak - frame_base) / (peak - base)
                print(
                    f"  the frame: {frame_seconds:,.0f} CPU s without writing and measuring, peak {frame_peak:,.0f} "
                    f"MiB, {(frame_peak - frame_base) * 2**20 / n_rows:,.0f} bytes a row, {ratio:.1f} times as many"
                )
                measured.keep(**{f"frame_cpu_s_{n_rows}": frame_seconds, f"frame_peak_mib_{n_rows}": frame_peak})
        finally:
            shutil.rmtree(place, ignore_errors=True)
    if len(used) > 1:
        sizes = sorted(used)
        exponent = np.log(used[sizes[-1]] / used[sizes[0]]) / np.log(sizes[-1] / sizes[0])
        print(f"CPU seconds grow with the exponent {exponent:.2f} from {sizes[0]:,} to {sizes[-1]:,} rows")
        measured.keep(exponent=exponent)
        measured.check(f"exponent at most {MAX_EXPONENT}", exponent <= MAX_EXPONENT)
    sys.exit(measured.finish())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        main()
