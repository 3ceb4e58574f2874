"""Measure the compilation in the first call of each main function, from an empty cache of Numba.

    python benchmarks/cold_start.py [--json [FILE]]

Each function runs once in a separate process with an empty cache, and then in a second process with the cache of the
first, whose CPU time is subtracted. CPU seconds depend on the machine and on other work, so each process also compiles
a fixed reference kernel, whose seconds are shown next to it; the bars are multiples of it. Importing the package is not
counted. The exit code is 1 if a bar is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measurements import Measurements, add_json_option

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

FUNCTIONS = {"assess_mpuccs": 50, "anonymize": 75, "verify_anonymity": 20, "assess_reidentification": None}
"""The main functions, and the most that each may take in compilations of the reference kernel."""
REPEATS = 5


def reference_seconds() -> float:
    """Return the CPU seconds of compiling one fixed kernel: two loops, two arrays, one condition."""
    from numba import njit

    def sums(values, table):
        total = 0
        for i in range(len(values)):
            for j in range(table.shape[1]):
                if values[i] > j:
                    total += table[i, j]
                table[i, j] = total
        return total

    import numpy as np

    seconds = []
    for _ in range(REPEATS):
        began = time.process_time()
        njit(sums)(np.arange(5), np.zeros((5, 3), np.int64))
        seconds.append(time.process_time() - began)
    return sorted(seconds)[REPEATS // 2]


def make_table(seed: int):
    import numpy as np
    import pandas as pd

    random, n_rows = np.random.default_rng(seed), 1000
    return pd.DataFrame(
        {
            "age": random.integers(18, 90, n_rows),
            "area": random.integers(0, 300, n_rows),
            "income": random.normal(1000, 300, n_rows).round(0),
            "sex": random.choice(["f", "m"], n_rows),
            "plan": random.choice(list("abcdefgh"), n_rows),
        }
    )


def child(function: str) -> None:
    """Call one function in this process, and print its CPU seconds, the instances compiled, and the reference."""
    from numba.core import event

    import privacy_assets

    tables = [make_table(seed) for seed in range(3)]
    known = ["age", "area", "sex"]
    calls = {
        "assess_mpuccs": lambda: privacy_assets.assess_mpuccs(*tables),
        "anonymize": lambda: privacy_assets.anonymize(tables[0], quasi_identifiers=known, k=5),
        "verify_anonymity": lambda: privacy_assets.verify_anonymity(
            tables[0], quasi_identifiers=known, sensitive=["plan", "income"]
        ),
        "assess_reidentification": lambda: privacy_assets.assess_reidentification(
            tables[0], privacy_assets.anonymize(tables[0], quasi_identifiers=known, k=5)
        ),
    }
    reference_seconds()  # The first compilation of a process also prepares Numba.
    before = reference_seconds()
    with event.install_recorder("numba:compile") as compiled:
        began = time.process_time()
        calls[function]()
        seconds = time.process_time() - began
    n_instances = len([1 for _, each in compiled.buffer if each.is_start])
    print(json.dumps([seconds, n_instances, (before + reference_seconds()) / 2]))


def measure(function: str, cache: str) -> tuple[float, int, float]:
    run = subprocess.run(
        [sys.executable, __file__, "--child", function],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise SystemExit(f"{function} failed:\n{run.stderr[-2000:]}")
    seconds, n_instances, reference = json.loads(run.stdout.splitlines()[-1])
    return seconds, n_instances, reference


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("cold_start", options)
    print(f"{'first call of':26}{'CPU s':>8}{'then':>8}{'instances':>11}{'reference':>11}{'times':>8}")
    for function, limit in FUNCTIONS.items():
        with tempfile.TemporaryDirectory() as cache:
            first, n_instances, reference = measure(function, cache)
            then, n_again, _ = measure(function, cache)
        times = (first - then) / reference
        print(f"{function:26}{first:8.1f}{then:8.2f}{n_instances:11}{reference:11.3f}{times:8.0f}")
        measured.keep(
            **{
                f"{function}_cpu_seconds": first,
                f"{function}_instances": n_instances,
                f"{function}_reference_seconds": reference,
            }
        )
        if limit is not None:
            measured.check(f"{function} compiles for {times:.0f} reference kernels; at most {limit}", times <= limit)
        measured.check(f"{function} compiles {n_again} instances in the second process; 0", n_again == 0)
    return measured.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2])
    else:
        sys.exit(main())
