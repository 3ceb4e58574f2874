from math import inf, nan

import numpy as np
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import is_integer, is_number, one_of, require, require_flag


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3), np.int64(3)])
def test_integers_of_python_and_numpy_are_integers(value):
    assert is_integer(value, 3, 3)
    assert not is_integer(value, 4)
    assert not is_integer(value, 0, 2)
    assert is_number(value, 3, 3)


@pytest.mark.parametrize("value", [True, np.True_, 3.0, np.float64(3), "3", None, [3], 3j])
def test_what_only_equals_an_integer_is_not_one(value):
    assert not is_integer(value, 0)


@pytest.mark.parametrize("value", [0.1, np.float32(0.1), np.float64(0.1), np.float16(0.1)])
def test_floats_of_python_and_numpy_are_numbers(value):
    assert is_number(value, 0, 1)
    assert not is_number(value, 0.2, 1)


@pytest.mark.parametrize(
    "value", [True, np.False_, nan, inf, -inf, np.float32(inf), 10**400, -(10**400), "1", None, 1j]
)
def test_a_number_is_finite_and_not_a_boolean(value):
    assert not is_number(value)
    assert not is_number(value, -inf, inf)


@pytest.mark.parametrize(("check", "value"), [(is_integer, np.int64(3)), (is_number, np.int64(3))])
def test_plain_numbers_are_those_that_json_can_write(check, value):
    assert check(value)
    assert not check(value, plain=True)
    assert check(value.item(), plain=True)


def test_the_refusal_names_setting_value_expectation_and_consequence():
    with pytest.raises(InvalidSettingError) as raised:
        require(False, "k", 0, "a whole number above 0", "Nothing was anonymized.")
    assert str(raised.value) == "k is 0. Expected a whole number above 0. Nothing was anonymized."
    with pytest.raises(InvalidSettingError, match=r"advice is 1\. Expected True or False\. Nothing was assessed\."):
        require_flag("advice", 1)
    require_flag("advice", False)
    assert one_of(("gain", "range")) == "one of gain, range"
