from math import inf, nan

import numpy as np
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import has_words, is_integer, is_number, one_of, require, require_flag


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


MARKS = (
    *(
        "",
        " ",
        "-",
        "----",
        "--- --- ---",
        "x",
        "xxx",
        "x x x",
        "xx yy zz",
        "???",
        "? ? ?",
        "...",
        "n/a",
        "n/a n/a n/a",
        "N.A.",
    ),
    *(
        "tbd",
        "TBD TBD TBD",
        "asdf",
        "asdf asdf asdf",
        "asdf qwer zxcv",
        "fdsa rewq vcxz",
        "abc def ghi",
        "aaa bbb ccc",
        "ok",
        "ok ok ok",
    ),
    *(
        "none",
        "yes",
        "see above",
        "no reason",
        "1 2 3",
        "12345",
        "2026-01-01 12:00:00",
        "a b c",
        "e.g. i.e.",
        "\u2605\u2605\u2605",
    ),
    *("\u2014 \u2014 \u2014", "\U0001f44d \U0001f44d \U0001f44d", "_ _ _", "a_ b_ c_", "\u00a0", "lorem"),
    # "None", "not applicable", "unknown" and the like, where no spaces are written.
    *(
        "\u65e0",
        "\u4e0d\u9002\u7528",
        "\u5f85\u5b9a",
        "\u306a\u3057",
        "\u8a72\u5f53\u306a\u3057",
        "\u54c8" * 12,
        "\ud574\ub2f9 \uc5c6\uc74c",
    ),
    *("\uff41\uff53\uff44\uff46", "\uff1f\uff1f\uff1f", "\u202ethe board decided\u202c", "the\x00 board decided"),
)
REASONS = (
    *(
        "the board decided",
        "Names of public offices, not of people",
        "Deleted by the recipient; A. Lovelace",
        "Public by law 12",
    ),
    *(
        "Beschluss der Ethikkommission",
        "décision du comité",
        "шифр из открытого списка",
    ),
    # The ethics board approved it; the committee decides; an agency's name; in Chinese, Japanese, Korean, Thai.
    *(
        "伦理委员会已批准",
        "委员会决定",
        "公开的机关名称",
    ),
    *(
        "倫理委員会の決定",
        "公開された役所の名前",
        "윤리위원회 승인",
    ),
    "คณะกรรมการอนุมัติ",
    # Vowel signs (Hindi) and joiners (Persian) are within words.
    "नैतिकता समिति का निर्णय",
    "تصمیم کمیته اخلاق می\u200cشود",
    "القرار من اللجنة",
    "numbers of the study,\nas its board decided",
    "AI 委员会 approved",
)


@pytest.mark.parametrize("text", MARKS)
def test_marks_are_no_reason(text):
    assert not has_words(text)


@pytest.mark.parametrize("text", REASONS)
def test_words_of_any_script_are_a_reason(text):
    assert has_words(text)
