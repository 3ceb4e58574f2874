"""The row of a person that is closest to the synthetic row by which the person is singled out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privacy_assets.kernels.compilation import kernel
from privacy_assets.mpucc.kernels.code_blocks import CodeBlocks, code_at


@kernel
def find_closest_rows(
    blocks: CodeBlocks,
    n_synthetic: int,
    combos: NDArray[np.int16],
    combo_of_row: NDArray[np.int64],
    person_of_row: NDArray[np.int64],
    rows_of_people: NDArray[np.int64],
    starts: NDArray[np.int64],
    partner_of_row: NDArray[np.int32],
) -> None:
    """Replace each partner, if there is one, by the row of the same person that agrees with it on most columns.

    Only rows with its values on the combination that identifies it are compared; of equally close rows, the first is
    taken. ``blocks`` has the synthetic rows first, then the others. The rows of person p, ascending, are those of
    ``rows_of_people`` from ``starts[p]`` to ``starts[p + 1]``; combinations are padded with -1.
    """
    memory, offset, shift, n_codes, _ = blocks
    for row in range(n_synthetic):
        if partner_of_row[row] < 0:
            continue
        person, combo = person_of_row[partner_of_row[row]], combos[combo_of_row[row]]
        most = -1
        for p in range(starts[person], starts[person + 1]):
            other = rows_of_people[p]
            agrees = True
            for place in range(len(combo)):
                c = combo[place]
                if c < 0:
                    break
                if code_at(memory, offset[c], shift[c], row) != code_at(
                    memory, offset[c], shift[c], n_synthetic + other
                ):
                    agrees = False
                    break
            if not agrees:
                continue
            n_agree = 0
            for c in range(len(n_codes)):
                n_agree += code_at(memory, offset[c], shift[c], row) == code_at(
                    memory, offset[c], shift[c], n_synthetic + other
                )
            if n_agree > most:
                most, partner_of_row[row] = n_agree, other
