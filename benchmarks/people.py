"""Show that figures count people: those left for a reader who knows several rows of a person that a release links.

    python benchmarks/people.py [--people 38000] [--runs 200] [--json]

Brute force: on small generated releases of ratings, by Mondrian and with boxes that overlap, 1,200 counts of people
left by known rows are compared with trying all assignments of known rows to released ones. A million rows: ratings of
38,000 people with a pseudonym: 10,000 samples of 2, 4 and 8 known rows for k = 5; for k = 5, where the first pairs of
a person leave too few, and for k = 500, where many are compared, the worst pairs of everybody; in CPU seconds on one
thread (reading the release, and people left by all rows, apart). Nearest person: synthetic ratings of 600 people of
whom 2 % have the rows of an original, which the criterion finds, and of 200 people who are nobody's copies. The exit
code is 1 if a bar is missed.
"""

import argparse
import sys
import time
from itertools import pairwise
from pathlib import Path

from measurements import Measurements, add_json_option

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

KNOWN, K, LARGE_K = ["movie", "stars", "day"], 5, 500
N_TABLES, N_COUNTS = 20, 1200
SAMPLES_BAR, PAIRS_BAR = 2, 10
LEVEL = 0.05


def ratings(n_people: int, n_each: int = 30, n_movies: int = 500, seed: int = 0):
    """Ratings like those of the Netflix Prize: few popular movies, and days of each person close to each other."""
    import numpy as np
    import pandas as pd

    random = np.random.default_rng(seed)
    n_rows = np.maximum(3, random.lognormal(np.log(n_each) - 0.18, 0.6, n_people)).astype(int)
    person = np.repeat(np.arange(n_people), n_rows)
    popularity = 1 / (np.arange(n_movies) + 10.0)
    movie = random.choice(n_movies, len(person), p=popularity / popularity.sum())
    begin, length = random.integers(0, 1800, n_people), random.integers(60, 400, n_people)
    table = pd.DataFrame(
        {
            "person": person,
            "movie": movie,
            "stars": np.clip(np.rint(random.normal(3.6, 1.1, len(person))), 1, 5).astype(int),
            "day": begin[person] + random.integers(0, length[person]),
            "pseudonym": random.permutation(10 * n_people)[:n_people][person],
        }
    )
    return table.astype({"movie": "category"}).drop_duplicates(["person", "movie"], ignore_index=True)


def released(table, k: int, **options):
    """A release by Mondrian that keeps the pseudonym: its candidates, and the person and group of each row."""
    import numpy as np

    import privacy_assets as pa

    cut = pa.anonymize(table, quasi_identifiers=KNOWN, k=k, subject="person", **options)
    index = pa.reidentification.CandidateIndex.of_anonymization(table, cut)
    return index, index.people[index.truth], cut.table["pseudonym"].to_numpy().astype(np.int64)


def differences_from_brute_force(n_tables: int = N_TABLES, n_counts: int = N_COUNTS) -> int:
    """Count people left by known rows in small releases, and by trying everything; return how often these differ."""
    import numpy as np

    from privacy_assets.reidentification.linked_rows import LinkedRows, read_known_rows
    from tests.reference.linked_rows import people_left

    n_different, n_each = 0, n_counts // n_tables
    for seed in range(n_tables):
        random = np.random.default_rng(seed)
        table = ratings(30, 5, 12, seed)
        index, people, groups = released(table, 3)
        columns = index.masked(KNOWN)
        if seed % 2:  # released values without the masks of the other columns overlap
            columns = columns[1:]
        known = read_known_rows(columns, index.truth)
        linked = LinkedRows.of_groups(known, people, groups)
        sets = [[set(own.sets.codes_of(s).tolist()) for s in range(own.sets.n_sets)] for own in columns]
        boxes = [
            [of_set[s] for of_set, s in zip(sets, own, strict=True)]
            for own in zip(*(column.sets.set_of_row.tolist() for column in columns), strict=True)
        ]
        codes = np.column_stack([column.codes[index.truth] for column in columns])
        row_of_known = {int(q): tuple(codes[j].tolist()) for j, q in enumerate(known.known_of_row)}
        targets = list(pairwise(linked.first.tolist()))
        samples = []
        for number in range(n_each):
            begin, end = targets[random.integers(len(targets))]
            samples.append(np.sort(random.choice(linked.known[begin:end], min(number % 3 + 1, end - begin), False)))
        first = np.cumsum([0, *map(len, samples)])
        for sample, size in zip(samples, linked.count(first, np.concatenate(samples)), strict=True):
            left = people_left([row_of_known[q] for q in sample.tolist()], boxes, people.tolist(), groups.tolist())
            n_different += len(left) != size
    return n_different


