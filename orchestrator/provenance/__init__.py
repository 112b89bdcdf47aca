"""What a product is made of, and how: documents for those who receive it.

In: what the lock of a build names, what the linker took, and the cards of models. Out:
an SBOM (CycloneDX), a statement of provenance (in-toto, SLSA), and signed envelopes
(DSSE). The same build gives the same bytes.
"""
