"""More synthetic records than originals are scored by draws of as many: what a recipient can undo does not help."""

import subprocess
import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.engine.local import LocalEngine
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.assess import MpuccAssessment, assess_mpuccs
from privacy_assets.mpucc.column_changes import measure_column_changes
from privacy_assets.mpucc.copies_beyond_people import COPIES
from privacy_assets.mpucc.draws import draw_rows, most_records
from privacy_assets.mpucc.intervals import wilson_interval
from privacy_assets.mpucc.preprocess import preprocess
from privacy_assets.synthesis.synthesize import synthesize
from tests.examples import examples
from tests.reference import mpucc as reference
from tests.reference.mpucc_draws import scores_of_draws

SHARES = ("privacy_risk_score", "overall_protection", "main_protection", "identification_rate")


def people(seed, n_rows, n_values=(40, 12, 6, 30)):
    """Independent columns of integers and texts, some of them missing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({f"c{i}": rng.integers(0, n, n_rows) for i, n in enumerate(n_values)})
    table["c1"] = table["c1"].map(lambda value: None if value == 3 else f"town {value}").astype(object)
    return table


def mixed(seed, n_rows):
    """Columns whose relations a synthesizer has to learn."""
    rng = np.random.default_rng(seed)
    age = rng.normal(45, 15, n_rows).round().clip(18, 90)
    return pd.DataFrame(
        {
            "age": age,
            "income": np.exp(rng.normal(7 + age / 60, 0.4, n_rows)).round(-2),
            "town": rng.choice([f"t{i}" for i in range(25)], n_rows, p=np.arange(25, 0, -1) / 325),
            "job": rng.choice(list("abcdefgh"), n_rows),
            "children": rng.geometric(0.5, n_rows),
        }
    )


def few_values(seed, n_rows):
    """Records of which most repeat others."""
    return mixed(seed, n_rows)[["town", "job", "children"]]


def dates(seed, n_rows):
    """Moments, whole numbers and truth values, with missing ones."""
    rng = np.random.default_rng(seed)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 20_000, n_rows), unit="D")
    table = pd.DataFrame({"born": born, "member": rng.random(n_rows) < 0.3, "visits": rng.poisson(4, n_rows)})
    table["zone"] = rng.choice([f"zone {i}" for i in range(30)], n_rows)
    return table.assign(born=table["born"].mask(rng.random(n_rows) < 0.05))


def wide(seed, n_rows):
    """Many columns of few values."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({f"answer_{i}": rng.integers(0, 2 + i % 4, n_rows) for i in range(16)})


BASE = [(0, "a", 0), (4, "b", 2)]
"""Originals with all values and ranges, so that no column is blind."""
rows = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["a", "b", None]), st.integers(0, 2)), min_size=1)


@given(rows, rows.map(lambda own: own[:40]), st.booleans(), st.sampled_from([1, 2, 3]), st.booleans())
@settings(max_examples=examples(120), deadline=None)
def test_scores_are_the_means_of_three_draws_of_distinct_rows_in_the_order_of_a_hash(
    originals, synthetic, deduplicate, size, divided
):
    originals = BASE + originals
    tables = [pd.DataFrame(own, columns=list("abc")).astype({"b": object}) for own in (originals, synthetic)]
    engine = LocalEngine(rows_per_task=5) if divided else None
    found = assess_mpuccs(*tables, max_baseline_cols=size, deduplicate=deduplicate, engine=engine).scores
    expected = scores_of_draws(originals, synthetic, size, deduplicate=deduplicate)
    rates, scores = zip(*expected, strict=True)
    assert found["identification_rate"] == pytest.approx(np.mean(rates))
    assert found["privacy_risk_score"] == pytest.approx(np.mean(scores))
    assert found["main_protection"] == pytest.approx(1 - np.mean(rates))
    assert found["overall_protection"] == pytest.approx(1 - np.mean(scores))
    if len(expected) == 1:
        assert found["identification_rate"] == found["total_identified"] / found["total_syn_records"]
        assert not any("lowest" in name or "draw" in name for name in found)
        return
    assert found["identification_rate_lowest"] == pytest.approx(min(rates))
    assert found["identification_rate_highest"] == pytest.approx(max(rates))
    assert found["privacy_risk_score_lowest"] == pytest.approx(min(scores))
    assert found["privacy_risk_score_highest"] == pytest.approx(max(scores))
    if deduplicate:
        interval = wilson_interval(np.mean(rates) * found["records_per_draw"], found["records_per_draw"], 0.95)
        assert found["identification_rate_interval_low"] == pytest.approx(interval.low)


