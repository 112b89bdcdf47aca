"""Every operator with the samples of PyTorch's operator database.

`draw` records calls with the results of PyTorch's CPU (it needs PyTorch), `run` makes a
program of each, runs them with loader and executor, and compares.
"""
