"""The check of the source that later stages have enough memory, before any of them has run."""

from collections.abc import Iterator
from typing import Final

import dagster as dg

from privacy_assets.contract.related import RelatedTables
from privacy_assets.display.numbers import number
from privacy_assets.mpucc.control_size import TRAIN_FRACTIONS
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import AUTO, Synthesis
from privacy_assets.orchestration.stages import blocking_check
from privacy_assets.pipeline.memory_of_stages import (
    BYTES_PER_CELL_OF_VIEWS,
    FLOOR,
    UNITS,
    Size,
    bytes_of,
    cells_of_views,
    memory_needed,
)
from privacy_assets.release.metrics import DISCLOSURE, MPUCC, REIDENTIFICATION
from privacy_assets.storage.memory import memory_limit
from privacy_assets.storage.table import Table

MEMORY_CHECK: Final = "enough_memory"
DESCRIPTION = "Each later stage whose memory was measured accepts as many rows as the source has."
MEASURED_METHOD: Final = "gaussian_copula"
MEASURED_FRACTION: Final = 0.8
ADVICE: Final = (
    "Give the steps more memory, release by partitions, or leave out columns. If steps run elsewhere with more, state "
    "it: memory."
)


def memory_check(release: ReleaseSettings) -> dg.AssetCheckSpec:
    """Return the spec of the check."""
    return blocking_check(release, "source", MEMORY_CHECK, DESCRIPTION)


def check_memory(release: ReleaseSettings, source: Table) -> dg.AssetCheckResult:
    """Return the check: an error if a stage needs more memory by what was measured, a warning if by extrapolation."""
    memory = bytes_of(release.memory) or memory_limit()
    stages = [*_synthetic_stages(release), *_anonymized_stages(release)]
    size = Size.of(source)
    needed = {stage: memory_needed(stage, size, memory, share) for stage, share in stages}
    blocking = [stage for stage, own in needed.items() if own.at_least > memory]
    doubtful = [stage for stage, own in needed.items() if own.expected > memory]
    found = f"{size.n_rows:,} rows of {size.n_columns} columns"
    said = f"{found}; {_in_gib(memory)} are enough for every stage whose memory was measured."
    if blocking or doubtful:
        worst = max(blocking or doubtful, key=lambda stage: needed[stage].expected)
        accepted, lacks = needed[worst].rows_accepted, _in_gib(needed[worst].expected)
        said = f"{found}; {worst} accepts about {accepted:,} with {_in_gib(memory)}, and needs about {lacks}. {ADVICE}"
        said += "" if blocking else " This is an extrapolation from other columns or settings, so nothing is stopped."
    return dg.AssetCheckResult(
        check_name=MEMORY_CHECK,
        asset_key=release.key("source"),
        passed=not (blocking or doubtful),
        severity=dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN,
        metadata={f"rows_accepted_by_{stage}": own.rows_accepted for stage, own in needed.items()},
        description=said,
    )


def check_memory_of_related(release: ReleaseSettings, source: RelatedTables) -> dg.AssetCheckResult:
    """Return the check of related tables by the cells of their views; what an object of the user needs only warns."""
    memory, cells = bytes_of(release.memory) or memory_limit(), cells_of_views(source)
    stages = [stage for stage in BYTES_PER_CELL_OF_VIEWS if stage == "synthetic" or release.assesses(stage)]
    needed = {stage: FLOOR + cells * BYTES_PER_CELL_OF_VIEWS[stage] for stage in stages}
    lacking = [stage for stage, own in needed.items() if own > memory]
    is_made_here = isinstance(release.synthetic, Synthesis) and isinstance(release.synthetic.method, str)
    blocks = bool([stage for stage in lacking if is_made_here or stage != "synthetic"])
    rows = ", ".join(f"{len(child.table):,} rows of {name!r}" for name, child in source.children.items())
    said = f"{len(source.people):,} people with {rows}, which are {cells:,} cells of views; {_in_gib(memory)}"
    if lacking:
        worst = max(lacking, key=lambda stage: needed[stage])
        said += f" are not enough for {worst}, which needs about {_in_gib(needed[worst])}. {ADVICE}"
    else:
        said += " are enough for every stage whose memory was measured."
    return dg.AssetCheckResult(
        check_name=MEMORY_CHECK,
        asset_key=release.key("source"),
        passed=not lacking,
        severity=dg.AssetCheckSeverity.ERROR if blocks else dg.AssetCheckSeverity.WARN,
        metadata={f"bytes_needed_by_{stage}": int(own) for stage, own in needed.items()},
        description=said,
    )


def _synthetic_stages(release: ReleaseSettings) -> Iterator[tuple[str, float]]:
    """Yield the stages, and their share of the measured records; 0 with settings that were not measured."""
    made = release.synthetic
    if made is None:
        return
    # As many synthetic records as originals, of the same columns.
    is_alike = isinstance(made, Synthesis) and made.n_records is None and release.generalize_synthetic is None
    given = getattr(release.split, "train_fraction", AUTO)
    share = is_alike * min((TRAIN_FRACTIONS[-1] if given == AUTO else given) / MEASURED_FRACTION, 1.0)
    yield "synthetic", share * (getattr(made, "method", None) == MEASURED_METHOD)
    yield from ((stage, share) for stage in (MPUCC, DISCLOSURE) if release.assesses(stage))
    yield "synthetic_release", share


def _anonymized_stages(release: ReleaseSettings) -> Iterator[tuple[str, float]]:
    if release.anonymized is None:
        return
    settings = release.generalization(release.source_of_anonymized)
    is_alike = settings.settings.method == "mondrian" and not settings.hierarchies and not release.is_of_originals
    stages = ("anonymized", *([REIDENTIFICATION] if release.assesses(REIDENTIFICATION) else []), "anonymized_release")
    yield from ((stage, float(is_alike)) for stage in stages)


def _in_gib(n_bytes: float) -> str:
    return f"{number(n_bytes / UNITS['GiB'])} GiB"
