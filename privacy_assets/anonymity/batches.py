"""Measurement of the protection of a table that was coded batch by batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from privacy_assets.anonymity.kernels.measures import LARGEST_RECURSIVE_L, group_by_class
from privacy_assets.anonymity.report import AnonymityReport
from privacy_assets.anonymity.verify import MeasuredColumn, measure_codes
from privacy_assets.columns.coding import group_rows
from privacy_assets.storage.coded_columns import CodedColumn, unload


def verify_coded(
    columns: Mapping[str, CodedColumn],
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str] = (),
    *,
    subject: str | None = None,
    recursive_l: int = LARGEST_RECURSIVE_L,
) -> AnonymityReport:
    """Measure a table as `verify_anonymity` does the same table in a frame; names and a row are not checked here."""
    labels = [columns[name] for name in quasi_identifiers]
    values = {name: _measured(columns[name], name) for name in (*sensitive, *([] if subject is None else [subject]))}
    grouped = group_rows([column.codes for column in labels], [len(column.distinct) for column in labels])
    for column in labels:
        unload(column.codes)
    classes = group_by_class(*grouped)
    del grouped
    return measure_codes(classes, values, tuple(quasi_identifiers), subject, recursive_l)


def _measured(column: CodedColumn, name: str) -> MeasuredColumn:
    """Read the distinct values, and give each row the code of its value."""
    read = MeasuredColumn.read(column.distinct, f"Column {name!r}")
    return replace(read, values=replace(read.values, codes=column.translated(read.values.codes.astype(np.int32))))
