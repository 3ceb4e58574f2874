"""The spending of privacy budgets."""

from pathlib import Path


def run_budget(directory: Path, population: str | None, delta: float) -> int:
    """Print the epsilon spent on each population, after checking the chains of the ledgers and their witnesses."""
    from privacy_assets.errors import InvalidSettingError, PrivacyBudgetError
    from privacy_assets.synthesis.private.accounting import epsilon_of
    from privacy_assets.synthesis.private.ledger import DIRECTORY, PrivacyLedger, populations

    found = populations(directory / DIRECTORY)
    names = found if population is None else tuple(name for name in found if name == population)
    if not names:
        print(
            f"There is no ledger of a privacy budget {'' if population is None else f'of {population!r} '}in "
            f"{directory / DIRECTORY}."
        )
        return 1
    are_intact = True
    for name in names:
        ledger = PrivacyLedger(directory / DIRECTORY, name)
        try:
            entries = ledger.require_known(())
            n_recorded = len(ledger.entries())
        except (InvalidSettingError, PrivacyBudgetError) as error:
            print(error)
            are_intact = False
            continue
        rho = ledger.people.spent_rho(entries)
        fits = f"{len(entries)} fit{'' if len(entries) == 1 else 's'}"
        print(f"{name}: {fits}, epsilon {epsilon_of(rho, delta):.3g} at delta {delta:g} (rho {rho:.4g})")
        if rho < sum(entry.rho for entry in entries) * (1 - 1e-12):
            print("  No person is in two partitions, so the largest epsilon of a partition counts.")
        for entry in entries:
            part = "" if entry.partition is None else f", partition {entry.partition}"
            print(f"  {entry.number}. {entry.at}  {entry.release}{part}: epsilon {entry.epsilon:g}, run {entry.run_id}")
        if n_recorded < len(entries):
            print(
                f"  Fit {len(entries)} was reserved, but its process ended before writing it to the ledger. It counts "
                "as spent; the next fit adds it to the ledger."
            )
    return 0 if are_intact else 1
