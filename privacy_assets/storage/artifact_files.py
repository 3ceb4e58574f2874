"""Artifacts as private files: a directory of one Parquet file per frame and a JSON header."""

import json
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd
import pyarrow.parquet as pq

from privacy_assets.storage.artifact import Artifact
from privacy_assets.storage.durable_files import write_directory
from privacy_assets.storage.memory import give_back_memory

HEADER_FILE = "header.json"
MOST_CELLS_AT_ONCE = 2**20
MOST_READS = 16


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
    }
    text = json.dumps(header, indent=2, allow_nan=False)
    files: dict[str, Any] = {HEADER_FILE: lambda file: file.write(text.encode())}
    for name, frame in artifact.frames.items():
        files[f"{name}.parquet"] = _parquet_writer(frame)
    write_directory(path, files)


def read_artifact(path: Path) -> Artifact:
    """Read an artifact stored by `write_artifact`.

    Raises
    ------
    FileNotFoundError
        If ``path`` does not exist.
    OSError, ValueError, KeyError
        If a file is missing or cannot be read.
    """
    header = json.loads((path / HEADER_FILE).read_bytes())
    frames = {name: read_frame(path / f"{name}.parquet") for name in header["frames"]}
    return Artifact(header["kind"], header["header"], frames, header["made_of"])


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


def _parquet_writer(frame: pd.DataFrame) -> Any:
    def write(file: BinaryIO) -> None:
        frame.to_parquet(file, engine="pyarrow", index=False)

    return write
