"""Artifacts as private files: a directory of one Parquet file per frame, one PNG per picture, and a JSON header."""

import json
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow.parquet as pq

from privacy_assets.display.pictures import Picture
from privacy_assets.storage.artifact import TABLE_KIND, WRITTEN, Artifact
from privacy_assets.storage.durable_files import write_directory
from privacy_assets.storage.memory import give_back_memory
from privacy_assets.storage.table import StoredTable

HEADER_FILE = "header.json"
MOST_CELLS_AT_ONCE = 2**20
MOST_READS = 16
LARGE_FRAMES = frozenset({TABLE_KIND, "original", "synthetic", "control", "members"})
"""Frames that may have as many rows as the source."""


def write_artifact(path: Path, artifact: Artifact) -> None:
    """Store an artifact at ``path``, replacing an earlier one atomically.

    Only the owner can read the directory (0700, files 0600).

    Raises
    ------
    OSError
        If the disk is full or the path cannot be written; the earlier artifact is kept.
    """
    header = {
        "kind": artifact.kind,
        "header": dict(artifact.header),
        "made_of": dict(artifact.made_of),
        "frames": list(artifact.frames),
        "pictures": {name: [picture.text, picture.title] for name, picture in artifact.pictures.items()},
    }
    text = json.dumps(header, indent=2, allow_nan=False)
    files: dict[str, Any] = {HEADER_FILE: partial(_write_bytes, text.encode())}
    for name, frame in artifact.frames.items():
        is_stored = isinstance(frame, StoredTable)
        files[f"{name}.parquet"] = frame.copy_to if is_stored else partial(frame.to_parquet, index=False)
    for name, picture in artifact.pictures.items():
        files[f"{name}.png"] = partial(_write_bytes, picture.png)
    write_directory(path, files)


def read_artifact(path: Path, *, is_large: bool = False) -> Artifact:
    """Read an artifact stored by `write_artifact`; if its tables may be large, these are `StoredTable`.

    Raises
    ------
    FileNotFoundError
        If ``path`` does not exist.
    OSError, ValueError, KeyError
        If a file is missing or cannot be read.
    """
    header = json.loads((path / HEADER_FILE).read_bytes())
    frames: dict[str, Any] = {}
    for name in header["frames"]:
        file = path / f"{name}.parquet"
        is_stored = is_large and name.removeprefix(WRITTEN) in LARGE_FRAMES
        frames[name] = StoredTable([file.open("rb")]) if is_stored else read_frame(file)
    pictures = {
        name: Picture(text, (path / f"{name}.png").read_bytes(), title)
        for name, (text, title) in header["pictures"].items()
    }
    return Artifact(header["kind"], header["header"], frames, header["made_of"], pictures)


def read_frame(file: Path | BinaryIO) -> pd.DataFrame:
    """Read a frame; a large one by a few columns at a time, because Arrow keeps the read data as well."""
    schema, n_rows = pq.read_schema(file), pq.read_metadata(file).num_rows
    if n_rows * len(schema) <= MOST_CELLS_AT_ONCE:
        return pd.read_parquet(file, engine="pyarrow")
    n_at_once = -(-len(schema) // MOST_READS)
    columns: dict[str, pd.Series] = {}
    for first in range(0, len(schema), n_at_once):
        few = pd.read_parquet(file, engine="pyarrow", columns=schema.names[first : first + n_at_once])
        columns |= {name: few[name] for name in few.columns}
    frame = pd.DataFrame(columns, copy=False)
    frame.attrs = few.attrs
    give_back_memory()
    return frame


def _write_bytes(content: bytes, file: BinaryIO) -> None:
    file.write(content)
