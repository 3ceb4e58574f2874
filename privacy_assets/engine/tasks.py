"""Work that is no table: a function of a number, called once on a worker for each of some numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from privacy_assets.engine.protocol import Engine
from privacy_assets.engine.spark import SparkEngine

ANSWERS = pa.schema([("number", pa.int64()), ("answer", pa.string())])


@dataclass(frozen=True)
class _Answers:
    function: Callable[[int], Any]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = batch.column("number").to_pylist()
            answers = [json.dumps(self.function(number)) for number in numbers]
            yield pa.RecordBatch.from_arrays(
                [pa.array(numbers, pa.int64()), pa.array(answers, pa.string())], schema=ANSWERS
            )


@contextmanager
def tasks_on(engine: Engine) -> Iterator[Callable[[Callable[[int], Any], Sequence[int]], list[Any]]]:
    """Yield what calls a function with each of some different numbers, about one a task; its JSON values are in order.

    It is a function of a module, or a frozen dataclass with ``__call__``, which the workers import.
    """
    if isinstance(engine, SparkEngine):
        # Spark would read a few codes in a file by one task.
        with replace(engine, rows_per_task=1, staging=None).opened() as opened:
            yield partial(_run, opened)
    else:
        yield partial(_run, engine)


def _run(engine: Engine, function: Callable[[int], Any], numbers: Sequence[int]) -> list[Any]:
    with engine.place({"number": np.array(numbers, np.int64)}) as batches:
        found = engine.collect(engine.map(batches, _Answers(function), ANSWERS)).sort_by("number")
    return [json.loads(answer) for answer in found.column("answer").to_pylist()]
