"""Frames in, frames and small frozen results out."""
