"""Study: the paper's tables and figures, made anew and set beside the paper's own numbers.

Three roles: a case is a set of records, a method goes from a record to a force, a score says how good that is. A new
one is a small file in cases/, methods/ or scores/ and a line in its list; so are a new table and a new figure.
"""

from doublewell_paper.study import Study, names, run_study

__all__ = ["Study", "names", "run_study"]
