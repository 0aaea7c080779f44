"""What ``bitatoms reproduce`` does: runs the experiments of the paper, and says which of its claims hold."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from ..io.errors import FileError
from ..report.html.figures import check_matplotlib
from ..reproduce import Experiment, Verdict
from ..reproduce import reproduce as run_experiments
from ..reproduce.datasets import OPENML
from ..reproduce.experiment import summarize_verdicts
from .console import Line, doing, out, say, say_json
from .files import check_folder, check_named

_STYLES = {Verdict.AGREES: "green", Verdict.PARTLY: "yellow", Verdict.DIFFERS: "red", Verdict.NOT_SEEN: "dim"}


def reproduce(folder: Path, einstein: Path | None, mnist: str | None, seed: int, quiet: bool, json: bool) -> None:
    """Run the experiments, write the page, and say what came of the claims."""
    check_named(folder, "a folder")
    for given in (einstein, None if mnist in (None, OPENML) else Path(str(mnist))):
        if given is not None and not given.exists():
            raise FileError(f"{given}: there is no such file")
    check_matplotlib()
    check_folder(folder, "what is found")
    silent = quiet or json
    with doing("Getting ready", silent) as status:
        line = Line(silent, status)
        experiments = run_experiments(
            folder,
            einstein=einstein,
            mnist=mnist,
            random_state=seed,
            callback=lambda what: line.tell(f"{what}, {line.seconds}"),
        )
    if json:
        say_json(_as_json(experiments, folder))
    elif not quiet:
        _say_claims(experiments)
        say(f"\nThe page is {folder / 'index.html'}; open it in a browser. Figures and their numbers lie beside it.")


def _say_claims(experiments: list[Experiment]) -> None:
    """The claims of the paper, those that do not hold here with what was found instead."""
    for experiment in experiments:
        for panel in experiment.panels:
            if panel.claims:
                say(f"\n{experiment.title}: {panel.title}", style="bold")
            for claim in panel.claims:
                own = "" if claim.in_paper else " (not in the paper)"
                out.print(
                    Text.assemble((f"  {claim.verdict}: ", _STYLES[claim.verdict]), claim.statement, (own, "dim"))
                )
                if claim.verdict != Verdict.AGREES:
                    out.print(Text(f"    {claim.finding} {claim.explanation}".rstrip(), style="dim"))
    say(f"\n{summarize_verdicts(claim for experiment in experiments for claim in experiment.claims)}")


def _as_json(experiments: list[Experiment], folder: Path) -> dict[str, object]:
    """The claims, for machines."""
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
