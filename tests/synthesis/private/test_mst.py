"""Two functions touch the records, everything else is made of their noisy answers, and nothing exact leaves."""

import ast
import inspect
import os
import pickle
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.synthesis.private import mst as mst_module
from privacy_assets.synthesis.private import records as records_module
from privacy_assets.synthesis.private.domain import PublicDomain
from privacy_assets.synthesis.private.mst import Mst, UnrecordedSpendingWarning, fit_model
from privacy_assets.synthesis.private.records import Grouping, PrivateRecords
from privacy_assets.synthesis.synthesize import synthesize
from tests.examples import examples
from tests.extras import NEEDS_DP
from tests.synthesis.private.test_domain import admitted, contract_of

pytestmark = NEEDS_DP

CONTRACT = {
    "sex": {"type": "category", "role": "other", "categories": ["f", "m"]},
    "age": {"type": "integer", "role": "other", "min": 0, "max": 99},
    "ward": {"type": "category", "role": "other", "categories": list("abcdefgh")},
    "dose": {"type": "float", "role": "other", "min": 0, "max": 10, "nullable": True},
}


def records(n_rows=2000, seed=0):
    random = np.random.default_rng(seed)
    sex = random.integers(0, 2, n_rows)
    age = np.clip(random.normal(30 + 30 * sex, 10, n_rows), 0, 99).astype(int)
    ward = np.clip(age // 13, 0, 7)
    return pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "age": age,
            "ward": np.array(list("abcdefgh"))[ward],
            "dose": np.where(random.random(n_rows) < 0.1, np.nan, random.uniform(0, 10, n_rows)),
        }
    )


def domain():
    return PublicDomain.from_contract(contract_of(**CONTRACT))


def fitted(synthesizer, table, **others):
    return synthesizer.fit(table, charge=lambda rho: None, **others)


def test_only_two_functions_read_the_records():
    tree = ast.parse(inspect.getsource(records_module))
    own = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "PrivateRecords")
    private = {"_codes", "_class_of", "_counts", "_distances"}
    readers = {
        method.name
        for method in own.body
        if isinstance(method, ast.FunctionDef)
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute) and node.attr in private
    }
    assert readers == {"__init__", "_counts", "noisy_counts", "noisy_choice"}
    public = {node.name for node in own.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")}
    assert public == {"noisy_counts", "noisy_choice"}
    outside = [
        node.attr
        for module in (mst_module,)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Attribute) and node.attr in private
    ]
    assert not outside


class Recording:
    """The answers of records, and later the same answers without any records."""

    def __init__(self, records):
        self.records, self.answers, self.n_classes, self.charges = records, [], records.n_classes, records.charges

    def noisy_counts(self, *question):
        self.answers.append(self.records.noisy_counts(*question))
        return self.answers[-1]

    def noisy_choice(self, *question):
        self.answers.append(self.records.noisy_choice(*question))
        return self.answers[-1]


class Replaying:
    def __init__(self, recorded):
        self.answers, self.n_classes, self.charges = list(recorded.answers), recorded.n_classes, recorded.charges

    def noisy_counts(self, *question):
        return self.answers.pop(0)

    noisy_choice = noisy_counts


@pytest.mark.parametrize("given_", [None, "sex"])
def test_the_model_is_made_of_the_noisy_answers_alone(given_):
    synthesizer = Mst(domain(), 1.0, 1e-6, given_)
    private = PrivateRecords(domain().encode(records()), domain().sizes, synthesizer.given)
    recorded = Recording(private)
    of_records = fit_model(synthesizer, recorded)
    of_answers = fit_model(synthesizer, Replaying(recorded))
    assert pickle.dumps(of_records) == pickle.dumps(of_answers)
    pd.testing.assert_frame_equal(of_records.sample(seed=3), of_answers.sample(seed=3))


def test_every_answer_is_charged_and_the_charges_are_within_the_plan():
    synthesizer = Mst(domain(), 1.0, 1e-6)
    charged = []
    model = synthesizer.fit(records(), charge=charged.append)
    assert len(model.charges) == 4 + 3 + 3
    assert model.rho == pytest.approx(charged[0], abs=1e-15)
    assert charged == [synthesizer.plan.rho]
    with_classes = fitted(Mst(domain(), 1.0, 1e-6, "sex"), records())
    assert len(with_classes.charges) == 3 + 2 + 2
    assert with_classes.rho == pytest.approx(model.rho, rel=1e-9)


def test_what_is_spent_is_charged_before_the_table_is_touched():
    class Untouchable(pd.DataFrame):
        def __getitem__(self, key):
            raise AssertionError("the table was touched")

    def refuse(rho):
        raise InvalidSettingError("no budget is left")

    with pytest.raises(InvalidSettingError, match="no budget is left"):
        Mst(domain(), 1.0, 1e-6).fit(Untouchable(records()), charge=refuse)
    with pytest.raises(AssertionError, match="was touched"):
        fitted(Mst(domain(), 1.0, 1e-6), Untouchable(records()))


