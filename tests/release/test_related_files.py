"""Related tables as files: written together, and every damage to one of them or to how they are linked is found."""

import hashlib
import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privacy_assets.cli import main
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import RelatedTables, artifact_of, broken_links
from privacy_assets.contract.related_contracts import Linked, RelatedContracts
from privacy_assets.errors import InvalidTableError
from privacy_assets.release.files import write_release
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.remade_report import remake_report
from privacy_assets.release.verification import verify_release
from privacy_assets.storage.fingerprint import fingerprint
from tests.orchestration.related_project import (
    DRUGS_CONTRACT,
    LINES_CONTRACT,
    NUMBERED_VISITS_CONTRACT,
    PEOPLE_CONTRACT,
)
from tests.related import clinic, with_lines
from tests.release.agreeing import agreeing
from tests.release.test_files import RECORD

CONTRACTS = RelatedContracts.of(
    TableContract.from_mapping(PEOPLE_CONTRACT),
    {
        "visits": Linked(NUMBERED_VISITS_CONTRACT, "patient", "date", own_key="visit"),
        "drugs": Linked(DRUGS_CONTRACT, "patient"),
        "lines": Linked(LINES_CONTRACT, "visit", "line", "visits"),
    },
)
VERDICT = replace(RECORD.verdicts[1], name="no_leakage_is_detected", metric="leakage_detected", value=0, limit=0)
RELATED_RECORD = agreeing(
    replace(
        RECORD,
        policy=Policy((Limit("leakage_detected", 0),)),
        verdicts=(RECORD.verdicts[0], replace(VERDICT, direction="at_most")),
        figures={},
        columns=CONTRACTS.describe(),
    )
)


def made(seed):
    tables = clinic(60, seed).tables | with_lines(clinic(60, seed), seed).tables
    return CONTRACTS.related(CONTRACTS.check(tables)).renumbered()


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    directory = tmp_path_factory.mktemp("released")
    return [write_release(directory / str(s), made(s), made(s).content, RELATED_RECORD) for s in (1, 2)]


def frames_of(directory):
    names = json.loads((directory / "manifest.json").read_text())["tables"]
    return {name: pd.read_parquet(directory / f"{name}.parquet") for name in names}


def write_as_is(directory, name, change):
    change(frames_of(directory)[name]).to_parquet(directory / f"{name}.parquet", index=False)


def correct_everything(directory, **changes):
    """Do what a forger does: write sizes, digests, rows and fingerprints that fit the files."""
    path, frames = directory / "manifest.json", frames_of(directory)
    manifest = json.loads(path.read_text()) | changes
    for name in [each for each in manifest["files"] if (directory / each).exists()]:
        data = (directory / name).read_bytes()
        manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    for name, own in manifest["tables"].items():
        own |= {"rows": len(frames[name]), "fingerprint": fingerprint(frames[name])}
    manifest["n_records"] = len(frames["people"])
    manifest["fingerprint"] = artifact_of(frames, manifest["person"], manifest["links"]).digest
    write_manifest(directory, manifest)


def write_manifest(directory, manifest):
    manifest["digest"] = digest_of(manifest)
    (directory / "manifest.json").write_text(json.dumps(manifest))


def without_link(directory, *, corrected, name="drugs"):
    manifest = json.loads((directory / "manifest.json").read_text())
    manifest["links"].pop(name)
    write_manifest(directory, manifest) if corrected else (directory / "manifest.json").write_text(json.dumps(manifest))


def edited(directory, **changes):
    write_manifest(directory, json.loads((directory / "manifest.json").read_text()) | changes)


def with_column_of(directory, column, table):
    manifest = json.loads((directory / "manifest.json").read_text())
    next(each for each in manifest["columns"] if each["column"] == column)["table"] = table
    write_manifest(directory, manifest)


def linked(name, **changes):
    def act(directory, _):
        manifest = json.loads((directory / "manifest.json").read_text())
        manifest["links"][name] |= changes
        write_manifest(directory, manifest)

    return act


