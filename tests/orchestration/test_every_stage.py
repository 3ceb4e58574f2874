"""Every stage that definitions can have, attacked from inside: the list is made of the definitions and of the code.

A stage is attacked through the functions of this package that its body calls: they are exchanged for one that raises,
or that says cells in every way and then goes on. A body that is not guarded, that no definitions here have, or that
calls no function to be exchanged, makes a test fail.
"""

import ast
import gc
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any
from unittest.mock import MagicMock

import dagster as dg
import pandas as pd
import pytest
from dagster._core.types.dagster_type import DagsterTypeKind

import privacy_assets
from privacy_assets.columns.masks import ReleaseModel
from privacy_assets.disclosure.settings import DisclosureSettings
from privacy_assets.orchestration.factory import build_release_definitions
from privacy_assets.orchestration.private import guard, resources
from privacy_assets.orchestration.private.guard import ValueFreeFailure, guarded
from privacy_assets.orchestration.private.resources import PrivateParquetIOManager
from privacy_assets.orchestration.risk_checks import build_privacy_risk_checks
from privacy_assets.orchestration.settings.anonymized import (
    AnonymizationSettings,
    OtherReleaseSettings,
    ReidentificationSettings,
)
from privacy_assets.orchestration.settings.children import ChildTable
from privacy_assets.orchestration.settings.monitoring import MonitoringSettings
from privacy_assets.orchestration.settings.options import Candidate, OptionsSettings
from privacy_assets.orchestration.settings.sources import UpstreamAsset
from privacy_assets.orchestration.settings.synthetic import AssessmentSettings, ExternalSynthetic, Split, Synthesis
from privacy_assets.pipeline.settings.linkage import LinkageAuditSettings
from privacy_assets.pipeline.settings.semantic_risk import SemanticRiskSettings
from privacy_assets.pipeline.settings.utility import UtilitySettings
from privacy_assets.release.policy import Limit, Policy
from tests.orchestration.private.attacking_exceptions import attacks
from tests.orchestration.private.loud import places_to_spill_into, shout, speak_through_dagster, spill
from tests.orchestration.project import ADMITS, Project, failure_of
from tests.orchestration.related_project import PEOPLE_CONTRACT, VISITS_CONTRACT, FromOthers
from tests.orchestration.related_project import POLICY as RELATED_POLICY
from tests.orchestration.sentinels import (
    CONTRACT,
    INTEGER,
    SENTINELS,
    TEXT,
    assert_nothing_leaked,
    sentinel_people,
    sentinel_synthetic,
)
from tests.related import clinic

CELL = f"{TEXT}-{INTEGER}"
DECIDED = "Numbers of the study, as its board decided"
NUMBER = {"type": "integer", "role": "other", "leaves_as_is": DECIDED, "invented": True}
NUMBERED = {"columns": {**CONTRACT["columns"], "number": NUMBER}}
PACKAGE = Path(privacy_assets.__file__).parent
SLOW = ("a deep chain", "a deep group", "too deep a recursion")
"""These take seconds to be written down, and no stage differs in it."""
ATTACKS = {
    name: attack
    for place, (name, attack) in enumerate(attacks(CELL, INTEGER).items())
    if name not in SLOW and (" raises " not in name or place % 11 == 0)
}


def numbered() -> pd.DataFrame:
    return sentinel_people().assign(number=range(INTEGER, INTEGER + 120))


def outsiders() -> pd.DataFrame:
    table = numbered()
    return table.assign(patient="another " + table["patient"], number=table["number"] + 200)


def traces() -> list[str]:
    """Number synthetic people with two rows each."""
    return [f"{TEXT} {INTEGER + row % 45}" for row in range(90)]


def labels() -> pd.DataFrame:
    return pd.DataFrame({"name_of_plan": "*", "number": range(INTEGER, INTEGER + 120)})


