"""What is released satisfies every model by the reference, covers every original, and tells nothing else."""

import datetime as dt
import json
from dataclasses import replace
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import LDiversity, anonymize, apply_cuts
from privacy_assets.anonymization.anonymized_table import columns_telling_of, models_that_fail
from privacy_assets.anonymization.kernels import mondrian
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.masks import Suppressed, ValueSet
from privacy_assets.errors import InvalidSettingError
from privacy_assets.storage.fingerprint import fingerprint
from tests.examples import examples
from tests.mixed_tables import POOLS, UNREACHABLE, through_parquet
from tests.reference import mondrian as reference

RANKED = pd.CategoricalDtype(["low", "mid", "high", "unused"], ordered=True)
GRADED = pd.CategoricalDtype([1, 3, 2, 9], ordered=True)
CLOCK = [dt.time(9, 30), dt.time(13, 26), dt.time(23, 59), None]
MONTHS = ["2019-12", "2020-01", "2020-11"]
ORDERS = {
    "ranked": list(RANKED.categories),
    "graded": [str(grade) for grade in GRADED.categories],
    "clock": [str(moment) for moment in CLOCK],
    "month": MONTHS,
    "band": ["(0, 5]", "(5, 10]", "(10, 15]", "(100, 105]"],
}
KINDS = {
    **POOLS,
    "ranked": (["low", "mid", "high", None], RANKED),
    "graded": ([1, 3, 2, None], GRADED),
    "single": ([0.1, 0.7, 0.25, None], "float32"),
    "arrow integer": ([1, 2, 5, None], "int64[pyarrow]"),
    "arrow float": ([1.5, 2.25, 5.0, None], "double[pyarrow]"),
    "long float": ([0.1 + 0.2, 0.3, 1 - 0.9, 0.1, 3e-12, 4e-12, 450_400.1, 450_400.1 + 6e-11, None], "float64"),
    "far float": ([-1.7e308, -1e18, 1.5, 2.0, 3.0, 1.7e308], "float64"),
    "far integer": ([-(2**63), 2**53, 2**53 + 1, 2**62, 2**62 + 1, 2**63 - 1], "int64"),
    "huge integer": ([1, 2**70, 2**70 + 1, None], object),
    "clock": (CLOCK, object),
    "month": ([pd.Period(text) for text in MONTHS], "period[M]"),
    "band": ([pd.Interval(low, low + 5) for low in (0, 5, 10, 100)], pd.IntervalDtype("int64", "right")),
    "uuid": ([UUID(int=n) for n in range(3)], object),
    "bytes": ([b"a", b"\x00,", None], object),
}
SECRETS = {"disease": (["flu", "cold", None], object), "salary": ([0.1 + 0.2, 0.3, 1e-12, 2e-12, 45.0], "float64")}


def is_missing(value):
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and np.isnan(value))


@st.composite
def tables(draw, max_rows=25, max_columns=3):
    """Quasi-identifiers of every kind, a subject, secrets, and a direct identifier; the names of the former."""
    n_rows = draw(st.integers(1, max_rows))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=max_columns))
    columns = {}
    for i, kind in enumerate(kinds):
        pool, dtype = KINDS[kind]
        columns[f"{kind} {i}"] = pd.Series(
            draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows)), dtype=dtype
        )
    names = list(columns)
    for name, (pool, dtype) in SECRETS.items():
        columns[name] = pd.Series(draw(st.lists(st.sampled_from(pool), min_size=n_rows, max_size=n_rows)), dtype=dtype)
    columns["person"] = pd.Series(draw(st.lists(st.integers(0, 9), min_size=n_rows, max_size=n_rows)), dtype="int64")
    columns["name"] = [f"somebody {i}" for i in range(n_rows)]
    return pd.DataFrame(columns), names


@st.composite
def options(draw):
    chosen = {
        "k": draw(st.integers(1, 4)),
        "subject": draw(st.sampled_from([None, "person"])),
        "criterion": draw(st.sampled_from(["gain", "range"])),
        "relaxed": draw(st.booleans()),
        "normalize": draw(st.sampled_from(["best", "rank", "range"])),
        "bounds": draw(st.sampled_from(["tight", "cell"])),
        "max_suppression": draw(st.sampled_from([0.0, 0.0, 0.3, 0.9])),
        "seed": draw(st.integers(0, 3)),
        "n_threads": draw(st.sampled_from([1, 2])),
    }
    diversity = draw(st.sampled_from([None, 2, LDiversity(1.5, "entropy"), LDiversity(2, "recursive", 3.0)]))
    if diversity is not None:
        chosen["l_diversity"] = {"disease": diversity}
    if draw(st.booleans()):
        chosen["t_closeness"] = draw(st.sampled_from([0.4, {"salary": 0.3}, {"disease": 0.2, "salary": 0.5}]))
    return chosen


