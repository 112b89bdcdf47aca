"""Programs in ExecuTorch's format: `.pte`, and `.ptd` with data beside them.

In: bytes from anywhere, which are not trusted. Out: frozen `Program`s, checked where
they enter, or every problem at once; and bytes again of programs that were changed.
"""
