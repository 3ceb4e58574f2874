"""Synthetic records: split, synthesizers, and checks of their output against the table they learned from."""
