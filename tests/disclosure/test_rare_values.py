"""Values of few people: counted in what leaves, and redrawn before a synthesizer learns them."""

import hashlib
import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.disclosure.leaving_columns import MANIFEST_KEY, manifest_entries
from privacy_assets.disclosure.rare_values import RareColumn, RareValues, count_rare_values
from privacy_assets.errors import InvalidTableError
from privacy_assets.release.files import ReleaseRecord, write_release
from privacy_assets.release.formats.cards import CARDS
from privacy_assets.release.gate import Verdict
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.synthesis.generalized import DISTINCT_RECORD, number_distinct_records
from privacy_assets.synthesis.redraw import redraw_rare_values
from privacy_assets.synthesis.synthesize import SYNTHESIZERS, make_synthetic_records, synthesize, synthesizer_class
from tests.examples import examples
from tests.people import TEXT, every_kind
from tests.reference import rare_values as reference

METHODS = sorted(SYNTHESIZERS)
VALUES = [None, "a", "A", "b", "c", "missing", "", " ", "é", "1"]
CODES = [None, 1, 2, 10]


def table_of(records, columns=("job", "code", "word")):
    frame = pd.DataFrame({name: pd.Series([each[name] for each in records], dtype=object) for name in columns})
    frame = frame.astype({"job": "category"})
    frame["code"] = pd.Categorical(frame["code"], categories=CODES[1:])
    frame["word"] = frame["word"].astype(TEXT)
    if records and "person" in records[0]:
        frame["person"] = [each["person"] for each in records]
    return frame


def records_of(n_people):
    return st.lists(
        st.fixed_dictionaries(
            {
                "job": st.sampled_from(VALUES),
                "code": st.sampled_from(CODES),
                "word": st.sampled_from(VALUES),
                "person": st.integers(0, n_people),
            }
        ),
        min_size=1,
        max_size=25,
    )


@settings(max_examples=examples(150), deadline=None)
@given(records_of(6), records_of(6), records_of(6), st.integers(1, 8), st.booleans())
def test_counts_are_those_of_the_definition(released, originals, control, least, of_people):
    person = "person" if of_people else None
    found = count_rare_values(
        table_of(released),
        [table_of(originals), table_of(control)],
        people_per_value=least,
        person=person,
        columns=["job", "code", "word"],
    )
    expected, n_showing = reference.rare_values(
        released, [*originals, *control], ["job", "code", "word"], least, person
    )
    assert {name: (own.n_values, own.n_records) for name, own in found.by_column.items()} == {
        name: (len(values), n_records) for name, (values, n_records) in expected.items()
    }
    assert found.total == sum(len(values) for values, _ in expected.values())
    assert found.n_records == n_showing


def test_one_person_with_many_records_of_a_value_is_one():
    people = pd.DataFrame({"job": ["diver"] * 9 + ["cook"] * 9, "patient": [1] * 9 + list(range(9))})
    released = pd.DataFrame({"job": ["diver", "cook"]})
    count = {"people_per_value": 5, "columns": ["job"]}
    assert count_rare_values(released, [people], **count, person="patient").by_column == {"job": RareColumn(1, 1)}
    assert count_rare_values(released, [people], **count).total == 0
    assert count_rare_values(released, [people.assign(patient=np.nan)], **count, person="patient").total == 2


def test_values_of_people_whom_the_synthesizer_never_saw_count_and_invented_ones_do_not():
    originals = pd.DataFrame({"job": ["cook"] * 5})
    control = pd.DataFrame({"job": ["cook", "diver"]})
    released = pd.DataFrame({"job": ["cook", "diver", "astronaut", None]})
    found = count_rare_values(released, [originals, control], people_per_value=5)
    assert found.by_column == {"job": RareColumn(1, 1)}


WRITTEN = [
    "Zoë Quill diver", "ZOË QUILL DIVER", " Zoë Quill  diver", "Zo\u200bë Quill diver", "Zoe\u0308 Quill diver",
    "'Zoë Quill diver", '"Zoë Quill diver"', "Zoë\u00a0Quill\u00a0diver", "Zoë Qu\u00adill diver",
    "Zoë\ufe0f Quill diver",
]  # fmt: skip


