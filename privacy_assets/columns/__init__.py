"""The door between frames and codes: coding, hierarchies, scales and masks of columns."""
