"""What the stages of a release need: a line in rows and columns, and less for cells that take less."""

import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.pipeline.memory_of_stages import BYTES_PER_CELL, CELL, Size, bytes_of, memory_needed

GIB = 2**30


@pytest.mark.parametrize(
    ("memory", "n_bytes"), [(None, None), ("16 GiB", 16 * GIB), ("1.5GiB", GIB * 3 // 2), ("300 MiB", 300 * 2**20)]
)
def test_memory_is_a_number_with_a_unit(memory, n_bytes):
    assert bytes_of(memory) == n_bytes


@pytest.mark.parametrize("memory", ["16", "16 GB", "-1 GiB", "GiB", 16, "", "0 GiB", "9" * 400 + " GiB", "\u0663 GiB"])
def test_other_texts_are_refused(memory):
    with pytest.raises(InvalidSettingError, match="such as 16 GiB. Nothing was admitted"):
        bytes_of(memory)


@pytest.mark.parametrize(("stage", "each"), BYTES_PER_CELL.items())
def test_a_stage_that_accepts_as_many_rows_needs_all_the_memory(stage, each):
    floor = 300 * 2**20
    table = pd.DataFrame({name: pd.Series(0.5, range(1_000)) for name in map(str, range(16))})
    needed = memory_needed(stage, Size.of(table), GIB)
    assert needed.expected == floor + 16_000 * each
    assert needed.rows_accepted * 16 * each <= GIB - floor < (needed.rows_accepted + 1) * 16 * each
    assert memory_needed(stage, Size.of(table), 100 * 2**20).rows_accepted == 0
    # Floats take more than the mean cell that was measured, booleans one byte.
    assert 1 < CELL < 8
    assert needed.at_least == needed.expected
    small = memory_needed(stage, Size.of(table > 0), GIB)
    assert small.expected == needed.expected
    assert small.at_least - floor == pytest.approx((needed.at_least - floor) / CELL)
    wide = memory_needed(stage, Size.of(pd.concat([table, table.add_prefix("x")], axis=1)), GIB)
    assert wide.at_least == needed.at_least
    assert wide.expected == floor + 32_000 * each
    narrow = memory_needed(stage, Size.of(table[["1", "2"]]), GIB)
    assert narrow.at_least == narrow.expected == floor + 2_000 * each
    assert memory_needed(stage, Size.of(table[:0]), GIB).at_least == floor
    assert memory_needed(stage, Size.of(table), GIB, 0.5).at_least == floor + 8_000 * each
    assert memory_needed(stage, Size.of(table), GIB, 0.0).at_least == 0
