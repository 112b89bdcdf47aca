"""Reader of `.pte` programs: bytes in, checked and frozen facts out."""
