from numba import njit


def compiled(part):
    """Give a part of kernels an entry point for Python."""

    @njit
    def call(*arguments):
        return part(*arguments)

    return call
