"""Source and contract of a release, drafted from a table in a file, in the storage of an asset, or from a query."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, Field

from privacy_assets.columns.safe_names import class_name, type_name
from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.mapping import DECIDE, ONE_ROW_PER_PERSON
from privacy_assets.drafting.blocks import blocks_of_frame, open_table
from privacy_assets.drafting.draft import MOST_CELLS, ContractDraft, draft_of_blocks
from privacy_assets.drafting.yaml_text import entry_in_yaml
from privacy_assets.errors import InvalidSettingError, InvalidTableError, PrivacyAssetsError
from privacy_assets.orchestration.control_plans import plan_metadata
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.asked import Release
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.sources import SqlQuery, TableFile
from privacy_assets.orchestration.settings.synthetic import AUTO, Split, Synthesis
from privacy_assets.release.policy import DECLARATION, Policy
from privacy_assets.setting_checks import local_path

DRAFTED_POLICY = "research_sharing"
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


def drafted_fields(params: Any, root: Path) -> tuple[dict[str, str], ContractDraft] | None:
    """Return `source` and `contract` in YAML, and the draft; None for an example. Relative paths start at ``root``."""
    params = params if isinstance(params, DraftParams) else DraftParams()
    if params.query is not None:
        if params.source is not None or params.asset is not None or params.url_variable is None:
            raise InvalidSettingError(
                "A release is drafted from a query with url_variable, without source and asset. Nothing was written."
            )
        draft, source, read = _of_query(params.query, params.url_variable)
    elif params.source is not None and params.url_variable is None:
        draft, source, read = _of_file(params.source, root)
        source = source if params.asset is None else {"asset": params.asset}
    elif params.asset is not None or params.url_variable is not None:
        raise InvalidSettingError(
            "url_variable belongs to a query, and an asset needs the file that it stores as source. Nothing was "
            "written."
        )
    else:
        return None
    return fields_in_yaml(source, draft, _forecast(draft, read)), draft


def fields_in_yaml(source: Mapping[str, Any], draft: ContractDraft, forecast: Sequence[str] = ()) -> dict[str, str]:
    """Return the fields of a release with a drafted contract, and the split with a forecast."""
    contract = "".join(f"  {line}\n" for line in draft.to_yaml().splitlines())
    lines = [line for each in forecast for line in textwrap.wrap(each, WIDTH, break_on_hyphens=False)]
    return {
        "source": entry_in_yaml("source", source),
        "contract": f"contract:\n{contract}".rstrip(),
        "split": "\n".join([*(f"# {line}" for line in lines), entry_in_yaml("split", {"train_fraction": AUTO})]),
    }


def _forecast(draft: ContractDraft, read: Callable[[None], pd.DataFrame]) -> list[str]:
    """Forecast the decision on a drafted table, as if what is open were decided on the cautious side."""
    if draft.n_rows * len(draft.columns) > MOST_CELLS:
        return ["The table is too large for a forecast in a draft; the metadata of the asset source has it."]
    columns = {}
    for each in draft.columns:
        own = {key: value for key, value in each.description.items() if value != DECIDE}
        columns[each.name] = {"role": "quasi_identifier"} | own
    unit = {} if draft.person is not None else {ONE_ROW_PER_PERSON: True}
    try:
        contract = TableContract.from_mapping({**unit, "columns": columns})
        sides: dict[str, Any] = {"split": Split(AUTO), "synthetic": Synthesis()}
        if contract.columns_with_role("quasi_identifier"):
            sides["anonymized"] = AnonymizationSettings(k=Policy.for_use_case(DRAFTED_POLICY).people_per_class)
        asked = Release("draft", source=partial(read, None), contract=contract, policy=DRAFTED_POLICY, **sides)
        release = ReleaseSettings.of(asked)
        said = plan_metadata(release, contract.admit(read(None)))
    except PrivacyAssetsError as error:
        return [f"There is no forecast before the contract is decided ({class_name(type(error))})."]
    return [str(said[name]) for name in ("forecast", "forecast_anonymized") if name in said]


def _of_file(source: str, root: Path) -> tuple[ContractDraft, dict[str, Any], Callable[[None], pd.DataFrame]]:
    draft = draft_of_blocks(open_table(root / local_path(source, "source")))
    written: dict[str, Any] = {"file": source}
    if Path(source).suffix.removeprefix(".").lower() != draft.format:
        written["format"] = draft.format
    if draft.separator != ",":
        written["separator"] = draft.separator
    return draft, written, TableFile(str(root / source), draft.format, draft.separator).read


def _of_query(query: str, url_variable: str) -> tuple[ContractDraft, dict[str, Any], Callable[[None], pd.DataFrame]]:
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
    return draft_of_blocks(blocks_of_frame(table, "The result of the query")), written, read


def _given(table: pd.DataFrame, _: None) -> pd.DataFrame:
    return table


def release_in_yaml(fields: Mapping[str, str]) -> str:
    """Return a whole release: the drafted fields and a policy."""
    body = "".join(f"  {line}\n" for field in fields.values() for line in field.splitlines())
    policy = (
        f"  policy: {DRAFTED_POLICY}  # decide: or public_release, internal_analytics, development, high_risk_data\n"
    )
    demanded = "".join(f"    {name}:\n" for name in DECLARATION[DRAFTED_POLICY])
    declaration = f"  declaration:  # decide: this policy demands these, and a release waits for them\n{demanded}"
    return f"type: privacy_assets.PrivacyReleaseComponent\n\nattributes:\n{body}{policy}{declaration}"


def refuse_in_a_sentence(error: PrivacyAssetsError) -> Exception:
    """Return the error that `dg` shows as one sentence, without a traceback."""
    try:
        import click
    except ImportError:
        return error
    return click.ClickException(str(error))
