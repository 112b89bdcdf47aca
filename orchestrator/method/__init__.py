"""Link methods with their kernels, make them smaller, and lay their memory out again.

In: a program and the kernels that serve its calls. Out: linked methods, or a program
written from them, after passes and with arenas planned again. Each change is proved by
code that shares nothing with the code that made it.
"""