def all_definitions(project: Project) -> list[dg.Definitions]:
    """Return definitions that have every kind of stage between them."""
    limits = (
        Limit("privacy_risk_score", ADMITS, "at_most"),
        Limit("smallest_class", 2),
        Limit("max_reidentification_probability", 0.9999),
        Limit("maximum_semantic_risk", 0.9999),
    )
    other = OtherReleaseSettings("labels", "number", table=labels, model=ReleaseModel.from_labels(["name_of_plan"]))
    both_sides = project.definitions(
        contract=NUMBERED,
        policy=Policy(limits),
        source=UpstreamAsset("upstream", "loud"),
        synthetic=ExternalSynthetic(
            lambda: sentinel_synthetic().assign(number=range(INTEGER + 90, INTEGER + 180), trace=traces()),
            control_was_withheld=True,
            person="trace",
        ),
        generalize_synthetic=AnonymizationSettings(k=5),
        assessment=AssessmentSettings(max_baseline_cols=3, n_matched_samples=2),
        anonymized=AnonymizationSettings(k=10, membership_control=outsiders),
        reidentification=ReidentificationSettings(max_known=1, other_releases=(other,)),
        semantic_risk=SemanticRiskSettings(risk_limit=0.9999, withhold=True, of_source=True, advice=False),
        linkage_audit=LinkageAuditSettings(known=("income", "name_of_plan", "admitted", "region", "cost")),
        utility=UtilitySettings(group="name_of_plan"),
        disclosure=DisclosureSettings(),
        options=OptionsSettings(candidates=[Candidate(anonymized=AnonymizationSettings(k=3))]),
        split=Split(0.5),
        monitoring=MonitoringSettings(drift_limit=0.5),
    )
    checks = [
        build_privacy_risk_checks(
            assets=UpstreamAsset(name, "loud"),
            original=original,
            contract=CONTRACT,
            policy=Policy((limit,)),
            private_path=str(project.private),
        )
        for name, original, limit in (
            ("shared", UpstreamAsset("seen", "loud"), limits[0]),
            ("anonymous", None, limits[1]),
        )
    ]
    bounded = {
        "patient": CONTRACT["columns"]["patient"],
        "income": CONTRACT["columns"]["income"] | {"max": 2 * INTEGER},
        "name_of_plan": CONTRACT["columns"]["name_of_plan"] | {"isin": [TEXT, f"{TEXT} II"]},
        "admitted": CONTRACT["columns"]["admitted"] | {"min": "1900-01-01", "max": "2100-01-01"},
        "region": CONTRACT["columns"]["region"],
        "cost": CONTRACT["columns"]["cost"] | {"min": 0, "max": 1e9},
    }
    private = build_release_definitions(
        "private",
        contract={"columns": bounded},
        policy=Policy(limits[:1]),
        source=UpstreamAsset("seen", "loud"),
        split=Split(0.5),
        synthetic=Synthesis("mst"),
        assessment=AssessmentSettings(max_baseline_cols=3, n_matched_samples=2),
        private_path=str(project.private),
        release_path=str(project.root / "releases"),
    )
    tables = clinic(240, 1)
    visits = tables.children["visits"].table.copy
    form = {"unlinked": ["age"]}
    related = build_release_definitions(
        "related",
        contract=PEOPLE_CONTRACT,
        children={"visits": ChildTable(visits, VISITS_CONTRACT, "patient", "date", anonymized=form)},
        policy=RELATED_POLICY.with_limit(Limit("smallest_class", 2)),
        source=tables.people.copy,
        split=Split(0.5),
        synthetic=Synthesis(method=FromOthers()),
        anonymized=AnonymizationSettings(),
        private_path=str(project.private),
        release_path=str(project.root / "releases"),
    )
    return [both_sides, private, related, *checks]


class LoudIOManager(dg.IOManager):
    """Loads the tables of others, and says their cells while it does."""

    tables: dict[str, Callable[[], pd.DataFrame]] = {  # noqa: RUF012
        "upstream": numbered,
        "seen": sentinel_people,
        "shared": sentinel_synthetic,
        "anonymous": lambda: sentinel_people().drop(columns="patient"),
    }

    def handle_output(self, context, obj) -> None:
        pass

    def load_input(self, context):
        shout(CELL)
        for each in (context.log.info, context.log.error):
            each(CELL)
        context.add_input_metadata({"cell": CELL}, description=CELL)
        return self.tables[context.asset_key.to_user_string()]()


def upstream_assets() -> list[dg.AssetsDefinition]:
    return [dg.asset(name=name, io_manager_key="loud")(lambda: 1) for name in LoudIOManager.tables]


@cache
def stages() -> dict[str, dg.OpDefinition]:
    """Return the steps of the definitions by their names."""
    project = Project(Path(tempfile.mkdtemp()), settings={"contract": CONTRACT})
    return {
        each.op.name: each.op
        for definitions in all_definitions(project)
        for each in (*(definitions.assets or ()), *(definitions.asset_checks or ()))
    }


