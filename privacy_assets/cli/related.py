"""The stages without Dagster on related tables: `check` and `assess` with `--child`."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacy_assets.errors import InvalidSettingError, InvalidTableError

LINKS = ("key", "order", "of", "own_key")

if TYPE_CHECKING:
    import pandas as pd

    from privacy_assets.contract.related import RelatedTables
    from privacy_assets.contract.related_contracts import RelatedContracts
    from privacy_assets.drafting.draft import ContractDraft


def files_of_children(
    given: Sequence[Sequence[str]], declared: Mapping[str, Any], n_files: int
) -> dict[str, list[Path]]:
    """Return the files of each declared child; the first is named after its child, or has its name before a `=`."""
    found = {}
    for first, *others in given:
        name, is_named, file = first.partition("=")
        found[name if is_named else Path(first).stem] = [Path(own) for own in (file if is_named else first, *others)]
    wrong = [name for name, files in found.items() if len(files) != n_files]
    if set(found) != set(declared) or len(found) != len(given) or wrong:
        what = "its file" if n_files == 1 else "the files with its original, synthetic and control rows"
        raise InvalidSettingError(
            f"The contract has the children {list(declared)}, and {len(given)} are given: {list(found)}. Expected for "
            f"each of them once `--child` with {what}; if the first is not called as the child, NAME=FILE. Nothing was "
            "done."
        )
    return found


def drafted_release(files: Sequence[str], *, brief: bool) -> tuple[dict[str, str], "dict[str, ContractDraft]"]:
    """Return the fields in YAML of a release of people, whose file comes first, and their rows; and the drafts."""
    import re
    from textwrap import indent

    from privacy_assets.contract.related import PEOPLE
    from privacy_assets.drafting.related import draft_related
    from privacy_assets.drafting.yaml_text import entry_in_yaml
    from privacy_assets.orchestration.component.drafted import drafted_file, fields_in_yaml

    names = [PEOPLE, *(re.sub(r"\W|^(?=\d)", "_", Path(file).stem) for file in files[1:])]
    if len(set(names)) < len(names):
        raise InvalidSettingError(
            f"After their files, the tables would be called {names}. Expected different names, and {PEOPLE!r} only for "
            "the first. Rename the files. Nothing was drafted."
        )
    alone = {name: drafted_file(file, Path.cwd()) for name, file in zip(names, files, strict=True)}
    # Drafted again, as only all tables show whose the rows are.
    drafts, links = draft_related(
        {name: own.read(None) for name, own in alone.items()}, {name: own.draft for name, own in alone.items()}
    )
    lines = []
    for name, link in links.items():
        told = {"key": link.why_key} | ({} if link.order is None else {"order": link.why_order})
        own = {"source": alone[name].source} | ({} if link.of == PEOPLE else {"of": link.of})
        own |= {key: getattr(link, key) for key in ("key", "order", "own_key") if getattr(link, key) is not None}
        lines.append(f"  {entry_in_yaml(name, {})[:-2].rstrip()}")
        lines += [
            f"    {entry_in_yaml(key, value)}{f'  # decide: {told[key]}' if key in told else ''}"
            for key, value in own.items()
        ]
        lines += [f"    # No `order`: {link.why_order}."] if link.order is None else []
        lines += ["    contract:", indent(drafts[name].to_yaml(brief=brief), "      ").rstrip()]
    fields = fields_in_yaml(alone[PEOPLE].source, drafts[PEOPLE], {}, brief=brief)
    split = "# Of related tables there is no forecast.\nsplit: {train_fraction: 0.5}"
    return fields | {"split": split, "children": "\n".join(["children:", *lines])}, drafts


def contracts_of(contract: Any, children: Mapping[str, Any]) -> "RelatedContracts":
    """Return the contracts of all tables, with the children as a release in YAML has them."""
    from privacy_assets.contract.related_contracts import Linked, RelatedContracts

    linked = {}
    for name, own in children.items():
        if not isinstance(own, Mapping) or not {"contract", "key"} <= set(own):
            raise InvalidSettingError(
                f"The child {name!r} of the contract lacks `contract` or `key`. Expected both. Nothing was done."
            )
        linked[name] = Linked(own["contract"], **{each: own[each] for each in LINKS if each in own})
    return RelatedContracts.of(contract, linked)


def check_related(
    contracts: "RelatedContracts", tables: "Mapping[str, pd.DataFrame]"
) -> tuple[dict[str, Any], list[str]]:
    """Check tables against their contracts and each other; return the figures, and what is said."""
    from privacy_assets.contract.related import columns_that_repeat_the_person
    from privacy_assets.disclosure.declared_unit import decide_on_unit, examine_unit
    from privacy_assets.errors import ContractError

    figures: dict[str, Any] = {
        "admitted": False,
        "unit": {},
        "records": {name: len(table) for name, table in tables.items()},
        "columns": contracts.describe(),
        "failures": [],
    }
    try:
        checked = contracts.check(tables)
        related = contracts.related(checked)
    except InvalidTableError as error:
        failures = error.failures if isinstance(error, ContractError) else ()
        figures["failures"] = [dict(zip(("column", "check", "count"), each, strict=True)) for each in failures]
        return figures, [str(error)]
    said = [f"All tables keep their contracts, and every row has its person: {related!r}."]
    for name, table in related.by_person(checked).items():
        own = contracts.tables[name]
        unit = decide_on_unit({name: examine_unit(table, own)}, own, person=contracts.person_of(name))
        figures["unit"][name] = unit._asdict()
        said += [f"{name}: {words}." for words in (unit.reason, unit.doubts) if words]
        said += [unit.advice] if unit.advice else []
    repeating = columns_that_repeat_the_person(related)
    said += [
        f"{name}: {columns} never differ within a person. Move them to the people, or synthetic rows let them drift."
        for name, columns in repeating.items()
    ]
    is_admitted = all(unit["passed"] for unit in figures["unit"].values())
    return {**figures, "admitted": is_admitted, "columns_that_repeat_the_person": repeating}, said


def sides_of(
    contracts: "RelatedContracts", sides: "Sequence[Mapping[str, pd.DataFrame]]"
) -> "tuple[RelatedTables, RelatedTables, RelatedTables]":
    """Admit original, synthetic and control tables, so that the people of originals and control are told apart."""
    import numpy as np
    import pandas as pd

    from privacy_assets.contract.related import PEOPLE, RelatedTables

    original, synthetic, control = sides
    for own in (original, control):
        for name, table in own.items():
            # Concatenating them would give the columns of both.
            contracts.tables[name].require_known_columns(table)
    both = {name: pd.concat([own, control[name]], ignore_index=True) for name, own in original.items()}
    real = contracts.related(contracts.check(both))
    is_original = np.arange(len(real.people)) < len(original[PEOPLE])
    for name, whose in real.whose.items():
        n_strange = int((is_original[whose] != (np.arange(len(whose)) < len(original[name]))).sum())
        if n_strange:
            raise InvalidTableError(
                f"{n_strange:,} rows of {name!r} are among the originals and of a person of the control, or the other "
                "way round. Expected the rows of each person on one side. Nothing was assessed."
            )
    # Its order is checked once its contract has given it a type.
    unordered = {name: each.child(synthetic[name], ordered=False) for name, each in contracts.links.items()}
    made = contracts.admit_synthetic(RelatedTables(synthetic[PEOPLE], unordered, contracts.person))
    taken = (real.take(np.flatnonzero(own)) for own in (is_original, ~is_original))
    first, last = map(contracts.as_compared, taken)
    return first, contracts.as_compared(made), last


def assess_related(
    contracts: "RelatedContracts", sides: "Sequence[Mapping[str, pd.DataFrame]]", progress: Any
) -> tuple[dict[str, Any], list[str]]:
    """Search the views of related tables for mpUCCs, and test all of them for disclosure at once."""
    from privacy_assets.disclosure.assess import assess_disclosure
    from privacy_assets.mpucc.settings import MpuccSettings
    from privacy_assets.mpucc.views import assess_views
    from privacy_assets.pipeline.related import prepared_views

    tables = sides_of(contracts, sides)
    found = assess_views(prepared_views(contracts, tables), MpuccSettings(), lambda _: progress.tell)
    disclosure = assess_disclosure(*tables, progress=progress.tell)
    figures = {
        "views": found.figures,
        "incomparable": found.settings["foreign"],
        "disclosure": {"scores": dict(disclosure.scores), "summary": disclosure.summary()},
    }
    return figures, [disclosure.summary()]


def add_children(command: argparse.ArgumentParser, meaning: str) -> None:
    """Add the option for files of rows that belong to the people."""
    command.add_argument("--child", nargs="+", action="append", default=[], metavar="FILE", help=meaning)
