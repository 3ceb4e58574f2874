import subprocess
import sys
import tomllib
from importlib.metadata import requires, version

import pytest
import yaml

import privacy_assets
from tests.public_packages import PACKAGES, PUBLIC
from tests.shared_data import REPOSITORY

PUBLIC_NAMES = {
    "privacy_assets": [
        "AnonymityReport",
        "Anonymization",
        "AnonymizationSettings",
        "AnonymizedDataset",
        "AssessmentSettings",
        "Candidate",
        "Cart",
        "Child",
        "ChildTable",
        "ConflictError",
        "ContractDraft",
        "ContractError",
        "ControlComparison",
        "ControlPlan",
        "ControlSize",
        "CutTree",
        "DisclosureAssessment",
        "DisclosureSettings",
        "EngineError",
        "ExternalSynthetic",
        "GaussianCopula",
        "GivenSplit",
        "Hierarchy",
        "InvalidSettingError",
        "InvalidTableError",
        "LDiversity",
        "Limit",
        "LinkageAuditSettings",
        "LocalEngine",
        "MaskError",
        "MembershipAssessment",
        "MonitoringSettings",
        "MpuccAssessment",
        "Mst",
        "NoisyModel",
        "OptionsSettings",
        "OtherReleaseSettings",
        "Policy",
        "PrivacyAssetsError",
        "PrivacyBudget",
        "PrivacyBudgetError",
        "PrivacyReleaseComponent",
        "PrivateParquetIOManager",
        "PublicDomain",
        "Refusal",
        "ReidentificationAssessment",
        "ReidentificationSettings",
        "RelatedTables",
        "ReleaseOptions",
        "ReleaseStore",
        "ReleaseStoreError",
        "ReleaseVerification",
        "ReportSettings",
        "RequiredSettings",
        "SemanticAssessment",
        "SemanticRiskSettings",
        "SigningKey",
        "SmoothCart",
        "SparkEngine",
        "SparkSource",
        "Split",
        "SqlQuery",
        "Synthesis",
        "Synthesizer",
        "TableContract",
        "TableFile",
        "TreeAssessment",
        "UpstreamAsset",
        "UtilityAssessment",
        "UtilitySettings",
        "aggregate_rows",
        "anonymize",
        "anonymize_dataset",
        "apply_cuts",
        "assess_disclosure",
        "assess_membership",
        "assess_mpuccs",
        "assess_reidentification",
        "assess_semantic_risk",
        "assess_utility",
        "assess_with_trees",
        "build_privacy_risk_checks",
        "build_release_definitions",
        "compare_releases",
        "count_rules_between_rows",
        "draft_contract",
        "draw_records",
        "fingerprint",
        "measure_column_changes",
        "read_released_csv",
        "related_views",
        "split_records",
        "synthesize",
        "unlinked_rows",
        "verify_anonymity",
        "verify_release",
    ],
    "privacy_assets.linkage": [
        "LinkageAudit",
        "LinkerEvaluation",
        "MatchedCandidates",
        "audit_linkage",
        "evaluate_linker",
        "is_compatible",
        "link_by_distance",
        "link_by_fellegi_sunter",
        "match_candidates",
    ],
    "privacy_assets.reidentification": [
        "BeliefFunction",
        "BoundedNoise",
        "CandidateIndex",
        "Exact",
        "GaussianNoise",
        "HierarchyMapping",
        "Interval",
        "Label",
        "Microaggregated",
        "OtherRelease",
        "Pram",
        "RankBuckets",
        "RankWindow",
        "ReleaseModel",
        "SimilarText",
        "Suppressed",
        "ValueSet",
        "WeightedAssessment",
        "WeightedCandidates",
        "combine",
    ],
    "privacy_assets.semantic_risk": [
        "ConceptLattice",
        "FormalContext",
        "RecordRisk",
        "RiskChains",
        "explain_record",
        "find_risk_chains",
        "forget_attributes",
        "forget_in_basis",
        "luxenburger_basis",
        "read_concepts",
        "read_formal_context",
        "released_scales",
        "stem_basis",
    ],
}


@pytest.mark.parametrize("path", PUBLIC_NAMES)
def test_the_public_names_are_these_and_each_resolves(path):
    package = PACKAGES[path]
    assert dir(package) == package.__all__ == PUBLIC_NAMES[path]
    assert all(getattr(package, name).__name__ == name for name in PUBLIC_NAMES[path])


def test_no_name_is_public_twice():
    assert PACKAGES.keys() == PUBLIC_NAMES.keys()
    assert len(PUBLIC) == sum(map(len, PUBLIC_NAMES.values()))


@pytest.mark.parametrize("path", PUBLIC_NAMES)
def test_an_unknown_name_is_an_attribute_error(path):
    with pytest.raises(AttributeError, match=f"module '{path}' has no attribute 'asess_mpuccs'"):
        PACKAGES[path].asess_mpuccs  # noqa: B018


SCIPY = [f"scipy.{name}" for name in ("linalg", "optimize", "sparse", "spatial", "special", "stats")]
"""Parts of SciPy that no step needs to load the definitions of a release."""


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import privacy_assets", ["dagster", "pandas", "numba", "pandera"]),
        ("from privacy_assets.mpucc.kernels import search", ["dagster", "pandas", "pandera"]),
        ("from privacy_assets import assess_mpuccs", ["dagster", "pandera", "matplotlib", "scipy.stats"]),
        ("from privacy_assets.synthesis.smooth_cart import SmoothCart", ["dagster", "pandera", "sklearn"]),
        ("from privacy_assets import assess_disclosure", ["dagster", "pandera", "matplotlib", "scipy.stats"]),
        ("from privacy_assets import assess_reidentification", ["dagster", "pandera", "matplotlib", "scipy.optimize"]),
        (
            "import privacy_assets.orchestration.factory, privacy_assets.orchestration.component.component",
            ["matplotlib", "jinja2", "sklearn", "splink", "pyarrow.dataset", *SCIPY],
        ),
        ("import privacy_assets.linkage, privacy_assets.reidentification", ["dagster", "pandas", "numba", "pandera"]),
        ("import privacy_assets.semantic_risk", ["dagster", "pandas", "numba", "pandera"]),
        ("from privacy_assets import verify_release", ["dagster", "pandera", "numba", "cryptography"]),
    ],
)
def test_imports_stay_light(statement, unwanted):
    script = f"{statement}\nimport sys\nprint([name for name in {unwanted} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_versions_agree():
    assert version("privacy-assets") == privacy_assets.__version__
    assert privacy_assets.__version__ in (REPOSITORY / "CHANGELOG.md").read_text()


def test_the_two_ways_to_name_the_code_location_agree():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["dg"]["project"]
    workspace = yaml.safe_load((REPOSITORY / "workspace.yaml").read_text())["load_from"][0]["python_module"]
    assert project["code_location_target_module"] == workspace["module_name"] == "privacy_assets.definitions"
    assert project["code_location_name"] == workspace["location_name"]


def test_optional_parts_are_extras():
    needed = [requirement for requirement in requires("privacy-assets") if "extra ==" not in requirement]
    assert not [
        name
        for name in needed
        if name.startswith(("scikit-learn", "splink", "statsmodels", "sqlalchemy", "duckdb", "cryptography", "opendp"))
    ]
