"""The quickstart: three releases of one real health table under one policy, and one of its people with their years.

The table is the RAND Health Insurance Experiment (`privacy_assets.examples.rand_hie`), one row per person. Two releases
are synthetic, made from the table with ages, incomes, counts and indices in bands, as its owner would generalize it
before sharing it. One is made with `smooth_cart`, which learns from many people at a time. The other is made with CART,
which preserves more of the data and therefore has more risk. The third releases the records themselves, from exact
values, in classes with equal quasi-identifiers. The fourth (`privacy_assets quickstart --related`) has two tables that
belong together: the people, and one row for each of their years.

The synthetic releases are in `quickstart.yaml` next to this file, where one line switches on a release with
differential privacy.
"""

from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from privacy_assets.examples.rand_hie import (
    load_rand_hie,
    load_rand_hie_people,
    load_rand_hie_years,
    rand_hie_contract,
    rand_hie_people_contract,
    rand_hie_years_contract,
)
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.children import ChildTable
from privacy_assets.orchestration.settings.synthetic import Split, Synthesis
from privacy_assets.release.policy import Policy

POLICY = Policy.for_use_case("internal_analytics").with_required(detectable_share=0.02)
"""With 5,912 people, a control that detects copies of 1 % leaves too few originals; copies of 2 % are detected."""

DECLARATION = {
    "purpose": "Trying out privacy_assets on a public table",
    "recipient": "Whoever runs the quickstart",
    "roles_decided_by": "The authors of privacy_assets",
    "policy_decided_by": "The authors of privacy_assets",
    "review_by": None,
}
"""What policies for recipients elsewhere demand; the tutorial turns to one, and fills in `review_by`.

None declares nothing. A day that is computed when definitions load would change the declaration every day, and no
approval would be about the declaration of the day after.
"""

SYNTHETIC = yaml.safe_load(Path(__file__).with_name("quickstart.yaml").read_text(encoding="utf-8"))
"""The synthetic releases, with the settings in which they differ."""
RELEASES = (*SYNTHETIC, "rand_hie_records")
"""The releases, in the order in which the quickstart runs them."""
RELATED = "rand_hie_people_and_years"
"""The release of related tables."""


def _synthetic(
    name: str, synthetic: dict[str, Any], split: dict[str, Any] | None = None, **more: Any
) -> dg.Definitions:
    return build_release_definitions(
        name,
        source=partial(load_rand_hie, banded=True),
        contract=rand_hie_contract(banded=True),
        policy=POLICY,
        declaration=DECLARATION,
        split=Split(**(split or {})),
        synthetic=Synthesis(**synthetic),
        formats=("parquet", "csv"),
        **more,
    )


def _anonymized(name: str, **more: Any) -> dg.Definitions:
    return build_release_definitions(
        name,
        source=load_rand_hie,
        contract=rand_hie_contract(),
        policy=POLICY,
        declaration=DECLARATION,
        anonymized=AnonymizationSettings(pictured=("age", "income")),
        formats=("parquet", "csv"),
        **more,
    )


def _related(name: str) -> dg.Definitions:
    return build_release_definitions(
        name,
        source=load_rand_hie_people,
        contract=rand_hie_people_contract(),
        children={
            "years": ChildTable(load_rand_hie_years, rand_hie_years_contract(), key="person_id", order="year"),
        },
        policy=POLICY,
        declaration=DECLARATION,
        split=Split(train_fraction=0.5),
        synthetic=Synthesis("smooth_cart"),
    )


def quickstart_definitions(**more: Any) -> dg.Definitions:
    """Build the releases of one table, with more arguments of `build_release_definitions`, such as an engine."""
    return dg.Definitions.merge(
        *(_synthetic(name, **settings, **more) for name, settings in SYNTHETIC.items()),
        _anonymized("rand_hie_records", **more),
    )


defs = dg.Definitions.merge(quickstart_definitions(), _related(RELATED))
