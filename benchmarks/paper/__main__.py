"""Run the experiments of the paper, and print which of its claims hold: ``python -m benchmarks.paper``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bitatoms import FileError

from . import reproduce
from .experiment import Experiment, Verdict, summarize_verdicts
from .figures import check_matplotlib


def main() -> None:
    """Run the experiments with the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=reproduce.__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("build/paper"), help="folder to write to")
    parser.add_argument("--einstein", metavar="FILE", help="the halftone image of the paper (default: a bundled image)")
    parser.add_argument(
        "--mnist",
        metavar="FILE|openml",
        help="the MNIST digits: a file, or openml to download them (default: the digits of scikit-learn)",
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    try:
        check_matplotlib()
        experiments = reproduce(
            given.output, einstein=given.einstein, mnist=given.mnist, random_state=given.seed, callback=_print_step
        )
    except (FileError, OSError, ImportError) as error:
        sys.exit(f"python -m benchmarks.paper: {error}")
    print_claims(experiments)
    print(f"\nThe page is {given.output / 'index.html'}; its figures and their numbers are in the same folder.")


def print_claims(experiments: list[Experiment]) -> None:
    """Print the claims of the paper; for those that do not hold, also what was found."""
    for experiment in experiments:
        for panel in experiment.panels:
            if panel.claims:
                print(f"\n{experiment.title}: {panel.title}")
            for claim in panel.claims:
                print(f"  {claim.verdict}: {claim.statement}{'' if claim.in_paper else ' (not in the paper)'}")
                if claim.verdict != Verdict.AGREES:
                    print(f"    {claim.finding} {claim.explanation}".rstrip())
    print(f"\n{summarize_verdicts(claim for experiment in experiments for claim in experiment.claims)}")


def _print_step(step: str) -> None:
    print(step, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
