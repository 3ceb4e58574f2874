"""People with several records: each figure counts people, and nothing changes where everybody has one record."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc import people as people_module
from privacy_assets.mpucc import results
from privacy_assets.mpucc.assess import MpuccAssessment, assess_mpuccs, assess_preprocessed
from privacy_assets.mpucc.column_changes import measure_column_changes
from privacy_assets.mpucc.control import _compare_copies, draw_people
from privacy_assets.mpucc.people import _same_records, without_repeated_people
from privacy_assets.mpucc.preprocess import PreprocessedTables, preprocess
from tests.examples import examples
from tests.mixed_tables import table_pairs
from tests.reference import mpucc as reference
from tests.reference import mpucc_people

OF_PEOPLE = ("people_identified", "people_assessed")


def visits(n_each, n_people=3000, seed=0):
    """People with as many visits each: half of them copied but for a changing measure, the others new people."""
    random = np.random.default_rng(seed)

    def make():
        people = pd.DataFrame(
            {
                "age": random.integers(18, 90, n_people),
                "town": random.integers(0, 60, n_people),
                "job": random.integers(0, 25, n_people),
                "children": random.geometric(0.5, n_people),
                "person": np.arange(n_people),
            }
        )
        records = people.loc[people.index.repeat(n_each)].reset_index(drop=True)
        return records.assign(measure=random.integers(0, 1000, len(records)))

    original, others = make(), make()
    copies = original[original["person"] < n_people // 2]
    copies = copies.assign(measure=random.integers(0, 1000, len(copies)))
    synthetic = pd.concat([copies, others[others["person"] >= n_people // 2]], ignore_index=True)
    return original, synthetic.drop(columns="person")


def with_people(table, seed, n_people):
    """Assign the rows to people at random, one to most."""
    return np.random.default_rng(seed).integers(0, n_people, len(table))


def test_the_score_does_not_fall_with_the_visits_of_copied_people():
    by_record, by_person = [], []
    for n_each in (1, 2, 5):
        original, synthetic = visits(n_each)
        records = original.drop(columns="person")
        by_record.append(assess_mpuccs(records, synthetic, max_baseline_cols=3).scores["privacy_risk_score"])
        found = assess_mpuccs(original, synthetic, max_baseline_cols=3, person="person").scores
        by_person.append(found["privacy_risk_score"])
        assert found["people_assessed"] == 3000
    assert by_record[0] == by_person[0]
    # Counting records hides the people with several: 0.78, 0.34, 0.48 instead of 0.78, 0.79, 0.84.
    assert max(by_record[1:]) < 0.5
    assert by_person == sorted(by_person)


@given(table_pairs(), st.booleans(), st.integers(0, 2**32), st.integers(1, 8), st.sampled_from([1, 2]))
@settings(max_examples=examples(200), deadline=None)
def test_every_record_and_combination_agrees_with_dictionaries_of_people(tables, deduplicate, seed, n_people, threads):
    original, synthetic = tables
    people = with_people(original, seed, n_people)
    found = assess_mpuccs(
        original.assign(**{"(person)": people}),
        synthetic,
        person="(person)",
        deduplicate=deduplicate,
        n_threads=threads,
    )
    originals, synthetics = reference.plain_rows(original, synthetic)
    kept = reference.without_duplicates(synthetics)
    rows = [synthetics[i] for i in kept] if deduplicate else synthetics
    records = mpucc_people.records_of(originals, people.tolist(), deduplicate)
    expected = mpucc_people.find(records, rows, len(original.columns))
    names = list(original.columns)

    assert found.scores["total_identified"] == len(expected)
    assert found.scores["total_syn_records"] == len(rows)
    identified = {person for _, person, _ in expected.values()}
    if deduplicate:
        # Others whom later combinations single out are found by those of their records that nobody else has.
        alone = mpucc_people.singled_out(records, rows, len(original.columns))
        assert found.scores["people_identified"] == len(identified | alone)
        assert found.scores["people_assessed"] == len(records)
        assert found.scores["originals_singled_out"] == len(identified | alone) / len(records)
    assert found.settings["n_people"] == {"original": len(set(people.tolist()))}

    own = {(rows[s], tuple(names[c] for c in combo)): frozenset(records[p]) for s, (combo, p, _) in expected.items()}
    details = {}
    for row in found.details.itertuples():
        theirs = frozenset(o for o, p in zip(originals, people, strict=True) if p == people[row.ori_idx])
        details[synthetics[row.syn_idx], row.field_combo] = theirs
        combo = [names.index(name) for name in row.field_combo]
        pairs = [
            sum(a == b for a, b in zip(synthetics[row.syn_idx], other, strict=True))
            for other in theirs
            if all(other[c] == synthetics[row.syn_idx][c] for c in combo)
        ]
        assert row.agreement == max(pairs)
    assert details == own

    collisions = Counter(tuple(names[c] for c in combo) for combo, _, _ in expected.values())
    together = Counter(tuple(names[c] for c in combo) for combo, _, n in expected.values() if n > 1)
    for row in found.tree.itertuples():
        combo = tuple(names.index(name) for name in row.field_combo)
        assert row.mpuccs_collision_cnt == collisions[row.field_combo]
        assert row.mpuccs_cnt == reference.n_unique(rows, combo) + together[row.field_combo]
        assert 0 <= row.overall_protection <= 1


@pytest.mark.parametrize("by_the_search_of_people", [False, True])
@given(
    tables=table_pairs(),
    deduplicate=st.booleans(),
    alpha=st.sampled_from([1.0, 2.0]),
    least=st.sampled_from([0.0, 0.1]),
)
@settings(max_examples=examples(120), deadline=None)
def test_with_one_record_a_person_every_figure_is_bit_for_bit_that_of_records(
    by_the_search_of_people, tables, deduplicate, alpha, least
):
    original, synthetic = tables
    half = max(len(original) // 3, 1)
    control = original.iloc[:half]
    arguments = {"deduplicate": deduplicate, "renyi_alpha": alpha, "min_entropy_delta": least, "n_matched_samples": 2}
    expected = assess_mpuccs(original, synthetic, control, **arguments)
    people = np.random.default_rng(0).permutation(len(original) + half)
    with pytest.MonkeyPatch.context() as patched:
        if by_the_search_of_people:
            patched.setattr(results, "_are_rows", lambda _: False)
        found = assess_mpuccs(
            original.assign(**{"(person)": people[half:]}),
            synthetic,
            control.assign(**{"(person)": people[:half]}),
            person="(person)",
            **arguments,
        )
    assert {name: value for name, value in found.scores.items() if name not in OF_PEOPLE} == expected.scores
    assert found.details.equals(expected.details)
    assert found.tree.equals(expected.tree)
    assert found.control == expected.control
    assert found.settings.pop("n_people") == {"original": len(original), "control": half}
    assert found.settings == expected.settings


def test_a_prepared_table_of_people_and_its_assessment_return_from_their_artifacts_unchanged():
    original, synthetic = visits(2, 60)
    control = visits(2, 60, seed=1)[0].assign(person=lambda table: table["person"] + 1000)
    tables = preprocess(original, synthetic, control, person="person")
    assert PreprocessedTables.from_artifact(tables.to_artifact()) == tables
    assert tables != preprocess(original, synthetic, control.assign(person=range(1000, 1120)), person="person")
    found = assess_preprocessed(tables)
    assert MpuccAssessment.from_artifact(found.to_artifact()) == found
    assert found.settings["n_people"] == {"original": 60, "control": 60}


@pytest.mark.parametrize("few_people", [0, 3, 1000])
@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_people_have_one_number_if_and_only_if_their_records_are_the_same(data, few_people, monkeypatch):
    monkeypatch.setattr(people_module, "FEW_PEOPLE", few_people)
    record = st.tuples(st.integers(0, 3), st.integers(1, 2))
    own = data.draw(st.dictionaries(st.integers(0, 12), st.lists(record, min_size=1, max_size=4), min_size=1))
    lists = {person: sorted(dict(records).items()) for person, records in sorted(own.items())}
    person = np.repeat(list(lists), [len(records) for records in lists.values()])
    found, n_found = _same_records(person, np.array([record for records in lists.values() for record in records]))
    numbers: dict[tuple[tuple[int, int], ...], int] = {}
    for each in sorted(lists, key=lambda each: lists[each][0][0]):
        numbers.setdefault(tuple(lists[each]), len(numbers))
    assert n_found == len(numbers)
    assert found.tolist() == [numbers[tuple(lists[each])] if each in lists else -1 for each in range(max(lists) + 1)]


def test_people_with_the_same_records_count_once_and_a_shared_record_singles_nobody_out():
    original = pd.DataFrame({"a": [1, 2, 2, 1, 1, 3, 4], "who": ["x", "x", "x", "y", "z", "z", "y"]})
    synthetic = pd.DataFrame({"a": [1, 2, 3, 4, 9]})
    once = preprocess(original, synthetic, person="who").original
    # x has 1 and 2 (twice), y has 1 and 4, z has 1 and 3.
    assert (once.n_assessed, once.n_records, once.people.n_people) == (6, 7, 3)
    assert assess_mpuccs(original, synthetic, person="who").details["value_combo"].tolist() == [("2",), ("3",), ("4",)]
    twins = pd.concat([original, original[original["who"] == "x"].assign(who="w")])
    assert preprocess(twins, synthetic, person="who").original.people.n_alike.tolist() == [2, 1, 1]
    assert assess_mpuccs(twins, synthetic, person="who").scores["people_identified"] == 3
    kept = assess_mpuccs(twins, synthetic, person="who", deduplicate=False)
    # Then twins are two people, and neither is singled out.
    assert kept.details["value_combo"].tolist() == [("3",), ("4",)]


def test_more_synthetic_records_than_a_person_has_single_nobody_out():
    original = pd.DataFrame({"a": [1, 1, 2], "b": [1, 2, 3], "who": [0, 0, 1]})
    synthetic = pd.DataFrame({"a": [1, 1, 1], "b": [4, 5, 6]})
    assert assess_mpuccs(original, synthetic, person="who").scores["total_identified"] == 0
    found = assess_mpuccs(original, synthetic.head(2), person="who")
    assert (found.scores["total_identified"], found.scores["people_identified"]) == (2, 1)
    # Together they are as good as unique, so the combination protects none of its two.
    assert dict(zip(found.tree["field_combo"], found.tree["mpuccs_cnt"], strict=True))["a",] == 2


def test_the_control_is_compared_by_person():
    original, synthetic = visits(3, 300)
    control = visits(3, 150, seed=1)[0].assign(person=lambda table: table["person"] + 1000)
    tables = preprocess(original, synthetic, control, person="person")
    drawn = draw_people(tables.original, 150, np.random.default_rng(0), deduplicate=True)
    # Whoever is drawn is drawn with all records.
    assert (drawn.people.n_people, drawn.n_records) == (150, 450)
    assert Counter(drawn.people.of_row.tolist()) == dict.fromkeys(range(150), 3)
    found = assess_mpuccs(original, synthetic, control, person="person", max_baseline_cols=2)
    assert found.control.n_matched_records == 150
    as_original = assess_mpuccs(control, synthetic, person="person", max_baseline_cols=2).scores
    rate = as_original["total_identified"] / as_original["total_syn_records"]
    assert found.control.control_identification_rate == rate
    few = assess_mpuccs(original, synthetic, control.head(3 * 49), person="person", max_baseline_cols=1)
    assert few.control.n_matched_records == 49
    # 147 records of 49 people are too few, unless something is found.
    assert few.control.leakage_detected in (None, True)


@pytest.mark.parametrize("n_each", [1, 4])
def test_copies_of_one_persons_records_are_one_piece_of_evidence(n_each):
    random = np.random.default_rng(0)
    original, control = (
        pd.DataFrame(
            {"value": random.permutation(900) + start, "who": np.repeat(range(start, start + 900 // n_each), n_each)}
        )
        for start in (0, 10_000)
    )
    others = pd.DataFrame({"value": np.arange(50_000, 51_000)})
    flags = {}
    for n_copied in (6, 7):
        copies = original.loc[original["who"] < n_copied, ["value"]]
        tables = preprocess(original, pd.concat([copies, others]), control, person="who")
        flags[n_copied] = _compare_copies(tables, tables.control, 900 // n_each, 0.95).excess.low > 0
    # The same number of people as of records where everybody has one: 7.
    assert flags == {6: False, 7: True}
    # And at 4 to 1: 18.
    fifth = control[control["who"] < 10_000 + 900 // n_each // 4]
    for n_copied in (17, 18):
        copies = original.loc[original["who"] < n_copied, ["value"]]
        tables = preprocess(original, pd.concat([copies, others]), fifth, person="who")
        excess = _compare_copies(tables, tables.control, fifth["who"].nunique(), 0.95).excess
        assert (excess.low > 0) == (n_copied == 18)


def test_changes_of_columns_are_measured_by_person():
    original, synthetic = visits(2, 200)
    found = assess_mpuccs(original, synthetic, person="person", max_baseline_cols=2)
    measured = measure_column_changes(preprocess(original, synthetic, person="person"), found, max_columns=2)
    for row in measured[measured["change"] == "dropped"].itertuples():
        without = assess_mpuccs(
            original.drop(columns=row.column), synthetic.drop(columns=row.column), person="person", max_baseline_cols=2
        )
        assert row.identification_rate == without.scores["identification_rate"]


@given(table_pairs(max_columns=2), st.integers(0, 2**32), st.integers(1, 6))
@settings(max_examples=examples(60), deadline=None)
def test_repeated_people_are_removed_with_all_their_rows(tables, seed, n_people):
    table = tables[0].assign(**{"(person)": with_people(tables[0], seed, n_people)})
    rows, people = reference.plain_rows(tables[0], tables[0])[0], table["(person)"].tolist()
    kept = without_repeated_people(table, "(person)")
    expected = mpucc_people.records_of(rows, people, deduplicate=True)
    found = [(rows[i], people[i]) for i in kept.index]
    assert len(found) == len(set(found)) == sum(len(own) for own in expected.values())
    assert {frozenset(own) for own in mpucc_people.records_of(*zip(*found, strict=True), False).values()} == {
        frozenset(own) for own in expected.values()
    }


def test_people_who_cannot_be_told_apart_are_refused():
    original, synthetic = visits(2, 20)
    with pytest.raises(InvalidSettingError, match="of which the original table has 0 columns"):
        assess_mpuccs(original, synthetic, person="nobody")
    with pytest.raises(InvalidSettingError, match="of which the synthetic table has 1 columns. Expected none"):
        assess_mpuccs(original, synthetic.assign(person=1), person="person")
    with pytest.raises(InvalidTableError, match="2 records of the original table have no value in the person column"):
        assess_mpuccs(original.replace({"person": {3: None}}), synthetic, person="person")
    with pytest.raises(InvalidTableError, match="5 people have records in both original and control"):
        assess_mpuccs(original, synthetic, original.head(10), person="person")
    with pytest.raises(InvalidTableError, match="Expected a pandas DataFrame"):
        assess_mpuccs(original.to_dict(), synthetic, person="person")
