"""Texts that differ from another by few edits: insertions, deletions and substitutions of one character."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


class SimilarTexts:
    """Finds the texts of a list that are at most some edits from a given one (Levenshtein's distance).

    If a text is cut into one more piece than there are edits, at least one piece is unchanged, and moved by at most as
    many characters [1]_. So a text is compared only with those that share a piece at such a position.

    .. [1] G. Li, D. Deng, J. Wang, J. Feng (2011), "Pass-Join: a partition-based method for similarity joins",
       doi:10.14778/2078331.2078340, section 3.
    """

    def __init__(self, texts: Sequence[str], edits: int) -> None:
        self.edits = edits
        self.lengths = np.array([len(text) for text in texts], np.int64)
        # The texts of each length as code points, and the position of each among them.
        self._points: dict[int, NDArray[np.uint32]] = {}
        self._place = np.zeros(len(texts), np.int64)
        for length in np.unique(self.lengths).tolist():
            own = np.flatnonzero(self.lengths == length)
            self._place[own] = np.arange(len(own))
            self._points[length] = _code_points([texts[t] for t in own.tolist()], length)
        self._with_piece: dict[tuple[int, int, str], list[int]] = defaultdict(list)
        for t, text in enumerate(texts):
            for number, (begin, end) in enumerate(self._pieces(len(text))):
                self._with_piece[len(text), number, text[begin:end]].append(t)

    def near(self, text: str) -> NDArray[np.int64]:
        """Return the positions of the texts within the distance, ascending."""
        found = []
        for length in range(max(len(text) - self.edits, 0), len(text) + self.edits + 1):
            if length not in self._points:
                continue
            shared: set[int] = set()
            for number, (begin, end) in enumerate(self._pieces(length)):
                for moved in range(max(begin - self.edits, 0), begin + self.edits + 1):
                    shared.update(self._with_piece.get((length, number, text[moved : moved + end - begin]), ()))
            if shared:
                own = np.array(sorted(shared), np.int64)
                found.append(own[_are_near(text, self._points[length][self._place[own]], self.edits)])
        return np.sort(np.concatenate(found)) if found else np.zeros(0, np.int64)

    def _pieces(self, length: int) -> list[tuple[int, int]]:
        """Return where the pieces of a text begin and end; short texts have empty ones."""
        ends = [length * number // (self.edits + 1) for number in range(self.edits + 2)]
        return list(pairwise(ends))


def _code_points(texts: Sequence[str], length: int) -> NDArray[np.uint32]:
    """Return texts of one length as an array of shape (n_texts, length)."""
    return np.array([list(map(ord, text)) for text in texts], np.uint32).reshape(len(texts), length)


def _are_near(text: str, others: NDArray[np.uint32], edits: int) -> NDArray[np.bool_]:
    """Return which texts of one length are within the distance, by the usual table of distances of beginnings.

    Only distances of beginnings whose lengths differ by at most ``edits`` can be within it.
    """
    n_others, length = others.shape
    before = np.full((length + 1, n_others), edits + 1)
    before[: edits + 1] = np.arange(min(edits, length) + 1)[:, None]
    for i, point in enumerate(map(ord, text), start=1):
        now = np.full((length + 1, n_others), edits + 1)
        for j in range(max(i - edits, 0), min(i + edits, length) + 1):
            if j == 0:
                now[0] = i
                continue
            changed = before[j - 1] + (others[:, j - 1] != point)
            now[j] = np.minimum(changed, np.minimum(before[j], now[j - 1]) + 1)
        before = now
    return np.asarray(before[length] <= edits)
