"""Compare the disclosure test with Anonymeter, with SDMetrics and with a plain reference on the same files.

    python benchmarks/disclosure_peers.py --data ../shared/data --anonymeter PYTHON --sdmetrics PYTHON [--json [FILE]]

The interpreters are those of environments of their own, one with anonymeter 1.1 and one with sdmetrics. Files: adult,
``--originals`` of it, half as many controls and as many synthetic records, ``--seeds`` times by each generator; "other
people" cannot leak. What counts as detected:

- Anonymeter: of singling out (univariate and of three columns), linking (two halves of the columns) and inference of
  each column, the interval (95 %) of the risk beyond the control is above 0 for some; nothing corrects for that many.
- SDMetrics: `DCROverfittingProtection` is below 1 by more than two standard deviations of the share of synthetic
  records that are closer to an original; it has no test of its own. `DisclosureProtection` has no control, so nothing
  is detected: its score is printed.
- plain: more verbatim copies of originals than of controls, Fisher's exact test at 5 %.

Seconds of CPU are those of the assessments alone. Per target: linking and inference of all columns by Anonymeter,
against the whole of our test, and against its linking and its inference from the nearest record alone. With ``--whole``
only this, of 26,031 originals, 9,758 controls and the 39,040 records that CTGAN made of adult.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from peers import answer_of, metadata_of

CASES = ("other people", "copies 0.3 %", "copies 1 %", "near copies 5 %, 2 values", "SMOTE", "CART", "copula")
FASTER = 100
SIDES = ("original", "control", "synthetic")


def of_anonymeter(folder: Path, n_attacks: int) -> dict:
    import pandas as pd
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

    original, control, synthetic = (pd.read_csv(folder / f"{side}.csv") for side in SIDES)
    names, above, seconds, failed = list(original), {}, {}, 0

    def judge(kind: str, evaluator: object, **options: object) -> None:
        nonlocal failed
        start = time.process_time()
        try:
            risk = evaluator.evaluate(**options).risk(confidence_level=0.95)
            above[kind] = above.get(kind, False) or risk.ci[0] > 0
        except RuntimeError:
            # No query of it singles anybody out.
            failed += 1
        seconds[kind] = seconds.get(kind, 0.0) + time.process_time() - start

    halves = (names[::2], names[1::2])
    # Its distances are compiled first.
    LinkabilityEvaluator(original[:50], synthetic[:50], halves, n_attacks=5, control=control[:50]).evaluate(n_jobs=1)
    both = {"ori": original, "syn": synthetic, "control": control, "n_attacks": n_attacks}
    for mode in ("univariate", "multivariate"):
        judge("singling_out", SinglingOutEvaluator(**both), mode=mode)
    judge("linking", LinkabilityEvaluator(**both, aux_cols=halves), n_jobs=1)
    for secret in names:
        others = [name for name in names if name != secret]
        evaluator = InferenceEvaluator(**both, aux_cols=others, secret=secret, regression=None)
        judge("inference", evaluator, n_jobs=1)
    per_target = (seconds["linking"] + seconds["inference"]) / (2 * n_attacks)
    return {"detected": any(above.values()), "by": above, "failed": failed, "seconds": seconds, "target": per_target}


def of_sdmetrics(folder: Path, n_sampled: int) -> dict:
    import pandas as pd
    from sdmetrics.single_table import DCROverfittingProtection, DisclosureProtection

    original, control, synthetic = (pd.read_csv(folder / f"{side}.csv") for side in SIDES)
    metadata = metadata_of(original)
    drawn = original.sample(len(control), random_state=0).reset_index(drop=True)
    start = time.process_time()
    n = min(n_sampled, len(synthetic))
    found = DCROverfittingProtection.compute_breakdown(drawn, synthetic, control, metadata, None, num_rows_subsample=n)
    distance = time.process_time() - start
    closer = found["synthetic_data_percentages"]["closer_to_training"]
    start = time.process_time()
    names = list(original)
    protection = DisclosureProtection.compute(
        original, synthetic, known_column_names=names[:-1][:3], sensitive_column_names=names[-1:]
    )
    return {
        "detected": bool(closer > 0.5 + (1 / n) ** 0.5),
        "score": float(found["score"]),
        "closer_to_originals": float(closer),
        "disclosure_protection": float(protection),
        "seconds": {"distance": distance, "disclosure": time.process_time() - start},
    }


def of_plain(folder: Path) -> dict:
    import pandas as pd
    from scipy.stats import fisher_exact

    tables = [pd.read_csv(folder / f"{side}.csv", dtype=str, keep_default_na=False) for side in SIDES]
    start = time.process_time()
    original, control, synthetic = (list(own.itertuples(index=False, name=None)) for own in tables)
    made = set(synthetic)
    n_equal = [sum(record in made for record in own) for own in (original, control)]
    table = [[n, len(own) - n] for n, own in zip(n_equal, (original, control), strict=True)]
    p = float(fisher_exact(table, alternative="greater")[1])
    return {"detected": p <= 0.05, "p": p, "seconds": {"all": time.process_time() - start}}


def of_ours(folder: Path) -> dict:
    import pandas as pd

    from privacy_assets.disclosure.assess import assess_disclosure

    original, control, synthetic = (pd.read_csv(folder / f"{side}.csv") for side in SIDES)
    assess_disclosure(original[:200], synthetic[:200], control[:100])
    of_stage: dict[str, list[float]] = {}
    since, stage = time.process_time(), "preparation"

    def note(at: object) -> None:
        nonlocal since, stage
        if at.stage != stage:
            now = time.process_time()
            of_stage.setdefault(stage, []).append(now - since)
            since, stage = now, at.stage

    start = since
    found = assess_disclosure(original, synthetic, control, progress=note).scores
    seconds = time.process_time() - start
    n_targets = len(original) + len(control)
    # Later stages of these names are those of the smallest detectable share.
    alone = sum(of_stage[name][0] for name in ("preparation", "matching", "linking", "guessing"))
    return {
        "detected": found["leakage_detected"] is True,
        "seconds": {"all": seconds},
        "target": seconds / n_targets,
        "alone": alone / n_targets,
    }


def child(tool: str, folder: str, n: str) -> None:
    if tool in ("ours", "plain"):
        sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
        found = of_ours(Path(folder)) if tool == "ours" else of_plain(Path(folder))
    else:
        found = (of_anonymeter if tool == "anonymeter" else of_sdmetrics)(Path(folder), int(n))
    print(json.dumps(found, default=bool))


def compare_times(answers: dict[str, list[dict]], measured: object) -> None:
    """Compare the medians of the time per target."""
    theirs = statistics.median(own["target"] for own in answers["anonymeter"])
    ours, alone = (statistics.median(own[name] for own in answers["ours"]) for name in ("target", "alone"))
    measured.keep(
        ours_ms_per_target=1000 * ours,
        linking_and_guessing_ms_per_target=1000 * alone,
        anonymeter_ms_per_target=1000 * theirs,
    )
    measured.check(
        f"linking and guessing {1000 * alone:.3f} ms per target ({1000 * ours:.3f} ms with all else), Anonymeter "
        f"{1000 * theirs:.1f} ms: {theirs / alone:.0f} times ({theirs / ours:.0f}); at least {FASTER} times",
        theirs >= FASTER * alone,
    )


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    import numpy as np
    from disclosure_tables import FILES, INNOCENT, LEAKING, divided, tables
    from measurements import Measurements, add_json_option

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    shared = Path(os.environ.get("PRIVACY_ASSETS_SHARED", Path(__file__).resolve().parent.parent.parent / "shared"))
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder with the files of adult")
    parser.add_argument("--anonymeter", type=Path, required=True, help="interpreter of its environment")
    parser.add_argument("--sdmetrics", type=Path, required=True, help="interpreter of its environment")
    parser.add_argument("--originals", type=int, default=3_000)
    parser.add_argument("--attacks", type=int, default=500, help="of Anonymeter, each")
    parser.add_argument("--sampled", type=int, default=500, help="synthetic records that SDMetrics compares")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--whole", action="store_true", help="only the time per target, of the whole of adult")
    add_json_option(parser)
    options = parser.parse_args()
    measured = Measurements("disclosure_peers", options)
    tools = {"ours": sys.executable, "plain": sys.executable, "anonymeter": options.anonymeter}
    tools["sdmetrics"] = options.sdmetrics
    if options.whole:
        with tempfile.TemporaryDirectory() as folder:
            for side, name in zip(SIDES, FILES, strict=True):
                (Path(folder) / f"{side}.csv").symlink_to(options.data.resolve() / name)
            found = {
                tool: answer_of(tools[tool], __file__, "--child", tool, folder, options.attacks)
                for tool in ("ours", "anonymeter")
            }
        print(found)
        compare_times({tool: [own] for tool, own in found.items()}, measured)
        return measured.finish()
    make, n = tables(options.data.resolve())["adult"], options.originals
    answers: dict[str, list[dict]] = {"ours": [], "anonymeter": []}
    print(f"{'detected':>26}" + "".join(f"{tool:>14}" for tool in tools), flush=True)
    for case in options.cases:
        found, seconds = dict.fromkeys(tools, 0), dict.fromkeys(tools, 0.0)
        for seed in range(options.seeds):
            rng = np.random.default_rng([seed, CASES.index(case), 19])
            original, control, others = divided(make(seed), (n, n // 2, n), rng)
            made = INNOCENT[case](others, n, rng) if case in INNOCENT and case not in LEAKING else None
            synthetic = LEAKING[case](original, others, rng) if made is None else made
            with tempfile.TemporaryDirectory() as folder:
                for side, own in zip(SIDES, (original, control, synthetic), strict=True):
                    own.to_csv(Path(folder) / f"{side}.csv", index=False)
                for tool, python in tools.items():
                    size = options.attacks if tool == "anonymeter" else options.sampled
                    own = answer_of(python, __file__, "--child", tool, folder, size)
                    found[tool] += own["detected"]
                    seconds[tool] += sum(own["seconds"].values()) / options.seeds
                    if tool in answers:
                        answers[tool].append(own)
                    print(f"    {case}, {tool}: {own}", flush=True)
        key = case.replace(" %", "_percent").replace(",", "").replace(" ", "_").replace(".", "_").lower()
        print(f"{case:>26}" + "".join(f"{own:>14}" for own in found.values()), flush=True)
        print(f"{'CPU s':>26}" + "".join(f"{own:>14.1f}" for own in seconds.values()), flush=True)
        measured.keep(**{f"{tool}_{key}": own for tool, own in found.items()})
        measured.keep(**{f"{tool}_{key}_cpu_seconds": own for tool, own in seconds.items()})
    compare_times(answers, measured)
    return measured.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        sys.exit(main())
