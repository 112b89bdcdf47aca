"""What a product is built for: cores, boards and their memories, as data.

In: the names that a profile gives. Out: a `Target` with its compiler flags and memory
map. Nothing branches on the name of a core; a new one is a row.
"""
