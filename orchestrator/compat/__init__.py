"""Whether a firmware that is built can run a program that came after it.

In: what a lock says of the firmware, and a new program. Out: the reasons why the
program would be refused on the device, or none.
"""
