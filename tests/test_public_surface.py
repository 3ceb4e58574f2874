import subprocess
import sys
import tomllib
from importlib.metadata import requires, version

import pytest
import yaml

import privacy_assets
from tests.shared_data import REPOSITORY

PUBLIC_NAMES = [
    "AnonymityReport",
    "Anonymization",
    "AnonymizationSettings",
    "AnonymizedDataset",
    "AssessmentSettings",
    "BeliefFunction",
    "BoundedNoise",
    "Candidate",
    "CandidateIndex",
    "Cart",
    "ConceptLattice",
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
    "Exact",
    "ExternalSynthetic",
    "FormalContext",
    "GaussianCopula",
    "GaussianNoise",
    "GivenSplit",
    "Hierarchy",
    "HierarchyMapping",
    "Interval",
    "InvalidSettingError",
    "InvalidTableError",
    "LDiversity",
    "Label",
    "Limit",
    "LinkageAudit",
    "LinkageAuditSettings",
    "LinkerEvaluation",
    "LocalEngine",
    "MaskError",
    "MatchedCandidates",
    "Microaggregated",
    "MonitoringSettings",
    "MpuccAssessment",
    "Mst",
    "NoisyModel",
    "OptionsSettings",
    "OtherRelease",
    "OtherReleaseSettings",
    "Policy",
    "Pram",
    "PrivacyAssetsError",
    "PrivacyBudget",
    "PrivacyBudgetError",
    "PrivacyReleaseComponent",
    "PrivateParquetIOManager",
    "PublicDomain",
    "RankWindow",
    "RecordRisk",
    "Refusal",
    "ReidentificationAssessment",
    "ReidentificationSettings",
    "ReleaseModel",
    "ReleaseOptions",
    "ReleaseStore",
    "ReleaseVerification",
    "ReportSettings",
    "RequiredSettings",
    "RiskChains",
    "SemanticAssessment",
    "SemanticRiskSettings",
    "SigningKey",
    "SimilarText",
    "SmoothCart",
    "SparkEngine",
    "SparkSource",
    "Split",
    "SqlQuery",
    "Suppressed",
    "Synthesis",
    "Synthesizer",
    "TableContract",
    "TableFile",
    "TreeAssessment",
    "UpstreamAsset",
    "UtilityAssessment",
    "UtilitySettings",
    "ValueSet",
    "WeightedAssessment",
    "WeightedCandidates",
    "anonymize",
    "anonymize_dataset",
    "apply_cuts",
    "assess_disclosure",
    "assess_mpuccs",
    "assess_reidentification",
    "assess_semantic_risk",
    "assess_utility",
    "assess_with_trees",
    "audit_linkage",
    "build_privacy_risk_checks",
    "build_release_definitions",
    "combine",
    "compare_releases",
    "draft_contract",
    "draw_records",
    "evaluate_linker",
    "explain_record",
    "find_risk_chains",
    "fingerprint",
    "forget_attributes",
    "forget_in_basis",
    "link_by_distance",
    "link_by_fellegi_sunter",
    "luxenburger_basis",
    "match_candidates",
    "measure_column_changes",
    "read_concepts",
    "read_formal_context",
    "read_released_csv",
    "released_scales",
    "split_records",
    "stem_basis",
    "synthesize",
    "verify_anonymity",
    "verify_release",
]


def test_the_public_names_are_these_and_each_resolves():
    assert privacy_assets.__all__ == PUBLIC_NAMES
    assert all(getattr(privacy_assets, name).__name__ == name for name in PUBLIC_NAMES)
    assert dir(privacy_assets) == sorted([*PUBLIC_NAMES, "__version__"])


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'asess_mpuccs'"):
        privacy_assets.asess_mpuccs  # noqa: B018


SCIPY = [f"scipy.{name}" for name in ("linalg", "optimize", "sparse", "spatial", "special", "stats")]
"""Parts of SciPy that no step needs to load the definitions of a release."""


@pytest.mark.parametrize(
    ("statement", "unwanted"),
    [
        ("import privacy_assets", ["dagster", "pandas", "numba", "pandera"]),
        ("from privacy_assets.mpucc.kernels import search", ["dagster", "pandas", "pandera"]),
        ("from privacy_assets import assess_mpuccs", ["dagster", "pandera", "matplotlib", "scipy.stats"]),
        ("from privacy_assets import assess_disclosure", ["dagster", "pandera", "matplotlib", "scipy.stats"]),
        ("from privacy_assets import assess_reidentification", ["dagster", "pandera", "matplotlib", "scipy.optimize"]),
        (
            "import privacy_assets.orchestration.factory, privacy_assets.orchestration.component.component",
            ["matplotlib", "jinja2", "sklearn", "splink", "pyarrow.dataset", *SCIPY],
        ),
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
