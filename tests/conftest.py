"""Fewer rounds of garbage collection: compiling kernels makes millions of objects that stay."""

import gc

gc.set_threshold(100_000, 20, 20)
