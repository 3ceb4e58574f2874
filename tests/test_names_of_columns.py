"""Names of columns that are integers, tuples, repeated or no Unicode: one sentence from whatever takes a table."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest

import privacy_assets as pa
from privacy_assets import linkage, reidentification, semantic_risk
from privacy_assets.contract.batches import BatchAdmission
from privacy_assets.storage.fingerprint import fingerprint
from tests.public_packages import PUBLIC

N_ROWS = 120
ROLES = {"a": "quasi_identifier", "b": "quasi_identifier", "c": "sensitive"}
CONTRACT = pa.TableContract.from_mapping(
    {
        "one_row_per_person": True,
        "columns": {name: {"type": "integer", "role": role} for name, role in ROLES.items()},
    }
)
"""Repeated, integer, tuple names and one that is no Unicode, and what is said of each."""
BAD_NAMES = {
    "repeated": (["a", "b", "a"], "1 are repeated (positions 2)"),
    "integers": ([0, 1, 2], "3 are not text (positions 0, 1, 2)"),
    "an integer": (["a", "b", 7], "1 are not text (positions 2)"),
    "an integer that is written as another name": (["7", "b", 7], "1 are not text (positions 2)"),
    "tuples": ([("a", "x"), ("a", "y"), ("b", "x")], "3 are not text (positions 0, 1, 2)"),
    "missing": (["a", None, np.nan], "2 are not text (positions 1, 2)"),
    "no Unicode": (["a", "b", "c\ud800"], "1 are not text (positions 2)"),
    "both": (["a", "a", 3], "1 are not text (positions 2) and 1 are repeated (positions 1)"),
}


def table():
    rng = np.random.default_rng(1)
    return pd.DataFrame({name: rng.integers(0, 4, N_ROWS) for name in ROLES})


def renamed(names):
    bad = table()
    # A frame of tuples gets columns of several levels, as a pivot has.
    bad.columns = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else pd.Index(names, dtype=object)
    return bad


GOOD = table()
ANONYMIZED = pa.anonymize(GOOD, quasi_identifiers=["a", "b"], k=5, sensitive=["c"])
INDEX = reidentification.CandidateIndex.of_anonymization(GOOD, ANONYMIZED)
EXACT = reidentification.ReleaseModel({name: reidentification.Exact(name) for name in ROLES})
DOMAIN = pa.PublicDomain.from_contract(
    pa.TableContract.from_mapping(
        {"columns": {name: {"type": "integer", "role": "other", "min": 0, "max": 4} for name in ROLES}}
    )
)


def spent(bad):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the budget is not spent on a table that is refused
        return pa.Mst(DOMAIN, 1.0, 1e-6).fit(bad)


CALLS = {
    "anonymize": [lambda t: pa.anonymize(t, quasi_identifiers=["a"], k=2)],
    "apply_cuts": [lambda t: pa.apply_cuts(ANONYMIZED.tree, t)],
    "assess_disclosure": [
        lambda t: pa.assess_disclosure(t, GOOD, GOOD),
        lambda t: pa.assess_disclosure(GOOD, t, GOOD),
        lambda t: pa.assess_disclosure(GOOD, GOOD, t),
    ],
    "assess_membership": [
        lambda t: pa.assess_membership(ANONYMIZED, t),
        lambda t: pa.assess_membership(ANONYMIZED, GOOD, t),
    ],
    "assess_mpuccs": [
        lambda t: pa.assess_mpuccs(t, GOOD),
        lambda t: pa.assess_mpuccs(GOOD, t),
        lambda t: pa.assess_mpuccs(GOOD, GOOD, t),
    ],
    "assess_reidentification": [
        lambda t: pa.assess_reidentification(t, GOOD, EXACT, truth=range(N_ROWS)),
        lambda t: pa.assess_reidentification(GOOD, t, EXACT, truth=range(N_ROWS)),
        lambda t: pa.assess_reidentification(t, ANONYMIZED),
    ],
    "assess_semantic_risk": [lambda t: pa.assess_semantic_risk(t, "binary")],
    "assess_utility": [
        lambda t: pa.assess_utility(t, GOOD, GOOD),
        lambda t: pa.assess_utility(GOOD, t, GOOD),
        lambda t: pa.assess_utility(GOOD, GOOD, t),
    ],
    "assess_with_trees": [
        lambda t: pa.assess_with_trees(t, GOOD, GOOD),
        lambda t: pa.assess_with_trees(GOOD, t, GOOD),
        lambda t: pa.assess_with_trees(GOOD, GOOD, t),
    ],
    "audit_linkage": [lambda t: linkage.audit_linkage(t, ANONYMIZED)],
    "compare_releases": [lambda t: pa.compare_releases(t, CONTRACT, "development")],
    "draft_contract": [lambda t: pa.draft_contract(t)],
    "draw_records": [lambda t: pa.draw_records(t, EXACT)],
    "fingerprint": [pa.fingerprint, lambda t: fingerprint(t)],
    "link_by_distance": [
        lambda t: linkage.link_by_distance(t, GOOD, EXACT, ["a"]),
        lambda t: linkage.link_by_distance(GOOD, t, EXACT, ["a"]),
    ],
    "link_by_fellegi_sunter": [
        lambda t: linkage.link_by_fellegi_sunter(INDEX, t, ANONYMIZED.table, ["a"]),
        lambda t: linkage.link_by_fellegi_sunter(INDEX, GOOD, t, ["a"]),
    ],
    "read_formal_context": [lambda t: semantic_risk.read_formal_context(t, "binary")],
    "released_scales": [lambda t: semantic_risk.released_scales(t, ["a"], EXACT)],
    "split_records": [lambda t: pa.split_records(t)],
    "synthesize": [lambda t: pa.synthesize(t), lambda t: pa.synthesize(t, method="smooth_cart")],
    "verify_anonymity": [lambda t: pa.verify_anonymity(t, ["a"])],
    "CandidateIndex": [
        lambda t: reidentification.CandidateIndex(EXACT, t, GOOD, range(N_ROWS)),
        lambda t: reidentification.CandidateIndex(EXACT, GOOD, t, range(N_ROWS)),
        lambda t: reidentification.CandidateIndex.of_anonymization(t, ANONYMIZED),
    ],
    "WeightedCandidates": [
        lambda t: reidentification.WeightedCandidates(EXACT, t, GOOD, range(N_ROWS)),
        lambda t: reidentification.WeightedCandidates(EXACT, GOOD, t, range(N_ROWS)),
    ],
    "Cart": [lambda t: pa.Cart().fit(t, seed=0)],
    "GaussianCopula": [lambda t: pa.GaussianCopula().fit(t, seed=0)],
    "SmoothCart": [lambda t: pa.SmoothCart().fit(t, seed=0)],
    "Mst": [spent],
    "PublicDomain": [DOMAIN.encode],
    "TableContract": [
        CONTRACT.admit,
        CONTRACT.admit_synthetic,
        CONTRACT.require_known_columns,
        lambda t: BatchAdmission(CONTRACT).check(t),
    ],
    "OtherRelease": [lambda t: reidentification.OtherRelease(t, "a", EXACT)],
}
NO_TABLE_OF_THE_USER = {
    # They take a result of another function, or the names of tables that are read later.
    # Child checks its table with the others of RelatedTables, whose message names the table (tests/contract).
    *("Child", "ChildTable", "RelatedTables"),
    *("forget_in_basis", "Anonymization", "DisclosureAssessment", "LinkageAudit", "LinkerEvaluation"),
    *(
        "MembershipAssessment",
        "MpuccAssessment",
        "ReidentificationAssessment",
        "ReleaseOptions",
        "SemanticAssessment",
        "UtilityAssessment",
    ),
    *("WeightedAssessment", "ConceptLattice", "RiskChains", "AnonymizedDataset", "CutTree", "Synthesizer"),
    *("ExternalSynthetic", "GivenSplit", "AnonymizationSettings", "OtherReleaseSettings", "build_release_definitions"),
}


@pytest.mark.parametrize("function", CALLS)
def test_names_that_are_no_different_texts_are_refused_in_one_sentence(function):
    for names, said in BAD_NAMES.values():
        expected = (
            f"The table has 3 columns; of their names, {said}. Expected a different text for each column. "
            "Rename them, for example with `table.columns = [...]`."
        )
        for call in CALLS[function]:
            with pytest.raises(pa.InvalidTableError) as raised:
                call(renamed(names))
            assert str(raised.value) == expected


def takes_a_table(public):
    own = [public] if inspect.isfunction(public) else [public.__init__, *vars(public).values()]
    for function in own:
        if inspect.isfunction(function):
            parameters = inspect.signature(function).parameters.values()
            # `Table` is a frame or RelatedTables.
            if any("DataFrame" in str(each.annotation) or str(each.annotation) == "Table" for each in parameters):
                return True
    return False


def test_every_public_name_that_takes_a_table_is_tried():
    takers = {name for name, each in PUBLIC.items() if inspect.isroutine(each) or inspect.isclass(each)}
    takers = {name for name in takers if takes_a_table(PUBLIC[name])}
    assert takers - NO_TABLE_OF_THE_USER == set(CALLS)


def test_many_names_are_counted():
    with pytest.raises(pa.InvalidTableError, match=r"300 are not text \(positions 0, 1, .*, 19, and 280 more\)"):
        pa.fingerprint(pd.DataFrame(np.zeros((1, 300))))
