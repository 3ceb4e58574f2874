"""Measure the rule by which synthetic records of wide tables are admitted, and other people in their place are, too.

    python benchmarks/admitted.py [--rule [N]] [--size [N]] [--smooth [N]] [--data FOLDER] [--json]

Each option is a part with figures of its own, kept as ``admitted_<part>.json``; without one, all run. The policy is
``research_sharing`` without its limit on rare values, which is a limit of its own.

- rule: N splits each of adult (15 columns), the national excerpt of NIST's board (24), and 20 generated columns, into
  6,000 originals, 6,000 controls and 6,000 others, of whom the records are made: other people, copies of some originals
  among them, of half of the columns, beside 14 columns of noise, and copies whose numbers are reflected or scaled, or
  whose labels are rotated within their own set (these are made of N / 5 splits). Records by CART, smooth CART and the
  copula of the originals.
- size: the score of 1, 2 and 8 times as many records as originals.
- smooth: how often smooth CART of 3,000 originals is flagged, N splits of each of four tables; as it is, and with soft
  leaves.
- group: smooth CART with `group`, and without, of 9,000 originals of the excerpt, N splits: utility, utility by group,
  how often it is flagged, how many unique originals are matched, and the shares of cells of three columns that agree
  with those of people (in tenths of numbers; a reading of NIST's k-marginal figure), as a share of what others reach.

The exit code is 1 if a bar is missed.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd

from benchmarks.measurements import Measurements, add_json_option, figure_name
from benchmarks.nist import GROUP, TARGET, read
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.mpucc.intervals import wilson_interval
from privacy_assets.pipeline.measure import figures_in_manifest
from privacy_assets.release.metrics import DISCLOSURE, MPUCC, figures_of
from privacy_assets.release.policy import Policy
from privacy_assets.synthesis.synthesize import synthesize
from privacy_assets.utility.assess import assess_utility
from privacy_assets.utility.foreign import why_foreign

REPOSITORY = Path(__file__).resolve().parent.parent
N_PEOPLE = 6_000
POLICY = Policy.for_use_case("research_sharing")
N_NOISE, N_NOISE_VALUES = 14, 50
TIMES = (1, 2, 8)
MOST_MOVED = 0.02
LEAST_ADMITTED, LEAST_REFUSED = 52 / 60, 54 / 60
N_OF_PARTS = {"rule": 20, "size": 3, "smooth": 15, "group": 20}
N_TRIPLES, LEAST_BY_GROUP, MOST_MATCHED, MOST_FLAGGED = 100, 0.95, 2e-4, 0.05
Random = np.random.Generator


def generated() -> pd.DataFrame:
    """Return people with 20 columns of eight values that depend on one hidden trait."""
    random = np.random.default_rng(3)
    values = 0.7 * random.normal(size=(3 * N_PEOPLE, 1)) + random.normal(size=(3 * N_PEOPLE, 20))
    return pd.DataFrame(np.clip(np.floor((values + 2.5) * 1.6), 0, 7).astype(int)).add_prefix("c")


def adult(data: Path) -> pd.DataFrame:
    return pd.concat([pd.read_csv(data / f"adult_{part}.csv") for part in ("ori", "control")], ignore_index=True)


def divided(table: pd.DataFrame, sizes: tuple[int, ...], random: Random) -> list[pd.DataFrame]:
    order, ends = random.permutation(len(table)), np.cumsum((0, *sizes))
    return [table.iloc[order[a:b]].reset_index(drop=True) for a, b in pairwise(ends)]


def decide(original: pd.DataFrame, synthetic: pd.DataFrame, control: pd.DataFrame, seed: int) -> str:
    """Return why the gate refuses records: what it finds first. Empty if it admits them."""
    if why_foreign(original, synthetic, control):
        return "cannot be compared"
    found = assess_disclosure(original, synthetic, control, seed=seed)
    figures = figures_of(DISCLOSURE, figures_in_manifest(found, DISCLOSURE), POLICY.required)
    if figures["leakage_detected"] == 1:
        return "leakage"
    assessed = assess_mpuccs(original, synthetic, control, max_baseline_cols=3)
    figures |= figures_of(MPUCC, figures_in_manifest(assessed), POLICY.required)
    limits = [limit for limit in POLICY.limits_of("synthetic") if limit.metric in figures and limit.blocks]
    return ", ".join(limit.metric for limit in limits if limit.outcome(figures) == "not met")


def copied(sides: list[pd.DataFrame], random: Random, share: float, change: Callable | None = None) -> pd.DataFrame:
    """Replace a share of other people by originals, changed or not."""
    original, _, others = sides
    n = round(share * len(others))
    rows = original.iloc[random.permutation(len(original))[:n]].reset_index(drop=True)
    rows = rows if change is None else change(rows, original)
    return pd.concat([rows, others[n:]], ignore_index=True)


def half_copied(sides: list[pd.DataFrame], random: Random, share: float) -> pd.DataFrame:
    others, n = sides[2], round(share * len(sides[2]))
    names = list(others.columns[random.permutation(others.shape[1])[: others.shape[1] // 2]])
    changed = {name: pd.concat([sides[0][name][:n], others[name][n:]], ignore_index=True) for name in names}
    return others.assign(**changed)


def is_number(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column)


def reflected(rows: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    numbers = {name: own.min() + own.max() - rows[name] for name, own in people.items() if is_number(own)}
    return rotated(rows, people).assign(**numbers)


def rotated(rows: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    """Replace each label by the next one; without labels, each number by the next one that occurs."""
    names = [name for name in people if not is_number(people[name])] or list(people)
    changed = {}
    for name in names:
        values = np.sort(people[name].dropna().unique())
        changed[name] = rows[name].map(dict(zip(values, np.roll(values, -1), strict=True)))
    return rows.assign(**changed)


def scaled(rows: pd.DataFrame, people: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(**{name: (0.97 * rows[name]).round(2) for name, own in people.items() if is_number(own)})


def made_by(method: str, sides: list[pd.DataFrame], random: Random) -> pd.DataFrame:
    made = synthesize(sides[0], method=method, seed=int(random.integers(2**31)), n_records=len(sides[2]))
    return made[sides[0].columns]


KINDS: dict[str, Callable] = {
    "other people": lambda sides, _: sides[2],
    **{f"copies of {share:.0%}": partial(copied, share=share) for share in (0.01, 0.05, 0.2, 1.0)},
    "CART": lambda sides, random: made_by("cart", sides, random),
    "smooth CART": lambda sides, random: made_by("smooth_cart", sides, random),
    "copula": lambda sides, random: made_by("gaussian_copula", sides, random),
    "half copies of 20%": partial(half_copied, share=0.2),
    "other people and noise": lambda sides, _: sides[2],
    **{f"copies of {share:.0%} and noise": partial(copied, share=share) for share in (0.05, 0.2, 1.0)},
    **{
        f"{change.__name__} copies of {share:.0%}": partial(copied, share=share, change=change)
        for change in (reflected, rotated, scaled)
        for share in (0.05, 0.2, 1.0)
    },
}
REFUSED = (*(f"copies of {share}" for share in ("5%", "20%", "100%")), "CART")
UNDOABLE = tuple(
    kind for kind in KINDS if kind.split()[0] in ("reflected", "rotated", "scaled") or kind.endswith("% and noise")
)
FEW = tuple(kind for kind in KINDS if "noise" in kind or kind.split()[0] in ("reflected", "rotated", "scaled"))


def with_noise(table: pd.DataFrame, random: Random) -> pd.DataFrame:
    noise = random.integers(0, N_NOISE_VALUES, (len(table), N_NOISE))
    return table.join(pd.DataFrame(noise).add_prefix("noise "))


def measure_rule(data: Path, n_splits: int, measured: Measurements) -> None:
    tables = {"adult": adult(data), "national": read(data / "nist", TARGET), "generated": generated()}
    admitted, tried = Counter(), Counter()
    why: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for seed in range(n_splits):
        for name, table in tables.items():
            for place, (kind, make) in enumerate(KINDS.items()):
                if kind in FEW and seed % 5:
                    continue
                sides = divided(table, (N_PEOPLE,) * 3, np.random.default_rng([seed, 31]))
                random = np.random.default_rng([seed, place, 37])
                synthetic = make(sides, random)
                original, control = sides[:2]
                if kind.endswith("noise"):
                    original, synthetic, control = (with_noise(own, random) for own in (original, synthetic, control))
                reason = decide(original, synthetic, control, seed)
                tried[kind] += 1
                admitted[kind] += not reason
                why[kind][reason] += 1
                print(f"{seed:>3} {name:>10} {kind:>30}: {reason or 'admitted'}", flush=True)
    print(f"\n{'':>32}admitted")
    for kind in KINDS:
        print(f"{kind:>30}  {admitted[kind]:>3} of {tried[kind]:<3} {dict(why[kind])}")
        measured.keep(**{figure_name("admitted", kind): admitted[kind], figure_name("tried", kind): tried[kind]})
    share = admitted["other people"] / tried["other people"]
    measured.check(f"other people: {share:.0%} admitted; at least {LEAST_ADMITTED:.0%}", share >= LEAST_ADMITTED)
    share = 1 - admitted["copies of 1%"] / tried["copies of 1%"]
    measured.check(f"copies of 1 %: {share:.0%} refused; at least {LEAST_REFUSED:.0%}", share >= LEAST_REFUSED)
    for kinds, words in ((REFUSED, "copies of 5, 20 and 100 % and CART"), (UNDOABLE, "noise, and undoable copies")):
        n, of = sum(tried[kind] - admitted[kind] for kind in kinds), sum(tried[kind] for kind in kinds)
        measured.check(f"{words}: {n} of {of} refused; all", n == of)


def measure_size(data: Path, n_splits: int, measured: Measurements) -> None:
    table, largest = adult(data), 0.0
    for seed in range(n_splits):
        random = np.random.default_rng([seed, 41])
        original, others = divided(table, (2_000, 2_000 * max(TIMES)), random)
        scores = []
        for times in TIMES:
            found = assess_mpuccs(original, others[: times * len(original)], max_baseline_cols=3).scores
            scores.append(found["privacy_risk_score"])
        print(f"{seed:>3}: " + ", ".join(f"{n} times {own:.3f}" for n, own in zip(TIMES, scores, strict=True)))
        largest = max(largest, np.ptp(scores))
    measured.keep(largest_difference=float(largest))
    measured.check(f"1, 2, 8 times as many records: {largest:.3f} apart; at most {MOST_MOVED}", largest <= MOST_MOVED)


def measure_smooth(data: Path, n_splits: int, measured: Measurements) -> None:
    rand = load_rand_hie(banded=True).drop(columns="person_id")
    tables = {"adult": adult(data), "national": read(data / "nist", TARGET), "generated": generated(), "RAND": rand}
    for leaves, settings in (("", {}), (" soft leaves", {"soft_leaves": True})):
        everywhere = np.zeros(2, int)
        for name, table in tables.items():
            own, n = np.zeros(2, int), min(3_000, len(table) // 2)
            for seed in range(n_splits):
                random = np.random.default_rng([seed, 43])
                original, control = divided(table, (n, n), random)
                made = synthesize(original, method="smooth_cart", seed=seed, settings=settings)[original.columns]
                own += assess_disclosure(original, made, control, seed=seed).scores["leakage_detected"] is True, 1
            everywhere += own
            print(f"{name + leaves:>22}: {own[0]} of {own[1]} flagged", flush=True)
            kept = {figure_name("flagged", name + leaves): own[0], figure_name("splits", name + leaves): own[1]}
            measured.keep(**{figure: int(n) for figure, n in kept.items()})
        share, low, high = wilson_interval(*map(float, everywhere), 0.95)
        print(f"smooth CART{leaves}: {share:.0%} flagged ({low:.0%} to {high:.0%})")
        total = {f"flagged{leaves}": everywhere[0], f"splits{leaves}": everywhere[1]}
        measured.keep(**{figure_name(figure): int(n) for figure, n in total.items()})


def shares_of_cells(table: pd.DataFrame, people: pd.DataFrame) -> float:
    """Return how far the shares of the cells of the group and two columns agree with those of people; at most 1."""
    both = pd.concat([people, table], ignore_index=True)
    for name in both:
        if is_number(both[name]) and both[name].nunique() > 10:
            edges = np.unique(people[name].quantile(np.linspace(0, 1, 11)))[1:-1]
            both[name] = np.where(both[name].isna(), -1, np.searchsorted(edges, both[name], side="right"))
    codes = both.apply(lambda column: pd.factorize(column)[0])
    random, agree = np.random.default_rng(0), []
    for _ in range(N_TRIPLES):
        names = [GROUP, *random.permutation(codes.columns.drop(GROUP))[:2]]
        shares = [
            own.value_counts(normalize=True) for own in (codes[names][: len(people)], codes[names][len(people) :])
        ]
        agree.append(1 - shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)
    return float(np.mean(agree))


def matched(original: pd.DataFrame, made: pd.DataFrame) -> float:
    """Return the share of the originals that are unique and occur among the records."""
    records = set(made.itertuples(index=False, name=None))
    unique = original[~original.duplicated(keep=False)]
    return sum(row in records for row in unique.itertuples(index=False, name=None)) / len(original)


def measure_group(data: Path, n_splits: int, measured: Measurements) -> None:
    table = read(data / "nist", TARGET)
    figures: dict[str, list[list[float]]] = {"": [], " with group": []}
    for seed in range(n_splits):
        random = np.random.default_rng([seed, 47])
        original, control, others = divided(table, (9_000,) * 3, random)
        reached = shares_of_cells(others, control)
        for words, own in figures.items():
            settings = {"group": GROUP} if words else {}
            made = synthesize(original, method="smooth_cart", seed=seed, settings=settings)[original.columns]
            worth = assess_utility(original, made, control, group=GROUP).scores
            is_flagged = assess_disclosure(original, made, control, seed=seed).scores["leakage_detected"] is True
            cells = shares_of_cells(made, control) / reached
            matches = matched(original.astype(str), made.astype(str))
            own.append([worth["utility"], worth["utility_by_group"], cells, matches, is_flagged])
            shown = ", ".join(f"{value:.4f}" for value in own[-1])
            print(f"{seed:>3} smooth CART{words:<12}: {shown}", flush=True)
    plain, grouped = (np.mean(own, axis=0) for own in figures.values())
    for words, own in zip(figures, (plain, grouped), strict=True):
        names = ("utility", "utility by group", "cells", "matched", "flagged")
        print(
            f"smooth CART{words}: " + ", ".join(f"{name} {value:.4f}" for name, value in zip(names, own, strict=True))
        )
        measured.keep(**{figure_name(name, words): float(value) for name, value in zip(names, own, strict=True)})
    measured.check(f"utility {grouped[0]:.3f}; at least {plain[0]:.3f} without", grouped[0] >= plain[0])
    measured.check(f"by group {grouped[1]:.3f}; at least {LEAST_BY_GROUP}", grouped[1] >= LEAST_BY_GROUP)
    measured.check(f"unique people matched {grouped[3]:.4%}; at most {MOST_MATCHED:.2%}", grouped[3] <= MOST_MATCHED)
    more = grouped[4] - plain[4]
    measured.check(f"flagged {more:+.0%} of the splits; at most {MOST_FLAGGED:+.0%}", more <= MOST_FLAGGED)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", REPOSITORY.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder with adult's files and nist/")
    for part, n in N_OF_PARTS.items():
        parser.add_argument(f"--{part}", nargs="?", type=int, const=n, metavar="N", help=f"{n} by default")
    add_json_option(parser)
    options = parser.parse_args()
    asked = {part: getattr(options, part) for part in N_OF_PARTS}
    asked = {part: n for part, n in asked.items() if n} or N_OF_PARTS
    codes = []
    for part, n in asked.items():
        measured = Measurements(f"admitted_{part}", options)
        measure = {"rule": measure_rule, "size": measure_size, "smooth": measure_smooth, "group": measure_group}[part]
        measure(options.data, n, measured)
        codes.append(measured.finish())
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