@given(rows, rows, st.booleans(), st.integers(0, 2**32))
@settings(max_examples=examples(80), deadline=None)
def test_what_is_singled_out_is_counted_in_all_that_is_published(originals, synthetic, deduplicate, seed):
    originals = BASE + originals
    tables = [pd.DataFrame(own, columns=list("abc")).astype({"b": object}) for own in (originals, synthetic)]
    found = assess_mpuccs(*tables, deduplicate=deduplicate)
    sides = [list(dict.fromkeys(own)) if deduplicate else own for own in (originals, synthetic)]
    singled_out = reference.singled_out(*sides, 3)
    interval = wilson_interval(len(singled_out), len(sides[0]), 0.95)
    names = ["originals_singled_out", "originals_singled_out_interval_low", "originals_singled_out_interval_high"]
    assert [found.scores[name] for name in names] == pytest.approx(list(interval))
    assert found.details["ori_idx"].nunique() <= len(singled_out)
    assert found.scores["total_identified"] == len(reference.find(*sides, 3))
    assert found.scores["total_syn_records"] == len(sides[1])


@pytest.mark.parametrize(
    ("make", "method"),
    [*((make, "gaussian_copula") for make in (people, mixed, dates, wide)), (mixed, "cart"), (dates, "cart")],
)
def test_more_records_of_a_synthesizer_do_not_lower_the_score(make, method):
    if method == "cart":
        pytest.importorskip("sklearn", reason="needs the extra `trees`")
    original = make(0, 400)
    of_size = {}
    for times in (1, 2, 5):
        synthetic = synthesize(original, method=method, seed=1, n_records=times * len(original))
        of_size[times] = assess_mpuccs(original, synthetic, max_baseline_cols=3).scores
    for name in ("privacy_risk_score", "identification_rate"):
        least = of_size[1][name] - 0.05
        assert all(of_size[times][name] >= least for times in (2, 5)), {n: own[name] for n, own in of_size.items()}
    everything = [own["total_identified"] / own["total_syn_records"] for own in of_size.values()]
    assert everything[2] < 0.8 * everything[0]


def test_in_a_table_of_few_values_more_records_single_out_more_people():
    original = few_values(0, 700)
    few, many = (
        assess_mpuccs(original, synthesize(original, method="gaussian_copula", seed=1, n_records=n)).scores
        for n in (700, 3500)
    )
    assert many["originals_singled_out"] > 1.2 * few["originals_singled_out"]
    assert many["identification_rate"] > many["total_identified"] / many["total_syn_records"]


@pytest.mark.parametrize("make", [people, mixed, dates, wide, few_values])
@pytest.mark.parametrize("published", ["copies", "others"])
def test_fresh_people_around_records_hide_nobody_who_is_singled_out(make, published):
    original = make(0, 400)
    of_size = []
    for times in (0, 1, 4):
        diluted = pd.concat([original if published == "copies" else make(2, 400), make(1, times * 400)])
        found = assess_mpuccs(original, diluted.reset_index(drop=True), max_baseline_cols=3).scores
        of_size.append(found["originals_singled_out"])
        if times and (make, published) == (people, "copies"):
            assert found["identification_rate"] > 1.3 * found["total_identified"] / found["total_syn_records"]
    assert of_size == sorted(of_size)
    if published == "copies":
        assert len(set(of_size)) == 1


def permuted(table, seed):
    return table.sample(frac=1, random_state=seed)


REPEATS = {
    "twice": lambda o, s, c: (o, pd.concat([s, s]), c),
    "some repeated": lambda o, s, c: (o, pd.concat([s, s.iloc[:50], s.iloc[:50]]), c),
    "repeated": lambda o, s, c: (o, s.loc[np.repeat(s.index, np.arange(len(s)) % 3 + 1)], c),
    "sorted and repeated": lambda o, s, c: (o, pd.concat([s.sort_values("c0"), s.tail(1)]), c),
}
"""They are no changes where repeated records count once."""
CHANGES = {
    "rows": lambda o, s, c: (o, permuted(s, 1), c),
    "rows of all": lambda o, s, c: (permuted(o, 2), permuted(s, 3), permuted(c, 4)),
    "columns": lambda o, s, c: (o[o.columns[::-1]], s[s.columns[::-1]], c),
    "names": lambda o, s, c: (*(table.rename(columns={"c0": "z", "c2": "c0"}) for table in (o, s, c)),),
    "types": lambda o, s, c: (o, s.astype({"c1": "category", "c0": "float64"}), c),
    "control": lambda o, s, c: (o, s, people(9, 80).replace("town 1", "somewhere else")),
    "none": lambda o, s, c: (o, s, None),
}


