"""Work that is no table: a function of a number, called once on a worker for each of some numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
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


def run_tasks(engine: Engine, function: Callable[[int], Any], numbers: Sequence[int]) -> list[Any]:
    """Call a function with each of some different numbers, about one a task, and return its JSON values in their order.

    It is a function of a module, or a frozen dataclass with ``__call__``, which the workers import.
    """
    # Spark would read a few codes in a file by one task.
    of_one = replace(engine, rows_per_task=1, staging=None) if isinstance(engine, SparkEngine) else engine
    with of_one.place({"number": np.array(numbers, np.int64)}) as batches:
        found = of_one.collect(of_one.map(batches, _Answers(function), ANSWERS))
    answers = dict(zip(found.column("number").to_pylist(), found.column("answer").to_pylist(), strict=True))
    return [json.loads(answers[number]) for number in numbers]
