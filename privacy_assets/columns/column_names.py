"""Names of the columns of a table."""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from privacy_assets.errors import InvalidTableError


def require_unique_text_names(table: pd.DataFrame) -> None:
    """Raise InvalidTableError unless all column names are distinct strings."""
    require_unique_names(list(table.columns))


def require_unique_names(names: Sequence[object]) -> None:
    """Raise InvalidTableError unless all names of columns are distinct strings."""
    not_text = [position for position, name in enumerate(names) if not isinstance(name, str)]
    if not_text:
        raise InvalidTableError(
            f"The columns at positions {not_text} have names that are not strings. Rename them, for example with "
            "`table.columns = table.columns.astype(str)`."
        )
    repeated = sorted({str(name) for name, count in Counter(names).items() if count > 1})
    if repeated:
        raise InvalidTableError(f"Column names are repeated: {repeated}. Expected distinct names.")
