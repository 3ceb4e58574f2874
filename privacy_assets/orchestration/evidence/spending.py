"""The spending of a privacy budget, in the ledger and in Dagster's records."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg

from privacy_assets.errors import InvalidTableError, PrivacyBudgetError
from privacy_assets.orchestration.evidence.evidence import Gathered
from privacy_assets.orchestration.evidence.publication_ledger import published_budgets, recorded_publications
from privacy_assets.orchestration.private.recorded import all_records, publications
from privacy_assets.orchestration.private.storage import Storage
from privacy_assets.pipeline.settings.privacy_budget import NOISY_MODEL
from privacy_assets.release.evidence import BudgetEvidence, TableEvidence
from privacy_assets.release.manifest import MANIFEST_FILE, DamagedManifestError, read_manifest
from privacy_assets.release.metrics import PRIVACY_BUDGET
from privacy_assets.setting_checks import is_integer
from privacy_assets.synthesis.private.accounting import epsilon_of
from privacy_assets.synthesis.private.ledger import DIRECTORY, PrivacyLedger, charged_to_another, populations
from privacy_assets.synthesis.private.mst import Mst
from privacy_assets.synthesis.private.spending import WITNESSES, Spending

SPENDING = "privacy_assets/spending"
"""Metadata of a fit: the population, the digest of its entry in the ledger, and the tables that it was made from."""


class KnownFit(NamedTuple):
    """A fit that Dagster has recorded."""

    population: str
    digest: str
    tables: frozenset[str]


def ledger_of(storage: Storage) -> PrivacyLedger:
    """Return the ledger that a release is charged to."""
    private_path, population = storage.private_tables.private_path, storage.release.population
    private_path(WITNESSES, population, None)
    return PrivacyLedger(private_path(DIRECTORY, population, None).parent, population)


def reserve_fit(
    storage: Storage, run_id: str, synthesizer: Mst, made_of: str, people: str
) -> tuple[Spending, dict[str, Any]]:
    """Charge a fit to the ledger before a record is counted; return the entry, and the metadata for Dagster."""
    release, tables = storage.release, _require_one_population(storage, made_of)
    expected = known_spending(storage)
    _require_published_fits(storage)
    entry = ledger_of(storage).reserve(
        rho=synthesizer.plan.rho,
        epsilon=synthesizer.epsilon,
        delta=synthesizer.delta,
        at_most=release.total_epsilon,
        total_delta=release.budget.delta,
        release=release.name,
        run_id=run_id,
        made_of=made_of,
        partition=storage.partition_key,
        sources=tables,
        people=people,
        expected=expected,
    )
    said = {"population": release.population, "digest": entry.digest, "tables": sorted(tables)}
    return entry, {SPENDING: dg.MetadataValue.json(said)}


def known_spending(storage: Storage) -> set[str]:
    """Return the digests of entries that the ledger of a release must have.

    They are known from Dagster's events, the manifests of records from these people's noisy models, and the stored
    noisy model. If the release was earlier charged to another population, that population's ledger has them.
    """
    release, ledger = storage.release, ledger_of(storage)
    by_dagster = {fit.digest for fit in recorded_fits(storage.instance) if fit.population == release.population}
    header, _ = _stored(storage)
    stored = {str(header["spending"])} if "spending" in header else set()
    published, n_fits = _published(storage)
    ledger.require_published(None, n_fits)
    others = published | stored
    missing = others - {entry.digest for entry in ledger.entries()}
    return by_dagster | (others - _charged_elsewhere(ledger) if missing else others)


def _require_published_fits(storage: Storage) -> None:
    """Refuse a budget in the private record of publications that the ledger and the witness of its population lack."""
    own = ledger_of(storage)
    for _, budget in published_budgets(storage):
        if budget["population"] != own.population:
            PrivacyLedger(own.directory, budget["population"]).require_published(budget.get("ledger"), budget["fits"])


def _require_one_population(storage: Storage, made_of: str) -> set[str]:
    """Return the fingerprints of the records and of their source, which must not be charged to another population."""
    population, tables = storage.release.population, {made_of, *_source_of_original(storage)}
    for fit in recorded_fits(storage.instance):
        if fit.population != population and fit.tables & tables:
            raise charged_to_another(population, fit.population)
    ledger_of(storage).require_own_people(tables)
    return tables


def _source_of_original(storage: Storage) -> set[str]:
    """Return the fingerprint of the source that the original was made of, if it was split here.

    Dagster's records have keyed fingerprints, which other projects with other keys could not compare.
    """
    recorded = storage.recorded("original").made_of.get("source")
    if recorded is None:
        return set()
    _, source = storage.table("source", is_large=True)
    if source is None or storage.keyed(source) != recorded:
        raise PrivacyBudgetError(
            "The stored source is not the one that `original` was made of, so it is unknown to which population its "
            "people were charged. Materialize `original` again. Nothing was charged."
        )
    return {source}


def _charged_elsewhere(ledger: PrivacyLedger) -> set[str]:
    names = [name for name in populations(ledger.directory) if name != ledger.population]
    return {entry.digest for name in names for entry in PrivacyLedger(ledger.directory, name).entries()}


def recorded_fits(instance: dg.DagsterInstance) -> list[KnownFit]:
    """Return all fits that Dagster has recorded, of every release, partition and population."""
    found = []
    for key in instance.all_asset_keys():
        if key.path[-1] == NOISY_MODEL:
            for metadata in _metadata_of_events(instance, key):
                own = _json(metadata.get(SPENDING))
                if own:
                    tables = frozenset(own.get("tables", ()))
                    found.append(KnownFit(str(own.get("population")), str(own.get("digest")), tables))
    return found


def _json(value: Any) -> dict[str, Any]:
    return value.value if isinstance(value, dg.JsonMetadataValue) and isinstance(value.value, dict) else {}


def _published(storage: Storage) -> tuple[set[str], int]:
    """Return the last entries, and the largest number of fits, that published releases of these people state.

    They are in the manifests, and in the private record if these are gone. A release that withholds its figures states
    only the number of fits.
    """
    release, key = storage.release, storage.release.key("synthetic_release")
    recorded = [*publications(storage.instance, key), *recorded_publications(storage, key)]
    paths = {each.directory for each in recorded if each.directory is not None}
    paths |= {path.parent for path in Path(storage.release_store.base_path).absolute().rglob(MANIFEST_FILE)}
    stated: list[tuple[str, Any]] = list(published_budgets(storage))
    for path in paths:
        try:
            manifest = read_manifest(path)
        except DamagedManifestError:
            continue  # An unreadable manifest is skipped; code that depends on the release reports it.
        stated.append((manifest["release"], manifest["figures"].get(PRIVACY_BUDGET)))
    found, n_fits = set(), 0
    for name, budget in stated:
        is_of_population = isinstance(budget, Mapping) and budget.get("population") == release.population
        if isinstance(budget, Mapping) and budget.get("ledger") and (is_of_population or name == release.name):
            found.add(str(budget["ledger"]))
        elif is_of_population and is_integer(budget.get("fits")):
            n_fits = max(n_fits, budget["fits"])
    return found, n_fits


def _metadata_of_events(instance: dg.DagsterInstance, key: dg.AssetKey) -> Iterator[Any]:
    """Yield the metadata that was recorded before and after each fit."""
    for fetch in (instance.fetch_observations, instance.fetch_materializations):
        for record in all_records(fetch, key):
            event = record.asset_observation or record.asset_materialization
            yield event.metadata if event is not None else {}


def with_spending(gathered: Gathered, storage: Storage) -> Gathered:
    """Add the noisy model that records were drawn from, and the state of its budget; leave other records unchanged."""
    release = storage.release
    if release.private is None:
        return gathered
    recorded = storage.recorded(NOISY_MODEL)
    header, digest = _stored(storage)
    entries, own, problem = _charged(storage, header)
    figures: dict[str, float] = {}
    if own is not None and not problem:
        delta = release.budget.delta
        total = epsilon_of(ledger_of(storage).people.spent_rho(entries), delta)
        figures = {"epsilon": own.epsilon, "total_epsilon": total, "delta": max(own.delta, delta)}
    ledger = entries[-1].digest if entries else ""
    shown = {**figures, "population": release.population, "fits": len(entries), "ledger": ledger}
    table = TableEvidence(storage.keyed(digest), recorded.version, recorded.run_id, recorded.made_of)
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


def _stored(storage: Storage) -> tuple[dict[str, Any], str | None]:
    """Return the header of the stored model, and its digest."""
    read = storage.read(storage.release.key(NOISY_MODEL), lambda stored: (dict(stored.header), stored.digest))
    return read or ({}, None)


def _charged(storage: Storage, header: dict[str, Any]) -> tuple[tuple[Spending, ...], Spending | None, str]:
    """Return all entries, the entry of the stored model, and the problem of the ledger, if any."""
    problem = ""
    entries: tuple[Spending, ...] = ()
    own = None
    try:
        entries = ledger_of(storage).require_known(known_spending(storage))
        own = next((entry for entry in entries if entry.digest == header.get("spending")), None)
        if own is not None:
            _require_one_population(storage, own.made_of)
    except (PrivacyBudgetError, InvalidTableError) as error:
        problem = str(error)
    if not problem and own is None:
        problem = (
            f"the ledger of {storage.release.population!r} has no entry for the noisy model that the records come from"
        )
    if own is not None and (own.epsilon, own.delta) != (header.get("epsilon"), header.get("delta")):
        problem = "the noisy model has an epsilon or delta that differs from its entry in the ledger"
    return entries, own, problem
