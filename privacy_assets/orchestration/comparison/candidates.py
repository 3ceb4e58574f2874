"""The standard candidates of a comparison, for the sides that the policy protects and for the table."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.options import Candidate
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import Synthesis
from privacy_assets.synthesis.synthesize import DEFAULT_SYNTHESIZER, SYNTHESIZERS

CLASS_SIZES = (2, 3, 5, 10, 20, 50)
DIVERSE_SIZES = (3, 5, 10)
CLOSE_SIZE, DISTANCES = 5, (0.5, 0.3)
LATTICE_SIZES = (5, 20)
LEAVES = (20, 50, 100, 300)
GENERALIZED_SIZES = (3, 10)
GENERALIZED_LEAVES = (20, 100)


def standard_candidates(release: ReleaseSettings, table: pd.DataFrame) -> tuple[Candidate, ...]:
    """Return the standard candidates of the sides that the policy protects, alternating between sides.

    Anonymized: k from 2 to 50; with sensitive columns also l = 2 and t; along hierarchies if all quasi-identifiers have
    one. Synthetic: every built-in synthesizer, the default first and with soft leaves, CART with leaves of 20 to 300,
    also generalized. Classes larger than half of the people are left out.
    """
    n_people = len(table) if release.contract.person is None else table[release.contract.person].nunique()
    by_side = [
        list(candidates(release, n_people))
        for side, candidates in {"anonymized": _anonymized, "synthetic": _synthetic}.items()
        if release.policy.protects(side)
    ]
    longest = max(map(len, by_side), default=0)
    # Alternating, so that both sides have candidates if time runs out.
    return tuple(own[place] for place in range(longest) for own in by_side if place < len(own))


def _anonymized(release: ReleaseSettings, n_people: int) -> Iterator[Candidate]:
    contract = release.contract
    quasi_identifiers = set(contract.columns_with_role("quasi_identifier"))
    if not quasi_identifiers:
        return
    base = release.anonymized or AnonymizationSettings()
    plain = replace(base, l_diversity=None, l_diversity_by_column=None, t_closeness=None, pictured=None)
    sizes = [k for k in CLASS_SIZES if 2 * k <= n_people]
    yield from (Candidate(anonymized=replace(plain, k=k)) for k in sizes)
    if contract.columns_with_role("sensitive"):
        yield from (Candidate(anonymized=replace(plain, k=k, l_diversity=2)) for k in DIVERSE_SIZES if k in sizes)
        if CLOSE_SIZE in sizes:
            yield from (Candidate(anonymized=replace(plain, k=CLOSE_SIZE, t_closeness=t)) for t in DISTANCES)
    declared = {*contract.metadata("hierarchy"), *(base.hierarchies or {})}
    if quasi_identifiers <= declared and plain.method != "lattice":
        lattice = AnonymizationSettings(method="lattice", hierarchies=base.hierarchies, of=base.of)
        yield from (Candidate(anonymized=replace(lattice, k=k)) for k in LATTICE_SIZES if k in sizes)


def _synthetic(release: ReleaseSettings, n_people: int) -> Iterator[Candidate]:
    methods = sorted(SYNTHESIZERS, key=lambda method: method != DEFAULT_SYNTHESIZER)
    plain = [Synthesis(method=method) for method in methods if method != "cart"]
    plain.insert(1, Synthesis(settings={"soft_leaves": True}))
    trees = {leaf: Synthesis(method="cart", settings={"min_samples_leaf": leaf}) for leaf in LEAVES}
    yield from (Candidate(synthetic=each) for each in (*plain, *trees.values()))
    if not release.contract.columns_with_role("quasi_identifier"):
        return
    for k in GENERALIZED_SIZES:
        if 2 * k <= n_people:
            for each in (*plain, *(trees[leaf] for leaf in GENERALIZED_LEAVES)):
                yield Candidate(synthetic=each, generalize_synthetic=AnonymizationSettings(k=k))
