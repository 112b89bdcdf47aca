"""Why something is in a product, or is not.

In: what the stages of a build found. Out: answers as text for people and as documents
for programs.
"""

from orchestrator.explain.answers import why_document, why_not_document, why_not_text, why_text
from orchestrator.explain.facts import Facts, Outcome
from orchestrator.explain.why import Why, why
from orchestrator.explain.why_not import WhyNot, why_not

__all__ = [
    "Facts",
    "Outcome",
    "Why",
    "WhyNot",
    "why",
    "why_document",
    "why_not",
    "why_not_document",
    "why_not_text",
    "why_text",
]
