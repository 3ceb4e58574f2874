"""Synthetic records: split, synthesizers, and their output held to the table they learned from."""
