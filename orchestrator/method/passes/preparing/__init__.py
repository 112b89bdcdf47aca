"""What kernels need for one call, for the structs of prepared calls.

In: the arguments of a call. Out: the function that runs it, and what its struct holds:
the same that the kernel for arguments would find out.
"""
