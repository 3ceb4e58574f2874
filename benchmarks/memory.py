"""Peak memory of this process, for the benchmarks; Linux only.

``resource.getrusage`` does not serve: a child process starts with the peak of its parent, and a peak cannot be reset.
"""

import re
from pathlib import Path

PROCESS = Path("/proc/self")


def start_peak() -> float:
    """Let the peak begin at what the process holds now; return that in MiB."""
    (PROCESS / "clear_refs").write_text("5")
    return peak_mib()


def peak_mib() -> float:
    """Most memory that the process held since it started, or since :func:`start_peak`, in MiB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", (PROCESS / "status").read_text())
    if found is None:
        raise SystemExit("/proc/self/status does not tell VmHWM. Expected Linux 4.0 or later.")
    return int(found[1]) / 1024
