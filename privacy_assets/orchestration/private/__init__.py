"""Privacy of cells: the guard, and the storage of private tables."""
