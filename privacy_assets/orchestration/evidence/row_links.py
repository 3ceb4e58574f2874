"""Evidence on released values that show which rows are of one person, measured on the table that would leave."""

from dataclasses import replace
from typing import Final

import pandas as pd

from privacy_assets.anonymity.links import PRECISE, find_links
from privacy_assets.anonymization.anonymized_table import links_if_people, links_of
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.errors import PrivacyAssetsError
from privacy_assets.orchestration.evidence.evidence import Gathered
from privacy_assets.orchestration.private.storage import UNREADABLE, Storage
from privacy_assets.orchestration.settings.synthetic import SYNTHETIC_PEOPLE, ExternalSynthetic
from privacy_assets.release.metrics import LEAKAGE_DETECTED
from privacy_assets.release.row_links import LinkEvidence

NO_PEOPLE: Final = "no key of synthetic people was given, so that no synthetic row belongs to anybody"
LINKED: Final = "keys link the rows of synthetic people, and the test of disclosure used them"
MOST_REPEATED: Final = 0.5
"""Share of the repeats of the source from which on synthetic rows with one value belong together, as people's do."""
EACH_ROW: Final = "each row is a person"


def with_links(gathered: Gathered, storage: Storage, side: str, source: pd.DataFrame | None) -> Gathered:
    """Find the links in the table that a side would publish; the evidence has none if that is impossible."""
    contract, made = storage.release.contract, gathered.found.get(gathered.evidence.stage)
    links = None
    try:
        if storage.release.related is not None:
            links = LinkEvidence(LINKED)
        elif side == "synthetic":
            links = _of_synthetic(storage, gathered.table, made, source)
        elif made is not None and source is not None:
            links = _of_anonymized(storage, made, source)
    except (PrivacyAssetsError, IndexError, *UNREADABLE):
        pass  # A table that is not the one it was made from may have fewer rows.
    evidence = replace(gathered.evidence, links=links, may_link=contract.links_rows)
    if links is None or links.whose in (NO_PEOPLE, LINKED):
        return replace(gathered, evidence=evidence)
    figures = gathered.figures | {"links": {"found": links.to_json(contract.links_rows)}}
    return replace(gathered, evidence=evidence, figures=figures)


def _of_anonymized(storage: Storage, anonymization: Anonymization, source: pd.DataFrame) -> LinkEvidence:
    contract, k = storage.release.contract, storage.release.policy.people_per_class
    whose = EACH_ROW if contract.person is None else ""
    links = links_of(anonymization, contract, source, k)
    return LinkEvidence(whose, links, links_if_people(anonymization, contract, source, k))


def _of_synthetic(
    storage: Storage, table: pd.DataFrame | None, generalized: Anonymization | None, source: pd.DataFrame | None
) -> LinkEvidence | None:
    """Find links between the rows of synthetic people; None if the key of these people is not readable."""
    release, policy = storage.release, storage.release.policy
    if release.synthetic_person is None:
        if release.contract.person is None or not isinstance(release.synthetic, ExternalSynthetic):
            return LinkEvidence(NO_PEOPLE)
        if table is None or source is None:
            return None
        return LinkEvidence(NO_PEOPLE, unnamed=_unnamed_people(storage, table, source))
    people, _ = storage.table(SYNTHETIC_PEOPLE)
    if table is None or people is None:
        return None
    person = people[release.synthetic_person].to_numpy()
    person = person if generalized is None else person[generalized.members["row"].to_numpy()]
    leakage = policy.limit_on(LEAKAGE_DETECTED)
    links = find_links(table, person, policy.people_per_class, list(release.contract.links_rows))
    return LinkEvidence("", links, is_tested=leakage is not None and leakage.blocks)


def _unnamed_people(storage: Storage, table: pd.DataFrame, source: pd.DataFrame) -> list[str]:
    """Return the columns that number people in the source, and repeat in synthetic rows about as often."""
    contract, k = storage.release.contract, storage.release.policy.people_per_class
    is_generalized = storage.release.generalize_synthetic is not None
    unchanged = storage.release.columns_leaving("synthetic") if is_generalized else contract.released_columns
    leaving = [name for name in unchanged if name in table.columns]
    links = find_links(source[leaving], source[contract.person].to_numpy(), k)
    names = [
        link.columns[0]
        for link in links
        if link.how == "alone" and link.is_found and (link.precision >= PRECISE or link.is_among(contract.links_rows))
    ]
    shares = {name: [each[name].dropna().duplicated(keep=False).mean() for each in (source, table)] for name in names}
    return [name for name, (real, synthetic) in shares.items() if synthetic >= MOST_REPEATED * real]
