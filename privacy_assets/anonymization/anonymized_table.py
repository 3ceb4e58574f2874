"""An anonymized table as its reader has it: its columns, its measures and whether it meets the contract.

The gate applies this to the exact table that would be released. From the step that made it, the gate only uses which
source record each row is.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from privacy_assets.anonymity.kernels.measures import LARGEST_RECURSIVE_L
from privacy_assets.anonymity.links import Codes, Link, find_links, groups_of
from privacy_assets.anonymity.report import AnonymityReport
from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.measured_loss import mean_loss
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.anonymization.settings import LDiversity
from privacy_assets.columns.masks import Interval, ReleaseModel, ValueSet, columns_of
from privacy_assets.columns.spelling import factorize_keys
from privacy_assets.contract.batches import BatchAdmission, checks_of_all_rows
from privacy_assets.contract.contract import TableContract
from privacy_assets.display.numbers import against
from privacy_assets.engine.protocol import Engine
from privacy_assets.errors import ContractError, InvalidTableError
from privacy_assets.storage.fingerprint import fingerprint
from privacy_assets.storage.table import Table, batches_of, has_missing, select_columns, with_column


class Roles(NamedTuple):
    """Columns of a contract by their role in an anonymization."""

    quasi_identifiers: tuple[str, ...]
    sensitive: tuple[str, ...]
    subject: str | None


def roles_of(contract: TableContract, subject: str | None) -> Roles:
    """Return the released quasi-identifiers and sensitive columns, and the person column."""
    released = set(contract.released_columns)
    return Roles(
        tuple(name for name in contract.columns_with_role("quasi_identifier") if name in released),
        tuple(name for name in contract.columns_with_role("sensitive") if name in released),
        subject,
    )


def columns_telling_of(name: str, model: ReleaseModel) -> tuple[str, ...]:
    """Return the released columns of a generalized quasi-identifier, its label first."""
    mask = model.masks[name]
    return (name, *columns_of(mask)) if isinstance(mask, Interval | ValueSet) else (name,)


def measure_anonymity(
    anonymization: Anonymization,
    contract: TableContract,
    made_of: Table,
    subject: str | None,
    losses: Mapping[str, float] | None = None,
    engine: Engine | None = None,
) -> tuple[AnonymityReport, dict[str, float | None]]:
    """Measure the protection of the released table, its ``suppressed_share`` and ``information_loss``.

    Every released column counts as known to an attacker unless it is sensitive or other in the current contract.
    Without ``losses``, by `require_measured`, the information loss is unknown. A table that cannot be measured, or does
    not fit its description, is refused.
    """
    table, members, stats = anonymization.table, anonymization.members, anonymization.stats
    if not len(members) == len(table) == stats["n_released"] or len(made_of) != stats["n_rows"]:
        raise InvalidTableError(
            "The number of rows of the anonymized table differs from its description. Materialize it again."
        )
    # By origin, not only by name: a label column may have the name of another column of the contract.
    labels = set(labels_of(anonymization))
    sensitive = [name for name in table.columns if name not in labels and contract.roles.get(name) == "sensitive"]
    spared = [name for name in table.columns if name not in labels and contract.roles.get(name) == "other"]
    others = {*sensitive, *spared}
    known = [name for name in table.columns if name not in others]
    if subject is not None:
        if subject not in made_of.columns:
            raise InvalidTableError(
                "The table that was anonymized lacks the person column, which the contract requires. Materialize from "
                "the source on."
            )
        whose = _people_of_rows(anonymization, made_of, subject)
        while subject in table.columns:
            subject += "_"
        table = with_column(table, subject, whose)
    asked = anonymization.settings["l_diversity"].values()
    recursive_l = max([LARGEST_RECURSIVE_L, *(int(own["least"]) for own in asked if own["kind"] == "recursive")])
    report = verify_anonymity(table, known, sensitive, subject=subject, recursive_l=recursive_l, engine=engine)
    statistics = {
        "suppressed_share": (len(made_of) - len(table)) / len(made_of),
        "information_loss": None if losses is None else mean_loss(losses),
    }
    return report, statistics


def links_of(anonymization: Anonymization, contract: TableContract, made_of: Table, k: int) -> tuple[Link, ...]:
    """Find released values that show which rows are of one person; none if each row is a person."""
    if contract.person is None:
        return ()
    linking = list(contract.links_rows)
    return find_links(
        anonymization.table, _people_of_rows(anonymization, made_of, contract.person).to_numpy(), k, linking
    )


def links_if_people(
    anonymization: Anonymization, contract: TableContract, made_of: Table, k: int
) -> dict[str, tuple[Link, ...]]:
    """Find links as if each column that the contract calls no person numbered the people.

    Only values that are released unchanged are compared: a quasi-identifier hides people among k, and it may show their
    school or place, which number no people if the contract is right.
    """
    labels, rows = labels_of(anonymization), anonymization.members["row"].to_numpy()
    unchanged = select_columns(anonymization.table, [name for name in anonymization.table if name not in labels])
    people = {name: factorize_keys(made_of[name])[rows] for name in contract.not_a_person if name in made_of.columns}
    return {name: find_links(unchanged, own, k, list(contract.links_rows)) for name, own in people.items()}


def linking_columns(anonymization: Anonymization, contract: TableContract) -> list[str]:
    """Return the released columns that may link the rows of a person."""
    linking = contract.links_rows
    return [name for name in anonymization.table.columns if name in linking]


def groups_of_linked_rows(anonymization: Anonymization, contract: TableContract, made_of: Table, k: int) -> Codes:
    """Return the groups of released rows that columns with ``links_rows`` show to be of one person."""
    if contract.person is None:
        return np.arange(len(anonymization.table))
    found = [link for link in links_of(anonymization, contract, made_of, k) if link.is_found]
    links = [link for link in found if link.is_among(contract.links_rows)]
    person = _people_of_rows(anonymization, made_of, contract.person).to_numpy()
    return groups_of(anonymization.table, links, person, k)


def _people_of_rows(anonymization: Anonymization, made_of: Table, subject: str) -> pd.Series[Any]:
    """Return the person of each row of the anonymized table; numbers of people in 32 bits if these are enough."""
    people = made_of[subject]
    if people.dtype != np.int64:
        return people.take(anonymization.members["row"].to_numpy()).reset_index(drop=True)
    fits = len(people) > 0 and people.min() >= -1 << 31 and people.max() < 1 << 31
    numbers = people.to_numpy().astype(np.int32 if fits else np.int64, copy=False)
    del people
    return pd.Series(numbers[anonymization.members["row"].to_numpy()], copy=False)


def models_that_fail(anonymization: Anonymization, report: AnonymityReport) -> list[str]:
    """Return a sentence with the figures for each requirement on classes that the measurements fail."""
    settings = anonymization.settings
    smallest = report.k if settings["subject"] is None else report.k_people
    failed = []
    if smallest is None or smallest < settings["k"]:
        unit = "records" if settings["subject"] is None else "people"
        failed.append(f"the smallest class has {smallest} {unit}, expected at least {settings['k']}")
    for column, asked in settings["l_diversity"].items():
        found = _diversity(report, column, LDiversity(**asked))
        if found is not None:
            failed.append(f"{found} in column {column!r}")
    for column, limit in settings["t_closeness"].items():
        distance = report.sensitive[column].t
        # The kernel and the report sum the same shares in different orders.
        if distance > limit + 1e-9:
            shown, expected = against(distance, limit)
            failed.append(f"the distance is {shown}, expected at most {expected}, in column {column!r}")
    return failed


def keeps_the_contract(
    anonymization: Anonymization, contract: TableContract, made_of: Table, subject: str | None
) -> bool:
    """Return whether the table fits the current contract: its roles, its columns, and the values it was made from."""
    settings = anonymization.settings
    released = list(contract.released_columns)
    roles = roles_of(contract, subject)
    asked = Roles(tuple(settings["quasi_identifiers"]), tuple(settings["sensitive"]), settings["subject"])
    if asked != roles or set(made_of.columns) != {*released, *([] if subject is None else [subject])}:
        return False
    expected = [
        column
        for name in released
        for column in (columns_telling_of(name, anonymization.model) if name in roles.quasi_identifiers else (name,))
    ]
    if list(anonymization.table.columns) != expected:
        return False
    try:
        if made_of.empty or checks_of_all_rows(contract):
            kept = made_of[released]
            return fingerprint(contract.admit_synthetic(kept)) == fingerprint(kept)
        admission = BatchAdmission(contract)
        is_same = all(fingerprint(admission.check(own)) == fingerprint(own) for own in batches_of(made_of, released))
        # What is not released is not there.
        failures = [*admission.losses(), *admission.check_failures()]
        return is_same and not any(name in released for name, _, _ in failures)
    except (ContractError, InvalidTableError):
        return False


def describe_columns(anonymization: Anonymization, contract: TableContract) -> list[dict[str, Any]]:
    """Describe the released columns for the manifest; generalized ones name their original column."""
    described = {each["column"]: each for each in contract.describe()}
    tells_of = labels_of(anonymization)
    return [
        dict(described[column])
        if column not in tells_of
        else {
            "column": column,
            "type": str(anonymization.table.dtypes[column]),
            "role": "quasi_identifier",
            "nullable": has_missing(anonymization.table, column),
            "generalizes": tells_of[column],
        }
        for column in anonymization.table.columns
    ]


def original_columns(anonymization: Anonymization) -> dict[str, str]:
    """Return the column that each released column comes from."""
    labels = labels_of(anonymization)
    return {name: labels.get(name, name) for name in anonymization.table.columns}


def labels_of(anonymization: Anonymization) -> dict[str, str]:
    """Return the quasi-identifier of each label column."""
    return {
        column: name
        for name in anonymization.settings["quasi_identifiers"]
        for column in columns_telling_of(name, anonymization.model)
    }


def _diversity(report: AnonymityReport, column: str, asked: LDiversity) -> str | None:
    own = report.sensitive[column]
    if asked.kind == "recursive":
        name = f"recursive ({asked.c:g}, {asked.least:g})-diversity"
        largest_l = max(own.l_recursive_c, default=1)
        if largest_l < asked.least <= own.l_distinct:
            return f"{name} cannot be verified, because l was only measured up to {largest_l},"
        worst = own.alpha if asked.least == 1 else own.l_recursive_c.get(int(asked.least), inf)
        return None if worst < asked.c else f"{name} is not satisfied"
    found = own.l_entropy if asked.kind == "entropy" else own.l_distinct
    # Entropies of equal shares differ from log(l) in their last bits.
    if found >= asked.least - 1e-9:
        return None
    shown, expected = against(found, asked.least)
    return f"{asked.kind} l is {shown}, expected at least {expected}"
