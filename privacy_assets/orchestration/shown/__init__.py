"""What people see in Dagster: metadata and pictures, never a cell."""