@pytest.mark.parametrize(
    ("change", "deduplicate"),
    [*((name, True) for name in CHANGES | REPEATS), *((name, False) for name in CHANGES)],
)
def test_order_repeats_names_and_other_tables_change_no_figure(change, deduplicate):
    tables = people(0, 120), people(1, 500), people(2, 80)
    changed = (CHANGES | REPEATS)[change](*tables)
    settings = {"max_baseline_cols": 2, "deduplicate": deduplicate, "n_matched_samples": 2}
    before, after = (assess_mpuccs(*each, **settings).scores for each in (tables, changed))
    assert before["records_per_draw"] > 0
    of_control = {name for name in before if "control" in name or "strangers" in name} | {"score_of_related_columns"}
    names = set(before) - {"synthetic_duplicates_dropped", "control_duplicates_dropped"}
    names -= of_control if change in ("control", "none") else set()
    # Repeated records count as often as they are published: those of people repeat, too.
    names -= {*COPIES} if change in REPEATS else set()
    assert {name: before[name] for name in names} == {name: after[name] for name in names}


def test_draws_are_the_same_in_another_process():
    code = "from tests.mpucc.test_draws import drawn; print(drawn())"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, env={"PYTHONHASHSEED": "1"}, check=True, capture_output=True, text=True)
    assert run.stdout == f"{drawn()}\n"


def drawn():
    tables = preprocess(people(0, 50), people(1, 300))
    return [rows.tolist() for rows in draw_rows(tables, tables.synthetic, most_records(tables))]


def test_as_many_records_as_originals_are_all_scored():
    original, synthetic = people(0, 400), people(1, 400)
    found = assess_mpuccs(original, synthetic, people(2, 100), max_baseline_cols=3)
    assert found.scores["identification_rate"] == found.scores["total_identified"] / found.scores["total_syn_records"]
    assert "records_per_draw" not in found.scores


def test_the_control_is_compared_with_the_same_draws():
    original, synthetic, control = people(0, 200), people(1, 900), people(2, 300)
    found = assess_mpuccs(original, synthetic, control, max_baseline_cols=3)
    # The control is larger, so no originals are drawn.
    assert found.control.matched_identification_rate == pytest.approx(found.scores["identification_rate"])
    assert sum(found.control.matched_identified_by_size) / found.scores["records_per_draw"] == pytest.approx(
        found.scores["identification_rate"]
    )
    # Three draws of the control are scored, as many records as of the release.
    of_others = assess_mpuccs(original, control, max_baseline_cols=3).scores
    assert found.scores["score_of_strangers"] == pytest.approx(of_others["privacy_risk_score"])
    estimates = found.control.excess_identification, found.control.excess_verbatim
    assert all(each.low <= each.value <= each.high for each in estimates)
    assert found.control.leakage_detected is False
    planted = assess_mpuccs(original, pd.concat([synthetic, original]), control, max_baseline_cols=3)
    assert planted.control.verbatim_rate > found.control.verbatim_rate
    assert planted.control.verbatim_copies >= len(original)
    assert planted.control.leakage_detected
    assert MpuccAssessment.from_artifact(planted.to_artifact()) == planted
    # With fewer control records, their score is continued: as they are, they score more.
    few = assess_mpuccs(original, synthetic, control.head(50), max_baseline_cols=3).scores
    as_they_are = assess_mpuccs(original, control.head(50), max_baseline_cols=3).scores
    assert few["score_of_strangers"] < as_they_are["privacy_risk_score"]


def test_a_search_of_some_sizes_only_is_sampled_from_a_draw():
    rng = np.random.default_rng(0)
    original, synthetic = (
        pd.DataFrame(rng.integers(0, 3, (n, 12)), columns=[f"c{i}" for i in range(12)]) for n in (80, 400)
    )
    found = assess_mpuccs(original, synthetic, max_combinations=100).scores
    again = assess_mpuccs(original, permuted(synthetic, 1), max_combinations=100).scores
    every_size = assess_mpuccs(original, synthetic).scores["identification_rate"]
    assert found["max_combo_size"] == 2
    assert found["any_size_records"] == found["records_per_draw"] == 80
    assert found["any_size_identification_rate"] == again["any_size_identification_rate"]
    assert found["any_size_identification_rate"] == pytest.approx(every_size, abs=0.1)


