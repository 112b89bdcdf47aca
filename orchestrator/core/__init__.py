"""Values that every topic uses: element types, operators with their schemas, kernels.

Frozen, hashable, without effects. Anything that belongs to one topic is there, not
here.
"""
