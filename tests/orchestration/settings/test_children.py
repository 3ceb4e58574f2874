"""Related tables in the settings of a release: what fits together is accepted, all else is refused with what to do."""

import dagster as dg
import pytest

import privacy_assets as pa
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.asked import Release
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.release.metrics import METRICS, MPUCC
from privacy_assets.release.policy import Limit, Policy
from tests.orchestration.related_project import (
    DRUGS_CONTRACT,
    LINES_CONTRACT,
    NUMBERED_VISITS_CONTRACT,
    PEOPLE_CONTRACT,
    POLICY,
    VISITS_CONTRACT,
)
from tests.orchestration.test_waivers import sign


def with_column(contract, name, **settings):
    columns = contract["columns"]
    return {**contract, "columns": {**columns, name: {**columns.get(name, {}), **settings}}}


def child(contract=VISITS_CONTRACT, key="patient", order="date", source=list, anonymized=None):
    return pa.ChildTable(source=source, contract=contract, key=key, order=order, anonymized=anonymized)


NUMBERED_LINES_CONTRACT = with_column(LINES_CONTRACT, "line", role="direct_identifier")


def two_levels(visits=NUMBERED_VISITS_CONTRACT, lines=LINES_CONTRACT, of_visits=None, of_lines=None):
    """Visits with numbers and the lines of their bills, with some of their settings changed."""
    own = {"contract": visits, "key": "patient", "order": "date", "own_key": "visit", **(of_visits or {})}
    below = {"contract": lines, "key": "visit", "order": "line", "of": "visits", **(of_lines or {})}
    return {"visits": pa.ChildTable(source=list, **own), "lines": pa.ChildTable(source=list, **below)}


def with_level(**more):
    """Visits, their lines, and another table."""
    below = {"contract": NUMBERED_LINES_CONTRACT, "key": "line", "of": "lines"} | more
    of_lines = {"order": None, "own_key": "line"}
    return {
        **two_levels(lines=NUMBERED_LINES_CONTRACT, of_lines=of_lines),
        "parts": pa.ChildTable(source=list, **below),
    }


def asked(**settings):
    usual = {
        "source": list,
        "contract": PEOPLE_CONTRACT,
        "children": {"visits": child(), "drugs": child(DRUGS_CONTRACT, order=None)},
        "policy": POLICY,
    }
    return ReleaseSettings.of(Release("clinic", **(usual | settings)))


def test_the_contract_of_a_child_has_its_key_as_the_person():
    release = asked()
    assert release.related.tables["visits"].person == "patient"
    assert release.related.columns_of("visits") == ["date", "diagnosis", "patient", "cost", "paid"]
    assert release.columns_leaving("synthetic") == {
        "people: sex": "quasi_identifier",
        "visits: diagnosis": "sensitive",
        "visits: paid": "other",
        "drugs: drug": "sensitive",
    }
    assert release.disclosure_settings.max_known == 2
    assert release.stages_assessed == ("original", "control")


def test_rows_of_rows_are_linked_by_the_numbers_of_rows():
    related = asked(children=two_levels()).related
    assert related.keys == {"people": ["patient"], "visits": ["patient", "visit"], "lines": ["visit"]}
    assert related.columns_of("lines") == ["item", "line", "price", "visit"]
    roles = {each["column"]: each["role"] for each in related.describe()}
    assert {name for name, role in roles.items() if role == "key"} == {
        "people: patient",
        "visits: visit",
        "visits: patient",
        "lines: visit",
    }


def test_rows_of_rows_may_have_the_number_of_their_person_which_never_leaves():
    lines = with_column(LINES_CONTRACT, "patient", type="text", role="direct_identifier")
    assert "patient" not in asked(children=two_levels(lines=lines)).related.columns_of("lines")


SMOOTH = pa.Synthesis()
SPARK = pa.SparkSource(table="visits", columns=["patient"])


