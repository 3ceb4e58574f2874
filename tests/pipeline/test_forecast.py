"""What a policy will probably decide, said before there is a record: sentences, the split that is chosen, and why."""

import re

import numpy as np
import pandas as pd
import pytest

from privacy_assets import AnonymizationSettings, Limit, Policy, Split, Synthesis
from privacy_assets.errors import InvalidSettingError
from privacy_assets.mpucc.control_size import TRAIN_FRACTIONS, ControlSize
from privacy_assets.orchestration.control_plans import plan_metadata, train_fraction_of
from privacy_assets.orchestration.settings.asked import Release
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.pipeline import forecast
from privacy_assets.pipeline.forecast import Planned, Strangers, forecast_synthetic

SECRET = "Zaphodine-Quxington"
POLICY = Policy.for_use_case("research_sharing")


def alike(n_people, n_columns, n_values, seed=0):
    """Records whose columns all depend on each other."""
    random = np.random.default_rng(seed)
    common = random.normal(size=n_people)
    return pd.DataFrame(
        {
            f"c{j}": np.clip(n_values / 2 + n_values / 5 * (common + random.normal(size=n_people)), 0, n_values - 1)
            for j in range(n_columns)
        }
    ).astype(int)


def release_of(table, policy="research_sharing", fraction="auto", **settings):
    columns = {
        name: {"type": "integer" if table[name].dtype.kind == "i" else "text", "role": "quasi_identifier"}
        for name in table
    }
    contract = {"one_row_per_person": True, "columns": columns}
    asked = Release("people", source=lambda: table, contract=contract, policy=policy, split=Split(fraction), **settings)
    return ReleaseSettings.of(asked)


def said_of(table, **settings):
    release = release_of(table, **settings)
    return plan_metadata(release, release.contract.admit(table))


def test_of_a_wide_table_a_yes_is_forecast_where_strangers_fail_the_limit():
    found = said_of(alike(8_000, 14, 12), synthetic=Synthesis())
    fraction = found["train_fraction"]
    pattern = (
        r"Under research_sharing: people never seen would score about 0\.\d+ on these 14 columns \(limit 0\.1\), so "
        r"the exposed share decides \(limit 10\.0%\); with a split of (\d+)\.\d% the test sees copies of ([\d,]+) "
        r"records \((0\.\d\d)%, limit 1\.00%\)\. Expect a yes from records that copy nobody; "
        r"`smooth_cart` leaked in 28 of 60 trials with 3,000 originals\."
    )
    said = re.fullmatch(pattern, found["forecast"])
    assert said, found["forecast"]
    assert int(said[1]) == round(100 * fraction, 0) - (fraction == 2 / 3)
    assert fraction in TRAIN_FRACTIONS
    assert float(said[3]) <= 1


