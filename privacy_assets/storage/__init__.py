"""Storage of tables and results: fingerprints, artifacts, atomic files."""
