"""Leaks are found, honest tables are not flagged, and tables that nothing can be said of are refused."""

import json
import threading
from math import comb

import numpy as np
import pandas as pd
import pytest

from privacy_assets.disclosure import assess, permutation_test, shifted_copies
from privacy_assets.disclosure.assess import assess_disclosure
from privacy_assets.disclosure.criteria import criteria_asked
from privacy_assets.disclosure.pooled_records import pool_records
from privacy_assets.disclosure.result import DisclosureAssessment
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.disclosure.sides import _chance_of, count_shared
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.artifact_files import read_artifact, write_artifact


def people(n, seed):
    """Records whose columns depend on each other."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, n)
    town = random.integers(0, 8, n)
    return pd.DataFrame(
        {
            "age": age,
            "town": np.array([f"town {i}" for i in range(8)])[town],
            "job": np.array(["nurse", "cook", "clerk", "none"])[(town + random.integers(0, 2, n)) % 4],
            "cost": np.round(random.exponential(10 + age), 1),
            "visits": random.poisson(age / 20),
            "smokes": random.random(n) < 0.3,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 900, n), unit="D"),
        }
    )


def sides(n_original, n_control, n_synthetic, seed=0):
    table = people(n_original + n_control + n_synthetic, seed)
    cuts = n_original, n_original + n_control
    return table[: cuts[0]], table[cuts[0] : cuts[1]], table[cuts[1] :]


def with_copies(synthetic, original, n, seed=0, changed=0):
    """Replace n synthetic records by originals with so many cells of other originals."""
    random = np.random.default_rng(seed)
    copies = original.iloc[random.choice(len(original), n, replace=False)].reset_index(drop=True)
    for i in range(n):
        for j in random.choice(copies.shape[1], changed, replace=False):
            copies.iat[i, j] = original.iat[random.integers(len(original)), j]
    return pd.concat([copies, synthetic[n:]], ignore_index=True)


def test_honest_tables_are_rarely_flagged():
    flagged = 0
    for seed in range(8):
        original, control, synthetic = sides(300, 200, 300, seed)
        found = assess_disclosure(original, synthetic, control)
        flagged += found.scores["leakage_detected"]
        assert found.scores["leakage_detected"] == (found.criteria["adjusted_p_value"].min() <= 0.05)
    # With probability 0.05, 3 or more of 8 are flagged in 6 of 1,000 cases.
    assert flagged <= 2


@pytest.mark.parametrize("changed", [0, 1])
def test_copies_and_near_copies_are_found(changed):
    original, control, synthetic = sides(600, 300, 600)
    found = assess_disclosure(original, with_copies(synthetic, original, 40, changed=changed), control)
    assert found.scores["leakage_detected"] is True
    by_criterion = found.criteria.set_index("criterion")
    assert list(by_criterion.index) == list(criteria_asked(has_synthetic_people=False, has_named_columns=False))
    assert by_criterion["adjusted_p_value"]["inference_exact"] <= 0.05
    assert by_criterion["low"]["inference_exact"] > 0
    assert "reveal more about originals than about controls" in found.summary()


def test_interpolated_people_are_found():
    """Between a record and its nearest one by cost, as SMOTE makes them: nobody is copied."""
    original, control, _ = sides(600, 300, 0)
    random = np.random.default_rng(0)
    ordered = original.sort_values("cost", kind="stable").reset_index(drop=True)
    first = random.integers(0, 599, 600)
    one, other = (ordered.iloc[first + step].reset_index(drop=True) for step in (0, 1))
    made = pd.DataFrame({name: one[name].where(random.random(600) < 0.8, other[name]) for name in one})
    made["cost"] = ((one["cost"] + other["cost"]) / 2).round(1)
    assert assess_disclosure(original, made, control).scores["leakage_detected"] is True


def test_the_test_weighs_p_values():
    """The test weighs p values: with the same p value, a criterion of weight 1 has the smaller adjusted one."""
    is_ordered = []
    for seed in range(4):
        original, control, synthetic = sides(300, 200, 300, seed)
        criteria = assess_disclosure(original, synthetic, control).criteria
        criteria["weighted"] = criteria["weight"] * criteria["p_value"]
        is_ordered.append(
            [
                criteria.sort_values(by, kind="stable")["adjusted_p_value"].is_monotonic_increasing
                for by in ("weighted", "p_value")
            ]
        )
    assert np.all(is_ordered, axis=0).tolist() == [True, False]


def found_by(original, synthetic, control, **settings):
    """The criteria by which a leak is found."""
    criteria = assess_disclosure(original, synthetic, control, **settings).criteria
    return set(criteria["criterion"][criteria["adjusted_p_value"] <= 0.05])


def test_records_that_were_dropped_because_they_are_close_to_originals_leave_gaps_that_are_found():
    original, control, others = sides(800, 400, 4000)
    numbers = ["age", "cost", "visits"]
    own, made = (
        np.column_stack([table[numbers].rank(pct=True) * 3, pd.get_dummies(table[["town", "job", "smokes"]])])
        for table in (original, others)
    )
    distance = np.array([np.abs(own - each).sum(axis=1).min() for each in made.astype(float)])
    kept = others[distance > np.median(distance)].reset_index(drop=True)
    assert found_by(original, kept[:800], control) & {"absence", "absence_inferred"}
    assert not found_by(original, others[:800], control)


def test_exact_numbers_of_originals_are_found_in_a_column_that_is_shuffled():
    original, control, synthetic = (table.reset_index(drop=True) for table in sides(800, 400, 800))
    for seed, table in enumerate((original, control, synthetic)):
        table["weight"] = np.random.default_rng([9, seed]).normal(70, 10, len(table)).round(2)
    assert not found_by(original, synthetic, control)
    synthetic["weight"] = original["weight"].sample(frac=1, random_state=1).to_numpy()
    assert found_by(original, synthetic, control) == {"rare_values"}
    found = assess_disclosure(original, synthetic, control)
    counts = pd.concat([original["weight"], control["weight"]]).value_counts()
    rare = set(counts.index[counts < 3]) & set(synthetic["weight"])
    expected = [int(table["weight"].isin(rare).sum()) for table in (original, control)]
    assert found.columns.set_index("column").loc["weight", ["rare_original", "rare_control"]].tolist() == expected
    said = f"Most rare values are in column 'weight': of {expected[0]:,} originals and {expected[1]:,} controls."
    assert said in found.summary()


def test_copies_moved_by_a_constant_are_found_however_many_differences_recur_by_chance():
    original, control, synthetic = sides(800, 400, 800)
    moved = original[:40].assign(age=original["age"][:40] + 3, cost=original["cost"][:40] + 1.7)
    made = pd.concat([moved, synthetic[40:]], ignore_index=True)
    assert "shifted_copies" in found_by(original, made, control)


def test_what_a_named_attacker_wants_to_learn_is_found_in_records_that_are_otherwise_those_of_others():
    original, control, synthetic = (table.reset_index(drop=True) for table in sides(800, 400, 800))
    for seed, table in enumerate((original, control, synthetic)):
        rng = np.random.default_rng([9, seed])
        table["illness"] = rng.choice([f"illness {number}" for number in range(8)], len(table))
        for number in range(8):
            table[f"other {number}"] = rng.integers(0, 50, len(table))
    known = ["age", "job", "cost"]
    synthetic.loc[:39, [*known, "illness"]] = original.loc[:39, [*known, "illness"]]
    named = assess_disclosure(original, synthetic, control, known=known, sensitive=["illness"])
    row = named.criteria.set_index("criterion").loc["attribute_agreement"]
    assert row["adjusted_p_value"] <= 0.05
    assert (row["weight"], row["direction"]) == (1, "more")
    agreed = named.sensitive.set_index("attack").loc["agreement"]
    assert agreed["column"] == "illness"
    assert agreed["original"] >= 0.05 > agreed["control"]
    assert "attribute_agreement" not in assess_disclosure(original, synthetic, control).criteria["criterion"].tolist()
    # Who says only what is known asks for all the rest, and who says only what is sensitive is known by the rest.
    settings = DisclosureSettings(known=("a", "b"))
    assert settings.wanted_of(["a", "b", "c", "d"]) == (2, 3)
    assert DisclosureSettings(sensitive=("c",)).wanted_of(["a", "b", "c"]) == (2,)
    assert DisclosureSettings(sensitive=("a", "b")).wanted_of(["a", "b"]) == DisclosureSettings().wanted_of(["a"]) == ()


def test_as_many_copies_as_are_said_to_be_detectable_are_detected():
    n_found = 0
    for seed in range(5):
        original, control, synthetic = sides(600, 300, 600, seed)
        n = assess_disclosure(original, synthetic, control).scores["detectable_people"]
        assert 5 < n < 60
        copied = with_copies(synthetic, original, n, seed)
        n_found += assess_disclosure(original, copied, control).scores["leakage_detected"]
    assert n_found >= 4


@pytest.mark.parametrize("case", ["nobody is alike", "many synthetic records"])
def test_what_is_said_to_be_detectable_is_detected_where_few_copies_are_evidence(case):
    """Sums of few copies are not normal: 5 people of two equal sides are all originals in 3 % of the divisions."""
    n_found, n_trials = 0, 8
    for seed in range(n_trials):
        if case == "nobody is alike":
            pool = pd.DataFrame(np.random.default_rng([seed, 1]).normal(size=(1_600, 5)).round(3)).add_prefix("x")
            cuts = 400, 800, 1_200
        else:
            pool = people(4_600, seed)
            cuts = 300, 600, 2_600
        original, control, made, fresh = (
            pool[begin:end] for begin, end in zip((0, *cuts), (*cuts, len(pool)), strict=True)
        )
        n = assess_disclosure(original, made, control, seed=seed).scores["detectable_people"]
        copied = with_copies(fresh.reset_index(drop=True), original, n, seed)
        n_found += assess_disclosure(original, copied, control, seed=seed + 100).scores["leakage_detected"]
    # With 95 %, 5 or fewer of 8 are found in 1 of 170 cases.
    assert n_found >= 6


def test_figures_are_those_of_their_frames_and_depend_on_the_seed_alone():
    original, control, synthetic = sides(200, 100, 150)
    found = assess_disclosure(original, synthetic, control, sensitive=["job"], seed=3)
    again = assess_disclosure(original, synthetic, control, sensitive=["job"], seed=3, n_threads=1)
    assert found.scores == again.scores
    for name in ("criteria", "sensitive", "split"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(again, name))
    assert next(iter(found.scores)) == "leakage_detected"
    for row in found.criteria.itertuples():
        assert row.excess == pytest.approx(row.original - row.control)
        assert found.scores[f"{row.criterion}_excess"] == row.excess
        assert found.scores[f"{row.criterion}_interval"] == [row.low, row.high]
        assert row.low <= row.excess <= row.high
        assert row.p_value <= row.adjusted_p_value <= 1
    assert found.sensitive["column"].tolist() == ["job"] * 3
    assert found.sensitive["attack"].tolist() == ["claims", "nearest", "agreement"]
    nearest = found.sensitive.set_index("attack").loc["nearest"]
    assert (nearest["n_original"], nearest["n_control"]) == (200, 100)
    other = assess_disclosure(original, synthetic, control, seed=4)
    assert other.scores["adjusted_p_value"] != found.scores["adjusted_p_value"]
    assert other.scores["near_copies_excess"] == found.scores["near_copies_excess"]


def test_the_result_survives_storage(tmp_path):
    original, control, synthetic = sides(120, 80, 100)
    found = assess_disclosure(original, synthetic, control, known=["age", "town", "job"])
    json.dumps(found.scores, allow_nan=False)
    write_artifact(tmp_path / "stored", found.to_artifact())
    read = DisclosureAssessment.from_artifact(read_artifact(tmp_path / "stored"))
    assert read.scores == found.scores
    assert read.settings == found.settings
    pd.testing.assert_frame_equal(read.criteria, found.criteria)
    assert read.summary() == found.summary()


def test_a_sample_examines_so_many_people():
    original, control, synthetic = sides(600, 300, 600)
    synthetic = with_copies(synthetic, original, 150)
    found = assess_disclosure(original, synthetic, control, sample=400)
    assert found.scores["n_examined"] == 400
    assert found.scores["leakage_detected"] is True
    assert "of whom 400 were drawn" in found.summary()
    whole = assess_disclosure(original, synthetic, control)
    for name in ("singling_out", "inference_near"):
        low, high = found.scores[f"{name}_interval"]
        assert low < whole.scores[f"{name}_excess"] < high
        assert high - low > np.diff(whole.scores[f"{name}_interval"])[0]


@pytest.mark.parametrize(("n_original", "n_control"), [(2_000, 60), (60, 2_000)])
def test_a_sample_with_few_people_of_one_side_is_refused(n_original, n_control):
    """Of 200 people about six are of the smaller side: any answer would be that of these few."""
    original, control, synthetic = sides(n_original, n_control, 100)
    with pytest.raises(InvalidTableError, match="Of the 200 people who were drawn .* too few are from one side"):
        assess_disclosure(original, synthetic, control, sample=200)
    assert assess_disclosure(original, synthetic, control).scores["n_examined"] == 2_060


def test_people_are_permuted_not_rows():
    """Of 60 people with 10 equal visits each, ten copied ones are not evidence of a hundred."""
    table = people(160, 0)
    visits = table.loc[np.repeat(table.index, 10)].assign(person=np.repeat(np.arange(160), 10))
    visits["visits"] = np.random.default_rng(0).integers(0, 30, len(visits))
    original, control = visits[:800], visits[800:1600]
    synthetic = people(300, 1)
    found = assess_disclosure(original, synthetic, control, person="person")
    assert (found.scores["n_original"], found.scores["n_control"], found.scores["n_examined"]) == (80, 80, 160)
    assert found.scores["leakage_detected"] is not True
    both = [original, control.assign(person=control["person"] - 80)]
    with pytest.raises(InvalidTableError, match="80 people have records in both original and control"):
        assess_disclosure(both[0], synthetic, both[1], person="person")
    copied = pd.concat([original.drop(columns="person")[:400], synthetic], ignore_index=True)
    assert assess_disclosure(original, copied, control, person="person").scores["leakage_detected"] is True


def test_sides_that_differ_leave_the_question_open():
    original, control, synthetic = sides(300, 200, 300)
    found = assess_disclosure(original, synthetic, control.assign(visits=control["visits"] + 2))
    assert found.scores["split_p_value"] == 0.001
    assert found.split.set_index("column")["adjusted_p_value"].idxmin() == "visits"
    assert "Originals and controls differ even without leakage, most in column 'visits'" in found.summary()
    assert found.scores["leakage_detected"] is not False
    honest = assess_disclosure(original, synthetic, control)
    assert honest.scores["split_p_value"] > 0.01


def test_a_control_of_originals_is_refused_and_chance_is_not():
    original, _, synthetic = sides(300, 0, 300)
    with pytest.raises(InvalidTableError, match="80 of 80 controls equal an original in all columns"):
        assess_disclosure(original, synthetic, original[:80])
    # With eight kinds of records all controls equal an original, and not even copies of everybody could be seen.
    few = people(400, 0)[["smokes", "job"]]
    assert assess_disclosure(few[:200], few[300:], few[200:300]).scores["leakage_detected"] is None


@pytest.mark.parametrize("seed", range(3))
def test_shared_records_are_counted_and_judged_by_chance(seed):
    random = np.random.default_rng(seed)
    pool = pd.DataFrame({"a": random.geometric(0.02, 400), "b": random.integers(0, 3, 400)})
    records = pool_records({"original": pool[:300], "control": pool[300:], "synthetic": pool[:9]}, {})
    originals = {tuple(row) for row in pool[:300].to_numpy()}
    expected = sum(tuple(row) in originals for row in pool[300:].to_numpy())
    assert count_shared(records) == (expected, False)


@pytest.mark.parametrize(("n_shared", "is_refused"), [(5, False), (9, True), (30, True)])
def test_a_control_with_some_originals_is_refused_if_chance_does_not_explain_them(n_shared, is_refused):
    """Each pair is divided between the sides with probability 4 / 9, so nine pairs are with 0.0007."""
    original, control, synthetic = sides(300, 150, 300)
    mixed = pd.concat([original[:n_shared], control[n_shared:]])
    if not is_refused:
        assert assess_disclosure(original, synthetic, mixed).scores["leakage_detected"] is False
        return
    with pytest.raises(InvalidTableError, match=f"{n_shared} of 150 controls equal an original in all columns"):
        assess_disclosure(original, synthetic, mixed)


def test_originals_in_the_control_under_other_names_are_refused():
    original, control, synthetic = sides(300, 160, 300)
    visits = pd.concat([original, original[:200].assign(cost=3.5)]).assign(person=[*range(300), *range(200)])
    others = pd.concat([control, control.assign(cost=3.5)]).assign(person=[*range(1000, 1160)] * 2)
    assert assess_disclosure(visits, synthetic, others, person="person").scores["n_control"] == 160
    renamed = visits[visits["person"] < 60].sample(frac=1, random_state=0)
    renamed["person"] = 2000 - renamed["person"]
    with pytest.raises(InvalidTableError, match="60 of 220 controls equal an original"):
        assess_disclosure(visits, synthetic, pd.concat([others, renamed]), person="person")
    # One of their two records alone is not a person.
    halves = renamed[:60].drop_duplicates("person")
    assert assess_disclosure(visits, synthetic, pd.concat([others, halves]), person="person").scores["n_control"] > 160


@pytest.mark.parametrize("share", [0.02, 1 / 3, 0.5, 0.8])
@pytest.mark.parametrize("sizes", [[2], [2] * 6, [2, 3, 5, 40], [300] * 3])
def test_the_chance_of_shared_people_is_bounded_from_above(share, sizes):
    """By convolution of the plain distributions of each group."""
    exact = np.ones(1)
    for m in sizes:
        own = np.array([comb(m, c) * share**c * (1 - share) ** (m - c) for c in range(m + 1)])
        own[0] += own[m]
        exact = np.convolve(exact, own[:m])
    tail = exact[::-1].cumsum()[::-1]
    for n in range(len(tail)):
        bound = _chance_of(n, np.array([1, 1, *sizes]), share)
        assert tail[n] * (1 - 1e-9) <= bound <= 1
    assert _chance_of(len(tail), np.array(sizes), share) < 1e-9
    assert _chance_of(len(tail) - 1, np.array(sizes), share) == pytest.approx(tail[-1], rel=1e-6)


class StoppedError(Exception):
    pass


def test_an_exception_of_the_progress_ends_the_work_and_its_threads():
    original, control, synthetic = sides(200, 100, 150)
    n_threads, stages = threading.active_count(), []

    def stop(at):
        stages.append(at.stage)
        if at.stage == "guessing":
            raise StoppedError

    with pytest.raises(StoppedError):
        assess_disclosure(original, synthetic, control, progress=stop)
    assert threading.active_count() == n_threads
    assert stages[:2] == ["singling out", "matching"]


ORIGINAL, CONTROL, SYNTHETIC = sides(100, 60, 80)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ((ORIGINAL, SYNTHETIC, None), "There is no control"),
        ((ORIGINAL, SYNTHETIC, CONTROL[:49]), r"too few people: \{'control': 49\}. Expected at least 50"),
        ((ORIGINAL[:20], SYNTHETIC, CONTROL), r"too few people: \{'original': 20\}"),
        ((ORIGINAL[["age"]], SYNTHETIC[["age"]], CONTROL[["age"]]), "only the column 'age' to compare"),
        (tuple(t.assign(**dict.fromkeys(t, 1)) for t in (ORIGINAL, SYNTHETIC, CONTROL)), "All 160 originals and cont"),
        ((ORIGINAL, SYNTHETIC.drop(columns="job"), CONTROL), r"1 missing \['job'\]"),
        ((ORIGINAL, SYNTHETIC.assign(age="old"), CONTROL), "'age' differs in type between the tables"),
        ((ORIGINAL, SYNTHETIC, CONTROL[:0]), "The control table has 0 rows"),
        (("ORIGINAL", SYNTHETIC, CONTROL), "The original table is a str"),
    ],
)
def test_tables_that_cannot_be_assessed_are_refused(tables, message):
    with pytest.raises(InvalidTableError, match=message):
        assess_disclosure(*tables)


def test_eighty_columns_are_too_many_to_know():
    random = np.random.default_rng(0)
    wide = pd.DataFrame(random.integers(0, 3, (200, 80)), columns=[f"c{i}" for i in range(80)])
    tables = wide[:70], wide[130:], wide[70:130]
    with pytest.raises(InvalidSettingError, match="80 columns. Expected at most 64"):
        assess_disclosure(*tables)
    found = assess_disclosure(*tables, known=["c0", "c1", "c2"], max_known=2)
    assert found.settings["known"] == ["c0", "c1", "c2"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sensitive": ["illness"]}, r"`sensitive` names columns that the tables do not have: \['illness'\]"),
        ({"known": ["age", "zip"]}, r"`known` names columns that the tables do not have: \['zip'\]"),
        ({"known": ["age"]}, "`known` must be a list of at least 2 distinct column names"),
        ({"sensitive": "job"}, "`sensitive` must be a list of distinct column names"),
        ({"max_known": 4}, "max_known is 4. Expected an integer from 1 to 3"),
        ({"n_permutations": 99}, "n_permutations is 99. Expected an integer of at least 999"),
        ({"seed": -1}, "seed is -1"),
        ({"sample": 10}, "sample is 10"),
        ({"n_threads": 0}, "n_threads is 0"),
        ({"person": "nobody"}, "`person` names 'nobody'"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        assess_disclosure(ORIGINAL, SYNTHETIC, CONTROL, **settings)


def test_one_synthetic_record_and_columns_without_values_are_assessed():
    original, control, synthetic = (
        table.assign(nothing=None, same=1, unknown=np.nan) for table in (ORIGINAL, CONTROL, SYNTHETIC)
    )
    found = assess_disclosure(original, synthetic[:1], control)
    assert found.scores["leakage_detected"] is not True
    assert found.scores["n_synthetic"] == 1
    assert len(found.sensitive) == 2 * len(original.columns)
    json.dumps(found.scores, allow_nan=False)


def repeats(table):
    """The same records, some of them more than once, in other orders and storages."""
    random = np.random.default_rng(0)
    number = random.integers(1, 6, len(table))
    return {
        "each twice": pd.concat([table, table]),
        "each three times, sorted": table.loc[table.index.repeat(3)],
        "one to five times": table.iloc[np.repeat(np.arange(len(table)), number)].sample(frac=1, random_state=0),
        "one of them often": pd.concat([table, table[:1].loc[table.index[:1].repeat(200)]]),
        "a tenth": pd.concat([table, table.sample(frac=0.1, random_state=0)]),
        "as other types": pd.concat([table, table.astype({"age": float, "job": "category", "visits": object})]),
    }


@pytest.mark.parametrize("way", list(repeats(SYNTHETIC)))
def test_repeated_synthetic_records_hide_nothing(way):
    synthetic = with_copies(SYNTHETIC, ORIGINAL, 30)
    expected = assess_disclosure(ORIGINAL, synthetic, CONTROL).criteria.set_index("criterion")
    # Unique records would be gone if repeats counted.
    assert expected.loc["linkability", "original"] > 0.1
    found = assess_disclosure(ORIGINAL, repeats(synthetic)[way], CONTROL).criteria.set_index("criterion")
    figures = ["original", "control", "excess", "low", "high"]
    # Which of several nearest records is right depends on how often each is there.
    others = [name for name in found.index if name != "inference_near"]
    assert found.loc[others, figures].equals(expected.loc[others, figures])
    assert found["adjusted_p_value"].to_numpy() == pytest.approx(expected["adjusted_p_value"].to_numpy(), abs=0.03)
    # The same number of people is planted, in place of others.
    shares = [table["detectable_share"].to_numpy() for table in (found, expected)]
    assert shares[0] == pytest.approx(shares[1], abs=0.1, nan_ok=True)


def test_records_that_have_nothing_in_common_are_assessed():
    """All scores are equal then, and every division of the people is as probable as the real one."""
    original, control, synthetic = (
        pd.DataFrame({name: [f"{side} {name} {i}" for i in range(n)] for name in ("first", "last")})
        for side, n in (("one", 200), ("two", 120), ("three", 100))
    )
    found = assess_disclosure(original, synthetic, control)
    assert found.scores["leakage_detected"] is False
    assert found.scores["detectable_people"] < 20


def test_a_person_with_more_records_than_there_are_synthetic_ones_is_assessed():
    original = ORIGINAL.assign(person=np.arange(100) % 55)
    control = CONTROL.assign(person=np.arange(100, 160))
    visits = pd.concat([original, *[original[:1].assign(visits=n) for n in range(40)]], ignore_index=True)
    found = assess_disclosure(visits, SYNTHETIC[:20], control, person="person")
    assert (found.scores["n_original"], found.scores["n_control"]) == (55, 60)
    assert found.scores["leakage_detected"] is not True


def test_what_was_published_before_is_tested_together_with_the_records():
    """Eight tables that copy 0.6 % of the people each are one that copies 5 %."""
    original, control, others = (table.reset_index(drop=True) for table in sides(800, 400, 6_400))
    order = np.random.default_rng(5).permutation(800)
    tables = []
    for number in range(8):
        own = others[number * 800 : (number + 1) * 800].reset_index(drop=True)
        own.iloc[:5] = original.iloc[order[number * 5 : number * 5 + 5]]
        tables.append(own)
    for own in tables:
        assert not found_by(original, own, control)
    found = found_by(original, tables[0], control, published_before=tables[1:])
    assert "near_copies_together" in found
    together = assess_disclosure(original, tables[0], control, published_before=tables[1:])
    whole = assess_disclosure(original, pd.concat(tables, ignore_index=True), control)
    by_name = together.criteria.set_index("criterion")
    for row in whole.criteria.to_dict("records"):
        joint = by_name.loc[f"{row['criterion']}_together"]
        assert [joint[side] for side in ("original", "control")] == [row[side] for side in ("original", "control")]
        assert np.isnan(joint["detectable_share"])
    alone = assess_disclosure(original, tables[0], control)
    assert (
        by_name.loc["near_copies", "original"] == alone.criteria.set_index("criterion").loc["near_copies", "original"]
    )
    assert together.settings["n_published_before"] == 5_600
    with pytest.raises(InvalidTableError, match="synthetic table does not have the columns"):
        assess_disclosure(original, tables[0], control, published_before=[tables[1].assign(more=1)])


def numbers(n, seed, names="xyz"):
    random = np.random.default_rng(seed)
    return pd.DataFrame({name: random.integers(0, 10**6, n) for name in names})


def test_shifts_of_large_numbers_are_found_whole():
    table = numbers(1_300, 1, "x").assign(x=lambda t: t["x"] * 2**36 + 2**58)
    moved = table[:40] + 3 * 2**36
    synthetic = pd.concat([table[900:], moved], ignore_index=True)
    found = assess_disclosure(table[:600].assign(y=0), synthetic.assign(y=0), table[600:900].assign(y=0), n_threads=1)
    expected = assess_disclosure(
        *((each - 2**58).floordiv(2**36).assign(y=0) for each in (table[:600], synthetic, table[600:900])), n_threads=1
    )
    row = [each.criteria.set_index("criterion").loc["shifted_copies", "original"] for each in (found, expected)]
    assert row[0] == pytest.approx(row[1])


def test_pairs_are_bounded_if_one_person_has_most_records(monkeypatch):
    monkeypatch.setattr(shifted_copies, "MOST_DIFFERENCES", 10_000)
    n_pairs = []
    own = shifted_copies.write_differences
    monkeypatch.setattr(shifted_copies, "write_differences", lambda *a: (n_pairs.append(len(a[5])), own(*a))[1])
    table = numbers(2_000, 1).assign(who=lambda t: np.where(np.arange(len(t)) < 1_700, 2, np.arange(len(t)) + 10))
    table.loc[:1, "who"] = [0, 1]
    control = numbers(300, 2).assign(who=lambda t: 10**6 + np.arange(len(t)))
    assess_disclosure(table, numbers(400, 3), control, person="who", n_threads=1)
    assert n_pairs[0] <= 20_000


def test_what_was_published_before_does_not_reduce_the_sample(monkeypatch):
    monkeypatch.setattr(assess, "people_to_examine", lambda n, m, s: 300 if s is None and n * m > 10**6 else s)
    original, synthetic, control = (numbers(n, n) % 30 for n in (600, 601, 300))
    alone, together = (
        assess_disclosure(original, synthetic, control, published_before=before, n_threads=1)
        for before in ([], [numbers(600, seed) % 30 for seed in (5, 6)])
    )
    assert together.scores["n_examined"] == alone.scores["n_examined"]


def test_a_published_table_without_a_column_is_refused():
    original, synthetic, control = (numbers(n, n) % 30 for n in (600, 601, 300))
    with pytest.raises(InvalidTableError):
        assess_disclosure(original, synthetic, control, published_before=[synthetic[["x"]]], n_threads=1)


def test_more_divisions_than_asked_for_are_counted_in_the_progress(monkeypatch):
    monkeypatch.setattr(permutation_test, "UNDECIDED", (0.0, 30.0))
    seen = []
    assess_disclosure(*(numbers(n, n) % 30 for n in (100, 101, 60)), n_threads=1, progress=seen.append)
    assert all(each.n_done <= each[2] for each in seen)