def plan(table, names, **chosen):
    return anonymize(table, quasi_identifiers=names, sensitive=list(SECRETS), direct_identifiers=["name"], **chosen)


def plain(table, names):
    """Rows as tuples of plain values; None for a missing one."""
    rows = table[names].astype(object).itertuples(index=False)
    return [tuple(None if is_missing(value) else value for value in row) for row in rows]


def classes_of(found):
    """Members of each class, as positions in the table handed in."""
    return [group["row"].tolist() for _, group in found.members.groupby("class")]


def check_models(table, found, chosen):
    released = table.iloc[found.members["row"]].reset_index(drop=True)
    everything = {name: [None if is_missing(v) else v for v in released[name].astype(object)] for name in SECRETS}
    for _, group in found.members.groupby("class"):
        units = released["person"][group.index].nunique() if chosen["subject"] else len(group)
        assert units >= chosen["k"]
        for name, values in everything.items():
            own = [values[i] for i in group.index]
            diversity = (chosen.get("l_diversity") or {}).get(name)
            if diversity is not None:
                diversity = diversity if isinstance(diversity, LDiversity) else LDiversity(diversity)
                assert reference.is_diverse(own, diversity.kind, diversity.least, diversity.c)
            limit = chosen.get("t_closeness")
            limit = limit.get(name) if isinstance(limit, dict) else limit
            if limit is not None:
                assert reference.closeness(own, values, name == "salary") <= limit + 1e-9


def lies_inside(value, row, name, mask):
    """Whether an original lies inside what was released of it, by the mask alone."""
    if isinstance(mask, ValueSet):
        # Times and dates have one text, numbers and truth values theirs.
        text = value.hex() if isinstance(value, bytes) else str(value)
        return (None if is_missing(value) else text) in json.loads(row[mask.column])
    low, high = row[mask.low], row[mask.high]
    if is_missing(value):
        return bool(row[mask.missing])
    order = ORDERS.get(name.split()[0])
    if order is not None:
        return order.index(low) <= order.index(str(value)) <= order.index(high)
    if name.startswith("single"):
        value = float(str(np.float32(value)))  # a float32 0.1 means 0.1
    if name.startswith("huge"):
        low, high = int(low), int(high)
    if isinstance(value, dt.date) and not isinstance(value, pd.Timestamp):
        value = pd.Timestamp(value)
    return low <= value and (value <= high if mask.includes_high else value < high)


@given(tables(), options())
@settings(max_examples=examples(200), deadline=None)
def test_every_class_satisfies_every_model_and_every_original_lies_inside_its_label(drawn, chosen):
    table, names = drawn
    try:
        found = plan(table, names, **chosen)
    except InvalidSettingError as error:
        assert str(error).startswith(UNREACHABLE)
        return
    check_models(table, found, chosen)
    assert len(found.table) + found.stats["n_suppressed"] == len(table)
    assert found.stats["n_suppressed"] <= chosen["max_suppression"] * len(table)
    assert len(set(found.members["row"])) == len(found.members)
    originals = table.iloc[found.members["row"]]
    for name in names:
        mask = found.model.masks[name]
        rows = found.table.to_dict("records")
        assert all(lies_inside(v, row, name, mask) for v, row in zip(originals[name].astype(object), rows, strict=True))
    hidden = {"name", "person"} if chosen["subject"] else {"name"}
    for name in set(table.columns) - {*names, *hidden}:
        assert found.table[name].equals(originals[name].reset_index(drop=True))
    assert not hidden & set(found.table.columns)
    # The calculator that only sees the released table finds the same, and all models hold for it, too.
    known = [column for name in names for column in columns_telling_of(name, found.model)]
    people = {"whose": originals["person"].to_numpy()} if chosen["subject"] else {}
    report = verify_anonymity(found.table.assign(**people), known, list(SECRETS), subject=next(iter(people), None))
    assert models_that_fail(found, report) == []
    if report.n_classes == found.stats["n_classes"]:
        for name, own in found.stats["sensitive"].items():
            assert report.sensitive[name].l_distinct == own["distinct_l"]
            assert report.sensitive[name].l_entropy == pytest.approx(own["entropy_l"])
            assert report.sensitive[name].t == pytest.approx(own["t"], abs=1e-9)