@pytest.mark.parametrize("value", WRITTEN)
@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_a_value_of_one_person_is_counted_in_any_spelling(value, dtype):
    people = pd.DataFrame({"job": pd.Series(["clerk"] * 99 + ["Zoë Quill diver"], dtype=dtype)})
    released = pd.DataFrame({"job": pd.Series(["clerk", "CLERK", value, None], dtype=dtype)})
    assert count_rare_values(released, [people], people_per_value=3).by_column == {"job": RareColumn(1, 1)}


def test_a_value_is_rare_in_either_reading():
    people = pd.DataFrame({"code": ["7"] * 100 + ["007", "na", "é", "É"]})

    def count(*values):
        return count_rare_values(pd.DataFrame({"code": list(values)}), [people], people_per_value=3).total

    assert count("007") == count("na") == count("e\u0301") == 1
    assert count("7", "07", "7.0", "nan", None, "NA") == 0
    assert count("é", "É", "e\u0301") == 2


def test_bytes_that_few_people_have_are_counted_and_are_no_text():
    people = pd.DataFrame({"key": [b"a"] * 9 + [b"b"]})
    assert count_rare_values(people, [people], people_per_value=3).by_column == {"key": RareColumn(1, 1)}
    with pytest.raises(
        InvalidTableError, match=r"'key' differs in type .* bytes in table 1 of people, text in released"
    ):
        count_rare_values(pd.DataFrame({"key": ["61"]}), [people], people_per_value=3)


def test_text_and_categories_are_looked_at_and_nothing_else():
    table = every_kind(40)
    found = count_rare_values(table, [table], people_per_value=1000)
    assert set(found.by_column) == {
        "town", "town_or_none", "objects", "grade", "site", "site_or_none",
    }  # fmt: skip
    assert all(own.n_records == table[name].notna().sum() for name, own in found.by_column.items())


def test_a_column_that_is_not_there_is_named():
    table = pd.DataFrame({"job": ["cook"]})
    with pytest.raises(InvalidTableError, match=r"lacks the columns \['job'\]"):
        count_rare_values(table.rename(columns={"job": "work"}), [table], people_per_value=3)
    with pytest.raises(InvalidTableError, match=r"lacks the columns \['patient'\]"):
        count_rare_values(table, [table], people_per_value=3, person="patient")


def test_the_remark_names_the_columns_with_most_values_and_counts_the_others():
    found = RareValues(5, {f"c{i:02}": RareColumn(i, i) for i in range(13)}, 12)
    assert found.remark.startswith("values shared by fewer than 5 people, by column: 'c12': 12, 'c11': 11")
    assert found.remark.endswith("'c03': 3, and 2 more columns")
    assert RareValues(5, {"c": RareColumn(0, 0)}, 0).remark == ""


def test_values_that_labels_spell_out_are_counted():
    random = np.random.default_rng(0)
    n = 60
    people = pd.DataFrame(
        {
            "age": random.integers(20, 60, n),
            "job": pd.Series(["diver, deep-sea", "smith", *random.choice(["cook", "nurse"], n - 2)], dtype=TEXT),
            "grade": pd.Categorical(
                ["top", *random.choice(["low", "high"], n - 1)], categories=["low", "high", "top"], ordered=True
            ),
            "illness": pd.Series(["gout", *random.choice(["flu", "cold"], n - 1)], dtype=TEXT),
        }
    )
    generalized = anonymize(
        number_distinct_records(people),
        quasi_identifiers=["age", "job", "grade"],
        sensitive=["illness"],
        subject=DISTINCT_RECORD,
        k=4,
    )
    assert not set(generalized.table["job"]) & {"smith"}
    found = count_rare_values(
        generalized.table, [people], people_per_value=5, masks=generalized.model.masks, columns=list(people)
    )
    counts = {name: own.n_values for name, own in found.by_column.items()}
    assert counts == {"job": 2, "grade": 1, "illness": 1}
    assert found.by_column["illness"].n_records == 1
    # Everybody in a class whose label spells a value out.
    shown = generalized.table["job_values"].astype(str)
    assert found.by_column["job"].n_records == (shown.str.contains("smith") | shown.str.contains("diver")).sum() >= 4


