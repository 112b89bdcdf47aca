"""The workspace: one `orchestrator.toml` above many profiles.

In: the text of that file, and the profiles that its patterns match. Out: named
products, each a profile with what it inherits; or, for a profile, which product it is.
Importing this package is cheap: only `load` imports pydantic.
"""

from orchestrator.workspace.product import Product, product_shard

__all__ = ["Product", "product_shard"]
