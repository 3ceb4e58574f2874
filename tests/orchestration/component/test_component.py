"""The component in a project: scaffolded, loaded, post-processed, run, and its mistakes pointed at."""

import json
import re
import subprocess
import sys
import textwrap
from contextlib import contextmanager

import dagster as dg
import numpy as np
import pandas as pd
import pytest
import yaml
from dagster.components.core.package_entry import discover_entry_point_package_objects
from dagster.components.testing.utils import create_defs_folder_sandbox
from dagster_shared.libraries import DagsterLibraryRegistry
from dagster_shared.serdes.objects import EnvRegistryKey

from privacy_assets import PrivacyReleaseComponent, __version__
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.fields import fields_of
from privacy_assets.orchestration.component.scaffolder import scaffold_text
from privacy_assets.orchestration.component.source import ContractYaml
from privacy_assets.release.policy import Policy
from tests.orchestration.component.yaml_cases import models_of
from tests.orchestration.project import CONTRACT, people, synthetic_people

# Dagster reads YAML through a function that pydantic will remove, and uses parts of its own that are in beta.
pytestmark = [
    pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated"),
    pytest.mark.filterwarnings("ignore:.* is currently in beta"),
]
TYPE = "privacy_assets.PrivacyReleaseComponent"
BASE = {"source": {"file": "data/people.csv"}, "contract": CONTRACT, "policy": "research_sharing"}


@contextmanager
def project(**releases):
    """Make a project with a folder for each release; text is written as it is."""
    with create_defs_folder_sandbox() as sandbox:
        for name, release in releases.items():
            folder = sandbox.defs_folder_path / name
            folder.mkdir()
            text = release if isinstance(release, str) else yaml.safe_dump({"type": TYPE} | release, sort_keys=False)
            (folder / "defs.yaml").write_text(text)
        yield sandbox


def release(**attributes):
    return {"attributes": BASE | attributes}


def keys(definitions, group=None):
    graph = definitions.resolve_asset_graph()
    return {key.to_user_string() for key in graph.get_all_asset_keys() if group in (None, graph.get(key).group_name)}


def message_of(**releases):
    """Return what a project that does not load says, with the exceptions behind it."""
    with project(**releases) as sandbox, pytest.raises(Exception) as raised, sandbox.build_all_defs():
        pass
    error, said = raised.value, []
    while error is not None:
        said.append(str(error))
        error = error.__cause__ or error.__context__
    return "\n".join(said)


def test_dg_finds_the_component_and_nothing_else_of_the_package():
    found = {key.name for key in discover_entry_point_package_objects() if key.namespace == "privacy_assets"}
    assert found == {"PrivacyReleaseComponent"}
    assert DagsterLibraryRegistry.get()["privacy-assets"] == __version__
    spec = PrivacyReleaseComponent.get_spec()
    assert "once a policy admits them" in spec.description
    assert set(spec.produces) == {"asset", "asset_check", "job", "resource"}


def test_a_scaffolded_release_loads_and_explains_every_field():
    with create_defs_folder_sandbox() as sandbox:
        path = sandbox.scaffold_component(component_cls=PrivacyReleaseComponent, defs_path="people")
        written = (path / "defs.yaml").read_text()
        with sandbox.load_component_and_build_defs(defs_path=path) as (component, definitions):
            assert isinstance(component, PrivacyReleaseComponent)
            assert "people/synthetic_release" in keys(definitions, group="people")
    comments = re.sub(r"[#\s]+", " ", written)
    for model in models_of(PrivacyReleaseComponent):
        for field in fields_of(model):
            assert re.search(rf"\b{field.name}:", written), field.name
            assert field.description in comments, field.name


def test_every_commented_block_of_the_scaffold_can_be_used():
    text = scaffold_text(PrivacyReleaseComponent, TYPE)
    jsonschema = pytest.importorskip("jsonschema", reason="comes with dagster-dg-cli (extra `dev`)")
    schema = jsonschema.Draft202012Validator(PrivacyReleaseComponent.get_model_cls().model_json_schema())
    blocks = re.findall(r"(?m)(?:^  #(?! ).*\n)(?:^  #  .*\n)*", text)
    n_used = 3  # source, contract and split
    assert len(blocks) == len(PrivacyReleaseComponent.model_fields) - n_used
    for block in blocks:
        used = re.sub(r"(?m)^  #", "  ", block)
        name = used.split(":")[0].strip()
        attributes = yaml.safe_load(text)["attributes"] | yaml.safe_load(f"attributes:\n{used}")["attributes"]
        assert [error.message for error in schema.iter_errors(attributes)] == [], name
        PrivacyReleaseComponent.from_attributes_dict(attributes=attributes)