@settings(max_examples=examples(100), deadline=None)
@given(records_of(6), st.integers(1, 6), st.integers(0, 2**32 - 1), st.booleans())
def test_what_is_redrawn_comes_from_values_of_enough_people(records, least, seed, of_people):
    table, columns = table_of(records), ["job", "code", "word"]
    whose = table["person"] if of_people else None
    held = {name: reference.holders(records, name, "person" if of_people else None) for name in columns}
    hopeless = [name for name, own in held.items() if own and all(len(people) < least for people in own.values())]
    if hopeless:
        with pytest.raises(InvalidTableError, match="all values of these columns are rare") as raised:
            redraw_rare_values(table, columns, min_atom=least, seed=seed, person=whose)
        assert all(f"{name!r}: {len(held[name])}" in str(raised.value) for name in hopeless)
        return
    made, counts = redraw_rare_values(table, columns, min_atom=least, seed=seed, person=whose)
    pd.testing.assert_series_equal(made.dtypes, table.dtypes)
    pd.testing.assert_series_equal(made["person"], table["person"])
    for name in columns:
        own = [None if pd.isna(value) else value for value in made[name].astype(object)]
        rare = {value for value, people in held[name].items() if len(people) < least}
        rows = [row for row, record in enumerate(records) if record[name] in rare]
        assert not set(own) & rare
        assert [value for row, value in enumerate(own) if row not in rows] == [
            record[name] for row, record in enumerate(records) if row not in rows
        ]
        assert all(own[row] in held[name] for row in rows)
        assert counts.get(name, RareColumn(0, 0)) == RareColumn(len(rare), len(rows))


def test_values_are_redrawn_as_often_as_others_have_them_and_not_by_the_rest_of_the_record():
    random = np.random.default_rng(1)
    n = 20_000
    job = np.where(random.random(n) < 0.7, "cook", "nurse").astype(object)
    job[:4000] = [f"rare {number}" for number in range(4000)]
    table = pd.DataFrame({"job": pd.Series(job, dtype=TEXT), "age": range(n)})
    made, counts = redraw_rare_values(table, ["job"], min_atom=5, seed=3)
    assert counts == {"job": RareColumn(4000, 4000)}
    assert (made["job"][:4000] == "cook").mean() == pytest.approx(0.7, abs=0.03)
    pd.testing.assert_frame_equal(made, redraw_rare_values(table, ["job"], min_atom=5, seed=3).table)
    assert not made.equals(redraw_rare_values(table, ["job"], min_atom=5, seed=4).table)
    assert redraw_rare_values(table, ["job"], min_atom=1, seed=3).table.equals(table)


def people_with_a_rare_job(n_people=300):
    """Each of them has two records; one person alone has six records as a diver, the last missing."""
    random = np.random.default_rng(5)
    jobs = pd.Series(random.choice(["cook", "nurse", "smith"], 2 * n_people), dtype=TEXT)
    person = np.repeat(np.arange(n_people), 2)
    jobs[:6], person[:6] = "diver", 0
    jobs[6] = None
    site = pd.Categorical(random.choice(["north", "south"], 2 * n_people), categories=["north", "south", "moon"])
    site = pd.Series(site)
    site[10] = "moon"
    table = pd.DataFrame({"job": jobs, "site": site, "age": random.integers(20, 60, 2 * n_people)})
    return table, pd.Series(person)


