"""Commands over all products of a workspace.

In: products, and what to do with each. Out: one outcome for each, as it is known:
failures of one product are values here, and stop no other. `task` does one product;
`pool` does many in worker processes; `report` shows them.
"""
