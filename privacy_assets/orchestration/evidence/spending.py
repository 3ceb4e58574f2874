"""What was spent of a privacy budget: the ledger, and what Dagster knows of it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import dagster as dg

from privacy_assets.errors import PrivacyBudgetError
from privacy_assets.orchestration.evidence.evidence import UNREADABLE, Gathered
from privacy_assets.orchestration.private.recorded import Recorded
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.orchestration.settings.privacy_budget import NOISY_MODEL
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.release.evidence import BudgetEvidence, TableEvidence
from privacy_assets.release.metrics import PRIVACY_BUDGET
from privacy_assets.storage.artifact import Artifact
from privacy_assets.synthesis.private.accounting import epsilon_of
from privacy_assets.synthesis.private.ledger import DIRECTORY, PrivacyLedger, Spending

SPENDING = "privacy_assets/spending"
"""Metadata of a fit: the population and the digest of its entry in the ledger."""
_PAGE = 100


def ledger_of(release: ReleaseSettings, private_tables: PrivateParquetIOManager) -> PrivacyLedger:
    """Return the ledger that a release is charged to."""
    population = release.population
    return PrivacyLedger(private_tables.private_path(DIRECTORY, population, None).parent, population)


def known_spending(instance: dg.DagsterInstance, population: str) -> set[str]:
    """Return the digests of all fits on a population that Dagster has recorded, of every release and partition."""
    found = set()
    for key in instance.all_asset_keys():
        if key.path[-1] == NOISY_MODEL:
            for metadata in _metadata_of_events(instance, key):
                spending = metadata.get(SPENDING)
                own = spending.value if isinstance(spending, dg.JsonMetadataValue) else None
                if isinstance(own, dict) and own.get("population") == population:
                    found.add(str(own.get("digest")))
    return found


def _metadata_of_events(instance: dg.DagsterInstance, key: dg.AssetKey) -> Iterator[Any]:
    """Yield the metadata of what was recorded before each fit and after it."""
    fetches: tuple[Callable[..., dg.EventRecordsResult], ...] = (
        instance.fetch_observations,
        instance.fetch_materializations,
    )
    for fetch in fetches:
        cursor, has_more = None, True
        while has_more:
            page = fetch(key, limit=_PAGE, cursor=cursor)
            for record in page.records:
                event = record.asset_observation or record.asset_materialization
                yield event.metadata if event is not None else {}
            cursor, has_more = page.cursor, page.has_more


def with_spending(
    gathered: Gathered,
    release: ReleaseSettings,
    instance: dg.DagsterInstance,
    private_tables: PrivateParquetIOManager,
    partition_key: str | None,
) -> Gathered:
    """Add the noisy model that records were drawn from, and the state of its budget; other records stay as they are."""
    if release.private is None:
        return gathered
    recorded = Recorded(instance, release.key(NOISY_MODEL), partition_key)
    header, digest = _stored(release, private_tables, partition_key)
    entries, own, problem = _charged(release, instance, private_tables, header)
    figures: dict[str, float] = {}
    if own is not None and not problem:
        delta = release.privacy_budget.delta
        total = epsilon_of(sum(entry.rho for entry in entries), delta)
        figures = {"epsilon": own.epsilon, "total_epsilon": total, "delta": max(own.delta, delta)}
    shown = {**figures, "fits": len(entries), "ledger": entries[-1].digest if entries else ""}
    table = TableEvidence(digest, recorded.version, recorded.run_id, recorded.made_of)
    evidence = gathered.evidence
    return replace(
        gathered,
        evidence=replace(
            evidence,
            tables={**evidence.tables, NOISY_MODEL: table},
            measured={**evidence.measured, PRIVACY_BUDGET: figures},
            budget=BudgetEvidence(not problem, problem or f"the ledger of {release.population!r} has every known fit"),
        ),
        figures={**gathered.figures, PRIVACY_BUDGET: shown} if figures else gathered.figures,
    )


def _stored(
    release: ReleaseSettings, private_tables: PrivateParquetIOManager, partition_key: str | None
) -> tuple[dict[str, Any], str | None]:
    """Return the header of the stored model, and its digest."""
    try:
        artifact = private_tables.load(release.key(NOISY_MODEL), partition_key)
    except UNREADABLE:
        return {}, None
    return (dict(artifact.header), artifact.digest) if isinstance(artifact, Artifact) else ({}, None)


def _charged(
    release: ReleaseSettings,
    instance: dg.DagsterInstance,
    private_tables: PrivateParquetIOManager,
    header: dict[str, Any],
) -> tuple[tuple[Spending, ...], Spending | None, str]:
    """Return all entries, that of the stored model, and what is wrong with the ledger."""
    problem = ""
    entries: tuple[Spending, ...] = ()
    try:
        known = known_spending(instance, release.population)
        entries = ledger_of(release, private_tables).require_known(known)
    except PrivacyBudgetError as error:
        problem = str(error)
    own = next((entry for entry in entries if entry.digest == header.get("spending")), None)
    if not problem and own is None:
        problem = f"the ledger of {release.population!r} has no entry for the noisy model that the records come from"
    if own is not None and (own.epsilon, own.delta) != (header.get("epsilon"), header.get("delta")):
        problem = "the noisy model states another epsilon or delta than its entry in the ledger"
    return entries, own, problem
