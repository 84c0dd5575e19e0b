"""Report: figures of a result."""