def test_a_release_is_scaffolded_beside_another_and_in_python(tmp_path):
    scaffolder = PrivacyReleaseComponent.__scaffolder_cls__()

    def request(path, scaffold_format, append):
        return dg.ScaffoldRequest(TYPE, path, scaffold_format, tmp_path, None, append)

    scaffolder.scaffold(request(tmp_path, "yaml", append=False))
    scaffolder.scaffold(request(tmp_path / "defs.yaml", "yaml", append=True))
    assert [each["type"] for each in yaml.safe_load_all((tmp_path / "defs.yaml").read_text())] == [TYPE, TYPE]
    scaffolder.scaffold(request(tmp_path, "python", append=False))
    assert f"-> {EnvRegistryKey.from_typename(TYPE).name}" in (tmp_path / "component.py").read_text()


def drafted(tmp_path, **params):
    """Scaffold a release from a table, and return its folder."""
    folder = tmp_path / "people"
    folder.mkdir(exist_ok=True)
    scaffolder = PrivacyReleaseComponent.__scaffolder_cls__()
    params = scaffolder.get_scaffold_params()(**params)
    scaffolder.scaffold(dg.ScaffoldRequest(TYPE, folder, "yaml", tmp_path, params, False))
    return folder / "defs.yaml"


def test_a_release_is_drafted_from_a_file_decided_and_loaded(tmp_path):
    people(300, 1).to_csv(tmp_path / "people.txt", index=False, sep=";")
    text = drafted(tmp_path, source="people.txt").read_text()
    attributes = yaml.safe_load(text)["attributes"]
    assert attributes["source"] == {"file": "people.txt", "format": "csv", "separator": ";"}
    assert attributes["contract"]["columns"]["patient"] == {"type": "text", "role": "direct_identifier", "person": True}
    assert "The contract is a draft that is not decided yet" in message_of(people=text)
    decided = re.sub(r"(?m)^ +drafted: true.*\n", "", text)
    assert decided.count("\n") == text.count("\n") - 1
    with project(people=decided) as sandbox, sandbox.build_all_defs() as definitions:
        # Of 300 people, no control sees copies of 1 %, so the draft is of the anonymized side.
        assert "people/anonymized_release" in keys(definitions, group="people")


def test_a_drafted_release_is_short_names_the_policy_and_what_it_will_decide_and_explains_everything_if_asked(tmp_path):
    random = np.random.default_rng(0)
    table = pd.DataFrame({f"measure_{j}": random.normal(50, 9, 300).round(j % 3) for j in range(25)})
    table.assign(age=random.integers(18, 90, 300)).to_csv(tmp_path / "people.csv", index=False)
    text = drafted(tmp_path, source="people.csv").read_text()
    lines = text.splitlines()
    assert len(lines) <= 60
    attributes = yaml.safe_load(text)["attributes"]
    assert list(attributes) == ["source", "policy", "anonymized", "utility", "declaration", "contract"]
    of_columns = [line for line in lines if line.startswith("      ") and not line.lstrip().startswith("#")]
    assert len(of_columns) == 26
    assert all(len(line.partition("  # ")[2]) in range(1, 61) for line in of_columns)
    assert "# Whose is each row? Write true if no person has two rows" in text
    assert "Expect a yes" in text
    assert "contract.one_row_per_person: Input should be a valid boolean" in message_of(people=text)
    answered = text.replace("one_row_per_person: decide", "one_row_per_person: true")
    assert "still have `decide` as a value" in message_of(people=answered)
    in_full = drafted(tmp_path, source="people.csv", all=True).read_text()
    assert yaml.safe_load(in_full)["attributes"] == attributes
    for field in fields_of(PrivacyReleaseComponent):
        assert re.search(rf"(?m)^  #?{field.name}:", in_full), field.name