@given(tables(), options(), st.randoms())
@settings(max_examples=examples(60), deadline=None)
def test_the_order_of_the_rows_and_a_duplicated_index_change_nothing(drawn, chosen, random):
    table, names = drawn
    chosen["k"] = 2
    chosen["output"] = random.choice(["labels", "centroid"])
    table["name"] = "same"
    # Equal to pandas, but not to whoever reads the release.
    table["note"] = pd.Series(random.choices([1, True, 1.0, "1", b"1", None, "x"], k=len(table)), dtype=object)
    order = list(range(len(table)))
    random.shuffle(order)
    other = table.iloc[order]
    other.index = [7] * len(other)
    try:
        found = plan(table, names, **chosen)
    except InvalidSettingError as error:
        with pytest.raises(InvalidSettingError) as again:
            plan(other, names, **chosen)
        assert str(again.value) == str(error)
        return
    again = plan(other, names, **chosen)
    pd.testing.assert_frame_equal(again.table, found.table)
    assert [type(value) for value in again.table["note"]] == [type(value) for value in found.table["note"]]
    assert again.stats == found.stats
    assert isinstance(found.table.index, pd.RangeIndex)


@pytest.mark.parametrize("of_suppressed", [[1] * 4, [True] * 4, [0.5] * 4, [["a"]] * 4, ["\ud800"] * 4])
def test_nothing_of_a_suppressed_row_changes_what_is_released(of_suppressed):
    def release(notes):
        table = pd.DataFrame({"age": [1] * 4 + [50] * 20, "disease": ["flu"] * 4 + ["flu", "cold"] * 10})
        table["note"] = pd.Series([*notes, *["b", True, 1, None] * 5], dtype=object)
        return anonymize(
            table, quasi_identifiers=["age"], k=2, sensitive=["disease"], l_diversity=2, max_suppression=0.2
        )

    expected, found = release(["a"] * 4), release(of_suppressed)
    assert found.stats["n_suppressed"] == 4
    assert [repr(value) for value in found.table["note"]] == [repr(value) for value in expected.table["note"]]
    assert found.members.equals(expected.members)


def test_classes_below_k_are_never_handed_out_whatever_made_them(monkeypatch):
    partition = mondrian.Partition(np.arange(6, dtype=np.int32), np.array([0, 1]), np.zeros((0, 5), np.int64))
    monkeypatch.setattr("privacy_assets.anonymization.classes_by_cuts.partition_rows", lambda *_, **__: partition)
    with pytest.raises(AssertionError, match="a class has 1 rows, fewer than k = 2"):
        anonymize(pd.DataFrame({"age": range(6)}), quasi_identifiers=["age"], k=2)


@pytest.mark.parametrize("subject", [None, "person"])
def test_two_threads_give_the_classes_of_one_under_every_model(monkeypatch, subject):
    monkeypatch.setattr(mondrian, "FEWEST_ROWS_PER_TASK", 100)
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 15, 3000).round(1),
            "town": [f"town {i}" for i in np.minimum(rng.zipf(1.5, 3000), 400)],
            "disease": [f"d{i}" for i in rng.integers(0, 6, 3000)],
            "salary": rng.integers(0, 50, 3000),
            "person": np.arange(3000) // 2,
        }
    )
    limits = {"l_diversity": {"disease": LDiversity(2.5, "entropy")}, "t_closeness": {"salary": 0.15}}
    arguments = {"quasi_identifiers": ["age", "town"], "k": 5, "sensitive": ["disease", "salary"], "subject": subject}
    one, two = (anonymize(table, **arguments, **limits, n_threads=n) for n in (1, 2))
    assert one.stats["n_classes"] > 20
    pd.testing.assert_frame_equal(one.members, two.members)
    pd.testing.assert_frame_equal(one.table, two.table)
    assert one == two


@given(tables(), options())
@settings(max_examples=examples(60), deadline=None)
def test_a_result_returns_from_its_artifact_and_its_tree_finds_the_classes_again(drawn, chosen):
    table, names = drawn
    chosen |= {"l_diversity": None, "k": 1 if len(table) < 2 else 2, "subject": None}
    found = plan(table, names, **chosen)
    artifact = found.to_artifact()
    assert Anonymization.from_artifact(artifact) == found
    header = json.loads(json.dumps(artifact.header, allow_nan=False))
    frames = {name: through_parquet(frame) for name, frame in artifact.frames.items()}
    again = Anonymization.from_artifact(replace(artifact, header=header, frames=frames))
    assert again.tree == found.tree and again.model == found.model and again.stats == found.stats
    assert fingerprint(again.table) == fingerprint(found.table)
    if not chosen["relaxed"]:
        classes = apply_cuts(again.tree, table)
        assert (classes[found.members["row"]] == found.members["class"]).all()
        assert (np.delete(classes, found.members["row"]) == -1).all()


