"""What was spent of a privacy budget: the ledger, and what Dagster knows of it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg

from privacy_assets.errors import InvalidTableError, PrivacyBudgetError
from privacy_assets.orchestration.evidence.evidence import UNREADABLE, Gathered
from privacy_assets.orchestration.evidence.publication_ledger import recorded_publications
from privacy_assets.orchestration.private.recorded import MADE_OF, Recorded, all_records, publications
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager, ReleaseStore
from privacy_assets.orchestration.settings.privacy_budget import NOISY_MODEL
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.release.evidence import BudgetEvidence, TableEvidence
from privacy_assets.release.manifest import MANIFEST_FILE, parse_manifest, read_manifest_bytes
from privacy_assets.release.metrics import PRIVACY_BUDGET
from privacy_assets.storage.artifact import Artifact
from privacy_assets.synthesis.private.accounting import epsilon_of
from privacy_assets.synthesis.private.ledger import (
    DIRECTORY,
    UNDONE,
    PrivacyLedger,
    charged_to_another,
    populations,
)
from privacy_assets.synthesis.private.spending import Spending
from privacy_assets.synthesis.private.witness import WITNESSES

SPENDING = "privacy_assets/spending"
"""Metadata of a fit: the population, the digest of its entry in the ledger, and the tables that it was made of."""


class KnownFit(NamedTuple):
    """A fit that Dagster has recorded."""

    population: str
    digest: str
    tables: frozenset[str]


def ledger_of(release: ReleaseSettings, private_tables: PrivateParquetIOManager) -> PrivacyLedger:
    """Return the ledger that a release is charged to."""
    population = release.population
    private_tables.private_path(WITNESSES, population, None)
    return PrivacyLedger(private_tables.private_path(DIRECTORY, population, None).parent, population)


def reserve_fit(
    release: ReleaseSettings,
    context: Any,
    partition_key: str | None,
    made_of: str,
    people: str,
    *,
    rho: float,
    epsilon: float,
    delta: float,
) -> tuple[Spending, dict[str, Any]]:
    """Charge a fit to the ledger and to Dagster's record, before a record is counted.

    Returns
    -------
    entry : Spending
        The entry in the ledger.
    metadata : dict
        What Dagster is to record of it.

    Raises
    ------
    PrivacyBudgetError
        If less is left, the ledger lacks a fit that anybody knows, or the same records were charged to another
        population.
    """
    private_tables, instance = context.resources.private_tables, context.instance
    tables = _require_one_population(release, instance, private_tables, partition_key, made_of)
    entry = ledger_of(release, private_tables).reserve(
        rho=rho,
        epsilon=epsilon,
        delta=delta,
        at_most=release.total_epsilon,
        total_delta=release.privacy_budget.delta,
        release=release.name,
        run_id=context.run.run_id,
        made_of=made_of,
        partition=partition_key,
        sources=tables,
        people=people,
        expected=known_spending(release, instance, private_tables, context.resources.release_store, partition_key),
    )
    said = {"population": release.population, "digest": entry.digest, "tables": sorted(tables)}
    return entry, {SPENDING: dg.MetadataValue.json(said)}


def known_spending(
    release: ReleaseSettings,
    instance: dg.DagsterInstance,
    private_tables: PrivateParquetIOManager,
    release_store: ReleaseStore,
    partition_key: str | None,
) -> set[str]:
    """Return the digests of entries that the ledger of a release must have.

    They are known to Dagster's events, to the manifests of what was released from these people's noisy models, and to
    the stored noisy model. If the release was charged to another population before, the ledger of that one has them.

    Raises
    ------
    PrivacyBudgetError
        If a ledger was changed.
    InvalidTableError
        If the private record of publications is damaged.
    """
    by_dagster = {fit.digest for fit in recorded_fits(instance) if fit.population == release.population}
    header, _ = _stored(release, private_tables, partition_key)
    stored = {str(header["spending"])} if "spending" in header else set()
    ledger = ledger_of(release, private_tables)
    published, n_fits = _published(release, instance, private_tables, release_store)
    if len(ledger.entries()) < n_fits:
        raise PrivacyBudgetError(
            f"The ledger of the privacy budget of {release.population!r} has {len(ledger.entries())} fits, but a "
            f"published release states {n_fits}: {str(ledger.path)!r} was deleted, cut, or replaced by an older copy. "
            f"What was spent stays spent. Restore the newest copy. {UNDONE}"
        )
    others = published | stored
    missing = others - {entry.digest for entry in ledger.entries()}
    return by_dagster | (others - _charged_elsewhere(ledger) if missing else others)


def _require_one_population(
    release: ReleaseSettings,
    instance: dg.DagsterInstance,
    private_tables: PrivateParquetIOManager,
    partition_key: str | None,
    made_of: str,
) -> set[str]:
    """Return the fingerprints of the records and of their source, which no other population may have spent on."""
    tables = {made_of, *Recorded(instance, release.key("original"), partition_key).made_of.values()}
    for fit in recorded_fits(instance):
        if fit.population != release.population and fit.tables & tables:
            raise charged_to_another(release.population, fit.population)
    ledger_of(release, private_tables).require_own_people(tables)
    return tables


def _charged_elsewhere(ledger: PrivacyLedger) -> set[str]:
    names = [name for name in populations(ledger.directory) if name != ledger.population]
    return {entry.digest for name in names for entry in PrivacyLedger(ledger.directory, name).entries()}


def recorded_fits(instance: dg.DagsterInstance) -> list[KnownFit]:
    """Return all fits that Dagster has recorded, of every release, partition and population."""
    found = []
    for key in instance.all_asset_keys():
        if key.path[-1] == NOISY_MODEL:
            for metadata in _metadata_of_events(instance, key):
                own, made_of = _json(metadata.get(SPENDING)), _json(metadata.get(MADE_OF))
                if own:
                    tables = frozenset([*own.get("tables", ()), *made_of.values()])
                    found.append(KnownFit(str(own.get("population")), str(own.get("digest")), tables))
    return found


def _json(value: Any) -> dict[str, Any]:
    return value.value if isinstance(value, dg.JsonMetadataValue) and isinstance(value.value, dict) else {}


def _published(
    release: ReleaseSettings,
    instance: dg.DagsterInstance,
    private_tables: PrivateParquetIOManager,
    release_store: ReleaseStore,
) -> tuple[set[str], int]:
    """Return the last entries that the manifests of this release and of others of these people state, and most fits.

    A release that withholds its figures states the number of fits only.
    """
    key = release.key("synthetic_release")
    recorded = [*publications(instance, key), *recorded_publications(private_tables, key)]
    paths = {each.directory for each in recorded if each.directory is not None}
    paths |= {path.parent for path in Path(release_store.base_path).absolute().rglob(MANIFEST_FILE)}
    found, n_fits = set(), 0
    for path in paths:
        try:
            manifest = parse_manifest(read_manifest_bytes(path))
        except (OSError, ValueError):
            continue  # An unreadable manifest says nothing; code that depends on the release reports it.
        budget = manifest["figures"].get(PRIVACY_BUDGET)
        if isinstance(budget, dict) and (
            manifest["release"] == release.name or budget.get("population") == release.population
        ):
            if "ledger" in budget:
                found.add(str(budget["ledger"]))
            elif budget.get("population") == release.population:
                n_fits = max(n_fits, budget.get("fits", 0))
    return found, n_fits


def _metadata_of_events(instance: dg.DagsterInstance, key: dg.AssetKey) -> Iterator[Any]:
    """Yield the metadata of what was recorded before each fit and after it."""
    for fetch in (instance.fetch_observations, instance.fetch_materializations):
        for record in all_records(fetch, key):
            event = record.asset_observation or record.asset_materialization
            yield event.metadata if event is not None else {}


def with_spending(
    gathered: Gathered,
    release: ReleaseSettings,
    instance: dg.DagsterInstance,
    private_tables: PrivateParquetIOManager,
    release_store: ReleaseStore,
    partition_key: str | None,
) -> Gathered:
    """Add the noisy model that records were drawn from, and the state of its budget; other records stay as they are."""
    if release.private is None:
        return gathered
    recorded = Recorded(instance, release.key(NOISY_MODEL), partition_key)
    header, digest = _stored(release, private_tables, partition_key)
    entries, own, problem = _charged(release, instance, private_tables, release_store, partition_key, header)
    figures: dict[str, float] = {}
    if own is not None and not problem:
        delta = release.privacy_budget.delta
        total = epsilon_of(ledger_of(release, private_tables).people.spent_rho(entries), delta)
        figures = {"epsilon": own.epsilon, "total_epsilon": total, "delta": max(own.delta, delta)}
    ledger = entries[-1].digest if entries else ""
    shown = {**figures, "population": release.population, "fits": len(entries), "ledger": ledger}
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
    release_store: ReleaseStore,
    partition_key: str | None,
    header: dict[str, Any],
) -> tuple[tuple[Spending, ...], Spending | None, str]:
    """Return all entries, that of the stored model, and what is wrong with the ledger."""
    problem = ""
    entries: tuple[Spending, ...] = ()
    own = None
    try:
        known = known_spending(release, instance, private_tables, release_store, partition_key)
        entries = ledger_of(release, private_tables).require_known(known)
        own = next((entry for entry in entries if entry.digest == header.get("spending")), None)
        if own is not None:
            _require_one_population(release, instance, private_tables, partition_key, own.made_of)
    except (PrivacyBudgetError, InvalidTableError) as error:
        problem = str(error)
    if not problem and own is None:
        problem = f"the ledger of {release.population!r} has no entry for the noisy model that the records come from"
    if own is not None and (own.epsilon, own.delta) != (header.get("epsilon"), header.get("delta")):
        problem = "the noisy model states another epsilon or delta than its entry in the ledger"
    return entries, own, problem
