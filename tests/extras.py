"""Marks for tests that need an extra of the package, for environments without."""

from importlib.util import find_spec

import pytest

NEEDS_TREES = pytest.mark.skipif(find_spec("sklearn") is None, reason="needs the extra `trees`")
NEEDS_DP = pytest.mark.skipif(find_spec("opendp") is None, reason="needs the extra `dp`")
NEEDS_SPLINK = pytest.mark.skipif(find_spec("splink") is None, reason="needs the extra `linkage`")
CART = pytest.param("cart", marks=NEEDS_TREES)
