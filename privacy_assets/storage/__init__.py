"""Where tables and results rest: fingerprints, artifacts, files that are whole or not there."""
