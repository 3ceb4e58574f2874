"""Rows that workers send in runs arrive whole, in one order, however they are cut; what does not arrive is refused."""

import errno
import os
import resource
import stat
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.contract import gathered_rows
from privacy_assets.contract.gathered_rows import N_HASHES, GatheredRows, SendRows
from privacy_assets.errors import EngineError

ROWS = pd.DataFrame(
    {
        "0": pd.array(np.arange(500) % 7, "Int64"),
        "text": pd.array([None if row % 5 == 0 else f"SENTINEL{row % 11}" for row in range(500)], "str"),
        "kind": pd.Categorical.from_codes(np.arange(500) % 3 - 1, ["SENTINEL b", "SENTINEL a"]),
        "when": pd.date_range("2020-01-01", periods=500, freq="D", tz="Europe/Berlin").as_unit("us"),
    }
)


def sent(frames, staging=None, ordered_by=tuple(ROWS)):
    """The answers of a worker with these rows."""
    return [answer for batch in SendRows(staging, ordered_by)(iter(frames)) for answer in batch.to_pylist()]


def gathered(answers, staging=None, directory=None):
    rows = GatheredRows(staging, directory)
    assert [rows.add(answer) for answer in answers] == [None] * len(answers)
    return rows


@given(
    st.lists(st.integers(0, 500), max_size=6),
    st.integers(1, 40_000),
    st.integers(1, 600),
    st.randoms(use_true_random=False),
)
def test_rows_are_the_same_however_they_are_cut(tmp_path_factory, cuts, bytes_per_run, rows_per_range, random):
    whole = gathered(sent([ROWS])).read(list(ROWS))
    bounds = [0, *sorted(cuts), 500]
    order = list(range(500))
    random.shuffle(order)
    frames = [ROWS.iloc[order[begin:end]] for begin, end in pairwise(bounds) if begin < end]
    staging = tmp_path_factory.mktemp("staging")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathered_rows, "BYTES_PER_RUN", bytes_per_run)
        patch.setattr(gathered_rows, "ROWS_PER_RANGE", rows_per_range)
        # Two workers, whose answers arrive in any order.
        answers = [*sent(frames[::2], staging), *sent(frames[1::2], staging)]
        random.shuffle(answers)
        rows = gathered(answers, staging)
        assert rows.columns == list(ROWS)
        pd.testing.assert_frame_equal(rows.read(list(ROWS)), whole)
        pd.testing.assert_frame_equal(rows.read(["when", "0"]), whole[["when", "0"]])
        rows.require(500)
    # Against the rows that were sent, by a sort of their own.
    keys = [sorted(table.astype(str).fillna("missing").to_numpy().tolist()) for table in (whole, ROWS)]
    assert keys[0] == keys[1]


def test_the_order_is_that_of_the_named_columns_and_has_nothing_to_do_with_the_others():
    other = ROWS.assign(text=ROWS["text"].to_numpy()[::-1])
    first, second = (gathered(sent([table], ordered_by=("when", "0"))) for table in (ROWS, other))
    pd.testing.assert_frame_equal(first.read(["when", "0"]), second.read(["when", "0"]))


def test_only_the_owner_of_the_directory_can_read_a_run_which_is_in_order(tmp_path):
    if os.geteuid() == 0:
        os.chown(tmp_path, 12345, 12345)
    (answer,) = sent([ROWS], tmp_path)
    assert answer["rows"] is None
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_uid == tmp_path.stat().st_uid
    with pa.ipc.open_file(path.read_bytes()) as file:
        run = file.read_all()
    hashes = list(zip(*(run.column(place).to_pylist() for place in range(N_HASHES)), strict=True))
    assert hashes == sorted(hashes)
    assert len(set(hashes)) > 400


def test_equal_texts_take_little_of_what_passes_through_a_server():
    texts = pd.DataFrame({f"column {place}": pd.array(["a longer text", "b"] * 5_000, "str") for place in range(10)})
    (answer,) = sent([texts], ordered_by=tuple(texts))
    assert len(answer["rows"]) < 0.1 * pa.Table.from_pandas(texts).nbytes


def test_runs_may_be_more_than_the_files_that_a_process_may_open(tmp_path):
    frames = [ROWS.iloc[[row]] for row in range(300)]
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = os.dup(0)
    os.close(spare)
    answers = [answer for frame in frames for answer in sent([frame], tmp_path)]
    assert len(answers) == 300
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare + 50, before[1]))
    try:
        staged = gathered(answers, tmp_path).read(list(ROWS))
        returned = gathered(sent(frames), None, tmp_path).read(list(ROWS))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    pd.testing.assert_frame_equal(staged, returned)
    pd.testing.assert_frame_equal(staged, gathered(sent([ROWS.iloc[:300]])).read(list(ROWS)))


def test_missing_rows_and_runs_with_other_columns_are_refused(tmp_path):
    first, second = sent([ROWS.iloc[:200]]), sent([ROWS.iloc[200:]])
    gathered([*first, *second]).require(500)
    for answers in (first, [*first, *second, *second]):
        with pytest.raises(EngineError, match="rows are missing"):
            gathered(answers).require(500)
    other = sent([ROWS.iloc[200:][list(ROWS)[::-1]]])
    with pytest.raises(EngineError, match="did not arrive from the workers"):
        gathered([*first, *other]).read(["0"])


def test_many_rows_pass_through_a_server_in_short_runs_and_through_the_directory_in_long_ones(tmp_path):
    frames = [ROWS.iloc[begin : begin + 100] for begin in range(0, 500, 100)]
    assert len(sent(frames)) == 5
    assert len(sent(frames, tmp_path)) == 1
    assert not sent([])


def test_without_rows_there_are_no_columns():
    rows = gathered([])
    assert rows.columns == []
    assert rows.read([]).shape == (0, 0)


@pytest.mark.parametrize("failure", ["full", "not there", "gone", "cut off", "another file"])
def test_rows_that_do_not_arrive_are_refused_without_a_value(tmp_path, monkeypatch, failure):
    if failure == "full":

        def full(*_, **__):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "SENTINEL")

        monkeypatch.setattr(gathered_rows, "_write", full)
    answers = sent([ROWS], tmp_path / "elsewhere" if failure == "not there" else tmp_path)
    for path in tmp_path.iterdir():
        if failure == "gone":
            path.unlink()
        elif failure == "cut off":
            os.truncate(path, path.stat().st_size // 2)
        elif failure == "another file":
            path.write_bytes(b"SENTINEL" * 100)
    reasons = {"full": "No space left on device", "cut off": "Arrow", "another file": "Arrow"}
    with pytest.raises(EngineError, match=reasons.get(failure, "No such file or directory")) as raised:
        gathered(answers, tmp_path).read(["0"])
    assert "did not arrive" in str(raised.value)
    assert "SENTINEL" not in str(raised.value)
    assert raised.value.__context__ is None


def test_a_worker_cannot_name_a_file_elsewhere(tmp_path):
    (tmp_path / "staging").mkdir()
    (tmp_path / "secret.arrow").write_bytes(b"")
    with pytest.raises(EngineError, match="No such file"):
        gathered([{"counts": b'{"run": "../secret.arrow"}', "rows": None}], tmp_path / "staging").read(["0"])
