"""Running a built product: calls in, compared outputs out; everything but the process.

In: `product.json`, and calls from a command line or a scenario. Out: the request that
the firmware reads (protocol), and from its response a comparison, a report, `.npy`
files and costs. A status of a device is explained here too (status).
"""
