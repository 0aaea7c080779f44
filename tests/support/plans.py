"""Searches with another budget than the plans have."""

from dataclasses import replace

from bitatoms.search.plan import PLANS


def use_budget(patch, nmf_starts=None, **fixed_rank):
    """Let searches for a fixed number of atoms take another budget, until the monkeypatch is undone."""
    for name, plan in PLANS.items():
        budget = replace(plan.fixed_rank, **fixed_rank)
        if nmf_starts is not None:
            budget = replace(budget, nmf=replace(budget.nmf, max_starts=nmf_starts))
        patch.setitem(PLANS, name, replace(plan, fixed_rank=budget))


def use_few_starts(patch):
    """Let searches for the shortest codelength make one non-negative factorization and one shake instead of three."""
    for name, plan in PLANS.items():
        mdl = replace(plan.mdl, nmf_ranks=plan.mdl.nmf_ranks[:1])
        patch.setitem(PLANS, name, replace(plan, mdl=mdl, shakes=min(1, plan.shakes)))
