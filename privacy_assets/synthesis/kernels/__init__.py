"""Kernels, which work on arrays only."""
