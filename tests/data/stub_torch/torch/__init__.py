"""Tensors that hold an array, modules that hold a program."""

import contextlib
import sys

import numpy as np

from torch._not_run import any_name

bfloat16, float16 = "bfloat16", "float16"
bool, int64, float32 = "bool", "int64", "float32"  # noqa: A001
clone, library, ops = map(any_name, ("clone", "library", "ops"))


class Tensor:
    """An array."""

    def __init__(self, array):
        self.array = np.asarray(array, np.float32)
        self.dtype = "float32"
        self.nbytes = self.array.nbytes
        self.shape = self.array.shape

    def detach(self):
        """Itself."""
        return self

    def contiguous(self):
        """Itself."""
        return self

    def numpy(self):
        """The array."""
        return self.array


class _Graph:
    nodes = ()

    def eliminate_dead_code(self):
        """Nothing."""


class _Module:
    training = False
    graph = _Graph()

    def recompile(self):
        """Nothing."""

    def __call__(self, *inputs):
        return self.forward(*inputs)

    def parameters(self):
        """None."""
        return ()

    def buffers(self):
        """None."""
        return ()

    def named_buffers(self, **_):
        """None."""
        return ()

    def modules(self):
        """Itself alone."""
        return (self,)


class nn:  # noqa: N801
    """Modules."""

    Module = _Module
    functional = any_name("functional")


sys.modules["torch.nn"] = nn


def zeros(*sizes):
    """A tensor."""
    return Tensor(np.zeros(sizes))


def set_num_threads(count):
    """Nothing."""


def manual_seed(seed):
    """Nothing."""


def get_rng_state():
    """Nothing."""


@contextlib.contextmanager
def no_grad():
    """Nothing."""
    yield
