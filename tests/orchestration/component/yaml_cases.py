"""For every field of the component in YAML: a right value, a wrong one, and what is said about it.

`dg check yaml` says it where the schema can tell, the load of the definitions where it cannot.
"""

import sys
import types

import pandas as pd

from privacy_assets.contract.contract import TableContract
from privacy_assets.orchestration.component.component import PrivacyReleaseComponent
from privacy_assets.orchestration.component.fields import fields_of
from tests.shared_data import TESTS

MODULE = "component_test_objects"
COLUMNS = {
    "patient": {"type": "text", "role": "direct_identifier", "person": True},
    "age": {"type": "integer", "role": "quasi_identifier", "min": 0, "max": 120},
    "income": {"type": "float", "role": "quasi_identifier"},
    "joined": {"type": "datetime", "role": "quasi_identifier"},
    "plan": {"type": "category", "role": "quasi_identifier", "categories": ["free", "single"]},
    "diagnosis": {"type": "text", "role": "sensitive"},
}
NUMBER = {"type": "text", "role": "direct_identifier"}
BASE = {"source": {"file": "people.csv"}, "contract": {"columns": COLUMNS}, "policy": "research_sharing"}
ANONYMIZED = {"anonymized": {"k": 3}}
PRIVATE = {
    "contract": {
        "columns": {
            "patient": COLUMNS["patient"],
            "age": COLUMNS["age"],
            "plan": COLUMNS["plan"],
            "diagnosis": {"type": "text", "role": "sensitive", "categories": ["none", "some"]},
        }
    },
    "synthetic": {"method": "mst", "settings": {"epsilon": 1.0, "given": "plan"}},
}
SIGNED = {"signing": {"key_variable": "RELEASE_KEY"}}
SPARK = {"engine": {"spark": {"remote": "sc://host:15002"}}}
DAILY = {"type": "daily", "start_date": "2026-01-01"}
BY_DAY = {"partitions": DAILY, "source": {"file": "people-{partition_key}.csv"}}
BY_PARTITION = {"source": {"file": "people-{partition_key}.csv"}}
NO_NUMBER = "is not of type 'integer', 'number'"
NO_WHOLE_NUMBER = "is not of type 'integer'"
NO_FLAG = "is not of type 'boolean'"


def models_of(model):
    """Yield the model of a component and of all settings inside it, each time that they come."""
    yield model
    for field in fields_of(model):
        if field.settings is not None:
            yield from models_of(field.settings)


class Made:
    """A synthesizer of the project's own."""

    name = "made"

    def __init__(self, size=1):
        self.settings = {"size": size}

    def fit(self, table, *, seed):
        return self

    def sample(self, n_records, *, seed):
        return pd.DataFrame()


def install_objects():
    """Make the module that Python paths in the cases name."""
    module = types.ModuleType(MODULE)
    module.load = pd.DataFrame
    module.load_all = lambda: pd.DataFrame()
    module.table = 5
    module.Made = Made
    module.contract = lambda: TableContract.from_mapping(
        {"one_row_per_person": True, "columns": {name: COLUMNS[name] for name in ("age", "diagnosis")}}
    )
    sys.modules[MODULE] = module


def column(name, **settings):
    return {"contract": {"columns": COLUMNS | {name: COLUMNS.get(name, {}) | settings}}}


def source(**settings):
    return {"source": settings}


def policy(**settings):
    return {"policy": {"use_case": "development"} | settings}


APPROVERS = str(TESTS / "approvers.yaml")
LENIENT = {
    "policy": {
        "limits": [{"metric": "identification_rate", "value": 0.5}],
        "required": {"max_baseline_cols": 2, "exact_search": False, "deduplicated": False},
    }
}
"""A policy that accepts any settings of an assessment."""


def limit(**settings):
    return policy(limits=[{"metric": "verbatim_copies", "value": 0} | settings])


def anonymized(**settings):
    return {"anonymized": {"k": 3} | settings}


def child(**settings):
    contract = {"columns": {"patient": NUMBER, "date": {"type": "datetime", "role": "quasi_identifier"}}}
    own = {"source": {"file": "visits.parquet"}, "contract": contract, "key": "patient"} | settings
    return {"children": {"visits": own}}


def rows_of_visits(of="visits", own_key="visit"):
    """Visits with numbers, and prescriptions of visits."""
    visits = child(own_key=own_key)["children"]["visits"]
    columns = {"visit": NUMBER, "drug": {"type": "text", "role": "sensitive"}}
    visits["contract"] = {"columns": visits["contract"]["columns"] | {"visit": NUMBER}}
    own = {"source": {"file": "rx.parquet"}, "contract": {"columns": columns}, "key": "visit", "of": of}
    return {"children": {"visits": visits, "prescriptions": own}}


def by_name(model, top, *, then=None):
    """Set one field of a block at a time: ``{field: (right, wrong, message)}`` becomes the cases of a model."""

    def cases(**fields):
        more = then or {}
        return {
            f"{model}.{name}": (
                more | {top: more.get(top, {}) | {name: right}},
                more | {top: more.get(top, {}) | {name: wrong}},
                said,
            )
            for name, (right, wrong, said) in fields.items()
        }

    return cases


def other(**settings):
    return ANONYMIZED | {"reidentification": {"other_releases": [{"name": "last", "key": "age"} | settings]}}