def test_a_heuristic_search_is_repeated_on_each_draw():
    original, synthetic = people(0, 120), people(1, 500)
    exact, heuristic = (assess_mpuccs(original, synthetic, min_entropy_delta=least).scores for least in (0.0, 0.2))
    assert heuristic["records_per_draw"] == exact["records_per_draw"] == 120
    assert 0 < heuristic["identification_rate"] < exact["identification_rate"]


def test_people_with_several_records_are_compared_with_as_many_distinct_records():
    rng = np.random.default_rng(0)
    original = people(0, 100).loc[np.repeat(np.arange(100), 3)].reset_index(drop=True)
    original = original.assign(measure=rng.integers(0, 50, 300), who=np.repeat(np.arange(100), 3))
    n_distinct = len(original.drop(columns="who").drop_duplicates())
    few, many = (people(1, n).assign(measure=np.random.default_rng(2).integers(0, 50, n)) for n in (300, 2000))
    of_few, of_many = (
        assess_mpuccs(original, synthetic, max_baseline_cols=3, person="who").scores for synthetic in (few, many)
    )
    assert "records_per_draw" not in of_few
    assert of_many["records_per_draw"] == 300 >= n_distinct
    assert of_many["privacy_risk_score"] > 0.9 * of_few["privacy_risk_score"]
    assert of_many["originals_singled_out"] == of_many["people_identified"] / of_many["people_assessed"]


def test_changes_of_columns_are_measured_on_the_first_draw():
    original, synthetic = people(0, 120), people(1, 500)
    found = assess_mpuccs(original, synthetic, max_baseline_cols=2)
    changes = measure_column_changes(preprocess(original, synthetic), found, max_columns=2)
    before = changes["identification_rate"] - changes["difference"]
    assert before.max() - before.min() < 1e-12
    low, high = (found.scores[f"identification_rate_{end}"] for end in ("lowest", "highest"))
    assert low <= before.iloc[0] <= high
    assert (changes["difference"] < 0.02).all()


@pytest.mark.parametrize("n_rows", [2, 3])
def test_many_records_are_compared_with_two_or_three_originals(n_rows):
    original = people(4, n_rows)
    synthetic = pd.DataFrame(product(*(original[name] for name in original)), columns=original.columns)
    found = assess_mpuccs(original, synthetic, original)
    assert found.scores["records_per_draw"] == n_rows
    assert 0 <= found.scores["identification_rate_lowest"] <= found.scores["identification_rate_highest"] <= 1


def test_synthetic_values_that_nobody_has_have_no_mean_either():
    original = people(0, 50)
    found = assess_mpuccs(original, people(1, 300).assign(c0=lambda table: table["c0"] + 1000)).scores
    assert found["records_per_draw"] == 50
    assert found["identification_rate"] is found["privacy_risk_score"] is found["originals_singled_out"] is None


def test_one_synthetic_record_is_scored_alone():
    found = assess_mpuccs(people(0, 60), people(0, 60).head(1)).scores
    assert (found["identification_rate"], found["originals_singled_out"]) == (1.0, pytest.approx(1 / 60))


def test_a_record_that_is_repeated_more_often_than_there_are_originals_is_a_draw_alone():
    original = pd.DataFrame({"a": [1, 3, 9]})
    synthetic = pd.DataFrame({"a": [7] * 5 + [8] * 5})
    found = assess_mpuccs(original, synthetic, deduplicate=False).scores
    assert (found["records_per_draw"], found["identification_rate"]) == (5, 0.0)


@pytest.mark.parametrize("wider", ["synthetic", "original", "control"])
def test_a_table_with_ten_times_the_columns_is_refused(wider):
    tables = {"original": people(0, 30), "synthetic": people(1, 30), "control": people(2, 30)}
    more = {f"x{i}": range(30) for i in range(36)}
    tables[wider] = tables[wider].assign(**more)
    with pytest.raises(InvalidTableError, match=r"36 (missing|extra)"):
        assess_mpuccs(**tables)


@pytest.mark.parametrize("name", ["original", "synthetic", "control"])
def test_a_column_that_one_side_lacks_is_refused(name):
    tables = {"original": people(0, 30), "synthetic": people(1, 90), "control": people(2, 30)}
    tables[name] = tables[name].drop(columns="c2")
    with pytest.raises(InvalidTableError, match=r"1 (missing \['c2'\]|extra \(positions 2\)).*Add or drop columns"):
        assess_mpuccs(**tables)
