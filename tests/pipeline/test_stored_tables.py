"""Tables in files are measured like frames."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.rule_violations import count_rule_violations
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.rare_values import count_rare_values
from privacy_assets.mpucc.preprocess import PreprocessedTables, preprocess
from privacy_assets.release.drift import measure_drift, profile_table
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from privacy_assets.storage.table import StoredTable, store
from privacy_assets.utility.foreign import why_foreign

CONTRACT = {
    "columns": {
        "person": {"type": "integer", "role": "direct_identifier", "person": True},
        "age": {"type": "integer", "role": "quasi_identifier"},
        "income": {"type": "float", "role": "other", "nullable": True},
        "town": {"type": "category", "role": "quasi_identifier"},
        "name": {"type": "text", "role": "other", "nullable": True},
    },
    "rules": {"earns_late": "income > 0"},
}


def make_table(n, seed, *, has_people=True):
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "person": np.arange(n) // 2 + 1_000 * seed,
            "age": random.integers(18, 90, n),
            "income": np.where(random.random(n) < 0.1, np.nan, random.normal(20, 15, n).round(1)),
            "town": pd.Categorical(random.choice([f"town {i}" for i in range(9)], n)),
            "name": pd.Series(random.choice(["Ann", "ann", "Bo", None, "Cy"], n), dtype="str"),
        }
    )
    return table if has_people else table.drop(columns="person")


@pytest.fixture
def tables(tmp_path):
    """Original, synthetic and control, as frames and in files; people are known by keys that nobody shares."""
    frames = make_table(400, 1), make_table(300, 2, has_people=False), make_table(240, 3)
    frames[1].loc[:9, :] = frames[0].loc[:9, frames[1].columns]
    return frames, tuple(store([frame], tmp_path) for frame in frames)


def test_codes_are_the_same(tables):
    frames, stored = tables
    for person in ("person", None):
        given = tables if person else [[each[["age", "income", "town", "name"]] for each in own] for own in tables]
        made = [
            preprocess(*(TableContract.from_mapping(CONTRACT).as_compared(each) for each in own), person=person)
            for own in given
        ]
        assert made[0] == made[1]
        assert made[0].as_written is not None
    assert isinstance(stored[0], StoredTable) and frames[0]["town"].dtype == "category"


def test_codes_that_are_stored_are_read_alike(tables, tmp_path):
    frames, _ = tables
    made = preprocess(*frames, person="person")
    write_artifact(tmp_path / "codes", made.to_artifact())
    for is_large in (False, True):
        read = read_artifact(tmp_path / "codes", is_large=is_large)
        assert read.digest == made.to_artifact().digest
        assert {name: isinstance(own, StoredTable) for name, own in read.frames.items()} == {
            name: is_large and "labels" not in name and "people" not in name for name in read.frames
        }
        found = PreprocessedTables.from_artifact(read)
        assert found == made
        # Compiled code distinguishes arrays that cannot be written to.
        arrays = [*found.original.codes, found.original.positions, found.original.people.of_row]
        assert all(own.flags.writeable for own in arrays)


def test_disclosure_is_the_same(tables):
    alone, of_files = (
        assess_disclosure(*own, person="person", published_before=[tables[0][1].head(50)]) for own in tables
    )
    assert alone.scores == of_files.scores and alone.settings == of_files.settings
    pd.testing.assert_frame_equal(alone.criteria, of_files.criteria)


def test_counts_are_the_same(tables):
    contract = TableContract.from_mapping(CONTRACT)
    of_rare = [
        count_rare_values(own[1], [own[0], own[2]], people_per_value=80, person="person", invented=["name"])
        for own in tables
    ]
    assert of_rare[0] == of_rare[1] and of_rare[0].total > 0
    of_rules = [
        count_rule_violations(contract.rules, own[1], {"original": own[0], "control": own[2]}) for own in tables
    ]
    assert of_rules[0] == of_rules[1] and of_rules[0].n_violating > 0
    profiles = [profile_table(own[0]) for own in tables]
    assert profiles[0].digest == profiles[1].digest
    assert measure_drift(profiles[0], tables[1][2]) == measure_drift(profiles[0], tables[0][2])


@pytest.mark.parametrize("n_control", [240, 700, None])
@pytest.mark.parametrize("is_foreign", [False, True])
def test_foreign_records_are_found_alike(tmp_path, monkeypatch, n_control, is_foreign):
    monkeypatch.setattr("privacy_assets.utility.foreign.MOST_ROWS", 350)
    original, synthetic = make_table(900, 1), make_table(800, 2, has_people=False)
    if is_foreign:
        synthetic["age"] = 500 - synthetic["age"]
    control = None if n_control is None else make_table(n_control, 3)
    found = [
        why_foreign(*own, person="person", invented=["name"])
        for own in (
            (original, synthetic, control),
            tuple(each if each is None else store([each], tmp_path) for each in (original, synthetic, control)),
        )
    ]
    assert found[0] == found[1]
    assert bool(found[0]) == is_foreign
