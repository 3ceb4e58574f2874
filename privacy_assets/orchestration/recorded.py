"""What Dagster recorded when an asset was last materialized."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import DATA_VERSION_IS_USER_PROVIDED_TAG, DATA_VERSION_TAG

MADE_WITH = "privacy_assets/made_with"
MADE_OF = "privacy_assets/made_of"


class Recorded:
    """The latest materialization of an asset, or of one of its partitions, as the instance knows it.

    Attributes
    ----------
    version : str or None
        Its data version; None when it was never materialized.
    version_is_content : bool
        Whether the asset gave the version itself, as ours do: then it is the digest of what was stored.
    run_id : str or None
        The run that made it; None when it was reported by hand, or the instance does not know the run.
    made_of : dict of str to str
        Fingerprints of the tables that it was made of, by stage. Dagster's own record of input versions leaves
        partitions out.
    made_with : dict
        Settings that it was made with.
    """

    def __init__(self, instance: dg.DagsterInstance, key: dg.AssetKey, partition_key: str | None) -> None:
        wanted = key if partition_key is None else dg.AssetRecordsFilter(key, asset_partitions=[partition_key])
        records = instance.fetch_materializations(wanted, limit=1).records
        materialization = records[0].asset_materialization if records else None
        tags: Mapping[str, str] = (materialization.tags if materialization else None) or {}
        self.version = tags.get(DATA_VERSION_TAG)
        self.version_is_content = tags.get(DATA_VERSION_IS_USER_PROVIDED_TAG) == "true"
        # A materialization that was reported by hand has no run; a forged run id is of no run that the instance knows.
        run_id = records[0].run_id if records else None
        self.run_id = run_id if run_id and instance.has_run(run_id) else None
        metadata = materialization.metadata if materialization else {}
        self.made_of: dict[str, str] = _json(metadata.get(MADE_OF)) or {}
        self.made_with: Any = _json(metadata.get(MADE_WITH))


def _json(value: dg.MetadataValue[Any] | None) -> Any:
    return value.value if isinstance(value, dg.JsonMetadataValue) else None
