"""Time the disclosure test, and count its detections and its false alarms.

    python benchmarks/disclosure.py --data ../shared/data [--splits N] [--seeds N] [--power N] [--million] [--json]

First the whole of adult and the records that CTGAN made of it, in a process of its own. Then false alarms: eight tables
are divided at random into originals, controls and others, and the synthetic records are the others, a bootstrap of
them, or made of them by CART and by the Gaussian copula, so that nothing can leak (``--splits`` times each; wide and
slow tables less often). Then detection: copies, near copies (one or two values of other originals in each),
interpolations (SMOTE, 5 neighbors), CART with leaves of 5 and the copula, of 3,000 originals of five tables
(``--seeds`` times each). Copies are shares of the originals; all other synthetic records are of other people. Last,
with ``--power``, copies by share and number of originals; ``stated`` is the median of `detectable_share`. With
``--forecast``, what is planned with before there are synthetic records. The exit code is 1 if a bar is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from disclosure_tables import (
    FEW_VALUES,
    FILES,
    INNOCENT,
    LEAKING,
    MUST_BE_FOUND,
    SIZES_TO_DETECT,
    divided,
    sizes_of,
    table_of,
    tables,
    with_copies,
)
from measurements import Measurements, add_json_option
from memory import peak_mib

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.planned_control import judge_by, rehearse
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.mpucc.intervals import wilson_interval

REPOSITORY = Path(__file__).resolve().parent.parent
FALSE_ALARMS, OF_A_TABLE, FOUND = 0.05, 0.08, 0.95
SECONDS_OF_ADULT, SECONDS_OF_A_MILLION, GIB_OF_A_MILLION = 25.0, 120.0, 4.0
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1)
SIZES = (300, 1_000, 3_000, 10_000, 30_000)


def count_false_alarms(made: dict, first: int, n_splits: int, measured: Measurements) -> None:
    print(f"\nfalse alarms{'table':>12}  " + "".join(f"{name:>16}" for name in INNOCENT) + f"{'all':>16}")
    everything = np.zeros(2, int)
    for name, make in made.items():
        shown, of_table = [], np.zeros(2, int)
        for kind, generate in INNOCENT.items():
            found = np.zeros(2, int)
            for seed in range(first, first + (max(n_splits // 4, 2) if name == "wide" else n_splits)):
                rng = np.random.default_rng([seed, sorted(INNOCENT).index(kind), 15])
                table = make(seed)
                original, control, others = divided(table, sizes_of(len(table)), rng)
                synthetic = generate(others, len(original), rng)
                detected = assess_disclosure(original, synthetic, control, seed=seed).scores["leakage_detected"]
                found += (detected is True, 1)
            shown.append(f"{found[0]} / {found[1]}")
            of_table += found
        everything += of_table
        print(f"{name:>24}  " + "".join(f"{own:>16}" for own in (*shown, f"{of_table[0]} / {of_table[1]}")), flush=True)
        measured.keep(**{f"false_alarms_{name}": int(of_table[0]), f"splits_{name}": int(of_table[1])})
        check_share(name, of_table, OF_A_TABLE, measured)
    measured.keep(false_alarms=int(everything[0]), splits=int(everything[1]))
    check_share("all tables", everything, FALSE_ALARMS, measured)


def check_share(name: str, found: np.ndarray, bar: float, measured: Measurements) -> None:
    """Check that chance explains more flagged splits than the bar: of an exact test half the samples have more."""
    share, low, high = wilson_interval(*map(float, found), 0.95)
    words = f"{name}: {share:.1%} ({low:.1%} to {high:.1%}) of {found[1]} honest splits are flagged"
    measured.check(f"{words}; not above {bar:.0%} beyond chance", low <= bar)


def count_detections(made: dict, n_seeds: int, measured: Measurements) -> None:
    print(f"\ndetected    {'table':>12}  " + "".join(f"{name:>27}" for name in LEAKING))
    for name, sizes in SIZES_TO_DETECT.items():
        if name not in made:
            continue
        shown = []
        for kind, generate in LEAKING.items():
            n_found, by = 0, {}
            for seed in range(n_seeds):
                rng = np.random.default_rng([seed, sorted(LEAKING).index(kind), 16])
                original, control, others = divided(table_of(name, made, seed, sum(sizes)), sizes, rng)
                found = assess_disclosure(original, generate(original, others, rng), control, seed=seed)
                n_found += found.scores["leakage_detected"] is True
                for row in found.criteria.itertuples():
                    by[row.criterion] = by.get(row.criterion, 0) + (row.adjusted_p_value <= 0.05)
            shown.append(f"{n_found} / {n_seeds}")
            key = (
                f"{name}_{kind}".replace(" %", "_percent").replace(",", "").replace(" ", "_").replace(".", "_").lower()
            )
            measured.keep(**{f"detected_{key}": n_found})
            print(f"    {name}, {kind}: {by}", flush=True)
            if kind in MUST_BE_FOUND and name != FEW_VALUES:
                words = f"{kind} of {name}: {n_found} of {n_seeds} detected; at least 19 of 20"
                measured.check(words, n_found >= FOUND * n_seeds)
        print(f"{name:>24}  " + "".join(f"{own:>27}" for own in shown), flush=True)


def count_power(made: dict, sizes: list[int], shares: list[float], n_seeds: int, measured: Measurements) -> None:
    """Count detections of verbatim copies by size and share.

    Half as many controls, and as many synthetic records, or what the table has left: at least half as many.
    """
    print(
        f"\npower{'table':>14}{'originals':>12}  " + "".join(f"{share:>12.1%}" for share in shares) + f"{'stated':>12}"
    )
    for name in made:
        for n in sizes:
            n_left = len(table_of(name, made, 0, 5 * n // 2)) - n - n // 2
            if n_left < n // 2:
                continue
            wanted, shown, stated = (n, n // 2, min(n, n_left)), [], []
            for share in shares:
                n_found = 0
                for seed in range(n_seeds):
                    rng = np.random.default_rng([seed, n, 17])
                    original, control, others = divided(table_of(name, made, seed, sum(wanted)), wanted, rng)
                    synthetic = with_copies(others, original, share, (0, 0), rng)
                    found = assess_disclosure(original, synthetic, control, seed=seed).scores
                    n_found += found["leakage_detected"] is True
                    stated.append(found["detectable_share"])
                shown.append(f"{n_found} / {n_seeds}")
                measured.keep(**{f"power_{name}_{n}_{share:g}".replace(".", "_"): n_found})
            middle = float(np.median([np.inf if own is None else own for own in stated]))
            row = "".join(f"{own:>12}" for own in (*shown, f"{middle:.2%}"))
            print(f"{name:>19}{n:>12,}  {row}", flush=True)
            if np.isfinite(middle):
                measured.keep(**{f"stated_share_{name}_{n}": middle})


def compare_forecasts(made: dict, sizes: list[int], measured: Measurements) -> None:
    """Compare the detectable share that a rehearsal forecasts with the one that an assessment of others states."""
    print(f"\n{'table':>19}{'originals':>12}{'forecast':>12}{'stated':>12}")
    for name in made:
        for n in sizes:
            wanted = (n, n // 2, n)
            table = table_of(name, made, 0, sum(wanted))
            if len(table) < 2 * n:
                continue
            original, control, others = divided(table, wanted, np.random.default_rng(1))
            rehearsal = rehearse(pd.concat([original, control], ignore_index=True), DisclosureSettings())
            forecast = judge_by(rehearsal, n, n // 2).detectable_share
            stated = assess_disclosure(original, others, control).scores["detectable_share"]
            print(
                f"{name:>19}{n:>12,}"
                + "".join(f"{'-' if own is None else f'{own:.2%}':>12}" for own in (forecast, stated))
            )
            if forecast is not None and stated is not None:
                measured.keep(**{f"forecast_{name}_{n}": forecast, f"stated_{name}_{n}": stated})


def child(data: str, kind: str) -> None:
    """Assess all of adult, or a million records a side of its shape, in this process."""
    original, control, synthetic = (pd.read_csv(Path(data) / name) for name in FILES)
    assess_disclosure(original[:200], synthetic[:200], control[:100])
    if kind == "million":
        rng = np.random.default_rng(0)
        drawn = [
            own.sample(n, replace=True, random_state=rng, ignore_index=True)
            for own, n in ((original, 750_000), (control, 250_000), (synthetic, 1_000_000))
        ]
        for own in drawn:
            # So that draws of one record differ.
            own["fnlwgt"] += rng.integers(0, 400_000, len(own))
            own["age"] += rng.integers(0, 3, len(own))
        original, control, synthetic = drawn
    start = time.process_time()
    found = assess_disclosure(original, synthetic, control)
    seconds = time.process_time() - start
    print(json.dumps([seconds, peak_mib() / 1024, found.scores["n_examined"], found.scores["detectable_share"]]))


def measure_cost(data: Path, kind: str, bar: float, measured: Measurements) -> None:
    run = subprocess.run([sys.executable, __file__, "--child", str(data), kind], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{kind} failed:\n{run.stderr[-2000:]}")
    seconds, gib, n_examined, share = json.loads(run.stdout.splitlines()[-1])
    print(
        f"{kind}: {seconds:.1f} CPU s, {gib:.2f} GiB, {n_examined:,} people examined, {share:.2%} detectable",
        flush=True,
    )
    measured.keep(**{f"{kind}_cpu_seconds": seconds, f"{kind}_peak_gib": gib, f"{kind}_detectable_share": share})
    is_met = seconds <= bar and gib <= GIB_OF_A_MILLION
    measured.check(
        f"{kind}: {seconds:.1f} CPU s, {gib:.2f} GiB; at most {bar:.0f} s, {GIB_OF_A_MILLION:.0f} GiB", is_met
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help=f"folder with {', '.join(FILES)}")
    parser.add_argument("--splits", type=int, default=15, help="honest splits of each table and generator")
    parser.add_argument("--first", type=int, default=0, help="number of the first honest split")
    parser.add_argument("--seeds", type=int, default=20, help="leaking tables of each table and generator")
    parser.add_argument("--power", type=int, default=0, help="copies of each share, size and table")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=list(SIZES), help="originals for --power and --forecast"
    )
    parser.add_argument("--shares", type=float, nargs="*", default=list(SHARES), help="copied, for --power")
    parser.add_argument("--forecast", action="store_true", help="also the detectable share as it is planned with")
    parser.add_argument("--million", action="store_true", help="also a million records a side")
    parser.add_argument("--skip-cost", action="store_true")
    parser.add_argument("--tables", nargs="*", help="names of the tables; default: all")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("disclosure", options)
    data = options.data.resolve()
    if not options.skip_cost:
        measure_cost(data, "adult", SECONDS_OF_ADULT, measured)
        if options.million:
            measure_cost(data, "million", SECONDS_OF_A_MILLION, measured)
    made = {name: make for name, make in tables(data).items() if not options.tables or name in options.tables}
    if options.splits:
        count_false_alarms(made, options.first, options.splits, measured)
    if options.seeds:
        count_detections(made, options.seeds, measured)
    if options.power:
        count_power(made, options.sizes, options.shares, options.power, measured)
    if options.forecast:
        compare_forecasts(made, options.sizes, measured)
    return measured.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        sys.exit(main())
