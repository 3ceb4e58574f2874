"""Differentially private synthetic records: public domain, mechanisms, tree model, and the ledger of spent budgets."""
