"""Source and contract of a release, drafted from a table in a file, in the storage of an asset, or from a query."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from textwrap import indent, wrap
from typing import Any, NamedTuple

import pandas as pd
from pydantic import BaseModel, Field

from privacy_assets.columns.safe_names import class_name, type_name
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.mapping import DECIDE, ONE_ROW_PER_PERSON
from privacy_assets.drafting.blocks import blocks_of_frame, open_table
from privacy_assets.drafting.draft import MOST_CELLS, ContractDraft, draft_of_blocks
from privacy_assets.drafting.yaml_text import entry_in_yaml
from privacy_assets.errors import InvalidSettingError, InvalidTableError, PrivacyAssetsError
from privacy_assets.orchestration.control_plans import forecast_sides
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.asked import Release
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.sources import SqlQuery, TableFile
from privacy_assets.orchestration.settings.synthetic import AUTO, Split, Synthesis
from privacy_assets.pipeline.forecast import Forecast
from privacy_assets.release.declaration import ALWAYS_STATED
from privacy_assets.release.policy import DECLARATION, Policy
from privacy_assets.setting_checks import local_path

DRAFTED_POLICY = "research_sharing"
POLICIES = "  # decide: or public_release, internal_analytics, development, high_risk_data"
TYPE = "privacy_assets.PrivacyReleaseComponent"
HEAD = """\
# Drafted from a table. `decide` marks what a person has to answer; a # at the start of a line is to be removed to use
# it. All settings and reasons: the same command with --all. Explained in docs/how-to-project.md.
"""
WIDTH = 110


class DraftParams(BaseModel):
    """The table that `dg scaffold` drafts a release from; by default it writes an example."""

    source: str | None = Field(
        default=None, description="CSV or Parquet file of the table, or the file that an asset stores."
    )
    query: str | None = Field(default=None, description="SELECT statement of the table, with url_variable.")
    url_variable: str | None = Field(
        default=None, description="Environment variable with the SQLAlchemy URL for the query."
    )
    asset: str | None = Field(
        default=None, description="Key of the asset that makes the table; source is the file that it stores."
    )
    all: bool = Field(default=False, description="Explain every setting, and give every reason in full.")


class Drafted(NamedTuple):
    """A table, its draft, and how a release writes where the table comes from; ``read`` takes a partition, None."""

    draft: ContractDraft
    source: dict[str, Any]
    read: Callable[[None], pd.DataFrame]


def drafted_table(params: Any, root: Path) -> Drafted | None:
    """Draft the contract of a table; None for an example. Relative paths start at ``root``."""
    params = params if isinstance(params, DraftParams) else DraftParams()
    if params.query is not None:
        if params.source is not None or params.asset is not None or params.url_variable is None:
            raise InvalidSettingError(
                "A release is drafted from a query with url_variable, without source and asset. Nothing was written."
            )
        return _of_query(params.query, params.url_variable)
    if params.source is not None and params.url_variable is None:
        found = drafted_file(params.source, root)
        return found if params.asset is None else found._replace(source={"asset": params.asset})
    if params.asset is not None or params.url_variable is not None:
        raise InvalidSettingError(
            "url_variable belongs to a query, and an asset needs the file that it stores as source. Nothing was "
            "written."
        )
    return None


def fields_in_yaml(
    source: Mapping[str, Any],
    draft: ContractDraft,
    forecasts: Mapping[str, Forecast],
    *,
    policy: str = DRAFTED_POLICY,
    brief: bool = True,
) -> dict[str, str]:
    """Return the fields of a release with a drafted contract: of both sides, those that can expect a yes.

    Each side follows its forecast, and is a comment without a yes; synthetic records are kept if neither has one.
    """
    is_none = not any(each.is_yes for each in forecasts.values())
    contract = indent(draft.to_yaml(brief=brief), "  ").rstrip()
    k = Policy.for_use_case(policy).people_per_class
    sides = {"synthetic": ("split", {"train_fraction": AUTO}), "anonymized": ("anonymized", {"k": k})}
    fields = {"source": entry_in_yaml("source", source), "policy": f"policy: {policy}{POLICIES}"}
    for side, forecast in forecasts.items():
        name, settings = sides[side]
        mark = "" if forecast.is_yes or (is_none and side == "synthetic") else "#"
        said = [f"# {line}" for line in wrap(forecast.sentence, WIDTH, break_on_hyphens=False)]
        fields[name] = "\n".join([*said, f"{mark}{entry_in_yaml(name, settings)}"])
    return fields | {
        "utility": "utility: {}",
        "declaration": _declaration(policy),
        "contract": f"contract:\n{contract}",
    }


def _declaration(policy: str) -> str:
    """Return the declaration to fill in: what a policy demands, or else a comment with what is usually declared."""
    demanded = DECLARATION.get(policy, ())
    if demanded:
        said = "declaration:  # decide: this policy demands these, and a release waits for them"
        return "\n".join([said, *(f"  {name}:" for name in demanded)])
    return "\n".join(["#declaration:", *(f"#  {name}:" for name in ALWAYS_STATED)])


def _without_forecast(why: str) -> dict[str, Forecast]:
    return {"synthetic": Forecast(why, is_yes=True)}


def planned_release(contract: TableContract, policy: str) -> ReleaseSettings:
    """Return a release of both sides, of which only forecasts and trials are made."""
    sides: dict[str, Any] = {"split": Split(AUTO), "synthetic": Synthesis()}
    if contract.columns_with_role("quasi_identifier"):
        sides["anonymized"] = AnonymizationSettings(k=Policy.for_use_case(policy).people_per_class)
    return ReleaseSettings.of(Release("draft", source=pd.DataFrame, contract=contract, policy=policy, **sides))


def forecast_of(table: Drafted, policy: str = DRAFTED_POLICY) -> dict[str, Forecast]:
    """Forecast the decision on a drafted table, by side, as if what is open were decided on the cautious side."""
    draft = table.draft
    if draft.n_rows * len(draft.columns) > MOST_CELLS:
        return _without_forecast("The table is too large for a forecast in a draft; the asset source has it.")
    columns = {}
    for each in draft.columns:
        own = {key: value for key, value in each.description.items() if value != DECIDE}
        columns[each.name] = {"role": "quasi_identifier"} | own
    unit = {} if draft.person is not None else {ONE_ROW_PER_PERSON: True}
    try:
        contract = TableContract.from_mapping({**unit, "columns": columns})
        return forecast_sides(planned_release(contract, policy), contract.admit(table.read(None)))
    except PrivacyAssetsError as error:
        return _without_forecast(f"There is no forecast before the contract is decided ({class_name(type(error))}).")


def drafted_file(source: str, root: Path) -> Drafted:
    """Draft the contract of a CSV or Parquet file, whose relative path starts at ``root``."""
    draft = draft_of_blocks(open_table(root / local_path(source, "source")))
    written: dict[str, Any] = {"file": source}
    if Path(source).suffix.removeprefix(".").lower() != draft.format:
        written["format"] = draft.format
    if draft.separator != ",":
        written["separator"] = draft.separator
    return Drafted(draft, written, TableFile(str(root / source), draft.format, draft.separator).read)


def _of_query(query: str, url_variable: str) -> Drafted:
    settings = SqlQuery(query, url_variable)
    table, problem = None, ""
    try:
        table = settings.read(None)
    except PrivacyAssetsError:
        raise
    except Exception as error:  # noqa: BLE001 (the text of a driver's error can contain cells)
        problem = type_name(error)
    if table is None:
        raise InvalidTableError(
            f"The query could not be run: {problem}. Run it in the database's own client, which shows the reason; the "
            "message is not shown here, because it may contain cells."
        )
    read = partial(_given, table)
    written = {"query": query, "url_variable": url_variable}
    return Drafted(draft_of_blocks(blocks_of_frame(table, "The result of the query")), written, read)


def _given(table: pd.DataFrame, _: None) -> pd.DataFrame:
    return table


def release_in_yaml(fields: Mapping[str, str], type_name: str = TYPE) -> str:
    """Return a whole release with the drafted fields."""
    body = "".join(f"  {line}\n" for field in fields.values() for line in field.splitlines())
    return f"{HEAD}type: {type_name}\n\nattributes:\n{body}"


def refuse_in_a_sentence(error: PrivacyAssetsError) -> Exception:
    """Return the error that `dg` shows as one sentence, without a traceback."""
    try:
        import click
    except ImportError:
        return error
    return click.ClickException(str(error))