CASES = {
    # the component
    "PrivacyReleaseComponent.name": (
        {"name": "people_2026"},
        {"name": "people-2026"},
        "named 'people-2026'; expected letters, digits and underscores",
    ),
    "PrivacyReleaseComponent.source": (
        source(file="other.csv"),
        {"source": "people.csv"},
        "'people.csv' is not of type 'object', 'null'",
    ),
    "PrivacyReleaseComponent.contract": (
        {"contract": f"{MODULE}:contract"},
        {"contract": f"{MODULE}:contrat"},
        "could not be imported: AttributeError. Check path and module",
    ),
    "PrivacyReleaseComponent.children": (
        child(),
        {"children": ["visits"]},
        "['visits'] is not of type 'object', 'null'",
    ),
    "ChildTable.source": (
        child(source={"file": "other.csv"}),
        child(source="visits.csv"),
        "'visits.csv' is not of type 'object'",
    ),
    "ChildTable.contract": (
        child(contract={"columns": {"patient": NUMBER, "cost": {"type": "float", "role": "sensitive"}}}),
        child(contract={"columns": {"patient": COLUMNS["patient"], "cost": {"type": "float", "role": "sensitive"}}}),
        "'visits' says whose its rows are (`person`, `one_row_per_person`): its key does, so leave that out",
    ),
    "ChildTable.key": (
        child(),
        child(key="date"),
        "'visits' has the key 'date', which is quasi_identifier in its contract: keys never leave, expected direct_ide",
    ),
    "ChildTable.order": (
        child(order="date"),
        child(order="patient"),
        "'visits' has the order 'patient', which is not released: expected a released column of integers, floats or",
    ),
    "ChildTable.of": (
        rows_of_visits(),
        rows_of_visits(of="prescriptions"),
        "'prescriptions' belongs to 'prescriptions', which is the table itself, so that no order of drawing is honest",
    ),
    "ChildTable.own_key": (
        rows_of_visits(),
        rows_of_visits(own_key="date"),
        "belongs to rows of 'visits' by the key 'visit', and `own_key` there is 'date': expected the same column",
    ),
    "ChildTable.anonymized": (
        child(order="date", anonymized={"aggregate": {"rows": {"count": "quasi_identifier"}, "date": "last"}})
        | {"anonymized": {"k": 3}},
        child(anonymized={"unlinked": ["cost"]}) | {"anonymized": {"k": 3}},
        "`unlinked` of 'visits' is no list of released columns of the people, which are",
    ),
    "PrivacyReleaseComponent.policy": (
        {"policy": "development"},
        {"policy": "public"},
        "'public' is not one of ['public_release', 'research_sharing'",
    ),
    "PrivacyReleaseComponent.split": ({"split": {"seed": 1}}, {"split": 0.8}, "0.8 is not of type 'object', 'null'"),
    "PrivacyReleaseComponent.synthetic": (
        {"synthetic": {"seed": 1}},
        {"synthetic": "cart"},
        "'cart' is not of type 'object', 'null'",
    ),
    "PrivacyReleaseComponent.assessment": (
        {"assessment": {"seed": 1}},
        {"assessment": {"sead": 1}},
        "('sead' was unexpected)",
    ),
    "PrivacyReleaseComponent.anonymized": (ANONYMIZED, {"anonymized": 5}, "5 is not of type 'object', 'null'"),
    "PrivacyReleaseComponent.reidentification": (
        ANONYMIZED | {"reidentification": {"max_known": 2}},
        {"synthetic": {}, "reidentification": {"max_known": 2}},
        "assesses anonymized records, but makes none. Set anonymized=...",
    ),
    "PrivacyReleaseComponent.linkage_audit": (
        ANONYMIZED | {"linkage_audit": {}},
        {"synthetic": {}, "linkage_audit": {}},
        "assesses anonymized records, but makes none",
    ),
    "PrivacyReleaseComponent.utility": (
        {"utility": {}},
        {"utility": "cart"},
        "'cart' is not of type 'object', 'null'",
    ),
    "PrivacyReleaseComponent.privacy_budget": (
        PRIVATE | {"privacy_budget": {}},
        {"privacy_budget": {}},
        "has a privacy budget, but nothing is charged to it: only the method mst spends one",
    ),
    "PrivacyReleaseComponent.disclosure": (
        {"disclosure": {}},
        ANONYMIZED | {"disclosure": {}},
        "assesses disclosure by synthetic records, but makes no such records",
    ),
    "PrivacyReleaseComponent.options": (
        {"options": {}},
        {"options": "standard"},
        "'standard' is not of type 'object', 'null'",
    ),
    "PrivacyReleaseComponent.semantic_risk": (
        ANONYMIZED | {"semantic_risk": {"advice": False}},
        {"synthetic": {}, "semantic_risk": {}},
        "assesses anonymized records, but makes none",
    ),
    "PrivacyReleaseComponent.generalize_synthetic": (
        {"generalize_synthetic": {"k": 3}},
        ANONYMIZED | {"generalize_synthetic": {"k": 3}},
        "generalizes synthetic records, but makes none",
    ),
    "PrivacyReleaseComponent.formats": (
        {"formats": ["parquet", "csv"]},
        {"formats": ["xlsx"]},
        "'xlsx' is not one of ['parquet', 'csv']",
    ),
    "PrivacyReleaseComponent.rows_per_part": (
        {"rows_per_part": 1_000},
        {"rows_per_part": 10},
        "rows_per_part is 10. Expected a whole number of at least 1,000",
    ),
    "PrivacyReleaseComponent.memory": (
        {"memory": "1.5 GiB"},
        {"memory": "16 GB"},
        "memory is '16 GB'. Expected a number of MiB, GiB or TiB, such as 16 GiB. Nothing was admitted.",
    ),
    "PrivacyReleaseComponent.waivers": ({"waivers": "waivers"}, {"waivers": 5}, "5 is not of type 'string', 'null'"),
    "PrivacyReleaseComponent.approvers": (
        {"approvers": APPROVERS},
        {"approvers": "nowhere.yaml"},
        "approvers in '/project/nowhere.yaml' cannot be used: it does not exist",
    ),
    "PrivacyReleaseComponent.signing": (SIGNED, {"signing": "key.pem"}, "'key.pem' is not of type 'object', 'null'"),
    "PrivacyReleaseComponent.engine": (SPARK, {"engine": "spark"}, "'spark' is not of type 'object', 'null'"),
    "PrivacyReleaseComponent.report": (
        {"report": {"column_changes": 0}},
        {"report": 20},
        "20 is not of type 'object', 'null'",
    ),
    "PrivacyReleaseComponent.declaration": (
        {"declaration": {"purpose": "Teaching statistics", "roles_decided_by": "The privacy officer"}},
        {"declaration": {"aim": "Teaching statistics"}},
        "declaration has ['aim']; expected some of ['purpose', 'recipient', 'recipient_means', 'legal_basis'",
    ),
    "PrivacyReleaseComponent.monitoring": (
        {"monitoring": {"drift_limit": 0.2}},
        {"monitoring": "daily"},
        "'daily' is not of type 'object', 'null'",
    ),
    "PrivacyReleaseComponent.partitions": (
        BY_PARTITION | {"partitions": DAILY},
        {"partitions": "daily"},
        "'daily' is not of type 'object', 'null'",
    ),
    "PrivacyReleaseComponent.owners": (
        {"owners": ["team:privacy"]},
        {"owners": ["privacy"]},
        "owners names 'privacy'; expected 'team:' and a name, or an email address",
    ),
    "PrivacyReleaseComponent.private_path": (
        {"private_path": "private"},
        {"private_path": "releases/private"},
        "are the same directory, or one contains the other. Private tables and releases need separate",
    ),
    "PrivacyReleaseComponent.release_path": (
        {"release_path": "published"},
        {"release_path": 5},
        "5 is not of type 'string'",
    ),
    # source
    "Source.file": (
        source(file="other.parquet"),
        source(file="other.xlsx"),
        "The format of 'other.xlsx' is 'xlsx'; expected one of ['csv', 'parquet']",
    ),
    "Source.format": (
        source(file="people.txt", format="csv"),
        source(file="people.txt", format="xlsx"),
        "'xlsx' is not one of ['csv', 'parquet', None]",
    ),
    "Source.separator": (
        {"source": {"file": "people.csv", "separator": ";"}},
        {"source": {"file": "people.csv", "separator": "::"}},
        "The separator of 'people.csv' is '::'; expected one of",
    ),
    "Source.query": (
        source(query="SELECT 1", url_variable="URL"),
        source(query="SELECT 1", file="people.csv"),
        "source: A table comes from one of file, query, spark_table, spark_path, asset and function; this one has "
        "['file', 'query']. Give one",
    ),
    "Source.url_variable": (
        source(query="SELECT 1", url_variable="URL"),
        source(query="SELECT 1"),
        "source: A query needs url_variable: the name of the environment variable with the URL of the database.",
    ),
    "Source.spark_table": (
        source(spark_table="medical.people", spark_remote="sc://spark"),
        source(spark_table="medical.people"),
        "The source is a Spark table, but neither it nor the release names the cluster. Expected `remote`",
    ),
    "Source.spark_path": (
        source(spark_path="s3a://lake/people", spark_remote="sc://spark"),
        source(spark_path="s3a://lake/people", spark_table="people"),
        "asset and function; this one has ['spark_table', 'spark_path']. Give one of them.",
    ),
    "Source.spark_format": (
        source(spark_path="s3a://lake/people", spark_format="delta", spark_remote="sc://spark"),
        source(spark_table="people", spark_format="delta", spark_remote="sc://spark"),
        "source: spark_format belongs to spark_path, but the table comes from spark_table. Leave it out.",
    ),
    "Source.spark_columns": (
        source(spark_table="people", spark_columns=["age", "sex"], spark_remote="sc://spark"),
        source(spark_table="people", spark_columns=["age", "age"], spark_remote="sc://spark"),
        "`columns` of a Spark source must be a list of distinct column names.",
    ),
    "Source.spark_remote": (
        source(spark_table="people", spark_remote="sc://spark"),
        source(file="people.csv", spark_remote="sc://spark"),
        "source: spark_remote belongs to spark_table or spark_path, but the table comes from file. Leave it out.",
    ),
    "Source.asset": (
        source(asset="warehouse/people"),
        source(asset=["warehouse", "people"]),
        "['warehouse', 'people'] is not of type 'string', 'null'",
    ),
    "Source.io_manager_key": (
        source(asset="people", io_manager_key="lake"),
        source(file="people.csv", io_manager_key="lake"),
        "source: io_manager_key belongs to asset, but the table comes from file. Leave it out.",
    ),
    "Source.function": (
        source(function=f"{MODULE}:load"),
        source(function=f"{MODULE}:table"),
        "which is a int; expected a function that returns a DataFrame",
    ),
    # contract
    "ContractYaml.columns": (
        column("age", role="other"),
        {"contract": {"columns": ["age"]}},
        "['age'] is not of type 'object'",
    ),
    "ContractYaml.one_row_per_person": (
        {"contract": {"columns": COLUMNS | {"patient": NUMBER}, "one_row_per_person": True}},
        {"contract": {"columns": COLUMNS, "one_row_per_person": True}},
        "it says both `one_row_per_person` and that ['patient'] number the people",
    ),
    "ContractYaml.rules": (
        {"contract": {"columns": COLUMNS, "rules": {"a": "age > 0", "b": {"determines": ["plan", "diagnosis"]}}}},
        {"contract": {"columns": COLUMNS, "rules": {"a": "age > 0", "b": "agee > 0"}}},
        "rule 'b' names 'agee', which the contract lacks (character 1)",
    ),
    "ContractYaml.drafted": (
        {"contract": {"columns": COLUMNS | {"age": {"type": "integer", "role": "other"}}, "drafted": False}},
        {"contract": {"columns": COLUMNS, "drafted": True}},
        "The contract is a draft that is not decided yet: the roles of ['patient', ",
    ),
    "ColumnYaml.type": (
        column("age", type="float"),
        column("age", type="intger"),
        "column 'age' has the unknown type 'intger'",
    ),
    "ColumnYaml.role": (
        column("age", role="sensitive"),
        column("age", role="secret"),
        "'secret' is not one of ['direct_identifier', 'quasi_identifier', 'sensitive', 'other', 'decide']",
    ),
    "ColumnYaml.nullable": (column("age", nullable=True), column("age", nullable="perhaps"), NO_FLAG),
    "ColumnYaml.unique": (column("age", unique=True), column("age", unique=1), NO_FLAG),
    "ColumnYaml.min": (
        column("age", min=18),
        column("age", min="eighteen"),
        "column 'age' has a 'min' that its type 'integer' cannot be compared with",
    ),
    "ColumnYaml.max": (
        column("joined", max="2026-01-01"),
        column("age", max=-1),
        "column 'age' has a 'min' above its 'max'",
    ),
    "ColumnYaml.categories": (
        column("plan", categories=["a"]),
        column("plan", categories="a"),
        "'a' is not of type 'array', 'null'",
    ),
    "ColumnYaml.ordered": (
        column("plan", ordered=True),
        column("age", ordered=True),
        "column 'age' is 'ordered', which only a category can be",
    ),
    "ColumnYaml.part_of": (
        {"contract": {"columns": COLUMNS | {each: COLUMNS[each] | {"part_of": "who"} for each in ("age", "plan")}}},
        column("age", part_of="who"),
        "`part_of` makes names with fewer than two parts: ['who']",
    ),
    "ColumnYaml.precision": (
        column("income", precision=2),
        column("income", precision=99),
        "has the precision 99: a float column takes a number of decimals, 0 to 10",
    ),
    "ColumnYaml.hierarchy": (
        column("age", hierarchy={"intervals": [5, 10]}),
        column("age", hierarchy="intervals"),
        "'intervals' is not of type 'object', 'null'",
    ),
    "ColumnYaml.scale": (
        column("age", scale="ordinal"),
        column("age", scale="round"),
        "has a scale that cannot be used: The scale is 'round'. Expected one of",
    ),
    "ColumnYaml.person": (
        column("age", person=True),
        column("joined", person=True),
        "column 'joined' is the person, but has the type datetime",
    ),
    "ColumnYaml.weight": (
        column("income", weight=True),
        column("diagnosis", weight=True),
        "column 'diagnosis' is a `weight`, but no number",
    ),
    "ColumnYaml.not_a_person": (
        column("age", not_a_person="Years of age, as the data office knows"),
        column("age", not_a_person="no"),
        "column 'age' has a `not_a_person` without a reason; expected what its values number",
    ),
    "ColumnYaml.links_rows": (
        column("diagnosis", links_rows="Needed to follow people, says the data office"),
        column("patient", links_rows="Needed to follow people, says the data office"),
        "column 'patient' has a `links_rows`, but is never released",
    ),
    "ColumnYaml.format": (
        column("joined", format="%d.%m.%Y"),
        column("joined", format="day first"),
        "column 'joined' has a format that is not one of strftime; expected one such as '%d.%m.%Y'",
    ),
    "ColumnYaml.decimal": (
        column("income", decimal=","),
        column("income", decimal=";"),
        "';' is not one of",
    ),
    "ColumnYaml.missing": (
        column("plan", missing=["NA"]),
        column("plan", missing=[]),
        "column 'plan' has a `missing` that is not a list of texts, such as [NA]",
    ),
    "ColumnYaml.description": (
        column("age", description="Age in years at enrolment"),
        column("age", description=["years"]),
        "['years'] is not of type 'string', 'null'",
    ),
    "ColumnYaml.leaves_as_is": (
        column("diagnosis", leaves_as_is="Texts of a fixed list, checked by the data office"),
        column("diagnosis", leaves_as_is=True),
        "True is not of type 'string', 'null'",
    ),
    "ColumnYaml.invented": (
        column("diagnosis", invented=True, leaves_as_is="Texts by a generator, checked by the data office"),
        column("diagnosis", invented=True),
        "column 'diagnosis' is `invented` without a reason; expected `leaves_as_is`: what invents its values",
    ),
    # policy
    "PolicyYaml.use_case": (
        {"policy": {"use_case": "development"}},
        {"policy": {"use_case": "public"}},
        "'public' is not one of ['public_release'",
    ),
    "PolicyYaml.limits": (
        limit(),
        policy(limits=[{"metric": "verbatim_copies", "value": 0}, {"metric": "verbatim_copies", "value": 1}]),
        "limits names a metric more than once: ['verbatim_copies']. Keep one limit per metric",
    ),
    "PolicyYaml.required": (
        policy(required={"max_baseline_cols": 4}),
        policy(required=4),
        "4 is not of type 'object', 'null'",
    ),
    "PolicyYaml.known": (
        policy(known=[["age", "plan"]]) | ANONYMIZED,
        policy(known=["age"]) | ANONYMIZED,
        "'age' is not of type 'array'",
    ),
    "PolicyYaml.known_rows": (policy(known_rows="all"), policy(known_rows="most"), "x"),
    "Limit.metric": (
        limit(metric="total_identified"),
        limit(metric="privacy_score"),
        "'privacy_score' is not one of ['privacy_risk_score', 'score_of_lone_people'",
    ),
    "Limit.value": (limit(value=3), limit(value="low"), f"'low' {NO_NUMBER}"),
    "Limit.direction": (
        limit(direction="below", value=3),
        limit(direction="above"),
        "has direction 'above', which would require more risk. Expected 'below' or 'at_most'",
    ),
    "Limit.severity": (
        limit(severity="warn"),
        limit(severity="info"),
        "'info' is not one of ['error', 'warn', None]",
    ),
    "Limit.beyond": (
        policy(
            use_case="research_sharing",
            limits=[{"metric": "privacy_risk_score", "value": 0.15, "beyond": "exposed_share"}],
        ),
        limit(beyond="exposed_share"),
        "The limit on 'verbatim_copies' has beyond 'exposed_share' and severity 'error'",
    ),
    "Limit.advice": (limit(advice="Ask us."), limit(advice=5), "5 is not of type 'string', 'null'"),
    **{
        f"RequiredSettings.{name}": (policy(required={name: right}), policy(required={name: wrong}), said)
        for name, right, wrong, said in [
            ("exact_search", False, "no", f"'no' {NO_FLAG}"),
            (
                "max_baseline_cols",
                5,
                0,
                "requires max_baseline_cols=0; expected a whole number from 1, or None for all",
            ),
            ("default_precision", False, 0, f"0 {NO_FLAG}"),
            ("deduplicated", False, 0, f"0 {NO_FLAG}"),
            ("control_records", 50, "many", f"'many' {NO_WHOLE_NUMBER}"),
            ("confidence_level", 0.9, "high", f"'high' {NO_NUMBER}"),
            (
                "detectable_share",
                0.02,
                0,
                "requires detectable_share=0; expected a number above 0",
            ),
            ("people_per_value", 7, 0, "requires people_per_value=0; expected a whole number from 1, or None for"),
        ]
    },
    "RequiredSettings.signature": (
        policy(required={"signature": True}) | SIGNED,
        policy(required={"signature": True}),
        "requires signed releases, but this one has no signing key. Give one",
    ),
    "RequiredSettings.declaration": (
        policy(required={"declaration": ["purpose", "review_by"]}),
        policy(required={"declaration": ["aim"]}),
        "requires declaration=['aim']; expected some of ['purpose'",
    ),
    "RequiredSettings.approvals": (
        policy(required={"approvals": 1}) | {"approvers": APPROVERS},
        policy(required={"approvals": 2}) | {"approvers": APPROVERS},
        "requires approvals (2) or signed waivers, but `approvers` names 1 people",
    ),
    "RequiredSettings.signed_waivers": (
        policy(required={"signed_waivers": True}) | {"approvers": APPROVERS},
        policy(required={"signed_waivers": True}),
        "but `approvers` names 0 people",
    ),
    # the engine
    "EngineYaml.spark": (SPARK, {"engine": {"spark": "local[2]"}}, "'local[2]' is not of type 'object'"),
    "SparkEngine.remote": (
        SPARK,
        {"engine": {"spark": {"remote": "http://host:15002/;token=a"}}},
        "`remote` is not the address of a Spark Connect server; it is not shown, because it may contain a token",
    ),
    "SparkEngine.staging": (
        {"engine": {"spark": SPARK["engine"]["spark"] | {"staging": "/mnt/staging"}}},
        {"engine": {"spark": SPARK["engine"]["spark"] | {"staging": "s3://bucket"}}},
        "staging is 's3://bucket'. Expected the absolute path of a directory, not an object store",
    ),
    "SparkEngine.writes_releases": (
        {"engine": {"spark": SPARK["engine"]["spark"] | {"writes_releases": True}}},
        {"engine": {"spark": SPARK["engine"]["spark"] | {"writes_releases": "where"}}},
        "'where' is not of type 'boolean'",
    ),
    "SparkEngine.rows_per_task": (
        {"engine": {"spark": SPARK["engine"]["spark"] | {"rows_per_task": 1_000}}},
        {"engine": {"spark": SPARK["engine"]["spark"] | {"rows_per_task": 0}}},
        "an integer of at least 1",
    ),
    # the report
    "ReportSettings.column_changes": (
        {"report": {"column_changes": 12}},
        {"report": {"column_changes": -1}},
        "report.column_changes is -1. Expected an integer of at least 0",
    ),
    # the signature
    **by_name("SigningYaml", "signing")(
        key_file=("keys/release.pem", "x" * 64, "The path of the signing key is not a path"),
        key_variable=("RELEASE_KEY", "release-key", "is not the name of an environment variable"),
    ),
    "SigningYaml.key_id": (
        {"signing": {"key_variable": "RELEASE_KEY", "key_id": "ab" * 32}},
        {"signing": {"key_variable": "RELEASE_KEY", "key_id": "AB" * 32}},
        "is not 64 hexadecimal digits in lower case",
    ),
    # the synthetic side
    **by_name("Split", "split")(
        train_fraction=("auto", 1.5, "`train_fraction` is 1.5; expected a number above 0 and below 1, or 'auto'"),
        seed=(1, -1, "`seed` is -1; expected a whole number, 0 or more"),
    ),
    "Split.original": (
        {"source": None, "split": {"original": {"file": "a.csv"}, "control": {"file": "b.csv"}}},
        {"split": {"original": {"file": "a.csv"}, "control": {"file": "b.csv"}}},
        "needs either a source, or a GivenSplit with original and control; it has both",
    ),
    "Split.control": (
        {"source": None, "split": {"original": {"file": "a.csv"}, "control": {"file": "c.csv"}}},
        {"split": {"control": {"file": "a.csv"}}},
        "split: A given split needs both original and control; this one has only control.",
    ),
    **by_name("Synthesis", "synthetic")(
        method=(
            f"{MODULE}:Made",
            "gan",
            "There is no synthesizer named 'gan'. There are ['cart', 'gaussian_copula', 'smo",
        ),
        n_records=(10, 0, "`n_records` of 'Synthesis' is 0; expected a whole number, 1 or more"),
        seed=(1, -1, "`seed` of 'Synthesis' is -1; expected a whole number, 0 or more"),
        settings=(
            {"min_atom": 9},
            {"leaves": 4},
            "'smooth_cart' has no settings ['leaves']. It has ['min_people', 'smoothing', 'min_atom', 'group', ",
        ),
    ),
    "Synthesis.external": (
        {"synthetic": {"external": {"file": "s.csv"}, "control_was_withheld": True}},
        {"synthetic": {"external": {"file": "s.csv"}}},
        "or declare ExternalSynthetic(..., control_was_withheld=True)",
    ),
    "Synthesis.control_was_withheld": (
        {"synthetic": {"external": {"file": "t.csv"}, "control_was_withheld": True}},
        {"synthetic": {"control_was_withheld": True}},
        "synthetic: control_was_withheld describes external records, but these are made here",
    ),
    "Synthesis.person": (
        {"synthetic": {"external": {"file": "t.csv"}, "control_was_withheld": True, "person": "trace"}},
        {"synthetic": {"person": "trace"}},
        "synthetic: person names a column of external records, but these are made here, row by row",
    ),
    **by_name("AssessmentSettings", "assessment", then=LENIENT | {"assessment": {"max_baseline_cols": 3}})(
        max_baseline_cols=(2, 0, "max_baseline_cols is 0"),
        calculate_baseline=(False, "no", f"'no' {NO_FLAG}"),
        max_combinations=(1000, 4, "max_combinations is 4. Expected at least 5, the number of columns"),
        n_matched_samples=(3, 0, "n_matched_samples is 0"),
        seed=(1, -1, "seed is -1"),
        confidence_level=(0.9, 1, "confidence_level is 1"),
        numeric_precision=({"income": 2}, -1, "numeric_precision"),
        datetime_precision=("D", "fortnight", "fortnight"),
        deduplicate=(False, "no", f"'no' {NO_FLAG}"),
    ),
    **by_name("PartitionsYaml", "partitions", then=BY_PARTITION | {"partitions": DAILY})(
        type=("weekly", "yearly", "'yearly' is not one of ['static', 'daily', 'weekly', 'monthly']"),
        start_date=("2025-01-01", "January", "start_date is 'January'; expected a day such as 2026-01-01"),
        end_date=("2027-01-01", "2026-13-01", "end_date is '2026-13-01'; expected a day such as 2026-01-01"),
        timezone=("Europe/Berlin", "Berlin", "daily partitions cannot be made from these settings"),
    ),
    "PartitionsYaml.partition_keys": (
        BY_PARTITION | {"partitions": {"type": "static", "partition_keys": ["north"]}},
        {"partitions": {"type": "static"}},
        "static partitions need partition_keys and no other keys",
    ),
    # the anonymized side
    **by_name("AnonymizationSettings", "anonymized", then=ANONYMIZED)(
        k=(7, "five", f"'five' {NO_WHOLE_NUMBER}, 'null'"),
        criterion=("range", "median", "'median' is not one of ['gain', 'range']"),
        relaxed=(True, "yes", f"'yes' {NO_FLAG}"),
        normalize=("range", "none", "'none' is not one of ['best', 'rank', 'range']"),
        l_diversity=(
            {"least": 2},
            0,
            "l_diversity of 'every sensitive column' is 0. Expected a whole number of at least 1",
        ),
        l_diversity_by_column=(
            {"diagnosis": {"least": 2}},
            {"age": {"least": 2}},
            "l_diversity names columns that are not sensitive: ['age']",
        ),
        t_closeness=(
            {"diagnosis": 0.3},
            1.5,
            "t_closeness of 'every sensitive column' is 1.5. Expected a number from 0 to 1",
        ),
        max_suppression=(0.1, 1, "max_suppression is 1. Expected a share from 0 to below 1"),
        bounds=("cell", "loose", "'loose' is not one of ['tight', 'cell']"),
        seed=(1, -1, "seed is -1. Expected a whole number of at least 0"),
        pictured=(
            ["age", "joined"],
            ["age", "plan"],
            "pictures ['age', 'plan']; expected two quasi-identifiers with numbers or datetimes",
        ),
    ),
    "AnonymizationSettings.output": (
        anonymized(output="centroid") | {"policy": {"limits": [{"metric": "smallest_class", "value": 3}]}},
        anonymized(output="centre"),
        "'centre' is not one of ['labels', 'centroid']",
    ),
    "AnonymizationSettings.method": (
        anonymized(
            method="lattice", hierarchies={name: {"tree": {"a": ["b"]}} for name in ("age", "income", "joined", "plan")}
        ),
        anonymized(method="arx"),
        "'arx' is not one of ['mondrian', 'lattice']",
    ),
    "AnonymizationSettings.hierarchies": (
        anonymized(hierarchies={"plan": {"tree": {"a": ["c"]}}, "age": {"intervals": [5, 10]}}),
        anonymized(hierarchies={"age": {"steps": [5]}}),
        "A hierarchy is given as a mapping of 1 keys. Expected one key of",
    ),
    "AnonymizationSettings.membership_control": (
        anonymized(membership_control={"file": "t.csv"}),
        anonymized(membership_control={"file": "t.xlsx"}),
        "The format of 't.xlsx' is",
    ),
    "AnonymizationSettings.of": (
        anonymized(of="original") | {"split": {"train_fraction": 0.5}},
        anonymized(of="control"),
        "'control' is not one of ['source', 'original']",
    ),
    "LDiversity.least": (
        anonymized(l_diversity={"least": 3}),
        anonymized(l_diversity={"least": 0}),
        "l_diversity.least is 0. Expected a number of at least 1",
    ),
    "LDiversity.kind": (
        anonymized(l_diversity={"least": 3, "kind": "entropy"}),
        anonymized(l_diversity={"least": 3, "kind": "simpson"}),
        "'simpson' is not one of ['distinct', 'entropy', 'recursive']",
    ),
    "LDiversity.c": (
        anonymized(l_diversity={"least": 3, "kind": "recursive", "c": 2}),
        anonymized(l_diversity={"least": 3, "c": 0}),
        "l_diversity.c is 0. Expected a number above 0",
    ),
    **by_name("ReidentificationSettings", "reidentification", then=ANONYMIZED)(
        max_known=(2, 0, "max_known is 0; expected a whole number of at least 1"),
        curve_sample=(500, 0, "curve_sample is 0; expected a whole number of at least 1"),
        other_releases=(
            [{"name": "a", "key": "age", "release": "b"}],
            [{"name": "a", "key": "age", "release": "b"}] * 2,
            "The other releases are named ['a', 'a']; expected a different name for each",
        ),
    ),
    "OtherReleaseSettings.name": (
        other(release="b", name="first"),
        other(release="b", name="last year"),
        "The other release is named 'last year'; expected letters, digits and underscores",
    ),
    "OtherReleaseSettings.key": (
        other(release="b", key="plan"),
        other(release="b", key="pseudonym"),
        "is linked by 'pseudonym', which is not released",
    ),
    "OtherReleaseSettings.release": (
        other(release="c"),
        other(),
        "needs one place: release, directory, or a table with its model",
    ),
    "OtherReleaseSettings.directory": (
        other(directory="releases/old"),
        other(directory="releases/old", release="b"),
        "needs one place: release, directory, or a table with its model",
    ),
    "OtherReleaseSettings.table": (
        other(table={"file": "t.csv"}, masks={"age": {"kind": "label", "column": "age"}}),
        other(table={"file": "t.csv"}),
        "needs one place: release, directory, or a table with its model",
    ),
    "OtherReleaseSettings.masks": (
        other(table={"file": "t.csv"}, masks={"age": {"kind": "exact", "column": "age"}}),
        other(table={"file": "t.csv"}, masks={"age": {"kind": "blurred"}}),
        "A release model names masks that do not exist: ['blurred']",
    ),
    "OtherReleaseSettings.withdrawn": (
        other(release="b", withdrawn={"0" * 64: "deleted by the recipient; A. Lovelace"}),
        other(release="b", withdrawn={"0" * 64: "---"}),
        "Entries [1] of `withdrawn` of the other release 'last' cannot be used. Expected a fingerprint",
    ),
    "OtherReleaseSettings.quasi_identifiers": (
        other(release="b", quasi_identifiers=["age"]),
        other(release="b", quasi_identifiers=[]),
        "The quasi_identifiers of the other release 'last' must be a non-empty list of distinct column names",
    ),
    "OtherReleaseSettings.hierarchies": (
        other(release="b", hierarchies={"age": {"intervals": [5]}}),
        other(release="b", hierarchies={"age": {"intervals": [0]}}),
        "intervals",
    ),
    **by_name("LinkageAuditSettings", "linkage_audit", then=ANONYMIZED)(
        method=("fellegi_sunter", "nearest", "'nearest' is not one of ['distance', 'fellegi_sunter']"),
        known=(["age", "diagnosis"], ["patient"], "assumes that an attacker knows ['patient'], which the release does"),
        n_records=(500, 0, "n_records is 0. Expected None or a whole number of at least 1"),
        softness=(0.5, 0, "softness is 0. Expected None or a number above 0"),
        seed=(1, -1, "seed is -1. Expected a whole number of at least 0"),
    ),
    **by_name("UtilitySettings", "utility")(
        group=("plan", "patient", "utility.group of 'people' is 'patient'. Expected one of the released columns"),
        seed=(1, -1, "utility.seed is -1. Expected an integer of at least 0"),
    ),
    **by_name("PrivacyBudget", "privacy_budget", then=PRIVATE)(
        population=("patients", "a/b", "privacy_budget.population is 'a/b'. Expected letters, digits, '_' and '-'"),
        delta=(1e-7, 0, "delta is 0. Expected a number above 0 and below 1"),
        publish_figures=(False, "no", "'no' is not of type 'boolean'"),
    ),
    **by_name("PrivacyBudget", "privacy_budget", then=PRIVATE | BY_DAY)(
        partitions_are_disjoint=(True, 1, "1 is not of type 'boolean'"),
    ),
    **by_name("DisclosureSettings", "disclosure")(
        sensitive=(["diagnosis"], ["disease"], "`sensitive` names columns that the tables do not have: ['disease']"),
        known=(["age", "diagnosis"], ["age"], "`known` must be a list of at least 2 distinct column names"),
        quasi_identifiers=(
            ["diagnosis"],
            ["disease"],
            "`quasi_identifiers` names columns that the tables do not have: ['disease']",
        ),
        max_known=(2, 4, "max_known is 4. Expected an integer from 1 to 3"),
        n_permutations=(4_999, 99, "n_permutations is 99. Expected an integer of at least 999"),
        seed=(1, -1, "seed is -1. Expected an integer of at least 0"),
        sample=(5_000, 10, "sample is 10. Expected None or an integer of at least 100"),
    ),
    **by_name("OptionsSettings", "options")(
        candidates=([{"anonymized": {"k": 3}}], [], "options.candidates is a tuple. Expected 'standard', or a list"),
        n_seeds=(3, 1, "options.n_seeds is 1. Expected an integer from 2 to 100"),
        seed=(1, -1, "options.seed is -1. Expected an integer of at least 0"),
        limit_seconds=(60, 0, "options.limit_seconds is 0. Expected a number above 0, or None"),
        until=(0.8, 1, "options.until is 1. Expected a number between 0 and 1, or None"),
    ),
    "Candidate.name": (
        {"options": {"candidates": [{"name": "fine", "anonymized": {"k": 3}}]}},
        {"options": {"candidates": [{"name": "", "anonymized": {"k": 3}}]}},
        "Expected printable text of 1 to 80 characters",
    ),
    "Candidate.synthetic": (
        {"options": {"candidates": [{"synthetic": {"method": "cart", "settings": {"min_samples_leaf": 50}}}]}},
        {"options": {"candidates": [{"synthetic": {"seed": 5}}]}},
        "A comparison draws its own seeds, which no release has: leave the seed out",
    ),
    "Candidate.generalize_synthetic": (
        {"options": {"candidates": [{"synthetic": {}, "generalize_synthetic": {"k": 3}}]}},
        {"options": {"candidates": [{"anonymized": {"k": 3}, "generalize_synthetic": {"k": 3}}]}},
        "has `generalize_synthetic`, but no `synthetic` to generalize",
    ),
    "Candidate.anonymized": (
        {"options": {"candidates": [{"anonymized": {"k": 3, "l_diversity": 2}}]}},
        {"options": {"candidates": [{"anonymized": {"k": 3}, "synthetic": {}}]}},
        "A candidate needs either `synthetic` or `anonymized`; this one has both",
    ),
    **by_name("MonitoringSettings", "monitoring")(
        cron_schedule=("0 6 * * 1", 5, "5 is not of type 'string', 'null'"),
        timezone=("Europe/Berlin", 5, "5 is not of type 'string'"),
        freshness_days=(30, 0, "freshness_days is 0; expected a number of days from 1 to 36,500, or None"),
        drift_limit=(0.2, 1.5, "drift_limit is 1.5; expected a distance between 0 and 1, or None"),
        automate=(True, "no", f"'no' {NO_FLAG}"),
        on_refusal=("json:dumps", "json:no_such_function", "could not be imported"),
    ),
    **by_name("SemanticRiskSettings", "semantic_risk", then=ANONYMIZED)(
        scales=({"age": "ordinal"}, {"age": "round"}, "The scale is 'round'. Expected one of"),
        three_way=([0.1, 0.3], [0.3, 0.1], "three_way is (0.3, 0.1). Expected alpha < beta"),
        semantic_risk=(False, "no", f"'no' {NO_FLAG}"),
        advice=(False, "no", f"'no' {NO_FLAG}"),
        min_support=(20, -1, "min_support is -1"),
        max_words_searched=(10**11, 0, "max_words_searched is 0. Expected an integer above 0"),
        withhold=({}, {}, ""),
        risk_limit=(0.3, 2, "risk_limit is 2"),
        of_source=(True, "no", f"'no' {NO_FLAG}"),
    ),
}
CASES["SemanticRiskSettings.withhold"] = (
    ANONYMIZED | {"semantic_risk": {"withhold": True, "risk_limit": 0.3}},
    ANONYMIZED | {"semantic_risk": {"withhold": True}},
    "Records at risk are to be withheld, but neither risk_limit nor a limit on maximum_semantic_risk",
)


