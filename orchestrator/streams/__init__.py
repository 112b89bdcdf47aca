"""Models of a window of time, as models that get only what is new.

In: a program whose input is a window, the dimension that is time, and how much comes at
a time. Out: a program whose input is that much, and which keeps in state what its
operators need of the past. Operators that need the whole window get it from state, so
that every model can be a stream; `rules` has those that need less.
"""

from orchestrator.streams.rewrite import StreamError, streamed

__all__ = ["StreamError", "streamed"]
