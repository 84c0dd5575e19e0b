"""Compute: a record cut into parts, read on one core, many or a cluster, with a file of the parts that are done."""
