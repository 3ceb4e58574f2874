"""Columns in files without names."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from privacy_assets.storage.column_files import ColumnFiles
from privacy_assets.storage.memory import memory_of_the_system


@pytest.mark.parametrize("name", ["number", "text"])
def test_a_file_that_is_read_whole_is_in_the_memory_of_the_system(tmp_path, name):
    """What Arrow allocates by itself it keeps, and a step has to give it back."""
    columns = {"number": np.arange(200_000), "text": [f"person {each}" for each in range(200_000)]}
    files = ColumnFiles(tmp_path)
    files.add(pd.DataFrame({name: columns[name]}))
    own = pa.mimalloc_memory_pool() if "mimalloc" in pa.supported_memory_backends() else pa.default_memory_pool()
    with memory_of_the_system():
        before = own.bytes_allocated()
        ((columns_of_file, names),) = files._by_file([name])
        batches = list(columns_of_file.batches(names))
        assert sum(batch.nbytes for batch in batches) >= 1_600_000
        assert own.bytes_allocated() == before