def test_a_fit_that_nothing_records_warns():
    with pytest.warns(UnrecordedSpendingWarning, match=r"spends epsilon 1, which is not recorded"):
        Mst(domain(), 1.0, 1e-6).fit(records())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(Mst(domain(), 1.0, 1e-6), records())


def test_the_door_of_other_synthesizers_is_closed():
    with pytest.raises(InvalidSettingError, match=r"'mst' spends a privacy budget.*nothing was spent"):
        synthesize(records(), method=Mst(domain(), 1.0, 1e-6))


@settings(max_examples=examples(24), deadline=None)
@given(admitted(), st.sampled_from([0.5, 5.0]), st.integers(0, 100))
def test_records_of_any_domain_keep_the_contract(case, epsilon, seed):
    contract, table, bins = case
    public = PublicDomain.from_contract(contract, bins=bins)
    model = fitted(Mst(public, epsilon, 1e-6), table)
    made = model.sample(200, seed=seed)
    codes = public.encode(made)
    assert (codes < np.array(public.sizes)).all()
    if not made.isna().all().any():
        contract.admit_synthetic(made)
    again = model.sample(200, seed=seed)
    pd.testing.assert_frame_equal(made, again)


def test_ten_thousand_categories():
    wide = {"type": "integer", "role": "other", "isin": list(range(10_000))}
    contract = contract_of(wide=wide, sex=CONTRACT["sex"], other=wide)
    random = np.random.default_rng(0)
    common = random.integers(0, 3, 4000)
    table = pd.DataFrame({"wide": common, "sex": np.array(["f", "m"])[common % 2], "other": common * 7})
    model = fitted(Mst(PublicDomain.from_contract(contract), 3.0, 1e-6), table)
    made = contract.admit_synthetic(model.sample(seed=0))
    assert (made["wide"] < 3).mean() > 0.5
    assert len(model.charges) <= 3 + 2 + 2
    assert all(len(merged.code) < 500 for merged in (model.merged[0], model.merged[2]))


def test_strong_relations_are_kept():
    made = fitted(Mst(domain(), 5.0, 1e-6), records(20_000)).sample(20_000, seed=0)
    assert made.groupby("sex")["age"].mean().diff().iloc[-1] == pytest.approx(30, abs=3)
    assert made["dose"].isna().mean() == pytest.approx(0.1, abs=0.02)
    given_ward = fitted(Mst(domain(), 5.0, 1e-6, "ward"), records(20_000)).sample(20_000, seed=0)
    assert (
        np.abs(given_ward["age"] / 13 - 0.5 - given_ward["ward"].astype(str).map("abcdefgh".index)) < 1
    ).mean() > 0.9


def test_no_exact_count_and_no_value_outside_the_domain_leaves():
    """A sentinel that only one person has, and a number of records that nobody should learn."""
    table = records(1777)
    table["ward"] = table["ward"].astype(object)
    table.loc[0, ["ward", "age", "dose"]] = ["SENTINEL-WARD", 987_654_321, 123.456789]
    exact = [0, 0]
    for attempt in range(12):
        model = fitted(Mst(domain(), 1.0, 1e-6), table)
        text = repr(model) + repr(model.charges)
        content = pickle.dumps(model)
        assert b"SENTINEL" not in content
        assert b"SENTINEL" not in text.encode()
        assert "987654321" not in text
        made = model.sample(seed=attempt)
        assert not made.astype(str).isin(["SENTINEL-WARD", "987654321", "123.456789"]).any().any()
        assert made["age"].between(0, 99).all()
        exact[0] += model.n_records == 1777
        exact[1] += len(made) == 1777
    # With noise of about 20 records, the exact number may be met once by chance, hardly three times of twelve.
    assert max(exact) <= 2


def test_noise_differs_where_everything_else_is_equal():
    models = [fitted(Mst(domain(), 1.0, 1e-6), records()) for _ in range(2)]
    assert (models[0].tree.columns[0] != models[1].tree.columns[0]).any()
    assert "seed" not in inspect.signature(Mst).parameters
    assert "seed" not in inspect.signature(Mst.fit).parameters
    np.random.seed(0)  # noqa: NPY002 - the global seed must not matter


