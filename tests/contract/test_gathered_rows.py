"""Rows that workers send in runs arrive whole, in one order, however they are cut; what does not arrive is refused."""

import errno
import os
import stat
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy_assets.contract import gathered_rows
from privacy_assets.contract.gathered_rows import N_RANGES, GatheredRows, SendRows
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


@given(st.lists(st.integers(0, 500), max_size=6), st.integers(1, 600), st.randoms(use_true_random=False))
def test_rows_are_the_same_however_they_are_cut(tmp_path_factory, cuts, rows_per_run, random):
    whole = gathered(sent([ROWS])).read(list(ROWS))
    bounds = [0, *sorted(cuts), 500]
    order = list(range(500))
    random.shuffle(order)
    frames = [ROWS.iloc[order[begin:end]] for begin, end in pairwise(bounds) if begin < end]
    staging = tmp_path_factory.mktemp("staging")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathered_rows, "ROWS_PER_RUN", rows_per_run)
        # Two workers, whose answers arrive in any order.
        answers = [*sent(frames[::2], staging), *sent(frames[1::2], staging)]
    random.shuffle(answers)
    rows = gathered(answers, staging)
    assert rows.columns == list(ROWS)
    pd.testing.assert_frame_equal(rows.read(list(ROWS)), whole)
    pd.testing.assert_frame_equal(rows.read(["when", "0"]), whole[["when", "0"]])
    # Against the rows that were sent, by a sort of their own.
    keys = [sorted(table.astype(str).fillna("missing").to_numpy().tolist()) for table in (whole, ROWS)]
    assert keys[0] == keys[1]


def test_the_order_is_that_of_the_named_columns_and_has_nothing_to_do_with_the_others():
    other = ROWS.assign(text=ROWS["text"].to_numpy()[::-1])
    first, second = (gathered(sent([table], ordered_by=("when", "0"))) for table in (ROWS, other))
    pd.testing.assert_frame_equal(first.read(["when", "0"]), second.read(["when", "0"]))


def test_a_run_has_a_batch_for_each_range_of_hashes(tmp_path):
    ((answer,),) = [sent([ROWS], tmp_path)]
    assert answer["rows"] is None
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pa.ipc.open_file(path.read_bytes()) as file:
        assert file.num_record_batches == N_RANGES
        batches = [file.get_batch(number) for number in range(N_RANGES)]
    assert sum(batch.num_rows for batch in batches) == 500
    width = 2**64 // N_RANGES
    for number, batch in enumerate(batches):
        assert {int(value) // width for value in batch.column(0).to_pylist()} <= {number}


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
        GatheredRows(tmp_path / "staging", None).add({"counts": b'{"run": "../secret.arrow"}', "rows": None})
