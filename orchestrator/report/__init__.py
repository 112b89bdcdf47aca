"""`report.html`: a build as one page to look at.

In: the typed results of a build (`SizeReport`, `MemoryPlan`, models after passes, the
resolution). Out: one self-contained HTML page, and its pictures as SVG files. Nothing
is measured or planned here.
"""

from orchestrator.report.facts import ReportFacts, report_facts

__all__ = ["ReportFacts", "report_facts"]