def test_a_release_is_drafted_from_the_storage_of_an_asset_and_from_a_query(tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")
    table = people(300, 1)
    table.to_parquet(tmp_path / "people.parquet")
    of_asset = yaml.safe_load(drafted(tmp_path, source="people.parquet", asset="marts/people").read_text())
    assert of_asset["attributes"]["source"] == {"asset": "marts/people"}
    with duckdb.connect(str(tmp_path / "w.duckdb")) as database:
        database.register("made", table)
        database.execute("CREATE TABLE people AS SELECT * FROM made")
    monkeypatch.setenv("WAREHOUSE_URL", f"duckdb:///{tmp_path}/w.duckdb")
    query = {"query": "SELECT * FROM people ORDER BY patient", "url_variable": "WAREHOUSE_URL"}
    of_query = yaml.safe_load(drafted(tmp_path, **query).read_text())
    assert of_query["attributes"]["source"] == query
    assert of_query["attributes"]["contract"] == of_asset["attributes"]["contract"]


SECRET = "Zaphodine-Quxington"


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"source": "none.csv"}, "does not exist"),
        ({"asset": "marts/people"}, "needs the file that it stores as source"),
        ({"query": "SELECT 1", "source": "people.csv"}, "drafted from a query with url_variable, without source"),
        ({"query": "SELECT * FROM people WHERE false", "url_variable": "WAREHOUSE_URL"}, "The result of the query has"),
        ({"query": "SELECT name::INT FROM people", "url_variable": "WAREHOUSE_URL"}, "could not be run: Conversion"),
    ],
)
def test_what_cannot_be_drafted_is_said_in_a_sentence_and_leaves_no_folder(params, said, tmp_path, monkeypatch):
    duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")
    click = pytest.importorskip("click")
    with duckdb.connect(str(tmp_path / "w.duckdb")) as database:
        database.execute(f"CREATE TABLE people AS SELECT '{SECRET}' AS name")
    monkeypatch.setenv("WAREHOUSE_URL", f"duckdb:///{tmp_path}/w.duckdb")
    with pytest.raises(click.ClickException) as raised:
        drafted(tmp_path, **params)
    assert said in raised.value.message
    assert SECRET not in raised.value.message
    assert raised.value.__context__ is None
    assert not (tmp_path / "people").exists()


def test_releases_of_one_project_do_not_collide():
    in_python = textwrap.dedent(
        f"""
        import os
        import dagster as dg
        import privacy_assets as pa

        @dg.definitions
        def defs(context: dg.ComponentLoadContext) -> dg.Definitions:
            os.chdir(context.project_root)
            return pa.build_release_definitions(
                "in_python", source=pa.TableFile("people.csv"), contract={CONTRACT!r}, policy="development"
            )
        """
    )
    with project(north=release(), south=release(anonymized={})) as sandbox:
        (sandbox.defs_folder_path / "in_python.py").write_text(in_python)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(sandbox.project_root)
            with sandbox.build_all_defs() as definitions:
                assert {name: len(keys(definitions, name)) for name in ("north", "south", "in_python")} == {
                    "north": 8,
                    "south": 4,
                    "in_python": 8,
                }
                assert set(definitions.resources) == {"private_tables", "release_store"}
                job = definitions.resolve_job_def("north_release")
                assert {key.path[0] for key in job.asset_layer.executable_asset_keys} == {"north"}


def test_releases_in_one_folder_need_names():
    one = yaml.safe_dump({"type": TYPE} | release(name="north"), sort_keys=False)
    with (
        project(regions=f"{one}---\n{one.replace('north', 'south')}") as sandbox,
        sandbox.build_all_defs() as definitions,
    ):
        assert len(keys(definitions, "south")) == 8
    unnamed = yaml.safe_dump({"type": TYPE} | release(), sort_keys=False)
    said = message_of(regions=f"{unnamed}---\n{unnamed}")
    assert "contains several releases, and this one has no name; only the first can be named after the folder" in said
    assert "defs.yaml:" in said


