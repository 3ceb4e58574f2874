"""Evidence for the gate: storage, Dagster's record, earlier publications and refusals."""
