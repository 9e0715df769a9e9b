"""The ledger: months that were closed, and what was let into them afterwards."""
