"""Files: records and results on disk."""
