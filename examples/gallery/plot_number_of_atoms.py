"""
How many atoms?
===============

More atoms leave fewer wrong cells, always. They are worth having only while the description of the whole table gets
shorter: the bits of the atoms, of the codes and of the errors together. This total, the codelength L, has a minimum,
and the default search looks for it.
"""

import matplotlib.pyplot as plt

import bitatoms as ba

# Eight atoms; 5 % of the cells are flipped.
data = ba.datasets.planted(300, 50, 8, algebra="or", noise=0.05, random_state=0)
numbers = [2, 4, 6, 8, 10, 12]
results = [ba.factorize(data.X, k, algebra="or", objective="codelength", random_state=0) for k in numbers]
chosen = ba.factorize(data.X, algebra="or", random_state=0)  # n_components="mdl"
print(f"The search chooses {len(chosen.atoms)} atoms: {chosen.codelength.total} bits.")

# %%
# Codelength and wrong cells against the number of atoms. The errors keep falling slowly after eight atoms, because
# further atoms describe noise; L rises, because these atoms take more bits than they save.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
for part in ("errors", "codes", "atoms"):
    left.plot(numbers, [getattr(result.codelength, part) for result in results], marker=".", label=part)
left.plot(numbers, [result.codelength.total for result in results], color="black", marker="o", label="total: L")
left.axvline(len(chosen.atoms), color="0.7", zorder=0, label="chosen by MDL")
left.set(xlabel="number of atoms", ylabel="bits")
left.legend(frameon=False)
right.plot(numbers, [result.wrong_bits / data.X.size for result in results], color="black", marker="o")
right.axhline(0.05, color="0.7", zorder=0)
right.set(xlabel="number of atoms", ylabel="share of wrong cells")
right.annotate("the noise", (numbers[-1], 0.05), ha="right", va="bottom", color="0.4")

# %%
# Cells hidden from the search are a second opinion, which knows nothing of codelengths. How well do four atoms, and the
# number that MDL chooses, predict them? :doc:`/tutorials/missing` explains the figures.

print(ba.cross_validate_cells(data.X, [4, "mdl"], algebra="or", n_folds=2, random_state=0))
