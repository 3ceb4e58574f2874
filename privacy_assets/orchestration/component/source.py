"""How the source, the contract and the policy of a release are written in YAML."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeAlias

import dagster as dg
from pydantic import Field

from privacy_assets.contract.contract import TableContract, resolve_contract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.yaml_settings import (
    FUNCTION,
    Flag,
    Whole,
    Written,
    YamlSettings,
    import_path,
    written,
    written_as_one_of,
)
from privacy_assets.orchestration.settings.asked import EXAMPLE_COLUMNS
from privacy_assets.orchestration.settings.sources import SqlQuery, TableFile, UpstreamAsset
from privacy_assets.orchestration.settings.spark_source import FORMATS, SparkSource
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.policy import USE_CASES, Limit, Policy, RequiredSettings, resolve_policy
from privacy_assets.setting_checks import REQUIRED, setting

Role: TypeAlias = Literal["direct_identifier", "quasi_identifier", "sensitive", "other", "decide"]
UseCase: TypeAlias = Literal[tuple(USE_CASES)]  # type: ignore[valid-type]
MetricName: TypeAlias = Literal[tuple(METRICS)]  # type: ignore[valid-type]


@dataclass(frozen=True)
class _FunctionSource:
    """A table that a function returns."""

    function: Any = setting(
        REQUIRED,
        "Python path of a function that returns the table as a pandas DataFrame; its parameter partition_key, if it "
        "has one, receives the partition.",
        "my_project.tables:load_people",
    )


def _read_function(function: Any) -> Callable[..., Any]:
    found = import_path(function, "function") if isinstance(function, str) else function
    if not callable(found):
        raise InvalidSettingError(
            f"function is {function!r}, which is a {type(found).__name__}; expected a function that returns a "
            "DataFrame."
        )
    called: Callable[..., Any] = found
    return called


_FUNCTION = written(
    _FunctionSource,
    kinds={"function": Annotated[str | Callable[..., Any], dg.Resolver.default(model_field_type=str)]},
    read={"function": _read_function},
)
PLACES = {
    "file": "file",
    "query": "query",
    "spark_table": "spark",
    "spark_path": "spark",
    "asset": "asset",
    "function": "function",
}
"""Keys that select a kind of source, of which exactly one is given."""
COMPANIONS = {
    "format": ("file",),
    "separator": ("file",),
    "url_variable": ("query",),
    "spark_format": ("spark_path",),
    "spark_columns": ("spark_table", "spark_path"),
    "spark_remote": ("spark_table", "spark_path"),
    "io_manager_key": ("asset",),
}
"""Keys that need one of the keys above."""


def _place_of_table(given: Mapping[str, Any]) -> str:
    """Return the kind of source that is given."""
    places = [name for name in PLACES if name in given]
    stray = [(name, " or ".join(of)) for name, of in COMPANIONS.items() if name in given and not set(of) & set(places)]
    if len(places) != 1:
        found = str(places) if places else f"only {stray[0][0]}, which belongs to {stray[0][1]}" if stray else "nothing"
        *others, last = PLACES
        raise InvalidSettingError(
            f"A table comes from one of {', '.join(others)} and {last}; this one has {found}. Give one of them."
        )
    for name, of in stray:
        raise InvalidSettingError(f"{name} belongs to {of}, but the table comes from {places[0]}. Leave it out.")
    if "query" in given and "url_variable" not in given:
        raise InvalidSettingError(
            "A query needs url_variable: the name of the environment variable with the URL of the database."
        )
    return PLACES[places[0]]


ResolvedSource: TypeAlias = Annotated[
    TableFile | SqlQuery | SparkSource | UpstreamAsset | Callable[..., Any],
    written_as_one_of(
        "Source",
        "Where a table comes from: give one of file, query, spark_table, spark_path, asset and function.",
        _place_of_table,
        file=written(
            TableFile, names={"path": "file"}, kinds={"format": Literal["csv", "parquet"] | None, "separator": str}
        ),
        query=written(SqlQuery),
        spark=written(
            SparkSource,
            names={name: f"spark_{name}" for name in ("table", "path", "format", "columns", "remote")},
            kinds={"format": Literal[FORMATS]},
        ),
        asset=written(UpstreamAsset, names={"key": "asset"}, kinds={"key": str, "io_manager_key": str | None}),
        function=Written(FUNCTION, _FUNCTION.model, lambda given: _FUNCTION.make(given).function),
    ),
]


class ColumnYaml(YamlSettings):
    """One column of the contract."""

    type: str = Field(
        description="integer, float, boolean, text, category, datetime, or a dtype such as datetime64[us, "
        "Europe/Berlin].",
        examples=["integer"],
    )
    role: Role = Field(
        description="direct_identifier (removed before anything else), quasi_identifier (an outsider may know it about "
        "somebody), sensitive (must not become known about anybody), or other; decide marks a role that has "
        "to be decided before the contract is accepted.",
        examples=["quasi_identifier"],
    )
    nullable: Flag = Field(False, description="Whether values may be missing.", examples=[True])
    unique: Flag = Field(False, description="Whether each value may occur only once.", examples=[True])
    min: Any = Field(None, description="Smallest value.", examples=[0])
    max: Any = Field(None, description="Largest value.", examples=[120])
    categories: list[Any] | None = Field(
        None, description="The possible values.", examples=[["female", "male", "diverse"]]
    )
    ordered: Flag = Field(False, description="Whether the categories have an order.", examples=[True])
    precision: Whole | str | None = Field(
        None, description="Decimals of a float column, or unit of a datetime column (D, H, min, s).", examples=[2]
    )
    hierarchy: dict[str, Any] | None = Field(
        None,
        description="How the method lattice generalizes the column: one of intervals, prefixes, dates, tree, arx_csv.",
        examples=[{"intervals": [5, 10, 20]}],
    )
    scale: str | dict[str, Any] | None = Field(
        None,
        description="How semantic risk reads the column: nominal, ordinal, binary, generalized, or a mapping with "
        "ordinal, interval or hierarchy.",
        examples=["ordinal"],
    )
    person: Flag = Field(
        False,
        description="Whether the column numbers the people whose the rows are; several columns with it do so together.",
        examples=[True],
    )
    weight: Flag = Field(False, description="Whether the column is a survey weight: positive numbers.", examples=[True])
    not_a_person: str | None = Field(
        None,
        description="What the values of the column number although they repeat like people, and who decided: from 3 "
        "words to 500 characters, published with the release.",
        examples=["Schools of the pupils, checked by the data protection officer"],
    )
    links_rows: str | None = Field(
        None,
        description="Why the column may be released although it shows which rows are of one person, and who decided; "
        "the people are then counted for readers who know several rows of a person.",
        examples=["Needed to follow customers over time, decided by the data protection officer"],
    )
    part_of: str | None = Field(
        None,
        description="A name for the column that this one and others of its role are parts of, such as year, month and "
        "day: they are searched as one column.",
        examples=["birth_date"],
    )
    format: str | None = Field(
        None, description="How the datetimes are written, if not as ISO 8601: strftime codes.", examples=["%d.%m.%Y"]
    )
    decimal: Literal[".", ",", "decide"] | None = Field(
        None,
        description="Decimal mark of numbers written as text; their digits may be in groups of three.",
        examples=[","],
    )
    missing: list[str] | None = Field(
        None, description="Texts that mean a missing value, in addition to the empty text.", examples=[["NA"]]
    )
    description: str | None = Field(
        None, description="What the column is; the Dagster UI shows it.", examples=["Age in years at enrolment"]
    )
    leaves_as_is: str | None = Field(
        None,
        description="Why the column may be released unchanged although it looks identifying, and who decided: from 3 "
        "words to 500 characters, published with the release.",
        examples=["Names of public offices, checked by the data protection officer"],
    )
    invented: Flag = Field(
        False,
        description="Whether a generator invents the synthetic values, such as names: nobody knows them, and nobody "
        "needs to have them. It needs the reason leaves_as_is.",
        examples=[True],
    )


class ContractYaml(YamlSettings):
    """The table's contract: every column with its type and its privacy role."""

    columns: dict[str, ColumnYaml] = Field(
        description="Every column of the table; any other column is an error.", examples=[EXAMPLE_COLUMNS]
    )

    one_row_per_person: Flag = Field(
        False,
        description="Whether each person has one row. A contract has either this statement or a column that is the "
        "person.",
        examples=[True],
    )
    rules: dict[str, str | dict[str, Any]] | None = Field(
        None,
        description="Rules across columns, by name: a condition that no record may violate (names of columns, "
        "constants, comparisons, and, or, not, + - * /, in [...], missing(column)), or a mapping with expect, "
        "determines (two columns) or sum, equals and within; at_most is the share of the source that may violate it.",
        examples=[{"stay_is_ordered": "discharged >= admitted", "label": {"determines": ["code", "name"]}}],
    )
    drafted: Flag = Field(
        False,
        description="True in a contract that was drafted from a table: it is refused until somebody reviews the "
        "proposed roles and removes this line.",
        examples=[False],
    )

    def build(self) -> TableContract:
        """Return the contract."""
        columns = {name: column.given() for name, column in self.columns.items()}
        own: dict[str, Any] = {"one_row_per_person": self.one_row_per_person, "drafted": self.drafted}
        own |= {} if self.rules is None else {"rules": self.rules}
        return TableContract.from_mapping({"columns": columns} | own)


