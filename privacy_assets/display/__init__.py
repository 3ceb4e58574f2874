"""Display of figures, pictures, results and progress in texts, terminals and notebooks."""
