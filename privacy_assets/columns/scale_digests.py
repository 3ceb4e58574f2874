"""Comparison of scales by digest, without revealing their thresholds and values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.scales import ConceptualScale, read_scale


def scale_digests(scales: Mapping[str, Any]) -> dict[str, str]:
    """Return kind and SHA-256 of each scale, by column; equal for equal scales."""
    return {name: _digest(read_scale(scale)) for name, scale in sorted(scales.items())}


def _digest(scale: ConceptualScale) -> str:
    parts = []
    for field in fields(scale):
        value = getattr(scale, field.name)
        parts.append((field.name, value.described() if isinstance(value, Hierarchy) else value))
    return f"{scale.kind} {hashlib.sha256(repr(parts).encode()).hexdigest()}"
