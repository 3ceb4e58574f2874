"""Mondrian with hierarchies for some columns: labels are lowest common ancestors, and every figure is that of labels.

The reference is plain recursion over nested mappings and shares nothing with the package.
"""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import (
    Hierarchy,
    LDiversity,
    anonymize,
    apply_cuts,
    assess_membership,
    assess_reidentification,
    assess_utility,
    draw_records,
    verify_anonymity,
)
from privacy_assets.anonymization.measured_loss import require_measured
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.linkage import audit_linkage
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.synthesis.generalized import generalize_alike
from tests.examples import examples

JOBS = {
    "*": {
        "health": {"clinic": ["nurse", "doctor", "midwife"], "home": ["carer"]},
        "law": {"court": ["judge", "clerk"], "office": ["notary"]},
        "trade": {"shop": ["grocer", "baker", "butcher", "florist"], "stall": ["farmer"]},
    }
}
BANDS = {"*": {f"[{a}, {a + 9}]": {f"[{b}, {b + 4}]": list(range(b, b + 5)) for b in (a, a + 5)} for a in (20, 30, 40)}}
HIERARCHIES = {"job": Hierarchy.from_mapping(JOBS), "age": Hierarchy.intervals([5, 10])}
KNOWN = ["job", "age", "pay", "town"]


def leaves_of(tree):
    if isinstance(tree, list):
        return [str(leaf) for leaf in tree]
    return [leaf for below in tree.values() for leaf in leaves_of(below)]


def ancestor(tree, values):
    """The lowest node of a nested mapping above all values, and the number of its leaves."""
    if len(values) == 1:
        return next(iter(values)), 1
    for label, below in tree.items():
        if values <= set(leaves_of(below)):
            deeper = None if isinstance(below, list) else ancestor(below, values)
            return deeper or (label, len(leaves_of(below)))
    return None


def label_and_loss(name, own, known, has_missing):
    """Label and NCP of a class with the values ``own`` of a column with ``known``; None is a leaf under the top."""
    if None in own:
        return ("missing", 0.0) if len(own) == 1 else ("*", 1.0)
    label, n_under = ancestor(JOBS if name == "job" else BANDS, own)
    n_leaves = len(JOB_NAMES) + has_missing
    if name == "age":  # a rule has the leaves that occur
        n_leaves = len(known) + has_missing
        if n_under > 1 and label != "*":
            low, high = json.loads(label)
            n_under = sum(low <= int(value) <= high for value in known)
    return label, 1.0 if label == "*" else (n_under - 1) / max(n_leaves - 1, 1)


JOB_NAMES = leaves_of(JOBS)


@st.composite
def tables(draw):
    n = draw(st.integers(4, 40))

    def column(values):
        return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

    return pd.DataFrame(
        {
            "job": pd.Series(
                column([*JOB_NAMES, *(["nurse"] * 6), *draw(st.sampled_from([[], [None]]))]), dtype=object
            ),
            "age": pd.Series(column([*range(20, 50), *draw(st.sampled_from([[], [None]]))]), dtype="Int64"),
            "pay": column([1.0, 2.5, 2.5, 40.0, 1e6]),
            "town": column(["north", "south", "east"]),
            "person": column(list(range(12))),
            "illness": column(["flu", "cold", "none"]),
        }
    )


@st.composite
def chosen(draw):
    how = {
        "k": draw(st.integers(1, 4)),
        "criterion": draw(st.sampled_from(["gain", "range"])),
        "normalize": draw(st.sampled_from(["best", "rank", "range"])),
        "bounds": draw(st.sampled_from(["tight", "cell"])),
        "relaxed": draw(st.booleans()),
    }
    if draw(st.booleans()):
        how["l_diversity"] = 2
        how["max_suppression"] = draw(st.sampled_from([0.0, 0.4]))
    if draw(st.booleans()):
        how["t_closeness"] = draw(st.sampled_from([0.3, 0.6]))
    if draw(st.booleans()):
        how["subject"] = "person"
    names = draw(st.sampled_from([("job",), ("age",), ("job", "age")]))
    return how, {name: HIERARCHIES[name] for name in names}


