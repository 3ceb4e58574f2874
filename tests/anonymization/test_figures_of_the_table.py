"""Every figure of classes is that of the table that leaves: rows that are released alike are one class.

The reference groups the released table by pandas; it does not know how the classes were made.
"""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import Hierarchy, anonymize, apply_cuts
from privacy_assets.anonymization.anonymize import anonymize_with
from privacy_assets.anonymization.anonymized_table import columns_telling_of, measure_anonymity
from privacy_assets.anonymization.measured_loss import require_measured
from privacy_assets.anonymization.pictures import draw_class_sizes
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.anonymization.settings import AnonymizeSettings
from privacy_assets.anonymization.withheld_records import withhold_records
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError
from tests.engines import ShufflingEngine
from tests.examples import examples
from tests.reference.mondrian import closeness, entropy

KNOWN = ["age", "pay", "town", "job"]
HIERARCHIES = {
    "age": Hierarchy.intervals([2, 6]),
    "pay": Hierarchy.intervals([5.0, 50.0]),
    "town": Hierarchy.from_mapping({"*": {"coast": ["a", "b"], "hills": ["c"]}}),
    "job": Hierarchy.prefixes([1]),
}
ROLES = dict.fromkeys(KNOWN, "quasi_identifier") | {"ill": "sensitive", "cost": "sensitive", "who": "direct_identifier"}
TYPES = {"age": "integer", "pay": "float", "town": "text", "job": "text", "ill": "text", "cost": "integer"}


@st.composite
def tables(draw):
    n = draw(st.integers(2, 45))

    def column(values):
        return draw(st.lists(st.sampled_from(values), min_size=n, max_size=n))

    return pd.DataFrame(
        {
            "age": pd.Series(column([30, 30, 30, 31, 35, draw(st.sampled_from([29, None]))]), dtype="Int64"),
            "pay": column([1.5, 1.5, 1.5, 2.0, 40.25]),
            "town": column(["a", "a", "b", "c", draw(st.sampled_from(["c", None]))]),
            "job": column(["nurse", "nurse", "notary", "cook"]),
            "ill": column(["flu", "cold", "none"]),
            "cost": column([1, 2, 9]),
            "who": column(list(range(9))),
        }
    )


@st.composite
def ways(draw):
    own = {
        "k": draw(st.integers(1, 4)),
        "subject": draw(st.sampled_from([None, "who"])),
        "output": draw(st.sampled_from(["labels", "labels", "centroid"])),
        "seed": draw(st.integers(0, 2)),
        "quasi_identifiers": draw(st.sampled_from([["age"], ["age", "pay"], ["pay", "town"], KNOWN])),
    }
    if draw(st.booleans()):
        own["l_diversity"], own["max_suppression"] = {"ill": 2}, draw(st.sampled_from([0.0, 0.5]))
    if draw(st.booleans()):
        own["t_closeness"] = {"cost": 0.5}
    if draw(st.integers(0, 4)) == 0:
        return own | {
            "method": "lattice",
            "hierarchies": {name: HIERARCHIES[name] for name in own["quasi_identifiers"]},
        }
    along = draw(st.sampled_from([(), (), ("town",), ("age", "job")]))
    own["hierarchies"] = {name: HIERARCHIES[name] for name in along if name in own["quasi_identifiers"]}
    return own | {
        "relaxed": draw(st.sampled_from([True, True, False])),
        "criterion": draw(st.sampled_from(["gain", "range"])),
        "normalize": draw(st.sampled_from(["best", "rank", "range"])),
        "bounds": draw(st.sampled_from(["tight", "cell"])),
    }


def released_columns(found):
    """The released columns of the quasi-identifiers; centers of classes have no mask."""
    names = found.settings["quasi_identifiers"]
    if found.settings["output"] == "centroid":
        return names
    return [column for name in names for column in columns_telling_of(name, found.model)]


def groups_of(found):
    """Positions of the rows of each group of equal labels."""
    cells = found.table[released_columns(found)].astype(object)
    return list(cells.where(cells.notna(), "no value").groupby(list(cells)).indices.values())


def figures_of_the_table(found, table, k):
    """The figures of classes, from the released table, its originals and nothing else."""
    groups, released = groups_of(found), found.table
    sizes = [len(rows) for rows in groups]
    whose = table["who"].iloc[found.members["row"]].to_numpy()
    people = [len(set(whose[rows])) for rows in groups] if found.settings["subject"] else sizes
    n_left_out = len(table) - len(released)
    figures = {
        "n_classes": len(groups),
        "smallest_class": min(sizes),
        "mean_class": sum(sizes) / len(sizes),
        "largest_class": max(sizes),
        "k": min(people),
        "smallest_class_people": min(people),
        "mean_class_people": sum(people) / len(people),
        "largest_class_people": max(people),
        "average_class_ratio": sum(sizes) / len(sizes) / k,
        "discernibility": sum(size**2 for size in sizes) + n_left_out * len(table),
        "n_suppressed": n_left_out,
    }
    certain = set()
    for name in ("ill", "cost"):
        values = released[name].tolist()
        own = [[values[i] for i in rows] for rows in groups]
        homogeneous = [rows for rows, each in zip(groups, own, strict=True) if len(set(each)) == 1]
        certain |= {int(i) for rows in homogeneous for i in rows}
        figures[name] = {
            "distinct_l": min(len(set(each)) for each in own),
            "entropy_l": min(math.exp(entropy(each)) for each in own),
            "t": max(closeness(each, values, name == "cost") for each in own),
            "share_in_homogeneous_classes": sum(map(len, homogeneous)) / len(released),
        }
    return figures | {"share_in_homogeneous_classes": len(certain) / len(released)}


