"""The documentation builds without a warning, fetches nothing, and its code and commands are ones that work."""

import ast
import dataclasses
import html
import io
import re
import runpy
import shlex
import tokenize
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner
from dagster.components.core.component_tree import ComponentTree

from privacy_assets.cli import main
from privacy_assets.contract.contract import ROLES, TableContract
from privacy_assets.contract.mapping import COLUMN_KEYS
from privacy_assets.disclosure.criteria import CRITERIA
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.component.reference import configuration_reference
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings.monitoring import MonitoringSettings
from privacy_assets.release.manifest import MANIFEST_KEYS
from privacy_assets.release.metrics import METRICS
from privacy_assets.release.policy import USE_CASES
from privacy_assets.release.waivers import Waiver
from tests.built_site import built_site
from tests.running_example import PEOPLE
from tests.shared_data import REPOSITORY

DOCS = REPOSITORY / "docs"
TABLES = runpy.run_path(str(REPOSITORY / "mkdocs_tables.py"))["on_page_markdown"]
PAGES = {path.relative_to(DOCS).as_posix(): TABLES(path.read_text()) for path in sorted(DOCS.rglob("*.md"))}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
BLOCKS = {name: FENCE.findall(page) for name, page in PAGES.items()}
LANGUAGES = {"python", "yaml", "sh", "text"}
EXTRA_OF_PAGE = {
    "differential-privacy.md": ("opendp", "dp"),
    "how-to-dbt.md": ("duckdb", "sql"),
    "signing.md": ("cryptography", "signing"),
}
CLICK_COMMANDS = {
    "dagster": ("dagster._cli", "create_dagster_cli"),
    "dg": ("dagster_dg_cli.cli", "create_dg_cli"),
}


def blocks(language):
    """Return a test for each page that has blocks of a language, with all of them."""
    found = {name: [code for kind, code in all_ if kind == language] for name, all_ in BLOCKS.items()}
    return [pytest.param(name, codes, id=name) for name, codes in found.items() if codes]


def test_every_block_says_what_it_is():
    assert {kind for all_ in BLOCKS.values() for kind, _ in all_} <= LANGUAGES
    # A fence that the pattern does not see would not be run.
    assert sum(page.count("```") for page in PAGES.values()) == 2 * sum(len(all_) for all_ in BLOCKS.values())


@pytest.mark.parametrize(("name", "codes"), blocks("python"))
def test_the_code_of_a_page_runs_and_gives_what_its_comments_say(name, codes, monkeypatch, tmp_path):
    if name in EXTRA_OF_PAGE:
        module, extra = EXTRA_OF_PAGE[name]
        pytest.importorskip(module, reason=f"needs the extra `{extra}`")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": name, **what_the_reader_has(name)}
    for place, code in enumerate(codes, start=1):
        run_block(code, f"{name}, block {place}", names)


def what_the_reader_has(name):
    """Return the tables that a page describes instead of making them, and make the files that its commands make."""
    if name == "semantic-risk.md":
        return {"patients": PEOPLE}
    if name == "signing.md":
        Path("keys").mkdir()
        main(["keygen", "keys/release-2026.pem"])  # the commands above the code
    if name == "reidentification.md":
        random = np.random.default_rng(0)
        table = pd.DataFrame(
            {
                "record": range(60),
                "age": random.integers(20, 60, 60),
                "sex": random.choice(["female", "male"], 60),
                "zip": random.choice(["81667", "81669", "80331"], 60),
            }
        )
        decades = table["age"] // 10 * 10
        labels = decades.astype(str) + "-" + (decades + 9).astype(str)
        table.assign(age=labels, zip=table["zip"].str[:3] + "**").to_csv("arx.csv", index=False)
        return {"table": table}
    return {}


