"""What kernels cost: one call of each, counted on cores, timed on this machine.

`calls` has the calls; `cores` counts instructions under QEMU and writes
docs/kernel-speeds.md; `host` times the same calls beside ExecuTorch's runtime.
"""