def check(found, table, k):
    expected = figures_of_the_table(found, table, k)
    for name in ("ill", "cost"):
        assert found.stats["sensitive"][name] == pytest.approx(expected.pop(name), abs=1e-9)
    assert {name: found.stats[name] for name in expected} == pytest.approx(expected)
    # One row per class, and each record is in the class of its labels.
    groups = groups_of(found)
    class_of_row = found.members["class"].to_numpy()
    assert all(len(set(class_of_row[rows])) == 1 for rows in groups)
    place = {int(class_of_row[rows[0]]): rows for rows in groups}
    classes = found.classes.set_index("class")
    assert sorted(place) == list(classes.index) == list(range(len(groups)))
    whose = table["who"].iloc[found.members["row"]].to_numpy()
    for number, rows in place.items():
        assert classes.loc[number, "rows"] == len(rows)
        if found.settings["subject"]:
            assert classes.loc[number, "people"] == len(set(whose[rows]))
        assert classes.loc[number, "ill values"] == found.table["ill"].iloc[rows].nunique()
    lost = (classes["loss"] * classes["rows"]).sum() + found.stats["n_suppressed"]
    assert found.stats["information_loss"] == pytest.approx(lost / len(table))


def made(table, how):
    names = how["quasi_identifiers"]
    try:
        return anonymize(
            table,
            sensitive=["ill", "cost"],
            direct_identifiers=[name for name in (*KNOWN, "who") if name not in (*names, how["subject"])],
            **how,
        )
    except InvalidSettingError as error:
        assert "k is" in str(error) or "l_diversity" in str(error)
        return None


@settings(max_examples=examples(160), deadline=None)
@given(tables(), ways())
def test_figures_of_classes_are_those_of_the_table(table, how):
    found = made(table, how)
    if found is None:
        return
    check(found, table, how["k"])
    # The gate measures losses on the released labels alone.
    require_measured(found, table, how["hierarchies"])
    sizes = [len(rows) for rows in groups_of(found)]
    if not how["subject"]:
        assert draw_class_sizes(found.classes).text.startswith(
            f"The smallest of {len(sizes):,} classes has {min(sizes):,} records" if len(sizes) > 1 else "All records"
        )
    again = Anonymization.from_artifact(found.to_artifact())
    assert again == found
    if found.tree is not None:
        # The tree sends an original to the class of its labels, or to another class of the same cut.
        own = apply_cuts(again.tree, table)
        assert set(own) <= {*found.classes["class"], -1}
        if not how.get("relaxed"):
            assert (own[found.members["row"]] == found.members["class"]).all()


@settings(max_examples=examples(80), deadline=None)
@given(tables(), ways(), st.data())
def test_they_stay_so_without_withheld_records_and_as_the_gate_measures_them(table, how, data):
    found = made(table, how)
    if found is None:
        return
    contract = TableContract.from_mapping(
        {
            "columns": {
                name: {"type": TYPES.get(name, "integer"), "role": ROLES[name], "nullable": name in ("age", "town")}
                for name in (*how["quasi_identifiers"], "ill", "cost", "who")
            }
        }
    )
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=len(found.table), max_size=len(found.table))), bool)
    kept[0] = True
    for each in (found, withhold_records(found, kept, table)):
        expected = figures_of_the_table(each, table, how["k"])
        stated = {name: each.stats[name] for name in expected if name in each.stats}
        assert {"n_classes", "discernibility", "mean_class", "k"} <= set(stated)
        assert stated == pytest.approx({name: expected[name] for name in stated})
        if how.get("output") != "centroid":
            report, _ = measure_anonymity(each, contract, table, how["subject"])
            people = report.k if report.k_people is None else report.k_people
            assert (report.n_classes, people) == (stated["n_classes"], stated["k"])
            assert report.l_distinct == min(expected[name]["distinct_l"] for name in ("ill", "cost"))
            assert report.share_in_homogeneous_classes == pytest.approx(expected["share_in_homogeneous_classes"])


@pytest.mark.parametrize("more", [{}, {"bounds": "cell"}, {"subject": "who"}, {"output": "centroid"}, {"k": 3}])
def test_they_are_so_where_the_table_is_cut_by_tasks(more):
    random = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "age": pd.Series(random.integers(0, 4, 400), dtype="Int64"),
            "pay": random.choice([1.5, 1.5, 2.0, 40.25], 400),
            "town": random.choice(["a", "b", "c"], 400),
            "job": random.choice(["nurse", "cook"], 400),
            "ill": random.choice(["flu", "cold"], 400),
            "cost": random.integers(0, 3, 400),
            "who": np.arange(400) // 2,
        }
    )
    how = {"quasi_identifiers": KNOWN, "k": 2, "subject": None, "relaxed": True} | more
    found, divided = made(table, how), made(table, how | {"engine": ShufflingEngine(rows_per_task=60)})
    check(found, table, how["k"])
    assert divided == found
    # Some ties were divided.
    assert found.stats["n_classes"] < len(found.tree.class_of_leaf)


def test_centers_that_floats_cannot_distinguish_are_one_class():
    ages = [2**60 + i for i in range(8)]
    table = pd.DataFrame({"age": ages, "ill": ["flu", "cold"] * 4})
    own = AnonymizeSettings(quasi_identifiers=("age",), k=2, sensitive=("ill",), output="centroid")
    found = anonymize_with(table, own)
    assert found.table["age"].nunique() == found.stats["n_classes"] == 1
