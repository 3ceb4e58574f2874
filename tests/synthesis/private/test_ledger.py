"""A budget that cannot be reset: what was spent stays on record, whatever happens to the process or the file."""

import json
import os
import signal
import sys
import threading
import warnings

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.cli import main
from privacy_assets.errors import InvalidSettingError, PrivacyBudgetError
from privacy_assets.storage import durable_files
from privacy_assets.storage.durable_files import locked
from privacy_assets.synthesis.private import ledger as ledger_module
from privacy_assets.synthesis.private import spending as witness_module
from privacy_assets.synthesis.private.accounting import epsilon_of, rho_of
from privacy_assets.synthesis.private.ledger import PrivacyLedger
from privacy_assets.synthesis.private.mst import Mst
from tests.examples import examples
from tests.extras import NEEDS_DP
from tests.synthesis.private.test_mst import domain, records

DELTA = 1e-6
ONE = rho_of(1.0, DELTA)


def ledger_in(directory, population="people"):
    return PrivacyLedger(directory / "privacy_budget", population)


def reserve(ledger, rho=ONE, at_most=3.0, **others):
    given_ = {"release": "a", "run_id": "run", "made_of": "x", "epsilon": 1.0, "delta": DELTA, "total_delta": DELTA}
    return ledger.reserve(rho=rho, at_most=at_most, **{**given_, **others})


def test_seven_fits_of_epsilon_one_stay_within_three(tmp_path):
    ledger = ledger_in(tmp_path)
    for number in range(1, 8):
        assert reserve(ledger).number == number
    assert 2.5 < ledger.epsilon(DELTA) <= 3
    with pytest.raises(PrivacyBudgetError, match=r"7 fits have spent epsilon 2\.87 .* nothing was spent") as refused:
        reserve(ledger)
    assert "at most 3 is allowed" in str(refused.value)
    assert len(ledger.entries()) == 7


def test_releases_and_partitions_of_a_population_add_up_and_others_do_not(tmp_path):
    ledger = ledger_in(tmp_path)
    reserve(ledger, release="a", partition="2024")
    reserve(ledger, release="b", partition="2025")
    reserve(ledger_in(tmp_path, "others"), made_of="y")
    assert ledger.rho() == pytest.approx(2 * ONE, abs=1e-15)
    assert ledger_in(tmp_path, "others").rho() == pytest.approx(ONE, abs=1e-15)
    with pytest.raises(PrivacyBudgetError, match="used up"):
        reserve(ledger, at_most=epsilon_of(3 * ONE, DELTA) * 0.999)


def test_the_file_is_private(tmp_path):
    ledger = ledger_in(tmp_path)
    reserve(ledger)
    assert ledger.path.stat().st_mode & 0o777 == 0o600
    assert ledger.directory.stat().st_mode & 0o777 == 0o700
    assert ledger.witness_path.stat().st_mode & 0o777 == 0o600
    assert ledger.witness_path.parent.stat().st_mode & 0o777 == 0o700
    assert ledger.witness_path.parent != ledger.directory


@pytest.fixture
def spent(tmp_path):
    ledger = ledger_in(tmp_path)
    return ledger, [reserve(ledger, run_id=f"run {number}").digest for number in range(4)]


def kept(ledger):
    """Return the ledger and its witness, as a backup of both has them."""
    return {path: path.read_bytes() for path in (ledger.path, ledger.witness_path)}


def restore(backup):
    for path, content in backup.items():
        path.write_bytes(content)


def cut(ledger, n_kept):
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    ledger.path.write_bytes(b"".join(lines[:n_kept]))


def test_a_deleted_ledger_is_refused(spent):
    ledger, _ = spent
    ledger.path.unlink()
    for ask in (lambda: reserve(ledger), lambda: ledger.require_known(())):
        with pytest.raises(PrivacyBudgetError, match=r"has 0 fits, and its witness knows of 4: .* was deleted, cut"):
            ask()
    assert not ledger.path.exists()


@pytest.mark.parametrize("n_kept", [0, 1, 3])
def test_a_ledger_that_was_cut_is_refused(spent, n_kept):
    ledger, _ = spent
    cut(ledger, n_kept)
    for ask in (lambda: reserve(ledger), lambda: ledger.require_known(())):
        with pytest.raises(PrivacyBudgetError, match=f"has {n_kept} fits, and its witness knows of 4"):
            ask()
    assert len(ledger.entries()) == n_kept


def test_a_ledger_without_its_witness_is_refused(spent):
    ledger, digests = spent
    ledger.witness_path.unlink()
    for ask in (lambda: reserve(ledger), lambda: ledger.require_known(())):
        with pytest.raises(PrivacyBudgetError, match=r"has 4 fits, and its witness .* is missing"):
            ask()
    cut(ledger, 2)
    with pytest.raises(PrivacyBudgetError, match="lacks 2 fits"):
        ledger.require_known(digests)


