"""Count the detections of the disclosure test with other constants and other criteria.

    python benchmarks/disclosure_constants.py --data ../shared/data --half chosen [--seeds N] [--tables ...] [--json]

Constants are chosen on one half of the tables, and what they do on the other half is reported. Adult is in neither, as
the constants were first set on it. Every variant is tested on the same records by the same divisions of the people, and
each is exact, so only what it detects differs; ``other people`` cannot leak. Varied are:

- synthetic records on which a claim must rest (CAP with minimum counts), 1 as it is;
- bins in which numbers are equal, for singling out and for guesses, 20 as it is;
- missing numbers for the nearest record, as far as possible from all others as it is, or like the median;
- penalty of closeness (4 as it is), and share of the records that counts as closest (0.5 % as it is);
- the criteria that are tested together.

Tables: rand, prices, wide and anes96 to choose; stays, survey and fair to report. Of wide only pairs of columns.
"""

import argparse
import os
import sys
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from disclosure_tables import INNOCENT, LEAKING, divided, interpolated, table_of, tables, with_copies
from measurements import Measurements, add_json_option

from privacy_assets.disclosure import codes, column_set_evidence, nearest_evidence, pooled_records, scores
from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.disclosure.permutation_test import adjusted_p_values, as_integers, p_values, permuted_sums
from privacy_assets.mpucc.preprocess import check_columns, separate_people

HALVES = {"chosen": ("rand", "prices", "wide", "anes96"), "reported": ("stays", "survey", "fair")}
SMALL, LARGE = (400, 200, 344), (3_000, 1_400, 1_500)
CASES = {
    "other people, 400": (SMALL, lambda _own, others, rng: INNOCENT["other people"](others, SMALL[0], rng)),
    "copies 3 %, 400": (SMALL, lambda own, others, rng: with_copies(others, own, 0.03, (0, 0), rng)),
    "near copies 5 %, 2 values, 400": (SMALL, LEAKING["near copies 5 %, 2 values"]),
    "SMOTE, 400": (SMALL, lambda own, others, rng: interpolated(own, len(others), rng)),
    "copies 0.3 %, 3,000": (LARGE, LEAKING["copies 0.3 %"]),
    "near copies 1 %, 3,000": (LARGE, LEAKING["near copies 1 %"]),
    "near copies 0.5 %, 3,000": (LARGE, lambda own, others, rng: with_copies(others, own, 0.005, (1, 2), rng)),
    "copies 2 %, 400": (SMALL, lambda own, others, rng: with_copies(others, own, 0.02, (0, 0), rng)),
}
LEAST_COUNTS, BINS, PENALTIES, SHARES = (1, 2, 3, 5), (10, 20, 50, 10**9), (0.0, 2.0, 4.0, 8.0), (0.25, 0.5, 1.0, 2.0)
AS_IT_IS = (
    "singling out, 20 bins",
    "linkability",
    "claims of 1",
    "nearest, 20 bins",
    "closest 0.5 %, 4",
    "rare values",
)
N_PERMUTATIONS, LEVEL = 999, 0.05


def families() -> dict[str, tuple[str, ...]]:
    """Return the criteria of each variant."""

    def instead(**others: str) -> tuple[str, ...]:
        return tuple(others.get(name.split(",")[0].split(" ")[0], name) for name in AS_IT_IS)

    found = {"as it is": AS_IT_IS}
    found |= {f"claims of {n} or more": instead(claims=f"claims of {n}") for n in LEAST_COUNTS[1:]}
    for n, words in ((10, "10 bins"), (50, "50 bins"), (10**9, "equal values")):
        found[words] = instead(singling=f"singling out, {n} bins", nearest=f"nearest, {n} bins")
    found["missing like the median"] = instead(nearest="nearest, missing like the median")
    found |= {f"penalty {n:g}": instead(closest=f"closest 0.5 %, {n:g}") for n in PENALTIES if n != 4}
    found |= {f"closest {n:g} %": instead(closest=f"closest {n:g} %, 4") for n in SHARES if n != 0.5}
    found["closest 0.25 % and 0.5 %"] = (*AS_IT_IS, "closest 0.25 %, 4")
    found |= {f"without {name}": tuple(own for own in AS_IT_IS if own != name) for name in AS_IT_IS}
    found["with verbatim copies"] = (*AS_IT_IS, "verbatim")
    return found