def refused(table, names, **chosen):
    """What `plan` gives, or None where the models cannot hold."""
    try:
        return plan(table, names, **chosen)
    except InvalidSettingError as error:
        assert str(error).startswith(UNREACHABLE)
        return None


@given(tables(max_rows=30), options())
@settings(max_examples=examples(100), deadline=None)
def test_strict_classes_do_not_overlap(drawn, chosen):
    table, names = drawn
    found = refused(table, names, **(chosen | {"relaxed": False}))
    if found is None:
        return
    rows = plain(table, names)
    class_of = dict(zip(found.members["row"], found.members["class"], strict=True))
    by_tuple = {}
    for i, row in enumerate(rows):
        own = class_of.get(i, -1)
        assert by_tuple.setdefault(row, own) == own  # equal tuples stay together
    released = found.table.groupby(found.members["class"]).first()
    for a in range(len(released)):
        for b in range(a):
            assert any(are_apart(released.iloc[a], released.iloc[b], name, found.model.masks[name]) for name in names)


@given(tables(max_rows=14, max_columns=2), options())
@settings(max_examples=examples(150), deadline=None)
def test_no_allowable_cut_is_left(drawn, chosen):
    table, names = drawn
    found = refused(table, names, **(chosen | {"relaxed": False, "max_suppression": 0.0}))
    if found is None:
        return
    kinds = ["set" if isinstance(found.model.masks[name], ValueSet) else "ordered" for name in names]
    rows, places = plain(table, names), []
    for j, name in enumerate(names):
        order = {text: i for i, text in enumerate(ORDERS.get(name.split()[0], ()))}
        values = sorted({row[j] for row in rows} - {None}, key=lambda v: order[str(v)] if order else v)
        places.append({value: i / max(len(values) - 1, 1) for i, value in enumerate(values)})
    secrets = [[row[0] for row in plain(table, [name])] for name in SECRETS]
    people = table["person"].tolist() if chosen["subject"] else None
    known = reference.Table(rows, kinds, places, people=people, sensitive=secrets)
    models = []
    for v, name in enumerate(SECRETS):
        diversity = (chosen.get("l_diversity") or {}).get(name)
        if diversity is not None:
            diversity = diversity if isinstance(diversity, LDiversity) else LDiversity(diversity)
            models.append((v, diversity.kind, diversity.least, diversity.c))
        limit = chosen.get("t_closeness")
        limit = limit.get(name) if isinstance(limit, dict) else limit
        if limit is not None:
            models.append((v, "t", limit, name == "salary"))
    for members in classes_of(found):
        assert not known.allowable(members, chosen["k"], models)


def are_apart(one, other, name, mask):
    if isinstance(mask, ValueSet):
        return not set(json.loads(one[mask.column])) & set(json.loads(other[mask.column]))
    if mask.missing and one[mask.missing] and other[mask.missing]:
        return False
    lows, highs = [r[mask.low] for r in (one, other)], [r[mask.high] for r in (one, other)]
    if any(is_missing(low) for low in lows):
        return True
    order = ORDERS.get(name.split()[0])
    if order is not None:
        lows, highs = [order.index(v) for v in lows], [order.index(v) for v in highs]
    if name.startswith("huge"):
        lows, highs = [int(v) for v in lows], [int(v) for v in highs]
    if mask.includes_high:
        return highs[0] < lows[1] or highs[1] < lows[0]
    return highs[0] <= lows[1] or highs[1] <= lows[0]


@given(tables(max_columns=4), st.integers(1, 5))
@settings(max_examples=examples(60), deadline=None)
def test_centroids_are_released_in_the_type_of_their_column(drawn, k):
    table, names = drawn
    found = plan(table, names, k=min(k, len(table)), output="centroid")
    assert list(found.table.columns) == [*names, *SECRETS, "person"]
    assert all(found.model.masks[name] == Suppressed() for name in names)
    for name in names:
        originals = table[name].iloc[found.members["row"]].reset_index(drop=True)
        for _, group in found.members.groupby("class"):
            centres = found.table[name][group.index]
            is_missing = originals[group.index].isna().all()
            assert centres.isna().tolist() == [is_missing] * len(group)
            assert centres.nunique() == (0 if is_missing else 1)
            own = originals[group.index].dropna()
            if len(own) and pd.api.types.is_numeric_dtype(own.dtype) and own.dtype.kind in "if":
                exact = [Fraction(str(np.float32(v)) if name.startswith("single") else v) for v in own.tolist()]
                farthest = float(max(map(abs, exact)))
                assert np.isclose(float(centres.iloc[0]), float(sum(exact) / len(own)), 1e-6, 1e-15 * farthest)
