"""The first page of a report, and of a refusal, is one page of A4; all else is in annexes."""

import subprocess
import unicodedata
from dataclasses import asdict
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pypdf", reason="needs the extra `e2e`")

from pypdf import PdfReader

from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.orchestration.settings.synthetic import Synthesis
from privacy_assets.release import clock
from privacy_assets.release.declaration import DECLARED, FRACTION, LONGEST_DECLARED, REVIEW_BY
from privacy_assets.release.gate import APPROVAL_CHECK, Verdict
from privacy_assets.release.manifest import read_manifest
from privacy_assets.release.policy import Limit, Policy, RequiredSettings
from privacy_assets.release.report import ReportMaterial, render_report
from tests.e2e.browser import CHROMIUM, FLAGS, needs_chromium
from tests.orchestration.project import Project
from tests.orchestration.test_approvals import Officers
from tests.test_quickstart import quickstart  # noqa: F401

pytestmark = needs_chromium
A4 = (595, 842)
"""Width and height in points."""
MOST_PAGES = 8
N_PEOPLE, N_COLUMNS = 2_000, 26
HEADINGS = ("What could go wrong for one person", "What was not answered", "Who decided")


def printed(page, directory):
    """Return the text of each page on paper."""
    path = directory / f"{page.parent.name}-{page.stem}.pdf"
    command = [CHROMIUM, "--headless", *FLAGS, "--no-pdf-header-footer", f"--print-to-pdf={path}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    pages = PdfReader(path).pages
    assert {tuple(round(float(each)) for each in page.mediabox[2:]) for page in pages} == {A4}
    return [unicodedata.normalize("NFKC", page.extract_text()) for page in pages]


def require_one_page_to_sign(pages, *, is_released=True, waits=False):
    first, second, *_ = pages
    assert all(heading in first for heading in HEADINGS)
    # Where nobody has to approve, no line is left empty.
    assert ("Privacy officer" in first) == ("Signature" in first) == waits
    assert ("Refused by" in first) != is_released
    assert "Annex A. " not in first
    assert second.startswith("Annex A. Decision and limits")
    found = [letter for letter in "ABCDE" if f"Annex {letter}. " in "".join(pages)]
    assert found == list("ABCDE" if is_released else "ABCD")


def test_the_reports_of_the_quickstart_have_one_page_to_sign_and_at_most_eight(quickstart, tmp_path):  # noqa: F811
    directory, _ = quickstart
    reports = sorted((directory / "releases").glob("*/*/2*/report.html"))
    refusals = sorted((directory / ".dagster" / "private").rglob("refusal.html"))
    assert (len(reports), len(refusals)) == (2, 1)
    for page in (*reports, *refusals):
        pages = printed(page, tmp_path)
        require_one_page_to_sign(pages, is_released=page in reports)
        assert len(pages) <= MOST_PAGES
    (synthetic,) = [page for page in reports if "synthetic" in str(page)]
    first = printed(synthetic, tmp_path)[0].replace("\n", " ")
    for answer in (
        "4,730 synthetic records, in 15 columns",
        "Whoever runs the quickstart",
        "309 of 1,000 people in the source (counted), some record fits only them",
        "At most 67 of 1,000 people in the source have a copy among the records (95 % confidence",
        "the share of the people of whom copies may go unnoticed from 1.00% to 2.00%. Who decided on the policy: The",
        "fewer than 63 people (1.33% of the originals) might have gone unnoticed",
        "not answerable with this control",
        "no person: the policy demands no approval",
    ):
        assert answer.casefold() in first.casefold(), answer


def patients():
    """Make a table with as many columns as a clinical one, with long names, that depend on each other."""
    random = np.random.default_rng(5)
    age = random.integers(18, 95, N_PEOPLE)
    table = pd.DataFrame(
        {"patient_number": [f"{number} p" for number in range(N_PEOPLE)], "age_at_admission_years": age}
    )
    for number in range(N_COLUMNS - 2):
        measured = age + random.normal(0, 20, N_PEOPLE)
        values = np.digitize(measured, [40, 60]) if number % 2 else measured.round()
        table[f"measured_at_admission_number_{number}"] = values.astype("int64")
    return table


def contract_of(table):
    columns = {name: {"type": "integer", "role": "sensitive"} for name in table}
    columns["patient_number"] = {"type": "text", "role": "direct_identifier", "person": True}
    columns |= {name: {"type": "integer", "role": "quasi_identifier"} for name in list(table)[1:4]}
    return {"columns": columns}


def long_declaration():
    """Declare as much as can be declared, of the widest letters."""
    said = dict.fromkeys(DECLARED, ("W" * 40 + " 2026-01-01 ") * 9) | {FRACTION: 0.5}
    assert all(len(own.strip()) <= LONGEST_DECLARED for own in said.values() if isinstance(own, str))
    return said | {REVIEW_BY: (clock.today() + timedelta(days=300)).isoformat()}


def test_a_table_of_26_columns_has_one_page_to_sign_whatever_is_declared(tmp_path):
    project = Project(tmp_path)
    table = patients()
    assert table.shape == (N_PEOPLE, N_COLUMNS)
    table.to_parquet(tmp_path / "data" / "patients.parquet", index=False)
    settings = {
        "source": TableFile(str(tmp_path / "data" / "patients.parquet")),
        "contract": contract_of(table),
        "synthetic": Synthesis(),
        "anonymized": AnonymizationSettings(k=5, seed=1),
        "declaration": long_declaration(),
    }

    def policy(severity):
        limits = (
            Limit("privacy_risk_score", 0, "at_most", severity=severity),
            Limit("leakage_detected", 0),
            Limit("exposed_share", 0.001, "at_most", severity="warn"),
            Limit("smallest_class", 5),
            Limit("max_reidentification_probability", 0.9),
            Limit("share_in_homogeneous_classes", 0, "at_most", severity="warn"),
        )
        return Policy(limits, RequiredSettings(control_records=40, detectable_share=None, exact_search=False))

    assert project.run(project.definitions(policy=policy("warn"), **settings)).success
    for side in ("synthetic", "anonymized"):
        require_one_page_to_sign(printed(project.releases(side=side)[-1] / "report.html", tmp_path))
    approving = policy("warn").with_required(approvals=2)
    waits = project.definitions(policy=approving, **settings, approvers=str(Officers(project, "Ada", "Grace").file))
    assert not project.run(waits, "anonymized_release").success
    (waiting,) = (project.private / "pending").rglob("report.html")
    require_one_page_to_sign(printed(waiting, tmp_path), waits=True)
    refused = project.definitions(policy=policy("error"), **settings)
    assert not project.run(refused, "synthetic_release").success
    (page,) = project.private.rglob("refusal.html")
    require_one_page_to_sign(printed(page, tmp_path), is_released=False)

    # What no contract and no declaration can be, but the manifest of somebody else.
    manifest = read_manifest(project.releases()[-1])
    crafted = "<script>alert(1)</script> " * 4_000
    manifest |= {"declaration": dict.fromkeys(DECLARED, crafted), "partition": crafted}
    manifest["declaration"][FRACTION] = 0.5
    page.write_text(render_report(manifest, ReportMaterial()))
    require_one_page_to_sign(printed(page, tmp_path))
    asked = asdict(Verdict(APPROVAL_CHECK, False, "error", crafted))
    manifest |= {"verdicts": [*manifest["verdicts"], asked]}
    page.write_text(render_report(manifest, ReportMaterial()))
    require_one_page_to_sign(printed(page, tmp_path), waits=True)
