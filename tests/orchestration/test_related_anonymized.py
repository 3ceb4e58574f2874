"""The anonymized side of related tables: figures of rows in the table of people, or rows without a key, or nothing."""

import shutil
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.synthetic import Split, Synthesis
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.pipeline.settings.utility import UtilitySettings
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.signing import SigningKey, generate_key_pair
from privacy_assets.release.verification import verify_release
from tests.orchestration import faster_runs
from tests.orchestration.project import NAME, blocked_by, failure_of, refusal
from tests.orchestration.related_project import (
    POLICY,
    VISITS_CONTRACT,
    FromOthers,
    RelatedProject,
    files_of,
)
from tests.orchestration.sentinels import TEXT, assert_nothing_leaked
from tests.orchestration.test_approvals import Officers
from tests.orchestration.test_related_release import manifest_of, said, sentinel_tables
from tests.orchestration.test_waivers import sign
from tests.reference.aggregates import people_with_figures
from tests.related import clinic

N, K = 400, 5
CLASSES = Policy((Limit("smallest_class", K), Limit("max_reidentification_probability", 1 / K)))
EXACT = {"role": "sensitive", "leaves_as_is": "costs of a test, about which the test decided"}
AGGREGATE = {
    "visits": {
        "aggregate": {
            "rows": {"count": "quasi_identifier"},
            "date": {"first": "quasi_identifier"},
            "diagnosis": "last",
            "cost": {"sum": EXACT, "max": EXACT},
        }
    },
    "drugs": {"aggregate": {"rows": "count"}},
}
UNLINKED = {"visits": {"unlinked": ["age", "sex"]}}
FORMS = {"aggregate": AGGREGATE, "unlinked": UNLINKED}
ONE = "source_as_one_table"
CHECK = "no_row_shows_its_person"
RELEASE = "anonymized_release"
FILES = {"anonymized.parquet", "manifest.json", "report.html", "croissant.json", "dcat.jsonld"}


class Anonymized(RelatedProject):
    """The project, with an anonymized side alone."""

    def definitions(self, forms=AGGREGATE, **settings):
        usual = {
            "children": self.children(forms=forms),
            "policy": CLASSES,
            "synthetic": None,
            "split": None,
            "anonymized": AnonymizationSettings(),
        }
        return super().definitions(**(usual | settings))

    def table(self, stage=ONE):
        return self.artifact(stage).frames["table"]


