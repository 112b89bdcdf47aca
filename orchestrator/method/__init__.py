"""A method with its kernels, made smaller and laid out again for the target.

In: a program and the kernels that serve its calls. Out: linked methods, or a program
written anew from them, after passes and with arenas planned afresh. Each change is
proved by code that does not share anything with the code that made it.
"""
