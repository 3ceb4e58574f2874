"""Measure Mondrian and the lattice against their peers on adult, and Mondrian's kernel on generated tables, in one go.

    python benchmarks/mondrian.py --data ../shared/data [--skip-anonypyx] [--anonypyx-k 10 50]
        [--qiyuangong PATH] [--mosaicrown PATH] [--skip-scale] [--hundred-million] [--json [FILE]]

Adult: the 30,162 complete rows, eight quasi-identifiers, sets for text. Every program runs in a process of its own and
hands back the class of each row; one scorer computes GCP (sets) and DM from that. anonypyx is installed by the script
into an environment of its own (``--cache``); the programs of qiyuangong (github.com/qiyuangong/Mondrian) and mosaicrown
(github.com/mosaicrown/mondrian) are run from checkouts that you have. GCP and DM are compared with the marks of
``docs/design/mondrian.md`` and with the best peer of the run, speed with peers of the run only. ARX, with hierarchies,
is not run: its marks are those of that page. Only partitioning is timed, in CPU seconds. The exit code is 1 if a bar is
missed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np
from measurements import Measurements, add_json_option
from memory import peak_mib, start_peak

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

ANONYPYX = "anonypyx==0.2.11"
COLUMNS = ["age", "workclass", "education_num", "marital_status", "occupation", "race", "sex", "native_country"]
NUMBERS = ["age", "education_num"]
KS = (2, 5, 10, 25, 50)
# The marks of ``docs/design/mondrian.md``, section "Marks": the best GCP in percent by k, and the best peer's DM by k.
# The CPU seconds of peers were measured on one machine.
BEST_GCP = dict(zip(KS, (0.83, 2.77, 4.86, 8.47, 12.17), strict=True))
BEST_DM = {10: 528_456}
PUBLISHED_SECONDS = {
    "anonypyx": dict(zip(KS, (101, 44, 25, 13, 5.5), strict=True)),
    "qiyuangong": dict(zip(KS, (0.64, 0.36, 0.30, 0.24, 0.21), strict=True)),
}
ARX_SECONDS = dict(zip(KS, (7, 24, 21, 28, 23), strict=True))

RUN_ANONYPYX = """
import sys, time
import numpy as np, pandas as pd
import anonypyx
table, out, k, numbers = pd.read_csv(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4].split(",")
for name in table.columns:
    if name not in numbers:
        table[name] = table[name].astype("category")
program = anonypyx.Anonymiser(table, k=k, feature_columns=list(table.columns))
start = time.process_time()
parts = program.algorithm.partition(program.parameters)
seconds = time.process_time() - start
classes = np.empty(len(table), np.int64)
for i, part in enumerate(parts):
    classes[part] = i