def test_templates_may_give_objects_of_python():
    template_vars = textwrap.dedent(
        f"""
        import dagster as dg
        import pandas as pd
        import privacy_assets as pa

        class Own:
            name, settings = "own", {{}}
            def fit(self, table, *, seed): return self
            def sample(self, n_records, *, seed): return pd.DataFrame()

        @dg.template_var
        def contract(): return pa.TableContract.from_mapping({CONTRACT!r})
        @dg.template_var
        def policy(): return pa.Policy.for_use_case("development")
        @dg.template_var
        def strict(): return {{"use_case": "public_release", "known": [["age"]]}}
        @dg.template_var
        def load(): return pd.DataFrame
        @dg.template_var
        def own(): return Own()
        @dg.template_var
        def k(): return 4
        """
    )
    attributes = {"source": {"function": "{{ load }}"}, "contract": "{{ contract }}", "policy": "{{ policy }}"}
    objects = {
        "template_vars_module": ".template_vars",
        "attributes": attributes | {"synthetic": {"method": "{{ own }}", "seed": "{{ k }}"}},
    }
    mapping = {
        "template_vars_module": ".template_vars",
        "attributes": attributes | {"policy": "{{ strict }}", "anonymized": {"k": "{{ k }}"}},
    }
    with project(objects=objects, mapping=mapping) as sandbox:
        for name in ("objects", "mapping"):
            (sandbox.defs_folder_path / name / "template_vars.py").write_text(template_vars)
        with sandbox.build_component_tree() as tree:
            arguments = {
                name: tree.load_component(sandbox.defs_folder_path / name).arguments(
                    sandbox.defs_folder_path / name, sandbox.project_root
                )
                for name in ("objects", "mapping")
            }
            assert len(keys(tree.build_defs())) == 12
    assert arguments["objects"]["policy"].use_case == "development"
    assert arguments["objects"]["synthetic"].method.name == "own"
    assert arguments["objects"]["synthetic"].seed == 4
    assert arguments["mapping"]["policy"].known == (("age",),)
    assert arguments["mapping"]["anonymized"].k == 4


def test_text_that_reads_like_a_number_stays_text():
    columns = CONTRACT["columns"] | {"plan": {"type": "category", "role": "other", "categories": ["1", "{{ 'b' }}"]}}
    attributes = BASE | {
        "contract": {"columns": columns},
        "partitions": {"type": "static", "partition_keys": ["2025", "2026"]},
    }
    component = PrivacyReleaseComponent.from_attributes_dict(attributes=attributes)
    assert list(component.contract.schema.columns["plan"].dtype.type.categories) == ["1", "b"]
    assert component.partitions.build().get_partition_keys() == ["2025", "2026"]


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"policy": "{{ 5 }}"}, "The policy is a int; expected the name of a use case, limits, or a Policy"),
        ({"policy": "{{ {'use_cas': 'development'} }}"}, "use_cas: Extra inputs are not permitted"),
        ({"contract": "{{ 5 }}"}, "A contract wraps a pandera DataFrameSchema or a DataFrameModel class; got int"),
        ({"synthetic": {"seed": "{{ 'one' }}"}}, "seed: Input should be a valid integer"),
        ({"synthetic": {"method": "no.such:synthesizer"}}, "could not be imported: ModuleNotFoundError"),
        ({"synthetic": {"method": "json:JSONDecoder", "settings": {"a": 1}}}, "cannot be made with the settings ['a']"),
        ({"source": {"function": "people"}}, "not a Python path of the form 'package.module:attribute'"),
    ],
)
def test_what_a_template_or_a_path_gives_is_checked(attributes, message):
    assert message in message_of(people=release(**attributes))


def test_post_processing_changes_what_people_look_at_and_not_what_is_run():
    post = {"assets": [{"target": "*", "attributes": {"group_name": "clinic", "tags": {"domain": "health"}}}]}
    with project(people=release() | {"post_processing": post}) as sandbox:
        data = sandbox.project_root / "data"
        data.mkdir()
        people(300, 1).to_csv(data / "people.csv", index=False)
        synthetic_people(180, 1001).to_csv(data / "synthetic.csv", index=False)
        attributes = BASE | {
            "policy": {
                "limits": [{"metric": "privacy_risk_score", "value": 0.999}],
                "required": {"max_baseline_cols": 2},
            },
            "synthetic": {"external": {"file": "data/synthetic.csv"}},
            "assessment": {"max_baseline_cols": 2, "n_matched_samples": 2},
            "release_path": "published",
        }
        described = {"type": TYPE, "attributes": attributes, "post_processing": post}
        (sandbox.defs_folder_path / "people" / "defs.yaml").write_text(yaml.safe_dump(described, sort_keys=False))
        with sandbox.build_all_defs() as definitions:
            graph = definitions.resolve_asset_graph()
            assert keys(definitions, "clinic") == keys(definitions)
            assert {graph.get(key).tags["domain"] for key in graph.get_all_asset_keys()} == {"health"}
            job = definitions.resolve_job_def("people_release")
            with dg.DagsterInstance.ephemeral() as instance:
                result = job.execute_in_process(instance=instance, raise_on_error=False)
        assert result.success
        assert {key.path[-1] for key in job.asset_layer.executable_asset_keys} == {
            key.split("/")[1] for key in keys(definitions)
        }
        assert list((sandbox.project_root / "published" / "people" / "synthetic").glob("2*/manifest.json"))
        private = sandbox.project_root / ".dagster" / "private" / "people"
        assert "source.artifact" in [path.name for path in private.iterdir()]


