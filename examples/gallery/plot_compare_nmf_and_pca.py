"""
Atoms, NMF and PCA on the same table
====================================

PCA and NMF factorize a table into real numbers. On yes/no data, their components are read by thresholds, and their
product is not a table of 0 and 1. This example shows the same table through all three.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import NMF, PCA

import bitatoms as ba

K = 8
data = ba.datasets.planted(400, 60, K, algebra="or", atom_density=0.3, code_density=0.3, noise=0.1, random_state=2)


def factorized(X, n_components):
    """Return the components of each method, and its product with the codes as 0 and 1."""
    atoms = ba.factorize(X, n_components, algebra="or", random_state=0)
    nmf = NMF(n_components, init="nndsvda", max_iter=400, tol=1e-3, random_state=0)
    pca = PCA(n_components)
    nmf_codes, pca_codes = nmf.fit_transform(X.astype(float)), pca.fit_transform(X.astype(float))
    return {
        "atoms": (atoms.atoms.to_dense(), atoms.reconstruct().to_dense()),
        "NMF": (nmf.components_, nmf_codes @ nmf.components_ > 0.5),
        "PCA": (pca.components_, pca.inverse_transform(pca_codes) > 0.5),
    }


found = factorized(data.X, K)

# %%
# The components, each next to the true atom that it is most similar to. Atoms overlap here, and a tenth of the cells
# is noise. The components of NMF have weights, where the atoms have bits. PCA mixes atoms, with both signs (red and
# grey).


def in_order(parts):
    """Return the components in the order of the true atoms."""
    similar = np.abs(np.corrcoef(data.atoms, parts)[:K, K:])
    order = []
    for row in similar:
        order.append(max(set(range(K)) - set(order), key=row.__getitem__))
    return np.asarray(parts, float)[order]


fig, axes = plt.subplots(4, 1, figsize=(9, 7), layout="constrained")
shown = {"true atoms": data.atoms} | {name: parts for name, (parts, _) in found.items()}
for ax, (name, parts) in zip(axes, shown.items(), strict=True):
    parts = in_order(parts)
    limit = np.abs(parts).max()
    ax.imshow(parts, cmap="RdGy", vmin=-limit, vmax=limit, aspect="auto", interpolation="none")
    ax.set(title=name, xticks=[], yticks=[])

# %%
# The product of real factors is rounded, at one half, to be compared with the table. Which method has the fewest
# wrong cells says little: of the 10 % that are noise, a method should leave all wrong. The clean table, which is
# known here, shows what each has understood.

for name, (_, made) in found.items():
    wrong, misunderstood = (made != data.X).mean(), (made != data.clean).mean()
    print(f"{name:<6}{wrong:6.1%} of the cells wrong, {misunderstood:5.1%} of the clean ones")

# %%
# Handwritten digits are not made of overlapping atoms: grey values would be a better description than patterns.
# There, with 16 components, PCA leaves the fewest wrong pixels, and it is the better tool if only the approximation
# counts.

X, _ = ba.datasets.digits()
for name, (_, made) in factorized(X, 16).items():
    print(f"{name:<6}{(made != X).mean():6.1%} of the pixels wrong")

# %%
# :doc:`/which-tool` states when PCA, NMF and others serve better.
