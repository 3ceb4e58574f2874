"""Other tools, each run with the interpreter of an environment of its own."""

import json
import subprocess
from pathlib import Path
from typing import Any


def answer_of(python: str | Path, script: str | Path, *words: object) -> Any:
    """Run a script with an interpreter, and return the JSON of the last line that it prints."""
    found = subprocess.run([str(python), str(script), *map(str, words)], capture_output=True, text=True)
    if found.returncode:
        raise SystemExit(f"{' '.join([Path(script).name, *map(str, words)])} failed:\n{found.stderr[-2000:]}")
    return json.loads(found.stdout.splitlines()[-1])


def metadata_of(table: Any) -> dict[str, Any]:
    """Return the metadata that SDMetrics asks for, of a table."""
    kinds = {name: "numerical" if table[name].dtype.kind in "if" else "categorical" for name in table}
    return {"columns": {name: {"sdtype": kind} for name, kind in kinds.items()}}