@pytest.mark.parametrize("method", METHODS)
def test_the_embedded_synthesizers_reproduce_no_value_of_few_people(method):
    table, person = people_with_a_rare_job()
    made, redrawn, _ = make_synthetic_records(table, method, 5000, 1, None, person)
    assert set(made["job"].dropna()) == {"cook", "nurse", "smith"}
    assert set(made["site"]) == {"north", "south"}
    assert made["job"].isna().any()
    assert made["site"].dtype == table["site"].dtype
    assert redrawn == {"job": RareColumn(1, 6), "site": RareColumn(1, 1)}
    # Six records are enough where each counts as a person.
    assert "diver" in set(synthesize(table, method=method, n_records=5000, seed=1)["job"])
    all_of_them = synthesize(table, method=method, n_records=20_000, person=person, settings={"min_atom": 1})
    assert {"diver", "moon"} <= set(all_of_them["job"].dropna()) | set(all_of_them["site"])


@pytest.mark.parametrize("method", METHODS)
def test_a_column_in_which_every_value_is_rare_is_refused_with_what_to_do(method):
    table = pd.DataFrame({"note": [f"SECRET {i}" for i in range(60)], "job": ["cook"] * 60, "age": range(60)})
    with pytest.raises(
        InvalidTableError, match=r"min_atom=5.*\{'note': 60\} \(counts of values\).*min_atom=1"
    ) as raised:
        synthesize(table, method=method)
    assert "SECRET" not in str(raised.value)
    assert "SECRET 7" in set(synthesize(table, method=method, n_records=900, settings={"min_atom": 1})["note"])


def test_many_such_columns_are_counted():
    table = pd.DataFrame({f"c{i}": ["x"] for i in range(45)})
    with pytest.raises(InvalidTableError, match="and 5 columns more"):
        redraw_rare_values(table, list(table), min_atom=2, seed=0)


@pytest.mark.parametrize("method", METHODS)
def test_a_table_without_rare_values_is_learned_as_it_is(method):
    table = every_kind(300)
    made = make_synthetic_records(table, method, 100, 3, None, None)
    assert made.redrawn == {}
    pd.testing.assert_frame_equal(
        made.table, synthesize(table, method=method, n_records=100, seed=3, settings={"min_atom": 5})
    )


def test_whose_the_records_are_must_be_said_of_each():
    with pytest.raises(InvalidTableError, match="`person` has 3 values"):
        synthesize(every_kind(60), person=[1, 2, 3])


def test_a_synthesizer_of_ones_own_learns_the_table_as_it_is():
    class Echo:
        name = "echo"
        settings = {"min_atom": 100}  # noqa: RUF012

        def fit(self, table, *, seed):
            self.table = table
            return self

        def sample(self, n_records, *, seed):
            return self.table

    table, person = people_with_a_rare_job()
    made = make_synthetic_records(table, Echo(), None, 0, None, person)
    pd.testing.assert_frame_equal(made.table, table)
    assert made.redrawn is None


@pytest.mark.parametrize("method", METHODS)
def test_the_classes_themselves_redraw_too(method):
    table, person = people_with_a_rare_job()
    fitted = synthesizer_class(method)(min_atom=3).fit(table, seed=0, person=person)
    assert fitted.redrawn["job"] == RareColumn(1, 6)
    assert "diver" not in set(fitted.sample(3000, seed=0)["job"])


RELEASED = pd.DataFrame({"job": ["cook", "cook", "diver", None], "age": [1, 2, 3, 4], "job_": ["cook"] * 4})
COUNTED = {"job": {"n_values": 1, "n_records": 1}, "job_": {"n_values": 0, "n_records": 0}}
FIGURE = {"people_per_value": 5, "rare_values_released": 1, "records_with_rare_values": 1, "by_column": COUNTED}
SCORE = {"mpucc_assessment": {"privacy_risk_score": 0.1}}
LIMITS = (Limit("privacy_risk_score", 0.5), Limit("rare_values_released", 0, severity="warn"))
RECORD = ReleaseRecord(
    release="people",
    stage="synthetic",
    partition=None,
    run_id="run",
    policy=Policy(LIMITS, RequiredSettings(people_per_value=5)),
    verdicts=(
        Verdict("synthetic_is_as_recorded", True, "error", "as recorded"),
        Verdict("score", True, "error", "0.1", "", "privacy_risk_score", 0.1, 0.5, "below"),
        Verdict("rare", False, "warn", "1", "Coarsen.", "rare_values_released", 1.0, 0, "at_most"),
    ),
    settings={},
    figures={"rare_values": FIGURE, **SCORE},
    columns=[{"column": name, "role": "other"} for name in RELEASED],
    refusals_before=0,
)


