"""Kernels shared by several rooms, which work on arrays only."""
