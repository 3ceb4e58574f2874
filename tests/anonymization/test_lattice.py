"""Tables generalized by hierarchies: every model holds seen from the outside, every original lies under its node."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import LDiversity, anonymize, apply_cuts
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.leveled_column import Leaves
from privacy_assets.columns.masks import Exact, HierarchyMapping, Suppressed
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.fingerprint import fingerprint
from tests.anonymization.test_anonymize import SECRETS, check_models, tables
from tests.examples import examples
from tests.mixed_tables import UNREACHABLE, through_parquet

BUILDERS = {
    "integer": {"intervals": [2, 10]},
    "nullable integer": {"intervals": [2, 10]},
    "float": Hierarchy.intervals([0.1, 0.2, 1.0]),
    "text": Hierarchy.prefixes([1]),
    "datetime": Hierarchy.dates(["day", "year"]),
    "aware datetime": Hierarchy.dates(["month"]),
    "date": {"dates": ["month", "year", "decade"]},
}


def hierarchy_for(column):
    """A rule where there is one, else a tree of two halves."""
    kind = column.name.rsplit(" ", 1)[0]
    if kind in BUILDERS:
        return BUILDERS[kind]
    leaves = sorted(Leaves.read(column, kind).labels) or ["a"]
    half = len(leaves) // 2
    halves = {"first": leaves[:half], "second": leaves[half:]}
    return Hierarchy.from_mapping({node: below for node, below in halves.items() if below})


@st.composite
def options(draw):
    chosen = {
        "k": draw(st.integers(1, 5)),
        "subject": draw(st.sampled_from([None, "person"])),
        "max_suppression": draw(st.sampled_from([0.0, 0.0, 0.3, 0.9])),
        "seed": draw(st.integers(0, 3)),
    }
    kinds = [None, 2, LDiversity(1.5, "entropy"), LDiversity(2, "recursive", 3.0)]
    diversity = draw(st.sampled_from(kinds))
    if diversity is not None:
        chosen["l_diversity"] = {"disease": diversity}
    if draw(st.booleans()):
        chosen["t_closeness"] = draw(st.sampled_from([0.4, {"salary": 0.3}, {"disease": 0.2, "salary": 0.5}]))
    return chosen


def plan(table, names, **chosen):
    """Anonymize; None if the models cannot hold."""
    try:
        return anonymize(
            table,
            quasi_identifiers=names,
            sensitive=list(SECRETS),
            direct_identifiers=["name"],
            method="lattice",
            hierarchies={name: hierarchy_for(table[name]) for name in names},
            **chosen,
        )
    except InvalidSettingError as error:
        assert str(error).startswith(UNREACHABLE)
        return None


@given(tables(), options())
@settings(max_examples=examples(120), deadline=None)
def test_every_model_holds_and_every_original_lies_under_its_node(drawn, chosen):
    table, names = drawn
    found = plan(table, names, **chosen)
    if found is None:
        return
    check_models(table, found, chosen)
    check_rows(table, found, names, chosen)
    check_nodes(table, found, names)
    check_from_outside(table, found, names, chosen)


def check_rows(table, found, names, chosen):
    """No row is lost, and nothing but the quasi-identifiers has changed."""
    assert len(found.table) + found.stats["n_suppressed"] == len(table)
    assert found.stats["n_suppressed"] <= chosen["max_suppression"] * len(table)
    assert len(set(found.members["row"])) == len(found.members)
    hidden = ["name"] if chosen["subject"] is None else ["name", "person"]
    assert list(found.table.columns) == [name for name in table.columns if name not in hidden]
    originals = table.iloc[found.members["row"]].reset_index(drop=True)
    for name in found.table.columns.difference(names):
        assert found.table[name].equals(originals[name])
        assert found.model.masks[name] == Exact(name)


def check_nodes(table, found, names):
    """Every label is an ancestor of the original, one in every class, and losses are those of the labels."""
    losses = {}
    for name in names:
        assert found.model.masks[name] == HierarchyMapping(name, name)
        given = hierarchy_for(table[name])
        hierarchy = given if isinstance(given, Hierarchy) else Hierarchy.from_settings(given)
        leveled = hierarchy.apply(table[name], name)
        ancestors = [set(leveled.labels[leveled.nodes[:, code]]) for code in leveled.codes]
        released = found.table[name].astype(object)
        assert all(label in ancestors[row] for row, label in zip(found.members["row"], released, strict=True))
        loss_of = dict(zip(leveled.labels, leveled.loss, strict=True))
        losses[name] = (sum(loss_of[label] for label in released) + found.stats["n_suppressed"]) / len(table)
    assert found.stats["certainty_penalty"] == pytest.approx(losses)
    assert found.stats["information_loss"] == pytest.approx(np.mean(list(losses.values())))
    assert all(0 <= entropy <= 1 for entropy in found.stats["non_uniform_entropy"].values())


def check_from_outside(table, found, names, chosen):
    """The calculator of any table finds the classes and figures that the engine claims."""
    people = table["person"].iloc[found.members["row"]].reset_index(drop=True)
    subject = chosen["subject"]
    report = verify_anonymity(found.table.assign(person=people), names, list(SECRETS), subject=subject)
    assert report.n_classes == found.stats["n_classes"] == len(found.classes)
    assert report.k == found.stats["smallest_class"] == found.classes["rows"].min()
    assert (report.k if subject is None else report.k_people) == found.stats["k"] >= chosen["k"]
    for name, own in found.stats["sensitive"].items():
        assert report.sensitive[name].l_distinct == own["distinct_l"]
        assert report.sensitive[name].t == pytest.approx(own["t"], abs=1e-9)


@given(tables(), options(), st.randoms())
@settings(max_examples=examples(40), deadline=None)
def test_the_order_and_the_index_of_the_rows_change_nothing(drawn, chosen, random):
    table, names = drawn
    table["name"] = "same"
    order = list(range(len(table)))
    random.shuffle(order)
    other = table.iloc[order].set_axis([7] * len(table))
    found, again = plan(table, names, **chosen), plan(other, names, **chosen)
    assert (found is None) == (again is None)
    if found is None:
        return
    pd.testing.assert_frame_equal(again.table, found.table)
    assert again.stats == found.stats and again.classes.equals(found.classes)
    assert isinstance(found.table.index, pd.RangeIndex)
    class_of = dict(zip(found.members["row"], found.members["class"], strict=True))
    assert {order[row]: own for row, own in zip(again.members["row"], again.members["class"], strict=True)} == class_of


@given(tables(), options())
@settings(max_examples=examples(25), deadline=None)
def test_a_result_returns_from_its_artifact(drawn, chosen):
    table, names = drawn
    found = plan(table, names, **chosen)
    if found is None:
        return
    artifact = found.to_artifact()
    assert Anonymization.from_artifact(artifact) == found
    header = json.loads(json.dumps(artifact.header, allow_nan=False))
    frames = {name: through_parquet(frame) for name, frame in artifact.frames.items()}
    again = Anonymization.from_artifact(replace(artifact, header=header, frames=frames))
    assert (again.model, again.stats, again.tree) == (found.model, found.stats, None)
    assert again.settings == found.settings
    assert fingerprint(again.table) == fingerprint(found.table)


AREAS = Hierarchy.from_mapping({"North": ["a", "b"], "South": ["c", "d"]})
HIERARCHIES = {"area": AREAS, "age": Hierarchy.intervals([5, 10, 20])}
AREA = {"area": AREAS}


def people_table():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "area": rng.choice(list("abcd"), 400),
            "age": rng.integers(20, 60, 400),
            "who": rng.integers(0, 120, 400),
            "disease": rng.choice(["flu", "cold", "none"], 400, p=[0.6, 0.3, 0.1]),
            "income": rng.integers(1, 100, 400),
        }
    )


def by_lattice(table, hierarchies=HIERARCHIES, **changes):
    arguments = {
        "quasi_identifiers": list(hierarchies or ()),
        "method": "lattice",
        "hierarchies": hierarchies,
        **changes,
    }
    return anonymize(table, **arguments)


def test_k_rows_are_not_k_people():
    found = by_lattice(people_table(), k=5, subject="who")
    assert "who" not in found.table and found.model.masks["who"] == Suppressed()
    assert found.classes["people"].min() >= 5
    by_rows = by_lattice(people_table(), k=5)
    assert by_rows.stats["information_loss"] < found.stats["information_loss"]


@pytest.mark.parametrize(
    ("limits", "holds"),
    [
        ({"l_diversity": 2}, lambda r: r.l_distinct >= 2),
        ({"l_diversity": {"disease": 3}}, lambda r: r.sensitive["disease"].l_distinct == 3),
        ({"l_diversity": {"disease": LDiversity(2.2, "entropy")}}, lambda r: r.sensitive["disease"].l_entropy >= 2.2),
        (
            {"l_diversity": {"disease": LDiversity(2, "recursive", 2.5)}},
            lambda r: r.sensitive["disease"].l_recursive_c[2] < 2.5,
        ),
        ({"t_closeness": 0.15}, lambda r: r.t <= 0.15),
        ({"t_closeness": {"income": 0.1}}, lambda r: r.sensitive["income"].t <= 0.1),
        ({"t_closeness": 0.1, "max_suppression": 0.1}, lambda r: r.t <= 0.1),
        ({"t_closeness": 0.0}, lambda r: r.n_classes == 1),
    ],
)
def test_limits_hold_seen_from_the_outside(limits, holds):
    found = by_lattice(people_table(), k=4, sensitive=["disease", "income"], **limits)
    report = verify_anonymity(found.table, list(HIERARCHIES), ["disease", "income"])
    assert holds(report)
    assert report.k >= 4
    assert found.stats["suppressed_share"] <= limits.get("max_suppression", 0)


def test_without_suppression_no_row_is_lost():
    for k in (2, 7, 30, 399, 400):
        found = by_lattice(people_table(), k=k)
        assert (found.stats["n_suppressed"], len(found.table)) == (0, 400)
        assert found.stats["smallest_class"] >= k


def test_suppressed_rows_are_left_out_and_are_no_class():
    table = pd.DataFrame({"area": ["a"] * 6 + ["c"], "age": [30] * 6 + [59]})
    found = by_lattice(table, k=3, max_suppression=0.2)
    assert (found.stats["n_suppressed"], found.classes["rows"].tolist()) == (1, [6])
    assert sorted(found.members["row"]) == [0, 1, 2, 3, 4, 5]
    assert found.table["area"].tolist() == ["a"] * 6
    assert found.stats["information_loss"] == pytest.approx(1 / 7)
    assert found.stats["discernibility"] == 36 + 7
    kept = by_lattice(table, k=3)
    assert kept.classes["rows"].tolist() == [7] and kept.stats["information_loss"] > 0.5


def test_no_more_is_suppressed_than_serves_the_others():
    # All but a few rows can be published as something: leaving half of them out would lose more.
    found, kept = by_lattice(people_table(), k=5, max_suppression=0.5), by_lattice(people_table(), k=5)
    assert found.stats["n_suppressed"] < 5
    assert found.stats["information_loss"] <= kept.stats["information_loss"]


def test_a_diversity_that_the_table_lacks_may_hold_without_some_rows():
    table = pd.DataFrame({"area": list("aacc"), "disease": ["flu", "cold", "flu", "flu"]})
    limits = {"k": 2, "sensitive": ["disease"], "l_diversity": LDiversity(2, "entropy")}
    found = by_lattice(table, AREA, **limits, max_suppression=0.5)
    assert (found.table["area"].tolist(), found.stats["n_suppressed"]) == (["a", "a"], 2)
    with pytest.raises(InvalidSettingError, match="entropy l = 2.* of 'disease': the whole table reaches 1.75"):
        by_lattice(table, AREA, **limits)
    with pytest.raises(InvalidSettingError, match=r"leave out at most 1 of 4 rows \(max_suppression = 0\.4\)"):
        by_lattice(table, AREA, **limits, max_suppression=0.4)


def test_non_uniform_entropy_is_that_of_what_the_labels_cover():
    found = by_lattice(pd.DataFrame({"area": list("aabbcddd")}), AREA, k=4)
    assert Counter(found.table["area"]) == {"North": 4, "South": 4}
    own_bits = 2 + 2 + 3 * np.log2(3)
    expected = (8 * np.log2(4) - own_bits) / (8 * np.log2(8) - own_bits)
    assert found.stats["non_uniform_entropy"]["area"] == pytest.approx(expected)


def test_a_constant_column_is_published_as_it_is():
    found = by_lattice(people_table().assign(area="a"), k=50)
    assert set(found.table["area"]) == {"a"}
    assert found.stats["certainty_penalty"]["area"] == 0


def test_k_of_one_publishes_every_row_as_it_is():
    found = by_lattice(people_table(), k=1)
    assert (found.stats["information_loss"], found.stats["protection"]) == (0, "no protection")
    assert sorted(found.table["age"].astype(str)) == sorted(people_table()["age"].astype(str))


def test_centers_of_the_classes_are_released_without_labels():
    labels = by_lattice(people_table(), k=20)
    found = by_lattice(people_table(), k=20, output="centroid")
    assert found.classes["rows"].tolist() == labels.classes["rows"].tolist()
    assert found.model.masks["age"] == Suppressed()
    ages = people_table()["age"].iloc[found.members["row"]].reset_index(drop=True)
    assert np.allclose(found.table["age"], ages.groupby(found.members["class"]).transform("mean"))
    # Values of a class span no more than its node.
    assert found.stats["information_loss"] < labels.stats["information_loss"]


def test_one_row_all_missing_and_ten_thousand_values_work():
    one = by_lattice(pd.DataFrame({"area": ["a"]}), AREA, k=1)
    assert one.table["area"].tolist() == ["a"]
    empty = pd.DataFrame({"area": [None] * 3}, dtype=object)
    assert by_lattice(empty, AREA, k=3).table["area"].tolist() == ["missing"] * 3
    many = pd.DataFrame({"code": [f"{i:05}" for i in range(10_000)]})
    assert by_lattice(many, {"code": Hierarchy.prefixes([4, 3, 2, 1])}, k=10).stats["n_classes"] == 1000


def test_no_missing_value_is_published_as_a_node_of_a_rule():
    table = pd.DataFrame({"age": pd.array([21, 22, None, 25, 31, 32], dtype="Int64")})
    found = by_lattice(table.head(4), {"age": Hierarchy.intervals([10])}, k=2)
    assert set(found.table["age"]) == {"*"}
    known = by_lattice(table.dropna(), {"age": Hierarchy.intervals([10])}, k=2)
    assert Counter(known.table["age"]) == {"[20, 29]": 3, "[30, 39]": 2}


def test_the_settings_say_which_hierarchies_were_used():
    tree = {"tree": {"North": ["a", "b"], "South": ["c", "d"]}}
    turned = {"tree": {"South": ["d", "c"], "North": ["b", "a"]}}
    first, second = (by_lattice(people_table(), {**HIERARCHIES, "area": own}, k=5) for own in (tree, turned))
    assert first.settings == second.settings
    described = first.settings["hierarchies"]
    assert described["age"] == {"intervals": {"widths": [5.0, 10.0, 20.0], "origin": 0.0}}
    assert (described["area"]["tree"]["n_values"], described["area"]["tree"]["n_levels"]) == (4, 2)
    other = by_lattice(
        people_table(), {**HIERARCHIES, "area": {"tree": {"North": ["a", "c"], "South": ["b", "d"]}}}, k=5
    )
    assert other.settings["hierarchies"]["area"] != described["area"]


def test_progress_reports_rows_and_may_end_the_work():
    seen = []
    by_lattice(people_table(), k=30, progress=seen.append)
    assert (seen[-1].stage, seen[-1].n_total) == ("sweep", 400)
    assert 370 < seen[-1].n_done <= 400

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        by_lattice(people_table(), k=30, progress=stop)


def test_there_are_no_cuts_to_apply():
    found = by_lattice(people_table(), k=5)
    assert found.tree is None
    with pytest.raises(InvalidSettingError, match="'lattice' does not make cuts"):
        apply_cuts(found.tree, people_table())


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"k": 401}, InvalidSettingError, "k is 401, but the table has 400 rows"),
        ({"k": 130, "subject": "who"}, InvalidSettingError, "k is 130, but the table has 1.. people"),
        (
            {"criterion": "range", "relaxed": True, "normalize": "range", "bounds": "cell"},
            InvalidSettingError,
            "makes no cuts.*'criterion': 'range', 'relaxed': True, 'normalize': 'range', 'bounds': 'cell'",
        ),
        ({"hierarchies": None}, InvalidSettingError, r"hierarchies is missing.*\['area', 'age'\]"),
        ({"hierarchies": [AREAS]}, InvalidSettingError, "not a mapping"),
        ({"hierarchies": {}}, InvalidSettingError, r"quasi-identifiers \['area', 'age'\] have no hierarchy"),
        (
            {"hierarchies": {"area": 5, "income": AREAS}},
            InvalidSettingError,
            r"quasi-identifiers \['age'\] have no.*not quasi-identifiers: \['income'\].*'area': the type is int",
        ),
        (
            {"hierarchies": {"area": {"a": "cold"}, "age": {"intervals": [5, 12]}}},
            InvalidSettingError,
            r"'area': A hierarchy is given as a mapping of 1 keys.*'age': intervals has the widths \[5, 12\]",
        ),
        (
            {"hierarchies": {"area": {"tree": {"x": ["a", "b"], "y": ["b"]}}, "age": HIERARCHIES["age"]}},
            InvalidSettingError,
            "'area'.*1 nodes of level 0 have more than one parent",
        ),
        (
            {"hierarchies": {"area": {"tree": {"x": {"y": ["a"]}, "z": ["b"]}}, "age": HIERARCHIES["age"]}},
            InvalidSettingError,
            r"'area'.*different numbers of levels \(values by levels: \{2: 1, 3: 1\}\)",
        ),
        (
            {"quasi_identifiers": ["disease", "income"], "hierarchies": {"disease": AREAS, "income": AREAS}},
            InvalidTableError,
            r"'disease' has 3 values \(in 400 rows\).*'income' has .* of 4 values lacks",
        ),
        (
            {"hierarchies": {"age": Hierarchy.prefixes([1]), "area": Hierarchy.dates()}},
            InvalidTableError,
            "'area' has text values. The hierarchy of dates expects dates",
        ),
    ],
)
def test_bad_input_is_named(changes, error, match):
    with pytest.raises(error, match=match) as raised:
        by_lattice(people_table(), **{"quasi_identifiers": ["area", "age"], "k": 5, **changes})
    assert "Nothing was anonymized" in str(raised.value)
    assert not any(cell in str(raised.value) for cell in ("flu", "cold"))


def test_a_lattice_too_large_to_visit_is_refused():
    table = pd.DataFrame({f"c{i}": [1, 2, 3, 4, 9, 20] for i in range(20)})
    hierarchies = {name: Hierarchy.intervals([2, 10]) for name in table}
    with pytest.raises(InvalidSettingError, match="lattice of [0-9]+ nodes. Expected at most 1000000"):
        by_lattice(table, hierarchies, k=2)
