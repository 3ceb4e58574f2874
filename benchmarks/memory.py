"""Peak memory of this process, for the benchmarks; Linux only.

``resource.getrusage`` does not serve: a child process starts with the peak of its parent, and a peak cannot be reset.
"""

import re
import threading
from pathlib import Path
from typing import Self

PROCESS = Path("/proc/self")


def start_peak() -> float:
    """Let the peak begin at the present memory of the process; return it in MiB."""
    (PROCESS / "clear_refs").write_text("5")
    return peak_mib()


def peak_mib() -> float:
    """Peak memory of the process since it started, or since :func:`start_peak`, in MiB."""
    return _status("VmHWM")


def _status(name: str) -> float:
    found = re.search(rf"{name}:\s+(\d+) kB", (PROCESS / "status").read_text())
    if found is None:
        raise SystemExit(f"/proc/self/status does not tell {name}. Expected Linux 4.5 or later.")
    return int(found[1]) / 1024


class OwnPeak:
    """Peak memory of the process without mapped files in a ``with`` statement, read every 10 milliseconds.

    Attributes
    ----------
    base, peak : float
        Memory at the beginning, and at the peak, in MiB.
    """

    def __init__(self) -> None:
        self.base = self.peak = _status("RssAnon")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.01):
            self.peak = max(self.peak, _status("RssAnon"))