def run_block(code, place, names):
    """Run a block; where a comment beside an expression is a literal, the expression must have that value."""
    comments = {
        token.start[0]: token.string.removeprefix("# ").split(": ")[0] if "{" not in token.string else token.string[2:]
        for token in tokenize.generate_tokens(io.StringIO(code).readline)
        if token.type == tokenize.COMMENT
    }
    lines = code.splitlines()
    for statement in ast.parse(code, place).body:
        if not isinstance(statement, ast.Expr):
            exec(compile(ast.Module([statement], []), place, "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), place, "eval"), names)
        last = statement.end_lineno
        below = last + 1 if last < len(lines) and lines[last].startswith("# ") else last
        with suppress(SyntaxError, ValueError):
            expected = ast.literal_eval(comments.get(last) or comments.get(below) or "nothing said")
            assert value == expected, f"{place}, line {last}"


def test_a_comment_that_is_wrong_fails():
    names = {}
    run_block("a = 2\na + 1  # 3: as it should\na  # of the page\n[a]\n# [2]\n", "example", names)
    for wrong in ("a  # 3", "[a]\n# [3]\n", "{'a': a}  # {'a': 3}"):
        with pytest.raises(AssertionError, match="example, line 1"):
            run_block(wrong, "example", names)


def test_a_picture_has_the_sentence_that_the_code_of_its_page_gives():
    pictures = {name: re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page) for name, page in PAGES.items()}
    assert pictures["tutorial.md"]
    for name, found in pictures.items():
        for text, file in found:
            assert (DOCS / name).with_name(file).exists()
            assert any(kind == "python" and f"# {text!r}\n" in code for kind, code in BLOCKS[name])


@pytest.mark.parametrize(("name", "codes"), blocks("yaml"))
def test_yaml_is_what_it_is_said_to_be(name, codes, tmp_path):
    for code in codes:
        read = yaml.safe_load(code)
        if "type" in read:
            # A release is run by the test of its page, if there is one, or at least built.
            assert read["type"] == "privacy_assets.PrivacyReleaseComponent"
            if not (REPOSITORY / "tests" / f"test_{name.replace('-', '_').replace('.md', '.py')}").exists():
                context = ComponentTree.for_test().load_context
                component = PrivacyReleaseComponent.from_attributes_dict(attributes=read["attributes"], context=context)
                assert build_release_definitions(**component.arguments(Path("people"), tmp_path)).assets
        elif "expires_on" in read:
            assert Waiver.from_mapping(name, read).metric in METRICS
        else:
            assert TableContract.from_mapping(read).released_columns


def commands():
    """Return every command of the pages."""
    joined = [(name, code.replace("\\\n", " ")) for name, all_ in BLOCKS.items() for kind, code in all_ if kind == "sh"]
    lines = [(name, line.strip()) for name, code in joined for line in code.splitlines()]
    return [(name, line) for name, line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize(("name", "line"), commands())
@pytest.mark.filterwarnings("ignore:.*click:DeprecationWarning")
def test_a_command_is_one_that_exists(name, line, capsys):
    program, *arguments = shlex.split(line.replace(".venv/bin/", ""))
    options = [argument for argument in arguments if argument.startswith("--")]
    if program == "privacy_assets":
        with pytest.raises(SystemExit) as left:
            main([*arguments, "--help"])
        assert left.value.code == 0
        told = capsys.readouterr().out
    elif program in CLICK_COMMANDS:
        module, make = CLICK_COMMANDS[program]
        if find_spec(module.split(".")[0]) is None:
            pytest.skip(f"needs {module.split('.')[0]}, which the extra `dev` installs")
        found = CliRunner().invoke(getattr(import_module(module), make)(), [*arguments, "--help"])
        assert found.exit_code == 0, found.output
        told = found.output
    elif program in ("pip", "uv"):
        extras = re.findall(r"^(\w+) = \[", (REPOSITORY / "pyproject.toml").read_text(), flags=re.MULTILINE)
        used = [extra for group in re.findall(r"\[([\w,]+)\]", line) for extra in group.split(",")]
        assert used
        assert set(used) <= set(extras)
        return
    elif program == "mkdir":
        assert re.fullmatch(r"[\w/]+", arguments[0])
        return
    elif program == "export":
        assert re.fullmatch(r"[A-Z_]+=\S+", arguments[0])
        return
    else:
        assert (program, arguments[:2]) == ("python3", ["-m", "venv"])
        return
    assert all(option.split("=")[0] in told for option in options)


TEST_NAME = re.compile(r"^def (test_\w+)", flags=re.MULTILINE)


def test_the_page_on_the_gate_names_every_test_of_the_gate():
    tests = set(TEST_NAME.findall((REPOSITORY / "tests" / "orchestration" / "test_gate_holds.py").read_text()))
    assert set(re.findall(r"`(test_\w+)`", PAGES["gate.md"])) == tests


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("disclosure.md", {name for name, each in CRITERIA.items() if not each.is_of_all_releases}),
        ("how-to-limits.md", {*METRICS, *USE_CASES}),
        ("how-to-monitoring.md", {field.name for field in dataclasses.fields(MonitoringSettings)}),
        ("release.md", MANIFEST_KEYS),
        ("source.md", {*COLUMN_KEYS, *ROLES}),
    ],
)
def test_a_page_lists_all_that_there_is(page, names):
    assert names - set(re.findall(r"`(\w+)`", PAGES[page])) == set()


def test_the_site_builds_strictly_and_fetches_nothing():
    site = built_site()
    pages = {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}
    assert {name.replace(".md", ".html") for name in PAGES} <= set(pages)
    # Each field has its row, each place its anchor.
    fields = re.findall(r"(?m)^(?:## |\| )`([\w.<>\[\]]+)`", configuration_reference())
    assert len(fields) > 200
    assert [own for own in fields if f"<code>{html.escape(own)}</code>" not in pages["configuration.html"]] == []
    assert 'id="source"' in pages["configuration.html"]
    assert [name for name in METRICS if f"<td><code>{name}</code></td>" not in pages["how-to-limits.html"]] == []
    fetched = r"<(?:script|img|iframe)[^>]*\bsrc=.?(?:https?:)?//|<link[^>]*\bhref=.?(?:https?:)?//|@import"
    assert [name for name, page in pages.items() if re.search(fetched, page)] == []
