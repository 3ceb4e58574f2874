"""What was spent of privacy budgets."""

from pathlib import Path


def run_budget(directory: Path, population: str | None, delta: float) -> int:
    """Print what was spent on each population, after checking the chains of their ledgers."""
    from privacy_assets.errors import InvalidSettingError, PrivacyBudgetError
    from privacy_assets.synthesis.private.accounting import epsilon_of
    from privacy_assets.synthesis.private.ledger import DIRECTORY, PrivacyLedger, populations

    names = populations(directory / DIRECTORY) if population is None else (population,)
    if not names or not all((directory / DIRECTORY / f"{name}.jsonl").is_file() for name in names):
        print(
            f"There is no ledger of a privacy budget {'' if population is None else f'of {population!r} '}in "
            f"{directory / DIRECTORY}."
        )
        return 1
    are_intact = True
    for name in names:
        try:
            entries = PrivacyLedger(directory / DIRECTORY, name).entries()
        except (InvalidSettingError, PrivacyBudgetError) as error:
            print(error)
            are_intact = False
            continue
        rho = sum(entry.rho for entry in entries)
        fits = f"{len(entries)} fit{'' if len(entries) == 1 else 's'}"
        print(f"{name}: {fits}, epsilon {epsilon_of(rho, delta):.3g} at delta {delta:g} (rho {rho:.4g})")
        for entry in entries:
            part = "" if entry.partition is None else f", partition {entry.partition}"
            print(f"  {entry.number}. {entry.at}  {entry.release}{part}: epsilon {entry.epsilon:g}, run {entry.run_id}")
    return 0 if are_intact else 1
