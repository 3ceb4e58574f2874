"""The 27 records of the paper's running example, as a table and as a context.

Source: G. A. Aranda-Corral, J. Borrego-Diaz, J. Galan-Paez, "FCA-based reasoning for privacy", Figure 1. The context of
its Figure 4 contradicts the supports of Figures 8 and 9 in six cells; this is the only one, up to the order of three
records, that has all 26 of them.
"""

import pandas as pd

ATTRIBUTES = ["S:M", "S:F", "Date:1935-55", "Date:1945-65", "Date:1955-75", "Date:1965-85", "Date:1975-95"]
ROWS = [
    "1001100", "1000110", "0111100", "1001100", "0110000", "0100110", "0100110", "0100001", "1001100",
    "1000110", "1000110", "0101100", "1000110", "1000110", "0100110", "0111000", "1000110", "0101100",
    "0101100", "1000011", "0100110", "1000110", "1000110", "0111000", "0100011", "1010000", "1000110",
]  # fmt: skip
YEARS = [1959, 1969, 1955, 1959, 1942, 1975, 1966, 1987, 1959, 1967, 1968, 1955, 1967, 1967]
YEARS += [1966, 1955, 1967, 1956, 1956, 1978, 1966, 1967, 1971, 1954, 1977, 1944, 1965]
SEX = ["Male" if row[0] == "1" else "Female" for row in ROWS]
NUMBERS = pd.RangeIndex(1, 28, name="id")

PEOPLE = pd.DataFrame({"sex": SEX, "year": YEARS}, index=NUMBERS)
CONTEXT = pd.DataFrame([[cell == "1" for cell in row] for row in ROWS], columns=ATTRIBUTES, index=NUMBERS)
WINDOWS = [[1935, 1955], [1945, 1965], [1955, 1975], [1965, 1985], [1975, 1995]]
