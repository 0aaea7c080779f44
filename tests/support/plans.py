"""Searches with another budget than the plans have."""

from dataclasses import replace

from bitatoms.covers.search import CoverPlan
from bitatoms.search.plan import PLANS


def use_budget(patch, nmf_starts=None, **fixed_rank):
    """Let searches for a fixed number of atoms take another budget, until the monkeypatch is undone."""
    for name, plan in PLANS.items():
        budget = replace(plan.fixed_rank, **fixed_rank)
        if nmf_starts is not None:
            budget = replace(budget, nmf=replace(budget.nmf, max_starts=nmf_starts))
        patch.setitem(PLANS, name, replace(plan, fixed_rank=budget))


def use_small_budget(patch, **tuning):
    """Let all searches make few trials, starts, rounds, iterations and children, but each kind of step.

    Atoms to start from are few, but those of the first look are not: their codes take more than one word. ``tuning``
    are constants of searches for the shortest codelength that replace those of this budget.
    """
    for name, plan in PLANS.items():
        fixed_rank = replace(
            plan.fixed_rank,
            max_trials=8,
            min_child_trials=2,
            nmf=replace(plan.fixed_rank.nmf, max_starts=2, max_iterations=20),
        )
        small = {
            "cycle_rounds": 2,
            "close": 1.0,  # only the best start is continued
            "linear": replace(plan.mdl.linear, sum_patience=10),
            "nmf_ranks": plan.mdl.nmf_ranks[:1],
            "nmf": replace(plan.mdl.nmf, max_iterations=20),
            "child_rounds": 2,
        }
        mdl = replace(plan.mdl, **small | tuning)
        starts, more_starts = (tuple(min(16, size) for size in sizes) for sizes in (plan.starts, plan.more_starts))
        children = min(6, plan.children)  # those of the second group are also recombined
        plan = replace(
            plan, starts=starts, more_starts=more_starts, patience=1, children=children, epochs=min(2, plan.epochs)
        )
        windows = replace(plan.windows, starts=tuple(min(16, size) for size in plan.windows.starts))
        patch.setitem(PLANS, name, replace(plan, fixed_rank=fixed_rank, mdl=mdl, windows=windows))


def use_one_start(patch, n_atoms=8):
    """Let all searches do as little as with a small budget, from one start: for tests of other things."""
    use_small_budget(patch)
    for name, plan in PLANS.items():
        patch.setitem(PLANS, name, replace(plan.without("first look"), starts=(n_atoms,)))


def use_windows(patch, **tuning):
    """Let searches for the shortest codelength search windows of other sizes, until the monkeypatch is undone.

    Sparse tables that are as wide as those that are searched so are not packed.
    """
    if "min_features" in tuning:
        patch.setattr("bitatoms.sparse_bits._MIN_COLS", tuning["min_features"])
    for name, plan in PLANS.items():
        patch.setitem(PLANS, name, replace(plan, windows=replace(plan.windows, **tuning)))


def use_small_cover_plan(patch):
    """Let a search for a cover exchange few roles."""
    patch.setattr(
        "bitatoms.covers.driver.PLAN", CoverPlan(clique_steps=200, round_work=1500, patience=10, min_patience=60)
    )