def forged_links(**links):
    def act(directory, _):
        correct_everything(directory)
        recorded = json.loads((directory / "manifest.json").read_text())["links"]
        correct_everything(directory, links={name: own | links.get(name, {}) for name, own in recorded.items()})

    return act


def forged(name, change):
    def act(directory, _):
        write_as_is(directory, name, change)
        correct_everything(directory)

    return act


def damaged(name, change):
    return lambda directory, _: write_as_is(directory, name, change)


def first_again(table):
    return pd.concat([table, table.head(1)], ignore_index=True)


def without_a_person_with_visits(people):
    return people.drop(index=made(1).children["visits"].table["patient"].iloc[0] - 1)


def without_a_visit_with_lines(visits):
    return visits.drop(index=made(1).children["lines"].table["visit"].iloc[0] - 1)


def with_other_first_cost(visits):
    return visits.assign(cost=np.where(visits.index == 0, visits["cost"] + 1, visits["cost"]))


CHANGED = "the file {!r} was changed"
DAMAGES = {
    "visits of another release": (
        lambda own, other: shutil.copy(other / "visits.parquet", own / "visits.parquet"),
        [CHANGED.format("visits.parquet")],
    ),
    "a table left out": (
        lambda own, _: (own / "drugs.parquet").unlink(),
        ["the file 'drugs.parquet' is missing"],
    ),
    "a file more": (
        lambda own, other: shutil.copy(other / "people.parquet", own / "more.parquet"),
        ["1 files are not listed in the manifest"],
    ),
    "a person deleted": (damaged("people", lambda t: t.iloc[1:]), [CHANGED.format("people.parquet")]),
    "a person with visits deleted, everything corrected": (
        forged("people", without_a_person_with_visits),
        ["the 'patient' of 'people' are not the numbers from 1 to 59", "of 'visits' have a 'patient' that nobody"],
    ),
    "the last person deleted, but not the drugs, everything corrected": (
        forged("people", lambda t: t.iloc[:-1]),
        ["have a 'patient' that nobody in 'people' has"],
    ),
    "a key repeated, everything corrected": (
        forged("people", first_again),
        ["1 rows of 'people' repeat a 'patient'"],
    ),
    "keys of visits shifted": (
        damaged("visits", lambda t: t.assign(patient=np.roll(t["patient"], 1))),
        [CHANGED.format("visits.parquet")],
    ),
    "keys of visits shifted, everything corrected": (
        forged("visits", lambda t: t.assign(patient=np.roll(t["patient"], 1))),
        ["the rows of 'visits' are not in the order of their people"],
    ),
    "a cell changed": (damaged("visits", with_other_first_cost), [CHANGED.format("visits.parquet")]),
    "a link dropped": (
        lambda own, _: without_link(own, corrected=False),
        ["manifest.json is damaged or incomplete: it does not say how its tables belong together"],
    ),
    "a link dropped, its digest corrected": (
        lambda own, _: without_link(own, corrected=True),
        ["it does not say how its tables belong together"],
    ),
    "the form of another side": (
        lambda own, _: edited(own, stage="anonymized"),
        ["its tables are not released in this form"],
    ),
    "parts, which could be a directory more": (
        lambda own, _: edited(own, parts={"rows_per_part": 30, "rows": [30, 30]}),
        ["its tables are not released in this form"],
    ),
    "a column of another table": (
        lambda own, _: with_column_of(own, "people: age", "visits"),
        ["the file 'people.parquet' does not have the recorded columns without an index"],
    ),
    "another order": (linked("visits", order=None), ["the tables as a whole do not have the recorded fingerprint"]),
    "lines of another release": (
        lambda own, other: shutil.copy(other / "lines.parquet", own / "lines.parquet"),
        [CHANGED.format("lines.parquet")],
    ),
    "lines left out": (lambda own, _: (own / "lines.parquet").unlink(), ["the file 'lines.parquet' is missing"]),
    "a price changed": (damaged("lines", lambda t: t.assign(price=t["price"] + 1)), [CHANGED.format("lines.parquet")]),
    "a visit with lines deleted": (damaged("visits", without_a_visit_with_lines), [CHANGED.format("visits.parquet")]),
    "a visit with lines deleted, everything corrected": (
        forged("visits", without_a_visit_with_lines),
        ["rows of 'lines' have a 'visit' that no row in 'visits' has", "the 'visit' of 'visits' are not the numbers"],
    ),
    "a visit repeated, everything corrected": (
        forged("visits", lambda t: pd.concat([t.head(1), t], ignore_index=True)),
        ["1 rows of 'visits' repeat a 'visit'"],
    ),
    "the last visits deleted without lines of theirs, everything corrected": (
        forged("visits", lambda t: t.assign(visit=t["visit"] + 1)),
        ["the 'visit' of 'visits' are not the numbers from 1 to "],
    ),
    "visits in another order, everything corrected": (
        forged("visits", lambda t: t.assign(visit=t["visit"].to_numpy()[::-1])),
        ["the 'visit' of 'visits' are not the numbers from 1 to "],
    ),
    "keys of lines shifted": (
        damaged("lines", lambda t: t.assign(visit=np.roll(t["visit"], 1))),
        [CHANGED.format("lines.parquet")],
    ),
    "keys of lines shifted, everything corrected": (
        forged("lines", lambda t: t.assign(visit=np.roll(t["visit"], 1))),
        ["the rows of 'lines' are not in the order of their 'visits'"],
    ),
    "lines of no visit, everything corrected": (
        forged("lines", lambda t: t.assign(visit=t["visit"].replace(t["visit"].max(), 10**6))),
        ["rows of 'lines' have a 'visit' that no row in 'visits' has"],
    ),
    "the link of lines dropped": (
        lambda own, _: without_link(own, corrected=True, name="lines"),
        ["it does not say how its tables belong together"],
    ),
    "another order of lines": (
        linked("lines", order=None),
        ["the tables as a whole do not have the recorded fingerprint"],
    ),
    "lines of people": (linked("lines", parent="people"), ["'people' has no 'visit'"]),
    "lines of people by their person, everything corrected": (
        forged_links(lines={"parent": "people", "key": "patient"}),
        ["'lines' has no 'patient'"],
    ),
    "lines of drugs": (linked("lines", parent="drugs"), ["the values of links are invalid"]),
    "lines of a table that is not there": (linked("lines", parent="x"), ["the values of links are invalid"]),
    "lines of themselves": (linked("lines", parent="lines", own_key="visit"), ["the values of links are invalid"]),
    "a third level": (linked("drugs", parent="lines", key="visit"), ["the values of links are invalid"]),
    "two parents": (linked("lines", parent=["visits", "people"]), ["the values of links are invalid"]),
    "no number of visits": (linked("visits", own_key=None), ["the values of links are invalid"]),
    "numbers of lines": (linked("lines", own_key="line"), ["rows of 'lines' repeat a 'line'"]),
}


