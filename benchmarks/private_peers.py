"""Fit another tool's synthesizer to codes; run by ``private.py --peers`` in an environment that has the tool.

    python benchmarks/private_peers.py TOOL CODES.npz EPSILON DELTA DRAWN.npz

`TOOL` is ``dpmm``, ``smartnoise-mst`` or ``smartnoise-aim``. `CODES.npz` holds the records as `codes`, one column for
each column of the table, and the number of codes of each as `sizes`. As many records are drawn as there were, into
`DRAWN.npz`. Prints the CPU seconds of the fit and the memory of the process as JSON.
"""

import json
import resource
import sys
import time

import numpy as np
import pandas as pd


def of_dpmm(table: pd.DataFrame, sizes: dict[str, int], epsilon: float, delta: float) -> pd.DataFrame:
    """Fit MST of dpmm, which takes the public sizes as they are."""
    from dpmm.pipelines import MSTPipeline

    pipeline = MSTPipeline(epsilon=epsilon, delta=delta, proc_epsilon=None, disable_processing=True, n_jobs=1)
    pipeline.fit(table, domain=sizes)
    return pipeline.generate(n_records=len(table))


def of_smartnoise(table: pd.DataFrame, method: str, epsilon: float, delta: float) -> pd.DataFrame:
    """Fit a method of smartnoise-synth, which reads the codes that occur off the records, at no cost that it counts."""
    from snsynth import Synthesizer

    synthesizer = Synthesizer.create(method, epsilon=epsilon, delta=delta)
    synthesizer.fit(table, categorical_columns=list(table), preprocessor_eps=0.0)
    return synthesizer.sample(len(table))


def main() -> None:
    """Fit once, draw once."""
    tool, given, epsilon, delta, drawn = sys.argv[1:]
    with np.load(given) as arrays:
        codes, n_codes = arrays["codes"], arrays["sizes"]
    names = [f"c{number}" for number in range(codes.shape[1])]
    table = pd.DataFrame(codes.astype(np.int64), columns=names)
    sizes = {name: int(size) for name, size in zip(names, n_codes, strict=True)}
    start = time.process_time()
    if tool == "dpmm":
        made = of_dpmm(table, sizes, float(epsilon), float(delta))
    else:
        made = of_smartnoise(table, tool.removeprefix("smartnoise-"), float(epsilon), float(delta))
    seconds = time.process_time() - start
    np.savez(drawn, codes=made[names].to_numpy().astype(np.int64))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "megabytes": megabytes}))


if __name__ == "__main__":
    main()