def test_a_release_by_partition_is_run_as_yaml_says_it(monkeypatch, tmp_path):
    duckdb = pytest.importorskip("duckdb", reason="comes with the extra `sql`")
    pytest.importorskip("sqlalchemy", reason="comes with the extra `sql`")
    warehouse = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(warehouse)) as database:
        for year, n_people in (("2025", 60), ("2026", 8)):
            database.register("made", people(n_people, int(year)).assign(year=year))
            database.execute("CREATE TABLE IF NOT EXISTS people AS FROM made LIMIT 0")
            database.execute("INSERT INTO people FROM made")
    monkeypatch.setenv("WAREHOUSE_URL", f"duckdb:///{warehouse}")
    monkeypatch.setenv("FEWEST", "11")
    query = "SELECT * EXCLUDE (year) FROM people WHERE year = :partition_key ORDER BY patient"
    described = release(
        source={"query": query, "url_variable": "WAREHOUSE_URL"},
        policy={"limits": [{"metric": "smallest_class", "value": 11}]},
        anonymized={"k": "{{ env.FEWEST }}"},
        partitions={"type": "static", "partition_keys": ["2025", "2026"]},
        private_path=str(tmp_path / "private"),
        release_path=str(tmp_path / "releases"),
    )
    with project(people=described) as sandbox, sandbox.build_all_defs() as definitions:
        job = definitions.resolve_job_def("people_release")
        with dg.DagsterInstance.ephemeral() as instance:
            succeeded = {
                year: job.execute_in_process(partition_key=year, instance=instance, raise_on_error=False).success
                for year in ("2025", "2026")
            }
    assert succeeded == {"2025": True, "2026": False}
    released = list((tmp_path / "releases").glob("people/anonymized/*/2*/manifest.json"))
    assert [path.parts[-3] for path in released] == ["2025"]
    assert json.loads(released[0].read_text())["n_records"] == 60


def test_what_only_the_whole_release_can_tell_is_said_with_file_and_line():
    said = message_of(people="# a comment\n" + yaml.safe_dump({"type": TYPE} | release(name="a-b"), sort_keys=False))
    assert re.search(r"people/defs\.yaml:3: The release is named 'a-b'; expected letters, digits", said)


def test_a_key_that_stands_twice_is_said_with_both_lines():
    text = yaml.safe_dump({"type": TYPE} | release(), sort_keys=False)
    said = message_of(people=text + "  policy: development\n")
    first = 1 + text.splitlines().index("  policy: research_sharing")
    last = 1 + text.count("\n")
    assert re.search(rf"people/defs\.yaml:{last}: 'policy' is already defined on line {first}", said)


def test_keys_are_compared_within_one_mapping_of_one_document():
    several = f"""\
type: {TYPE}
attributes:
  name: north
  contract: {{one_row_per_person: true,
    columns: {{age: {{type: integer, role: quasi_identifier}}, size: {{type: integer, role: other}}}}}}
  policy: development
  source: {{file: people.csv}}
---
type: {TYPE}
attributes:
  name: south
  contract: {{one_row_per_person: true,
    columns: {{age: {{type: integer, role: other, role: quasi_identifier}}, n: {{type: text, role: other}}}}}}
  policy: development
  source: {{file: people.csv}}
"""
    assert "people/defs.yaml:13: 'role' is already defined on line 13" in message_of(people=several)
    with project(people=several.replace("other, role: ", "")) as sandbox, sandbox.build_all_defs() as definitions:
        assert {"north/source", "south/source"} <= keys(definitions)


