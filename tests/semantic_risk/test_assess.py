"""The assessment of a whole table: the running example, records, rounds, settings, storage."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.semantic_risk import attribute_advice
from privacy_assets.semantic_risk.assess import assess_semantic_risk
from privacy_assets.semantic_risk.attribute_advice import estimate_words
from privacy_assets.semantic_risk.concept_lattice import read_concepts
from privacy_assets.semantic_risk.explanation import explain_record
from privacy_assets.semantic_risk.formal_context import read_formal_context, released_scales
from privacy_assets.semantic_risk.kernels.stem_basis import find_stem_basis
from privacy_assets.semantic_risk.result import SemanticAssessment
from privacy_assets.semantic_risk.settings import largest_risky, note_on_limit, smallest_acceptable
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.examples import examples
from tests.mixed_tables import through_parquet
from tests.people import every_kind
from tests.random_contexts import as_context, as_table, contexts
from tests.reference import formal_concepts as reference
from tests.running_example import CONTEXT, PEOPLE, WINDOWS
from tests.shared_data import golden_file

NOMINAL = {"sex": "nominal", "year": "nominal"}
SCALES = {"sex": "nominal", "year": {"interval": WINDOWS}}


def golden(name):
    return json.loads(golden_file("fca", f"{name}.json").read_text())


def golden_context(name):
    return pd.read_csv(golden_file("fca", f"{name}_context.csv"), index_col="id")


def floats(values):
    return pytest.approx([value["float"] for value in values], rel=1e-14)


def test_the_literal_context_is_the_golden_one():
    assert (golden_context("running_example_kstar") == CONTEXT.astype(int)).all(axis=None)


@pytest.mark.parametrize("name", ["kstar", "fig4_transcript", "closed"])
def test_every_figure_of_the_running_example_is_reproduced(name):
    expected = golden(f"running_example_{name}")
    table = golden_context(f"running_example_{name}")
    found = assess_semantic_risk(table, "binary")
    assert found.records["record"].tolist() == [record["id"] for record in expected["records"]]
    assert found.records["extent_size"].tolist() == [record["ext_con_size"] for record in expected["records"]]
    for column, key in (
        ("basic_semantic_risk", "r_BS"),
        ("semantic_risk", "r_S"),
        ("classical_risk", "classical_r_on_scaled_row"),
    ):
        assert found.records[column].tolist() == floats(record[key] for record in expected["records"])
    names = {"r_BS": ("maximum", "medium"), "r_S": ("max_weighted", "mean_weighted")}
    for key, (largest, mean) in names.items():
        assert found.scores[f"{largest}_semantic_risk"] == expected[f"{key}_max"]["float"]
        assert found.scores[f"{mean}_semantic_risk"] == pytest.approx(expected[f"{key}_mean"]["float"], rel=1e-14)
    of_concepts = found.records.groupby("row")["basic_semantic_risk"].first().mean()
    assert of_concepts == pytest.approx(expected["r_BS_mean_over_distinct_object_concepts"]["float"], rel=1e-14)
    concepts = {concept["id"]: concept["extent"] for concept in expected["concepts"]}
    own = [len(concepts[number]) for number in expected["object_concept"].values()]
    assert found.records["extent_size"].tolist() == own
    assert found.kept is None
    assert len(found.rounds) == 0


@pytest.mark.parametrize("name", ["kstar", "fig4_transcript", "closed"])
def test_the_records_kept_and_the_rounds_are_those_of_the_running_example(name):
    expected = golden(f"running_example_{name}")
    table = golden_context(f"running_example_{name}")
    for limit, fixed_point in expected["fixed_point"].items():
        found = assess_semantic_risk(table, "binary", risk_limit=float(Fraction(limit)))
        assert found.kept.tolist() == fixed_point["G_star"]
        assert found.rounds["records"].tolist() == [one["n_before"] for one in fixed_point["rounds"]]
        assert found.rounds["records_removed"].tolist() == [len(one["removed"]) for one in fixed_point["rounds"]]
        own = [one["max_r_bs"] for one in fixed_point["rounds"] if one["max_r_bs"]]
        assert found.rounds["maximum_semantic_risk"].dropna().tolist() == floats(own)
        assert found.scores["records_kept"] == len(fixed_point["G_star"])
        assert found.scores["records_not_kept"] == 27 - len(fixed_point["G_star"])


@pytest.mark.parametrize("name", ["kstar", "fig4_transcript", "closed"])
def test_the_three_regions_are_those_of_the_running_example(name):
    table = golden_context(f"running_example_{name}")
    for thresholds, expected in golden(f"running_example_{name}")["three_way"].items():
        alpha, beta = (float(Fraction(part.split("=")[1])) for part in thresholds.split(","))
        records = assess_semantic_risk(table, "binary", three_way=(alpha, beta)).records.set_index("record")
        for region, key in (("discard", "POS_"), ("keep", "NEG_"), ("boundary", "BND_")):
            own = next(ids for name, ids in expected.items() if name.startswith(key))
            assert records.index[records["region"] == region].tolist() == own


def test_scaling_the_published_records_gives_the_closed_context():
    found = assess_semantic_risk(PEOPLE, SCALES)
    expected = golden("running_example_closed")
    assert found.records["basic_semantic_risk"].tolist() == floats(record["r_BS"] for record in expected["records"])
    assert found.settings["scales"] == {"sex": "nominal", "year": "interval"}
    assert found.attributes["attribute"].tolist() == ["sex #1", "sex #2", *(f"year #{n}" for n in range(1, 6))]
    assert found.attributes["label"].tolist()[2] == "year in [1935, 1955]"
    kept = assess_semantic_risk(PEOPLE, SCALES, risk_limit=0.35).kept
    assert kept.tolist() == expected["fixed_point"]["0.35"]["G_star"]
    assert len(kept) == 17


def test_records_to_keep_are_selected_by_position_where_labels_repeat():
    found = assess_semantic_risk(PEOPLE, SCALES, risk_limit=0.35)
    assert PEOPLE[found.kept_mask].index.tolist() == found.kept.tolist()
    doubled = pd.concat([PEOPLE, PEOPLE])
    again = assess_semantic_risk(doubled, SCALES, risk_limit=0.35)
    assert len(doubled[again.kept_mask]) == again.records["is_kept"].sum() > 0
    with pytest.raises(InvalidTableError, match="54 of 54 records share their index label"):
        _ = again.kept
    without = assess_semantic_risk(PEOPLE, SCALES)
    assert without.kept is without.kept_mask is None


@pytest.mark.parametrize(
    "labels",
    [
        pd.date_range("2020-01-01", periods=27, tz="Europe/Berlin"),
        pd.timedelta_range("1h", periods=27),
        pd.Index(np.arange(27) / 2),
        pd.Index([f"person {number}" for number in range(27)]),
        pd.RangeIndex(5, 32),
    ],
    ids=lambda labels: str(labels.dtype),
)
def test_labels_of_records_to_keep_are_those_of_the_table_also_after_storage(labels):
    table = PEOPLE.set_axis(labels)
    found = assess_semantic_risk(table, SCALES, risk_limit=0.35)
    stored = found.to_artifact()
    frames = {name: through_parquet(frame) for name, frame in stored.frames.items()}
    for each in (found, SemanticAssessment.from_artifact(replace(stored, frames=frames))):
        assert table.loc[each.kept].equals(table[each.kept_mask])


def test_the_classical_figures_are_reproduced():
    expected = golden("classical_risk")
    found = assess_semantic_risk(PEOPLE, NOMINAL, risk_limit=0.5)
    assert dict(zip(found.records["record"].map(str), found.records["classical_risk"], strict=True)) == pytest.approx(
        {g: risk["float"] for g, risk in expected["r"].items()}
    )
    assert found.scores["max_classical_risk"] == 1
    assert found.scores["mean_classical_risk"] == pytest.approx(16 / 27)
    after = expected["after_unique_record_deletion"]
    assert found.kept.tolist() == after["kept"]
    left = assess_semantic_risk(PEOPLE.loc[found.kept], NOMINAL)
    assert left.scores["mean_classical_risk"] == after["r_m"]["float"] == 0.3125
    decades = PEOPLE.assign(year=PEOPLE["year"] // 10)
    by_decade = assess_semantic_risk(decades, NOMINAL).records
    own = dict(zip(by_decade["record"].map(str), by_decade["classical_risk"], strict=True))
    assert own == pytest.approx({g: risk["float"] for g, risk in expected["decade"]["r"].items()})


def test_nominal_scales_tell_nothing_new_and_the_tool_says_so():
    found = assess_semantic_risk(PEOPLE, NOMINAL)
    for name in ("positive_facts_risk", "basic_semantic_risk", "semantic_risk"):
        assert (found.records[name] == found.records["classical_risk"]).all()
    assert "adds nothing to k-anonymity" in found.notes[0]
    assert assess_semantic_risk(PEOPLE, SCALES).notes == ()
    missing = PEOPLE.astype({"year": "Int64"}).mask(PEOPLE["year"] == 1966)
    assert assess_semantic_risk(missing, NOMINAL).notes == ()


def test_a_released_table_is_never_above_its_k_and_what_is_kept_meets_the_limit():
    table = every_kind(120)[["age", "town", "day", "height"]]
    names = list(table.columns)
    released = anonymize(table, quasi_identifiers=names, k=4)
    scales = released_scales(released.table, names, released.model)
    found = assess_semantic_risk(released.table, scales, model=released.model, risk_limit=1 / 6, min_support=1)
    assert found.scores["maximum_semantic_risk"] <= found.scores["max_classical_risk"] == 1 / 4
    assert 0 < found.scores["records_not_kept"] < 120
    left = released.table[found.records["is_kept"].to_numpy()]
    again = assess_semantic_risk(left, scales, model=released.model, risk_limit=1 / 6)
    assert again.scores["maximum_semantic_risk"] == found.scores["maximum_semantic_risk_kept"] <= 1 / 6
    assert again.scores["records_not_kept"] == 0


def test_removing_records_one_by_one_makes_the_next_ones_unique():
    left = CONTEXT
    for step in golden("sequential_suppression_kstar"):
        left = left.drop(index=[] if step["removed"] is None else [step["removed"]])
        records = assess_semantic_risk(left, "binary").records.set_index("record")
        assert len(left) == step["n"]
        assert len(read_concepts(read_formal_context(left, "binary")).concepts) == step["concepts"]
        assert records.index[records["extent_size"] == 1].tolist() == step["extent_singleton"]
        assert records.index[records["basic_semantic_risk"] == 1].tolist() == step["r_BS_is_1"]


def test_a_unique_record_may_stay_because_others_stand_behind_it():
    claim = golden("claims_checked")["unique_row_survives"]
    rows = [[bool(row >> a & 1) for a in range(3)] for row in claim["rows_bitmask"]]
    found = assess_semantic_risk(pd.DataFrame(rows, columns=list("abc")), "binary", risk_limit=0.5)
    assert found.kept.tolist() == claim["G_star"]
    assert found.records["classical_risk"][0] == 1
    assert found.records["basic_semantic_risk"].tolist() == [float(Fraction(risk)) for risk in claim["r_BS"]]


def test_advice_tells_what_forgetting_would_leave():
    found = assess_semantic_risk(CONTEXT, "binary", risk_limit=0.35, min_support=0)
    advice = found.advice.set_index("columns")
    assert list(advice.index[:8]) == [(), *((name,) for name in CONTEXT.columns)]
    assert list(advice["reason"][:8]) == ["nothing forgotten", *["scaled column"] * 7]
    assert set(advice["reason"][8:]) == {"risk chain"}
    nothing = advice.loc[[()]].iloc[0]
    assert (nothing["implications_left"], nothing["implications_lost"], nothing["records_kept"]) == (10, 0, 19)
    assert nothing["medium_semantic_risk"] == found.scores["medium_semantic_risk"]
    forgotten = ("S:F", "Date:1965-85", "Date:1975-95")
    own = advice.loc[[forgotten]].iloc[0]
    assert own["chains"] == 2
    # Figure 8: two rules are left, one of which was there before. The other one lost a part of its conclusion.
    assert (own["implications_left"], own["implications_lost"]) == (2, 9)
    assert not own["is_non_disposable"]
    left = assess_semantic_risk(CONTEXT.drop(columns=list(forgotten)), "binary", risk_limit=0.35)
    assert own["medium_semantic_risk"] == pytest.approx(left.scores["medium_semantic_risk"])
    assert own["records_kept"] == left.scores["records_kept"]
    lost = advice.loc[[("S:M", "Date:1935-55")]].iloc[0]
    assert lost["implications_left"] + lost["implications_lost"] >= 10


def test_columns_without_which_nothing_is_learned_are_not_disposable():
    table = pd.DataFrame({"a": [1, 1, 0, 0] * 3, "b": [1, 1, 1, 0] * 3, "c": [0, 1, 0, 1] * 3})
    advice = assess_semantic_risk(table, "binary", min_support=1).advice
    assert advice["is_non_disposable"].tolist() == [False, True, True, False]
    assert advice["records_kept"].isna().all()
    # Now a implies b, and b with c implies a.
    assert advice["implications_lost"].tolist() == [0, 2, 2, 1]
    nothing = assess_semantic_risk(table, "binary", min_support=20).advice
    assert nothing["implications_left"].tolist() == [0] * 4
    assert not nothing["is_non_disposable"].any()


@st.composite
def scaled_people(draw):
    """Ages with thresholds, years with windows, and towns in regions: a table, its scales, and each cell one can think
    of as the set of its attributes, by column."""
    thresholds = sorted(draw(st.sets(st.integers(0, 6), min_size=1, max_size=3)))
    windows = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=3, unique=True))
    windows = [[low, low + width] for low, width in windows]
    towns = {"Bonn": ["Rhine", "west"], "Köln": ["Rhine", "west"], "Jena": ["Saale", "east"]}
    row = st.tuples(st.integers(-1, 7), st.integers(-1, 8), st.sampled_from(sorted(towns)))
    table = pd.DataFrame(draw(st.lists(row, min_size=1, max_size=8)), columns=["age", "year", "town"])
    scales = {
        "age": {"ordinal": thresholds},
        "year": {"interval": windows},
        "town": {"hierarchy": {"tree": {"west": {"Rhine": ["Bonn", "Köln"]}, "east": {"Saale": ["Jena"]}}}},
    }
    line = [place / 2 for place in range(-4, 20)]
    cells = {
        "age": [frozenset(f"age >= {t}" for t in thresholds if point >= t) for point in line],
        "year": [frozenset(f"year in [{a}, {b}]" for a, b in windows if a <= point <= b) for point in line],
        "town": [
            frozenset(f"town under {node}" for node in path[i:])
            for path in ([town, *above] for town, above in towns.items())
            for i in range(3)
        ],
    }
    return table, scales, {name: [*own, frozenset()] for name, own in cells.items()}


@given(scaled_people(), st.integers(1, 2))
@settings(max_examples=examples(60), deadline=None)
def test_implications_that_hold_by_the_scales_do_not_count(drawn, min_support):
    table, scales, cells = drawn
    context = read_formal_context(table, scales)
    label = {attribute.name: attribute.label for attribute in context.attributes}
    number = {name: a for a, name in enumerate(label)}
    incidence = context.incidence()[context.row_of_record]
    rows = [frozenset(np.flatnonzero(own).tolist()) for own in incidence]
    universe = frozenset(number.values())
    basis = reference.stem_basis(rows, universe)

    def by_scales(premise):
        implied = set()
        for column, conceivable in cells.items():
            own = {label[name] for name, a in number.items() if a in premise and label[name].startswith(column)}
            cells_with = [cell for cell in conceivable if own <= cell]
            if not cells_with:
                return universe
            implied |= frozenset.intersection(*cells_with)
        return frozenset(a for name, a in number.items() if label[name] in implied)

    rules = [rule for rule in basis if rule[2] >= min_support and not rule[1] <= by_scales(rule[0])]
    advice = assess_semantic_risk(table, scales, min_support=min_support).advice
    assert advice["implications_left"].iloc[0] == len(rules)
    for columns, lost in zip(advice["columns"], advice["implications_lost"], strict=True):
        gone = {a for name, a in number.items() if label[name].split()[0] in columns}
        still = 0
        for premise, conclusion, _ in rules:
            learned = conclusion - by_scales(premise)
            still += not learned & gone and learned <= reference.closure(rows, premise - gone, universe)
        assert lost == len(rules) - still


def test_implications_are_estimated_before_they_are_searched(monkeypatch):
    """Three ordinal columns have more closed sets than can be visited: the search is not begun."""
    values = np.random.default_rng(0).integers(0, 80, (4000, 3))
    table = pd.DataFrame(values, columns=["age", "hours", "income"])
    context = read_formal_context(table, dict.fromkeys(table.columns, "ordinal"))
    estimate = estimate_words(context.packed, 5)
    assert estimate > attribute_advice.WORDS_FOR_IMPLICATIONS / attribute_advice.SURELY_MORE

    def not_to_be_called(*_):
        raise AssertionError

    monkeypatch.setattr(attribute_advice, "find_stem_basis", not_to_be_called)
    found = assess_semantic_risk(table, dict.fromkeys(table.columns, "ordinal"), semantic_risk=False)
    assert found.advice["implications_left"].isna().all()
    assert "or by an estimate would read, more than 1e+09 words" in found.notes[-1]


@given(contexts(), st.integers(0, 3))
@settings(max_examples=examples(60), deadline=None)
def test_no_estimate_exceeds_what_the_search_reads(drawn, min_support):
    packed = as_context(*drawn).packed
    assert estimate_words(packed, min_support) <= find_stem_basis(packed, min_support).words_read


def test_advice_that_would_take_too_much_is_missing_and_a_note_says_so():
    found = assess_semantic_risk(CONTEXT, "binary", min_support=0, max_concepts=5)
    assert found.advice[["implications_left", "implications_lost", "is_non_disposable"]].isna().all(axis=None)
    assert found.advice["maximum_semantic_risk"].notna().all()
    assert "more than 5 closed sets and pseudo-intents of at least 0 records" in found.notes[-1]
    assert (
        "Raise min_support, or use coarser scales or fewer columns; most attributes come from 'S:M' (1)"
        in found.notes[-1]
    )
    assert len(assess_semantic_risk(CONTEXT, "binary", advice=False).advice) == 0


def test_advice_on_implications_ends_when_it_has_read_too_much(monkeypatch):
    monkeypatch.setattr(attribute_advice, "WORDS_FOR_IMPLICATIONS", 100)
    found = assess_semantic_risk(CONTEXT, "binary", min_support=0)
    assert found.advice[["implications_left", "implications_lost", "is_non_disposable"]].isna().all(axis=None)
    assert found.advice["medium_semantic_risk"].notna().all()
    assert "missing for 8 of 8 sets of columns" in found.notes[-1]


def test_the_implications_of_all_sets_of_columns_together_are_bounded(monkeypatch):
    whole = attribute_advice.find_stem_basis(read_formal_context(CONTEXT, "binary").packed, 0).words_read
    monkeypatch.setattr(attribute_advice, "WORDS_FOR_ALL_IMPLICATIONS", whole + 200)
    found = assess_semantic_risk(CONTEXT, "binary", min_support=0).advice
    assert found["implications_left"].notna().tolist()[0]
    assert found["implications_lost"].isna().any()
    assert found["implications_left"].isna().to_numpy()[1:].all()
    monkeypatch.setattr(attribute_advice, "WORDS_FOR_ALL_IMPLICATIONS", 100 * whole)
    assert assess_semantic_risk(CONTEXT, "binary", min_support=0).advice["implications_lost"].notna().all()


def test_advice_that_would_compare_too_many_rows_does_not_end_the_assessment():
    table = pd.DataFrame({"name": list("abcdef"), "age": range(6)})
    found = assess_semantic_risk(table, {"name": "nominal", "age": "ordinal"}, max_comparisons=1, min_support=1)
    risks = found.advice.set_index("columns")["maximum_semantic_risk"]
    assert risks.notna().tolist() == [True, False, True]
    assert found.advice["implications_left"].notna().all()
    assert "The remaining risk is missing for 1 of 3 sets of columns" in found.notes[-1]


def test_it_is_said_why_a_record_is_at_risk():
    """Patient 5 of the running example: a woman, 1935-55. Of four such, three are in 1945-65 as well; she is not."""
    context = read_formal_context(CONTEXT, "binary")
    why = explain_record(context, CONTEXT.index.get_loc(5))
    assert why.attributes == ("S:F", "Date:1935-55")
    assert why.lacked == "Date:1945-65"
    assert CONTEXT.index[why.candidates].tolist() == [5]
    assert why.neighbor == ("S:F", "Date:1935-55", "Date:1945-65")
    assert CONTEXT.index[why.neighbor_records].tolist() == [3, 16, 24]
    own = assess_semantic_risk(CONTEXT, "binary").records.set_index("record").loc[5]
    assert (own["lacked_attribute"], own["neighbor_size"], own["smallest_difference"]) == ("Date:1945-65", 3, 1)
    with pytest.raises(InvalidSettingError, match="position is 27. Expected the position of a record, from 0 to 26"):
        explain_record(context, 27)


@given(contexts())
@settings(max_examples=examples(60), deadline=None)
def test_the_explanation_of_a_record_is_that_of_its_figures(drawn):
    rows, universe = drawn
    table = as_table(rows, universe)
    context = read_formal_context(table, "binary")
    records = assess_semantic_risk(table, "binary", risk_limit=0.5).records
    for g in range(len(rows)):
        why = explain_record(context, g)
        own = records.iloc[g]
        assert why.basic_semantic_risk == own["basic_semantic_risk"]
        assert (why.lacked or "", len(why.neighbor_records)) == (own["lacked_attribute"], own["neighbor_size"])
        sharing = {i for i, row in enumerate(rows) if rows[g] <= row}
        assert sharing == {*why.candidates.tolist(), *why.neighbor_records.tolist()}
        assert g in why.candidates
        assert all(why.lacked not in [f"a{a}" for a in rows[i]] for i in why.candidates)


def test_records_at_risk_are_counted_by_the_column_of_what_they_lack():
    found = assess_semantic_risk(PEOPLE, SCALES, risk_limit=0.35)
    is_at_risk = found.records["basic_semantic_risk"] > 0.35
    lacked = found.records.loc[is_at_risk, "lacked_attribute"]
    by_column = found.scores["records_at_risk_by_lacked_column"]
    assert by_column == {name: int(lacked.str.startswith(name).sum()) for name in ("sex", "year")}
    assert by_column["year"] > 0 < found.scores["records_at_risk_by_own_attributes"] == (lacked == "").sum()
    n_at_risk = found.scores["records_at_risk_by_own_attributes"] + sum(by_column.values())
    assert n_at_risk == found.scores["records_at_risk"] == is_at_risk.sum()
    assert found.scores["records_singled_out"] == (found.records["smallest_difference"] == 1).sum()


def test_records_include_others_in_mondrian_output_only_by_missing_or_overlapping_cells():
    """Strict cuts give disjoint boxes, so that semantic risk repeats 1 / k; thresholds read from them do not."""
    table = every_kind(200)[["age", "height"]].dropna()
    names = list(table.columns)
    strict = anonymize(table, quasi_identifiers=names, k=4)
    found = assess_semantic_risk(
        strict.table, released_scales(strict.table, names, strict.model), model=strict.model, advice=False
    )
    assert found.scores["records_whose_row_another_includes"] == 0
    assert (found.records["basic_semantic_risk"] == found.records["classical_risk"]).all()
    ordinal = dict.fromkeys(names, "ordinal")
    read = assess_semantic_risk(strict.table, ordinal, model=strict.model, advice=False)
    assert read.scores["medium_semantic_risk"] < read.scores["mean_classical_risk"]


def test_chains_at_risk_are_listed_with_a_limit():
    found = assess_semantic_risk(CONTEXT, "binary", risk_limit=0.35)
    assert (found.scores["risk_chain_starts"], found.scores["risk_chains_are_complete"]) == (4, True)
    assert found.chains["chain"].nunique() == 5
    assert len(assess_semantic_risk(CONTEXT, "binary").chains) == 0


def test_chains_that_are_not_listed_are_said_to_be_more():
    found = assess_semantic_risk(CONTEXT, "binary", risk_limit=0.35, max_chains=2)
    assert not found.scores["risk_chains_are_complete"]
    assert "Only the first 2 risk chains are listed (max_chains). There are 4 concepts" in found.notes[0]
    assert assess_semantic_risk(CONTEXT, "binary", risk_limit=0.35, max_chains=5).notes == ()


def test_columns_whose_scales_tell_nobody_apart_are_named():
    years = {"interval": [[1900, 2000]]}
    found = assess_semantic_risk(PEOPLE, {"sex": "nominal", "year": years})
    assert found.scores["attributes_by_column"] == {"sex": 2, "year": 1}
    assert "The columns ['year'] do not distinguish any records" in found.notes[-1]
    none = assess_semantic_risk(PEOPLE, {"sex": "nominal", "year": {"ordinal": [2050]}})
    assert "The columns ['year'] do not distinguish any records" in none.notes[-1]
    assert not any("do not distinguish any records" in note for note in assess_semantic_risk(PEOPLE, NOMINAL).notes)


def test_no_value_of_the_table_is_outside_the_private_frames():
    table = pd.DataFrame({"town": ["Zanzibar", "Zanzibar", "Quito"] * 9, "age": [7654321, 7654322, 7654323] * 9})
    found = assess_semantic_risk(table, {"town": "nominal", "age": "ordinal"}, risk_limit=0.2, min_support=1)
    frames = [found.rounds, found.advice, found.chains, found.neighborhood]
    shown = json.dumps([found.scores, found.settings, found.notes]) + "".join(frame.to_json() for frame in frames)
    assert "town #2" in shown
    for value in ("Zanzibar", "Quito", "765432"):
        assert value not in shown
        assert value in found.attributes.to_json()


def test_nothing_may_be_acceptable():
    found = assess_semantic_risk(PEOPLE, NOMINAL, risk_limit=0.1)
    assert found.kept.tolist() == []
    assert found.scores["records_not_kept"] == 27
    assert found.scores["share_not_kept"] == 1
    assert "maximum_semantic_risk_kept" not in found.scores
    assert np.isnan(found.rounds["maximum_semantic_risk"].iloc[-1])


def test_the_result_survives_storage(tmp_path):
    found = assess_semantic_risk(PEOPLE, SCALES, risk_limit=0.35, three_way=(0.2, 0.35))
    write_artifact(tmp_path / "semantic", found.to_artifact())
    again = SemanticAssessment.from_artifact(read_artifact(tmp_path / "semantic"))
    assert again == found
    assert again.to_artifact().digest == found.to_artifact().digest
    assert again != assess_semantic_risk(PEOPLE, SCALES, risk_limit=0.5)


def test_neither_the_order_of_rows_nor_threads_change_a_figure():
    found = assess_semantic_risk(PEOPLE, SCALES, risk_limit=0.35, n_threads=1)
    shuffled = PEOPLE.sample(frac=1, random_state=3)
    other = assess_semantic_risk(shuffled, SCALES, risk_limit=0.35, n_threads=2)
    assert {k: v for k, v in other.scores.items() if not k.startswith(("mean_", "medium_"))} == {
        k: v for k, v in found.scores.items() if not k.startswith(("mean_", "medium_"))
    }
    columns = ["record", "basic_semantic_risk", "semantic_risk", "is_kept"]
    assert other.records[columns].sort_values("record", ignore_index=True).equals(found.records[columns])


def test_progress_is_told_and_may_end_the_work():
    stages = []
    assess_semantic_risk(PEOPLE, SCALES, risk_limit=0.35, progress=stages.append)
    assert [each.stage for each in stages if not each.columns] == [
        "reading the table",
        "comparing rows",
        "searching paths",
        "suppressing",
        "suppressing",
        "forgetting columns",
    ]
    assert [each.columns for each in stages if each.columns] == [("sex",), ("year",), ("sex", "year")]

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        assess_semantic_risk(PEOPLE, SCALES, progress=stop)


@given(st.integers(1, 10**6))
def test_a_limit_written_as_one_over_k_means_k(k):
    assert smallest_acceptable(1 / k) == largest_risky(1 / k) == k


def test_it_is_said_how_many_records_a_limit_asks_for():
    found = assess_semantic_risk(PEOPLE, SCALES, risk_limit=0.33, advice=False)
    assert found.scores["fewest_records_accepted"] == 4
    assert found.notes[0] == (
        "The risk limit of 0.33 requires at least 4 records, because 1/3 is just above it. If 3 were meant, write "
        "0.3334."
    )
    assert [note_on_limit(limit) for limit in (1, 0.5, 1 / 3, 0.35, 0.3, 0.2, 0.3334)] == [None] * 7
    assert assess_semantic_risk(PEOPLE, SCALES, risk_limit=1 / 3).scores["fewest_records_accepted"] == 3


@pytest.mark.parametrize("k", range(1, 20))
def test_the_limit_that_is_suggested_asks_for_the_records_meant(k):
    note = note_on_limit(0.999 / k)
    assert f"requires at least {k + 1} records" in note
    assert f"If {k} were meant" in note
    assert smallest_acceptable(float(note.split()[-1].rstrip("."))) == k


def test_a_limit_too_small_for_any_table_is_refused():
    for count in (smallest_acceptable, largest_risky):
        assert count(2.0**-50) == 2**50
        with pytest.raises(InvalidSettingError, match="A limit on a risk is 1e-320. Expected one above 0"):
            count(1e-320)


def test_a_limit_between_is_rounded_to_the_safe_side():
    assert [smallest_acceptable(limit) for limit in (1, 0.5, 0.35, 0.3333, 1 / 3, 0.2, 0.09)] == [1, 2, 3, 4, 3, 5, 12]
    assert [largest_risky(limit) for limit in (1, 0.5, 0.35, 0.2, 0.09)] == [1, 2, 2, 5, 11]


@pytest.mark.parametrize(
    ("given_settings", "message"),
    [
        ({"risk_limit": 0}, "risk_limit is 0. Expected None or a risk above 0 and at most 1"),
        ({"risk_limit": 1.5}, "risk_limit is 1.5"),
        ({"risk_limit": float("nan")}, "risk_limit is nan"),
        ({"risk_limit": True}, "risk_limit is True"),
        ({"risk_limit": 1e-320}, "risk_limit is 1e-320. Expected None or a risk above 0 and at most 1, not below"),
        ({"three_way": (1e-320, 0.5)}, "risks above 0 and at most 1, not below"),
        ({"three_way": (0.5, 0.2)}, r"three_way is \(0.5, 0.2\). Expected alpha < beta"),
        ({"three_way": (0.2, 0.2)}, "Expected alpha < beta"),
        ({"three_way": (0.2, 0.5), "risk_limit": 0.35}, "above the risk_limit 0.35"),
        ({"three_way": 0.3}, "a pair of risks"),
        ({"three_way": (0, 0.5)}, "risks above 0"),
        ({"semantic_risk": "yes"}, "semantic_risk is 'yes'. Expected True or False"),
        ({"advice": 1}, "advice is 1. Expected True or False"),
        ({"min_support": -1}, "min_support is -1"),
        ({"max_chains": 0}, "max_chains is 0"),
        ({"max_concepts": 2.5}, "max_concepts is 2.5"),
        ({"max_comparisons": 0}, "max_comparisons is 0"),
        ({"max_words_searched": 0.5}, "max_words_searched is 0.5"),
        ({"n_threads": 0}, "n_threads is 0"),
    ],
)
def test_settings_out_of_their_range_are_refused(given_settings, message):
    with pytest.raises(InvalidSettingError, match=message):
        assess_semantic_risk(PEOPLE, SCALES, **given_settings)


def test_too_many_comparisons_are_refused_before_they_start():
    message = "11 distinct rows of 7 attributes, of which up to .* pairs would be compared. .* coarser scales"
    with pytest.raises(InvalidSettingError, match=message):
        assess_semantic_risk(CONTEXT, "binary", max_comparisons=3)


def test_a_bound_on_comparisons_that_was_just_missed_does_not_read_as_if_it_were_met():
    table = pd.DataFrame(list(product([False, True], repeat=7)), columns=list("abcdefg"))
    with pytest.raises(InvalidSettingError, match="up to 4,159 pairs .* max_comparisons = 4,158. "):
        assess_semantic_risk(table, "binary", max_comparisons=4158)


def test_a_search_that_ends_at_its_bound_gives_what_it_found_and_says_so():
    whole = assess_semantic_risk(CONTEXT, "binary")
    assert whole.scores["semantic_risk_is_complete"] is True
    assert whole.scores["records_with_semantic_risk"] == 27
    part = assess_semantic_risk(CONTEXT, "binary", max_words_searched=10)
    risks, n_found = part.records["semantic_risk"], part.scores["records_with_semantic_risk"]
    assert 0 < n_found == risks.notna().sum() < 27
    assert risks.dropna().equals(whole.records["semantic_risk"][risks.notna()])
    assert part.scores["semantic_risk_is_complete"] is False
    assert "mean_weighted_semantic_risk" not in part.scores
    assert 0 < part.scores["words_searched"] <= 10
    assert f"The semantic risk was found for {n_found} of 27 records: the search of the other" in part.notes[0]
    assert "max_words_searched = 10 words" in part.notes[0]
    assert part.records["basic_semantic_risk"].equals(whole.records["basic_semantic_risk"])
    assert SemanticAssessment.from_artifact(part.to_artifact()) == part
    assert "max_weighted_semantic_risk" not in assess_semantic_risk(CONTEXT, "binary", semantic_risk=False).scores


def test_the_largest_semantic_risk_is_given_only_if_no_other_record_can_have_a_larger_one():
    """Alone, the smallest concepts have a risk of 1 / n; what lies above has at most its basic semantic risk."""
    pairs = [["a", "a b"], ["c", "c d"]]
    rows = [[name in own.split() for name in "abcd"] for own, larger in pairs for own in (own, larger, larger)]
    table = pd.DataFrame(rows, columns=list("abcd"))
    open_records = assess_semantic_risk(table, "binary", max_words_searched=1)
    assert open_records.records["semantic_risk"].isna().tolist() == [True, False, False] * 2
    # {a} has three records, two of which have b as well: basic semantic risk 1, so the largest may be theirs.
    assert "max_weighted_semantic_risk" not in open_records.scores
    assert "Its maximum and mean are not known" in open_records.notes[0]
    both = table.iloc[:1] | table.iloc[3:4].to_numpy()
    alone = assess_semantic_risk(pd.concat([table, both]), "binary", max_words_searched=1)
    assert alone.scores["max_weighted_semantic_risk"] == 1
    assert "No other record can have a larger one" in alone.notes[0]


def test_an_empty_table_is_refused():
    with pytest.raises(InvalidTableError, match="The table has no rows"):
        assess_semantic_risk(PEOPLE.iloc[:0], SCALES)
