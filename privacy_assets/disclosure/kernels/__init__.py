"""Compiled kernels of the disclosure test: arrays in, arrays out."""
