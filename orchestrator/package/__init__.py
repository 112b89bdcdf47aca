"""A built product as a package of another build system.

What comes in is the product: sources with the macros and headers that each needs, or
the library, and what its methods compute on a case. What goes out is a folder's files
by path, with the build files, the example and the README of one ecosystem.
"""
