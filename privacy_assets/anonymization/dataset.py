"""Anonymization of a directory of Parquet files, a few columns at a time."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from privacy_assets.anonymity.report import AnonymityReport, ClassSizes
from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import anonymize_with
from privacy_assets.anonymization.anonymized_table import roles_of
from privacy_assets.anonymization.result import Anonymization
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
from privacy_assets.columns.masks import ReleaseModel, columns_of
from privacy_assets.contract.column_admission import admit_parquet
from privacy_assets.contract.contract import TableContract
from privacy_assets.display.notebook import ShowsFigures
from privacy_assets.display.progress_bar import StageProgress, shows_progress
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import is_integer, local_path, require
from privacy_assets.storage.durable_files import sync_directory, temporary_sibling
from privacy_assets.storage.memory import give_back_memory, memory_of_the_system
from privacy_assets.storage.parquet_dataset import open_parquet_dataset
from privacy_assets.storage.parquet_parts import ROWS_PER_PART, WrittenParts, write_parts
from privacy_assets.storage.table import StoredTable, batches_of, fingerprint_of

__all__ = ["AnonymizedDataset", "anonymize_dataset"]

NOTHING = "Nothing was anonymized."


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
        What was measured on these rows; it counts records.
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
    """Anonymize the Parquet files in a directory, a few columns at a time, into Parquet files in another.

    The contract gives the roles: quasi-identifiers are generalized by `anonymize` with the method "mondrian", classes
    count people if there is a person column, and direct identifiers are removed. The rows are those that `anonymize`
    releases of the whole table, in the same order. They are measured, written, read back and compared, and then appear
    at once. No policy is applied: `build_release_definitions` does that.

    Parameters
    ----------
    source : str or Path
        A directory of Parquet files with one schema; directories in it named ``column=value`` are columns of text.
    directory : str or Path
        The new directory; it must not exist. While it is made, columns are stored next to it, in files without a name.
    contract : TableContract
        With checks of the whole table, or more than 256 columns, the table is read into memory.
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
    Memory: a few columns at a time, codes of the quasi-identifiers, and all columns that leave as they are; see
    ``docs/scale.md``.
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
            table = admit_parquet(contract, dataset, directory.parent, progress).table
            give_back_memory()
            found = anonymize_with(table, settings, n_threads=n_threads, progress=progress, directory=directory.parent)
            found = replace(found, tree=None, members=pd.DataFrame())  # Neither is needed any more.
            del table
            give_back_memory()
            report = _measured(found)
            give_back_memory()
            written = write_parts(temporary, batches_of(found.table, list(found.table.columns)), rows_per_part)
            _require_same(temporary, written, found)
        temporary.rename(directory)
        sync_directory(directory.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return AnonymizedDataset(
        directory, written.rows, written.fingerprint, found.model, report, found.stats, found.settings, found.classes
    )


def _measured(found: Anonymization) -> AnonymityReport:
    """Measure the rows to release from outside, and compare them with what the anonymization says of them."""
    names, sensitive = found.settings["quasi_identifiers"], found.settings["sensitive"]
    labels = [label for name in names for label in columns_of(found.model.masks[name])]
    report = verify_anonymity(found.table, labels, sensitive)
    sizes = found.classes["rows"].to_numpy()
    is_same = (report.n_classes, report.class_sizes) == (len(sizes), ClassSizes.of(sizes))
    stated = found.stats["sensitive"]
    if not is_same or any(report.sensitive[name].l_distinct != stated[name]["distinct_l"] for name in sensitive):
        raise InvalidTableError(
            "The anonymized rows have other classes than those that were made. Nothing was kept; check the disk, and "
            "anonymize again."
        )
    return report


def _require_same(directory: Path, written: WrittenParts, found: Anonymization) -> None:
    """Read the parts back, and compare them with the rows that were measured."""
    with ExitStack() as stack:
        parts = StoredTable([stack.enter_context((directory / name).open("rb")) for name in written.names])
    if not parts.fingerprint == written.fingerprint == fingerprint_of(found.table):
        raise InvalidTableError(
            "The parts as read back differ from the rows that were measured. Nothing was kept; check the disk, and "
            "anonymize again."
        )
