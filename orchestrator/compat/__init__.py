"""Whether a firmware can run a program that is newer than itself.

In: the facts of a firmware from its lock, and a new program. Out: the reasons why the
program cannot replace a model; none if it can.
"""
