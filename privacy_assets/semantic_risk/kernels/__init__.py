"""Kernels: arrays in, arrays out; they know no frames."""