def test_what_settings_can_tell_is_said_at_their_line():
    said = message_of(people=release(split={"train_fraction": 7}))
    assert re.search(r"people/defs\.yaml:\d+ - attributes\.split", said)
    assert "^ privacy_assets.errors.InvalidSettingError: `train_fraction` is 7; expected a number above 0" in said
    said = message_of(people=release(source={"query": "SELECT 1"}))
    assert re.search(r"people/defs\.yaml:\d+ - attributes\.source", said)
    assert "^ privacy_assets.errors.InvalidSettingError: source: A query needs url_variable" in said


def test_dg_check_yaml_points_at_typos_by_line():
    pytest.importorskip("dagster_dg_cli", reason="comes with the extra `dev`")
    text = scaffold_text(PrivacyReleaseComponent, TYPE)
    typos = {
        "    file: data/people.csv": "    fil: data/people.csv",
        "  policy: research_sharing": "  policy: {use_case: research_sharing, limit: []}",
        "  #name: people": "  anonymized: {k: five, l_diversity: {lest: 2}}",
        "      age: {type: integer, role: q": "      age: {type: integer, rol: q",
    }
    for right, wrong in typos.items():
        assert right in text
        text = text.replace(right, wrong, 1)
    lines = {wrong: 1 + text[: text.index(wrong)].count("\n") for wrong in typos.values()}
    with project(people=text) as sandbox:
        (sandbox.project_root / "pyproject.toml").write_text(
            f'[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "{sandbox.project_name}"\n'
        )
        command = [sys.executable, "-m", "dagster_dg_cli.cli", "check", "yaml"]
        run = subprocess.run(command, cwd=sandbox.project_root, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stderr
    said = re.findall(rf"defs\.yaml:(\d+) - {TYPE} (\S+) (.*)", run.stdout)
    place = dict(zip(("file", "policy", "anonymized", "column"), lines.values(), strict=True))
    expected = {
        (str(place["file"]), "attributes.source.fil", "Additional properties are not allowed ('fil' was unexpected)"),
        (
            str(place["policy"]),
            "attributes.policy.limit",
            "Additional properties are not allowed ('limit' was unexpected)",
        ),
        (str(place["anonymized"]), "attributes.anonymized.k", "'five' is not of type 'integer', 'null'"),
        (
            str(place["anonymized"]),
            "attributes.anonymized.l_diversity.lest",
            "Additional properties are not allowed ('lest' was unexpected)",
        ),
        (str(place["anonymized"]), "attributes.anonymized.l_diversity", "'least' is a required property"),
        (str(place["column"]), "attributes.contract.columns.age", "'role' is a required property"),
        (
            str(place["column"]),
            "attributes.contract.columns.age.rol",
            "Additional properties are not allowed ('rol' was unexpected)",
        ),
    }
    assert set(said) == expected


@pytest.mark.parametrize("wrong", ["east", "south"])
def test_dg_check_defs_finds_the_wrong_release_of_three(wrong):
    """`dg check yaml` of Dagster 1.13 examines one file of a type only, whichever it meets last."""
    pytest.importorskip("dagster_dg_cli", reason="comes with the extra `dev`")
    releases = {name: release() for name in ("east", "north", "south")}
    found = check_defs(**releases | {wrong: release(policy="research")})
    assert found.returncode == 1
    said = found.stdout + found.stderr
    assert re.search(rf"/{wrong}/defs\.yaml:\d+", said), said


def check_defs(**releases):
    """Run `dg check defs` in a project of these releases."""
    with project(**releases) as sandbox:
        (sandbox.project_root / "pyproject.toml").write_text(
            f'[tool.dg]\ndirectory_type = "project"\n[tool.dg.project]\nroot_module = "{sandbox.project_name}"\n'
        )
        (sandbox.defs_folder_path.parent / "definitions.py").write_text(
            "from pathlib import Path\nimport dagster as dg\n\n\n@dg.definitions\ndef defs():\n"
            "    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)\n"
        )
        command = [sys.executable, "-m", "dagster_dg_cli.cli", "check", "defs"]
        return subprocess.run(command, cwd=sandbox.project_root, capture_output=True, text=True, check=False)


def test_settings_are_made_in_python_as_well():
    contract = ContractYaml.from_mapping(CONTRACT)
    component = PrivacyReleaseComponent(contract=contract, policy="development", source={"file": "people.csv"})
    assert component.source.path == "people.csv"
    assert component.contract.columns == tuple(CONTRACT["columns"])
    assert component.policy == Policy.for_use_case("development")
    with pytest.raises(InvalidSettingError, match="columns: Field required"):
        ContractYaml.from_mapping({})
