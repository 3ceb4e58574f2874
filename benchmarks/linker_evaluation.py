"""Time the test of compatibility against the linear program of all pairs of records, in one go.

    python benchmarks/linker_evaluation.py [--records N] [--candidates C] [--data DIR] [--json [FILE]]

One claim with scores that all differ, of N originals with C candidates: as most linkage methods make them, and near the
edge of what is compatible, where quick tests decide little. Both ways must decide alike. Then an evaluation of 200
records with 200 different scores each; then definite links of UCI Adult (32,561 records, 8 quasi-identifiers, k = 5),
compared with a scan of all originals for each record, and the audit of a release of it as it is by default. The exit
code is 1 if a bar is missed.
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import pandas as pd
from measurements import Measurements, add_json_option

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.masks import BoundedNoise, ReleaseModel
from privacy_assets.linkage.audit import audit_linkage
from privacy_assets.linkage.compatibility import is_compatible
from privacy_assets.linkage.distance import link_by_distance
from privacy_assets.linkage.evaluation import evaluate_linker
from privacy_assets.reidentification.candidate_index import CandidateIndex
from tests.linkage.all_pairs import group, least_slack

REPOSITORY = Path(__file__).resolve().parent.parent
# At the edge the program needs many of its bounds, and is not to be slower than that of all pairs.
RATIO_BARS = {"smooth": 5, "edge": 1}
EVALUATION_SECONDS_BAR, SLACK = 10, 1e-7
ADULT_SECONDS_BAR, ADULT_RATIO_BAR, N_SCANNED = 10, 5, 500
AUDIT_SECONDS_BAR = 15
QUASI_IDENTIFIERS = ["age", "workclass", "education", "marital_status", "occupation", "race", "sex", "native_country"]


def smooth_claim(rng: np.random.Generator, n: int) -> np.ndarray:
    claim = np.exp(-rng.uniform(0, 3, n))
    return claim / claim.sum()


def edge_claim(rng: np.random.Generator, n: int, n_candidates: int) -> np.ndarray:
    """Let each candidate share its probability with those of the greatest of some weights; then blur it a little."""
    sides = (rng.normal(size=own) for own in (n_candidates, n - n_candidates))
    weights = np.concatenate([-np.sort(-side) for side in sides])
    order = np.argsort(-weights)
    sums, claim = np.concatenate([[0.0], np.cumsum(weights[order])]), rng.uniform(0, 1e-6, n)
    for x in range(n_candidates):
        best = int(((weights[x] + sums) / (1 + np.arange(n + 1))).argmax())
        own = np.unique(np.append(order[:best], x))
        claim[own] += 1 / n_candidates / len(own)
    claim *= np.exp(rng.normal(size=n) * 1e-3)
    return claim / claim.sum()


def evaluate_adult(data: Path, measured: Measurements) -> None:
    """Links of all records, and the scan for the candidates of some of them."""
    table = pd.read_csv(data / "adult.csv", skipinitialspace=True)[QUASI_IDENTIFIERS]
    anonymization = anonymize(table, quasi_identifiers=QUASI_IDENTIFIERS, k=5)
    index = CandidateIndex.of_anonymization(table, anonymization)
    start = time.process_time()
    evaluate_linker(index, index.truth)
    seconds, start = time.process_time() - start, time.process_time()
    for i in range(N_SCANNED):
        index.members(i, QUASI_IDENTIFIERS)
    ratio = (time.process_time() - start) * index.n_released / N_SCANNED / seconds
    measured.keep(adult_seconds=seconds, adult_ratio_to_scans=ratio)
    words = f"adult: {index.n_released} links take {seconds:.2f} s; under {ADULT_SECONDS_BAR} s"
    measured.check(words, seconds < ADULT_SECONDS_BAR)
    words = f"adult: scans alone would take {ratio:.1f} times as long; at least {ADULT_RATIO_BAR}"
    measured.check(words, ratio >= ADULT_RATIO_BAR)
    start = time.process_time()
    audited = audit_linkage(table, anonymization).scores["n_audited"]
    seconds = time.process_time() - start
    measured.keep(audit_seconds=seconds)
    words = f"adult: the audit of {audited} records takes {seconds:.2f} s of CPU; under {AUDIT_SECONDS_BAR} s"
    measured.check(words, seconds < AUDIT_SECONDS_BAR)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=80)
    parser.add_argument("--data", type=Path, default=REPOSITORY.parent / "shared" / "data")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("linker_evaluation", options)
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(options.records) < options.candidates, 1 / options.candidates, 0)
    claims = {
        "smooth": smooth_claim(rng, options.records),
        "edge": edge_claim(rng, options.records, options.candidates),
    }
    for words, claim in claims.items():
        start = time.process_time()
        ours = is_compatible(truth, claim)
        middle = time.process_time()
        theirs = least_slack(group(truth, claim)) <= SLACK
        own, other = middle - start, time.process_time() - middle
        print(f"{words}: {own:.4f} s, all pairs {other:.2f} s; compatible: {ours}")
        ratio, bar = other / own, RATIO_BARS[words]
        measured.keep(**{f"{words}_seconds": own, f"{words}_all_pairs_seconds": other})
        measured.check(f"{words}: {ratio:.1f} times as fast; at least {bar}", ratio >= bar)
        measured.check(f"{words}: both decide alike", ours == theirs)
    original = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    released = original + rng.uniform(-1, 1, size=(200, 2))
    model = ReleaseModel({name: BoundedNoise(name, 1.0) for name in original})
    index = CandidateIndex(model, original, released, np.arange(200))
    scores = link_by_distance(original, released, model, ["a", "b"], softness=0.5)
    start = time.process_time()
    evaluate_linker(index, scores)
    seconds = time.process_time() - start
    measured.keep(evaluation_seconds=seconds)
    is_met = seconds < EVALUATION_SECONDS_BAR
    measured.check(f"200 records of 200 scores take {seconds:.2f} s; under {EVALUATION_SECONDS_BAR} s", is_met)
    evaluate_adult(options.data, measured)
    return measured.finish()


if __name__ == "__main__":
    sys.exit(main())