def test_the_tables_are_one_release(released, capsys):
    found = verify_release(released[0], max_bytes=None)
    assert found.problems == ()
    assert (found.fingerprint, found.n_records) == (made(1).content, 60)
    assert verify_release(released[0]).problems == ()  # In a process of its own, too.
    for name, table in made(1).tables.items():
        pd.testing.assert_frame_equal(frames_of(released[0])[name], table)
    assert remake_report(released[0]).page
    n_visits, n_drugs, n_lines = (len(made(1).tables[name]) for name in ("visits", "drugs", "lines"))
    rows = f"{n_visits} rows of visits and {n_drugs} rows of drugs and {n_lines} rows of lines"
    assert found.records == f"60 synthetic people with {rows}"
    assert main(["verify", str(released[0])]) == 0
    assert f"has {found.records} with fingerprint {made(1).content}." in capsys.readouterr().out


@pytest.mark.parametrize("what", DAMAGES)
def test_every_damage_is_found(released, tmp_path, what):
    act, expected = DAMAGES[what]
    own = shutil.copytree(released[0], tmp_path / "own")
    act(own, released[1])
    found = verify_release(own, max_bytes=None).problems
    for each in expected:
        assert any(each in problem for problem in found), found


def test_a_table_that_differs_is_said_beside_the_whole(released, tmp_path):
    own = shutil.copytree(released[0], tmp_path / "own")
    write_as_is(own, "visits", with_other_first_cost)
    correct_everything(own)
    manifest = json.loads((own / "manifest.json").read_text())
    before = json.loads((released[0] / "manifest.json").read_text())
    write_manifest(own, manifest | {"fingerprint": before["fingerprint"], "tables": before["tables"]})
    assert verify_release(own, max_bytes=None).problems == (
        "the table 'visits' does not have the recorded fingerprint",
        "the tables as a whole do not have the recorded fingerprint",
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.take(np.arange(5, 60)), "are not the numbers from 1 to 55"),
        (lambda t: replace(t, people=t.people.iloc[::-1].reset_index(drop=True)), "are not the numbers from 1 to 60"),
        (
            lambda t: t.map(lambda name, own: own.iloc[::-1].reset_index(drop=True) if name == "lines" else own),
            "the rows of 'lines' are not in the order of their 'visits'",
        ),
        (
            lambda t: t.map(lambda name, own: own.assign(visit=own["visit"] + 1) if "visit" in own else own),
            "the 'visit' of 'visits' are not the numbers from 1 to ",
        ),
    ],
)
def test_tables_that_are_not_numbered_anew_are_never_written(tmp_path, change, message):
    tables = change(made(1))
    with pytest.raises(InvalidTableError, match=message):
        write_release(tmp_path / "r", tables, tables.content, RELATED_RECORD)
    assert not list((tmp_path / "r").glob("2*"))


