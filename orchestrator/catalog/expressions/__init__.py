"""Expressions in `functions.yaml`: what kernels need and require of a call.

A text comes in, in a small part of Python's syntax, with the schema of its operator.
Out comes a function of the facts of a call: the size of a scratch tensor, or
whether the kernel takes the call. It can do nothing but compute.
"""