def test_of_a_narrow_table_it_is_said_that_copies_cannot_be_seen_and_what_would_do():
    found = said_of(alike(2_400, 8, 12), synthetic=Synthesis(), anonymized=AnonymizationSettings(k=5))
    assert found["train_fraction"] == 0.5
    pattern = (
        r"Under research_sharing: people never seen would score about 0\.\d+ on these 8 columns \(limit 0\.1\), so the "
        r"(score|exposed share) decides.*; copies of 1\.00% cannot be seen with 1,200 originals "
        r"\(about \d+ records, \d\.\d\d%\); you need at least ([\d,]+) records, or `required\.detectable_share: "
        r"0\.0\d+`, or the anonymized side \(k = 5\)\."
    )
    said = re.fullmatch(pattern, found["forecast"])
    assert said, found["forecast"]
    needed = int(said[2].replace(",", ""))
    assert 2_400 < needed <= 24_000
    fewer = said_of(alike(needed // 2, 8, 12), synthetic=Synthesis())
    assert "cannot be seen" in fewer["forecast"], fewer["forecast"]


def test_of_a_tiny_table_the_anonymized_side_is_left():
    table = alike(90, 6, 8).assign(name=SECRET)
    found = said_of(table, synthetic=Synthesis(), anonymized=AnonymizationSettings(k=5))
    assert found["forecast"] == (
        "Under research_sharing: copies of 1.00% cannot be seen with 45 originals (not even of all); you need many "
        "more records, or the anonymized side (k = 5)."
    )
    assert found["forecast_anonymized"] == (
        "Under research_sharing: 90 records are in classes of at least 5 on 7 columns. Expect a yes."
    )
    assert SECRET not in str(found)
    only = said_of(table[:9], anonymized=AnonymizationSettings(k=3), fraction=0.5)
    assert only == {
        "forecast_anonymized": "Under research_sharing: 9 records cannot be divided into classes of 5; you need at "
        "least twice as many."
    }
    small = said_of(table, anonymized=AnonymizationSettings(k=3), fraction=0.5)["forecast_anonymized"]
    assert small == "Under research_sharing: 90 records would be in classes of 3; you need `k: 5`."


SEEN = Planned(1_000, "people", ControlSize(900, 100, 8), None)


def decided(found, true, policy=POLICY, planned=SEEN):
    release = release_of(alike(10, 3, 4), policy=policy, fraction=0.5, synthetic=Synthesis())
    return forecast_synthetic(policy, release.contract, planned, Strangers(found, true))


def test_the_score_decides_where_strangers_meet_the_limit():
    sentence, is_yes, _ = decided([0.05, 0.04], [0.06, 0.02])
    assert is_yes
    assert "about 0.05 on these 3 columns (limit 0.1), so the score decides; with a split of 90.0% the test" in sentence


def test_a_control_that_is_too_small_to_show_that_nobody_meets_the_limit_is_named():
    sentence, is_yes, _ = decided([0.05], [0.2])
    assert not is_yes
    assert "would score about 0.2 on these 3 columns (limit 0.1), but a control of 100 shows only 0.05" in sentence
    assert sentence.endswith("you need a smaller `train_fraction`, or the anonymized side (k = 5).")


def test_a_group_of_columns_on_which_strangers_fail_is_told(monkeypatch):
    monkeypatch.setattr(forecast, "reach_of", lambda *_: 0.04)
    planned = SEEN._replace(rehearsal=object())
    sentence, is_yes, _ = decided([0.05, 0.7, 0.3], [0.05, 0.8, 0.4], planned=planned)
    assert is_yes
    assert "0.05 on these 3 columns (limit 0.1), and 0.7 on a group of them that depends on no others" in sentence
    assert "so the exposed share decides (limit 10.0%)" in sentence
    monkeypatch.setattr(forecast, "reach_of", lambda *_: 0.1)
    sentence, is_yes, _ = decided([0.5], [0.5], planned=planned)
    assert not is_yes
    # Twice as large as half of the limit, so four times as many people.
    assert "you need at least 4,000 people for an exposed share below its limit, or the anonymized side" in sentence
    monkeypatch.setattr(forecast, "reach_of", lambda *_: None)
    assert "you need many more people for an exposed share" in decided([0.5], [0.5], planned=planned).sentence


def test_a_limit_that_nothing_else_decides_cannot_be_met_where_strangers_fail_it():
    absolute = Policy((Limit("privacy_risk_score", 0.1), Limit("leakage_detected", 0), Limit("smallest_class", 5)))
    sentence, is_yes, _ = decided([0.5], [0.5], policy=absolute)
    assert not is_yes
    assert sentence.startswith("Under this policy: people never seen would score about 0.5")
    assert "so no records can be expected to meet it; with a split" in sentence
    assert sentence.endswith("you need `beyond: exposed_share`, or the anonymized side (k = 5).")


def test_the_share_of_the_synthesizer_is_the_largest_with_a_yes_and_follows_from_table_and_settings():
    table = alike(5_000, 12, 12)
    release = release_of(table, synthetic=Synthesis())
    chosen = train_fraction_of(release, table)
    assert chosen == train_fraction_of(release_of(table, synthetic=Synthesis(seed=9)), table)
    yes = {
        fraction: "Expect a yes" in said_of(table, fraction=fraction, synthetic=Synthesis())["forecast"]
        for fraction in TRAIN_FRACTIONS
    }
    assert chosen == next((fraction for fraction, is_yes in yes.items() if is_yes), 0.5)
    assert 0.5 < chosen < 0.9
    assert train_fraction_of(release_of(table, fraction=0.3, synthetic=Synthesis()), table) == 0.3
    few = table[:300]
    assert train_fraction_of(release_of(few, synthetic=Synthesis()), few) == 0.5


def test_where_leakage_is_not_limited_there_is_nothing_to_choose_a_split_by():
    policy = Policy((Limit("privacy_risk_score", 0.1),))
    with pytest.raises(InvalidSettingError, match="train_fraction 'auto', which is chosen by what the leakage test"):
        release_of(alike(100, 3, 4), policy=policy, synthetic=Synthesis())
    with pytest.raises(InvalidSettingError, match="expected a number above 0 and below 1, or 'auto'"):
        Split("most")


def test_people_with_several_rows_are_counted_and_drawn_together():
    table = alike(3_000, 10, 12)
    table = pd.concat([table, table[:1_500]], ignore_index=True)
    table["key"] = [*range(3_000), *range(1_500)]
    columns = {name: {"type": "integer", "role": "quasi_identifier"} for name in table if name != "key"}
    contract = {"columns": {"key": {"type": "integer", "role": "direct_identifier", "person": True}} | columns}
    asked = Release("people", source=lambda: table, contract=contract, policy="research_sharing", split=Split(0.5))
    release = ReleaseSettings.of(asked)
    found = plan_metadata(release, release.contract.admit(table))
    assert "people" in found["forecast"]
    assert "1,500 originals" in found["forecast"] or "with a split of 50.0%" in found["forecast"]
