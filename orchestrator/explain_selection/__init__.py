"""Why something is in a product, or is not: answers out of what stages computed."""

from orchestrator.explain_selection.document import why_document, why_not_document
from orchestrator.explain_selection.facts import Facts, Outcome
from orchestrator.explain_selection.text import why_not_text, why_text
from orchestrator.explain_selection.why import Why, why
from orchestrator.explain_selection.why_not import WhyNot, why_not

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