class NoRelated:
    name, settings = "own", {}

    def fit(self, table, *, seed):
        return self

    def sample(self, n_records, *, seed):
        return None


def anonymized(visits=None, drugs=None, people=PEOPLE_CONTRACT, of_visits=VISITS_CONTRACT, **settings):
    children = {
        "visits": child(of_visits, anonymized=visits),
        "drugs": child(DRUGS_CONTRACT, order=None, anonymized=drugs),
    }
    side = {"anonymized": pa.AnonymizationSettings(k=3), "policy": Policy((Limit("smallest_class", 3),))}
    return side | {"children": children, "contract": people} | settings


def figures(**by_column):
    return {"aggregate": by_column}


COUNT = {"aggregate": {"rows": "count"}}
TIES = "their equal values tie the rows of a person together again"
REFUSED = {
    "rows of people": (
        anonymized(),
        "98 % had fewer than 5 candidates if two of their rows were known. Expected one form",
    ),
    "both forms": (
        anonymized({"unlinked": ["age"]}, COUNT),
        "['drugs', 'visits'] have several forms that can be joined",
    ),
    "unlinked twice": (
        anonymized({"unlinked": ["age"]}, {"unlinked": []}),
        "['visits', 'drugs'] have several forms that can be joined",
    ),
    "two forms of a child": (anonymized({"unlinked": [], **COUNT}), "that of ['visits'] is no mapping with one key"),
    "a form": (anonymized(5), "that of ['visits'] is no mapping with one key, 'aggregate' or 'unlinked'"),
    "another form": (anonymized({"linked": []}), "that of ['visits'] is no mapping with one key"),
    "exact columns with rows": (
        anonymized({"unlinked": ["age", "sex"]}, people=with_column(PEOPLE_CONTRACT, "sex", role="sensitive")),
        f"`unlinked` of 'visits' names ['sex'], with the roles ['sensitive']. They would leave as they are with each "
        f"row, and {TIES}",
    ),
    "keys with rows": (
        anonymized({"unlinked": ["patient"]}),
        "is no list of released columns of the people, which are ['age', 'sex']",
    ),
    "a text with rows": (anonymized({"unlinked": "age"}), "is no list of released columns of the people"),
    "twice with rows": (anonymized({"unlinked": ["age", "age"]}), "names a column twice: ['age', 'age']"),
    "the count beside its label": (
        anonymized(figures(rows={"count": "quasi_identifier"}, diagnosis="count")),
        "['count'] of 'diagnosis' of 'visits' leave as they are, and show how many rows a person has",
    ),
    "two figures beside the count": (
        anonymized(figures(rows={"count": "quasi_identifier"}, diagnosis=["first", "last"])),
        "['first', 'last'] of 'diagnosis' of 'visits' leave as they are, and show how many rows a person has",
    ),
    "an exact figure of a quasi-identifier": (
        anonymized(figures(date={"first": "other"})),
        "'first' of 'date' would leave as it is, but 'date' is a quasi-identifier",
    ),
    "withheld rows": (
        anonymized({"unlinked": ["age"]}, semantic_risk=pa.SemanticRiskSettings(withhold=True, risk_limit=0.2)),
        "`semantic_risk.withhold`: people have several unlinked rows",
    ),
    "no figures": (anonymized(figures()), "'visits' has no figures by column"),
    "no mapping of figures": (anonymized({"aggregate": ["rows"]}), "no mapping of columns to figures"),
    "a number": (anonymized(figures(cost=5)), "expected a figure such as count, a list of them, or a mapping to their"),
    "an unknown figure": (anonymized(figures(cost="median")), "['median'] of 'cost' of 'visits' are none of"),
    "a sum of texts": (
        anonymized(figures(diagnosis="sum")),
        "asks for ['sum'] of 'diagnosis' of 'visits', a column of",
    ),
    "an unknown column": (anonymized(figures(price="sum")), "'price' is no column of 'visits'"),
    "a sum of keys": (anonymized(figures(patient="count")), "'patient' is no column of 'visits'"),
    "a direct identifier": (
        anonymized(figures(cost={"sum": "direct_identifier"})),
        "the role of 'sum' is none of ['quasi_identifier', 'sensitive', 'other']",
    ),
    "an unknown role": (anonymized(figures(cost={"sum": {"role": "decide"}})), "the role of 'sum' is none of"),
    "an unknown declaration": (anonymized(figures(cost={"sum": {"person": True}})), "'sum' has neither a role nor a"),
    "a reason": (
        anonymized(figures(cost={"sum": {"leaves_as_is": "so"}})),
        "column 'sum cost of visits' has a `leaves_as_is` without a reason",
    ),
    "a reason without need": (
        anonymized(figures(cost={"sum": {"role": "quasi_identifier", "leaves_as_is": "The board allowed it"}})),
        "The contract has reasons to release ['sum cost of visits'] unchanged, but no side",
    ),
    "a form without a side": (
        anonymized(COUNT, anonymized=None),
        "say what leaves of ['visits'] with anonymized records, but there are none",
    ),
    "nothing to generalize": (
        anonymized(
            {"unlinked": []},
            of_visits={
                "columns": {
                    "patient": VISITS_CONTRACT["columns"]["patient"],
                    "date": {"type": "datetime", "role": "other"},
                }
            },
        ),
        "The contract has no quasi-identifier, so there is nothing to generalize",
    ),
    "membership control": (
        anonymized(COUNT, anonymized=pa.AnonymizationSettings(membership_control=list)),
        "`anonymized.membership_control`: write `of: original`, whose control has rows",
    ),
    "other releases": (
        anonymized(
            COUNT,
            reidentification=pa.ReidentificationSettings(
                other_releases=(pa.OtherReleaseSettings("last", "sex", release="last"),)
            ),
        ),
        "`reidentification.other_releases`: their records have no rows",
    ),
    "what nobody has": (
        anonymized({"unlinked": ["age"]}, policy=Policy((Limit("smallest_class", 3),), known=(("sex",),))),
        "The policy assumes that an attacker knows ['sex'], which the release 'clinic' does not have",
    ),
    "generalized": ({"generalize_synthetic": pa.AnonymizationSettings(k=3)}, "`generalize_synthetic`: coarsen columns"),
    "budget": ({"privacy_budget": pa.PrivacyBudget()}, "`privacy_budget`: no method with a budget"),
    "mst": ({"synthetic": pa.Synthesis(method="mst", settings={"epsilon": 1.0, "given": "sex"})}, "method: mst`"),
    "cart": (
        {"synthetic": pa.Synthesis(method="gaussian_copula")},
        "method: gaussian_copula`: it learns one",
    ),
    "own": ({"synthetic": pa.Synthesis(method=NoRelated())}, "the object has no fit_related(tables, *, seed)"),
    "group": ({"synthetic": pa.Synthesis(settings={"group": "sex"})}, "`synthetic.settings.group`: people and rows"),
    "external": ({"synthetic": pa.ExternalSynthetic(list)}, "`synthetic.external`: let an object with fit_related"),
    "given split": ({"split": pa.GivenSplit(list, list)}, "`split.original and split.control`: give all tables"),
    "auto": ({"split": pa.Split(train_fraction="auto")}, "`split.train_fraction: auto`: write a number"),
    "partitions": (
        {"partitions_def": dg.StaticPartitionsDefinition(["a"])},
        "`partitions_def`: make one release of all",
    ),
    "options": ({"options": pa.OptionsSettings()}, "`options`: compare settings with the functions for notebooks"),
    "assessment": ({"assessment": pa.AssessmentSettings()}, "`assessment`: it is chosen for each view"),
    "engine": ({"engine": pa.LocalEngine(rows_per_task=10)}, "`engine`: related tables are assessed in the run itself"),
    "csv": ({"formats": ["parquet", "csv"]}, "`formats: csv`: Parquet files keep types and keys"),
    "parts": ({"rows_per_part": 1_000}, "`rows_per_part`: each table is one file"),
    "drift": ({"monitoring": pa.MonitoringSettings()}, "`monitoring.drift_limit`: set it to null"),
    "groups": ({"utility": pa.UtilitySettings(group="sex")}, "`utility.group`: views are judged as a whole"),
    "known": (
        {"disclosure": pa.DisclosureSettings(known=("age", "sex"))},
        "`disclosure.known`: all columns of all",
    ),
    "spark people": ({"source": SPARK}, "`source`: a Spark source gives one table"),
    "spark visits": ({"children": {"visits": child(source=SPARK)}}, "`children.visits.source`: a Spark source gives"),
    "no source": ({"source": None}, "`source`: it is missing; expected the table of people"),
    "no child": ({"children": {}}, "there are 0, expected 1 to 7"),
    "many": ({"children": {f"t{n}": child() for n in range(8)}}, "there are 8, expected 1 to 7"),
    "a mapping of frames": ({"children": {"visits": 5}}, "must map names of tables to ChildTable"),
    "a name": ({"children": {"visits/2": child()}}, "['visits/2'] are not names of tables"),
    "people": (
        {"children": {"people": child()}},
        "names of tables, of which 'people' is one, must differ also in small",
    ),
    "People": (
        {"children": {"People": child()}},
        "names of tables, of which 'people' is one, must differ also in small",
    ),
    "names in other letters": (
        {"children": {"visits": child(), "Visits": child()}},
        "names of tables, of which 'people' is one, must differ also in small letters",
    ),
    "a gap": (
        {"children": {"visits": child(with_column(VISITS_CONTRACT, "gap of date", type="integer", role="other"))}},
        "In rows of visits, several columns would be called ['gap of date']",
    ),
    "a number of rows": (
        {"contract": with_column(PEOPLE_CONTRACT, "rows of visits", type="integer", role="other")},
        "In people, several columns would be called ['rows of visits']",
    ),
    "a column of the people": (
        {
            "contract": with_column(
                with_column(PEOPLE_CONTRACT, "cost", type="float", role="other"),
                "cost of visits",
                type="float",
                role="other",
            )
        },
        "In rows of visits, several columns would be called ['cost of visits']",
    ),
    "a key alone": (
        {"children": {"visits": child({"columns": {"patient": VISITS_CONTRACT["columns"]["patient"]}}, order=None)}},
        "'visits' releases no column of its own: make the number of its rows a column of the people",
    ),
    "an order that may be missing": (
        {"children": {"visits": child(with_column(VISITS_CONTRACT, "date", nullable=True))}},
        "'visits' has the order 'date', which may be missing (nullable)",
    ),
    "a device": ({"children": {"Aux": child()}}, "['aux'] are names of devices"),
    "no person": (
        {"contract": {"one_row_per_person": True, "columns": {"age": PEOPLE_CONTRACT["columns"]["age"]}}},
        "the contract of the people has 0 columns with `person: true`, expected one",
    ),
    "two keys": (
        {"contract": with_column(PEOPLE_CONTRACT, "ward", type="integer", role="direct_identifier", person=True)},
        "the contract of the people has 2 columns with `person: true`, expected one",
    ),
    "a key that leaves": (
        {"children": {"visits": child(with_column(VISITS_CONTRACT, "patient", role="other"))}},
        "'visits' has the key 'patient', which is other in its contract: keys never leave, expected direct_identifier",
    ),
    "a key of another type": (
        {"children": {"visits": child(with_column(VISITS_CONTRACT, "patient", type="integer"))}},
        "'visits' has the key 'patient', which is integer there and text in the people: expected one type",
    ),
    "a key that is a person": (
        {"children": {"visits": child(with_column(VISITS_CONTRACT, "patient", person=True))}},
        "'visits' says whose its rows are",
    ),
    "no such key": ({"children": {"visits": child(key="stay")}}, "the key 'stay', which its contract does not have"),
    "an order of texts": ({"children": {"visits": child(order="diagnosis")}}, "'visits' has the order 'diagnosis'"),
    "an order that is missing": (
        {"children": {"visits": child(order="when")}},
        "order 'when', which is not released",
    ),
    "parts of a moment": (
        {
            "contract": with_column(
                with_column(PEOPLE_CONTRACT, "y", type="integer", role="other", part_of="born"),
                "m",
                type="integer",
                role="other",
                part_of="born",
            )
        },
        "`contract` has 'part_of' on ['m', 'y'], which releases with `children` do not have yet",
    ),
    "linked rows": (
        {"children": {"visits": child(with_column(VISITS_CONTRACT, "cost", links_rows="As the board has decided"))}},
        "'visits' has 'links_rows' on ['cost'], which releases with `children` do not have yet",
    ),
    "a contract that cannot be read": (
        {"children": {"visits": child({"columns": {"patient": {"type": "text"}}})}},
        "`children`, 'visits': ",
    ),
    "a limit on one table": (
        {"policy": Policy((*POLICY.limits, Limit("identification_rate", 0.1)))},
        "The policy limits ['identification_rate'], which are figures of one table",
    ),
    "a third level": (
        {"children": with_level()},
        "'parts' belongs to 'lines', which is more than 2 levels below the people: expected 'people' or a child of",
    ),
    "a circle": (
        {"children": two_levels(of_visits={"of": "lines"})},
        "'visits' belongs to 'lines', so that the tables are a circle, in which no order of drawing is honest",
    ),
    "its own rows": (
        {"children": two_levels(of_lines={"of": "lines"})},
        "'lines' belongs to 'lines', which is the table itself, so that no order of drawing is honest: expected",
    ),
    "rows of nothing": (
        {"children": two_levels(of_lines={"of": "stays"})},
        "'lines' belongs to 'stays', which is not one of the tables: expected 'people' or a child of them; join it",
    ),
    "no own key": (
        {"children": two_levels(of_visits={"own_key": None})},
        "'lines' belongs to rows of 'visits' by the key 'visit', and `own_key` there is None: expected the same column",
    ),
    "another own key": (
        {"children": two_levels(of_lines={"key": "item"})},
        "by the key 'item', and `own_key` there is 'visit'",
    ),
    "an own key without rows": (
        {"children": {"visits": two_levels()["visits"]}},
        "'visits' has the own_key 'visit', and no table belongs to its rows (`of: visits`): leave it out",
    ),
    "an own key that leaves": (
        {"children": two_levels(with_column(NUMBERED_VISITS_CONTRACT, "visit", role="other"))},
        "'visits' has the own_key 'visit', which is other: keys never leave, expected direct_identifier",
    ),
    "an own key that is not there": (
        {"children": two_levels(VISITS_CONTRACT)},
        "'visits' has the own_key 'visit', which its contract does not have: expected a column that numbers its rows",
    ),
    "an own key that is the key": (
        {"children": two_levels(of_visits={"own_key": "patient"})},
        "'visits' has the own_key 'patient', which is its key, too: expected another column",
    ),
    "a key of rows that leaves": (
        {"children": two_levels(lines=with_column(LINES_CONTRACT, "visit", role="sensitive"))},
        "'lines' has the key 'visit', which is sensitive in its contract: keys never leave, expected direct_identifier",
    ),
    "a key of rows of another type": (
        {"children": two_levels(lines=with_column(LINES_CONTRACT, "visit", type="text"))},
        "'lines' has the key 'visit', which is text there and integer in 'visits': expected one type",
    ),
    "an own key of a type that numbers nothing": (
        {
            "children": two_levels(
                with_column(NUMBERED_VISITS_CONTRACT, "visit", type="float"),
                with_column(LINES_CONTRACT, "visit", type="float"),
            )
        },
        "'lines' has the key 'visit' of type float: expected integer, text or category",
    ),
    "an order by the own key": (
        {"children": two_levels(of_visits={"order": "visit"})},
        "'visits' has the order 'visit', which is not released",
    ),
    "two parents": (
        {"children": two_levels(of_lines={"of": ["visits", "people"]})},
        "'lines' has 'of' of type list: expected the name of one table: with two parents no order of drawing is honest",
    ),
    "a key of two columns": (
        {"children": two_levels(of_lines={"key": ["visit", "line"]})},
        "'lines' has 'key' of type list: expected the name of one column: make one of several first",
    ),
    "an own key of two columns": (
        {"children": two_levels(of_visits={"own_key": ["visit", "date"]})},
        "'visits' has 'own_key' of type list: expected the name of one column",
    ),
    "people with numbers of rows": (
        {"contract": with_column(PEOPLE_CONTRACT, "visit", type="integer", role="other"), "children": two_levels()},
        "`contract` releases ['visit'], which number people or rows in other tables: expected the role direct_identif",
    ),
    "rows that show their person": (
        {"children": two_levels(lines=with_column(LINES_CONTRACT, "patient", type="text", role="other"))},
        "'lines' releases ['patient'], which number people or rows in other tables",
    ),
    "no limit that protects": ({"policy": Policy((Limit("utility", 0.5, severity="error"),))}, "no limit of severity"),
}