def cut(table, how, hierarchies):
    hidden = [] if "subject" in how else ["person"]
    sensitive = ["illness"]
    return anonymize(
        table, quasi_identifiers=KNOWN, sensitive=sensitive, direct_identifiers=hidden, hierarchies=hierarchies, **how
    )


def sorted_rows(table):
    return sorted(map(repr, table.astype(object).to_numpy().tolist()))


@given(tables(), chosen(), st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_labels_are_common_ancestors_and_all_figures_are_theirs(table, chosen, random):
    how, hierarchies = chosen
    try:
        found = cut(table, how, hierarchies)
    except InvalidSettingError as error:
        assert "k is" in str(error) or "l_diversity" in str(error)
        return
    originals = table.iloc[found.members["row"]].reset_index(drop=True)
    labels = [name for name in found.table if name != "illness"]
    for name in hierarchies:
        assert not {f"{name}_low", f"{name}_high", f"{name}_values"} & set(found.table)
        column = table[name].astype(object).where(table[name].notna(), None)
        known = {str(value) for value in column if value is not None}
        losses = []
        for _, rows in found.members.groupby("class"):
            own = {None if value is None else str(value) for value in column.iloc[rows["row"]]}
            label, loss = label_and_loss(name, own, known, bool(table[name].isna().any()))
            assert set(found.table.loc[rows.index, name].astype(str)) == {label}
            losses += [loss] * len(rows)
        n_left_out = len(table) - len(found.table)
        assert found.stats["certainty_penalty"][name] == pytest.approx((sum(losses) + n_left_out) / len(table))
    seen = verify_anonymity(found.table, labels, ["illness"])
    people = originals.groupby(found.members["class"])["person"].nunique().min() if "subject" in how else seen.k
    assert people >= how["k"]
    assert seen.l_distinct >= how.get("l_diversity", 1)
    assert seen.t <= how.get("t_closeness", 1) + 1e-9
    assert seen.n_classes == found.stats["n_classes"] == len(found.classes)
    require_measured(found, table, hierarchies)
    # Refuses a release whose labels exclude a true original.
    index = CandidateIndex.of_anonymization(table, found, hierarchies=hierarchies)
    assert index.sizes(KNOWN).min() >= how["k"]
    if not how["relaxed"]:
        assert (apply_cuts(found.tree, originals) == found.members["class"]).all()
        order = list(range(len(table)))
        random.shuffle(order)
        assert sorted_rows(cut(table.iloc[order], how, hierarchies).table) == sorted_rows(found.table)
    assert Anonymization.from_artifact(found.to_artifact()) == found


PEOPLE = pd.DataFrame(
    {
        "job": ["nurse"] * 3 + ["doctor"] * 2 + ["judge"] * 3 + ["grocer", "farmer", "baker"] + [None],
        "age": [21, 22, 22, 23, 29, 31, 32, 38, 41, 42, 43, 44],
        "illness": ["flu", "cold"] * 6,
    }
)


def test_nodes_and_intervals_in_one_table():
    found = anonymize(PEOPLE, quasi_identifiers=["job", "age"], k=3, hierarchies={"job": {"tree": JOBS}})
    assert list(found.table) == ["job", "age", "age_low", "age_high", "illness"]
    assert found.model.to_json()["job"] == {"kind": "mapping", "column": "job", "hierarchy": "job", "level": None}
    assert found.settings["hierarchies"]["job"]["tree"]["n_values"] == 12
    rows = sorted(zip(found.table["job"].astype(str), found.table["age"].astype(str), strict=True))
    # Who has no job is only under the top, and so are the others of that class.
    expected = [("nurse", "[21, 22]"), ("trade", "[41, 43]"), ("*", "[23, 31]"), ("*", "[32, 44]")]
    assert rows == sorted(expected * 3)


@pytest.mark.parametrize("seed", range(4))
def test_a_flat_hierarchy_of_two_values_is_a_set_of_two_values(seed):
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {f"c{j}": random.choice(["yes", "no"], 200) for j in range(3)} | {"n": random.normal(size=200)}
    )
    flat = {f"c{j}": Hierarchy.from_mapping({"*": ["yes", "no"]}) for j in range(3)}
    how = {"quasi_identifiers": list(table), "k": 4, "criterion": "range", "normalize": "range"}
    cut_freely, cut_along = anonymize(table, **how), anonymize(table, hierarchies=flat, **how)
    assert cut_along.stats == cut_freely.stats
    # With more than two values, {a, b} of three loses 1/2 as a set, but all as the top of a flat hierarchy.
    wide = pd.DataFrame({"c": random.choice(list("abcdef"), 300)})
    flat = {"c": Hierarchy.from_mapping({"*": list("abcdef")})}
    how = {"quasi_identifiers": ["c"], "k": 60}
    cut_along = anonymize(wide, hierarchies=flat, **how)
    assert set(cut_along.table["c"].astype(str)) <= {*"abcdef", "*"}
    assert cut_along.stats["information_loss"] >= anonymize(wide, **how).stats["information_loss"]


