"""The comparison of candidate releases as an asset: on demand, and upstream of nothing."""

from typing import Any

import dagster as dg
import pandas as pd

from privacy_assets.display.progress_bar import StageProgress
from privacy_assets.orchestration.comparison.compare import compare_admitted
from privacy_assets.orchestration.comparison.result import ReleaseOptions
from privacy_assets.orchestration.comparison.stored import stages_compared, stored_options
from privacy_assets.orchestration.evidence.comparisons import COMPARED, record_comparison
from privacy_assets.orchestration.private.guard import guarded
from privacy_assets.orchestration.settings.options import OPTIONS, OptionsSettings
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.shown.metadata import options_table
from privacy_assets.orchestration.stages import asset_arguments, progress_logger, storage_of, stored_artifact
from privacy_assets.storage.fingerprint import kept_fingerprint


def release_options_asset(release: ReleaseSettings, settings: OptionsSettings) -> dg.AssetsDefinition:
    """Build the asset that compares candidate releases of the table."""
    stages = stages_compared(release)
    # Made only on demand, never by an automation condition, because every comparison is counted.
    own = {"automation_condition": None, "freshness_policy": None}

    @dg.asset(
        **asset_arguments(release, OPTIONS, kinds={"python"}) | own,
        description="Candidate releases of the table, with their risks, their worth and their settings to paste. "
        "Nothing is released, and no stage depends on it; the manifest counts the candidates.",
        ins={stage: dg.AssetIn(release.key(stage)) for stage in stages},
    )
    @guarded
    def release_options_stage(context, **inputs):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003, ANN202
        storage = storage_of(context, release)
        made_of = {stage: kept_fingerprint(inputs[stage]) for stage in stages}
        # The contract admitted both sides of a given split together, so their people match.
        sides = [inputs[stage] for stage in stages]
        table = sides[0] if len(sides) == 1 else pd.concat(sides, ignore_index=True)
        earlier = stored_options(storage)
        options = compare_admitted(
            release,
            table,
            settings,
            earlier=None if earlier is None else earlier[0],
            progress=progress_logger(context, StageProgress.in_words),
        )
        n_compared = int(options.settings["n_made_here"])
        record_comparison(storage, context.run.run_id, n_compared)
        yield stored_artifact(options.to_artifact(), _metadata(options) | {COMPARED: n_compared}, made_of)

    return release_options_stage


def _metadata(options: ReleaseOptions) -> dict[str, Any]:
    recommended = options.recommended
    pasted = "\n".join(f"# {side}: {name}\n{options.yaml(name)}" for side, name in recommended.items())
    return {
        "candidates": len(options.table),
        "admitted": int(options.table["is_admitted"].sum()),
        "proposed": int(options.table["is_proposed"].sum()),
        **{f"recommended_{side}": name for side, name in recommended.items()},
        "options": options_table(options.table),
        "map": dg.MetadataValue.md(options.map()),
        "settings_to_paste": dg.MetadataValue.md(
            f"```yaml\n{pasted}```" if pasted else "No candidate can be proposed; the table has the reasons."
        ),
    }