def test_a_ledger_and_a_witness_that_are_both_gone_are_missed_by_others(spent):
    ledger, digests = spent
    ledger.path.unlink()
    ledger.witness_path.unlink()
    with pytest.raises(PrivacyBudgetError, match=r"lacks 4 fits .* older copy"):
        reserve(ledger, expected=digests)
    assert not ledger.path.exists()


def test_an_older_copy_of_both_is_refused_by_who_knows_more(tmp_path):
    ledger = ledger_in(tmp_path)
    reserve(ledger)
    backup = kept(ledger)
    later = reserve(ledger, run_id="later")
    restore(backup)
    with pytest.raises(PrivacyBudgetError, match="lacks 1 fits"):
        reserve(ledger, expected=[later.digest])
    # Continuing the older copy where nobody knew more does not hide the later fit.
    reserve(ledger)
    with pytest.raises(PrivacyBudgetError, match="lacks 1 fits"):
        ledger.require_known([later.digest])


def test_an_older_copy_of_the_ledger_that_was_continued_elsewhere_is_refused(spent, tmp_path):
    ledger, _ = spent
    other = ledger_in(tmp_path / "elsewhere")
    for number in range(5):
        reserve(other, run_id=f"other run {number}")
    ledger.path.write_bytes(other.path.read_bytes())
    with pytest.raises(PrivacyBudgetError, match="its witness knows another entry"):
        reserve(ledger)


def test_an_older_witness_is_refused_until_the_newest_is_restored(tmp_path):
    ledger = ledger_in(tmp_path)
    reserve(ledger)
    older = ledger.witness_path.read_bytes()
    reserve(ledger)
    newest = ledger.witness_path.read_bytes()
    ledger.witness_path.write_bytes(older)
    with pytest.raises(PrivacyBudgetError, match="knows of 1 fits, and the ledger has 2: .* by an older copy"):
        reserve(ledger)
    ledger.witness_path.write_bytes(newest)
    assert reserve(ledger).number == 3


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_any_edit_of_the_witness_is_found(tmp_path_factory, data):
    ledger = ledger_in(tmp_path_factory.mktemp("edited"))
    reserve(ledger)
    cut_to = data.draw(st.sampled_from([0, 1]))
    cut(ledger, cut_to)
    content = bytearray(ledger.witness_path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 2))] = data.draw(st.sampled_from(b'x"{9}1'))
    changed = bytes(content) != ledger.witness_path.read_bytes()
    ledger.witness_path.write_bytes(bytes(content))
    if changed or not cut_to:
        with pytest.raises(PrivacyBudgetError, match="witness"):
            reserve(ledger)
    else:
        assert reserve(ledger).number == 2


def stopped_between(ledger, monkeypatch, **others):
    """Reserve a fit in a process that ends after the witness, and before the ledger has it."""

    class EndedError(Exception):
        pass

    def end(*_):
        raise EndedError

    with monkeypatch.context() as patched:
        patched.setattr(PrivacyLedger, "_append", end)
        with pytest.raises(EndedError):
            reserve(ledger, **others)


