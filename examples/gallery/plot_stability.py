"""
Which atoms can be trusted
==========================

A search always returns atoms. Searches of random halves of the rows show which of them are found again.
"""

import matplotlib.pyplot as plt

import bitatoms as ba

data = ba.datasets.planted(500, 60, 8, algebra="or", noise=0.08, random_state=0)  # eight true atoms
model = ba.BinaryDictionaryLearning(12, algebra="or", random_state=0).fit(data.X)  # twelve are asked for
result = ba.stability(data.X, model, n_resamples=8, random_state=0)
print(result)

# %%
# The overlap of each atom with the most similar true one, which is known here, against the share of the searches that
# found it again, which can be computed for any table.

atoms = model.components_.astype(int)
shared = atoms @ data.atoms.T.astype(int)
either = atoms.sum(axis=1)[:, None] + data.atoms.sum(axis=1, dtype=int) - shared
true_overlap = (shared / either).max(axis=1)
fig, ax = plt.subplots(figsize=(5.5, 4), layout="constrained")
ax.axvspan(0.75, 1.02, color="0.93", zorder=0)
ax.scatter(result.recurs, true_overlap, color="black", s=36, alpha=0.6)
ax.set(xlabel="share of 8 searches of half of the rows that find it again", ylabel="overlap with a true atom")
ax.annotate("stable", (0.76, 0.05), color="0.4")
ax.set(xlim=(-0.02, 1.02), ylim=(0, 1.05))

# %%
# :doc:`/tutorials/stability` explains the shares, and why halves of the rows are used.
