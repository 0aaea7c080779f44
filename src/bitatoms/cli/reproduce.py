"""`bitatoms reproduce`: run the experiments of the paper, and print which of its claims hold."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from ..html.figures import check_matplotlib
from ..io.errors import FileError
from ..reproduce import Experiment, Verdict
from ..reproduce import reproduce as run_experiments
from ..reproduce.datasets import OPENML
from ..reproduce.experiment import summarize_verdicts
from .console import print_json, print_line, print_rich
from .files import check_folder, check_not_stream
from .progress import ProgressLine, show_status

_STYLES = {Verdict.AGREES: "green", Verdict.PARTLY: "yellow", Verdict.DIFFERS: "red", Verdict.NOT_SEEN: "dim"}


def reproduce(folder: Path, einstein: Path | None, mnist: str | None, seed: int, quiet: bool, json: bool) -> None:
    """Run the experiments, write the page, and print the verdicts on the claims."""
    check_not_stream(folder, "a folder")
    for path in (einstein, None if mnist in (None, OPENML) else Path(str(mnist))):
        if path is not None and not path.exists():
            raise FileError(f"{path}: there is no such file")
    check_matplotlib()
    check_folder(folder, "the result")
    silent = quiet or json
    with show_status("Starting", silent) as status:
        line = ProgressLine(silent, status)
        experiments = run_experiments(
            folder,
            einstein=einstein,
            mnist=mnist,
            random_state=seed,
            callback=lambda task: line.update(f"{task}, {line.seconds}"),
        )
    if json:
        print_json(_as_json(experiments, folder))
    elif not quiet:
        _print_claims(experiments)
        print_line(f"\nThe page is {folder / 'index.html'}; open it in a browser.")
        print_line("The figures and their numbers are in the same folder.")


def _print_claims(experiments: list[Experiment]) -> None:
    """Print the claims of the paper; for those that do not hold, also what was found."""
    for experiment in experiments:
        for panel in experiment.panels:
            if panel.claims:
                print_line(f"\n{experiment.title}: {panel.title}", style="bold")
            for claim in panel.claims:
                own = "" if claim.in_paper else " (not in the paper)"
                print_rich(
                    Text.assemble((f"  {claim.verdict}: ", _STYLES[claim.verdict]), claim.statement, (own, "dim"))
                )
                if claim.verdict != Verdict.AGREES:
                    print_rich(Text(f"    {claim.finding} {claim.explanation}".rstrip(), style="dim"))
    print_line(f"\n{summarize_verdicts(claim for experiment in experiments for claim in experiment.claims)}")


def _as_json(experiments: list[Experiment], folder: Path) -> dict[str, object]:
    """Return the claims, for ``--json``."""
    return {
        "claims": [
            {
                "experiment": experiment.name,
                "data": panel.title,
                "says": claim.statement,
                "found": claim.finding,
                "verdict": claim.verdict,
                "why": claim.explanation,
                "of_paper": claim.in_paper,
            }
            for experiment in experiments
            for panel in experiment.panels
            for claim in panel.claims
        ],
        "page": str(folder / "index.html"),
    }
