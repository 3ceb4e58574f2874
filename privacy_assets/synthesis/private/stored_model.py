"""Storage of a noisy model between its fit, which spends, and the draw of records, which does not."""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np
import pandas as pd

from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.artifact import Artifact
from privacy_assets.synthesis.private.domain import PublicDomain
from privacy_assets.synthesis.private.mst import Merged, NoisyModel
from privacy_assets.synthesis.private.records import Charge
from privacy_assets.synthesis.private.tree_model import TreeModel

KIND: Final = "NoisyModel"


def to_artifact(model: NoisyModel, spending: str, settings: dict[str, Any], made_of: dict[str, str]) -> Artifact:
    """Return the artifact of a model, with the digest of its entry in the ledger, without values of the domain."""
    tables = [*model.tree.columns, *model.tree.pairs]
    header = {
        "spending": spending,
        "settings": settings,
        "epsilon": model.epsilon,
        "delta": model.delta,
        "given": model.given,
        "n_records": model.n_records,
        "sizes": list(model.domain.sizes),
        "edges": [list(edge) for edge in model.tree.edges],
        "shapes": [list(table.shape) for table in tables],
        "merged": [[len(each.code), len(each.rare)] for each in model.merged],
        "charges": [[charge.what, charge.rho] for charge in model.charges],
    }
    whole = {
        name: np.concatenate([getattr(each, name) for each in model.merged]) for name in ("code", "rare", "shares")
    }
    frames = {
        "counts": pd.DataFrame({"count": np.concatenate([table.ravel() for table in tables])}),
        "codes": pd.DataFrame({"code": whole["code"]}),
        "rare": pd.DataFrame({"code": whole["rare"], "share": whole["shares"]}),
    }
    return Artifact(KIND, header, frames, made_of)


def from_artifact(artifact: Artifact, domain: PublicDomain) -> NoisyModel:
    """Read a model, whose codes stand for the values of `domain`; refuse one that was made with another domain."""
    header = artifact.header
    if artifact.kind != KIND or tuple(header["sizes"]) != domain.sizes:
        raise InvalidTableError(
            "The noisy model was made with another contract or other bins, so its codes stand for other values. "
            "Materialize the noisy model again, which spends again, or restore the contract. Nothing was drawn."
        )
    counts = artifact.frames["counts"]["count"].to_numpy(dtype=np.float64)
    ends = np.cumsum([prod(shape) for shape in header["shapes"]])
    parts = np.split(counts, ends[:-1])
    tables = [part.reshape(shape) for part, shape in zip(parts, header["shapes"], strict=True)]
    codes = artifact.frames["codes"]["code"].to_numpy(dtype=np.int64)
    rare = artifact.frames["rare"]["code"].to_numpy(dtype=np.int64)
    shares = artifact.frames["rare"]["share"].to_numpy(dtype=np.float64)
    sizes = np.array(header["merged"], dtype=np.int64).reshape(-1, 2).cumsum(axis=0)[:-1]
    merged = tuple(
        Merged(*each)
        for each in zip(
            np.split(codes, sizes[:, 0]), np.split(rare, sizes[:, 1]), np.split(shares, sizes[:, 1]), strict=True
        )
    )
    edges = tuple((int(a), int(b)) for a, b in header["edges"])
    n_columns = len(merged)
    return NoisyModel(
        domain,
        header["given"],
        TreeModel(edges, tables[:n_columns], tables[n_columns:]),
        merged,
        int(header["n_records"]),
        tuple(Charge(what, rho) for what, rho in header["charges"]),
        float(header["epsilon"]),
        float(header["delta"]),
    )
