"""
The strokes of handwritten digits
=================================

Digits of 8 × 8 pixels, as black and white. An atom is a set of pixels that many digits have in common: often a
stroke, or a part of one. No label is used.
"""

import matplotlib.pyplot as plt
import numpy as np

import bitatoms as ba

X, labels = ba.datasets.digits()
result = ba.factorize(X, algebra="or", random_state=0)
print(result.summary())

# %%
# The atoms, those that save most bits first.

fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ba.plots.mosaic(result.atoms.to_dense() ^ result.bias, (8, 8), columns=14, ax=ax)
ax.set_title(f"{len(result.atoms)} atoms of {len(X)} digits")

# %%
# Some digits, what codes and atoms make of them, and the pixels that this gets wrong.

shown = [int(np.flatnonzero(labels == digit)[0]) for digit in range(10)]
fig, ax = plt.subplots(figsize=(4, 7), layout="constrained")
ba.plots.before_after(X[shown], result.reconstruct().to_dense()[shown], (8, 8), ax=ax)

# %%
# Which digits use which atoms. Many atoms belong to few digits, although the labels were not known when they were
# learned: :doc:`classification </tutorials/classification>` learns the atoms of each class instead.

fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
ba.plots.group_heat_map(result.codes.to_dense()[:, :25], labels, ax=ax)
