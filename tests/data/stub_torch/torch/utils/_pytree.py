"""Nested values."""


def tree_leaves(value):
    """Flat."""
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in tree_leaves(item)]
    return [value]


def treespec_dumps(spec):
    """The form of a value, which nothing reads."""
