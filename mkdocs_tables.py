"""Write tables into their pages as the documentation is built; mkdocs.yml names this file."""

import re
import sys
from pathlib import Path
from typing import Any

from privacy_assets.orchestration.component import reference

sys.path.insert(0, str(Path(__file__).parent))
try:
    from benchmarks import result_tables
finally:
    sys.path.remove(str(Path(__file__).parent))

PLACE = re.compile(r"<!-- generated: (\w+) -->\n.*?<!-- end -->\n", flags=re.DOTALL)
TABLES = {**reference.TABLES, **result_tables.TABLES}


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace what readers of the source see by the tables."""
    return PLACE.sub(lambda place: TABLES[place[1]](), markdown)
