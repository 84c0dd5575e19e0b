"""Studio: one page in the browser in which movies are looked at and laws identified, without typing.

A server that opens no movie, two processes that open movies to show them, and one for each identification.
"""
