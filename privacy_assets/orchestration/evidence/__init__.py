"""What the gate may know: storage, Dagster's record, and what was published or refused before."""
