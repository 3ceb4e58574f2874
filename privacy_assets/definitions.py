"""The quickstart: two releases of one real health table, side by side under one policy.

The table is the RAND Health Insurance Experiment (`privacy_assets.examples.rand_hie`), one row per person, with ages,
incomes, counts and indices in bands, as its owner would generalize it before giving it away. One release is made with
the Gaussian copula, which learns margins and correlations. The other is made with CART, which keeps more of the data
and therefore is the one that a gate must watch.
"""

from functools import partial

import dagster as dg

from privacy_assets.examples.rand_hie import load_rand_hie, rand_hie_contract
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings import Synthesis
from privacy_assets.tables.policy import Policy

POLICY = Policy.for_use_case("internal_analytics")


def _release(name: str, method: str) -> dg.Definitions:
    return build_release_definitions(
        name,
        source=partial(load_rand_hie, banded=True),
        contract=rand_hie_contract(),
        policy=POLICY,
        synthetic=Synthesis(method=method, seed=0),
        formats=("parquet", "csv"),
    )


defs = dg.Definitions.merge(_release("rand_hie_copula", "gaussian_copula"), _release("rand_hie_cart", "cart"))
