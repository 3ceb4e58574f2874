"""Work in slices ends when the caller is interrupted, on one thread as on several."""

import os
import signal
import threading

import pytest

from privacy_assets.kernels.slices import SlicePool


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_items", [0, 1, 7, 1000])
def test_every_item_is_in_one_slice_and_slices_ascend(n_threads, n_items):
    with SlicePool(n_threads) as pool:
        slices = [piece for own in pool.run(n_items, list) for piece in own]
    assert sorted(i for begin, stop in slices for i in range(begin, stop)) == list(range(n_items))
    assert not pool.is_stopped[0]


@pytest.fixture
def interrupts():
    """Python's own handler, which a process that a shell starts in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_no_slice_is_handed_out_after_an_interrupt(n_threads):
    """The signal comes while a slice is worked on, as from a notebook or from Dagster that ends a run."""
    begun = []

    def task(slices):
        for piece in slices:
            begun.append(piece)
            os.kill(os.getpid(), signal.SIGINT)
            assert ended.wait(60)

    ended = threading.Event()
    with pytest.raises(KeyboardInterrupt), SlicePool(n_threads) as pool:
        try:
            pool.run(1000, task)
        finally:
            assert pool.is_stopped[0]
            ended.set()
    assert 1 <= len(begun) <= n_threads


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_of_a_slice_or_of_a_report_ends_the_others(n_threads):
    begun = []

    def failing(slices):
        for piece in slices:
            begun.append(piece)
            raise ArithmeticError

    with pytest.raises(ArithmeticError), SlicePool(n_threads) as pool:
        pool.run(1000, failing)
    assert len(begun) <= n_threads

    def waiting(slices):
        for _ in slices:
            assert ended.wait(60)

    def report():
        ended.set()
        raise StopAsyncIteration

    ended = threading.Event()
    with pytest.raises(StopAsyncIteration), SlicePool(n_threads, report) as pool:
        pool.run(1000, waiting)
