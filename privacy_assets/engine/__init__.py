"""Where the heaviest kernels run: in this process, or on the workers of a cluster."""
