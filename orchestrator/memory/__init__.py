"""Memory of a product: every byte of RAM and program flash, and where it lies.

In: the methods of all models as they are built, and the board. Out: a `MemoryPlan` of
arenas, method states and placements, and its forms for locks and people.
"""
