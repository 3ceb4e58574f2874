"""The manifest of a release in the formats of others: an attestation, and cards for catalogs."""
