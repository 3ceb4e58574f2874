"""The fingerprint as its definition reads, cell by cell."""

import hashlib
import math
import struct

FORMATS = {"int64": "<q", "uint64": "<Q", "double": "<d", "bool": "<?", "date32[day]": "<i", "duration[ns]": "<q"}


def reference_fingerprint(columns: list[tuple[str, str, list]], rows_per_digest: int) -> str:
    """Compute the fingerprint of columns given as name, kind and cells; None is a missing value.

    Datetimes are whole numbers of nanoseconds, dates of days, durations of nanoseconds.
    """
    n_rows = len(columns[0][2]) if columns else 0
    data = b"privacy_assets table 1" + struct.pack("<qq", n_rows, len(columns))
    for name, kind, cells in columns:
        is_known = any(cell is not None and not (isinstance(cell, float) and math.isnan(cell)) for cell in cells)
        for text in (name, kind if is_known else "null"):
            data += struct.pack("<q", len(text.encode())) + text.encode()
        parts = [cells[begin : begin + rows_per_digest] for begin in range(0, n_rows, rows_per_digest)]
        data += struct.pack("<q", len(parts))
        data += b"".join(_digest(kind, part) for part in parts)
    return hashlib.sha256(data).hexdigest()


def _digest(kind: str, cells: list) -> bytes:
    cells = [None if isinstance(cell, float) and math.isnan(cell) else cell for cell in cells]
    present = [cell for cell in cells if cell is not None]
    lengths = values = below = b""
    if kind == "large_string":
        lengths = b"".join(struct.pack("<q", len(text.encode())) for text in present)
        values = b"".join(text.encode() for text in present)
    elif kind.startswith("timestamp"):
        values = b"".join(struct.pack("<q", cell // 1000) for cell in present)
        below = b"".join(struct.pack("<h", cell % 1000) for cell in present)
    elif kind != "null":
        values = b"".join(struct.pack(FORMATS[kind], cell + 0.0 if kind == "double" else cell) for cell in present)
    parts = (bytes(cell is not None for cell in cells), lengths, values, below)
    digests = b"".join(hashlib.sha256(part).digest() for part in parts)
    return hashlib.sha256(struct.pack("<q", len(cells)) + digests).digest()