def clinic_of(seed=1, n=N):
    """Patients of the clinic, with equal contents of the rows of one day."""
    return clinic(n, seed)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Release both forms, once."""
    made = {}
    for form, own in FORMS.items():
        made[form] = Anonymized(tmp_path_factory.mktemp(form))
        made[form].write(clinic_of())
        result = made[form].run(made[form].definitions(own))
        assert result.success, failure_of(result)
    return made


@pytest.fixture
def project(released, tmp_path):
    """Copy a project that released one of the forms."""

    def copied(form):
        root = tmp_path / form
        shutil.copytree(released[form].root, root, ignore=shutil.ignore_patterns("*-shm", "releases"))
        return Anonymized(root)

    return copied


@pytest.fixture
def new(tmp_path):
    made = Anonymized(tmp_path)
    made.write(clinic_of())
    return made


def plain(frame):
    found = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{n: v.item() if isinstance(v, np.generic) else v for n, v in row.items()} for row in found]


@pytest.mark.parametrize(
    "forms",
    [
        {"visits": {"aggregate": {"rows": {"count": "quasi_identifier"}, "diagnosis": "last"}}},
        {"visits": {"unlinked": []}},
    ],
)
def test_people_of_whom_only_the_key_is_known_leave_as_what_their_rows_say(new, forms):
    tables = clinic_of()
    new.write(replace(tables, people=tables.people[["patient"]]))
    only_key = {"columns": {"patient": {"type": "text", "role": "direct_identifier", "person": True}}}
    result = new.run(new.definitions(forms, contract=only_key))
    assert result.success, failure_of(result)
    assert list(new.root.rglob("anonymized.parquet"))


def test_the_people_with_figures_of_their_rows_are_those_of_loops(released):
    tables = clinic_of()
    pairs = [("date", "first"), ("diagnosis", "last"), ("cost", "sum"), ("cost", "max")]
    of_visits_ = [("rows", "count"), *pairs]
    people = people_with_figures(
        plain(tables.people), "visits", plain(tables.children["visits"].table), "patient", "date", of_visits_
    )
    numbered = [{**own, "patient": number} for own, number in zip(people, tables.people["patient"], strict=True)]
    drugs = plain(tables.children["drugs"].table)
    expected = people_with_figures(numbered, "drugs", drugs, "patient", None, [("rows", "count")])
    found = plain(released["aggregate"].table())
    assert [{k: v for k, v in row.items() if "last" not in k} for row in found] == [
        {k: v for k, v in row.items() if "last" not in k} for row in expected
    ]
    without = [row for row in found if row["rows of visits"] == 0]
    assert len(without) > N / 20
    assert {(row["sum cost of visits"], row["first date of visits"], row["max cost of visits"]) for row in without} == {
        (0.0, None, None)
    }


def test_the_rows_without_a_key_are_those_of_loops(released):
    tables = clinic_of()
    people = {person["patient"]: person for person in plain(tables.people)}
    found = plain(released["unlinked"].table())
    whose = {}
    for row, original in zip(found, plain(tables.children["visits"].table), strict=True):
        person = people[original.pop("patient")]
        assert whose.setdefault(row.pop("patient"), person) is person
        assert row == {"age": person["age"], "sex": person["sex"], **original}
    assert len(whose) == len(set(tables.children["visits"].table["patient"]))


def people_of_classes(released, quasi_identifiers):
    """Return the people of each class of a released table, by loops over what was written and what was stored."""
    table = pd.read_parquet(released.release("anonymized") / "anonymized.parquet")
    rows = released.artifact("anonymized").frames["members"]["row"].tolist()
    source = released.table()
    people = source["patient"].tolist() if "patient" in source else list(range(len(source)))
    classes = defaultdict(set)
    for values, row in zip(table[quasi_identifiers].astype(str).itertuples(index=False), rows, strict=True):
        classes[tuple(values)].add(people[row])
    return [len(own) for own in classes.values()]


LABELS = {
    "aggregate": ["age", "sex", "rows of visits", "first date of visits"],
    "unlinked": ["age", "sex", "date", "cost"],
}


@pytest.mark.parametrize("form", FORMS)
def test_what_was_written_has_classes_of_k_people_and_no_key(released, form):
    directory = released[form].release("anonymized")
    assert verify_release(directory, max_bytes=None).problems == ()
    assert files_of(directory) == FILES
    sizes = people_of_classes(released[form], LABELS[form])
    manifest = manifest_of(directory)
    measured = {each["metric"]: each["value"] for each in manifest["verdicts"] if each["metric"]}
    assert min(sizes) == measured["smallest_class"] >= K
    assert measured["max_reidentification_probability"] <= 1 / K
    assert len(sizes) > 10
    table = pd.read_parquet(directory / "anonymized.parquet")
    assert "patient" not in table.columns
    assert not set(clinic_of().people["patient"]) & set(table.astype(str).to_numpy().ravel())
    links = {"key": "patient", "order": "date", "of": "people", "own_key": None}
    assert manifest["settings"][ONE]["links"]["visits"] == links
    assert manifest["settings"]["unit"] == {"aggregate": "rows", "unlinked": ["patient"]}[form]
    assert manifest["figures"]["unit"] == {"findings": []}


def test_a_sum_that_leaves_as_it_is_is_examined_like_every_measure(released):
    manifest = manifest_of(released["aggregate"].release("anonymized"))
    found = {each["column"]: each["finding"] for each in manifest["columns_leaving_as_is"]}
    assert found == {
        "last diagnosis of visits": "ordinary",
        "sum cost of visits": "nearly_unique",
        "max cost of visits": "nearly_unique",
        "rows of drugs": "ordinary",
    }
    reasons = {each["column"]: each["leaves_as_is"] for each in manifest["columns_leaving_as_is"]}
    assert [name for name, reason in reasons.items() if reason] == ["sum cost of visits", "max cost of visits"]


def test_an_identifying_figure_stops_before_it_is_stored_unless_there_is_a_reason(new):
    texts = clinic_of().children["visits"].table
    texts = texts.assign(note=[f"Seen by nurse number {n} on the ward" for n in range(len(texts))])
    texts.to_parquet(new.root / "data" / "visits.parquet", index=False)
    columns = {**VISITS_CONTRACT["columns"], "note": {"type": "text", "role": "sensitive"}}
    reason = {"last": {"leaves_as_is": "Invented for this test, says A. L."}}

    def run(figure):
        forms = {"visits": {"aggregate": {"note": figure}}}
        children = new.children("visits", forms=forms, visits={"columns": columns})
        return new.run(new.definitions(children=children), "source", ONE)

    result = run("last")
    assert not result.success
    assert "'last note of visits'" in failure_of(result)
    assert not new.stored(ONE).exists()
    assert run(reason).success


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("limits", "k", "check"),
    [
        ((Limit("smallest_class", K),), 2, "smallest_class_is_at_least_its_limit"),
        (
            (Limit("smallest_class", 2), Limit("max_reidentification_probability", 1 / K)),
            2,
            "max_reidentification_probability_is_at_most_its_limit",
        ),
    ],
)
def test_each_form_is_refused_where_its_limit_fails(project, form, limits, k, check):
    made = project(form)
    definitions = made.definitions(FORMS[form], policy=Policy(limits), anonymized=AnonymizationSettings(k=k))
    result = made.run(definitions)
    assert not result.success
    assert check in blocked_by(result)
    again = made.run(definitions, RELEASE)
    assert f"expected {'at least 5' if 'smallest' in check else 'at most 0.2'}" in refusal(again, "anonymized")
    assert made.everything_released() == []


CHANGED = {
    "another figure of the column": {
        "visits": {"aggregate": AGGREGATE["visits"]["aggregate"] | {"date": {"last": "quasi_identifier"}}}
    },
    "a figure less": {"visits": AGGREGATE["visits"]},
    "another role": {
        **AGGREGATE,
        "visits": {"aggregate": AGGREGATE["visits"]["aggregate"] | {"diagnosis": {"last": "other"}}},
    },
    "the other form": UNLINKED,
    "another order": AGGREGATE,
}


@pytest.mark.parametrize("what", CHANGED)
def test_forms_that_changed_since_refuse_the_release(project, what):
    made = project("aggregate")
    children = made.children(forms=CHANGED[what])
    if what == "another order":
        visits = replace(children["visits"], order="cost")
        children["visits"] = visits
    result = made.run(made.definitions(children=children), RELEASE)
    assert "anonymized does not meet the current contract" in refusal(result, "anonymized")
    assert made.everything_released() == []


def test_rows_of_people_leave_in_one_form_whatever_the_release_is_called(project):
    made = project("aggregate")
    (made.root / "releases").mkdir(exist_ok=True)
    assert made.run(made.definitions(AGGREGATE), RELEASE).success
    assert made.run(made.definitions(AGGREGATE)).success  # The same form again.
    published = sorted(made.everything_released())
    result = made.run(made.definitions(UNLINKED))
    why = refusal(made.run(made.definitions(UNLINKED), RELEASE), "anonymized")
    assert not result.success
    assert "has rows of the same people in another form, and sums show whose rows are whose" in why
    assert sorted(made.everything_released()) == published
    # Under another name, and for other people, who are known by their numbers.
    private, root = made.private / "people_of_related", made.root / "releases"
    (private / NAME).rename(private / "others")
    (root / NAME).rename(root / "others")
    again = made.run(made.definitions(UNLINKED))
    assert not again.success
    assert "others/anonymized/" in refusal(made.run(made.definitions(UNLINKED), RELEASE), "anonymized")
    hashes = (private / "others" / "people").read_bytes()
    (private / "others" / "people").write_bytes(hashes[:64] + bytes(len(hashes) - 64))
    assert made.run(made.definitions(UNLINKED)).success


@pytest.mark.parametrize("form", FORMS)
def test_a_table_of_other_people_swapped_in_before_the_gate_is_refused(project, form):
    made = project(form)
    made.swap(ONE, lambda frames: {"table": frames["table"].iloc[::-1].reset_index(drop=True)})
    why = refusal(made.run(made.definitions(FORMS[form]), RELEASE), "anonymized")
    assert f"the content stored for ['{ONE}'] is not what the run recorded: it was overwritten" in why
    assert made.everything_released() == []


def test_a_source_that_changed_since_the_one_table_was_made_refuses(project):
    made = project("aggregate")
    made.write(clinic_of(seed=2))
    assert made.run(made.definitions(), "source").success
    why = refusal(made.run(made.definitions(), RELEASE), "anonymized")
    assert f"{ONE} was made from an earlier version of ['source']" in why
    assert made.everything_released() == []


def with_origin(tables):
    sex = tables.people.set_index("patient")["sex"]
    return tables.children["visits"].table.assign(origin=lambda t: t["patient"].map(sex))


@pytest.mark.parametrize("role", ["other", "sensitive", "quasi_identifier", "direct_identifier"])
def test_rows_with_values_that_show_their_person_do_not_leave(new, role):
    with_origin(clinic_of()).to_parquet(new.root / "data" / "visits.parquet", index=False)
    columns = {**VISITS_CONTRACT["columns"], "origin": {"type": "text", "role": role}}
    children = new.children("visits", forms=UNLINKED, visits={"columns": columns})
    result = new.run(new.definitions(children=children), "source", ONE)
    assert result.success == (role in ("quasi_identifier", "direct_identifier"))
    passed, description, _ = said(result, CHECK)
    assert passed == result.success
    if not passed:
        assert (
            "1 columns of 'visits' that would leave as they are never differ within a person: ['origin']" in description
        )
        assert failure_of(result).count("['origin']")
        assert not new.stored(ONE).exists()


def test_values_that_link_rows_of_most_people_are_refused_by_the_gate(new):
    visits = clinic_of().children["visits"].table
    first = visits.drop_duplicates("patient").index
    token = visits["patient"].str[1:].astype(int).where(~visits.index.isin(first[:40]), 7)
    visits.assign(token=token).to_parquet(new.root / "data" / "visits.parquet", index=False)
    reason = "Numbers of the queue, says A. L."
    columns = {
        **VISITS_CONTRACT["columns"],
        "token": {"type": "integer", "role": "other", "leaves_as_is": reason, "not_a_person": reason},
    }
    children = new.children("visits", forms=UNLINKED, visits={"columns": columns})
    result = new.run(new.definitions(children=children))
    assert not result.success
    assert "released values link the rows of a person (2): 'token' (" in refusal(result, "anonymized")
    assert new.everything_released() == []


def test_a_removed_number_that_values_repeat_stops_the_source(new):
    tables = clinic_of()
    visits = tables.children["visits"].table
    house = visits["patient"].str[1:].astype(int) // 2
    visits.assign(house=house, floor=house * 3).to_parquet(new.root / "data" / "visits.parquet", index=False)
    reason = "Houses of the patients, says A. L."
    columns = {
        **VISITS_CONTRACT["columns"],
        "house": {"type": "integer", "role": "direct_identifier", "not_a_person": reason},
        "floor": {"type": "integer", "role": "other", "leaves_as_is": reason, "not_a_person": reason},
    }

    def run(forms):
        children = new.children("visits", forms=forms, visits={"columns": columns})
        return new.run(new.definitions(children=children), "source")

    result = run(UNLINKED)
    assert not result.success
    assert "'floor'" in failure_of(result)
    assert run({"visits": {"aggregate": {"rows": "count"}}}).success


def test_sums_out_of_range_stop_before_anything_is_stored(new):
    visits = clinic_of().children["visits"].table
    visits.assign(units=2**62).to_parquet(new.root / "data" / "visits.parquet", index=False)
    columns = {**VISITS_CONTRACT["columns"], "units": {"type": "integer", "role": "other"}}
    forms = {"visits": {"aggregate": {"units": "sum"}}}
    children = new.children("visits", forms=forms, visits={"columns": columns})
    result = new.run(new.definitions(children=children), "source", ONE)
    passed, description, _ = said(result, CHECK)
    assert (result.success, passed) == (False, False)
    assert "Sums of whole numbers are beyond 64 bits" in description
    assert not new.stored(ONE).exists()


def test_both_sides_leave_each_by_its_own_gate(new):
    policy = Policy((*POLICY.limits, *CLASSES.limits), POLICY.required)
    settings = {
        "policy": policy,
        "synthetic": Synthesis(method=FromOthers()),
        "split": Split(train_fraction=0.5),
        "utility": UtilitySettings(),
    }
    assert new.run(new.definitions(UNLINKED, **settings)).success
    of_people = new.release()
    assert manifest_of(of_people)["tables"].keys() == {"people", "visits", "drugs"}
    assert verify_release(of_people, max_bytes=None).problems == ()
    manifest = manifest_of(new.release("anonymized"))
    assert "utility_assessment" in manifest["figures"]
    too_much = {**settings, "policy": policy.with_limit(Limit("smallest_class", 300))}
    again = new.run(new.definitions(UNLINKED, **too_much, anonymized=AnonymizationSettings(k=K)))
    assert blocked_by(again) == {"smallest_class_is_at_least_its_limit"}
    assert len(list((new.root / "releases" / NAME / "synthetic").glob("2*"))) == 2


@pytest.mark.parametrize("form", FORMS)
def test_the_originals_are_anonymized_next_to_people_who_are_not_among_them(new, form):
    anonymized = AnonymizationSettings(of="original")
    definitions = new.definitions(FORMS[form], anonymized=anonymized, split=Split(train_fraction=0.5))
    result = new.run(definitions)
    assert result.success, failure_of(result)
    assert not new.stored(ONE).exists()
    original, control = new.table("original_as_one_table"), new.table("control_as_one_table")
    assert list(original.columns) == list(control.columns)
    if form == "aggregate":
        assert (len(original), len(control)) == (N / 2, N / 2)
    manifest = manifest_of(new.release("anonymized"))
    assert manifest["settings"]["reidentification_assessment"]["membership_control"]
    assert manifest["settings"]["split"]["train_fraction"] == 0.5


def test_records_at_risk_are_withheld(new):
    definitions = new.definitions(
        {"visits": {"aggregate": {"rows": {"count": "quasi_identifier"}, "paid": "any"}}},
        semantic_risk=SemanticRiskSettings(withhold=True, risk_limit=0.2, of_source=True),
        anonymized=AnonymizationSettings(k=20),
    )
    result = new.run(definitions)
    assert result.success, failure_of(result)
    assert manifest_of(new.release("anonymized"))["settings"]["suppressed"]["risk_limit"] == 0.2


def test_a_signed_release_waits_for_an_approval(project, monkeypatch):
    pytest.importorskip("cryptography", reason="needs the extra `signing`")
    made = project("unlinked")
    officers = Officers(made, "Ada")
    key, public, _ = generate_key_pair(made.root / "signing.pem")
    definitions = made.definitions(
        UNLINKED,
        policy=CLASSES.with_required(approvals=1, signature=True),
        approvers=str(officers.file),
        signing=SigningKey(path=str(key)),
    )
    assert "is not released yet" in failure_of(made.run(definitions, RELEASE))
    assert officers.decide(monkeypatch, "Ada") == 0
    result = made.run(definitions, RELEASE)
    assert result.success, failure_of(result)
    found = verify_release(made.release("anonymized"), public_keys=[public], approvers=officers.file, max_bytes=None)
    assert (found.problems, len(found.approvals)) == ((), 1)


def test_a_waiver_of_this_side_lets_out_the_content_that_it_names(project):
    made = project("aggregate")
    directory = made.root / "waivers"
    directory.mkdir()
    smallest = Policy((Limit("smallest_class", K),))
    anonymized = AnonymizationSettings(k=2)
    definitions = made.definitions(policy=smallest, anonymized=anonymized, waivers=str(directory))
    assert not made.run(definitions).success
    assert "waive" not in refusal(made.run(definitions, RELEASE), "anonymized")
    about = {"metric": "smallest_class", "limit": K}
    sign(directory, made.artifact("anonymized").fingerprints["table"], 2, **about)
    result = made.run(definitions, RELEASE)
    assert result.success, failure_of(result)
    assert [each["metric"] for each in manifest_of(made.release("anonymized"))["waivers"]] == ["smallest_class"]


SENTINEL_FORMS = {
    "figures": ({"visits": {"aggregate": {"rows": "count", "cost": ["sum", "max"], "date": "first"}}}, {}, None),
    "rows": (UNLINKED, {}, None),
    "figures refused": (
        {"visits": {"aggregate": {"cost": "mean", "diagnosis": ["first", "last"]}}},
        {"k": 2},
        "expected at least 5",
    ),
    "rows that show their person": (UNLINKED, {"note": "other"}, "['note']"),
}


@pytest.mark.pictures
@pytest.mark.parametrize("what", SENTINEL_FORMS)
def test_no_key_and_no_cell_is_found_anywhere(tmp_path, capfd, what):
    forms, changed, message = SENTINEL_FORMS[what]
    project = Anonymized(tmp_path)
    tables = sentinel_tables()
    columns = VISITS_CONTRACT["columns"] | {"visit": {"type": "text", "role": "direct_identifier"}}
    if "note" in changed:
        whose = pd.factorize(tables["visits"]["patient"])[0] % 7
        tables["visits"] = tables["visits"].assign(note=[f"{TEXT}-{number}" for number in whose])
        columns = {**columns, "note": {"type": "text", "role": changed["note"]}}
    for name, table in tables.items():
        table.to_parquet(project.root / "data" / f"{name}.parquet", index=False)
    definitions = project.definitions(
        children=project.children("visits", forms=forms, visits={"columns": columns}),
        anonymized=AnonymizationSettings(k=changed.get("k")),
        utility=UtilitySettings(),
    )
    with faster_runs.texts_of_pictures() as texts:
        result = project.run(definitions)
    project.written_in_pictures.extend(texts)
    assert result.success == (message is None), failure_of(result)
    if message is not None:
        assert message in str([each.description for each in result.get_asset_check_evaluations()])
    assert_nothing_leaked(project, capfd)
