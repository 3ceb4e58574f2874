"""The HTML report of a release: why it was admitted, what the figures mean, and how to lower the risk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from math import log
from typing import Any

import pandas as pd

from privacy_assets.contract.rule_violations import RULES
from privacy_assets.disclosure.declared_unit import BLOCKING, NOT_A_PERSON, UNIT_KEY
from privacy_assets.disclosure.leaving_columns import MANIFEST_KEY
from privacy_assets.disclosure.rare_values import RARE_VALUES
from privacy_assets.display.numbers import against, in_full, number, percent, yes_or_no
from privacy_assets.display.pictures import Picture
from privacy_assets.release.approvals import Approval
from privacy_assets.release.declaration import ALWAYS_STATED, DECLARED, FRACTION
from privacy_assets.release.first_page import MISSING, NOT_STATED, cut, first_page
from privacy_assets.release.gate import WAITS, Verdict, refusing
from privacy_assets.release.manifest import WITHHELD_IN_WORDS, are_withheld
from privacy_assets.release.metrics import DISCLOSURE, METRICS, MPUCC, SEMANTIC, STATISTICS, UTILITY
from privacy_assets.release.outcomes import in_words, outcome_of, page_template
from privacy_assets.release.policy import CERTAIN_VALUES_WARN, KNOWN_ROWS, SMALLEST_CLASSES, USE_CASES, Policy
from privacy_assets.release.ratings import rate_score, rating_agrees
from privacy_assets.release.related_files import records_in_words
from privacy_assets.release.report_criteria import GUESSED, HEADINGS, ROWS, questions_of_the_law
from privacy_assets.release.report_words import (
    CAVEATS,
    FIGURES_IN_WORDS,
    IN_NATS,
    changes_in_words,
    plain_words,
    worth_in_words,
)
from privacy_assets.semantic_risk.result import LACKED_COLUMNS

TEMPLATE = "report.html"
LONGEST_SETTING = 400
MOST_ROWS = 40
HIDDEN_SETTINGS = ("model", "hierarchies")
"""Long settings that are meant for programs; the manifest has them."""
METRIC_OF_COLUMN = {"distinct_l": "l_diversity", "entropy_l": "l_diversity", "t": "t_closeness"}
"""Metrics of the policy by the figures of a sensitive column that they limit."""

NOT_DECLARED = "not stated"
HEADINGS_OF_LIMITS = ("Limit", "Origin")
LONGEST_OF_VERDICT = 120
MOST_CONCERNED = 0.5
"""Warnings about a larger share of the records are in the headline."""


@dataclass(frozen=True)
class Refusal:
    """A run in which the release was refused: its time, and what was found of each failed condition."""

    refused_at: str
    failed: tuple[str, ...]


@dataclass(frozen=True)
class ReportMaterial:
    """Content of a report in addition to the manifest. It contains no cell.

    Pictures are of aggregates, without groups below 5 records. Refusals have the latest last. ``column_changes`` is the
    result of `measure_column_changes`, ``attribute_advice`` that of a `SemanticAssessment`. Notes say what is not
    shown.
    """

    pictures: Sequence[Picture] = ()
    refusals: Sequence[Refusal] = ()
    column_changes: pd.DataFrame | None = None
    attribute_advice: pd.DataFrame | None = None
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class _Table:
    """A table of text; the first cell of each row is its header."""

    caption: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: frozenset[int] = field(default_factory=frozenset)
    """Positions of columns that are aligned as numbers."""


def render_report(
    manifest: Mapping[str, Any], material: ReportMaterial, refusal: str | None = None, *, is_remade: bool = False
) -> str:
    """Write the report of a release or of a refusal as one HTML page that needs no other file, network or script.

    The manifest is without the entry of the report itself. For a refused table, ``refusal`` is the step at which the
    run ended. A remade page is not the one whose digest is in the manifest. All text is escaped.
    """
    decided = [Verdict.from_json(verdict) for verdict in manifest["verdicts"]]
    has_sensitive = any(column.get("role") == "sensitive" for column in manifest["columns"])
    limits = [
        _limit(verdict, manifest, has_sensitive=has_sensitive) for verdict in decided if verdict.metric is not None
    ]
    bounds = {str(verdict.metric): verdict.limit for verdict in decided if verdict.limit is not None}
    side = manifest["stage"]
    warnings = [verdict for verdict in decided if not verdict.passed and not verdict.blocks]
    rating = "" if refusal else rated_worse(manifest, decided)
    page = first_page(manifest, decided, {each.name: finding(each) for each in decided}, _best_change(material), rating)
    return page_template(TEMPLATE).render(
        manifest=manifest,
        created_at=_moment(manifest["created_at"]),
        limits=limits,
        conditions=[verdict for verdict in decided if verdict.metric is None],
        refusal=refusal,
        is_remade=is_remade,
        own_version=version("privacy-assets"),
        declared=_Table(
            "What this release is for",
            ("Question", "Declared"),
            list(_declared_rows(manifest, decided)),
        ),
        origins=_Table(
            "Origin of each limit",
            HEADINGS_OF_LIMITS,
            origins_of_limits(manifest["policy"], [each.metric for each in decided if each.metric is not None]),
        ),
        page=page,
        rating=rating,
        refused=list(refusing(decided)),
        waits=[verdict for verdict in decided if verdict.blocks and verdict.name in WAITS],
        approvals=[Approval.of(each).in_words for each in manifest.get("approvals", ())],
        warnings=warnings,
        concerned=cut(concerns_most(warnings), LONGEST_OF_VERDICT),
        finding=finding,
        waived=[verdict for verdict in decided if verdict.waived_by is not None],
        waivers=_waivers_table(manifest["waivers"]),
        words=plain_words(manifest["figures"], bounds, rated=refusal is None and not rating),
        caveats=((WITHHELD_IN_WORDS,) if are_withheld(manifest) else ()) + tuple(CAVEATS[side]),
        criteria=_criteria_table(manifest["figures"], manifest["settings"]),
        views=list(_views(manifest["figures"], manifest["settings"])),
        records=records_in_words(manifest),
        worth=worth_in_words(manifest["figures"]),
        measured_worth=list(_worth_tables(manifest["figures"].get(UTILITY, {}))),
        pictures=material.pictures,
        notes=material.notes,
        figures=list(_figure_tables(manifest["figures"], bounds)),
        sensitive=_sensitive_table(manifest["figures"], bounds),
        measured=[table for table in _measured_tables(manifest["figures"], material, bounds) if table.rows],
        settings=[
            *_links_table(manifest["figures"]),
            *_unknown_table(manifest["settings"]),
            *_settings_tables(manifest["settings"]),
        ],
        policy=_policy_table(manifest["policy"]),
        columns=_columns_table(manifest["columns"]),
        people=_unit_table(manifest["figures"].get(UNIT_KEY, {})),
        leaving=_leaving_table(manifest.get(MANIFEST_KEY, ())),
        refusals=_refusals_table(material.refusals),
        files=_files_table(manifest["files"]),
        versions=", ".join(f"{name} {version}" for name, version in manifest["versions"].items()),
    )


def _criteria_table(figures: Mapping[str, Any], settings: Mapping[str, Any], caption: str = "") -> _Table:
    """Return the questions of the law; of related tables, whose criteria have a view, they are in its section."""
    of_views = not caption and any("view" in row for row in figures.get(DISCLOSURE, {}).get(ROWS, ()))
    rows = [] if of_views else questions_of_the_law(figures, settings)
    return _Table(caption or "The legal criteria (WP216) and the findings", HEADINGS, rows)


def _views(figures: Mapping[str, Any], settings: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[_Table]]]:
    """Yield a section for each view of related tables: its name, its figures, and the criteria asked of it."""
    of_disclosure, start = figures.get(DISCLOSURE, {}), f"{MPUCC} of "
    names = [name.removeprefix(start) for name in figures if name.startswith(start)]
    left_out = settings.get(DISCLOSURE, {}).get("left_out_views", {})
    for view in names:
        criteria = [row for row in of_disclosure.get(ROWS, ()) if row.get("view") == view]
        found = {
            "privacy risk score": figures[start + view].get("privacy_risk_score"),
            "privacy risk score of as many other people": figures[start + view].get("score_of_strangers"),
            "smallest adjusted p value of a criterion": min(
                (row["adjusted_p_value"] for row in criteria), default=None
            ),
            "utility": figures.get(UTILITY, {}).get(f"utility of {view}"),
        }
        rows = [(words, number(value)) for words, value in found.items() if value is not None]
        rows += [("not tested", left_out[view])] if view in left_out else []
        only = {DISCLOSURE: {**of_disclosure, ROWS: criteria}} if criteria else {}
        asked = _criteria_table(only, settings, f"The legal criteria (WP216) and the findings: {view}")
        yield view, (_Table(f"Figures of {view}", ("Figure", "Value"), rows, frozenset({1})), asked)


def _declared_rows(manifest: Mapping[str, Any], decided: Sequence[Verdict]) -> Iterator[tuple[str, str]]:
    """Yield what was declared, and what is missing of what the policy demands or a report always has."""
    declared, demanded = manifest.get("declaration", {}), manifest["policy"]["required"].get("declaration", ())
    for name, words in DECLARED.items():
        if name == FRACTION and name in declared:
            yield words, f"{percent(declared[name])}{_chance_without_knowing(declared[name], decided)}"
        elif name in declared or name in demanded or name in ALWAYS_STATED:
            yield words, str(declared.get(name, MISSING if name in demanded else NOT_STATED))


def _chance_without_knowing(fraction: float, decided: Sequence[Verdict]) -> str:
    """Say how much less is known by somebody who does not know that a person is in the source; no limit is on that."""
    values = {verdict.metric: verdict.value for verdict in decided}
    chance, smallest = values.get("max_reidentification_probability"), values.get("smallest_class")
    chance = 1 / smallest if chance is None and smallest else chance
    if chance is None:
        return ""
    return (
        f": whoever does not know that a person is in the source names the right record with a chance of at most "
        f"{number(chance * fraction)}, instead of {number(chance)}"
    )


def finding(verdict: Verdict) -> str:
    """Return the finding of a verdict, in words for people who do not know the names of the figures."""
    if verdict.metric is None:
        return verdict.reason
    reason = verdict.reason.replace(verdict.metric, in_words(verdict.metric), 1)
    share = _share_concerned(verdict)
    return f"{share}: {reason}" if share else reason


def concerns_most(failed: Sequence[Verdict]) -> str:
    """Describe the failed verdicts that concern more than half of the records; empty if there are none."""
    shares = [_share_concerned(each) for each in failed if each.value is not None and each.value > MOST_CONCERNED]
    return "; ".join(filter(None, shares))


def _share_concerned(verdict: Verdict) -> str:
    words = "" if verdict.metric is None else METRICS[verdict.metric].concerned
    return "" if not words or verdict.value is None else f"{percent(verdict.value, verdict.limit)} {words}"


def origins_of_limits(policy: Mapping[str, Any], limited: Sequence[str]) -> list[tuple[str, str]]:
    """Return the origin of the limit on each figure: a preset and its source, or only this release."""
    use_case, changed = policy["use_case"], set(policy["changes"])
    preset = {limit.metric for limit in Policy.for_use_case(use_case).limits} if use_case in USE_CASES else set()
    return [(in_words(metric), _origin(metric, use_case, is_preset=metric in preset - changed)) for metric in limited]


def _origin(metric: str, use_case: str | None, *, is_preset: bool) -> str:
    if use_case is None or not is_preset:
        return "set for this release"
    words, k = in_words(use_case), SMALLEST_CLASSES[use_case]
    sources = {
        "privacy_risk_score": "PETsARD's documentation of mpUCCs, risk threshold recommendations",
        "smallest_class": f"the right person out of {k} is picked with a probability of at most 1/{k}",
        "max_reidentification_probability": f"follows from the smallest class: 1/{k}",
        "share_in_homogeneous_classes": "no sensitive value should be certain; a warning under this preset"
        if use_case in CERTAIN_VALUES_WARN
        else f"a sensitive value must not be certain more often than the right person is picked, 1/{k}",
        "share_certain_by_rows": "as in homogeneous classes, but for somebody who knows "
        + ("all rows of a person" if KNOWN_ROWS[use_case] == "all" else f"{KNOWN_ROWS[use_case]} rows of a person"),
        "rare_values_released": f"a value that fewer than {k} people share may show that one of them is in the source",
        "leakage_detected": "beyond chance, originals must not be revealed more than people the synthesizer never saw",
    }
    source = sources.get(metric)
    return f"preset {words}" + ("" if source is None else f": {source}")


def rated_worse(manifest: Mapping[str, Any], decided: Sequence[Verdict]) -> str:
    """Say why a policy admits a score that is rated worse on a general scale; empty if it is not."""
    score, use_case = manifest["figures"].get(MPUCC, {}).get("privacy_risk_score"), manifest["policy"]["use_case"]
    if rating_agrees(score, use_case):
        return ""
    own = [finding(each) for each in decided if each.metric == "privacy_risk_score"] or ["it has no limit on the score"]
    return (
        f"On a general scale, which knows no policy, the privacy risk score is rated: {rate_score(score)}. The policy "
        f"decides instead: {own[0]}."
    )


def _best_change(material: ReportMaterial) -> str:
    """Say which measured change of a column or two lowers the identification rate most; empty if none does."""
    changes = material.column_changes
    measured = [] if changes is None else changes.dropna(subset="difference").to_dict("records")
    best = min(measured, key=lambda each: float(each["difference"]), default=None)
    if best is None or best["difference"] >= 0:
        return ""
    rate, before = percent(best["identification_rate"]), percent(best["identification_rate"] - best["difference"])
    what = f"{best['column']} {best['change']}"
    return f"Measured on these records, with {what}: {rate} of them identified, instead of {before}"


def _limit(verdict: Verdict, manifest: Mapping[str, Any], *, has_sensitive: bool) -> dict[str, str]:
    """Return a limit and its outcome, for the template."""
    shown, metric = outcome_of(verdict, manifest), METRICS[str(verdict.metric)]
    word = {"good": "met", "warning": "not met: warning", "refused": "not met: refused", "waived": "not met: waived"}
    named = shown._asdict() | {"word": word[shown.kind], "meaning": in_words(metric.meaning)}
    if metric.needs_sensitive and not has_sensitive:
        named |= {"found": "no sensitive column", "word": "does not apply"}
    return named


def _figure_tables(figures: Mapping[str, Any], bounds: Mapping[str, float]) -> Iterator[_Table]:
    """Yield a table of the plain figures of each assessment, in their order."""
    for assessment, own in figures.items():
        rows = [
            (f"{in_words(name)}, bits", number(value / log(2)))
            if name in IN_NATS and isinstance(value, int | float)
            else (FIGURES_IN_WORDS.get(name, in_words(name)), _figure(name, value, bounds))
            for name, value in own.items()
            if isinstance(value, int | float | str)
        ]
        if rows:
            yield _Table(f"Figures: {in_words(assessment)}", ("Figure", "Value"), rows, frozenset({1}))


def _worth_tables(figures: Mapping[str, Any]) -> Iterator[_Table]:
    """Yield the worth of the records by figure, and the columns and pairs that lost most."""
    judged = [name.removesuffix("_lower") for name in figures if name.endswith("_lower")]
    if judged:
        yield _Table(
            "Worth: 1 as the originals, 0 as shuffled columns (single columns: as uniform ones; by group: as if the "
            "groups' column were shuffled)",
            ("Figure", "Value", "95 % interval"),
            [
                (
                    in_words(name),
                    f"{figures[name]:.3f}",
                    f"{figures[f'{name}_lower']:.3f} to {figures[f'{name}_upper']:.3f}",
                )
                for name in judged
            ],
            frozenset({1, 2}),
        )
    for key, caption, names in (
        ("worst_pairs", "Pairs of columns whose relation lost most", ("Column", "Other column")),
        ("worst_columns", "Columns whose prediction from the others lost most", ("Column",)),
    ):
        rows = [(*row[:-1], f"{row[-1]:.3f}") for row in figures.get(key, ())]
        if rows:
            yield _Table(caption, (*names, "Lost of the figure"), rows, frozenset({len(names)}))


def _sensitive_table(figures: Mapping[str, Any], bounds: Mapping[str, float]) -> _Table:
    by_column = figures.get(STATISTICS, {}).get("sensitive", {})
    names = list(dict.fromkeys(name for own in by_column.values() for name in own))
    return _Table(
        "Sensitive columns: the worst class of each",
        ("Column", *map(in_words, names)),
        [
            (column, *(_figure(METRIC_OF_COLUMN.get(name, name), own.get(name), bounds) for name in names))
            for column, own in by_column.items()
        ],
        frozenset(range(1, len(names) + 1)),
    )


def _measured_tables(
    figures: Mapping[str, Any], material: ReportMaterial, bounds: Mapping[str, float]
) -> Iterator[_Table]:
    """Yield what was measured in detail; a table without rows is not shown."""
    changes = material.column_changes
    if changes is not None and len(changes):
        rate, score = "identification_rate", "privacy_risk_score"
        yield _Table(
            "Identification rate if one or two columns were dropped or coarsened, for those with the largest effect: "
            + "{n_measured} of {n_changes} changes measured".format_map(changes.attrs),
            ("Column", "In combinations of", "Change", "Identification rate", "Difference", "Privacy risk score"),
            [
                (
                    row["column"],
                    f"{percent(row['share_of_identified'])} of the identified",
                    f"{row['change']}: {row['how']}",
                    "not measured" if pd.isna(row[rate]) else percent(row[rate], bounds.get(rate)),
                    "not measured" if pd.isna(row["difference"]) else f"{100 * row['difference']:+.3g} points",
                    "" if pd.isna(row[score]) else _figure(score, row[score], bounds),
                )
                for row in changes.to_dict("records")
            ],
            frozenset({3, 4, 5}),
        )
    losses = figures.get(STATISTICS, {}).get("certainty_penalty", {})
    yield _Table(
        "Information loss by column (0 %: unchanged, 100 %: no information left)",
        ("Column", "Information loss"),
        [(name, percent(loss)) for name, loss in sorted(losses.items(), key=lambda item: -item[1])],
        frozenset({1}),
    )
    rare = figures.get(RARE_VALUES, {"people_per_value": 0})
    by_column = sorted(rare.get("by_column", {}).items(), key=lambda item: -item[1]["n_values"])[:MOST_ROWS]
    yield _Table(
        f"Text and category values shared by fewer than {rare['people_per_value']:,} people, by column",
        ("Column", "Values", "Records"),
        [(name, _text(own["n_values"]), _text(own["n_records"])) for name, own in by_column if own["n_values"]],
        frozenset({1, 2}),
    )
    yield _Table(
        "Rules of the contract, and the records that violate them",
        ("Rule", "As written", "Originals", "Control", "Synthetic records"),
        [
            (name, *(_text(own.get(key, "")) for key in ("rule", "original", "control", "synthetic")))
            for name, own in figures.get(RULES, {}).get("by_rule", {}).items()
        ],
        frozenset({2, 3, 4}),
    )
    yield _Table(
        "Values guessed right from the nearest synthetic record. If both sides have equal shares, this is statistics; "
        "coarsen the column if the share is too large",
        ("Column", "Of originals", "Of the control", "Difference, 95 % interval"),
        [
            (row["column"], percent(row["original"]), percent(row["control"]), _interval(row["low"], row["high"]))
            for row in figures.get(DISCLOSURE, {}).get(GUESSED, ())
        ],
        frozenset({1, 2, 3}),
    )
    lacked = sorted(figures.get(SEMANTIC, {}).get(LACKED_COLUMNS, {}).items(), key=lambda item: -item[1])[:MOST_ROWS]
    yield _Table(
        "Records above the limit on the semantic risk, by the column of the attribute whose absence shows them",
        ("Column", "Records"),
        [(column, f"{n:,}") for column, n in lacked if n],
        frozenset({1}),
    )
    if material.attribute_advice is not None:
        advice = material.attribute_advice.dropna(axis="columns", how="all").head(MOST_ROWS)
        yield _Table(
            "Semantic risk if columns were forgotten",
            tuple(map(in_words, advice.columns)),
            [tuple(_figure(str(name), row[name], bounds) for name in row) for row in advice.to_dict("records")],
            frozenset(i for i, name in enumerate(advice.columns) if name not in ("columns", "reason")),
        )


def _links_table(figures: Mapping[str, Any]) -> Iterator[_Table]:
    found = figures.get("links", {}).get("found", ())
    if found:
        yield _Table(
            "Released values that show which rows are of one person",
            ("Columns", "How", "Rows concerned", "Pairs of one person", "Why they are released, and who decided"),
            [
                (
                    ", ".join(each["columns"]),
                    each["how"] if each["if_people"] is None else f"{each['how']}, of one {each['if_people']}",
                    percent(each["share"]),
                    percent(each["precision"]),
                    "; ".join(dict.fromkeys(reason or NOT_DECLARED for reason in each["links_rows"].values())),
                )
                for each in found
            ],
            frozenset({2, 3}),
        )


def _interval(low: float | None, high: float | None) -> str:
    return "unknown" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def _unknown_table(settings: Mapping[str, Any]) -> Iterator[_Table]:
    unknown_values = settings.get(MPUCC, {}).get("unknown_values", {})
    if unknown_values:
        words = {(True, False): "blind", (False, True): "invented: not compared", (False, False): "compared"}
        yield _Table(
            "Values that nobody has: copies in another notation would have many of them",
            ("Column", "Of the synthetic values", "Of people's, if they were others", "Finding"),
            [
                (name, percent(own["unknown"]), percent(own["expected"]), words[own["blind"], own["invented"]])
                for name, own in unknown_values.items()
            ],
            frozenset({1, 2}),
        )


def _settings_tables(settings: Mapping[str, Any]) -> Iterator[_Table]:
    for stage, own in settings.items():
        named = own if isinstance(own, Mapping) else {stage: own}
        rows = [(in_words(name), _setting(name, value)) for name, value in named.items()]
        if rows:
            yield _Table(f"Settings: {in_words(stage)}", ("Setting", "Value"), rows)


def _setting(name: str, value: Any) -> str:
    """Format a setting with all its digits; long settings, and those for programs, are only in the manifest."""
    text = _text(value, _exactly)
    return "see manifest.json" if name in HIDDEN_SETTINGS or len(text) > LONGEST_SETTING else text


def _policy_table(policy: Mapping[str, Any]) -> _Table:
    rows = [("use case", _text(policy["use_case"]))]
    if policy["changes"]:
        rows.append(("changed from the use case", changes_in_words(policy)))
    # If it is not set, the figures have the number of people required.
    rows += [
        (f"required: {in_words(name)}", _text(value, _exactly))
        for name, value in policy["required"].items()
        if name != "people_per_value" or value is not None
    ]
    known = "; ".join(", ".join(columns) for columns in policy["known"]) or "all quasi-identifiers"
    rows += [
        ("columns that an attacker knows", known),
        ("rows of a person that an attacker knows", policy["known_rows"]),
    ]
    return _Table("The policy", ("Setting", "Value"), [(name, str(value)) for name, value in rows])


def _columns_table(columns: Sequence[Mapping[str, Any]]) -> _Table:
    names = list(dict.fromkeys(name for column in columns for name in column if name != "column"))
    rows = [(column["column"], *(_text(column.get(name, "")) for name in names)) for column in columns]
    return _Table("Columns of the release and their roles", ("Column", *(in_words(name) for name in names)), rows)


def _unit_table(unit: Mapping[str, Any]) -> _Table:
    rows = [
        (
            each["column"],
            each["said"],
            each[NOT_A_PERSON] or (NOT_DECLARED if each["kind"] in BLOCKING else "not required"),
        )
        for each in unit.get("findings", ())
    ]
    columns = ("Column", "Finding", "What its values number, and who decided")
    return _Table("Columns of the source whose values repeat like people", columns, rows)


def _leaving_table(leaving: Sequence[Mapping[str, Any]]) -> _Table:
    places = ("identifying", "nearly_unique", "ordinary")
    first = sorted(leaving, key=lambda each: (each["leaves_as_is"] is None, places.index(each["finding"])))
    rows = [
        (
            each["column"],
            each["role"],
            percent(each["share_distinct"]),
            percent(each["share_alone"]),
            ", ".join(each["reads_like"]) or in_words(each["finding"]),
            each["leaves_as_is"] or ("not required" if each["finding"] == "ordinary" else NOT_DECLARED),
        )
        for each in first
    ]
    reason = "Why it is released, and who decided"
    names = ("Column", "Role", "Distinct values", "People with a unique value", "Looks like", reason)
    return _Table("Columns that are released unchanged", names, rows, frozenset({2, 3}))


def _refusals_table(refusals: Sequence[Refusal]) -> _Table:
    rows = [(_moment(each.refused_at), "; ".join(each.failed)) for each in refusals]
    return _Table("Earlier runs in which this release was refused", ("When", "Found"), rows)


def _files_table(files: Mapping[str, Any]) -> _Table:
    rows = [(name, f"{entry['bytes']:,}", entry["sha256"]) for name, entry in files.items()]
    return _Table("Data files", ("File", "Bytes", "SHA-256"), rows, frozenset({1}))


def _waivers_table(waivers: Sequence[Mapping[str, Any]]) -> _Table:
    shown = ("metric", "limit", "figure", "person", "reason", "signed_on", "expires_on", "file")
    rows = [tuple(_text(waiver[name], _exactly) for name in shown) for waiver in waivers]
    return _Table("Waivers under which these records were released", tuple(map(in_words, shown)), rows)


def _moment(text: str) -> str:
    """Format a time for people; any other text stays unchanged."""
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return text


def _figure(name: str, value: Any, bounds: Mapping[str, float]) -> str:
    """Format a figure with the digits that show on which side of its limit it is."""
    if name in METRICS and METRICS[name].is_yes_no:
        return yes_or_no(value)
    bound = bounds.get(name)
    return _text(value) if bound is None else _text(value, lambda figure: against(figure, bound)[0])


def _exactly(value: float) -> str:
    return in_full(value, grouped=True)


def _text(value: Any, write: Callable[[float], str] = number) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return "; ".join(_text(each, write) for each in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_nested(own, write)}" for name, own in value.items()) or "none"
    if value is None or pd.isna(value):
        return "none"
    return write(value) if isinstance(value, int | float) else str(value)


def _nested(value: Any, write: Callable[[float], str]) -> str:
    return f"({_text(value, write)})" if isinstance(value, Mapping) and value else _text(value, write)
