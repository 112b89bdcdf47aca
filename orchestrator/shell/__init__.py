"""Effects: files, processes, the compilers of this machine, caches.

Everything that can fail for reasons outside of the program is here, behind functions
and small protocols that tests replace. Nothing here knows what a build is.
"""
