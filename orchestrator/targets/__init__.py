"""Targets as data: cores, boards and their memories.

In: the names that a profile gives. Out: a `Target` with its compiler flags and memory
map. Nothing branches on the name of a core; a new one is a row.
"""
