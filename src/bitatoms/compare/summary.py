"""The best methods on a table, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .results import ComparisonData, Dataset, Result

Measure = Callable[[Result], float]
_MAX_DIGITS = 5


def summarize(comparison: ComparisonData, table: Dataset) -> list[str]:
    """Return sentences on the fewest wrong cells in each algebra and on the fewest bits."""
    done = [result for result in comparison.results(table) if result.done]
    median = " in the median" if comparison.n_seeds > 1 else ""
    sentences = [
        *(_fewest_wrong(done, algebra, table, median) for algebra in ("or", "xor")),
        _fewest_wrong_overall(done, table, median),
        _fewest_bits(done, table, median),
        _explain_medians(done),
    ]
    return [sentence for sentence in sentences if sentence] or ["No run has finished."]


def _explain_medians(results: Sequence[Result]) -> str:
    """Explain the medians if there are several seeds."""
    n_seeds = max((sum(run.done for run in each.runs) for each in results), default=0)
    if n_seeds < 2:
        return ""
    lower = "" if n_seeds % 2 else " (the lower of the two middle values)"
    return (
        f"Figures are medians over {n_seeds} seeds{lower}, "
        "taken separately for the number of atoms, wrong cells, bits and seconds."
    )


def _fewest_wrong(results: Sequence[Result], algebra: str, table: Dataset, median: str) -> str:
    """Return the method of an algebra with the fewest wrong cells at the largest number of atoms."""
    rivals = [each for each in results if algebra in each.method.algebras and each.asked == table.ranks[-1]]
    if not rivals:
        return ""

    def wrong(result: Result) -> float:
        return result.wrong.median

    first, second = _best_and_rival(rivals, wrong)
    shares = _format_apart([100 * wrong(each) / table.n_cells for each in (first, second or first)])
    atoms = "1 atom" if table.ranks[-1] == 1 else f"{table.ranks[-1]} atoms"
    sentence = (
        f"With {atoms}, {first.method.name} gets {shares[0]} % of the cells wrong under {algebra.upper()}{median}"
    )
    if second is None:
        return f"{sentence}."
    if wrong(first) == wrong(second):
        equal = [each.method.name for each in rivals if not each.method.is_bitatoms and wrong(each) == wrong(first)]
        return f"{sentence}, as {'does' if len(equal) == 1 else 'do'} {_join_names(equal)}."
    return f"{sentence}; {_rival_name(first, second)} gets {shares[1]} %."


def _fewest_wrong_overall(results: Sequence[Result], table: Dataset, median: str) -> str:
    """Return the methods with the fewest wrong cells in any algebra, if both were tried."""
    rivals = [each for each in results if each.asked == table.ranks[-1]]
    if len({each.method.algebras for each in rivals}) < 2:
        return ""
    least = min(each.wrong.median for each in rivals)
    first = [each.method.label for each in rivals if each.wrong.median == least]
    have = "has" if len(first) == 1 else "have"
    return f"Across both algebras, {_join_names(first)} {have} the fewest wrong cells{median}."


def _fewest_bits(results: Sequence[Result], table: Dataset, median: str) -> str:
    """Return the method with the shortest codelength at any number of atoms."""
    if not results:
        return ""

    def bits(result: Result) -> float:
        return result.bits.median

    first, second = _best_and_rival(results, bits)
    lengths = _format_apart([bits(each) / table.shape[0] for each in (first, second or first)])
    atoms = "1 atom" if first.atoms == 1 else f"{first.atoms} atoms"
    name = first.method.label
    sentence = f"The shortest description{median} is that of {name}: {lengths[0]} bits per row with {atoms}"
    if bits(first) >= table.bits_without:
        return f"{sentence}, which is no shorter than without a model."
    if second is None:
        return f"{sentence}."
    if bits(first) == bits(second):
        equal = {
            each.method.label: None for each in results if not each.method.is_bitatoms and bits(each) == bits(first)
        }
        return f"{sentence}; {_join_names(list(equal))} {'needs' if len(equal) == 1 else 'need'} the same number."
    excess = bits(second) - table.bits_without
    without = "" if excess < 0 else ", more than without a model" if excess else ", as many as without a model"
    return f"{sentence}; {_rival_name(first, second)} needs {lengths[1]}{without}."


def _best_and_rival(results: Sequence[Result], measure: Measure) -> tuple[Result, Result | None]:
    """Return the best result, and the best of the other side: bitatoms if it is not the best, else another method."""
    first = min(results, key=lambda each: (measure(each), not each.method.is_bitatoms))
    rest = [each for each in results if each.method.is_bitatoms != first.method.is_bitatoms]
    return first, min(rest, key=measure, default=None)


def _join_names(names: Sequence[str]) -> str:
    """Join names by commas and a final "and"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _rival_name(first: Result, second: Result) -> str:
    """Return the subject of the clause on the second result."""
    return f"the best other method, {second.method.name}," if first.method.is_bitatoms else second.method.name


def _format_apart(values: Sequence[float]) -> list[str]:
    """Format values with two decimals, or with as many as show that they differ."""
    for digits in range(2, _MAX_DIGITS):
        formatted = [f"{value:.{digits}f}" for value in values]
        if len(set(formatted)) == len(set(values)):
            break
    return formatted
