"""Anonymization of a directory of Parquet files that does not fit into memory, part by part."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privacy_assets.anonymity.report import AnonymityReport
from privacy_assets.anonymity.verify import verify_coded
from privacy_assets.anonymization.anonymized_table import roles_of
from privacy_assets.anonymization.batches import anonymize_coded
from privacy_assets.anonymization.settings import (
    AnonymizeSettings,
    Bounds,
    ClosenessSetting,
    Criterion,
    DiversitySetting,
    Normalization,
    diversities,
    spread,
)
from privacy_assets.columns.masks import ReleaseModel, ValueSet, columns_of
from privacy_assets.contract.batches import BatchAdmission
from privacy_assets.contract.contract import TableContract
from privacy_assets.display.notebook import ShowsFigures
from privacy_assets.display.progress_bar import StageProgress, shows_progress
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import is_integer, local_path, require
from privacy_assets.storage.arrow_frames import as_frame
from privacy_assets.storage.coded_columns import CodedColumn, ColumnCoder
from privacy_assets.storage.durable_files import sync_directory, temporary_sibling
from privacy_assets.storage.fingerprint import BatchFingerprint
from privacy_assets.storage.memory import give_back_memory, memory_given_back, memory_of_the_system
from privacy_assets.storage.parquet_dataset import ROWS_PER_BATCH, ParquetDataset, open_parquet_dataset
from privacy_assets.storage.parquet_parts import ROWS_PER_PART, WrittenParts, write_parts

__all__ = ["AnonymizedDataset", "anonymize_dataset"]

NOTHING = "Nothing was anonymized."
ROWS_READ_BACK = 2**16


@dataclass(frozen=True, repr=False)
class AnonymizedDataset(ShowsFigures):
    """Result of `anonymize_dataset`; only its directory and its model may be released.

    Attributes
    ----------
    directory : Path
        The anonymized table, in parts. Only its owner can read it.
    rows : tuple of int
        Rows of each part, in the order of their names.
    fingerprint : str
        The fingerprint of the table.
    model : ReleaseModel
        How each released column constrains the original.
    anonymity : AnonymityReport
        What was measured on the parts as read back; it counts records.
    stats, settings : dict
        As in `Anonymization`.
    classes : DataFrame
        As in `Anonymization`.
    """

    main_figures = ("k", "n_released", "n_suppressed", "n_classes", "smallest_class", "information_loss")

    directory: Path
    rows: tuple[int, ...]
    fingerprint: str
    model: ReleaseModel
    anonymity: AnonymityReport
    stats: dict[str, Any]
    settings: dict[str, Any]
    classes: pd.DataFrame

    def _figures(self) -> Mapping[str, object]:
        return self.stats


@shows_progress
def anonymize_dataset(
    source: str | Path,
    directory: str | Path,
    contract: TableContract,
    *,
    k: int,
    criterion: Criterion = "gain",
    normalize: Normalization = "best",
    l_diversity: DiversitySetting = None,
    t_closeness: ClosenessSetting = None,
    max_suppression: float = 0.0,
    bounds: Bounds = "tight",
    seed: int = 0,
    rows_per_part: int = ROWS_PER_PART,
    n_threads: int | None = None,
    progress: Callable[[StageProgress], None] | None = None,
) -> AnonymizedDataset:
    """Anonymize the Parquet files in a directory, batch by batch, into Parquet files in another.

    The contract gives the roles: quasi-identifiers are generalized by `anonymize` with the method "mondrian", classes
    count people if there is a person column, and direct identifiers are removed. The rows are those that `anonymize`
    releases of the whole table, in the same order. They are written, read back, compared and measured, and then appear
    at once. No policy is applied: `build_release_definitions` does that.

    Parameters
    ----------
    source : str or Path
        A directory of Parquet files with one schema; directories in it named ``column=value`` are columns of text.
    directory : str or Path
        The new directory; it must not exist. While it is made, codes of the rows are stored next to it, in files
        without a name.
    contract : TableContract
        Its checks must decide on each value by itself.
    k, criterion, normalize, l_diversity, t_closeness, max_suppression, bounds, seed, n_threads, progress
        As in `anonymize`.
    rows_per_part : int
        Rows of each part; the last has the rest.

    Raises
    ------
    ContractError, InvalidTableError, InvalidSettingError
        If the table does not meet its contract or cannot be used, a setting is out of range, or a model cannot be
        satisfied. Nothing is left behind.

    Notes
    -----
    Memory: the codes are on disk, and the distinct values of each column in memory; see ``docs/scale.md``. Several
    continuous columns with a different value in each row therefore need as much memory as in a frame.
    """
    source, directory = local_path(source, "source"), local_path(directory, "directory")
    require(is_integer(rows_per_part, 1), "rows_per_part", rows_per_part, "a whole number of at least 1", NOTHING)
    if directory.exists():
        raise InvalidSettingError(f"{str(directory)!r} exists already. Expected a new directory. {NOTHING}")
    person = contract.person
    quasi_identifiers, sensitive, _ = roles_of(contract, person)
    settings = AnonymizeSettings(
        quasi_identifiers=quasi_identifiers,
        k=k,
        sensitive=sensitive,
        subject=person,
        direct_identifiers=(),
        criterion=criterion,
        normalize=normalize,
        l_diversity=diversities(l_diversity, sensitive),
        t_closeness=spread(t_closeness, sensitive, "t_closeness"),
        max_suppression=max_suppression,
        bounds=bounds,
        seed=seed,
    )
    settings.check()
    dataset = open_parquet_dataset(source)
    temporary = temporary_sibling(directory)
    try:
        with memory_of_the_system():
            columns = code_dataset(dataset, contract, directory.parent)
            give_back_memory()
            found = anonymize_coded(columns, settings, n_threads=n_threads, progress=progress, with_tree=False)
            del columns
            give_back_memory()
            written = write_parts(temporary, memory_given_back(found.batches(ROWS_PER_BATCH)), rows_per_part)
            # The rows and labels are freed before the parts are measured.
            model, stats, described, classes = found.model, found.stats, found.settings, found.classes
            del found
            give_back_memory()
            report = _measured_again(temporary, written, model, classes, stats, settings)
        temporary.rename(directory)
        sync_directory(directory.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return AnonymizedDataset(directory, written.rows, written.fingerprint, model, report, stats, described, classes)


def code_dataset(
    dataset: ParquetDataset, contract: TableContract, directory: Path, rows_per_batch: int = ROWS_PER_BATCH
) -> dict[str, CodedColumn]:
    """Admit a dataset by its contract and code its columns, batch by batch, in files in a directory."""
    admission = BatchAdmission(contract)
    is_broken = False
    with ColumnCoder(directory) as coder:
        for frame in memory_given_back(dataset.frames(rows_per_batch)):
            batch = admission.add(frame)
            # Values that could not be converted are missing, and a table with such values is refused at the end.
            is_broken = is_broken or admission.has_failures
            if not is_broken:
                coder.add(batch)
        admission.finish()
        return dict(coder.finish())


def _measured_again(
    directory: Path,
    written: WrittenParts,
    model: ReleaseModel,
    classes: pd.DataFrame,
    stats: Mapping[str, Any],
    settings: AnonymizeSettings,
) -> AnonymityReport:
    """Read the parts back, compare them with what was written, and measure them from outside."""
    dataset = open_parquet_dataset(directory)
    content = BatchFingerprint(dataset.schema)
    labels = [label for name in settings.quasi_identifiers for label in columns_of(model.masks[name])]
    measured = [*labels, *settings.sensitive]
    masks = [model.masks[name] for name in settings.quasi_identifiers]
    # Nearly every class may have a different set. If two sets had the same hash, there would be fewer classes.
    sets = [mask.column for mask in masks if isinstance(mask, ValueSet)]
    with ColumnCoder(directory.parent, hashed=sets) as coder:
        for batch in memory_given_back(dataset.batches(ROWS_READ_BACK)):
            content.update(batch)
            coder.add(as_frame(pa.Table.from_batches([batch.select(measured)])))
        columns = coder.finish()
    give_back_memory()
    report = verify_coded(columns, labels, settings.sensitive)
    sizes = np.sort(classes["rows"].to_numpy())
    is_same = (report.n_rows, report.n_classes, report.k) == (int(sizes.sum()), len(sizes), int(sizes[0]))
    if (
        content.hexdigest() != written.fingerprint
        or not is_same
        or any(
            report.sensitive[name].l_distinct != stats["sensitive"][name]["distinct_l"] for name in settings.sensitive
        )
    ):
        raise InvalidTableError(
            "The parts as read back differ from those that were written, or have other classes. Nothing was kept; "
            "check the disk, and anonymize again."
        )
    return report
