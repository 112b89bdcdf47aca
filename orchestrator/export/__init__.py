"""Models that are Python code become programs, in a process of their own.

`run` starts the process and remembers what came out; it imports no PyTorch. What the
process runs (`worker`, `source`, `lower`) needs the extra `export`.
"""
