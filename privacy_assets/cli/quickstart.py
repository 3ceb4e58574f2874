"""The command `privacy_assets quickstart`: releases of a real health table."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg


def run_quickstart(*, related: bool = False) -> int:
    """Run the releases of one table, or that of related tables; print where they are or which limit refused them."""
    home = Path.cwd()
    if not (home / "dagster.yaml").is_file():
        print(f"There is no dagster.yaml in {home}. Run the quickstart from the root of a clone. Nothing was run.")
        return 1
    print("Importing Dagster and compiling the search takes several seconds the first time.", flush=True)
    # Imported objects stay, so the garbage collector need not examine them repeatedly.
    gc.disable()
    import dagster as dg

    print("Dagster is imported; the releases of the quickstart begin.", flush=True)
    from privacy_assets.definitions import RELATED, RELEASES, defs
    from privacy_assets.kernels.compilation_progress import reported_to
    from privacy_assets.orchestration.private.hidden_output import print_openly
    from privacy_assets.orchestration.stages import progress_also_to

    gc.freeze()
    gc.enable()

    def print_progress(line: str) -> None:
        print_openly(f"          {line}")

    with (
        dg.DagsterInstance.from_config(str(home)) as instance,
        reported_to(lambda _, line: print_progress(line)),
        progress_also_to(print_progress),
    ):
        finished = [_run_release(defs, instance, name) for name in ([RELATED] if related else RELEASES)]
    print("\nTo look at the results, run `.venv/bin/dg dev` and open the address it prints.")
    return 0 if all(finished) else 1


def _run_release(defs: "dg.Definitions", instance: "dg.DagsterInstance", name: str) -> bool:
    import dagster as dg

    from privacy_assets.orchestration.stages import GATE_CHECK

    @dg.success_hook
    def say_that_a_stage_is_done(context: dg.HookContext) -> None:
        print(f"  done    {context.op.name.removeprefix(f'{name}__').replace('_', ' ')}", flush=True)

    print(f"\n=== {name} ===", flush=True)
    job = defs.resolve_job_def(f"{name}_release").with_hooks({say_that_a_stage_is_done})
    # The instance stores the output of Dagster, and the UI shows it.
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = job.execute_in_process(instance=instance, raise_on_error=False, run_config=quiet)
    evaluations = result.get_asset_check_evaluations()
    for evaluation in evaluations:
        if "score" in evaluation.metadata:
            warns = evaluation.severity == dg.AssetCheckSeverity.WARN and not evaluation.passed
            print(f"  {'passed' if evaluation.passed else 'warns ' if warns else 'FAILED'}  {evaluation.description}")
            if warns and "advice" in evaluation.metadata:
                print(f"          Advice: {evaluation.metadata['advice'].value}")
    released = [
        event.materialization.metadata["privacy_assets/release"].value
        for event in result.get_asset_materialization_events()
        if "privacy_assets/release" in event.materialization.metadata
    ]
    if released:
        print(f"  RELEASED: {released[0]}")
        print(f"  Verify it: .venv/bin/privacy_assets verify {released[0]}")
        return True
    for evaluation in evaluations:
        if evaluation.check_name == GATE_CHECK and evaluation.severity == dg.AssetCheckSeverity.WARN:
            print(f"  WAITS: {evaluation.description}. Nothing was published.")
            return True
    error = dg.AssetCheckSeverity.ERROR
    refused = [evaluation for evaluation in evaluations if not evaluation.passed and evaluation.severity == error]
    for evaluation in refused:
        print(f"  REFUSED by {evaluation.check_name}: {evaluation.description}. Nothing was written.")
        if "advice" in evaluation.metadata:
            print(f"  Advice: {evaluation.metadata['advice'].value}")
    if not refused:
        print(f"  The run {result.run_id} failed before the gate; see its events in the UI.")
    return bool(refused)
