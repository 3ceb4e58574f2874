"""The README's code runs as it stands there, and its commands are those of the continuous integration."""

import re
import sys
import types

import pytest

from privacy_assets.contract.contract import TableContract
from tests.orchestration.project import CONTRACT, synthetic_people
from tests.shared_data import REPOSITORY

README = (REPOSITORY / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_code_runs(block, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    contracts = types.ModuleType("my_project.contracts")
    contracts.patients = TableContract.from_mapping(CONTRACT)
    monkeypatch.setitem(sys.modules, "my_project", types.ModuleType("my_project"))
    monkeypatch.setitem(sys.modules, "my_project.contracts", contracts)
    names = {"table": synthetic_people(50, 0)}
    exec(compile(block, "README.md", "exec"), names)
    assert len(names) > 2


def test_the_commands_install_with_the_constraints_and_the_extras_that_exist():
    commands = re.findall(r"^python3 -m venv .*$", README, flags=re.MULTILINE)
    assert len(commands) == 2
    assert all("-c constraints.txt" in command for command in commands)
    extras = set(re.findall(r"^(\w+) = \[", (REPOSITORY / "pyproject.toml").read_text(), flags=re.MULTILINE))
    used = {extra for group in re.findall(r"\.\[([\w,]+)\]", README) for extra in group.split(",")}
    assert used <= extras


def test_every_stage_of_the_table_is_an_asset():
    from privacy_assets.definitions import defs

    keys = {key.path[-1] for key in defs.resolve_asset_graph().get_all_asset_keys()}
    named = set(re.findall(r"`(\w+)`", "".join(line for line in README.splitlines(True) if line.startswith("| "))))
    assert keys <= named
