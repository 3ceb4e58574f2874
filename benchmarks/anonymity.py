"""Time the calculators of `verify_anonymity` against pycanon 1.3.6, on the same table, in one go.

    python benchmarks/anonymity.py --data ../shared/data [--rows 1000000] [--pycanon-rows N | --skip-pycanon] [--json]

Both sides measure the nine figures that pycanon has (k, alpha, distinct, entropy and recursive l, t, basic and enhanced
beta, delta) of one table: adult, drawn up to ``--rows`` and made coarse by bands of ages and education. pycanon is
installed by the script into a separate environment (``--cache``). Its time grows with the number of classes more than
with that of rows, so a run on fewer rows reveals little about the whole. The exit code is 1 if a bar is missed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from measurements import Measurements, add_json_option

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

PYCANON = ["pycanon==1.3.6", "pandas<3", "pyarrow"]
QUASI_IDENTIFIERS = ["age", "workclass", "education_num", "marital_status", "race", "sex"]
SENSITIVE = ["occupation"]
SECONDS_BAR, SPEED_BAR = 2.0, 100.0

RUN_PYCANON = """
import json, sys, time, warnings
import pandas as pd
from pycanon import anonymity as a
warnings.filterwarnings("ignore")
table = pd.read_parquet(sys.argv[1])
quasi, sensitive = json.loads(sys.argv[2]), json.loads(sys.argv[3])
start = time.perf_counter()
found = {
    "k": a.k_anonymity(table, quasi),
    "alpha": a.alpha_k_anonymity(table, quasi, sensitive)[0],
    "l_distinct": a.l_diversity(table, quasi, sensitive),
    "t": a.t_closeness(table, quasi, sensitive),
    "beta": a.basic_beta_likeness(table, quasi, sensitive),
    "delta": a.delta_disclosure(table, quasi, sensitive),
}
a.entropy_l_diversity(table, quasi, sensitive)
a.recursive_c_l_diversity(table, quasi, sensitive)
a.enhanced_beta_likeness(table, quasi, sensitive)
print(json.dumps([time.perf_counter() - start, {name: float(value) for name, value in found.items()}]))
"""


def coarse_table(data: Path, n_rows: int):
    """Adult without missing values (pycanon cannot have any), coarse, drawn with replacement."""
    import pandas as pd

    adult = pd.read_csv(data / "adult.csv").dropna()
    adult["age"] = [f"[{age // 20 * 20}, {age // 20 * 20 + 19}]" for age in adult["age"]]
    adult["education_num"] = adult["education_num"] // 4
    drawn = adult.sample(n_rows, replace=True, random_state=0, ignore_index=True)
    return drawn[[*QUASI_IDENTIFIERS, *SENSITIVE, "income", "hours_per_week", "fnlwgt"]]


def measure_ours(table, sensitive, repeats=3):
    """Best of some runs: the first one loads compiled code."""
    from privacy_assets.anonymity.verify import verify_anonymity

    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        report = verify_anonymity(table, QUASI_IDENTIFIERS, sensitive)
        times.append(time.perf_counter() - start)
    return min(times), report


def measure_pycanon(table, cache: Path):
    python = cache / "bin" / "python"
    if not python.exists():
        venv.create(cache, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PYCANON], check=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "table.parquet"
        table.astype(dict.fromkeys(table.select_dtypes(["str"]).columns, object)).to_parquet(file)
        command = [str(python), "-c", RUN_PYCANON, str(file), json.dumps(QUASI_IDENTIFIERS), json.dumps(SENSITIVE)]
        child = subprocess.run(command, capture_output=True, text=True)
    if child.returncode:
        raise SystemExit(f"pycanon failed:\n{child.stderr[-2000:]}")
    return json.loads(child.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--pycanon-rows", type=int)
    parser.add_argument("--skip-pycanon", action="store_true")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "privacy_assets_benchmarks/pycanon")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("anonymity", options)
    table = coarse_table(options.data, options.rows)
    seconds, report = measure_ours(table, SENSITIVE)
    print(f"{options.rows} rows, {report.n_classes} classes, one sensitive column: {seconds:.2f} s (k {report.k})")
    many = [*SENSITIVE, "income", "hours_per_week", "fnlwgt"]
    seconds_of_many, _ = measure_ours(table, many)
    print(f"the same with {len(many)} sensitive columns, one of them with 20,000 values: {seconds_of_many:.2f} s")
    measured.keep(seconds=seconds, seconds_of_many_sensitive_columns=seconds_of_many)
    slowest = max(seconds, seconds_of_many)
    measured.check(f"{options.rows} rows take {slowest:.2f} s; under {SECONDS_BAR} s", slowest < SECONDS_BAR)
    if not options.skip_pycanon:
        first = table.head(options.pycanon_rows or len(table))
        own_seconds, own = measure_ours(first, SENSITIVE)
        peer_seconds, found = measure_pycanon(first, options.cache)
        differing = [name for name, value in found.items() if abs(getattr(own, name) - value) > 1e-9]
        ratio = peer_seconds / own_seconds
        print(f"{len(first)} rows: {own_seconds:.3f} s, pycanon {peer_seconds:.1f} s, {ratio:.0f} times ours")
        measured.keep(pycanon_rows=len(first), pycanon_seconds=peer_seconds, seconds_of_the_same_rows=own_seconds)
        measured.check(f"{ratio:.0f} times faster than pycanon; more than {SPEED_BAR:.0f}", ratio > SPEED_BAR)
        measured.check(f"figures that differ from pycanon: {differing or 'none'}", not differing)
    return measured.finish()


if __name__ == "__main__":
    raise SystemExit(main())