STATIC = {"partitions": {"type": "static", "partition_keys": ["north", "south"]}}
GIVEN_SPLIT = {"original": {"file": "a.csv"}, "control": {"file": "b.csv"}}
# A setting of the release without a case of its own: its example, and what no setting takes.
for each in fields_of(PrivacyReleaseComponent):
    CASES.setdefault(
        f"PrivacyReleaseComponent.{each.name}", ({each.name: each.example}, {each.name: [[0]]}, "is not of type")
    )
MORE_WRONG = [
    (
        source(),
        "source: A table comes from one of file, query, spark_table, spark_path, asset and function; this one has "
        "nothing. Give one of them",
    ),
    (
        source(url_variable="URL"),
        "source: A table comes from one of file, query, spark_table, spark_path, asset and function; this one has only "
        "url_variable, which belongs to query.",
    ),
    (
        source(file="people.csv", url_variable="URL"),
        "source: url_variable belongs to query, but the table comes from file. Leave it out.",
    ),
    (
        {"split": GIVEN_SPLIT | {"seed": 1}},
        "split: The split gives original and control, so seed would have no effect. Leave it out.",
    ),
    (
        {"split": GIVEN_SPLIT | {"seed": 0, "train_fraction": 0.8}},
        "split: The split gives original and control, so train_fraction and seed would have no effect. Leave them out.",
    ),
    ({"split": {"original": {"file": "a.csv"}}}, "this one has only original."),
    (
        {"split": GIVEN_SPLIT | {"control": {"query": "SELECT 1"}}},
        "split.control: A query needs url_variable: the name of the environment variable",
    ),
    (
        {"synthetic": {"external": {"file": "s.csv"}, "method": "cart", "seed": 1}},
        "synthetic: The synthetic records are external, so method and seed would have no effect. Leave them out.",
    ),
    (
        {"synthetic": {"external": {"file": "s.csv"}}},
        "has synthetic records that were made elsewhere, divides the source itself, and limits leakage",
    ),
    ({"synthetic": "{{ {'external': {}} }}"}, "synthetic.external: A table comes from one of file, query, spark"),
    ({"signing": {}}, "The settings of signing need one of key_file and key_variable"),
    ({"signing": {"key_file": "a.pem", "key_variable": "KEY"}}, "need one of key_file and key_variable"),
    ({"signing": {"key_variable": "MC4CAQAwBQYDK2VwBCIEI" + "A" * 43}}, "The given value is not shown"),
    ({"signing": {"key_file": "-----BEGIN PRIVATE KEY-----"}}, "The given value is not shown"),
    (column("diagnosis", leaves_as_is=" "), "column 'diagnosis' has a `leaves_as_is` without a reason; expected why"),
    (column("diagnosis", leaves_as_is="ok"), "column 'diagnosis' has a `leaves_as_is` without a reason; expected why"),
    (column("diagnosis", leaves_as_is="a b " * 200), "has a `leaves_as_is` of 800 characters; expected at most 500"),
    (column("diagnosis", leaves_as_is="who\x00 decided it"), "with characters that cannot be printed"),
    (
        column("patient", leaves_as_is="the ethics board decided"),
        "column 'patient' has a `leaves_as_is`, but is never released",
    ),
    (
        column("age", leaves_as_is="the ethics board decided"),
        "The contract has reasons to release ['age'] unchanged, but no side of the release 'people' does so",
    ),
    (
        column("plan", leaves_as_is="the ethics board decided") | ANONYMIZED,
        "The contract has reasons to release ['plan'] unchanged, but no side of the release 'people' does so",
    ),
    (anonymized(t_closeness=True), "t_closeness"),
    (anonymized(t_closeness={"diagnosis": True}), "t_closeness"),
    ({"assessment": {"numeric_precision": True}}, "numeric_precision"),
    ({"assessment": {"numeric_precision": {"income": True}}}, "numeric_precision"),
    (column("income", precision=True), "precision"),
    (ANONYMIZED | {"semantic_risk": {"three_way": [False, True]}}, "three_way"),
    (
        {"partitions": DAILY | {"end_date": "2025-12-31"}},
        "There is no partition from start_date 2026-01-01 to end_date 2025-12-31",
    ),
    (
        {"partitions": {"type": "monthly", "start_date": "2026-01-05", "end_date": "2026-01-20"}},
        "There is no partition from start_date 2026-01-05 to end_date 2026-01-20",
    ),
    ({"partitions": {"type": "static", "partition_keys": ["a", "a"]}}, "partition_keys: Partition keys must be unique"),
    ({"partitions": {"type": "static", "partition_keys": [""]}}, "contains an empty key"),
    ({"monitoring": {"on_refusal": "os:sep"}}, "on_refusal is a str; expected a function that is called with"),
    (
        {"monitoring": {"cron_schedule": "every monday"}},
        "cron_schedule is 'every monday'; expected five fields of cron such as",
    ),
    ({"monitoring": {"timezone": "Mars/Phobos"}}, "timezone is 'Mars/Phobos'; expected the name of a time zone"),
    ({"monitoring": {"freshness_days": 10**12}}, "freshness_days is 1000000000000; expected a number of days from 1"),
    ({"owners": ["team:privacy", "bob smith"]}, "owners names 'bob smith'; expected 'team:' and a name"),
    (STATIC, "its source is the file '/project/people.csv', which is the same for all of them"),
    (
        STATIC | source(spark_table="people", spark_remote="sc://spark"),
        "its source is a Spark table, which is the same for all of them",
    ),
    (
        STATIC | source(query="SELECT * FROM people -- :partition_key", url_variable="URL"),
        "its source is the rows of a query, which is the same for all of them",
    ),
    (
        STATIC | source(function=f"{MODULE}:load_all"),
        "its source is the result of a function, which is the same for all",
    ),
    (
        STATIC | {"source": None, "split": {"original": {"file": "{partition_key}.csv"}, "control": {"file": "c.csv"}}},
        "its control is the file '/project/c.csv'",
    ),
    (
        STATIC | BY_PARTITION | {"synthetic": {"external": {"file": "s.csv"}, "control_was_withheld": True}},
        "its synthetic is the file '/project/s.csv'",
    ),
]
"""More wrong values, which a field of the right kind can hold."""
