"""Repeating a search only where a change can matter finds what a search of the changed tables finds."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.engine.local import LocalEngine
from privacy_assets.mpucc.placed_tables import placed_tables
from privacy_assets.mpucc.preprocess import group_equal_rows, preprocess
from privacy_assets.mpucc.repeated_search import RepeatedSearch
from privacy_assets.mpucc.results import SyntheticSearch, score
from privacy_assets.mpucc.settings import MpuccSettings
from tests.examples import examples


def scores_of_another_search(tables, place, new_codes, settings):
    """Recode both tables or drop the column, keep equal rows once, and search them as a whole."""
    codes = {name: list(tables.tables[name].codes) for name in ("original", "synthetic")}
    columns, kinds, labels = list(tables.columns), list(tables.kinds), list(tables.labels)
    if new_codes is None:
        for own in (columns, kinds, labels, *codes.values()):
            del own[place]
    else:
        distinct, compact = np.unique(new_codes, return_inverse=True)
        labels[place] = np.array([str(code) for code in distinct], object)
        for own in codes.values():
            own[place] = compact.astype(np.uint8)[own[place]]
    n_codes = [len(own) for own in labels]
    coded = {
        name: group_equal_rows(tables.tables[name], tuple(own), n_codes, tables.deduplicate)
        for name, own in codes.items()
    }
    changed = replace(tables, columns=tuple(columns), kinds=tuple(kinds), labels=tuple(labels), control=None, **coded)
    size = settings.max_baseline_cols
    own = replace(settings, max_baseline_cols=None if size is None else min(size, len(columns)))
    search = SyntheticSearch(changed, own, 1, None)
    return score(search, search.against(changed.original, "", with_profile=False))


def table(rng, n_rows, n_values):
    return pd.DataFrame({f"c{i}": np.minimum(rng.geometric(0.4, n_rows) - 1, n - 1) for i, n in enumerate(n_values)})


def check_every_change(tables, rng, own, engine=None):
    # Whether rows can become equal at all is asked for all of the places together.
    for places in (range(len(tables.columns)), [int(rng.integers(len(tables.columns)))]):
        with placed_tables(engine, [tables.synthetic, tables.original], has_people=True) as placed:
            again = RepeatedSearch(tables, places, own, 1, placed=placed)
            for place in places:
                n_labels = len(tables.labels[place])
                changes = [rng.integers(0, 3, n_labels), np.arange(n_labels) // 2]
                for new_codes in [*([None] if len(tables.columns) > 1 else []), *changes]:
                    found = again.scores_after(place, new_codes)
                    expected = scores_of_another_search(tables, place, new_codes, own)
                    assert found == {name: expected[name] for name in found}
                    assert "identification_rate" in found


@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
    st.booleans(),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([0.0, 0.0, 0.2]),
    st.sampled_from(["live_classes", "live_classes", "mutual_information"]),
    st.sampled_from([None, None, LocalEngine(rows_per_task=7, rows_per_batch=9, batches_per_partition=1)]),
)
@settings(max_examples=examples(80), deadline=None)
def test_each_change_scores_as_another_search_does(
    seed, n_values, deduplicate, rows_each, size, min_gain, pruning, engine
):
    rng = np.random.default_rng(seed)
    original, synthetic = (table(rng, int(rng.integers(1, 40)), n_values) for _ in range(2))
    person = None
    if rows_each is not None:
        original["person"], person = rng.integers(0, max(len(original) // rows_each, 1), len(original)), "person"
    tables = preprocess(original, synthetic, deduplicate=deduplicate, person=person)
    size = None if size is None else min(size, len(n_values))
    own = MpuccSettings(max_baseline_cols=size, min_entropy_delta=min_gain, pruning=pruning)
    check_every_change(tables, rng, own, engine)


@pytest.mark.parametrize("person", [None, "person"])
@pytest.mark.parametrize("deduplicate", [True, False])
def test_large_tables_in_which_rows_become_equal(person, deduplicate):
    rng = np.random.default_rng(7)
    original, synthetic = (table(rng, n, [200, 60, 30, 12, 3]) for n in (700, 600))
    if person:
        original["person"] = rng.integers(0, 400, len(original))
    tables = preprocess(original, synthetic, deduplicate=deduplicate, person=person)
    check_every_change(tables, rng, MpuccSettings(max_baseline_cols=3))
    check_every_change(tables, rng, MpuccSettings(max_baseline_cols=3), LocalEngine(rows_per_task=200))