def test_no_hierarchies_are_no_hierarchies():
    how = {"quasi_identifiers": ["job", "age"], "k": 3}
    assert anonymize(PEOPLE, hierarchies={}, **how) == anonymize(PEOPLE, **how)


def test_new_rows_find_the_class_of_their_values_and_unknown_values_none():
    found = anonymize(PEOPLE, quasi_identifiers=["job", "age"], k=3, hierarchies=HIERARCHIES)
    assert found.tree is not None
    new = pd.DataFrame({"job": ["nurse", "midwife", "nurse"], "age": [22, 22, 24]})
    # A midwife is under "clinic", but did not occur; neither did the age of 24.
    assert apply_cuts(found.tree, new).tolist() == [apply_cuts(found.tree, PEOPLE)[1], -1, -1]
    with pytest.raises(
        InvalidSettingError, match=r"cuts \['age', 'job'\] along hierarchies, but its classes must also"
    ):
        generalize_alike(found, PEOPLE, PEOPLE)


def test_dates_in_other_units_and_floats_with_noise():
    days = pd.to_datetime(["2020-01-05", "2020-01-20", "2020-02-03", "2021-03-01", "2021-03-09", "2021-07-01"])
    table = pd.DataFrame({"day": days, "size": [0.3, 0.1 + 0.2, 0.5, 1.25, 1.5, 1.75]})
    along = {"day": Hierarchy.dates(["month", "year"]), "size": Hierarchy.intervals([0.5, 1.0])}
    found = anonymize(table, quasi_identifiers=["day", "size"], k=2, hierarchies=along)
    require_measured(found, table, along)
    released = found.table.astype(str).value_counts().to_dict()
    # Hierarchies compare floats to 10 decimals, so the first two sizes are one value.
    assert released == {("2020", "[0.0, 1.0)"): 3, ("2021", "[1.0, 2.0)"): 3}
    in_seconds = table.assign(day=table["day"].astype("datetime64[s]"))
    assert (apply_cuts(found.tree, in_seconds.iloc[found.members["row"]]) == found.members["class"]).all()


@pytest.mark.parametrize(("bounds", "n_classes"), [("tight", 3), ("cell", 4)])
def test_leaves_with_equal_labels_are_one_class(bounds, n_classes):
    """Two parts of one node can be cut apart, and then read the same; cells of numbers may still tell them apart."""
    tree = {"A": ["a1", "a2", "a3", "a4", "a5"], "B": ["b1", "b2"], "C": ["c1"]}
    cells = ["a1 2", "a3 0", "a3 0", "a3 2", "a3 2", "a4 1", "a5 0", "a5 1", "b2 0", "b2 1", "b2 1"]
    table = pd.DataFrame([cell.split() for cell in cells], columns=["x", "n"]).astype({"n": int})
    how = {"quasi_identifiers": ["x", "n"], "k": 2, "criterion": "range", "hierarchies": {"x": {"tree": tree}}}
    found = anonymize(table, bounds=bounds, **how)
    assert found.tree.n_cuts == 3 and found.stats["n_classes"] == n_classes
    assert found.classes["rows"].sum() == 11
    assert verify_anonymity(found.table, list(found.table)).n_classes == n_classes
    assert (apply_cuts(found.tree, table.iloc[found.members["row"]]) == found.members["class"]).all()
    require_measured(found, table, {"x": Hierarchy.from_mapping(tree)})


