"""Integers of any length are read as what they are; floats join those beyond 2**53."""

import pandas as pd
import pytest

from privacy_assets.columns.masks import BoundedNoise, ReleaseModel
from privacy_assets.errors import InvalidTableError
from privacy_assets.reidentification.candidate_index import CandidateIndex

LONG = [
    [0, 2**53, 2**53 + 1, 2**53 + 2],
    [-(2**63), 2**62, 2**62 + 1, 2**63 - 1],
    [-1, 2**63 - 1, 2**63, 2**64 - 1],
    [10**20, 10**20 + 1, 10**20 + 2, 10**30],
]


@pytest.mark.parametrize("numbers", LONG)
def test_integers_of_any_length_are_read_exactly(numbers):
    """With 19 digits they were read as floats, each of which is several integers."""
    a, b, c, d = numbers
    cases = {
        f"[{a}, {b}]": [a, b], f"[{b}, {c})": [b], f"({b}, {c}]": [c], f"<={c}": [a, b, c], f">{c}": [d],
        f"{{{b}, {c}}}": [b, c], f"{d}": [d], f"{b}.0": [b], f"[{b}.0, {c}.5]": [b, c], f"<{c}.5": [a, b, c],
        f"[{b}, 1e400]": [b, c, d], f"[-1e99, {b}]": [a, b], "<=1e999999999": [a, b, c, d],
    }  # fmt: skip
    if a >= 0:
        cases |= {f"{b}-{c}": [b, c], f"{b}+": [b, c, d]}
    original = pd.DataFrame({"number": numbers})
    released = pd.DataFrame({"number": list(cases)})
    truth = [numbers.index(values[0]) for values in cases.values()]
    index = CandidateIndex(ReleaseModel.from_labels(["number"]), original, released, truth)
    for i, (label, values) in enumerate(cases.items()):
        assert [numbers[x] for x in index.members(i, ["number"])] == values, label


@pytest.mark.parametrize("numbers", LONG)
def test_noise_on_integers_of_any_length_is_exact(numbers):
    original = pd.DataFrame({"number": numbers})
    for width in (0, 1, 1.5):
        index = CandidateIndex(ReleaseModel({"number": BoundedNoise("number", width)}), original, original, range(4))
        for i, released in enumerate(numbers):
            own = [x for x, number in enumerate(numbers) if abs(number - released) <= width]
            assert index.members(i, ["number"]).tolist() == own


@pytest.mark.parametrize("label", ["nan", "Infinity", "[1, nan]", "1_0.0.0"])
def test_numbers_that_are_none_are_refused(label):
    original = pd.DataFrame({"number": [1, 2**60]})
    released = pd.DataFrame({"number": [label, "*"]})
    with pytest.raises(InvalidTableError, match=r"'number': 1 of its released values \(in 1 rows\)") as caught:
        CandidateIndex(ReleaseModel.from_labels(["number"]), original, released, [0, 1])
    assert label not in str(caught.value)
