"""Effects: files, processes, toolchains on this machine, caches."""
