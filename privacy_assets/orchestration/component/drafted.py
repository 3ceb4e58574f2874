"""Source and contract of a release, drafted from a table in a file, in the storage of an asset, or from a query."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from privacy_assets.columns.safe_names import type_name
from privacy_assets.drafting.blocks import blocks_of_frame, open_table
from privacy_assets.drafting.draft import ContractDraft, draft_of_blocks
from privacy_assets.drafting.yaml_text import entry_in_yaml
from privacy_assets.errors import InvalidSettingError, InvalidTableError, PrivacyAssetsError
from privacy_assets.orchestration.settings.sources import SqlQuery
from privacy_assets.setting_checks import local_path


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
        draft, source = _of_query(params.query, params.url_variable)
    elif params.source is not None and params.url_variable is None:
        draft, source = _of_file(params.source, root)
        source = source if params.asset is None else {"asset": params.asset}
    elif params.asset is not None or params.url_variable is not None:
        raise InvalidSettingError(
            "url_variable belongs to a query, and an asset needs the file that it stores as source. Nothing was "
            "written."
        )
    else:
        return None
    return fields_in_yaml(source, draft), draft


def fields_in_yaml(source: Mapping[str, Any], draft: ContractDraft) -> dict[str, str]:
    """Return the fields of a release with a drafted contract."""
    contract = "".join(f"  {line}\n" for line in draft.to_yaml().splitlines())
    return {"source": entry_in_yaml("source", source), "contract": f"contract:\n{contract}".rstrip()}


def _of_file(source: str, root: Path) -> tuple[ContractDraft, dict[str, Any]]:
    draft = draft_of_blocks(open_table(root / local_path(source, "source")))
    written: dict[str, Any] = {"file": source}
    if Path(source).suffix.removeprefix(".").lower() != draft.format:
        written["format"] = draft.format
    if draft.separator != ",":
        written["separator"] = draft.separator
    return draft, written


def _of_query(query: str, url_variable: str) -> tuple[ContractDraft, dict[str, Any]]:
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
    return draft_of_blocks(blocks_of_frame(table, "The result of the query")), {
        "query": query,
        "url_variable": url_variable,
    }


def release_in_yaml(fields: Mapping[str, str]) -> str:
    """Return a whole release: the drafted fields and a policy."""
    body = "".join(f"  {line}\n" for field in fields.values() for line in field.splitlines())
    policy = (
        "  policy: research_sharing  # decide: or public_release, internal_analytics, development, high_risk_data\n"
    )
    return f"type: privacy_assets.PrivacyReleaseComponent\n\nattributes:\n{body}{policy}"


def refuse_in_a_sentence(error: PrivacyAssetsError) -> Exception:
    """Return the error that `dg` shows as one sentence, without a traceback."""
    try:
        import click
    except ImportError:
        return error
    return click.ClickException(str(error))