def test_links_are_broken_by_what_a_slow_count_finds():
    rng = np.random.default_rng(5)
    n_broken = n_broken_below = 0
    for _ in range(200):
        people = pd.DataFrame({"id": rng.integers(1, 5, 4) if rng.random() < 0.5 else [1, 2, 3, 4]})
        keys = np.sort(rng.integers(1, 6, 3)) if rng.random() < 0.7 else rng.integers(1, 5, 3)
        rows = pd.DataFrame({"id": keys})
        links = {"rows": {"parent": "people", "key": "id"}}
        found = broken_links({"people": people, "rows": rows}, "id", links)
        own, of_rows = people["id"].tolist(), rows["id"].tolist()
        expected = own != [1, 2, 3, 4] or any(key not in own for key in of_rows) or of_rows != sorted(of_rows)
        assert bool(found) == expected
        n_broken += expected
        numbers = [1, 2, 3] if rng.random() < 0.6 else rng.integers(1, 4, 3).tolist()
        below = rng.integers(1, 4, 4) if rng.random() < 0.3 else np.sort(rng.integers(1, 5 if expected else 4, 4))
        tables = {"parts": pd.DataFrame({"nr": below}), "people": people, "rows": rows.assign(nr=numbers)}
        links = {"parts": {"parent": "rows", "key": "nr"}, "rows": {**links["rows"], "own_key": "nr"}}
        of_below = below.tolist()
        is_broken = numbers != [1, 2, 3] or not {*of_below} <= {*numbers} or of_below != sorted(of_below)
        assert bool(broken_links(tables, "id", links)) == (expected or is_broken)
        n_broken_below += is_broken and not expected
    assert 50 < n_broken < 200
    assert n_broken_below > 20


def test_the_content_is_that_of_all_tables_and_their_links():
    tables = made(1)
    same = RelatedTables.from_artifact(tables.to_artifact())
    assert same.content == tables.content == made(1).content
    others = [
        made(2),
        replace(tables, children={name: tables.children[name] for name in ("visits", "lines")}),
        replace(tables, children={**tables.children, "visits": replace(tables.children["visits"], order=None)}),
        tables.map(lambda name, table: table.iloc[:-1] if name == "drugs" else table),
        tables.map(lambda name, table: table.iloc[:-1] if name == "lines" else table),
        replace(tables, children={**tables.children, "lines": replace(tables.children["lines"], order=None)}),
    ]
    assert len({tables.content, *(each.content for each in others)}) == 7
