"""Write the tables of fields and metrics into their pages as the documentation is built; mkdocs.yml names this file."""

import re
from typing import Any

from privacy_assets.orchestration.component.reference import TABLES

PLACE = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end -->\n", flags=re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace what readers of the source see by the tables."""
    return PLACE.sub(lambda place: TABLES[place[1]](), markdown)
