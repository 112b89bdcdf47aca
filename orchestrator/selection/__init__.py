"""Which operators a product calls, and which kernel serves each call.

In: programs, what the profile asks for, and the catalog of kernels. Out: a `Selection`
of operators with everybody who asked, and a `Resolution` with a kernel for each kernel
key, or every gap at once.
"""