def described(release):
    return [tuple(each.values()) for each in release.on_side("anonymized").contract.describe()]


def test_figures_of_rows_become_columns_of_the_people_with_roles():
    when = {"first": "quasi_identifier", "last": {"role": "other", "leaves_as_is": "Days are public here, A. L."}}
    asked_figures = figures(rows={"count": "quasi_identifier"}, date=when, paid=["any", "sum"], diagnosis="last")
    visits = with_column(VISITS_CONTRACT, "date", precision="D", hierarchy={"dates": ["month"]})
    release = asked(**anonymized(asked_figures, figures(drug="count"), of_visits=visits))
    assert described(release) == [
        ("age", "int64", "quasi_identifier", False),
        ("sex", "category", "quasi_identifier", False),
        ("rows of visits", "int64", "quasi_identifier", False),
        ("first date of visits", "datetime64[us]", "quasi_identifier", True),
        ("last date of visits", "datetime64[us]", "other", True),
        ("any paid of visits", "bool", "sensitive", False),
        ("sum paid of visits", "int64", "sensitive", False),
        ("last diagnosis of visits", "str", "sensitive", True),
        ("count drug of drugs", "int64", "sensitive", False),
    ]
    of_one = release.on_side("anonymized")
    assert of_one.contract.one_row_per_person
    assert of_one.contract.precisions == {"first date of visits": "D", "last date of visits": "D"}
    assert set(of_one.contract.metadata("hierarchy")) == {"first date of visits", "last date of visits"}
    assert of_one.acknowledged == {"last date of visits": "Days are public here, A. L."}
    assert (release.sides, of_one.sides) == (("anonymized",), ("anonymized",))
    assert release.on_side("synthetic") is release
    assert of_one.generalization("source").settings.quasi_identifiers == (
        *("age", "sex", "rows of visits", "first date of visits"),
    )


