"""Every true original is a candidate of what the lattice released, under the hierarchies of each kind of column."""

import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import HierarchyMapping
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.reidentification.candidate_index import CandidateIndex
from tests.anonymization.test_anonymize import SECRETS, is_missing, tables
from tests.anonymization.test_lattice import hierarchy_for, options
from tests.examples import examples
from tests.mixed_tables import UNREACHABLE
from tests.reference import reidentification as reference

OTHER_BUILDERS = {
    "integer": [Hierarchy.intervals([1]), Hierarchy.intervals([3, 6, 60], origin=1)],
    "nullable integer": [Hierarchy.intervals([5])],
    "float": [Hierarchy.intervals([0.5])],
    "text": [Hierarchy.prefixes([2, 1]), Hierarchy.prefixes([3])],
    "datetime": [Hierarchy.dates(["month", "decade"]), Hierarchy.dates(["day", "month", "year", "decade"])],
    "aware datetime": [Hierarchy.dates(["day", "year"])],
    "date": [Hierarchy.dates(["year"])],
}


def draw_hierarchies(draw, table, names):
    """A rule of several for each column, or a tree where there is none, as for ordered categories."""
    chosen = {}
    for name in names:
        usual = hierarchy_for(table[name])
        usual = usual if isinstance(usual, Hierarchy) else Hierarchy.from_settings(usual)
        chosen[name] = draw(st.sampled_from([usual, *OTHER_BUILDERS.get(name.rsplit(" ", 1)[0], [])]))
    return chosen


def predicates_of(table, hierarchies):
    """An original is possible if the released cell is a node above it; all others of a column are as they were."""

    def under_node(name):
        leveled = hierarchies[name].apply(table[name], name)
        above = [set(leveled.labels[leveled.nodes[:, code]]) for code in leveled.codes]
        return lambda row, x: row[name] == "*" or row[name] in above[x]

    def equal(name):
        values = table[name].astype(object).tolist()
        return lambda row, x: (is_missing(values[x]) and is_missing(row[name])) or values[x] == row[name]

    return {name: under_node(name) for name in hierarchies} | {name: equal(name) for name in SECRETS}


@given(tables(max_rows=15), options(), st.data())
@settings(max_examples=examples(150), deadline=None)
def test_candidates_of_what_the_lattice_released_are_those_under_its_nodes(drawn, chosen, data):
    table, names = drawn
    hierarchies = draw_hierarchies(data.draw, table, names)
    roles = {"quasi_identifiers": names, "sensitive": list(SECRETS), "direct_identifiers": ["name"]}
    try:
        found = anonymize(table, method="lattice", hierarchies=hierarchies, **roles, **chosen)
    except InvalidSettingError as error:
        assert str(error).startswith(UNREACHABLE)
        return
    assert all(isinstance(found.model.masks[name], HierarchyMapping) for name in names)
    index = CandidateIndex.of_anonymization(table, found, hierarchies=hierarchies, n_threads=1)
    known = data.draw(st.lists(st.sampled_from([*names, *SECRETS]), max_size=4, unique=True))
    predicates = predicates_of(table, hierarchies)
    originals = [dict.fromkeys(predicates, x) for x in range(len(table))]
    truth, sizes = found.members["row"].tolist(), index.sizes(known)
    for i, row in enumerate(found.table.astype(object).to_dict("records")):
        own = reference.candidates(row, originals, predicates, known)
        assert truth[i] in own
        if chosen["subject"] is None:
            assert index.members(i, known).tolist() == own
        people = {table["person"].iloc[x] for x in own}
        assert sizes[i] == (len(own) if chosen["subject"] is None else len(people))
    # Members of a class are candidates, so that joint anonymity bounds the number of candidates.
    assert index.sizes(names).min() >= chosen["k"]


def test_each_builder_and_missing_values_are_released_and_read_back():
    """What the property above draws is generalized indeed, not suppressed as a whole."""
    rows = 12
    table = pd.DataFrame(
        {
            "age": pd.Series([20, 21, 25, 29, 31, 33, 38, 39, None, None, 41, 48], dtype="Int64"),
            "zip": ["81667", "81668", "81675", None] * 3,
            "town": ["A", "B", "C", "D"] * 3,
            "day": pd.to_datetime(["2020-01-05", "2020-02-07", "2021-03-01", None] * 3),
            "grade": pd.Categorical(["low", "mid", "high", None] * 3, ["low", "mid", "high"], ordered=True),
        }
    )
    hierarchies = {
        "age": Hierarchy.intervals([5, 10]),
        "zip": Hierarchy.prefixes([4, 3]),
        "town": Hierarchy.from_mapping({"north": ["A", "B"], "south": ["C", "D"]}),
        "day": Hierarchy.dates(["month", "year"]),
        "grade": Hierarchy.from_mapping({"at most mid": ["low", "mid"], "above": ["high"]}),
    }
    generalized = dict.fromkeys(hierarchies, 0)
    for name, hierarchy in hierarchies.items():
        for k in (1, 2, 3, 4, rows):
            own = {name: hierarchy}
            found = anonymize(table[[name]], quasi_identifiers=[name], k=k, method="lattice", hierarchies=own)
            assessment = assess_reidentification(table, found, hierarchies=own)
            assert assessment.scores["fewest_candidates"] >= k
            leaves = set(table[name].dropna().astype(str)) | {"missing", "*"}
            generalized[name] += len(set(found.table[name]) - leaves)
    assert all(generalized.values()), generalized