ResolvedContract: TypeAlias = Annotated[
    TableContract | str | Any, Written(object, ContractYaml, lambda given: given.build(), str, resolve_contract)
]


ResolvedLimit: TypeAlias = Annotated[Limit, written(Limit, kinds={"metric": MetricName})]
_REQUIRED = written(RequiredSettings)


def _given_required(model: YamlSettings) -> dict[str, Any]:
    """Return the fields that were written; the other fields are those of the use case."""
    RequiredSettings(**model.given())
    return model.given()


class PolicyYaml(YamlSettings):
    """The limits that a table must meet to be released."""

    use_case: UseCase | None = Field(
        None,
        description="Start from the limits of a use case: public_release, research_sharing, internal_analytics, "
        "development or high_risk_data.",
        examples=["research_sharing"],
    )
    limits: list[ResolvedLimit] = Field(
        default_factory=list,
        description="Limits in addition to those of the use case; each replaces its limit on the same metric, if any.",
        examples=[[{"metric": "verbatim_copies", "value": 0, "severity": "warn"}]],
    )
    required: Annotated[dict[str, Any], Written(dict, _REQUIRED.model, _given_required)] | None = Field(
        None,
        description="The settings that an mpUCC assessment must have for its figures to count, and what a release must "
        "have besides its figures.",
        examples=[{"max_baseline_cols": 4}],
    )
    known: list[list[str]] = Field(
        default_factory=list,
        description="Sets of columns that an attacker is assumed to know, for the limits on re-identification; by "
        "default all quasi-identifiers at once. `known` of `disclosure` must contain all of them.",
        examples=[[["age", "sex"]]],
    )
    known_rows: Annotated[int, Field(strict=True, ge=1)] | Literal["all"] | None = Field(
        None,
        description="Rows of a person that an attacker is assumed to know, a whole number from 1 or all, for the "
        "limits on re-identification; by default that of the use case, else all.",
        examples=[4],
    )

    def build(self) -> Policy:
        """Return the policy."""
        limits = tuple(self.limits)
        metrics = [limit.metric for limit in limits]
        repeated = sorted({metric for metric in metrics if metrics.count(metric) > 1})
        if repeated:
            raise InvalidSettingError(f"limits names a metric more than once: {repeated}. Keep one limit per metric.")
        required = self.required or {}
        own: dict[str, Any] = {"known": tuple(map(tuple, self.known))}
        own |= {} if self.known_rows is None else {"known_rows": self.known_rows}
        if self.use_case is None:
            return Policy(limits, RequiredSettings(**required), **own)
        policy = Policy.for_use_case(self.use_case).with_required(**required)
        for limit in limits:
            policy = policy.with_limit(limit)
        return replace(policy, **own)


ResolvedPolicy: TypeAlias = Annotated[
    Policy | UseCase | Any, Written(object, PolicyYaml, lambda given: given.build(), UseCase, resolve_policy)
]