def measure_brute_force(measured: Measurements) -> None:
    n_different = differences_from_brute_force()
    measured.keep(counts_compared=N_COUNTS, counts_that_differ=n_different)
    measured.check(f"{n_different} of {N_COUNTS} counts differ from brute force; none may", n_different == 0)


def measure_linked_rows(measured: Measurements, n_people: int) -> None:
    """Measure samples of known rows, and the worst pairs of everybody."""
    from privacy_assets.reidentification.linked_rows import LinkedRows, linked_curve, read_known_rows

    index, people, groups = released(ratings(20), K)
    linked_curve(LinkedRows.of_groups(read_known_rows(index.masked(KNOWN), index.truth), people, groups), 3, K)
    table = ratings(n_people)
    for k in (K, LARGE_K):
        index, people, groups = released(table, k)
        start = time.process_time()
        rows = LinkedRows.of_groups(read_known_rows(index.masked(KNOWN), index.truth), people, groups)
        n_all = int(rows.sizes_of_all.min())
        reading, start = time.process_time() - start, time.process_time()
        shares = [float((sizes == 1).mean()) for sizes in rows.sample([2, 4, 8], 10_000, seed=0)]
        samples, start = time.process_time() - start, time.process_time()
        pairs = rows.worst(2, k)
        seconds = time.process_time() - start
        print(f"{len(people)} rows, k = {k}: 2, 4, 8 rows single out {shares}; {pairs}; all rows leave {n_all}")
        measured.keep(**{f"reading_k_{k}_cpu_seconds": reading, f"samples_k_{k}_cpu_seconds": samples})
        measured.keep(**{f"pairs_k_{k}_cpu_seconds": seconds})
        words = f"k = {k}: 10,000 samples of three sizes take {samples:.2f} CPU s"
        measured.check(f"{words}; at most {SAMPLES_BAR}", samples <= SAMPLES_BAR)
        measured.check(f"k = {k}: all pairs take {seconds:.1f} CPU s; at most {PAIRS_BAR}", seconds <= PAIRS_BAR)


def p_of_nearest_person(n_people: int, share: float, seed: int) -> float:
    """Test synthetic ratings, of which a share of the people are copied, and return the p value of the criterion."""
    import numpy as np
    import pandas as pd

    from privacy_assets.disclosure.assess import assess_disclosure

    table = ratings(3 * n_people, 12, 60, seed)
    table = table.assign(movie="m" + table["movie"].astype(str), year=table["day"] // 365)
    table = table[["person", "movie", "stars", "year"]]
    side = table["person"] // n_people
    original, control, synthetic = (table[side == place].reset_index(drop=True) for place in range(3))
    copied = np.random.default_rng(seed).choice(n_people, round(share * n_people), replace=False)
    own = original[original["person"].isin(copied)].assign(person=lambda rows: rows["person"] + 2 * n_people)
    synthetic = pd.concat([synthetic[~synthetic["person"].isin(copied + 2 * n_people)], own], ignore_index=True)
    found = assess_disclosure(original, synthetic, control, person="person", synthetic_person="person", seed=seed)
    return float(found.criteria.set_index("criterion")["p_value"]["nearest_person"])


def measure_nearest_person(measured: Measurements, n_runs: int) -> None:
    """Count the runs in which copied people are found, and those in which people who are no copies are flagged."""
    n_found = sum(p_of_nearest_person(600, 0.02, seed) <= LEVEL for seed in range(10))
    start = time.process_time()
    n_flagged = sum(p_of_nearest_person(200, 0.0, seed) <= LEVEL for seed in range(n_runs))
    seconds = (time.process_time() - start) / n_runs
    most = n_runs * LEVEL + 2 * (n_runs * LEVEL * (1 - LEVEL)) ** 0.5
    measured.keep(copied_people_found=n_found, people_flagged=n_flagged, nearest_person_cpu_seconds=seconds)
    measured.check(f"2 % of the people copied are found in {n_found} of 10 runs; at least 9", n_found >= 9)
    measured.check(f"{n_flagged} of {n_runs} runs without copies are flagged; at most {most:.1f}", n_flagged <= most)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=38_000, help="people with 30 ratings each, on average")
    parser.add_argument("--runs", type=int, default=200, help="runs without copies of people")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("people", options)
    measure_brute_force(measured)
    measure_linked_rows(measured, options.people)
    measure_nearest_person(measured, options.runs)
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