def test_figures_of_what_outsiders_know_are_known_but_counts():
    by_column = figures(cost=["sum", "mean", "max", "count"], date="first", paid=["any", "last"], rows="count")
    roles = asked(**anonymized(by_column)).on_side("anonymized").contract.roles
    assert {name for name, role in roles.items() if role == "quasi_identifier"} == {
        *("age", "sex", "sum cost of visits", "mean cost of visits", "max cost of visits", "first date of visits"),
    }
    assert {name for name, role in roles.items() if role == "sensitive"} == {
        *("count cost of visits", "any paid of visits", "last paid of visits", "rows of visits"),
    }


def test_rows_leave_with_quasi_identifiers_of_the_people_and_are_counted_by_person():
    visits = with_column(VISITS_CONTRACT, "age", type="integer", role="other", leaves_as_is="Years since, says A. L.")
    people = with_column(PEOPLE_CONTRACT, "illness", type="text", role="sensitive")
    people = with_column(people, "sex", leaves_as_is="Two values alone, says A. L.")
    release = asked(
        synthetic=SMOOTH,
        **anonymized(
            {"unlinked": ["sex", "age"]},
            people=people,
            of_visits=visits,
            policy=Policy((*POLICY.limits, Limit("smallest_class", 3)), POLICY.required),
        ),
    )
    assert described(release) == [
        ("patient", "int64", "direct_identifier", False),
        ("sex", "category", "quasi_identifier", False),
        ("age", "int64", "quasi_identifier", False),
        ("date", "datetime64[us]", "quasi_identifier", False),
        ("diagnosis", "str", "sensitive", False),
        ("cost", "float64", "quasi_identifier", False),
        ("paid", "bool", "other", False),
        ("age of visits", "int64", "other", False),
    ]
    of_one = release.on_side("anonymized")
    assert of_one.generalization("source").settings.subject == "patient"
    assert of_one.acknowledged == {"age of visits": "Years since, says A. L."}
    assert release.sides == ("synthetic", "anonymized")
    assert (of_one.source_of_anonymized, release.related is None) == ("source_as_one_table", False)


