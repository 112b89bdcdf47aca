"""Signed updates of models: the file that a device checks before it loads a program.

In: a program, and what the firmware in the field is. Out: the bytes of an update, and
what is in one.
"""
