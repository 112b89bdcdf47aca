"""`orchestrator plumbing memory-plan`: offsets for blocks of a CSV file."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.cli.commands.named_files import read_text
from orchestrator.cli.console import Console
from orchestrator.errors import Diagnostic, ExitCode, MemoryPlanError, OrchestratorError, SourceSpan
from orchestrator.planner import plan_blocks
from orchestrator.planner.blocks import BlockPlan
from orchestrator.planner.plan_files import plan_svg, read_blocks, write_blocks
from orchestrator.planner.verify_plan import check_plan
from orchestrator.shell.files import write_if_changed


def run(args: Namespace, console: Console) -> ExitCode:
    """Plan, verify, write the requested files, and report how good the plan is."""
    blocks = read_blocks(
        read_text(args.file, wanted="a CSV file of blocks: id,lower,upper,size"),
        file=str(args.file),
    )
    with console.progress() as reporter:
        count = f"{len(blocks):,} block{'s' if len(blocks) != 1 else ''}"
        reporter.working(f"planning {count}")
        plan = plan_blocks(blocks, capacity_bytes=args.capacity)
        # The proof that builds make as well: whatever planner found the plan, nothing
        # is printed that overlaps.
        problems = check_plan(blocks, plan)
    if problems:
        raise OrchestratorError(
            Diagnostic(
                code="internal-error",
                message="internal error, please report it: the memory plan is wrong",
                where=SourceSpan(file=str(args.file)),
                notes=tuple(("found", problem) for problem in problems),
                hint="add this file to the report",
            )
        )
    if args.capacity is not None and plan.size_bytes > args.capacity:
        raise MemoryPlanError(_too_small(plan, args.capacity, str(args.file)))
    if args.output is not None:
        write_if_changed(args.output, write_blocks(blocks, plan).encode())
    if args.svg is not None:
        text = plan_svg(blocks, plan, title=args.file.name)
        write_if_changed(args.svg, text.encode())
    return console.result(
        {
            "blocks": len(blocks),
            "size_bytes": plan.size_bytes,
            "lower_bound_bytes": plan.least_bytes,
            "peak_live_bytes": plan.peak_live_bytes,
            "gap_percent": round(plan.gap_percent, 2),
            "capacity_bytes": args.capacity,
            "planner": plan.planner,
            "offsets": {b.name: o for b, o in zip(blocks, plan.offsets, strict=True)},
        },
        f"bytes        {plan.size_bytes:,}\n"
        f"lower bound  {plan.least_bytes:,}\n"
        f"gap          {plan.gap_percent:.2f} %\n"
        f"found by     {plan.planner}",
    )


def _too_small(plan: BlockPlan, capacity_bytes: int, file: str) -> Diagnostic:
    """Why there is no plan: none exists, or the search found none."""
    least = plan.least_bytes
    if plan.peak_live_bytes > capacity_bytes:
        why = f"impossible: {plan.peak_live_bytes} bytes are live at one time"
    elif least > capacity_bytes:
        why = f"impossible: every plan takes at least {least} bytes"
    else:
        why = "none was found: the search ended at its limit of nodes"
    return Diagnostic.of(
        "capacity-too-small",
        f"no plan fits {capacity_bytes} bytes",
        where=SourceSpan(file=file),
        reason=why,
        smallest_found=f"{plan.size_bytes} bytes, {plan.planner}",
        hint=f"give --capacity {plan.size_bytes}, or none to get the smallest plan",
    )
