"""What a draft asks, and the draft with answers: nothing that is open is assumed."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets import InvalidSettingError, TableContract, draft_contract
from privacy_assets.cli.trial import answered, proposals
from privacy_assets.drafting.answers import answer, decide_role, open_questions, question_of_person
from tests.drafting.test_people_in_drafts import panel, served


def flat(n=400):
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": random.integers(18, 90, n),
            "weighting": random.normal(50, 9, n).round(3),
            "seen": [f"0{1 + place % 9}/0{1 + place % 7}/2024" for place in range(n)],
        }
    )


def whole():
    """Make a table of which nothing is open."""
    return panel("patient_id").drop(columns="value")


def typing(*lines):
    """Return what answers prompts with these lines, and the prompts."""
    left, asked = list(lines), []

    def ask(prompt):
        asked.append(prompt)
        return left.pop(0)

    return ask, asked


def test_each_open_decision_is_asked_until_it_is_answered(capsys):
    draft = draft_contract(flat())
    ask, asked = typing("someone", "one", "a role", "sensitive", "%d/%m/%Y", "age", "age other", "")
    decided = answered(draft, ask, accepts=False)
    assert [prompt.partition(":")[0].partition("?")[0] for prompt in asked[:5]] == [
        *["Whose is each row"] * 2,
        *["weighting"] * 2,
        "seen",
    ]
    told = capsys.readouterr().out
    assert "There is no column ['someone']" in told
    assert "'a role' is not a role" in told
    columns = decided.mapping["columns"]
    assert decided.mapping["one_row_per_person"] is True
    assert columns["weighting"]["role"] == "sensitive"
    assert columns["seen"]["format"] == "%d/%m/%Y"
    assert columns["age"]["role"] == "other"
    contract = TableContract.from_mapping({key: own for key, own in decided.mapping.items() if key != "drafted"})
    assert len(contract.admit(flat())) == 400


def test_who_accepts_proposals_is_asked_for_the_rest_alone():
    ask, asked = typing("one", "sensitive", "%d/%m/%Y")
    answered(draft_contract(flat()), ask, accepts=True)
    assert len(asked) == 3
    ask, asked = typing()
    draft = answered(draft_contract(whole()), ask, accepts=True)
    assert asked == []
    assert proposals(draft)[:2] == ["person patient_id", "direct_identifier patient_id"]


@pytest.mark.parametrize("accepts", [False, True])
def test_where_nobody_can_be_asked_nothing_is_assumed(accepts):
    with pytest.raises(InvalidSettingError, match=r"no proposed answer for \['the person', 'weighting', 'seen'\]"):
        answered(draft_contract(flat()), None, accepts=accepts)
    draft = draft_contract(whole())
    if accepts:
        assert answered(draft, None, accepts=True) == draft
    else:
        with pytest.raises(InvalidSettingError, match="roles are proposals, and nobody can be asked"):
            answered(draft, None, accepts=False)


def test_the_person_can_be_another_column_or_several_or_nobody():
    draft = draft_contract(served())
    question = question_of_person(draft)
    assert question.proposed == "customer_id"
    other = answer(draft, question, "employee_id").mapping["columns"]
    assert other["employee_id"] | {"person": True, "role": "direct_identifier"} == other["employee_id"]
    assert "not_a_person" not in other["employee_id"]
    assert "person" not in other["customer_id"]
    both = answer(draft, question, "customer_id, store")
    assert [name for name, own in both.mapping["columns"].items() if "person" in own] == ["customer_id", "store"]
    assert both.mapping["columns"]["store"]["role"] == "quasi_identifier"
    nobody = answer(draft, question, "one")
    assert nobody.mapping["one_row_per_person"] is True
    assert nobody.person is None


def test_a_column_that_may_be_the_person_has_to_be_explained_if_it_is_not():
    table = panel("id").drop(columns="value")
    table.loc[::20, "id"] = np.nan
    draft = draft_contract(table)
    assert draft.mapping["columns"]["id"]["person"] == "decide"
    after = answer(draft, question_of_person(draft), "one")
    assert [(each.column, each.key) for each in open_questions(after)] == [("id", "not_a_person")]
    for wrong in (" ", "visits"):
        with pytest.raises(InvalidSettingError):
            answer(after, open_questions(after)[0], wrong)
    answer(after, open_questions(after)[0], "Numbers of the machines that measured")


def test_a_column_that_becomes_an_identifier_shows_no_value():
    draft = decide_role(draft_contract(whole()), "sex", "direct_identifier")
    assert draft.mapping["columns"]["sex"] == {"type": "text", "role": "direct_identifier"}
    with pytest.raises(InvalidSettingError, match="no column 'nothing'"):
        decide_role(draft, "nothing", "other")
