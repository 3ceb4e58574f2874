"""The pinned versions can be installed on the oldest patch release of every Python that is promised."""

import re
from importlib.metadata import distributions

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.shared_data import REPOSITORY

PROMISED = re.findall(
    r"Programming Language :: Python :: (3\.\d+)", (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
)
PINS = {
    canonicalize_name(name): Version(version)
    for name, version in re.findall(
        r"^([\w.-]+)==(\S+)$", (REPOSITORY / "constraints.txt").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
}
INSTALLED = {canonicalize_name(each.metadata["Name"]): each for each in distributions()}


def test_every_pin_is_read():
    lines = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert len(PINS) == sum(not line.startswith("#") for line in lines)


@pytest.mark.parametrize("promised", PROMISED)
def test_pins_admit_the_oldest_patch_release_of_a_promised_python(promised):
    oldest = Version(f"{promised}.0")
    pinned = {name: each for name, each in INSTALLED.items() if Version(each.version) == PINS.get(name)}
    assert "dagster" in pinned, "these tests run in an environment that was not installed with constraints.txt"
    refusing = {
        f"{name}=={each.version}": required
        for name, each in pinned.items()
        if (required := each.metadata.get("Requires-Python")) and oldest not in SpecifierSet(required)
    }
    assert not refusing