def body_of(step: dg.OpDefinition) -> FunctionType:
    """Return the body of a step, which must be guarded."""
    stage = step.compute_fn.decorated_fn
    body = getattr(stage, "__wrapped__", None)
    assert body is not None, f"{step.name} is not guarded"
    assert stage.__code__ is guarded(body).__code__, f"{step.name} is not guarded"
    return body


def codes_in(code: CodeType) -> list[CodeType]:
    return [code, *(inner for each in code.co_consts if isinstance(each, CodeType) for inner in codes_in(each))]


def places_to_attack(body: FunctionType) -> dict[tuple[int, str], tuple[dict[str, Any] | type, FunctionType]]:
    """Return where the functions of this package stand that a body names, or a function that it was given."""
    given = [cell.cell_contents for cell in body.__closure__ or ()]
    functions = [body, *(each for each in given if is_own(each, FunctionType))]
    names = {name for function in functions for code in codes_in(function.__code__) for name in code.co_names}
    found: dict[tuple[int, str], tuple[dict[str, Any] | type, FunctionType]] = {}
    for name in names:
        named = body.__globals__.get(name)
        if is_own(named, FunctionType):
            found[id(body.__globals__), name] = (body.__globals__, named)
        elif is_own(named, type) and hasattr(named, "from_artifact"):
            found[id(named), "from_artifact"] = (named, named.from_artifact)
    assert found, f"{body.__name__} calls no function through which it can be attacked"
    return found


def is_own(thing: object, kind: type) -> bool:
    return isinstance(thing, kind) and thing.__module__.startswith("privacy_assets.")


def exchange(monkeypatch, place: dict[str, Any] | type, name: str, function: Callable[..., Any]) -> None:
    if isinstance(place, dict):
        monkeypatch.setitem(place, name, function)
    else:
        monkeypatch.setattr(place, name, function)


def written_in_the_code(found_in: Callable[[ast.FunctionDef], bool]) -> set[str]:
    """Return the names of the functions of this package that something is found in."""
    return {
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and found_in(node)
    }


def is_guarded(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == "guarded" for each in node.decorator_list)


def calls_the_guard(node: ast.FunctionDef) -> bool:
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "call_guarded"
        for each in ast.walk(node)
    )


def test_every_stage_is_guarded_and_every_guarded_body_is_a_stage_here():
    bodies = {body_of(step).__name__ for step in stages().values()}
    assert bodies == written_in_the_code(is_guarded)
    assert len(bodies) > 12
    for step in stages().values():
        assert places_to_attack(body_of(step))


def test_every_other_call_of_the_guard_is_attacked_here():
    # `wrapper` is what makes a stage of a body, and `load_input` looks at the partitions of a run alone; the others are
    # attacked by the tests of storage and of loading below.
    assert written_in_the_code(calls_the_guard) - {"guarded", "load_input", "wrapper"} == {
        *("dump_to_path", "load_from_path", "load_guarded", "guarded_input_manager"),
    }


def context_of(name: str, path: Path) -> MagicMock:
    context = MagicMock()
    context.resources.private_tables.base_path = path
    context.op_execution_context.op_handle.name = name
    context.op_execution_context.consume_events.return_value = iter(())
    return context


def assert_withheld(call: Callable[[], object], attack: str, capfd) -> None:
    error: BaseException | None = None
    try:
        call()
    except (ValueFreeFailure, *guard.INTERRUPTS) as raised:
        error = raised
    assert type(error) in (ValueFreeFailure, *guard.INTERRUPTS), attack
    assert error is not None
    assert error.__context__ is None, attack
    assert error.__cause__ is None, attack
    output = capfd.readouterr()
    shown = (repr(error) + repr(vars(error)) + output.out + output.err).encode()
    assert [each for each in SENTINELS if each in shown] == [], attack


@pytest.fixture
def quick(monkeypatch):
    """Collect garbage when the test ends, not after each of thousands of failures."""
    monkeypatch.setattr(guard, "gc", MagicMock())
    yield
    gc.collect()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", stages())