def problems_of(tmp_path, figures, columns=RECORD.columns, verdicts=None):
    written = write_release(tmp_path, RELEASED, fingerprint(RELEASED), RECORD)
    path = written / "manifest.json"
    manifest = json.loads(path.read_text())
    changes = {"figures": {**SCORE, **figures}, "columns": list(columns), "verdicts": verdicts or manifest["verdicts"]}
    forged = manifest | changes | {MANIFEST_KEY: manifest_entries(RELEASED, list(columns), "synthetic", {})}
    for name, made_of in CARDS.items():
        card = json.dumps(made_of(forged)).encode()
        (written / name).write_bytes(card)
        forged["files"][name] = {"sha256": hashlib.sha256(card).hexdigest(), "bytes": len(card)}
    path.write_text(json.dumps(forged | {"digest": digest_of(forged)}))
    return "; ".join(verify_release(written, max_bytes=None).problems)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, ""),
        ({"people_per_value": 4}, "not counted for the number of people that the policy requires"),
        ({"rare_values_released": 0}, "differs from the sum over its columns"),
        ({"by_column": COUNTED | {"job": {"n_values": 2, "n_records": 2}}}, "differs from the sum over its columns"),
        ({"by_column": {"job": COUNTED["job"]}}, "not counted in the text and category columns"),
        ({"by_column": COUNTED | {"age": COUNTED["job_"]}}, "not counted in the text and category columns"),
        ({"by_column": COUNTED | {"job": {"n_values": 1, "n_records": 4}}}, "impossible for the records"),
        ({"by_column": COUNTED | {"job": {"n_values": 1, "n_records": 0}}}, "impossible for the records"),
        ({"by_column": COUNTED | {"job_": {"n_values": 0, "n_records": 1}}}, "impossible for the records"),
        ({"by_column": COUNTED | {"job_": {"n_values": -1, "n_records": 0}}}, "impossible for the records"),
        ({"records_with_rare_values": 0}, "impossible for the records"),
        ({"records_with_rare_values": 2}, "impossible for the records"),
        ({"by_column": {"job": 1}}, "damaged"),
        ({"by_column": None}, "damaged"),
    ],
)
def test_a_received_release_is_held_to_its_counts(tmp_path, changes, problem):
    assert problem in (found := problems_of(tmp_path, {"rare_values": FIGURE | changes}))
    assert bool(found) == bool(problem)


def test_a_received_release_must_have_counts_where_its_policy_limits_them(tmp_path):
    assert "counts by column are not recorded" in problems_of(tmp_path, {})


def test_values_in_labels_can_be_more_than_the_records_that_show_them(tmp_path):
    columns = [
        {"column": "job", "role": "quasi_identifier", "generalizes": "job"},
        {"column": "age", "role": "other"},
        {"column": "job_", "role": "quasi_identifier", "generalizes": "job"},
    ]
    counted = {"job": {"n_values": 9, "n_records": 2}}
    figure = FIGURE | {"rare_values_released": 9, "records_with_rare_values": 2, "by_column": counted}
    verdicts = [asdict(verdict) for verdict in RECORD.verdicts]
    verdicts[2]["value"] = 9.0
    assert problems_of(tmp_path, {"rare_values": figure}, columns, verdicts) == ""
    forged = figure | {"by_column": {"job": {"n_values": 9, "n_records": 0}}, "records_with_rare_values": 0}
    assert "impossible" in problems_of(tmp_path, {"rare_values": forged}, columns, verdicts)
