"""The SQL of the house: `migrations/` (forward only), `statements/` (one file per room), `schema.sql` (a snapshot)."""
