"""Decisions on released values that show which rows are of one person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from privacy_assets.anonymity.links import Link
from privacy_assets.disclosure.leaving_columns import Decision
from privacy_assets.display.numbers import percent

LINKS_CHECK: Final = "no_released_column_links_the_rows_of_a_person"
USED_CHECK: Final = "every_column_with_links_rows_links_rows"
LINKS_ADVICE: Final = (
    "Leave such a column out (role: direct_identifier); a random number of each row may stay, and is the key for "
    "other_releases. Or make it a quasi-identifier, or release one row per person. Or keep it, and state in the "
    "contract why and who decided (links_rows): then people are counted for readers who know several rows of a person."
)
ORDER_ADVICE: Final = "An order cannot be kept so: give such rows random numbers."
KNOWN_ROWS_ADVICE: Final = (
    "Leave out the columns with links_rows. Only classes of hundreds of people withstand somebody who knows several of "
    "the rows that they link."
)
PARTITIONS_ADVICE: Final = (
    "Leave such a column out (role: direct_identifier), or give each row of each partition a new random number."
)
SYNTHETIC_ADVICE: Final = (
    "Give the column with the synthetic person of each row as `person` of the external records, which needs links_rows "
    "in the contract if it is to be released. Or leave the column out (role: direct_identifier), or coarsen it until "
    "each of its values is of several people."
)
USED_ADVICE: Final = "Remove links_rows: a reason that is not needed today could excuse another table."
MOST_LINKS_SAID: Final = 20
_HOW: Final = {
    "alone": "rows with one value",
    "together": "rows with the same values",
    "across": "rows of which one has the other's value in the other column",
    "in order": "neighbors in the order of its values",
}


class LinkEvidence(NamedTuple):
    """What was found in exactly the table that would be released.

    ``whose`` says why no row has another of its person; it is empty if rows were compared. ``links`` are those of the
    people that the contract declares, ``if_people`` those as if a column that it calls no person numbered the people.
    ``published_before`` has columns with a value of its own in almost every row, and the share of the rows whose value
    other partitions published before; ``unnamed`` columns that number people in the source, and repeat in synthetic
    rows of which nobody said whose they are. If ``is_tested``, the rows are of synthetic people, whose key was used in
    the test of disclosure that decides: whoever can link such rows does what that test did, so links are only shown.
    """

    whose: str = ""
    links: Sequence[Link] = ()
    if_people: Mapping[str, Sequence[Link]] = {}
    published_before: Mapping[str, float] = {}
    is_tested: bool = False
    unnamed: Sequence[str] = ()

    @property
    def found(self) -> list[tuple[Link, str]]:
        """All links, each with the column that numbers the people, or nothing."""
        every = {"": self.links, **self.if_people}
        return [(link, column) for column, links in every.items() for link in links if link.is_found]

    def to_json(self, declared: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return the links for the manifest, which publishes the reasons."""
        return [
            {
                **{name: value for name, value in link._asdict().items() if name != "is_found"},
                "columns": list(link.columns),
                "if_people": column or None,
                "links_rows": {name: declared.get(name) for name in link.columns},
            }
            for link, column in self.found
        ]


def decide_on_links(evidence: LinkEvidence | None, declared: Mapping[str, str]) -> Iterator[tuple[str, Decision]]:
    """Yield the decision on links without a reason in the contract, and on reasons without a link if there are any."""
    if evidence is None:
        reason = "it could not be measured which released values link the rows of a person"
        yield LINKS_CHECK, Decision(False, reason, "Materialize from the source on.")
        return
    if evidence.found and evidence.is_tested:
        said = (
            f"released values link the rows of synthetic people, as the test of disclosure did: {_said(evidence.found)}"
        )
        yield LINKS_CHECK, Decision(True, said)
        return
    if evidence.unnamed:
        said = f"{list(evidence.unnamed)} number the people of the source and repeat in the synthetic rows, whose "
        yield LINKS_CHECK, Decision(False, f"{said}people are not known", SYNTHETIC_ADVICE)
        return
    if evidence.published_before:
        shares = ", ".join(
            f"{name!r} ({percent(share)} of the rows)" for name, share in evidence.published_before.items()
        )
        said = f"values that other partitions published before link the rows of a person: {shares}"
        yield LINKS_CHECK, Decision(False, said, PARTITIONS_ADVICE)
        return
    refused = [(link, column) for link, column in evidence.found if not link.is_among(declared)]
    advice = LINKS_ADVICE + (f" {ORDER_ADVICE}" if any(link.how == "in order" for link, _ in refused) else "")
    if refused:
        said = f"released values link the rows of a person ({len(refused)}): {_said(refused)}"
        yield LINKS_CHECK, Decision(False, said, advice)
    elif evidence.found:
        names = dict.fromkeys(name for link, _ in evidence.found for name in link.columns)
        reasons = "; ".join(f"{name!r} ({declared[name]})" for name in list(names)[:MOST_LINKS_SAID])
        said = f"the contract has a reason for every released column that links the rows of a person: {reasons}"
        yield LINKS_CHECK, Decision(True, said)
    else:
        yield LINKS_CHECK, Decision(True, evidence.whose or "no released values link the rows of a person")
    if declared:
        needed = {name for link, _ in evidence.found for name in link.columns}
        unused = [name for name in declared if name not in needed]
        said = f"the contract has links_rows for {unused}, which link no rows" if unused else "each of them does"
        yield USED_CHECK, Decision(not unused, said, USED_ADVICE if unused else "")


def remark_on_rows(scores: Mapping[str, Any], k: int) -> str:
    """Name the fewest rows, from two, that leave fewer than k people; empty if none do, or no released rows are linked.

    ``scores`` are those of a re-identification assessment.
    """
    by_rows = [(int(n_rows), fewest) for n_rows, fewest in scores.get("fewest_candidates_by_rows", {}).items()]
    n_rows, fewest = min(((n_rows, fewest) for n_rows, fewest in by_rows if fewest < k), default=(1, k))
    if n_rows == 1:
        return ""
    n_open = scores.get("n_people_not_proven", 0)
    proven = f"; the search ended undecided for {n_open:,} people, for whom the worst is assumed" if n_open else ""
    people = "1 person" if fewest == 1 else f"{fewest:,} people"
    return f"c_{n_rows} = {fewest}: somebody who knows {n_rows} rows of a person is left with {people}{proven}"


def _said(links: Sequence[tuple[Link, str]]) -> str:
    said = []
    for link, column in links[:MOST_LINKS_SAID]:
        names = " and ".join(repr(name) for name in link.columns)
        person = f"{column!r} (not_a_person)" if column else "person"
        said.append(
            f"{names} ({_HOW[link.how]} are of one {person} in {percent(link.precision)} of the pairs, which concerns "
            f"{percent(link.share)} of the rows)"
        )
    n_others = len(links) - MOST_LINKS_SAID
    return "; ".join(said) + (f"; and {n_others} more" if n_others > 0 else "")
