"""Who is best, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .comparison import Comparison, Dataset, Result

Measure = Callable[[Result], float]
_MOST_DIGITS = 5


def verdicts(comparison: Comparison, table: Dataset) -> list[str]:
    """What the runs on a table say: who gets the fewest cells wrong in each algebra, and who needs the fewest bits."""
    done = [result for result in comparison.results(table) if result.done]
    median = " in the median" if comparison.n_seeds > 1 else ""
    said = [*(_fewest_wrong(done, algebra, table, median) for algebra in ("or", "xor")), _of_all(done, table, median)]
    said += [_fewest_bits(done, table, median), _how_medians(done)]
    return [each for each in said if each] or ["There are no figures yet."]


def _how_medians(results: Sequence[Result]) -> str:
    """What medians are of, where there are several runs of a kind."""
    most = max((sum(run.done for run in each.runs) for each in results), default=0)
    if most < 2:
        return ""
    lower = "" if most % 2 else ", the lower of the two in the middle"
    return f"Figures are medians of {most} seeds{lower}; those of atoms, wrong cells, bits and seconds each for itself."


def _fewest_wrong(results: Sequence[Result], algebra: str, table: Dataset, median: str) -> str:
    """Who gets the fewest cells wrong with the most atoms that were asked for."""
    some = [each for each in results if algebra in each.contender.algebras and each.asked == table.ranks[-1]]
    if not some:
        return ""

    def wrong(result: Result) -> float:
        return result.wrong.middle

    first, second = _rivals(some, wrong)
    shares = _apart([100 * wrong(each) / table.n_cells for each in (first, second or first)])
    atoms = "1 atom" if table.ranks[-1] == 1 else f"{table.ranks[-1]} atoms"
    said = f"With {atoms}, {first.contender.name} gets {shares[0]} % of the cells wrong under {algebra.upper()}{median}"
    if second is None:
        return f"{said}."
    if wrong(first) == wrong(second):
        equal = [each.contender.name for each in some if not each.contender.ours and wrong(each) == wrong(first)]
        return f"{said}, and so {'does' if len(equal) == 1 else 'do'} {_listed(equal)}."
    return f"{said}; {_next(first, second)}, {shares[1]} %."


def _of_all(results: Sequence[Result], table: Dataset, median: str) -> str:
    """Who gets the fewest cells wrong in whichever algebra, where both were tried."""
    some = [each for each in results if each.asked == table.ranks[-1]]
    if len({each.contender.algebras for each in some}) < 2:
        return ""
    least = min(each.wrong.middle for each in some)
    first = [each.contender.label for each in some if each.wrong.middle == least]
    return f"The fewest of all{median}, in whichever algebra, are those of {_listed(first)}."


def _fewest_bits(results: Sequence[Result], table: Dataset, median: str) -> str:
    """Who describes the table in the fewest bits, with any number of atoms."""
    if not results:
        return ""

    def bits(result: Result) -> float:
        return result.bits.middle

    first, second = _rivals(results, bits)
    lengths = _apart([bits(each) / table.shape[0] for each in (first, second or first)])
    atoms = "1 atom" if first.atoms == 1 else f"{first.atoms} atoms"
    said = f"The shortest description{median} is by {first.contender.label}: {lengths[0]} bits a row with {atoms}"
    if bits(first) >= table.bits_without:
        return f"{said}, which is no shorter than without a model."
    if second is None:
        return f"{said}."
    if bits(first) == bits(second):
        same = {each.contender.label: None for each in results if not each.contender.ours and bits(each) == bits(first)}
        return f"{said}; {_listed(list(same))} {'comes' if len(same) == 1 else 'come'} to the same."
    over = bits(second) - table.bits_without
    beside = "" if over < 0 else ", more than without a model" if over else ", as many as without a model"
    return f"{said}; {_next(first, second)}, {lengths[1]}{beside}."


def _rivals(results: Sequence[Result], measure: Measure) -> tuple[Result, Result | None]:
    """The best; and the best of the others where that is bitatoms, else bitatoms."""
    first = min(results, key=lambda each: (measure(each), not each.contender.ours))
    rest = [each for each in results if each.contender.ours != first.contender.ours]
    return first, min(rest, key=measure, default=None)


def _listed(names: Sequence[str]) -> str:
    """Names with an "and" before the last."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _next(first: Result, second: Result) -> str:
    """How the second is called."""
    return f"the best of the others, {second.contender.name}" if first.contender.ours else second.contender.name


def _apart(figures: Sequence[float]) -> list[str]:
    """Figures with two digits, or with as many as tell them apart."""
    for digits in range(2, _MOST_DIGITS):
        written = [f"{figure:.{digits}f}" for figure in figures]
        if len(set(written)) == len(set(figures)):
            break
    return written