def test_no_exception_of_a_stage_shows_a_cell(name, tmp_path, capfd, monkeypatch, quick):
    step = stages()[name]
    body, stage = body_of(step), step.compute_fn.decorated_fn
    places = places_to_attack(body)
    inputs = {each: numbered() for each in step.ins if step.ins[each].dagster_type.kind != DagsterTypeKind.NOTHING}
    reached = []
    for attack, raising in ATTACKS.items():

        def broken(*_, raising=raising, attack=attack, **__):
            reached.append(attack)
            return raising()

        for (_, called), (place, _function) in places.items():
            exchange(monkeypatch, place, called, broken)
        assert_withheld(lambda: list(stage(context_of(name, tmp_path), **inputs)), attack, capfd)
    assert set(reached) == set(ATTACKS)


def store_or_load(what: str, path: Path, load_input: Callable[..., object]) -> object:
    context = MagicMock(has_asset_partitions=False)
    context.asset_key.to_user_string.return_value = "people/source"
    context.resources.upstream.load_input = load_input
    if what == "storing":
        return PrivateParquetIOManager(str(path)).dump_to_path(context, pd.DataFrame({"a": [1]}), path / "a")
    if what == "reading":
        return PrivateParquetIOManager(str(path)).load_from_path(context, path / "a")
    manager = resources.guarded_input_manager("upstream", str(path), of_the_run=what == "loading a partition")
    return manager.resource_fn(None).load_input(context)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("what", ["storing", "reading", "loading", "loading a partition"])
def test_no_exception_of_storing_or_loading_shows_a_cell(what, tmp_path, capfd, monkeypatch, quick):
    reached = []
    for attack, raising in ATTACKS.items():

        def broken(*_, raising=raising, attack=attack, **__):
            reached.append(attack)
            return raising()

        monkeypatch.setattr(resources, "write_artifact", broken)
        monkeypatch.setattr(resources, "read_artifact", broken)
        call = partial(store_or_load, what, tmp_path, broken)
        assert_withheld(call, attack, capfd)
    assert set(reached) == set(ATTACKS)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path, settings={"contract": CONTRACT})


@pytest.mark.filterwarnings(f"ignore:{CELL}")
def test_no_stage_that_says_cells_in_every_way_and_succeeds_shows_one(project, capfd, monkeypatch):
    """One run of all stages, each of which shouts, speaks through Dagster's context, spills, and goes on."""
    elsewhere, working = places_to_spill_into(project.root, monkeypatch)
    merged = dg.Definitions.merge(*all_definitions(project))
    bodies = [body_of(each.op) for each in (*merged.assets, *merged.asset_checks)]
    names = {body.__code__: body.__name__ for body in bodies}
    spoke, spilled = set(), []

    def speak_once() -> None:
        frame = sys._getframe(2)
        while frame is not None and frame.f_code not in names:
            frame = frame.f_back
        if frame is not None and names[frame.f_code] not in spoke:
            spoke.add(names[frame.f_code])
            shout(CELL)
            speak_through_dagster(CELL)
            spilled.extend((path, path.stat().st_mode) for path in spill(CELL))

    places = {key: found for body in bodies for key, found in places_to_attack(body).items()}
    for (_, called), (place, function) in places.items():

        def loud(*arguments, function=function, **settings):
            speak_once()
            return function(*arguments, **settings)

        exchange(monkeypatch, place, called, loud)
    with project.instance() as instance:
        result = dg.materialize(
            [*upstream_assets(), *merged.assets, *merged.asset_checks],
            resources={**merged.resources, "loud": LoudIOManager()},
            instance=instance,
            raise_on_error=False,
        )
    # The noise of the private model cannot be repeated, and its score is 1 in some runs: then only its gate refuses.
    refused = {event.step_key for event in result.all_events if event.is_step_failure}
    assert refused <= {"private__mpucc_assessment_checks"}, failure_of(result)
    assert spoke == set(names.values())
    assert [each for each in result.all_events if CELL in str(each)] == []
    assert len(spilled) == 3 * len(spoke)
    for path, mode in spilled:
        assert path.is_relative_to(project.private / "temporary")
        assert mode & 0o077 == 0
        assert not path.exists()
    assert [path for place in (elsewhere, working) for path in place.rglob("*") if CELL in str(path)] == []
    assert_nothing_leaked(project, capfd, "identification_rate")


@pytest.mark.parametrize(
    "attack",
    [
        "OSError with str text",
        "OSError.errno raises SystemExit",
        "a class named after a cell",
        "our error with another text",
    ],
)
def test_no_attack_in_a_run_reaches_the_instance(project, capfd, attack):
    result = project.run(project.definitions(source=attacks(CELL, INTEGER)[attack]), "source")
    assert not result.success
    assert_nothing_leaked(project, capfd, "people__source failed")
