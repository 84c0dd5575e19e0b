"""The study of the doublewell paper: its tables and figures, made again and compared with the paper's own numbers.

A case is a set of records, a method goes from a record to a force, a score measures how good that is.
"""
