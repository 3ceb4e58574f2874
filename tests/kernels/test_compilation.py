import gc
import logging

import numpy as np
import pytest
from numba import config, njit
from numba.core import event
from numba.core.errors import TypingError

from privacy_assets.kernels import compilation, compilation_progress
from privacy_assets.kernels.sorting import place_in, sort_ascending
from tests.compiled import compiled


class Watch(event.Listener):
    """Whether the garbage collector runs while functions are compiled."""

    def __init__(self):
        self.seen = []

    def on_start(self, _):
        self.seen.append(gc.isenabled())

    on_end = on_start


def compile_one(module):
    def double(x):
        return 2 * x

    double.__module__ = module
    watch = Watch()
    with event.install_listener("numba:compile", watch):
        assert njit(double)(3) == 6
    return watch.seen


only_shortened = pytest.mark.skipif(not compilation.IS_SHORTENED, reason="this version of Numba compiles as it does")


def as_if_new(monkeypatch):
    monkeypatch.setattr(compilation_progress.progress, "last_line", None)


def test_the_garbage_collector_pauses_while_own_functions_compile_and_is_left_as_it_was():
    assert compile_one("privacy_assets.of_a_test")[0] is False
    assert gc.isenabled()
    gc.disable()
    try:
        compile_one("privacy_assets.of_a_test")
        assert not gc.isenabled()
    finally:
        gc.enable()
    assert compile_one("somebody.else") == [True, True]


def test_a_failed_compilation_leaves_the_collector_and_the_count_as_they_were():
    def wrong(x):
        return x.nothing

    wrong.__module__ = "privacy_assets.of_a_test"
    with pytest.raises(TypingError, match="nothing"):
        njit(wrong)(3)
    assert gc.isenabled()
    assert compilation._compilations.depth == 0


def test_one_line_of_the_log_says_that_functions_are_compiled(monkeypatch, caplog):
    as_if_new(monkeypatch)
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            compile_one("privacy_assets.of_a_test")
        compile_one("somebody.else")
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert record.name == "privacy_assets.kernels.compilation_progress"
    assert "privacy_assets warm-up" in record.message


def test_progress_goes_to_every_report_instead_of_the_log_whatever_a_report_raises(monkeypatch, caplog):
    as_if_new(monkeypatch)
    monkeypatch.setattr(compilation_progress, "SECONDS_BETWEEN_LINES", 0.01)
    lines = []
    with (
        compilation_progress.reported_to(lambda *_: 1 / 0),
        compilation_progress.reported_to(lambda level, line: lines.append((level, line))),
    ):
        compile_one("privacy_assets.of_a_test")
        compile_one("privacy_assets.of_a_test")
    levels = [level for level, _ in lines]
    assert len(levels) >= 2
    assert levels[0] == logging.WARNING
    assert set(levels[1:]) == {logging.INFO}
    assert lines[1][1].startswith("Compiling: ")
    assert not caplog.records


def test_a_part_called_from_python_runs_as_python():
    values, n_signatures = np.array([3, 1, 2]), len(sort_ascending.signatures)
    sort_ascending(values)
    assert values.tolist() == [1, 2, 3]
    assert len(sort_ascending.signatures) == n_signatures


def one_kernel_of(called):
    """Compile a kernel that calls one function; its caller keeps no cache."""

    @compilation.kernel
    def call(values):
        return called(values)

    return call


@only_shortened
def test_a_part_is_native_only_within_kernels():
    total = one_kernel_of(place_of_largest)
    assert total(np.array([3, 9, 2])) == 1
    (of_part,) = [each.library for each in place_of_largest.overloads.values()]
    (of_kernel,) = [each.library for each in total.overloads.values()]
    assert not list(of_part.get_defined_functions())
    assert "place_of_largest" in str(of_part._get_module_for_linking())
    assert list(of_kernel.get_defined_functions())


@compilation.part
def place_of_largest(values):
    place = 0
    for i in range(len(values)):
        if values[i] > values[place]:
            place = i
    return place


@compilation.part
def all_of(values):
    return values


@compilation.part
def new_copy(values):
    return values.copy()


@compilation.allocating_part
def doubled(values):
    return 2 * values


@compilation.part
def is_even(n):
    if n == 0:
        return True
    return is_odd(n - 1)


@compilation.part
def is_odd(n):
    if n == 0:
        return False
    return is_even(n - 1)


@only_shortened
def test_parts_that_return_or_make_arrays_must_say_so():
    assert one_kernel_of(doubled)(np.arange(3)).tolist() == [0, 2, 4]
    with pytest.raises(TypeError, match="all_of returns an array, so it must be an `allocating_part`"):
        one_kernel_of(all_of)(np.arange(3))
    with pytest.raises(TypingError, match="array"):
        one_kernel_of(new_copy)(np.arange(3))


def test_other_versions_of_numba_compile_parts_as_they_do(monkeypatch, tmp_path):
    monkeypatch.setattr(compilation, "IS_SHORTENED", False)
    # Of functions that are loaded from a cache, libraries do not list what they define.
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    @compilation.part
    def first_of(values):
        return values[0]

    @compilation.inlined_part
    def last_of(values):
        return values[-1]

    for made, expected in ((first_of, 3), (last_of, 2)):
        assert one_kernel_of(made)(np.array([3, 9, 2])) == expected
        (library,) = [each.library for each in made.overloads.values()]
        assert list(library.get_defined_functions())


@only_shortened
def test_parts_must_not_call_each_other_in_a_circle():
    with pytest.raises(RuntimeError, match="Parts must not call each other in a circle, but .*is_"):
        one_kernel_of(is_even)(4)


def test_compiled_sorting_and_searching_agree_with_numpy():
    sort, find = compiled(sort_ascending), compiled(place_in)
    random = np.random.default_rng(0)
    for n in (0, 1, 2, 3, 10, 257, 5000):
        values = random.integers(-n, n + 1, n)
        expected = np.sort(values)
        sort(values)
        assert values.tolist() == expected.tolist()
        for value in random.integers(-n - 2, n + 3, 20):
            assert find(values, value) == np.searchsorted(expected, value)