np.save(out, classes)
print(seconds)
"""
RUN_QIYUANGONG = """
import sys, time, warnings
import numpy as np, pandas as pd
warnings.simplefilter("ignore")
table, out, k, place = pd.read_csv(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[5]
sys.path.insert(0, place)
import mondrian
numbers = sys.argv[4].split(",")
codes = [table[n] if n in numbers else np.unique(table[n].astype(object), return_inverse=True)[1] for n in table]
records = [[int(v) for v in row] + [i] for i, row in enumerate(zip(*codes))]
start = time.process_time()
mondrian.mondrian(records, k, False, len(table.columns))
seconds = time.process_time() - start
classes = np.empty(len(table), np.int64)
for i, part in enumerate(mondrian.RESULT):
    for record in part.member:
        classes[record[-1]] = i
np.save(out, classes)
print(seconds)
"""
RUN_MOSAICROWN = """
import contextlib, os, sys, time
import numpy as np, pandas as pd
table, out, k, place = pd.read_csv(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[5]
table = table.astype({name: object for name in table.columns if name not in sys.argv[4].split(",")})
sys.path.insert(0, os.path.join(place, "local"))
from mondrian.mondrian import partition_dataframe
from mondrian.score import span
start = time.process_time()
with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
    parts = partition_dataframe(table, list(table.columns), [], span, lambda df, part, columns: len(part) >= k)
seconds = time.process_time() - start
classes = np.empty(len(table), np.int64)
for i, part in enumerate(parts):
    classes[part] = i
np.save(out, classes)
print(seconds)
"""


def read_adult(data: Path, columns: list[str] = COLUMNS):
    import pandas as pd

    table = pd.read_csv(data / "adult.csv", na_values="?", skipinitialspace=True).dropna().reset_index(drop=True)
    for name in COLUMNS:
        if name not in NUMBERS:
            table[name] = table[name].astype(object)
    return table[[*dict.fromkeys(columns), "income"]]


def score(table, classes) -> tuple[float, int]:
    """GCP in percent and DM, from the class of each row."""
    import pandas as pd

    sizes = np.bincount(classes)
    total = 0.0
    for name in COLUMNS:
        groups = pd.Series(table[name]).groupby(classes)
        if name in NUMBERS:
            widths = (groups.max() - groups.min()) / (table[name].max() - table[name].min())
        else:
            widths = (groups.nunique() - 1) / (table[name].nunique() - 1)
        total += float((widths.to_numpy() * sizes[sizes > 0]).sum())
    return 100 * total / len(table) / len(COLUMNS), int((sizes**2).sum())


def run_peer(python, code: str, file: Path, k: int, place: str = "") -> tuple[float, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "classes.npy"
        child = subprocess.run(
            [str(python), "-c", code, str(file), str(out), str(k), ",".join(NUMBERS), place],
            capture_output=True,
            text=True,
        )
        if child.returncode:
            raise SystemExit(f"A peer failed:\n{child.stderr[-2000:]}")
        return float(child.stdout.split()[-1]), np.load(out)


def time_ours(table, k: int, repeats: int = 15) -> tuple[float, float, float, np.ndarray]:
    """Time the kernel on one thread and the whole call with its verification.

    Returns the CPU seconds of the kernel by rank, of both kernels that the call runs, and of the call; and the class of
    each row.
    """
    from privacy_assets.anonymity.verify import verify_anonymity
    from privacy_assets.anonymization.anonymize import anonymize
    from privacy_assets.anonymization.kernels.models import row_models
    from privacy_assets.anonymization.kernels.mondrian import make_dimensions, partition_rows
    from privacy_assets.anonymization.kernels.mondrian_rows import pack_rows
    from privacy_assets.anonymization.quasi_identifiers import read_dimensions

    read = read_dimensions(table, COLUMNS)
    kernels: dict[str, list[float]] = {"rank": [], "range": []}
    call = []
    for _ in range(repeats):
        for normalize, seconds in kernels.items():
            coordinates = [d.scale.coordinates(normalize) for d in read]
            dimensions = make_dimensions(coordinates, [d.scale.n_values for d in read])
            rows = pack_rows([d.codes for d in read], [d.scale.n_values for d in read])
            start = time.process_time()
            partition_rows(rows, dimensions, row_models(k))
            seconds.append(time.process_time() - start)
        start = time.process_time()
        found = anonymize(table, quasi_identifiers=COLUMNS, k=k, sensitive=["income"])
        report = verify_anonymity(found.table, COLUMNS, ["income"])
        call.append(time.process_time() - start)
    if report.k < k:
        raise AssertionError(f"the smallest class has {report.k} rows, expected at least {k}")
    classes = np.empty(len(table), np.int64)
    classes[found.members["row"]] = found.members["class"]
    by_rank, by_range = (min(seconds[1:]) for seconds in kernels.values())
    return by_rank, by_rank + by_range, min(call[1:]), classes


def anonypyx_python(cache: Path) -> Path:
    """Install anonypyx into an environment under ``cache``, once; return its interpreter."""
    place = cache / ANONYPYX.replace("==", "-")
    python = place / "bin" / "python"
    if not (place / "installed").exists():
        print(f"installing {ANONYPYX} into {place}", flush=True)
        venv.create(place, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", ANONYPYX], check=True)
        (place / "installed").touch()
    return python


def skewed_columns(n_rows: int, n_columns: int):
    """Generated codes, a chunk at a time: normal, lognormal and Zipf, ordered and sets by turns."""
    n_values = [80, 8, 3000, 40, 60_000, 16, 100, 9][:n_columns]
    codes = np.zeros((n_rows, -(-n_columns // 4) * 4), np.uint16)
    rng = np.random.default_rng(0)
    for begin in range(0, n_rows, 1_000_000):
        m = min(1_000_000, n_rows - begin)
        for j, n in enumerate(n_values):
            if j % 2:
                drawn = rng.zipf(1.6, m) % n
            elif n > 1000:
                drawn = np.minimum(rng.lognormal(np.log(n) - 3, 1.0, m), n - 1)
            else:
                drawn = np.clip(rng.normal(n / 2, n / 6, m), 0, n - 1)
            codes[begin : begin + m, j] = drawn
    coordinates = [None if j % 2 else np.arange(n) / (n - 1) for j, n in enumerate(n_values)]
    return codes, coordinates, n_values


def child(kind: str, n_rows: int, n_columns: int, n_threads: int) -> None:
    """Time one run on generated rows; print CPU seconds, wall seconds, MiB above the input, MiB in all, classes."""
    from privacy_assets.anonymization.kernels.models import row_models
    from privacy_assets.anonymization.kernels.mondrian import make_dimensions, partition_rows
    from privacy_assets.anonymization.kernels.mondrian_rows import pack_matrix

    codes, coordinates, n_values = skewed_columns(2000, n_columns)
    dimensions = make_dimensions(coordinates, n_values)
    partition_rows(pack_matrix(codes), dimensions, row_models(10), n_threads=2)
    codes, coordinates, n_values = skewed_columns(n_rows, n_columns)
    if kind == "call":
        import pandas as pd

        from privacy_assets.anonymization.anonymize import anonymize

        table = pd.DataFrame(
            {f"c{j}": codes[:, j] if j % 2 == 0 else pd.Series(codes[:, j]).map("v{}".format) for j in range(n_columns)}
        )
        anonymize(table.head(1000), quasi_identifiers=list(table), k=10)
    to_generate = peak_mib()
    before = start_peak()
    start, wall = time.process_time(), time.perf_counter()
    if kind == "call":
        n_classes = anonymize(table, quasi_identifiers=list(table), k=10).stats["n_classes"]
    else:
        rows = pack_matrix(codes)
        n_classes = len(partition_rows(rows, dimensions, row_models(10), n_threads=n_threads).begins)
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    print(json.dumps([seconds, wall, peak_mib() - before, max(to_generate, peak_mib()), n_classes]))


def measure(kind: str, n_rows: int, n_columns: int, n_threads: int = 2) -> list[float]:
    found = subprocess.run(
        [sys.executable, __file__, "--child", kind, str(n_rows), str(n_columns), str(n_threads)],
        capture_output=True,
        text=True,
    )
    if found.returncode:
        raise SystemExit(found.stderr[-2000:])
    values = json.loads(found.stdout.splitlines()[-1])
    print(
        f"{kind:<8}{n_rows:>12,} x {n_columns}  CPU {values[0]:>7.2f} s  wall {values[1]:>7.2f} s  "
        f"{values[2]:>7.0f} MiB above input  {values[3]:>6.0f} MiB in all  {values[4]:>10,} classes",
        flush=True,
    )
    return values


class Bars:
    """Bars that were met, missed or not tried."""

    def __init__(self, measured: Measurements) -> None:
        self.measured = measured
        self.missed = 0
        self.skipped = 0

    def check(self, name: str, value: float, most: float) -> None:
        is_met = value <= most
        self.missed += not is_met
        self.measured.check(f"{name}: {value:.4g} (at most {most:.4g})", is_met)
        print(f"    {'met   ' if is_met else 'MISSED'} {name}: {value:.4g} (at most {most:.4g})", flush=True)

    def skip(self, name: str, published: float) -> None:
        """Report that a bar was not tried, because the peer did not run."""
        self.skipped += 1
        print(f"    ------ {name}: not run (published figure {published:g} s)", flush=True)


def compare_on_adult(arguments: argparse.Namespace, bars: Bars) -> None:
    table = read_adult(arguments.data)
    print(f"adult: {len(table)} complete rows\n{'program':<12}{'k':>4}{'GCP %':>9}{'DM':>12}{'CPU ms':>12}{'times':>9}")
    peers = []
    if not arguments.skip_anonypyx:
        peers.append(("anonypyx", anonypyx_python(arguments.cache), RUN_ANONYPYX, "", arguments.anonypyx_k))
    if arguments.qiyuangong:
        peers.append(("qiyuangong", sys.executable, RUN_QIYUANGONG, str(arguments.qiyuangong), KS))
    if arguments.mosaicrown:
        peers.append(("mosaicrown", sys.executable, RUN_MOSAICROWN, str(arguments.mosaicrown), KS))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "adult.csv"
        table[COLUMNS].to_csv(file, index=False)
        for k in KS:
            kernel, kernels, call, classes = time_ours(table, k)
            gcp, dm = score(table, classes)
            print(f"{'ours':<12}{k:>4}{gcp:>9.3f}{dm:>12,}{1e3 * kernel:>12.2f}{'':>9}  whole call {1e3 * call:.1f} ms")
            bars.measured.keep(**{f"gcp_percent_k{k}": gcp, f"kernel_seconds_k{k}": kernel, f"call_seconds_k{k}": call})
            bars.check(f"k = {k}: GCP", gcp, BEST_GCP[k])
            if k in BEST_DM:
                bars.check(f"k = {k}: DM", dm, BEST_DM[k])
            bars.check(f"k = {k}: whole call / its kernels", call / kernels, 10)
            run: dict[str, tuple[float, float, int]] = {}
            for name, python, code, place, ks in peers:
                if k in ks:
                    seconds, classes = run_peer(python, code, file, k, place)
                    run[name] = (seconds, *score(table, classes))
                    bars.measured.keep(**{f"{name}_seconds_k{k}": seconds, f"{name}_gcp_percent_k{k}": run[name][1]})
                    figures = f"{run[name][1]:>9.3f}{run[name][2]:>12,}{1e3 * seconds:>12,.0f}{seconds / kernel:>9,.0f}"
                    print(f"{name:<12}{k:>4}{figures}", flush=True)
            if run:
                bars.check(f"k = {k}: GCP, best peer of this run", gcp, min(peer[1] for peer in run.values()))
                bars.check(f"k = {k}: DM, best peer of this run", dm, min(peer[2] for peer in run.values()))
            for name, times in (("anonypyx", 1000), ("qiyuangong", 30)):
                bar = f"k = {k}: {times:,} kernels / {name}"
                if name in run:
                    bars.check(bar, times * kernel / run[name][0], 1)
                else:
                    bars.skip(bar, PUBLISHED_SECONDS[name][k])


def compare_normalizations(arguments: argparse.Namespace, bars: Bars) -> None:
    """Compare the default with rank and range, and relaxed cuts with the example code of the blog."""
    from privacy_assets.anonymization.anonymize import anonymize
    from tests.published.test_mondrian_blog import NUMBERS, loss_of_blog

    table = read_adult(arguments.data, [*COLUMNS, *NUMBERS])
    print(
        f"\nnormalizations, {len(table)} rows\n{'columns':<8}{'k':>4}{'rank':>9}{'range':>9}{'best':>9}{'relaxed':>9}"
    )
    for what, names in (("numbers", NUMBERS), ("eight", COLUMNS)):
        for k in KS:
            loss, seconds = {}, {}
            for name, chosen in (
                ("rank", {"normalize": "rank"}),
                ("range", {"normalize": "range"}),
                ("best", {}),
                ("relaxed", {"relaxed": True}),
            ):
                times = []
                for _ in range(5):
                    start = time.process_time()
                    found = anonymize(table, quasi_identifiers=names, k=k, **chosen)
                    times.append(time.process_time() - start)
                loss[name], seconds[name] = found.stats["information_loss"], min(times)
            print(f"{what:<8}{k:>4}" + "".join(f"{own:>9.4f}" for own in loss.values()), flush=True)
            bars.measured.keep(**{f"{what}_loss_{name}_k{k}": own for name, own in loss.items()})
            bars.check(
                f"{what}, k = {k}: loss / better normalization", loss["best"] / min(loss["rank"], loss["range"]), 1
            )
            bars.check(f"{what}, k = {k}: CPU time / rank", seconds["best"] / seconds["rank"], 2)
            if names is NUMBERS:
                bars.check(f"{what}, k = {k}: relaxed / blog", loss["relaxed"] / loss_of_blog(table[NUMBERS], k), 1)


def compare_hierarchies(arguments: argparse.Namespace, bars: Bars) -> None:
    """Print the losses of labels of hierarchies next to those of ARX's local recoding."""
    from privacy_assets.anonymity.verify import verify_anonymity
    from privacy_assets.anonymization.anonymize import anonymize
    from tests.published.adult_hierarchies import ADULT, ARX_LOSSES

    table = read_adult(arguments.data)
    print(f"\nhierarchies, {len(table)} rows\n{'k':>4}{'GCP %':>9}{'ARX %':>9}{'classes':>9}{'lost':>6}{'CPU ms':>9}")
    for k, arx in ARX_LOSSES.items():
        seconds = []
        for _ in range(3):
            start = time.process_time()
            found = anonymize(table, quasi_identifiers=COLUMNS, k=k, method="lattice", hierarchies=ADULT)
            seconds.append(time.process_time() - start)
        loss, n_lost = found.stats["information_loss"], found.stats["n_suppressed"]
        own = f"{found.stats['n_classes']:>9,}{n_lost:>6}{1e3 * min(seconds):>9.0f}"
        print(f"{k:>4}{100 * loss:>9.3f}{100 * arx:>9.2f}{own}", flush=True)
        bars.measured.keep(**{f"lattice_loss_percent_k{k}": 100 * loss, f"lattice_cpu_seconds_k{k}": min(seconds)})
        bars.check(f"k = {k}: GCP / ARX", loss / arx, 1.01)
        bars.check(f"k = {k}: rows lost", n_lost, 0)
        bars.check(f"k = {k}: k / smallest class, from the outside", k / verify_anonymity(found.table, COLUMNS).k, 1)
        bars.skip(f"k = {k}: 25 calls / ARX", ARX_SECONDS[k])


def compare_cuts_along_hierarchies(arguments: argparse.Namespace, bars: Bars) -> None:
    """Compare nodes for categories and intervals for numbers, in one table, with nodes for all and with free cuts."""
    from privacy_assets.anonymity.verify import verify_anonymity
    from privacy_assets.anonymization.anonymize import anonymize
    from tests.published.adult_hierarchies import ADULT

    table = read_adult(arguments.data)
    categories = {name: own for name, own in ADULT.items() if name not in NUMBERS}
    ways = {
        "mixed": {"hierarchies": categories},
        "all": {"hierarchies": ADULT},
        "lattice": {"hierarchies": ADULT, "method": "lattice"},
        "free": {},
    }
    print(f"\ncuts along hierarchies, {len(table)} rows: GCP %\n{'k':>4}" + "".join(f"{name:>9}" for name in ways))
    for k in KS:
        loss, seconds = {}, {}
        for name, chosen in ways.items():
            times = []
            for _ in range(4):
                start = time.process_time()
                found = anonymize(table, quasi_identifiers=COLUMNS, k=k, **chosen)
                times.append(time.process_time() - start)
            loss[name], seconds[name] = found.stats["information_loss"], min(times)
            if name == "mixed":
                known = [column for column in found.table if column != "income"]
                smallest = verify_anonymity(found.table, known).k
        print(f"{k:>4}" + "".join(f"{100 * own:>9.3f}" for own in loss.values()), flush=True)
        bars.measured.keep(**{f"nodes_loss_{name}_k{k}": own for name, own in loss.items()})
        bars.measured.keep(**{f"nodes_seconds_{name}_k{k}": own for name, own in seconds.items()})
        bars.check(f"k = {k}: mixed, k / smallest class, from the outside", k / smallest, 1)
        bars.check(f"k = {k}: mixed / lattice, loss", loss["mixed"] / loss["lattice"], 1 if k <= 10 else 1.1)
        bars.check(f"k = {k}: mixed / free, loss", loss["mixed"] / loss["free"], 2.2)
        bars.check(f"k = {k}: along all / lattice, loss", loss["all"] / loss["lattice"], 1.3)
        bars.check(f"k = {k}: mixed / lattice, CPU time", seconds["mixed"] / seconds["lattice"], 1)
        bars.check(f"k = {k}: mixed / free, CPU time", seconds["mixed"] / seconds["free"], 2.5)


def compare_kinds(bars: Bars) -> None:
    """Compare unique texts with integers, and fifteen columns with eight."""
    import pandas as pd

    from privacy_assets.anonymization.anonymize import anonymize

    def seconds(table, k: int, repeats: int = 3) -> float:
        times = []
        for _ in range(repeats + 1):
            start = time.process_time()
            # By rank, because some tables need one cut and others two.
            anonymize(table, quasi_identifiers=list(table), k=k, normalize="rank")
            times.append(time.process_time() - start)
        return min(times[1:])

    random = np.random.default_rng(0)
    numbers = random.permutation(200_000)
    whole, text = pd.DataFrame({"id": numbers}), pd.DataFrame({"id": pd.Series(numbers).map("name {:06d}".format)})
    print("\nkinds of columns, whole calls")
    bars.check("200,000 unique texts / integers, CPU time", seconds(text, 5) / seconds(whole, 5), 4)
    codes, _, _ = skewed_columns(1_000_000, 8)
    columns = [codes[:, j % 8][:: 1 if j < 8 else -1] for j in range(15)]
    wide = pd.DataFrame(
        {f"c{j}": own if j % 2 == 0 else pd.Series(own).map("v{}".format) for j, own in enumerate(columns)}
    )
    bars.check("10^6 x 15 / 10^6 x 8, CPU time", seconds(wide, 10, 1) / seconds(wide[list(wide)[:8]], 10, 1), 2)


def compare_sensitive(bars: Bars) -> None:
    """Compare whole calls with a sensitive column of almost as many values as rows to those without it."""
    import pandas as pd

    from privacy_assets.anonymization.anonymize import anonymize

    def seconds(n_rows: int, sensitive: list[str], **limits) -> float:
        start = time.process_time()
        own = table[[*names, *sensitive]].head(n_rows)
        anonymize(own, quasi_identifiers=names, k=10, sensitive=sensitive, n_threads=1, **limits)
        return time.process_time() - start

    codes, _, _ = skewed_columns(1_000_000, 8)
    table = pd.DataFrame({f"c{j}": own if j % 2 == 0 else pd.Categorical(own) for j, own in enumerate(codes.T)})
    names = list(table)
    table["cost"] = np.random.default_rng(0).lognormal(6, 1.2, len(table))
    print("\na continuous sensitive column, whole calls, one thread")
    seconds(1000, ["cost"], t_closeness=0.5)
    with_it, without = {}, {}
    for word, n_rows, repeats in (("1e5", 100_000, 5), ("1e6", 1_000_000, 3)):
        # By turns, because other programs slow the machine down for a while.
        pairs = [(seconds(n_rows, ["cost"]), seconds(n_rows, [])) for _ in range(repeats)]
        with_it[word], without[word] = (min(own) for own in zip(*pairs, strict=True))
        bars.measured.keep(
            **{f"sensitive_{word}_cpu_seconds": with_it[word], f"plain_{word}_cpu_seconds": without[word]}
        )
        name = f"{n_rows:,} x 8 and a continuous sensitive column, CPU time / without"
        bars.check(name, with_it[word] / without[word], 1.5)
    bars.check("with it, exponent from 10^5 to 10^6", float(np.log10(with_it["1e6"] / with_it["1e5"])), 1.1)
    few, many = (seconds(n, ["cost"], t_closeness=0.2) for n in (10_000, 40_000))
    bars.measured.keep(close_1e4_cpu_seconds=few, close_4e4_cpu_seconds=many)
    bars.check("with t = 0.2 on it, exponent from 10,000 to 40,000", float(np.log(many / few) / np.log(4)), 1.5)


def measure_scale(arguments: argparse.Namespace, bars: Bars) -> None:
    print("\nkernel on two threads, k = 10, generated and skewed")
    small, million, ten = (measure("kernel", n, 8) for n in (100_000, 1_000_000, 10_000_000))
    for name, found in (("1e5", small), ("1e6", million), ("1e7", ten)):
        bars.measured.keep(**{f"kernel_{name}_cpu_seconds": found[0], f"kernel_{name}_wall_seconds": found[1]})
    bars.check("10^6 x 8, CPU seconds", million[0], 1.5)
    bars.check("10^7 x 8, CPU seconds", ten[0], 8)
    bars.check("10^7 x 8, MiB above the input", ten[2], 400)
    bars.check("exponent from 10^5 to 10^7", float(np.log10(ten[0] / small[0]) / 2), 1.1)
    bars.check("10^6 x 8, whole call, wall seconds", measure("call", 1_000_000, 8)[1], 10)
    if arguments.hundred_million:
        hundred = measure("kernel", 100_000_000, 4)
        bars.measured.keep(kernel_1e8_cpu_seconds=hundred[0], kernel_1e8_peak_mib=hundred[3])
        bars.check("10^8 x 4, CPU seconds", hundred[0], 60)
        bars.check("10^8 x 4, MiB in all", hundred[3], 6 * 1024)


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], *map(int, sys.argv[3:6]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "privacy_assets_benchmarks")
    parser.add_argument("--skip-anonypyx", action="store_true")
    parser.add_argument("--anonypyx-k", type=int, nargs="*", default=list(KS))
    parser.add_argument("--qiyuangong", type=Path)
    parser.add_argument("--mosaicrown", type=Path)
    parser.add_argument("--skip-scale", action="store_true")
    parser.add_argument("--hundred-million", action="store_true")
    add_json_option(parser)
    arguments = parser.parse_args()
    measured = Measurements("mondrian", arguments)
    bars = Bars(measured)
    compare_on_adult(arguments, bars)
    compare_hierarchies(arguments, bars)
    compare_normalizations(arguments, bars)
    compare_cuts_along_hierarchies(arguments, bars)
    if not arguments.skip_scale:
        compare_kinds(bars)
        compare_sensitive(bars)
        measure_scale(arguments, bars)
    measured.save()
    print(f"\n{bars.missed} bars missed, {bars.skipped} not run")
    return int(bars.missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
