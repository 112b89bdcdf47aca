"""Which operators a product calls, and which kernel serves each call.

In: programs, the requests of the profile, and the catalog of kernels. Out: a
`Selection` of operators with their origins, and a `Resolution` with a kernel for
each kernel key, or every gap at once.
"""
