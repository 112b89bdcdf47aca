"""Models that are Python code become programs, in a process of their own.

In: a request that names the code, how to quantize and lower it, and the target. Out: a
program with example inputs and outputs, and every file that was read on the way, or a
failure in words. This is what the process runs (`worker`, `source`, `lower`): it needs
the extra `export`. `build/exporting.py` starts it and imports no PyTorch.
"""
