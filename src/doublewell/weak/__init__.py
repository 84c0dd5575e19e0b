"""The weak form: space-time moments of a record."""