def test_noise_comes_from_the_operating_system():
    """Without the system call that reads its random numbers, there is no noise, and so no answer at all."""
    if sys.platform != "linux" or os.uname().machine not in {"x86_64", "aarch64"}:
        pytest.skip("takes a system call away, which only Linux can")
    script = textwrap.dedent(
        """
        import ctypes, os, struct, sys
        import numpy as np
        from privacy_assets.synthesis.private.mechanisms import gaussian
        mechanism = gaussian(0.01, 1)
        number, openat = {"x86_64": (318, 257), "aarch64": (278, 56)}[os.uname().machine]
        refuse, allow = 0x00050000 | 38, 0x7FFF0000
        steps = [(0x20, 0, 0, 0), (0x15, 2, 0, number), (0x15, 1, 0, openat), (0x06, 0, 0, allow), (0x06, 0, 0, refuse)]
        code = b"".join(struct.pack("HBBI", *step) for step in steps)
        buffer = ctypes.create_string_buffer(code)
        program = struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(buffer))
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.argv[1] == "without":
            assert libc.prctl(38, 1, 0, 0, 0) == 0
            assert libc.prctl(22, 2, ctypes.create_string_buffer(program)) == 0
        try:
            print("noise", mechanism.noisy(np.zeros(200, dtype=np.int64)).any())
        except BaseException as error:
            print("no noise", type(error).__name__)
        sys.stdout.flush()
        os._exit(0)
        """
    )
    said = {
        how: subprocess.run([sys.executable, "-c", script, how], capture_output=True, text=True, check=False).stdout
        for how in ("with", "without")
    }
    assert said["with"].startswith("noise True")
    assert "noise True" not in said["without"]


def test_the_order_of_a_persons_rows_comes_from_the_operating_system(monkeypatch):
    asked = []

    def source(n_bytes):
        asked.append(n_bytes)
        return bytes(range(256)) * (n_bytes // 256) + bytes(n_bytes % 256)

    monkeypatch.setattr(records_module.secrets, "token_bytes", source)
    person = np.repeat(np.arange(50), 4)
    person[7] = -1
    kept = records_module._rows_kept(person, 2)
    assert asked == [8 * 200]
    assert np.bincount(person[kept]).tolist() == [2] * 50
    assert 7 not in kept
    monkeypatch.undo()
    draws = {tuple(records_module._rows_kept(person, 2).tolist()) for _ in range(5)}
    assert len(draws) == 5


def test_nobody_counts_more_often_than_rows_per_person():
    table = pd.concat([records(300)] * 10, ignore_index=True)
    person = np.tile(np.arange(300), 10)
    for most in (1, 4):
        synthesizer = Mst(domain(), 100.0, 1e-6, rows_per_person=most)
        model = fitted(synthesizer, table, person=person)
        assert model.n_records == pytest.approx(300 * most, rel=0.1)
    assert Mst(domain(), 1.0, 1e-6, rows_per_person=4).plan.columns.scale == pytest.approx(
        4 * Mst(domain(), 1.0, 1e-6).plan.columns.scale
    )


def test_one_record_changes_a_score_by_no_more_than_its_sensitivity():
    """The distance of every pair, with and without one record."""
    public = domain()
    codes = public.encode(records(300))
    groupings = {place: Grouping(np.arange(size), size) for place, size in enumerate(public.sizes)}
    random = np.random.default_rng(0)
    expected = {place: random.uniform(0, 30, (1, size)) for place, size in enumerate(public.sizes)}
    pairs = [(0, 1), (1, 2), (2, 3)]

    class Scores:
        rho = 0.0

        def best(self, scores):
            self.scores = scores
            return 0

    found = []
    for kept in (codes, codes[1:], np.vstack([codes, codes[:1]])):
        seen = Scores()
        PrivateRecords(kept, public.sizes).noisy_choice(
            pairs, groupings, expected, dict.fromkeys(pairs, 5), seen, "scores"
        )
        found.append(seen.scores)
    assert (np.abs(found[0] - found[1]) <= records_module.RESOLUTION).all()
    assert (np.abs(found[0] - found[2]) <= records_module.RESOLUTION).all()
    assert (found[0] != found[1]).any()


@pytest.mark.parametrize(
    ("settings_", "says"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 1e-4}, "declared_people is not given"),
        ({"delta": 1e-4, "declared_people": 20_000}, r"below 1 / declared_people"),
        ({"declared_people": 0}, "declared_people"),
        ({"given": "nothing"}, "given"),
        ({"given": "age"}, r"'age', which has 32 codes; expected at most 8"),
        ({"rows_per_person": 0}, "rows_per_person"),
    ],
)
def test_wrong_settings_are_refused(settings_, says):
    with pytest.raises(InvalidSettingError, match=says):
        Mst(domain(), **{"epsilon": 1.0, "delta": 1e-6, **settings_})


def test_wrong_tables_are_refused_before_anything_is_spent():
    charged = []
    several = Mst(domain(), 1.0, 1e-6, rows_per_person=2)
    with pytest.raises(InvalidSettingError, match="requires the person"):
        several.fit(records(), charge=charged.append)
    with pytest.raises(InvalidSettingError, match="one entry for each record"):
        several.fit(records(), person=[1, 2], charge=charged.append)
    with pytest.raises(InvalidSettingError, match=r"lacks the columns \['dose'\]"):
        fitted(Mst(domain(), 1.0, 1e-6), records().drop(columns="dose"))


def test_a_contract_with_one_column_spends_all_on_it():
    contract = TableContract.from_mapping({"columns": {"sex": CONTRACT["sex"]}})
    model = fitted(Mst(PublicDomain.from_contract(contract), 1.0, 1e-6), records())
    assert len(model.charges) == 1
    assert model.sample(10, seed=0).shape == (10, 1)
