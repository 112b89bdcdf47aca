"""Changes from another build, or from a lock, to this one."""
