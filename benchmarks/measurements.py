"""The measurements of one run of a benchmark, and the JSON file that keeps them: ``results/<version>/<name>.json``."""

import argparse
import json
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).resolve().parent / "results"
PACKAGES = ("numba", "numpy", "pandas", "scipy")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Let a benchmark be asked to keep its figures."""
    parser.add_argument(
        "--json",
        nargs="?",
        type=Path,
        const=RESULTS,
        metavar="FILE",
        help="keep options, machine, versions, figures and bars as JSON; without FILE in benchmarks/results/<version>",
    )


def figure_name(*words: str) -> str:
    """Return the name of a kept figure."""
    name = "_".join(words)
    for old, new in ((" %", "_percent"), (",", ""), (".", "_"), (" ", "_")):
        name = name.replace(old, new)
    return name.lower()


class Bar(NamedTuple):
    """A bar in words, whether it is met, and whether it is known that it is not."""

    words: str
    is_met: bool
    is_known_missed: bool


class Measurements:
    """Figures and bars of one run.

    Parameters
    ----------
    name : str
        The benchmark.
    options : argparse.Namespace
        Its options; ``json`` is the place of the figures. Paths are not kept.
    """

    def __init__(self, name: str, options: argparse.Namespace) -> None:
        self.name, self.options = name, options
        self.figures: dict[str, float] = {}
        self.bars: list[Bar] = []

    def keep(self, **figures: float) -> None:
        """Keep figures by name, with the unit in the name; a name may be used once."""
        twice = sorted(self.figures.keys() & figures)
        if twice:
            raise ValueError(f"These figures are already kept: {twice}.")
        for name, value in figures.items():
            self.figures[name] = value if isinstance(value, int) else float(f"{value:.4g}")

    def check(self, words: str, is_met: bool, is_known_missed: bool = False) -> None:
        """Remember a bar, in words with its limit; one that is known to be missed does not set the exit code."""
        self.bars.append(Bar(words, bool(is_met), is_known_missed))

    def to_json(self) -> dict[str, object]:
        """Return all that is kept."""
        options = {name: value for name, value in vars(self.options).items() if not isinstance(value, Path)}
        return {
            "benchmark": self.name,
            "version": _own_version(),
            "measured_on": time.strftime("%Y-%m-%d"),
            "machine": {"processor": _processor(), "cores": os.cpu_count(), "system": platform.system()},
            "versions": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
            "options": {name: value for name, value in options.items() if name != "json"},
            "figures": self.figures,
            "bars": [
                {"bar": each.words, "met": each.is_met} | ({"known_missed": True} if each.is_known_missed else {})
                for each in self.bars
            ],
        }

    def save(self) -> None:
        """Write the file if the run was asked to."""
        path = self.options.json
        if path is None:
            return
        if path == RESULTS:
            path = RESULTS / _own_version() / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
        print(f"kept in {path.name}")

    def finish(self) -> int:
        """Print the bars, write the file, and return the exit code: 1 if a bar was missed."""
        print()
        for each in self.bars:
            known = " (known)" if each.is_known_missed and not each.is_met else ""
            print(f"{'met   ' if each.is_met else 'MISSED'}  {each.words}{known}")
        self.save()
        return 0 if all(each.is_met or each.is_known_missed for each in self.bars) else 1


def _own_version() -> str:
    """Return the version of the sources: that of an editable installation may be one from before."""
    from privacy_assets import __version__

    return __version__


def _processor() -> str:
    """Return the name of the processor, as Linux knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
