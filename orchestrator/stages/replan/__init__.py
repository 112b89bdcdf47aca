"""Memory laid out afresh: lifetimes, blocks, and the offsets that come of them."""

from orchestrator.stages.replan.flow import Flow, flow_of
from orchestrator.stages.replan.layout import Replanned, replan
from orchestrator.stages.replan.proof import problems_of
from orchestrator.stages.replan.steps import Subject, linked_subject, method_subject

__all__ = [
    "Flow",
    "Replanned",
    "Subject",
    "flow_of",
    "linked_subject",
    "method_subject",
    "problems_of",
    "replan",
]
