"""
What is bought together
=======================

A table with one row per basket and one column per item. Atoms are sets of items that are bought together more often
than chance and the other atoms explain; their number is found, not given.
"""

import matplotlib.pyplot as plt
import numpy as np

import bitatoms as ba

table = ba.datasets.baskets()  # generated; ba.read("baskets.csv") reads your own
model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
print(model.summary_)

# %%
# A pattern has the names of its items, the baskets that use it, and the bits that it saves.

patterns = model.patterns()
for number, pattern in enumerate(patterns, start=1):
    print(f"{number:2}  {pattern.rows:4} baskets  {pattern.bits_saved:5} bits  {', '.join(pattern.features)}")

# %%
# The baskets sorted by their first pattern: patterns appear as blocks. A basket may use several patterns.

codes = model.transform(table)
items = [item for pattern in patterns for item in pattern.features]
items = list(dict.fromkeys(items))
used = np.flatnonzero(codes.any(axis=1))
order = used[np.argsort(codes[used].argmax(axis=1), kind="stable")]
columns = [list(table.columns).index(item) for item in items]
fig, ax = plt.subplots(figsize=(9, 6), layout="constrained")
ax.imshow(table.to_dense()[order][:, columns], cmap="gray_r", aspect="auto", interpolation="none")
ax.set_xticks(range(len(items)), items, rotation=90, fontsize=7)
ax.set(ylabel=f"{len(order)} baskets that use a pattern", yticks=[])

# %%
# From patterns follow rules, with exact counts, and recommendations.

for rule in model.rules(table)[:3]:
    print(rule)
names, probabilities = model.recommend(table, 3)
best = zip(names[2], probabilities[2], strict=True)
print(f"{table.row_names[2]}, next:", ", ".join(f"{name} ({share:.0%})" for name, share in best))

# %%
# :doc:`/tutorials/baskets` explains the figures, and does the same on the command line.
