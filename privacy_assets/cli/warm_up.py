"""Compilation of all kernels before the first table, for images: the command ``privacy_assets warm-up``.

Numba compiles a kernel when it is first called and stores it on disk, for this processor and this installation. So each
function that uses kernels is called on small generated tables, in every way that leads to different compiled code.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from privacy_assets.anonymity.links import find_links
from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import LDiversity, anonymize
from privacy_assets.anonymization.cut_tree import apply_cuts
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.unit_keys import find_unit_keys
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.engine.local import LocalEngine
from privacy_assets.kernels.compilation_progress import progress
from privacy_assets.linkage.matching import match_candidates
from privacy_assets.mpucc.assess import assess_mpuccs, assess_preprocessed
from privacy_assets.mpucc.column_changes import measure_column_changes
from privacy_assets.mpucc.kernels.live_classes import identify
from privacy_assets.mpucc.preprocess import preprocess
from privacy_assets.mpucc.settings import MpuccSettings
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.membership import assess_membership
from privacy_assets.semantic_risk.assess import assess_semantic_risk
from privacy_assets.semantic_risk.concept_lattice import read_concepts
from privacy_assets.semantic_risk.formal_context import read_formal_context
from privacy_assets.synthesis.synthesize import synthesize

KNOWN = ("age", "income", "plan")
# Wider codes have four bytes, and Mondrian's kernels are compiled for two and for four bytes, with and without people
# or sensitive values.
MOST_NARROW_CODES = 1 << 16


class WarmUp(NamedTuple):
    """Number of compiled functions (0 if the cache had all of them), seconds, and the directory of the cache.

    The directory is that of one kernel; with ``NUMBA_CACHE_DIR``, those of the others are next to it.
    """

    n_functions: int
    seconds: float
    directory: Path


def warm_up() -> WarmUp:
    """Compile every kernel of this package into Numba's cache.

    The cache is ``NUMBA_CACHE_DIR``, else ``__pycache__`` of the package, or of the user if that is not writable.
    """
    began, n_before = time.monotonic(), progress.n_functions
    tables = [_make_table(seed) for seed in range(3)]
    find_unit_keys(tables[0])
    find_links(tables[0], tables[0]["person"].to_numpy(), 3)
    _search(*tables)
    _release_and_attack(tables[0])
    _find_concepts(tables[0])
    synthesize(tables[0], method="smooth_cart")
    compiled: Any = identify
    return WarmUp(progress.n_functions - n_before, time.monotonic() - began, Path(compiled.stats.cache_path))


def _make_table(seed: int, n_rows: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    income = random.normal(size=n_rows).round(1)
    return pd.DataFrame(
        {
            "person": np.arange(n_rows) // 2,
            "age": random.integers(0, 40, n_rows),
            "income": np.where(random.random(n_rows) < 0.1, np.nan, income),
            "plan": random.choice(["a", "b", "c", "d"], n_rows),
            "area": random.choice(["north", "south"], n_rows),
            "is_new": random.random(n_rows) < 0.5,
        }
    )


def _search(original: pd.DataFrame, synthetic: pd.DataFrame, control: pd.DataFrame) -> None:
    tables = [table.drop(columns="person") for table in (original, synthetic, control)]
    of_people = preprocess(original, tables[1], person="person")
    measure_column_changes(of_people, assess_preprocessed(of_people, MpuccSettings(max_baseline_cols=2)), max_columns=1)
    assess_mpuccs(*tables)
    assess_mpuccs(*tables, max_combinations=6)
    others = control.assign(person=control["person"] + len(control))
    assess_disclosure(original, synthetic, others, person="person", synthetic_person="person")
    divided = LocalEngine(rows_per_task=len(original))
    assess_disclosure(original, tables[1], others, person="person", engine=divided)


def _release_and_attack(table: pd.DataFrame) -> None:
    wide = pd.DataFrame({"number": np.arange(MOST_NARROW_CODES + 1), "person": np.arange(MOST_NARROW_CODES + 1)})
    for subject in (None, "person"):
        anonymize(wide, quasi_identifiers=["number"], k=len(wide) // 2, subject=subject)
    found = anonymize(
        table,
        quasi_identifiers=KNOWN,
        k=2,
        subject="person",
        sensitive=["area"],
        l_diversity=LDiversity(2, "recursive", 5.0),
        t_closeness=0.6,
        max_suppression=0.1,
        bounds="cell",
    )
    assert found.tree is not None  # noqa: S101 - cuts have a tree
    apply_cuts(found.tree, table)
    verify_anonymity(found.table, quasi_identifiers=KNOWN, sensitive=["area"])
    verify_anonymity(table, quasi_identifiers=["plan"], sensitive=["income"], subject="person")
    assess_reidentification(table, found)
    assess_membership(found, table)
    of_four = table.assign(person=table["person"] // 2)
    linked = anonymize(of_four, quasi_identifiers=KNOWN, k=2, subject="person")
    assess_reidentification(of_four, linked, links=["area"], known_rows=2)
    of_records = anonymize(table, quasi_identifiers=KNOWN, k=2)
    # Two neighboring values with most rows are in the same bin: only their codes allow a cut.
    neighbors = pd.DataFrame({"number": np.append(np.arange(602), np.repeat([300, 301], 700))})
    for each, known, k in ((table, KNOWN, 2), (wide, ["number"], len(wide) // 4), (neighbors, ["number"], 900)):
        divided = LocalEngine(rows_per_task=len(each) // 3)
        anonymize(each, quasi_identifiers=known, k=k, engine=divided)
        of_people = each.assign(person=np.arange(len(each)))
        anonymize(of_people, quasi_identifiers=known, k=k, subject="person", engine=divided)
    match_candidates(CandidateIndex.of_anonymization(table, of_records), KNOWN)
    _release_by_lattice(table)


def _release_by_lattice(table: pd.DataFrame) -> None:
    hierarchies = {
        "age": Hierarchy.intervals([5, 10, 20]),
        "plan": Hierarchy.from_mapping({"x": ["a", "b"], "y": ["c", "d"]}),
    }
    anonymize(
        table,
        quasi_identifiers=list(hierarchies),
        k=5,
        sensitive=["area", "income"],
        method="lattice",
        hierarchies=hierarchies,
        l_diversity={"area": LDiversity(2, "recursive", 5.0)},
        t_closeness=0.7,
        max_suppression=0.2,
    )


def _find_concepts(table: pd.DataFrame) -> None:
    scales = {"age": {"ordinal": [10, 20, 30]}, "income": "ordinal", "plan": "nominal", "area": "nominal"}
    table = table.head(40)
    assess_semantic_risk(table, scales, risk_limit=0.3)
    context = read_formal_context(table, scales)
    read_concepts(context)
