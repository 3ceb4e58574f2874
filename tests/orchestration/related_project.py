"""A release of patients and their visits, on a persistent instance."""

from dataclasses import replace
from pathlib import Path

import dagster as dg
import numpy as np
import pandas as pd

from privacy_assets.contract.related import RelatedTables
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.settings.children import ChildTable
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import Split, Synthesis
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.orchestration.project import NAME, Project
from tests.related import clinic, with_lines

PEOPLE_CONTRACT = {
    "columns": {
        "age": {"type": "integer", "role": "quasi_identifier", "min": 18, "max": 89},
        "patient": {"type": "text", "role": "direct_identifier", "person": True},
        "sex": {"type": "category", "role": "quasi_identifier", "categories": ["female", "male"]},
    }
}
VISITS_CONTRACT = {
    "columns": {
        "date": {"type": "datetime", "role": "quasi_identifier"},
        "diagnosis": {"type": "text", "role": "sensitive"},
        "patient": {"type": "text", "role": "direct_identifier"},
        "cost": {"type": "float", "role": "quasi_identifier", "min": 0},
        "paid": {"type": "boolean", "role": "other"},
    }
}
DRUGS_CONTRACT = {
    "columns": {
        "patient": {"type": "text", "role": "direct_identifier"},
        "drug": {"type": "text", "role": "sensitive"},
    }
}
NUMBERED_VISITS_CONTRACT = {
    "columns": {"visit": {"type": "integer", "role": "direct_identifier"}, **VISITS_CONTRACT["columns"]}
}
LINES_CONTRACT = {
    "columns": {
        "item": {"type": "text", "role": "sensitive"},
        "line": {"type": "integer", "role": "other"},
        "price": {"type": "float", "role": "quasi_identifier", "min": 0},
        "visit": {"type": "integer", "role": "direct_identifier"},
    }
}
POLICY = Policy(
    (Limit("leakage_detected", 0), Limit("exposed_share", 0.9), Limit("rare_values_released", 0)),
    RequiredSettings(control_records=100, detectable_share=None, people_per_value=3),
)
STAGES = ("source", "original", "control", "synthetic", "mpucc_assessment", "disclosure_assessment")


class FromOthers:
    """A synthesizer of the user: other people of the same clinic, whom nobody else has seen."""

    name, settings = "from_others", {}

    def __init__(self, seed=77):
        self.seed = seed

    def fit(self, table, *, seed):
        raise AssertionError("only related tables are learned")

    def sample(self, n_records, *, seed):
        raise AssertionError("only related tables are made")

    def fit_related(self, tables, *, seed):
        return people_of_the_clinic(tables, self.seed)


def people_of_the_clinic(tables, clinic_seed):
    """Return what makes other patients with the tables and types of some."""

    class Fitted:
        def sample(self, n_people, *, seed):
            others = clinic(n_people, clinic_seed)
            others = with_lines(others, clinic_seed) if "lines" in tables.children else others
            people = others.people.astype({"sex": tables.people["sex"].dtype})
            children = {
                name: replace(others.children[name], table=others.children[name].table[list(own.table.columns)])
                for name, own in tables.children.items()
            }
            people = people.assign(patient=np.arange(n_people))
            code = dict(zip(others.people["patient"], people["patient"], strict=True))
            children = {
                name: replace(own, table=own.table.assign(patient=own.table["patient"].map(code)))
                if own.key == "patient"
                else own
                for name, own in children.items()
            }
            return RelatedTables(people[list(tables.people.columns)], children, "patient")

    return Fitted()


class RelatedProject(Project):
    """The project, with related tables for a source."""

    def write(self, tables):
        """Write the tables of a clinic as files."""
        for name, table in tables.tables.items():
            table.to_parquet(self.root / "data" / f"{name}.parquet", index=False)

    def file(self, name):
        return TableFile(str(self.root / "data" / f"{name}.parquet"))

    def children(self, *names, forms=None, **contracts):
        """Return the children of the clinic with contracts of some, and the anonymized forms of some."""
        known = {"visits": (VISITS_CONTRACT, "date"), "drugs": (DRUGS_CONTRACT, None)}
        return {
            name: ChildTable(
                source=self.file(name),
                contract=contracts.get(name, known[name][0]),
                key="patient",
                order=known[name][1],
                anonymized=(forms or {}).get(name),
            )
            for name in names or known
        }

    def two_levels(self, visits=NUMBERED_VISITS_CONTRACT, lines=LINES_CONTRACT):
        """Visits with numbers, and the lines of their bills."""
        return {
            "lines": ChildTable(source=self.file("lines"), contract=lines, key="visit", order="line", of="visits"),
            "visits": ChildTable(
                source=self.file("visits"), contract=visits, key="patient", order="date", own_key="visit"
            ),
        }

    def definitions(self, **settings) -> dg.Definitions:
        arguments = {
            "source": self.file("people"),
            "contract": PEOPLE_CONTRACT,
            "children": self.children(),
            "policy": POLICY,
            "split": Split(train_fraction=0.5),
            "synthetic": Synthesis(method=FromOthers()),
            "private_path": str(self.private),
            "release_path": str(self.root / "releases"),
        }
        return build_release_definitions(NAME, **(arguments | self.settings | settings))

    def swap(self, stage, change) -> None:
        """Replace the stored tables of a stage by changed ones, as somebody with access to the storage could."""
        path = self.stored(stage)
        artifact = read_artifact(path)
        write_artifact(path, replace(artifact, frames=change(dict(artifact.frames))))

    def artifact(self, stage):
        return read_artifact(self.stored(stage))

    def content(self, stage) -> str:
        return RelatedTables.from_artifact(self.artifact(stage)).content

    def release(self, side="synthetic") -> Path:
        (found,) = (self.root / "releases" / NAME / side).glob("2*")
        return found


def files_of(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def tables_of(directory: Path) -> dict[str, pd.DataFrame]:
    return {path.stem: pd.read_parquet(path) for path in directory.glob("*.parquet")}
