"""Candidates by lists of originals are those of the scan of all originals, record by record."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.columns.masks import BoundedNoise, Exact, Label, ReleaseModel, Suppressed
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.candidate_lists import members_by_cells
from tests.examples import examples

SETS = {"x": "{x, y}", "y": "*", "z": "z"}
MODEL = ReleaseModel({"age": BoundedNoise("age", 2), "sex": Exact("sex"), "town": Label("town"), "name": Suppressed()})
COLUMNS = ["age", "sex", "town", "name"]


def tables(n_original, n_released, seed):
    rng = np.random.default_rng(seed)
    original = pd.DataFrame(
        {
            "age": rng.integers(0, 9, n_original).astype(float),
            "sex": rng.choice(["f", "m"], n_original),
            # A set may name values of the originals only.
            "town": [*SETS, *rng.choice(list(SETS), n_original - len(SETS))],
            "name": [f"n{i}" for i in range(n_original)],
        }
    )
    original.loc[rng.random(n_original) < 0.1, "age"] = np.nan
    truth = rng.permutation(n_original)[:n_released]
    released = original.iloc[truth].reset_index(drop=True)
    released["age"] += rng.integers(-2, 3, n_released)
    released["town"] = [SETS[town] if rng.random() < 0.7 else town for town in released["town"]]
    return original, released.drop(columns="name"), truth


@given(st.integers(3, 25), st.integers(0, 10**6), st.lists(st.sampled_from(COLUMNS), unique=True), st.data())
@settings(max_examples=examples(80), deadline=None)
def test_the_candidates_of_every_combination_of_cells_are_those_of_the_scan(n_original, seed, known, data):
    original, released, truth = tables(n_original, data.draw(st.integers(1, n_original)), seed)
    index = CandidateIndex(MODEL, original, released, truth, n_threads=1)
    seen = []
    for rows, members in members_by_cells(index.masked(known), index.n_original, index.n_released):
        for i in rows.tolist():
            assert members.tolist() == index.members(i, known).tolist()
        seen += rows.tolist()
    assert sorted(seen) == list(range(len(released)))


@pytest.mark.parametrize("known", [[], ["name"]])
def test_everybody_is_a_candidate_where_nothing_is_known(known):
    original, released, truth = tables(6, 4, 0)
    index = CandidateIndex(MODEL, original, released, truth, n_threads=1)
    ((rows, members),) = members_by_cells(index.masked(known), 6, 4)
    assert (rows.tolist(), members.tolist()) == ([0, 1, 2, 3], [0, 1, 2, 3, 4, 5])