def test_centers_are_those_of_the_values():
    how = {"quasi_identifiers": ["job", "age"], "k": 3, "output": "centroid"}
    found = anonymize(PEOPLE, hierarchies=HIERARCHIES, **how)
    assert pd.api.types.is_float_dtype(found.table["age"])
    require_measured(found, PEOPLE, HIERARCHIES)


def test_diversity_holds_in_classes_of_nodes():
    found = anonymize(
        PEOPLE, quasi_identifiers=["job", "age"], k=2, sensitive=["illness"], hierarchies=HIERARCHIES,
        l_diversity=LDiversity(1.8, "entropy"), max_suppression=0.3,
    )  # fmt: skip
    assert verify_anonymity(found.table, ["job", "age"], ["illness"]).sensitive["illness"].l_entropy >= 1.8


@pytest.mark.parametrize(
    ("hierarchies", "error", "message"),
    [
        ({"town": HIERARCHIES["job"]}, InvalidSettingError, r"columns are not quasi-identifiers: \['town'\]"),
        ({"job": 5}, InvalidSettingError, "the type is int, not Hierarchy"),
        ([HIERARCHIES["job"]], InvalidSettingError, "hierarchies is not a mapping"),
        ({"job": {"steps": [1]}}, InvalidSettingError, "Expected one key of"),
        ({"job": {"tree": {"a": ["nurse"]}}}, InvalidTableError, r"'job' has 5 values \(in 8 rows\)"),
        ({"job": Hierarchy.intervals([5])}, InvalidTableError, "expects numbers"),
    ],
)
def test_hierarchies_that_do_not_fit_are_refused(hierarchies, error, message):
    with pytest.raises(error, match=message):
        anonymize(PEOPLE, quasi_identifiers=["job", "age"], k=3, hierarchies=hierarchies)


def test_only_columns_cut_freely_need_names_for_their_ends():
    table = PEOPLE.assign(job_values=1, age_low=2)
    how = {"quasi_identifiers": ["job", "age"], "k": 3}
    with pytest.raises(InvalidSettingError, match=r"several columns named \['age_low', 'job_values'\]"):
        anonymize(table, **how)
    assert "job_values" in anonymize(table, hierarchies=HIERARCHIES, **how).table


@pytest.mark.parametrize("method", ["mondrian", "lattice"])
def test_hierarchies_of_a_result_need_not_be_passed_again(method):
    """They had to be, to each function that took the result; what was stored has lost them, and says so."""
    found = anonymize(PEOPLE, quasi_identifiers=["job", "age"], k=2, method=method, hierarchies=HIERARCHIES)
    control = PEOPLE.sample(frac=1, random_state=0).reset_index(drop=True)
    stored = Anonymization.from_artifact(found.to_artifact())
    assert (found.hierarchies, dict(stored.hierarchies)) == (HIERARCHIES, {}) and stored == found
    ways = [
        lambda made, given: assess_reidentification(PEOPLE, made, hierarchies=given).scores,
        lambda made, given: assess_membership(made, PEOPLE, hierarchies=given).scores,
        lambda made, given: audit_linkage(PEOPLE, made, hierarchies=given).scores,
        lambda made, given: assess_utility(PEOPLE, made.table, control, made, hierarchies=given).scores,
        lambda made, given: draw_records(made.table, made, hierarchies=given, domain=PEOPLE).to_dict(),
    ]
    for way in ways:
        assert way(found, None) == way(found, HIERARCHIES) == way(stored, HIERARCHIES)
        with pytest.raises(InvalidSettingError, match="hierarch"):
            way(stored, None)
