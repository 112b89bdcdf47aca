"""Files that a build writes: generated C++, linker script, ninja file, headers.

In: the resolution, the methods, the memory plan and the target. Out: texts by path, and
the list of compile and link steps; nothing is written or run here.
"""
