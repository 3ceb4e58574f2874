"""A process of a user: every main function, on every kind of column. Prints what was compiled in it."""

import json

import numpy as np
import pandas as pd
from numba.core import event

import privacy_assets
from privacy_assets import Hierarchy, LDiversity, linkage, reidentification, semantic_risk
from privacy_assets.semantic_risk.concept_lattice import close_attributes
from tests.mixed_tables import POOLS, through_parquet

HALVES = {
    "integer": Hierarchy.intervals([5, 10]),
    "text": Hierarchy.prefixes([1]),
    "datetime": Hierarchy.dates(["day", "year"]),
}


def mixed_table(seed, n_rows=90):
    """A table with every kind of column, as private storage gives it back."""
    random = np.random.default_rng(seed)
    columns = {kind: [pool[i] for i in random.integers(0, len(pool), n_rows)] for kind, (pool, _) in POOLS.items()}
    table = pd.DataFrame({kind: pd.Series(values, dtype=POOLS[kind][1]) for kind, values in columns.items()})
    return through_parquet(table).assign(person=random.integers(0, n_rows // 2, n_rows))


def search(tables):
    original, synthetic, _ = tables
    plain = [table.drop(columns="person") for table in tables]
    for options in ({}, {"min_entropy_delta": 0.01}, {"renyi_alpha": float("inf")}, {"max_combinations": 30}):
        privacy_assets.assess_mpuccs(*plain, **{"max_baseline_cols": 3} | options)
    privacy_assets.assess_mpuccs(original, synthetic.drop(columns="person"), person="person", max_baseline_cols=2)
    privacy_assets.assess_disclosure(*plain)
    people = [plain[i].assign(person=np.arange(90) + 90 * i) for i in (0, 2)]
    privacy_assets.assess_disclosure(people[0], plain[1], people[1], person="person")
    many = [pd.DataFrame({"number": np.arange(n), "half": np.arange(n) // 2}) for n in (66_000, 70_000)]
    privacy_assets.assess_mpuccs(*many)


def anonymize(table):
    known = [kind for kind in POOLS if kind != "boolean"]
    sensitive = {"sensitive": ["boolean"], "max_suppression": 0.9}
    found = [
        privacy_assets.anonymize(table, quasi_identifiers=known, **{"k": 3} | options)
        for options in (
            {},
            {"subject": "person", "criterion": "range", "n_threads": 2},
            {"l_diversity": 2, **sensitive},
            {"l_diversity": LDiversity(1.5, "entropy"), "normalize": "range", **sensitive},
            {"l_diversity": LDiversity(2, "recursive", 3.0), "t_closeness": 0.5, "bounds": "cell", **sensitive},
            {"relaxed": True, "output": "centroid"},
        )
    ]
    wide = pd.DataFrame({"number": np.arange(70_000.0), "text": np.arange(70_000).astype(str)})
    privacy_assets.anonymize(wide, quasi_identifiers=["number", "text"], k=30_000)
    divided = privacy_assets.LocalEngine(rows_per_task=30)
    privacy_assets.anonymize(table, quasi_identifiers=known, k=3, engine=divided)
    privacy_assets.anonymize(table, quasi_identifiers=known, k=3, subject="person", engine=divided)
    privacy_assets.anonymize(wide, quasi_identifiers=["text"], k=9_000, sensitive=["number"], l_diversity=2)
    by_lattice = privacy_assets.anonymize(
        table,
        quasi_identifiers=list(HALVES),
        k=4,
        method="lattice",
        hierarchies=HALVES,
        t_closeness=0.9,
        **sensitive,
    )
    privacy_assets.apply_cuts(found[0].tree, table)
    for each in (*found, by_lattice):
        privacy_assets.verify_anonymity(each.table, quasi_identifiers=known[:4], sensitive=["boolean"])
    for name in POOLS.keys() - {"integer"}:
        privacy_assets.verify_anonymity(table, quasi_identifiers=["integer"], sensitive=[name], subject="person")
    along = privacy_assets.anonymize(
        table, quasi_identifiers=known, k=3, subject="person", hierarchies={"text": HALVES["text"]}
    )
    privacy_assets.assess_membership(found[0], table)
    privacy_assets.assess_reidentification(table, along, max_known=1, hierarchies={"text": HALVES["text"]})
    privacy_assets.assess_reidentification(table, found[0], max_known=2)
    privacy_assets.assess_reidentification(table, found[0], max_known=2, curve_sample=20)
    privacy_assets.assess_reidentification(table, found[1], max_known=1, links=["boolean"], known_rows=2)
    index = reidentification.CandidateIndex.of_anonymization(table, found[0])
    index.members(0, known)
    linkage.match_candidates(index, known)


def find_concepts(table):
    few = table.head(30)
    scales = {"integer": "ordinal", "float": {"ordinal": [0.1, 1.0]}, "category": "nominal", "boolean": "nominal"}
    found = privacy_assets.assess_semantic_risk(few, scales, risk_limit=0.3)
    assert len(found.records) == len(few)
    privacy_assets.assess_semantic_risk(few, scales)
    context = semantic_risk.read_formal_context(few, scales)
    semantic_risk.read_concepts(context)
    close_attributes(context, [context.attributes[0].name])


def main():
    tables = [mixed_table(seed) for seed in range(3)]
    with event.install_recorder("numba:compile") as found:
        search(tables)
        anonymize(tables[0])
        find_concepts(tables[0])
        privacy_assets.synthesize(tables[0].drop(columns=["date", "duration"]), method="smooth_cart")
    print(json.dumps(sorted({str(each.data["dispatcher"]) for _, each in found.buffer})))


if __name__ == "__main__":
    main()
