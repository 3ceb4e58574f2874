"""Noise and private selection, by OpenDP, and their costs by OpenDP's own accounting.

OpenDP marks these constructors as contributed, which means that their proofs have not been fully reviewed. Their random
numbers come from a generator that OpenSSL seeds from the operating system, so there is no seed that could become known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.errors import InvalidSettingError


@dataclass(frozen=True)
class Mechanism:
    """A measurement of OpenDP, and the cost of one use in rho by OpenDP's map, for the sensitivity of the mechanism.

    ``scale`` is the standard deviation of the Gaussian noise, or the scale of the Gumbel noise.
    """

    rho: float
    scale: float
    measurement: Callable[[list[int]], Any]

    def noisy(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts with noise, in their shape; only for `gaussian`."""
        return np.asarray(self.measurement(counts.ravel().tolist()), dtype=np.int64).reshape(counts.shape)

    def best(self, scores: NDArray[np.int64]) -> int:
        """Return the position of the score that is the largest after noise; only for `noisy_maximum`."""
        return int(self.measurement(scores.tolist()))


def gaussian(rho: float, sensitivity: int) -> Mechanism:
    """Return discrete Gaussian noise for counts that one person changes by at most `sensitivity` (Euclidean norm)."""
    dp = opendp()
    scale = sensitivity / sqrt(2 * rho)
    measurement = dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale=scale)
    return Mechanism(measurement.map(float(sensitivity)), scale, measurement)


def noisy_maximum(rho: float, sensitivity: int) -> Mechanism:
    """Return the choice of a high score (Gumbel noise); one person changes each score by at most `sensitivity`."""
    dp = opendp()
    scale = sensitivity / sqrt(2 * rho)
    measurement = dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i64")),
        dp.linf_distance(T="i64"),
        dp.zero_concentrated_divergence(),
        scale=scale,
    )
    return Mechanism(measurement.map(int(sensitivity)), scale, measurement)


@cache
def opendp() -> Any:
    """Import OpenDP, which takes seconds."""
    require_opendp()
    prelude = import_module("opendp.prelude")
    prelude.enable_features("contrib")
    return prelude


def require_opendp() -> None:
    """Refuse an environment without OpenDP."""
    if find_spec("opendp") is None:
        raise InvalidSettingError(
            "Differential privacy needs OpenDP, which is not installed: pip install 'privacy-assets[dp]'. Nothing was "
            "synthesized, and nothing was spent."
        )
