"""Score a release by the quality report of SDMetrics; run by ``utility.py --sdmetrics`` in an environment with it.

    python benchmarks/sdmetrics_quality.py ORIGINAL.csv RELEASE.csv

Prints the score, its two parts and the seconds of CPU of the report alone, as JSON.
"""

import json
import sys
import time

import pandas as pd
from peers import metadata_of
from sdmetrics.reports.single_table import QualityReport


def main() -> None:
    original, released = map(pd.read_csv, sys.argv[1:])
    start = time.process_time()
    report = QualityReport()
    report.generate(original, released, metadata_of(original), verbose=False)
    seconds = time.process_time() - start
    parts = dict(report.get_properties().itertuples(index=False, name=None))
    print(json.dumps({"score": float(report.get_score()), "parts": parts, "seconds": seconds}))


if __name__ == "__main__":
    main()
