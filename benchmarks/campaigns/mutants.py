"""Change the gate, one line at a time, and see which tests notice.

Usage: python -m benchmarks.campaigns.mutants [--only TEXT] [--json FILE]

Each change is made in a copy of the package and its tests, never in this directory. A change that its tests do not
notice is a survivor: they would also pass for a gate with that hole. The original lines are found by their text,
wherever in the folder they are; nothing is run if one of them is not found exactly once.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
COPIED = ("privacy_assets", "tests", "pyproject.toml", "dagster.yaml", "workspace.yaml")
NOT_COPIED = shutil.ignore_patterns("node_modules", ".hypothesis")

GATE, WAIVERS = "tests/release/test_gate.py", "tests/release/test_waivers.py"
LINKS, LINKED = "tests/release/test_row_links.py", "tests/orchestration/test_linked_rows.py"
LEAKAGE, POLICY = "tests/release/test_leakage.py", "tests/release/test_policy.py"
REGISTER, WITHHELD = "tests/release/test_register.py", "tests/release/test_withheld.py"
RATED, CONVERSION = "tests/release/test_ratings.py", "tests/contract/test_conversion.py"
EXAMINED, DURABLE = "tests/disclosure/test_column_examination.py", "tests/storage/test_durable_files.py"
RUNS, RECORDS = "tests/orchestration/test_gate_holds.py", "tests/orchestration/test_records_assessments.py"
ANONYMIZED, BUDGET = "tests/orchestration/test_anonymized_release.py", "tests/orchestration/test_budget_reset.py"
LEAVING, DISCLOSED = "tests/orchestration/test_leaving_columns.py", "tests/orchestration/test_disclosure.py"
KEYS, TIED = "tests/columns/test_unit_keys.py", "tests/anonymity/test_links.py"
KEPT = "tests/storage/test_fingerprint.py -k kept"
INVENTED = "tests/orchestration/test_synthetic_person.py"
UNIT, DECLARED = "tests/contract/test_unit.py", "tests/disclosure/test_declared_unit.py"
SCORED, PERMUTED = "tests/disclosure/test_scores.py", "tests/disclosure/test_permutation_test.py"
WEIGHED = "tests/disclosure/test_assess.py -k weighs"
RELATED, SWAPPED = "tests/release/test_gate_of_related.py", "tests/orchestration/test_related_release.py -k swapped"
LEFT, NEAREST = "tests/reidentification/kernels/test_people_left.py", "tests/disclosure/test_nearest_person.py"
ONE_TABLE = "tests/orchestration/test_related_anonymized.py"


class Mutant(NamedTuple):
    """A change of one place, and the tests each of which should notice it: files, or some tests of a file by ``-k``."""

    folder: str
    original: str
    changed: str
    tests: tuple[str, ...]


def _of(folder: str, *changes: tuple[str, ...]) -> tuple[Mutant, ...]:
    return tuple(Mutant(folder, original, changed, tuple(tests)) for original, changed, *tests in changes)


MUTANTS = (
    *_of(
        "release",
        # What refuses.
        (
            'return not self.passed and self.severity == "error"',
            "return not self.passed",
            GATE,
            f"{RUNS} -k severity_warn",
        ),
        (
            'return not self.passed and self.severity == "error"',
            'return self.severity != "error"',
            GATE,
            f"{RUNS} -k failed_limit_refuses",
        ),
        ("return bool(decided) and not any(", "return not any(", GATE),
        # Conditions that are not asked.
        (
            "decided.append(_table_is_as_recorded(evidence, fingerprint))",
            "pass",
            GATE,
            f"{RUNS} -k overwritten",
            f"{ANONYMIZED} -k edited",
        ),
        ("decided.extend(_table_is_of_this_version(evidence))", "pass", GATE, f"{ANONYMIZED} -k another_version"),
        (
            "decided.append(_table_keeps_the_contract(evidence))",
            "pass",
            GATE,
            f"{RUNS} -k contract_that_changed",
            f"{ANONYMIZED} -k contract_that_changed",
        ),
        ("decided.append(_every_row_has_its_person(evidence.stage, evidence.broken_links))", "pass", RELATED, SWAPPED),
        ("if set(own) != set(evidence.views):", "if False:", RELATED),
        (
            'yield from (f"{name}: {weaker}" for weaker in _weaker_settings(own.get(name, {}), asked, of_view))',
            "pass",
            RELATED,
        ),
        ("decided.extend(_columns_may_leave(evidence))", "pass", GATE, f"{LEAVING} -k gate_asks_again"),
        ("decided.extend(_rows_are_not_linked(evidence))", "pass", GATE, LINKS, f"{LINKED} -k of_each_customer"),
        ('"error" if name == LINKS_CHECK else "warn"', '"warn"', LINKS, f"{LINKED} -k of_each_customer"),
        (
            "decided.extend(_made_of_what_is_recorded(stage, evidence) for stage in evidence.lineage)",
            "pass",
            *(
                GATE,
                f"{RUNS} -k earlier_split",
                f"{ANONYMIZED} -k earlier_source",
                f"{RECORDS} -k earlier_anonymization",
            ),
        ),
        ("decided.append(_split_was_made_at_once(evidence))", "pass", GATE, f"{RUNS} -k another_split"),
        (
            "decided.append(_budget_is_recorded(evidence.budget))",
            "pass",
            GATE,
            f"{BUDGET} -k charged_under_another_name",
        ),
        ("needed |= {MPUCC} if evidence.side == SIDES[MPUCC] else set()", "needed |= set()", GATE),
        (
            "for limit in limits} | set(evidence.must_succeed)",
            "for limit in limits}",
            GATE,
            f"{RECORDS} -k fails_refuses",
        ),
        (
            "if policy.required.signature or evidence.signing is not None:",
            "if policy.required.signature and evidence.signing is not None:",
            GATE,
        ),
        (
            "decided.extend(on_limits.values())",
            "pass",
            GATE,
            f"{RUNS} -k failed_limit_refuses",
            f"{ANONYMIZED} -k smaller_than_the_policy",
            f"{RECORDS} -k limit_that_is_not_met",
        ),
        # Figures.
        (
            'passed = outcome == "met"',
            'passed = value is None or outcome == "met"',
            GATE,
            f"{RUNS} -k without_the_limited_figure",
        ),
        (
            "metric: value if is_known or (value and METRICS[metric].is_yes_no) else None",
            "metric: value if is_known else None",
            GATE,
        ),
        (
            "is_known = not why_incomparable(name, evidence)",
            "is_known = True",
            GATE,
        ),
        (
            'severity: Severity = "error" if limit.blocks and outcome != "beyond" else "warn"',
            'severity: Severity = "error" if limit.blocks and outcome == "met" else "warn"',
            GATE,
        ),
        (
            "is_judged = judge is not None and judge.made_of.get(evidence.stage) == assessment.made_of.get("
            "evidence.stage)",
            "is_judged = judge is not None",
            GATE,
        ),
        # Waivers.
        ("if not verdict.blocks:\n        return verdict", "if verdict.passed:\n        return verdict", WAIVERS),
        ("if waiver.metric != limit.metric:", "if False:", WAIVERS),
        ("if not problems:\n            reason = f", "if True:\n            reason = f", WAIVERS),
        ("return replace(verdict, passed=True, reason=reason, waived_by=waiver.file)", "return verdict", WAIVERS),
        ("reason=reason, waived_by=waiver.file)", "reason=reason)", WAIVERS),
        ("if each.file not in used", "if each.file in used", WAIVERS),
        ("decided.append(_every_waiver_is_used(on_limits, waivers, fingerprint))", "pass", WAIVERS),
        # Evidence on assessments.
        ("if assessment is None or not assessment.settings:", "if assessment is None:", GATE),
        ("if assessment is None or assessment.digest is None:", "if assessment is None:", GATE),
        (
            '_was_made_by_a_run",\n        assessment.made_by_run,',
            '_was_made_by_a_run",\n        True,',
            GATE,
            f"{RUNS} -k reported_by_hand",
        ),
        (
            '_is_as_recorded",\n        assessment.digest == assessment.recorded_digest,',
            '_is_as_recorded",\n        True,',
            *(GATE, f"{RUNS} -k edited_assessment", f"{RECORDS} -k edited"),
        ),
        (
            "of_this_table = assessment.made_of.get(evidence.stage) == fingerprint",
            "of_this_table = assessment.made_of.get(evidence.stage) is not None",
            *(GATE, f"{RUNS} -k earlier_synthetic", f"{RECORDS} -k another_table"),
        ),
        ("yield _stands_on_what_is_recorded(name, assessment, evidence)", "pass", GATE, f"{RUNS} -k reported_by_hand"),
        (
            "yield settings_verdict(name, policy, evidence)",
            "pass",
            GATE,
            f"{RUNS} -k weaker_settings",
            f"{RECORDS} -k weaker_assumptions",
            f"{DISCLOSED} -k missing_stale_edited",
        ),
        ("        or not evidence.tables[stage].made_by_run\n", "", GATE, f"{RUNS} -k reported_by_hand"),
        ("        or assessment.made_of[stage] != evidence.tables[stage].recorded_digest\n", "", GATE),
        ("        or evidence.tables[stage].digest != evidence.tables[stage].recorded_digest\n", "", GATE),
        ("is_judged and not why, reason", "not why, reason", GATE),
        # Evidence on tables.
        ("if table is None or not table.made_by_run:", "if table is None:", GATE, f"{RUNS} -k reported_by_hand"),
        (
            "same = table.digest == table.recorded_digest and fingerprint ==",
            "same = fingerprint ==",
            GATE,
            f"{RUNS} -k overwritten",
        ),
        (" and fingerprint == (table.content or table.digest)", "", GATE),
        ("        or not made.made_by_run\n", "", GATE),
        ("        or table.made_of.get(other) is None\n", "", GATE),
        (
            "        or table.made_of[other] != made.recorded_digest\n",
            "",
            GATE,
            f"{RUNS} -k earlier_split",
            f"{RECORDS} -k earlier_anonymization",
        ),
        (
            "if made is None or made.digest != made.recorded_digest]",
            "if made is None]",
            GATE,
            f"{ANONYMIZED} -k overwritten",
        ),
        ("at_once = len(runs) == 1 and None not in runs", "at_once = len(runs) == 1", GATE),
        (
            "at_once = len(runs) == 1 and None not in runs",
            "at_once = None not in runs",
            GATE,
            f"{RUNS} -k another_split",
        ),
        # Settings of assessments.
        (
            'if required.exact_search and settings.get("search") != "exact":',
            "if False:",
            GATE,
            f"{RUNS} -k weaker_settings",
        ),
        (
            'if settings.get("parts", {}) != {name: list(own) for name, own in evidence.parts.items()}:',
            'if settings.get("parts") and not evidence.parts:',
            GATE,
        ),
        ("set(assessed) != set(evidence.columns):", "set(assessed) > set(evidence.columns):", GATE),
        ("searched < expected_columns:", "searched <= expected_columns:", GATE),
        ("searched < expected_columns:", "searched < expected_columns - 1:", GATE, f"{RUNS} -k weaker_settings"),
        ("or not _are_declared(given, evidence)):", "):", GATE, f"{RUNS} -k precision_set_by_hand"),
        ("if evidence.has_person and not isinstance(", "if not isinstance(", GATE),
        (
            'settings.get("deduplicate") is not True:',
            'settings.get("deduplicate") is None:',
            GATE,
            f"{RUNS} -k weaker_settings",
        ),
        ("n_control < required.control_records:", "n_control <= required.control_records:", GATE),
        ("n_control < required.control_records:", "n_control < required.control_records - 1:", GATE),
        ("not level <= required.confidence_level:", "not level < required.confidence_level:", GATE),
        ("not level <= required.confidence_level:", "level > 1:", GATE, f"{RUNS} -k weaker_settings"),
        ("if not is_of_this_version(assessment.settings, name):", "if False:", GATE, f"{RUNS} -k another_version"),
        ('assessment.settings.get("spelling") != SPELLING:', 'not assessment.settings.get("spelling"):', GATE),
        ("any(known >= frozenset(columns) for known", "any(known <= frozenset(columns) for known", GATE),
        ("            if lacking:\n", "            if False:\n", GATE, f"{RECORDS} -k weaker_assumptions"),
        ("if not all(other in held for other in expected):", "if not held and expected:", GATE),
        ("        elif found != expected:\n", "        elif found is not None and found != expected:\n", GATE),
        ("        elif found != expected:\n", "        elif False:\n", GATE, f"{RECORDS} -k other_scales"),
        # What leakage means.
        ("isinstance(value, int | float) and value <= bound", "isinstance(value, int | float)", LEAKAGE),
        ("allowed = 1.0 if required.detectable_share is None else", "allowed = 1.0 if True else", LEAKAGE),
        # The policy.
        ('"at_most": value <= self.value', '"at_most": value < self.value', GATE, POLICY),
        ('"at_least": value >= self.value', '"at_least": value > self.value', POLICY),
        ('"below": value < self.value', '"below": value <= self.value', GATE),
        ('"above": value > self.value', '"above": value >= self.value', POLICY),
        (
            "        if value is None or math.isnan(value):\n            return False",
            "        if False:\n            pass",
            GATE,
        ),
        (
            'self.severity == "error"\n\n    @property\n    def protects',
            "True\n\n    @property\n    def protects",
            POLICY,
        ),
        ("        if not self.blocks:\n            return False\n", "", GATE, POLICY),
        ("return METRICS[self.metric].worst_for_copies", "return True", POLICY),
        ('{"above": self.value + 1, "at_least"', '{"above": self.value, "at_least"', POLICY),
        ("at_bound >= loosest if METRICS", "at_bound > loosest if METRICS", POLICY),
        ('"at_least" else at_bound <= loosest', '"at_least" else at_bound < loosest', POLICY),
        ("if self.direction in unsafe:", "if False:", POLICY),
        ("if self.value in (always, never):", "if self.value == always:", POLICY),
        ("if self.assessment == SEMANTIC and self.value == 0:", "if False:", POLICY),
        ("if blocking == {SEMANTIC}:", "if False:", POLICY),
        ("if not any(limit.blocks for limit in self.limits):", "if not self.limits:", POLICY),
        ("        if repeated:\n", "        if False:\n", POLICY),
        ("any(METRICS[limit.metric].needs_sensitive for limit in limits)", "limits", POLICY),
        ("math.floor(smallest.value) + 1 if", "math.floor(smallest.value) if", POLICY),
        ("if smallest is not None and smallest.blocks:", "if smallest is not None:", POLICY),
        ("if own is not None and not own.blocks:", "if False:", POLICY),
        ('1 / (smallest.value + (smallest.direction == "above"))', "1 / smallest.value", POLICY),
        ('each.metric == "smallest_class" and each.blocks), None)', 'each.metric == "smallest_class"), None)', POLICY),
        # Figures that are withheld.
        ("return METRICS[metric].assessment != PRIVACY_BUDGET", "return True", WITHHELD),
        ("return manifest.get(WITHHELD_KEY) is True", "return WITHHELD_KEY in manifest", WITHHELD),
        ('if manifest["stage"] != SIDES[PRIVACY_BUDGET] or ', "if ", WITHHELD),
        (' or "epsilon" not in manifest["figures"].get(PRIVACY_BUDGET, {})', "", WITHHELD),
        ('any(each["value"] is not None for each in withheld) or ', "", WITHHELD),
        (' or set(manifest["figures"]) - {PRIVACY_BUDGET}', "", WITHHELD),
        ('    if manifest["waivers"]:\n', "    if False:\n", WITHHELD),
        # The register.
        ("return None if moment.tzinfo is None else moment", "return moment", REGISTER),
        ('return "unknown" if refused_at is None else', 'return "" if refused_at is None else', REGISTER),
        ("return release is None or moment is None or", "return release is None or moment is not None and", REGISTER),
        ("moment is None or moment > release", "moment is None or moment < release", REGISTER),
        ("last[entry.table] = max(moment, last.get(entry.table, moment))", "last[entry.table] = moment", REGISTER),
        ("max(own, key=lambda run: run.refused_at)", "max(own, key=lambda run: run.failed)", REGISTER),
        ("                _require_own(path)\n", "", REGISTER),
        ("or path.is_symlink()) and not _is_latest(path):", ") and not _is_latest(path):", REGISTER),
        ("stat.S_ISREG(path.lstat().st_mode)", "True", REGISTER),
        ('or path.lstat().st_size != entry["bytes"]:', ":", REGISTER),
        ("if found.key_id != named:", "if False:", REGISTER),
        # Rows of a person.
        ("in evidence.found if not link.is_among(declared)]", "in evidence.found if not declared]", LINKS),
        ('every = {"": self.links, **self.if_people}', 'every = {"": self.links}', LINKS),
        # Other tests of the same people.
        ("elif splits.n_others_with_leak:", "elif False:", f"{DISCLOSED} -k leak_on_another"),
        ("n_tried_before > MOST_OTHER_SPLITS", "n_tried_before > 9", f"{DISCLOSED} -k splits_are_not"),
        ('is_tested_together", not splits.untested', 'is_tested_together", True', f"{DISCLOSED} -k tested_before"),
        # The report.
        ("privacy_risk_score <= (0.1 if", "privacy_risk_score < (0.1 if", RATED),
        ("(0.1 if is_for_others else 0.3)", "(0.1 if is_for_others else 0.29)", RATED),
        ("(0.1 if is_for_others else 0.3)", "(0.1 if is_for_others else 0.31)", RATED),
    ),
    *_of(
        "disclosure",
        ("UNSHARED: Final = 0.95\n", "UNSHARED: Final = 0.94\n", EXAMINED),
        ("UNSHARED: Final = 0.95\n", "UNSHARED: Final = 0.96\n", EXAMINED),
        ("n_distinct >= UNSHARED * holders.n_holdings", "n_distinct > UNSHARED * holders.n_holdings", EXAMINED),
        ("holders.rest >= FEW_PEOPLE and holders.unshared >= UNSHARED", "holders.unshared >= UNSHARED", EXAMINED),
    ),
    *_of(
        "disclosure",
        # The weighted test of all criteria.
        ("adjusted = adjusted_p_values(weights * p)", "adjusted = adjusted_p_values(p)", WEIGHED),
        ("n_positive - n_negative)", "n_positive)", f"{SCORED} -k enumeration"),
        ("-_is_among_largest(-own", "_is_among_largest(-own", f"{SCORED} -k tenth"),
        ("readings += [own for name", "readings = [own for name", f"{SCORED} -k either_reading"),
        ("several.std(axis=0)", "several.max(axis=0)", f"{PERMUTED} -k several_scores"),
        ("total[own[k] - start] = LARGEST_DISTANCE", "pass", f"{SCORED} -k enumeration"),
    ),
    *_of(
        "disclosure",
        # Whose a row is.
        ("if key.is_coarser and key.halves:", "if False:", f"{DECLARED} -k stays_of_people"),
        (
            "yield from _of_rows(table, keys_among(coded), identifiers, persons)",
            "yield from _of_rows(table, keys_among(coded), (), persons)",
            f"{DECLARED} -k number_of_rows",
        ),
        ("if times > 1 and", "if times > 2 and", f"{DECLARED} -k loaded_again"),
        (
            "for each in blocking if each.column not in contract.not_a_person]",
            "for each in blocking if not contract.not_a_person]",
            f"{DECLARED} -k on_another_column",
        ),
        (
            "is_enough = repeated > MOST_REPEATED * len(table)",
            "if repeated > len(table)",
            f"{DECLARED} -k address_that_repeats",
        ),
        ("SEPARATOR in key.made_by and not key.names", "False", f"{DECLARED} -k of_its_own"),
        # The nearest person.
        (
            "pointed = np.bincount(nearest, lead**2, len(people))",
            "pointed = np.bincount(nearest, lead, len(people))",
            f"{NEAREST} -k of_enumeration",
        ),
        ("(first_two[:, 1] - first_two[:, 0]) /", "first_two[:, 1] /", f"{NEAREST} -k of_enumeration"),
    ),
    *_of(
        "columns",
        ("TOLERATED: Final = 0.2\n", "TOLERATED: Final = 0.02\n", f"{KEYS} -k wrong_entries"),
        ("return len(self.facts) > 1 or", "return len(self.facts) > 0 or", f"{KEYS} -k one_row_per_person_is_strong"),
        ("elif not _is_coarser(key, own, most_runs):", "else:", f"{KEYS} -k per_person_is_strong"),
        ("[1] <= TOLERATED * by_chance", "[1] <= by_chance", f"{KEYS} -k is_strong"),
        ("FEWEST_MEASURED and not names_a_place(each)", "FEWEST_MEASURED", f"{KEYS} -k numbers_of_places"),
    ),
    *_of(
        "anonymity",
        ("precision >= 1 / self.k\n", "precision >= PRECISE\n", f"{TIED} -k vague"),
        (
            "= count_pairs(group, row, self.person, k)",
            "= count_pairs(group, row, self.person, k + 1)",
            f"{TIED} -k every_pair",
        ),
        (
            "is_found = n_same - expected >= FEWEST_BEYOND_CHANCE *",
            "is_found = n_same - expected >= 0 *",
            f"{TIED} -k not_of_people",
        ),
        (
            "*_across(released, many, fewest, people))",
            ")",
            f"{TIED} -k across_columns",
        ),
        ('return self.how != "in order" and set(', "return set(", f"{LINKS} -k order"),
    ),
    *_of(
        "reidentification",
        (
            "n_kept += _count_fitting(fits, own[i], g) >= copies",
            "n_kept += _count_fitting(fits, own[i], g) >= 1",
            f"{LEFT} -k trying_everything",
        ),
        ("(n_values == 1).mean() >= CONSTANT", "(n_values == 1).mean() >= 0.9", f"{LEFT} -k constant"),
        ("probability=1 / worst.at_least,", "probability=1 / worst.found,", f"{LEFT} -k proven_to_be_left"),
    ),
    *_of(
        "synthesis",
        ("not answered.issuperset(key.halves)", "False", f"{INVENTED} -k other_half"),
    ),
    *_of(
        "orchestration",
        ("synthetic >= MOST_REPEATED * real]", "synthetic > real]", f"{INVENTED} -k numbers_the_people"),
    ),
    *_of(
        "contract",
        ("if persons and _says_one_row_per_person(schema):", "if False:", UNIT),
        (
            "        if not self.person_columns and not self.one_row_per_person:\n            raise",
            "        if False:\n            raise",
            f"{UNIT} -k without_a_statement",
        ),
    ),
    *_of(
        "contract",
        ("(np.abs(values) < EXACT_BOUND)", "(np.abs(values) <= EXACT_BOUND)", CONVERSION),
        ("largest = EXACT_BOUND - isinstance(number, float)", "largest = EXACT_BOUND", CONVERSION),
        ("largest = EXACT_BOUND - isinstance(number, float)", "largest = EXACT_BOUND - 1", CONVERSION),
    ),
    *_of(
        "storage",
        ("        file.flush()\n        os.fsync(file.fileno())\n", "        file.flush()\n", DURABLE),
        ("        file.flush()\n        os.fsync(descriptor)\n", "        file.flush()\n", DURABLE),
        ("    try:\n        os.fsync(descriptor)\n", "    try:\n        pass\n", DURABLE),
        ("hashlib.sha256(own.png).hexdigest()]", "len(own.png)]", "tests/storage/test_artifact_files.py -k pictures"),
        ("return digest if of is not None and of() is table else", "return digest if of else", KEPT),
    ),
    *_of(
        "synthesis",
        ("            file.flush()\n            os.fsync(descriptor)\n", "            file.flush()\n", DURABLE),
        ("        sync_directory(self.directory)\n", "", DURABLE),
    ),
    *_of("anonymization", ("        if tying:\n", "        if False:\n", f"{ONE_TABLE} -k show_their_person")),
    *_of(
        "orchestration",
        # What is gathered for the gate.
        ("one_table is None or as_one[origin] == one_table.to_json()", "True", f"{ONE_TABLE} -k order"),
        ("{release.as_one_table(name): (name,) for name in related}", "{}", f"{ONE_TABLE} -k source_that_changed"),
        (
            "recorded_digest=recorded.version,",
            "recorded_digest=artifact.digest,",
            f"{RUNS} -k edited_assessment",
            f"{RECORDS} -k edited",
        ),
        (
            "                run_id=recorded.run_id,\n",
            '                run_id="a run",\n',
            f"{RUNS} -k reported_by_hand",
        ),
        (
            "tables[stage] = TableEvidence(digest, recorded.version, recorded.run_id, recorded.made_of, content)",
            "tables[stage] = TableEvidence(recorded.version, recorded.version, recorded.run_id, recorded.made_of, "
            "content)",
            f"{RUNS} -k overwritten",
        ),
        (
            "tables[stage] = TableEvidence(digest, recorded.version, recorded.run_id, recorded.made_of, content)",
            'tables[stage] = TableEvidence(digest, recorded.version, "a run", recorded.made_of, content)',
            f"{RUNS} -k reported_by_hand",
        ),
        (
            "return anonymization, TableEvidence(digest, recorded.version, run_id, made_of, content, settings)",
            "return anonymization, TableEvidence(digest, digest, run_id, made_of, content, settings)",
            f"{ANONYMIZED} -k edited",
        ),
        (
            "return anonymization, TableEvidence(digest, recorded.version, run_id, made_of, content, settings)",
            'return anonymization, TableEvidence(digest, recorded.version, "a run", made_of, content, settings)',
            f"{ANONYMIZED} -k reported_by_hand",
        ),
        (
            "return fingerprint(release.contract.admit_synthetic(frame_of(table))) == content",
            "return bool(fingerprint(release.contract.admit_synthetic(frame_of(table))))",
            f"{RUNS} -k contract_that_changed",
        ),
        (
            "stands_on = {REIDENTIFICATION: (origin, *control, *others)",
            "stands_on = {REIDENTIFICATION: ()",
            f"{RECORDS} -k reported_by_hand",
            "tests/orchestration/test_membership.py -k stale",
        ),
        (
            "() if release.source is None or not release.is_of_originals else SPLIT_STAGES",
            "()",
            "tests/orchestration/test_of_original.py -k new_source",
        ),
        (
            "must_succeed=(REIDENTIFICATION,) if release.assesses(REIDENTIFICATION) else (),",
            "",
            f"{RECORDS} -k fails_refuses",
        ),
        (
            'asked[SEMANTIC] = {"scale_digests": scale_digests(scales), **release.semantic_risk_is_asked_of}',
            "asked[SEMANTIC] = dict(release.semantic_risk_is_asked_of)",
            f"{RECORDS} -k other_scales",
        ),
    ),
)


def place_of(mutant: Mutant, package: Path) -> Path:
    """Return the file that has the original text once; raise ValueError if there is not exactly one."""
    found = [
        path
        for path in sorted((package / mutant.folder).rglob("*.py"))
        for _ in range(path.read_text().count(mutant.original))
    ]
    if len(found) != 1:
        places = [path.relative_to(package).as_posix() for path in found]
        raise ValueError(f"{mutant.folder}/ has {mutant.original!r} {len(found)} times {places}; expected once")
    return found[0]


def problems(mutants: Sequence[Mutant], package: Path) -> list[str]:
    """Return which originals are not there exactly once."""
    said = []
    for mutant in mutants:
        try:
            place_of(mutant, package)
        except ValueError as error:
            said.append(str(error))
    return said


@contextmanager
def applied(mutant: Mutant, package: Path) -> Iterator[Path]:
    """Change a copy of the package for a while."""
    path = place_of(mutant, package)
    original, times = path.read_bytes(), path.stat()
    path.write_text(path.read_text().replace(mutant.original, mutant.changed))
    # Another second than that of the original: compiled code is kept by the time of its source.
    os.utime(path, (times.st_atime, times.st_mtime + 10))
    try:
        yield path
    finally:
        path.write_bytes(original)
        os.utime(path, (times.st_atime, times.st_mtime))


def unchanged(mutants: Sequence[Mutant]) -> list[str]:
    """Return all tests of the mutants, each file once."""
    words: dict[str, list[str]] = {}
    for test in dict.fromkeys(test for mutant in mutants for test in mutant.tests):
        file, _, word = test.partition(" -k ")
        words.setdefault(file, []).append(word)
    return [file if "" in own else f"{file} -k {' or '.join(own)}" for file, own in words.items()]


def notices(root: Path, test: str) -> bool:
    """Return whether tests in a copy fail; raise RuntimeError if its tests could not be run."""
    command = [sys.executable, "-m", "pytest", "-n0", "-q", "-x", "-p", "no:cacheprovider", *test.split(" ", 2)]
    done = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{test} could not be run:\n{done.stdout[-2_000:]}{done.stderr[-2_000:]}")
    return done.returncode == 1


def campaign(mutants: Sequence[Mutant], repository: Path = REPOSITORY) -> Iterator[tuple[Mutant, str, str, bool]]:
    """Yield each mutant with its file, its tests, and whether they noticed it; the unchanged copy passes first."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name in COPIED:
            source = repository / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=NOT_COPIED)
            else:
                shutil.copy2(source, root / name)
        package = root / "privacy_assets"
        lacking = problems(mutants, package)
        if lacking:
            raise SystemExit("\n".join(lacking))
        for test in unchanged(mutants):
            if notices(root, test):
                raise SystemExit(f"{test} fails without any change. No change was tried.")
        for mutant in mutants:
            with applied(mutant, package) as path:
                for test in mutant.tests:
                    yield mutant, path.relative_to(package).as_posix(), test, notices(root, test)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="changes or test files whose text has this")
    parser.add_argument("--json", type=Path, help="file for the outcomes")
    options = parser.parse_args()
    chosen = []
    for mutant in MUTANTS:
        tests = tuple(each for each in mutant.tests if options.only in f"{mutant.original} {each}")
        chosen += [mutant._replace(tests=tests)] if tests else []
    began, outcomes = time.monotonic(), []
    for mutant, place, test, is_noticed in campaign(chosen):
        said = "killed" if is_noticed else "SURVIVED"
        outcomes.append({"file": place, **mutant._asdict(), "tests": test, "killed": is_noticed})
        print(
            f"{said:8}  {test.removeprefix('tests/')}  {mutant.original.strip()!r} -> {mutant.changed.strip()!r}",
            flush=True,
        )
    n_alive = sum(not each["killed"] for each in outcomes)
    minutes = (time.monotonic() - began) / 60
    print(f"{len(outcomes)} changes and tests, {n_alive} not noticed, in {minutes:.1f} minutes")
    if options.json is not None:
        options.json.write_text(json.dumps(outcomes, indent=2) + "\n")
    return min(n_alive, 1)


if __name__ == "__main__":
    raise SystemExit(main())
