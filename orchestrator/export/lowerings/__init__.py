"""One module for each way to lower; each needs PyTorch and ExecuTorch.

Each has `quantizer(request)` and `lowered(program, request)`, which gives ExecuTorch's
edge program manager.
"""
