"""Random programs, judged by the same computation without state, sharing or reuse.

`program` is a model as its author thinks of it: methods, buffers, branches, loops.
`draw` draws one. `exported` writes it as ExecuTorch exports it, with memory shared by
lifetimes; `unrolled` writes a session of calls as one method, in which every value has
memory of its own, buffers are ordinary values and no loop, move or view is left.
`judge` builds both and compares every bit; `reduce` makes a program that differs small.
"""