def claims_by_count(records: pooled_records.PooledRecords, sets: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores of claims that rest on so many synthetic records, set by set."""
    real, made = sides = [side.take(slice(None)) for side in records.exact]
    found = {n: np.zeros(records.n_real) for n in LEAST_COUNTS[1:]}
    for own in sets:
        columns = own[own >= 0]
        keys = [np.zeros(side.shape[1], np.int64) for side in sides]
        for side, key in zip(sides, keys, strict=True):
            for j in columns:
                key *= records.n_exact[j]
                key += side[j]
        order = np.argsort(keys[1], kind="stable")
        groups, first, counts = np.unique(keys[1][order], return_index=True, return_counts=True)
        is_frequent = counts >= LEAST_COUNTS[1]
        group = np.minimum(np.searchsorted(groups, keys[0]), len(groups) - 1)
        rows = np.flatnonzero((groups[group] == keys[0]) & is_frequent[group])
        if len(rows) == 0:
            continue
        others = np.setdiff1d(np.arange(len(real)), columns)
        ordered = made[others][:, order]
        least, most = np.minimum.reduceat(ordered, first, axis=1), np.maximum.reduceat(ordered, first, axis=1)
        claimed = (least == most)[:, group[rows]]
        right = claimed & (least[:, group[rows]] == real[others][:, rows])
        for n, score in found.items():
            counted = claimed & (counts[group[rows]] >= n)
            n_claims = counted.sum(axis=1)
            precision = (right & counted).sum(axis=1) / np.maximum(n_claims, 1)
            score[rows] += (right & counted).sum(axis=0) - precision @ counted
    return {f"claims of {n}": score for n, score in found.items()}


def all_scores(original: object, synthetic: object, control: object, max_known: int) -> dict[str, np.ndarray]:
    """Return the scores of all real records by all variants of all criteria."""
    frames, people = separate_people({"original": original, "synthetic": synthetic, "control": control}, None)
    check_columns(frames)
    found: dict[str, np.ndarray] = {}
    with scores.Workers(1, None) as workers:
        for n in BINS:
            with patch.object(pooled_records, "MOST_BINS", n):
                records = pooled_records.pool_records(frames, people)
            attack = scores.Attack(np.arange(len(records.columns)), max_known, np.arange(records.n_real))
            found[f"singling out, {n} bins"] = column_set_evidence.single_out_records(records, attack, workers)[
                "singled_out"
            ]
            found[f"nearest, {n} bins"] = surprising_guesses(records, attack, workers)
            if n == 20:
                as_it_is = records
        with patch.object(nearest_evidence, "distance_codes", missing_like_the_median):
            found["nearest, missing like the median"] = surprising_guesses(as_it_is, attack, workers)
        found["linkability"] = column_set_evidence.link_records(as_it_is, attack, workers)["linked"]
        found["claims of 1"] = column_set_evidence.count_claims_on_records(as_it_is, attack, workers)["claim_score"]
        found |= claims_by_count(as_it_is, attack.sets)
        for penalty in PENALTIES:
            with patch.object(nearest_evidence, "EQUALITY", penalty):
                closeness = nearest_evidence.find_closest_records(as_it_is, attack, workers)["closeness"]
            for share in SHARES if penalty == 4 else (0.5,):
                found[f"closest {share:g} %, {penalty:g}"] = closest(closeness, share / 100)
        found["rare values"] = scores.count_rare_values(as_it_is, attack)["is_rare"].sum(axis=0)
    real, synthetic = (np.ascontiguousarray(side.take(slice(None)).T) for side in as_it_is.exact)
    made = set(map(bytes, synthetic))
    found["verbatim"] = np.array([bytes(own) in made for own in real])
    return found


def missing_like_the_median(records: pooled_records.PooledRecords) -> tuple[codes.Sides, int]:
    sides, unit = pooled_records.distance_codes(records)
    for side in sides:
        for j in np.flatnonzero(records.is_number):
            side.tables[j][side.tables[j] < 0] = unit // 2
    return sides, unit


def surprising_guesses(
    records: pooled_records.PooledRecords, attack: scores.Attack, workers: scores.Workers
) -> np.ndarray:
    found = nearest_evidence.guess_from_nearest(records, attack, workers)
    return CRITERIA["inference_near"].score(found, found)


def closest(closeness: np.ndarray, share: float) -> np.ndarray:
    """Return 1 for the closest records; those at the edge share the rest."""
    n = max(share * len(closeness), 1.0)
    edge = np.sort(closeness)[::-1][int(np.ceil(n)) - 1]
    return np.where(closeness == edge, (n - (closeness > edge).sum()) / (closeness == edge).sum(), closeness > edge)


def key_of(*words: str) -> str:
    for old, new in ((" %", "_percent"), (",", ""), (".", "_"), (" ", "_")):
        words = tuple(word.replace(old, new) for word in words)
    return "_".join(words).lower()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", Path(__file__).resolve().parent.parent.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder with the files of adult")
    parser.add_argument("--half", choices=list(HALVES), required=True)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--tables", nargs="*", help="names of the tables; default: all of the half")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("disclosure_constants", options)
    made, variants = tables(options.data.resolve()), families()
    everything = {name: dict.fromkeys(CASES, 0) for name in variants}
    n_tables = dict.fromkeys(CASES, 0)
    for name in options.tables or HALVES[options.half]:
        for case in options.cases:
            sizes, generate = CASES[case]
            n_found = dict.fromkeys(variants, 0)
            if len(table_of(name, made, 0, sum(sizes))) < sum(sizes):
                continue
            for seed in range(options.seeds):
                rng = np.random.default_rng([seed, list(CASES).index(case), 21])
                original, control, others = divided(table_of(name, made, seed, sum(sizes)), sizes, rng)
                synthetic = generate(original, others, rng)
                of_record = all_scores(original, synthetic, control, 2 if name == "wide" else 3)
                whole, _ = as_integers(np.column_stack([np.asarray(own, float) for own in of_record.values()]))
                n = len(original)
                p = p_values(np.vstack([whole[:n].sum(axis=0), permuted_sums(whole, n, N_PERMUTATIONS, rng)]))
                place = {each: j for j, each in enumerate(of_record)}
                for variant, criteria in variants.items():
                    adjusted = adjusted_p_values(p[:, [place[each] for each in criteria]])
                    n_found[variant] += bool(adjusted.min() <= LEVEL)
            n_tables[case] += options.seeds
            for variant, found in n_found.items():
                everything[variant][case] += found
            print(f"{name}, {case}: {n_found}", flush=True)
            measured.keep(**{key_of(name, case, variant): n for variant, n in n_found.items()})
    print(f"\n{options.half:>28}" + "".join(f"{case:>32}" for case in CASES))
    print(f"{'tables':>28}" + "".join(f"{n:>32}" for n in n_tables.values()))
    for variant, found in everything.items():
        print(f"{variant:>28}" + "".join(f"{n:>32}" for n in found.values()))
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
