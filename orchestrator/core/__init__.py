"""Words that every topic uses: element types, operators with their schemas, kernels.

Values only: frozen, hashable, without effects. Anything that has a topic of its own is
there, not here.
"""
