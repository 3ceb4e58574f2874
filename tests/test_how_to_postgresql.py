"""The YAML of the how-to is a release: it is run as it stands, over DuckDB instead of a server."""

import dagster as dg
import pytest
import yaml
from dagster.components.testing.utils import create_defs_folder_sandbox

from privacy_assets import verify_release
from tests.orchestration.project import people
from tests.shared_data import REPOSITORY
from tests.test_docs import FENCE

duckdb = pytest.importorskip("duckdb", reason="needs the extra `sql`")


@pytest.mark.filterwarnings("ignore:`parse_obj_as` is deprecated")
@pytest.mark.filterwarnings("ignore:.* is currently in beta")
def test_the_release_of_the_page_is_made(tmp_path, monkeypatch):
    page = (REPOSITORY / "docs" / "how-to-postgresql.md").read_text()
    (block,) = [code for language, code in FENCE.findall(page) if language == "yaml"]
    columns = yaml.safe_load(block)["attributes"]["contract"]["columns"]
    patients = people(300, 1).rename(columns={"patient": "id"})[list(columns)]
    path = tmp_path / "warehouse.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE patients AS SELECT * FROM patients")
    monkeypatch.setenv("WAREHOUSE_URL", f"duckdb:///{path}")
    with create_defs_folder_sandbox() as sandbox:
        folder = sandbox.defs_folder_path / "patients"
        folder.mkdir()
        (folder / "defs.yaml").write_text(block)
        with sandbox.build_all_defs() as definitions, dg.DagsterInstance.ephemeral() as instance:
            job = definitions.resolve_job_def("patients_release")
            result = job.execute_in_process(instance=instance, raise_on_error=False)
        assert result.success
        (release,) = sandbox.project_root.glob("**/patients/anonymized/latest")
        assert verify_release(release).n_records == len(patients)