def test_limits_on_synthetic_tables_do_not_matter_without_these():
    release = asked(
        **anonymized(
            COUNT,
            policy="research_sharing",
            anonymized=pa.AnonymizationSettings(of="original"),
            split=pa.Split(train_fraction=0.5),
        )
    )
    assert release.on_side("anonymized").control_of_anonymized == ("control_as_one_table",)


def test_each_side_is_shown_its_own_waivers(tmp_path):
    sign(tmp_path, "0" * 64, 0.2, metric="exposed_share")
    policy = Policy((*POLICY.limits, Limit("smallest_class", 3)), POLICY.required)
    both = asked(**anonymized(COUNT, synthetic=SMOOTH, policy=policy, waivers=str(tmp_path)))
    shown = {side: len(both.on_side(side).waivers_of(side).files) for side in both.sides}
    assert shown == {"synthetic": 1, "anonymized": 0}


@pytest.mark.parametrize("what", REFUSED)
def test_what_does_not_work_with_children_is_refused_when_definitions_are_built(what):
    settings, message = REFUSED[what]
    with pytest.raises(InvalidSettingError) as raised:
        asked(**settings)
    assert message in str(raised.value)


def test_all_problems_are_said_at_once():
    with pytest.raises(InvalidSettingError, match=r"\(3\): `options`.*`rows_per_part`.*method: cart`.*Nothing"):
        asked(options=pa.OptionsSettings(), rows_per_part=2_000, synthetic=pa.Synthesis(method="cart"))


@pytest.mark.parametrize(("use_case", "value"), [("research_sharing", 0.1), ("internal_analytics", 0.2)])
def test_a_preset_is_asked_of_the_joint_test(use_case, value):
    release = asked(policy=use_case, declaration={})
    assert release.policy.limit_on("exposed_share") == Limit("exposed_share", value, "below")
    assert not [limit for limit in release.policy.limits if METRICS[limit.metric].assessment == MPUCC]
    assert release.policy.limit_on("leakage_detected").blocks
    changed = ["privacy_risk_score", "originals_singled_out", "copies_beyond_people"]
    assert list(release.policy.changes) == changed


def test_a_stricter_limit_of_the_user_is_kept():
    policy = Policy.for_use_case("development").with_limit(Limit("privacy_risk_score", 0.02, beyond="exposed_share"))
    assert asked(policy=policy).policy.limit_on("exposed_share").value == 0.02
