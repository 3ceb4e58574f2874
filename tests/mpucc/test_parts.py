"""A column that is cut into parts is assessed as the column was, wherever the parts are declared."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.cli import main
from privacy_assets.engine.local import LocalEngine
from privacy_assets.errors import InvalidSettingError
from privacy_assets.mpucc.assess import MpuccAssessment, assess_mpuccs, assess_preprocessed
from privacy_assets.mpucc.column_changes import measure_column_changes
from privacy_assets.mpucc.preprocess import PreprocessedTables, preprocess
from privacy_assets.synthesis.generalized import number_distinct_records, preprocess_generalized
from tests.examples import examples
from tests.mixed_tables import table_pairs


def tens(column):
    return column // 10


def ones(column):
    return column % 10


CUTS = {
    "tens and ones": (pd.Series([7, 17, 27, 70, 71, 12, 3]), [tens, ones]),
    "year, month and day": (
        pd.Series(pd.to_datetime(["2001-02-03", "2001-03-02", "1999-02-03", None, "2001-02-04", "2003-02-01"])),
        [lambda c: c.dt.year, lambda c: c.dt.month, lambda c: c.dt.day],
    ),
    "whole and fraction": (pd.Series([1.25, 2.25, 2.5, -0.5, 1.5, None]), [lambda c: c // 1, lambda c: c % 1]),
    "first letter and rest": (
        pd.Series(["ab", "ba", "a", "", "bab", None], dtype=object),
        [lambda c: c.str[:1], lambda c: c.str[1:]],
    ),
    "sign and size": (pd.Series([-3, 3, 0, 5, -5, 4]), [np.sign, np.abs]),
    "a column and itself": (pd.Series(["x", "y", None, "z"], dtype=object), [lambda c: c, lambda c: c]),
    "zone and number": (
        pd.Series(["1-2", "1-3", "2-2", "12-2", "1-22"]),
        [lambda c: c.str.split("-").str[0], lambda c: c.str.split("-").str[1]],
    ),
}


def cut(table, name, functions):
    """Return the table with parts in place of a column."""
    place = list(table.columns).index(name)
    parts = {f"{name} part {i}": function(table[name]) for i, function in enumerate(functions)}
    others = table.drop(columns=name)
    return pd.concat([others.iloc[:, :place], pd.DataFrame(parts), others.iloc[:, place:]], axis=1), list(parts)


def require_same_figures(found, expected, is_drawn):
    if is_drawn:
        # Distinct records may be more than a tenth more than distinct originals.
        assert found.scores["records_per_draw"] == expected.scores["records_per_draw"]
        assert found.scores["total_identified"] == expected.scores["total_identified"]
    else:
        others = "control", "strangers", "related"
        of_control = {name for name in expected.scores if any(each in name for each in others)}
        left = {name: value for name, value in expected.scores.items() if name not in of_control}
        assert {name: value for name, value in found.scores.items() if name not in of_control} == left
        assert found.control == expected.control
    assert found.tree.equals(expected.tree)
    assert found.details.drop(columns="value_combo").equals(expected.details.drop(columns="value_combo"))


@given(st.data(), table_pairs(max_columns=4), st.booleans(), st.sampled_from([None, 1, 2]))
@settings(max_examples=examples(160), deadline=None)
def test_a_column_in_declared_parts_is_assessed_as_the_column(data, tables, deduplicate, size):
    values, functions = CUTS[data.draw(st.sampled_from(sorted(CUTS)))]
    place = data.draw(st.integers(0, len(tables[0].columns)))
    # Not more records than originals: which records are drawn follows from how values are written.
    original, synthetic = sorted(tables, key=len, reverse=True)
    wholes, parted = [], []
    for table in (original, synthetic):
        drawn = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=len(table), max_size=len(table)))
        whole = table.copy()
        whole.insert(place, "whole", values.iloc[drawn].to_numpy())
        wholes.append(whole)
        changed, names = cut(whole, "whole", functions)
        parted.append(changed)
    arguments = {"max_baseline_cols": size, "deduplicate": deduplicate, "n_matched_samples": 1}
    expected = assess_mpuccs(*wholes, wholes[0], **arguments)
    found = assess_mpuccs(*parted, parted[0], parts={"whole": names}, **arguments)
    # A text that is spelled like a missing value has two readings, which parts can have where the whole has one. The
    # riskier one is reported, and which one that is depends on the draws.
    of_whole = preprocess(*wholes, wholes[0], deduplicate=deduplicate)
    of_parts = preprocess(*parted, parted[0], deduplicate=deduplicate, parts={"whole": names})
    is_read_alike = (of_whole.as_written is None) == (of_parts.as_written is None)
    is_drawn = "records_per_draw" in {*expected.scores, *found.scores}
    if is_read_alike and not (is_drawn and of_whole.as_written is not None):
        require_same_figures(found, expected, is_drawn)
    elif not is_drawn:
        assert found.scores["privacy_risk_score"] >= expected.scores["privacy_risk_score"]
    assert found.settings["columns"] == expected.settings["columns"]
    assert found.settings["parts"] == {"whole": names}


def people(seed, n_rows):
    rng = np.random.default_rng(seed)
    born = pd.Timestamp("1950-01-01") + pd.to_timedelta(rng.integers(0, 4000, n_rows), unit="D")
    return pd.DataFrame({"town": rng.integers(0, 30, n_rows), "born": born, "job": rng.choice(list("abcde"), n_rows)})


DATE = CUTS["year, month and day"][1]
BORN = {"born": ["born part 0", "born part 1", "born part 2"]}


def test_undeclared_parts_lower_the_score_and_declared_ones_do_not():
    original, synthetic = people(0, 500), people(0, 500).assign(town=people(1, 500)["town"])
    parted = [cut(table, "born", DATE)[0] for table in (original, synthetic)]
    scores = [
        assess_mpuccs(*tables, max_baseline_cols=2, parts=parts).scores["privacy_risk_score"]
        for tables, parts in (((original, synthetic), None), (parted, BORN), (parted, None))
    ]
    assert scores[0] == scores[1] > 1.5 * scores[2]


def test_more_records_than_originals_in_declared_parts_score_alike():
    original, synthetic = people(0, 300), people(1, 1200)
    parted = [cut(table, "born", DATE)[0] for table in (original, synthetic)]
    whole = assess_mpuccs(original, synthetic, max_baseline_cols=2).scores
    found = assess_mpuccs(*parted, max_baseline_cols=2, parts=BORN).scores
    assert found["privacy_risk_score"] == pytest.approx(whole["privacy_risk_score"], abs=0.05)
    assert found["originals_singled_out"] == whole["originals_singled_out"]


@pytest.mark.parametrize("person", [None, "who"])
def test_parts_are_one_column_for_people_engines_artifacts_and_changes(person):
    tables = [cut(people(seed, 200), "born", DATE)[0] for seed in (0, 0, 2)]
    tables[1]["town"] = people(3, 200)["town"]
    if person is not None:
        tables[0], tables[2] = (
            table.assign(who=np.arange(200) // 2 + n) for table, n in ((tables[0], 0), (tables[2], 500))
        )
    prepared = preprocess(*tables, person=person, parts=BORN)
    assert prepared.columns == ("town", "born", "job")
    assert prepared.parts == {"born": tuple(BORN["born"])}
    assert PreprocessedTables.from_artifact(prepared.to_artifact()) == prepared
    assert prepared != preprocess(*tables, person=person)
    found = assess_preprocessed(prepared)
    assert MpuccAssessment.from_artifact(found.to_artifact()) == found
    assert assess_preprocessed(prepared, engine=LocalEngine(rows_per_task=40)) == found
    values = dict(zip(found.details["field_combo"], found.details["value_combo"], strict=True))
    assert json.loads(values["born",][0])[0].startswith("19")
    changes = measure_column_changes(prepared, found, max_columns=3)
    assert set(changes["column"]) <= set(prepared.columns)
    assert changes.loc[(changes["column"] == "born") & (changes["change"] == "dropped"), "difference"].iloc[0] < 0


def test_labels_of_generalized_parts_are_one_column():
    tables = [cut(people(seed, 120), "born", DATE)[0] for seed in (0, 1, 2)]
    numbered = number_distinct_records(tables[1])
    generalized = anonymize(numbered, quasi_identifiers=["town", *BORN["born"]], k=2, subject=numbered.columns[-1])
    found = preprocess_generalized(
        *tables, generalized, numeric_precision=None, datetime_precision=None, deduplicate=True, parts=BORN
    )
    assert found.columns == ("town", "born", "job")


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"born": ["town"]}, "names with fewer than two parts: ['born']"),
        ({"born": []}, "names with fewer than two parts: ['born']"),
        ({"born": ["town", "place"]}, "names that are no columns: ['place']"),
        ({"job": ["town", "born"]}, "names of other columns: ['job']"),
        ({"a": ["town", "job"], "b": ["job", "born"]}, "columns that are parts twice: ['job']"),
        ({"a": ["town", "town"]}, "columns that are parts twice: ['town']"),
        ({"a": "town"}, "Expected lists of columns by a name"),
        (["town", "job"], "Expected lists of columns by a name"),
    ],
)
def test_parts_that_are_none_are_refused(parts, problem):
    with pytest.raises(InvalidSettingError, match="parts (has|is)") as raised:
        assess_mpuccs(people(0, 9), people(1, 9), parts=parts)
    assert problem in str(raised.value)


def test_combinations_of_more_columns_than_there_are_with_parts_are_refused():
    tables = [cut(people(seed, 50), "born", DATE)[0] for seed in (0, 1)]
    assert assess_mpuccs(*tables, max_baseline_cols=3, parts=BORN).scores["columns_assessed"] == 3
    with pytest.raises(InvalidSettingError, match="max_baseline_cols is 4. Expected at most 3"):
        assess_mpuccs(*tables, max_baseline_cols=4, parts=BORN)


def test_the_command_takes_parts_from_the_contract(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("people", 0), ("synthetic", 1)):
        cut(people(seed, 60), "born", DATE)[0].to_csv(f"{name}.csv", index=False)
    part = "{type: integer, role: quasi_identifier, part_of: born}"
    columns = {
        "town": "{type: integer, role: other}",
        "job": "{type: text, role: other}",
        **dict.fromkeys(BORN["born"], part),
    }
    (tmp_path / "contract.yaml").write_text(
        "columns:\n" + "".join(f"  {name}: {own}\n" for name, own in columns.items())
    )
    assert main(["assess", "people.csv", "synthetic.csv", "--contract", "contract.yaml", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert scores["columns_assessed"] == scores["max_combo_size"] == 3
