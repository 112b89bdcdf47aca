"""int8 weights in the order in which the packed kernels of kernels/cortex_m read them.

In: a linked method. Out: its convolutions and matrix products, and for each the words
of its kernel's constant. `pack_weights` picks the kernel of each call.
"""
