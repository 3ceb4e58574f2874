"""The tables of rows that are released together with the people, and what releases with them do not have yet."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from privacy_assets.anonymization.one_table import UNLINKED, OneTable
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import PEOPLE
from privacy_assets.contract.related_contracts import Linked, RelatedContracts
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.sources import TableSource
from privacy_assets.orchestration.settings.spark_source import SparkSource
from privacy_assets.orchestration.settings.synthetic import AUTO, GivenSplit, Synthesis
from privacy_assets.setting_checks import REQUIRED, described, setting
from privacy_assets.storage.parquet_parts import ROWS_PER_PART

NOT_BUILT: Mapping[str, str] = {
    "generalize_synthetic": "coarsen columns before they are admitted",
    "assessment": "it is chosen for each view, and no limit depends on it",
    "options": "compare settings with the functions for notebooks",
    "privacy_budget": "no method with a budget makes related tables",
    "engine": "related tables are assessed in the run itself",
    "partitions_def": "make one release of all people",
}
"""Settings that cannot be given with `children`, and what to do."""


@described
@dataclass(frozen=True)
class ChildTable:
    """A table whose rows belong to the people of a release: visits, ratings, prescriptions."""

    source: TableSource = setting(REQUIRED, "Where its rows come from.", {"file": "data/visits.parquet"})
    contract: TableContract | str | Mapping[str, Any] = setting(
        REQUIRED,
        "Its contract, as that of the people, without a person: every column with its type and its privacy role.",
        {
            "columns": {
                "patient": {"type": "text", "role": "direct_identifier"},
                "date": {"type": "datetime", "role": "quasi_identifier"},
                "diagnosis": {"type": "text", "role": "sensitive"},
            }
        },
    )
    key: str = setting(
        REQUIRED,
        "Column of it and of the people by which rows belong to people (or of the child in `of`, to its rows): a "
        "direct_identifier in both contracts. Released keys are new numbers.",
        "patient",
    )
    order: str | None = setting(
        None,
        "Column of integers, floats or datetimes that orders the rows of a person; equal ones are allowed.",
        "date",
    )
    of: str = setting(
        PEOPLE,
        "Table to which its rows belong: people, or a child of the people, which has the key as its own_key.",
        PEOPLE,
    )
    own_key: str | None = setting(
        None,
        "Column that numbers its rows, if rows of another child belong to them: a direct_identifier in both contracts. "
        "Released numbers are new.",
        "visit",
    )
    anonymized: Mapping[str, Any] | None = setting(
        None,
        "What leaves of its rows with anonymized records. Either `aggregate`: figures of each column (rows stands for "
        "the rows), which become columns of the people: count, sum, mean, min, max, first, last, any; one, a list, or "
        "a mapping to their roles (by default sensitive; but for counts, quasi_identifier if the column is one), or to "
        "role, description, hierarchy, leaves_as_is, precision and scale. Or `unlinked`: the quasi-identifiers of the "
        "people with which the rows leave without a key.",
        {"aggregate": {"rows": {"count": "quasi_identifier"}, "cost": "sum"}},
        {"unlinked": ["age", "sex"]},
    )


def related_contracts(contract: TableContract, children: Mapping[str, ChildTable] | None) -> RelatedContracts | None:
    """Check the contracts of all tables together; None without children."""
    if children is None:
        return None
    if not isinstance(children, Mapping) or not all(isinstance(each, ChildTable) for each in children.values()):
        raise InvalidSettingError(
            "`children` must map names of tables to ChildTable(source=..., contract=..., key=...). Nothing was read."
        )
    linked = {
        name: Linked(each.contract, each.key, each.order, each.of, each.own_key) for name, each in children.items()
    }
    return RelatedContracts.of(contract, linked)


def one_table_of(asked: Any, related: RelatedContracts) -> OneTable | None:
    """Return how the tables become the one that is anonymized; None if none is."""
    forms = {name: own.anonymized for name, own in asked.children.items() if own.anonymized is not None}
    if asked.anonymized is not None:
        return OneTable.of(related, forms)
    if forms:
        raise InvalidSettingError(
            f"`children` of {asked.name!r} say what leaves of {list(forms)} with anonymized records, but there are "
            "none. Set anonymized=..., or leave it out. Nothing was read."
        )
    return None


def refuse_with_children(asked: Any) -> None:
    """Refuse all settings of a release that related tables do not have yet, with what to do."""
    problems = [f"`{name}`: {advice}" for name, advice in [*_given(asked), *_details(asked), *_of_synthesis(asked)]]
    if problems:
        raise InvalidSettingError(
            f"The release {asked.name!r} has `children`, with which these settings do not work yet "
            f"({len(problems)}): {'; '.join(problems)}. Leave them out. Nothing was read."
        )


def _given(asked: Any) -> Iterator[tuple[str, str]]:
    yield from ((name, advice) for name, advice in NOT_BUILT.items() if getattr(asked, name) is not None)
    sources = {
        "source": asked.source,
        **{f"children.{name}.source": own.source for name, own in asked.children.items()},
    }
    for name, source in sources.items():
        if isinstance(source, SparkSource):
            yield name, "a Spark source gives one table; write it to files first"
    if asked.source is None:
        yield "source", "it is missing; expected the table of people"


def _details(asked: Any) -> Iterator[tuple[str, str]]:
    if isinstance(asked.split, GivenSplit):
        yield "split.original and split.control", "give all tables, which are divided by person here"
    elif asked.split is not None and asked.split.train_fraction == AUTO:
        yield "split.train_fraction: auto", "write a number, such as 0.5"
    unlinked = any(
        isinstance(own.anonymized, Mapping) and UNLINKED in own.anonymized for own in asked.children.values()
    )
    if unlinked and asked.semantic_risk is not None and asked.semantic_risk.withhold:
        yield "semantic_risk.withhold", "people have several unlinked rows; anonymize figures of them (aggregate)"
    if "csv" in asked.formats:
        yield "formats: csv", "Parquet files keep types and keys; whoever needs CSV can convert them"
    if asked.rows_per_part != ROWS_PER_PART:
        yield "rows_per_part", "each table is one file"
    if asked.monitoring is not None and asked.monitoring.drift_limit is not None:
        yield "monitoring.drift_limit", "set it to null; drift is measured on one table"
    if asked.anonymized is not None and asked.anonymized.membership_control is not None:
        yield "anonymized.membership_control", "write `of: original`, whose control has rows"
    if asked.reidentification is not None and asked.reidentification.other_releases:
        yield "reidentification.other_releases", "their records have no rows"
    if asked.utility is not None and asked.utility.group is not None:
        yield "utility.group", "views are judged as a whole"
    for name in ("known", "sensitive", "quasi_identifiers"):
        if asked.disclosure is not None and getattr(asked.disclosure, name):
            yield f"disclosure.{name}", "all columns of all views are tested"


def _of_synthesis(asked: Any) -> Iterator[tuple[str, str]]:
    synthetic = asked.synthetic
    if synthetic is None:
        return
    if not isinstance(synthetic, Synthesis):
        yield "synthetic.external", "let an object with fit_related make the tables (method)"
    elif isinstance(synthetic.method, str) and synthetic.method != "smooth_cart":
        yield (
            f"synthetic.method: {synthetic.method}",
            "it learns one table, in which rows have no person; use smooth_cart, or an object with fit_related",
        )
    elif not isinstance(synthetic.method, str) and not hasattr(synthetic.method, "fit_related"):
        yield "synthetic.method", "the object has no fit_related(tables, *, seed), whose result has sample"
    elif synthetic.settings.get("group") is not None:
        yield "synthetic.settings.group", "people and rows are made in one order"
