"""Rules of a context: implications, which are always true, and rules of lower confidence."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privacy_assets.errors import InvalidSettingError
from privacy_assets.semantic_risk.concept_lattice import WORDS_READ, find_concepts, names_of, too_many
from privacy_assets.semantic_risk.formal_context import FormalContext
from privacy_assets.semantic_risk.kernels.stem_basis import Implications, find_stem_basis
from privacy_assets.semantic_risk.row_measures import measure_context
from privacy_assets.semantic_risk.settings import MAX_CONCEPTS
from privacy_assets.setting_checks import is_integer, is_number, require


def stem_basis(context: FormalContext, *, min_support: int = 0, max_concepts: int = MAX_CONCEPTS) -> pd.DataFrame:
    """Find the Duquenne-Guigues basis: a minimal set of implications from which all others follow.

    Parameters
    ----------
    min_support : int
        Smallest number of records with the premise. All implications of at least this support follow from the basis.
        With 0 it also covers attributes that never occur together, which takes minutes for 76 nominal attributes,
        compared to seconds with 1.
    max_concepts : int
        Maximum number of closed sets and pseudo-intents to visit.

    Returns
    -------
    basis : DataFrame
        ``premise`` and ``conclusion`` (names; the conclusion without the premise), ``premise_support`` and
        ``rule_support`` (records; equal, because every record with the premise has the conclusion).

    Raises
    ------
    InvalidSettingError
        If there are more sets than allowed, or a setting is out of range.
    """
    found = find_implications(context, min_support, max_concepts)
    return pd.DataFrame(
        {
            "premise": names_of(context, found.premises),
            "conclusion": names_of(context, found.conclusions & ~found.premises),
            "premise_support": found.supports,
            "rule_support": found.supports,
        }
    )


def find_implications(context: FormalContext, min_support: int, max_concepts: int) -> Implications:
    """Find the stem basis as bits, or refuse."""
    require(is_integer(min_support, 0), "min_support", min_support, "an integer of at least 0")
    require(is_integer(max_concepts, 1), "max_concepts", max_concepts, "an integer above 0")
    found = find_stem_basis(context.packed, min_support, max_concepts, WORDS_READ)
    if found is None:
        raise too_many(context, "closed sets and pseudo-intents", min_support, max_concepts)
    return found


def luxenburger_basis(
    context: FormalContext, *, min_confidence: float, min_support: int = 0, max_concepts: int = MAX_CONCEPTS
) -> pd.DataFrame:
    """Find the Luxenburger basis: all rules from a concept to a lower neighbor, with the stem basis added.

    Parameters
    ----------
    min_confidence : float
        Smallest share of the records with the premise that have the conclusion, from 0 to 1.
    min_support : int
        Smallest number of records that have premise and conclusion.
    max_concepts : int
        Maximum number of concepts to list.

    Returns
    -------
    basis : DataFrame
        ``premise`` and ``conclusion`` (names; the conclusion without the premise), ``premise_support`` and
        ``rule_support`` (records with the premise; with both), ``confidence``, and ``confidence_bound``: the bound of
        Corollary 5.2 of the source, NaN for rules of the stem basis, which are always true. Sorted by confidence and
        support; the stem basis comes last.
    """
    if not is_number(min_confidence, 0, 1):
        raise InvalidSettingError(f"min_confidence is {min_confidence!r}. Expected a number from 0 to 1.")
    found = find_concepts(context, min_support, max_concepts)
    premise_support, rule_support = found.supports[found.upper], found.supports[found.lower]
    confidence = rule_support / premise_support
    kept = np.flatnonzero(confidence >= min_confidence)
    kept = kept[np.lexsort((-rule_support[kept], -confidence[kept]))]
    smallest = int(measure_context(context).differences.min())
    partial = pd.DataFrame(
        {
            "premise": names_of(context, found.intents[found.upper[kept]]),
            "conclusion": names_of(context, (found.intents[found.lower] & ~found.intents[found.upper])[kept]),
            "premise_support": premise_support[kept],
            "rule_support": rule_support[kept],
            "confidence": confidence[kept],
            "confidence_bound": [confidence_bound(1 / smallest, int(support)) for support in premise_support[kept]],
        }
    )
    exact = stem_basis(context, min_support=min_support, max_concepts=max_concepts)
    exact = exact.assign(confidence=1.0, confidence_bound=np.nan)
    return pd.concat([frame for frame in (partial, exact) if len(frame)] or [partial], ignore_index=True)


def confidence_bound(basic_semantic_risk: float, premise_support: int) -> float:
    """Bound the confidence of a rule whose conclusion is not already implied by its premise.

    The bound is ``(r s - 1) / (r s)``: r is the risk of a record whose attributes are the premise (Proposition 5.1), or
    the maximum over all records for any premise (Corollary 5.2, Theorem 5.3), s the records that have the premise, at
    least 1. The source prints another numerator in Proposition 5.1, and states Theorem 5.3 without the condition on the
    conclusion: it is false for implied conclusions, whose confidence is 1.
    """
    return (basic_semantic_risk * premise_support - 1) / (basic_semantic_risk * premise_support)