@pytest.mark.parametrize("n_before", [0, 2])
def test_a_fit_that_only_the_witness_has_counts_as_spent(tmp_path, monkeypatch, capsys, n_before):
    ledger = ledger_in(tmp_path)
    for _ in range(n_before):
        reserve(ledger)
    stopped_between(ledger, monkeypatch, run_id="killed")
    assert len(ledger.entries()) == n_before
    assert [entry.run_id for entry in ledger.require_known(())] == ["run"] * n_before + ["killed"]
    assert main(["budget", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"people: {n_before + 1} fit" in said
    assert (
        f"Fit {n_before + 1} was reserved, but its process ended before writing it to the ledger. It counts as" in said
    )
    with pytest.raises(PrivacyBudgetError, match=f"used up: {n_before + 1} fits have spent"):
        reserve(ledger, at_most=epsilon_of((n_before + 2) * ONE, DELTA) * 0.999)
    assert reserve(ledger).number == n_before + 2
    assert [entry.run_id for entry in ledger.entries()] == ["run"] * n_before + ["killed", "run"]
    assert len(ledger.require_known(())) == n_before + 2


def test_the_same_records_have_one_population(tmp_path, monkeypatch):
    town = ledger_in(tmp_path, "town")
    reserve(town, made_of="records", sources=["table"])
    again = reserve(town, made_of="other records", sources=["table"])
    assert again.number == 2
    others = ledger_in(tmp_path, "others")
    for tables in ({"made_of": "records"}, {"made_of": "split again", "sources": ["table"]}):
        with pytest.raises(PrivacyBudgetError, match=r"to the privacy budget of 'town', .* 'others' as well: .* Set"):
            reserve(others, **tables)
    assert not others.path.exists()
    assert not others.witness_path.exists()
    assert reserve(others, made_of="people of elsewhere").number == 1
    # What one of the two files knows is enough, also of a fit whose process ended.
    town.path.unlink()
    with pytest.raises(PrivacyBudgetError, match="'town'"):
        reserve(others, made_of="records")
    third = ledger_in(tmp_path, "third")
    stopped_between(third, monkeypatch, made_of="new records")
    with pytest.raises(PrivacyBudgetError, match="'third'"):
        reserve(others, made_of="new records")


def test_a_damaged_ledger_of_another_population_is_not_taken_for_an_empty_one(tmp_path):
    town = ledger_in(tmp_path, "town")
    reserve(town, made_of="records")
    town.witness_path.unlink()
    town.path.write_bytes(b"damaged\n")
    with pytest.raises(PrivacyBudgetError, match="ledger of the privacy budget of 'town' cannot be trusted"):
        reserve(ledger_in(tmp_path, "others"), made_of="records")


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_any_edit_of_an_entry_is_found(tmp_path_factory, data):
    ledger = ledger_in(tmp_path_factory.mktemp("edited"))
    digests = [reserve(ledger, run_id=f"run {number}").digest for number in range(3)]
    lines = [json.loads(line) for line in ledger.path.read_text().splitlines()]
    how = data.draw(st.sampled_from(["value", "remove", "swap", "repeat", "bytes"]))
    place = data.draw(st.integers(0, 2))
    if how == "value":
        name = data.draw(st.sampled_from(sorted(lines[0])))
        new = data.draw(st.one_of(st.none(), st.integers(), st.text(max_size=3), st.floats(allow_nan=False)))
        if lines[place][name] == new and type(lines[place][name]) is type(new):
            return
        lines[place][name] = new
    elif how == "remove":
        del lines[place]
    elif how == "swap":
        other = (place + 1) % 3
        lines[place], lines[other] = lines[other], lines[place]
    elif how == "repeat":
        lines.insert(place, lines[place])
    text = "".join(json.dumps(line) + "\n" for line in lines)
    if how == "bytes":
        at = data.draw(st.integers(0, len(text) - 1))
        new = data.draw(st.sampled_from('x"{\n9'))
        text = text[:at] + new + text[at + 1 :]
        if text == "".join(json.dumps(line) + "\n" for line in lines):
            return
    ledger.path.write_text(text)
    try:
        known = ledger.require_known(digests)
    except PrivacyBudgetError:
        return
    # White space and spellings of the same number, such as 1 for 1.0, change nothing.
    assert [entry.digest for entry in known] == digests
    assert ledger.rho() == pytest.approx(3 * ONE, abs=1e-15)


def test_a_link_is_not_followed(tmp_path, spent):
    ledger, _ = spent
    elsewhere = tmp_path / "elsewhere.jsonl"
    ledger.path.rename(elsewhere)
    ledger.path.symlink_to(elsewhere)
    with pytest.raises(PrivacyBudgetError, match="ledger .* cannot be read"):
        reserve(ledger)
    elsewhere.rename(ledger.path)
    ledger.witness_path.rename(elsewhere)
    ledger.witness_path.symlink_to(elsewhere)
    with pytest.raises(PrivacyBudgetError, match="witness .* cannot be read"):
        reserve(ledger)


@pytest.mark.parametrize("which", ["path", "witness_path"])
def test_a_directory_in_place_of_a_file_is_refused(spent, which):
    ledger, _ = spent
    place = getattr(ledger, which)
    place.unlink()
    place.mkdir()
    with pytest.raises(PrivacyBudgetError, match="cannot be read"):
        reserve(ledger)


def test_the_command_names_a_ledger_of_which_only_the_witness_is_left(spent, capsys):
    ledger, _ = spent
    ledger.path.unlink()
    assert main(["budget", str(ledger.directory.parent)]) == 1
    assert "'people' has 0 fits, and its witness knows of 4" in capsys.readouterr().out


def test_a_line_that_was_being_written_is_no_fit(spent):
    ledger, digests = spent
    with ledger.path.open("ab") as file:
        file.write(b'{"number": 5, "at": "2')
    assert [entry.digest for entry in ledger.entries()] == digests
    assert reserve(ledger, expected=digests).number == 5
    assert len(ledger.entries()) == 5


@pytest.mark.parametrize("population", ["", "..", "a/b", "a b", "x" * 65, None, 3, "é"])
def test_names_of_populations_cannot_leave_the_directory(tmp_path, population):
    with pytest.raises(InvalidSettingError, match="population"):
        PrivacyLedger(tmp_path, population)


def in_child(work):
    """Run a function in a process of its own; return its exit status."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads of the test process do not matter here
        child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def test_a_second_run_waits_for_the_first(tmp_path):
    ledger = ledger_in(tmp_path)
    reserve(ledger)
    done = threading.Event()

    def second():
        reserve(ledger)
        done.set()

    with locked(ledger.directory):
        thread = threading.Thread(target=second)
        thread.start()
        assert not done.wait(0.3)
        assert len(ledger.entries()) == 1
    thread.join(30)
    assert done.is_set()
    assert len(ledger.entries()) == 2


def test_runs_at_once_never_spend_more_than_there_is(tmp_path):
    ledger = ledger_in(tmp_path)
    children = [in_child(lambda: reserve(ledger)) for _ in range(12)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert sorted(codes) == [0] * 7 + [1] * 5
    assert len(ledger.entries()) == 7
    assert ledger.epsilon(DELTA) <= 3


@NEEDS_DP
def test_a_killed_run_never_leaves_a_fit_without_a_record(tmp_path):
    """Kill a fit after every so many lines of the ledger and of the fit, at 50 places."""
    synthesizer, table = Mst(domain(), 1.0, DELTA), records(200)

    class Watched(pd.DataFrame):
        def __getitem__(self, key):
            (tmp_path / "touched").write_text("")
            return super().__getitem__(key)

    watched = Watched(table)
    modules = (ledger_module, witness_module, sys.modules[Mst.__module__], json, durable_files)
    files = {module.__file__ for module in modules}

    def fit(directory, kill_after):
        ledger, n_lines = ledger_in(directory), 0

        def trace(frame, event, argument):
            nonlocal n_lines
            if frame.f_code.co_filename not in files:
                return None
            n_lines += 1
            if n_lines == kill_after:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        def charge(rho):
            reserve(ledger, rho=rho)
            if kill_after is None:
                (tmp_path / "reserved").write_text(str(n_lines))

        sys.settrace(trace)
        synthesizer.fit(watched, charge=charge)
        sys.settrace(None)
        (tmp_path / "lines").write_text(str(n_lines))

    os.waitpid(in_child(lambda: fit(tmp_path / "whole", None)), 0)
    n_lines, n_reserved = (int((tmp_path / name).read_text()) for name in ("lines", "reserved"))
    assert n_lines > n_reserved > 50
    seen = set()
    for place in range(50):
        (tmp_path / "touched").unlink(missing_ok=True)
        directory = tmp_path / str(place)
        # Most places are within the reservation, of which the last lines matter most; the others are in the fit.
        kill_after = n_reserved * place // 20 if place < 20 else n_reserved - 20 + place - 20
        kill_after = max(1, kill_after) if place < 40 else n_reserved + (n_lines - n_reserved) * (place - 39) // 14
        status = os.waitpid(in_child(lambda where=directory, when=kill_after: fit(where, when)), 0)[1]
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        ledger = ledger_in(directory)
        touched, n_recorded = (tmp_path / "touched").exists(), len(ledger.entries())
        n_spent = len(ledger.require_known(()))
        assert n_recorded == 1 or not touched
        assert reserve(ledger).number == n_spent + 1
        assert len(ledger.entries()) == n_spent + 1
        seen.add((touched, n_recorded, n_spent))
    assert seen == {(False, 0, 0), (False, 0, 1), (False, 1, 1), (True, 1, 1)}


def test_the_command_shows_what_was_spent(tmp_path, spent, capsys):
    ledger, _ = spent
    reserve(ledger_in(tmp_path, "others"), release="b", partition="2024", made_of="y")
    assert main(["budget", str(tmp_path), "--delta", "1e-6"]) == 0
    said = capsys.readouterr().out
    assert "people: 4 fits, epsilon 2.1" in said
    assert "others: 1 fit, epsilon 1 at delta 1e-06" in said
    assert "partition 2024" in said
    assert main(["budget", str(tmp_path), "--population", "others"]) == 0
    assert "people" not in capsys.readouterr().out
    ledger.path.write_bytes(ledger.path.read_bytes().replace(b"run 1", b"run 9"))
    assert main(["budget", str(tmp_path)]) == 1
    assert "cannot be trusted: entry 2 was changed" in capsys.readouterr().out
    assert main(["budget", str(tmp_path / "nothing")]) == 1
    assert "no ledger" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["budget", str(tmp_path), "--delta", "2"])
