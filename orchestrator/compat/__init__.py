"""Whether a firmware that is built can run a program that came after it.

In: the facts of a firmware from its lock, and a new program. Out: the reasons why the
program would be refused on the device, or none.
"""
