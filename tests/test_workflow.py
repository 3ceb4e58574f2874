"""The workflow covers what the package promises, with the commands of the README and of .ci/run."""

import re
import tomllib

import pytest
import yaml

from tests.shared_data import REPOSITORY
from tests.test_pins import PROMISED

WORKFLOW = REPOSITORY / ".github" / "workflows" / "tests.yml"
if not WORKFLOW.exists():
    pytest.skip("the workflow is not beside these tests", allow_module_level=True)

TEXT = WORKFLOW.read_text(encoding="utf-8")
JOBS = yaml.safe_load(TEXT)["jobs"]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOWEST = dict(re.match(r"([\w-]+)>=([\d.]+)", requirement).groups() for requirement in PROJECT["dependencies"])


def commands(job):
    return "\n".join(step["run"] for step in JOBS[job]["steps"] if "run" in step)


def test_the_matrix_has_every_promised_python_and_both_ends_of_pandas_and_dagster():
    matrix = JOBS["versions"]["strategy"]["matrix"]
    assert matrix["python"] == PROMISED
    assert matrix["pandas"] == [f"=={LOWEST['pandas']}.*", "newest"]
    assert matrix["dagster"] == [f"=={LOWEST['dagster']}", "newest"]


def test_the_jobs_install_and_test_as_the_readme_and_ci_do():
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert commands("gate") == ".ci/run"
    assert commands("coverage").splitlines()[-1] == ".ci/coverage"
    for job in ("versions", "without_extras"):
        assert "python3 -m venv .venv" in commands(job)
        assert commands(job).rstrip().endswith(".venv/bin/pytest")
    assert "-e '.[test]' && .venv/bin/pytest" in readme
    assert "-e '.[test]'" in commands("versions")


def test_one_job_has_no_extra_and_what_the_tests_need_besides():
    extras = {name.lower() for name in re.findall(r"\[(\w+)\]", commands("without_extras"))}
    assert extras == set()
    assert " -e . hypothesis pytest pytest-xdist" in commands("without_extras")


def test_the_pins_that_are_lifted_are_the_ones_that_vary():
    lifted = re.search(r"grep -vE '(.*?)' constraints", TEXT)[1]
    pinned = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
    names = {line.partition("==")[0] for line in pinned if re.search(lifted, line)}
    assert {"create-dagster", "dagster", "dagster-webserver", "pandas"} <= names
    assert all("dagster" in name for name in names - {"pandas"})


def test_the_workflow_may_only_read_and_names_no_host():
    assert yaml.safe_load(TEXT)["permissions"] == {"contents": "read"}
    assert re.findall(r"https?://|\bpypi\b|\b[\w-]+\.(?:org|com|io|net)\b", TEXT) == []
    used = [step["uses"] for job in JOBS.values() for step in job["steps"] if "uses" in step]
    assert set(used) == {"actions/checkout@v4", "actions/setup-python@v5"}
