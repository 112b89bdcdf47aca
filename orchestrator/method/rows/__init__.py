"""Arenas below the peak of whole tensors: operators on images, computed by rows.

In: the operators of a method with the rows that each needs, and sizes. Out: which
operators run interleaved, row by row, with rings of rows between them; an offset for
every tensor and ring, outputs over inputs where rows allow it; the table of steps.
`verify` runs such a table on tagged bytes, and shares no code with what made it.
"""
