"""
Genotypes of three populations
==============================

Two columns per variant: whether a person carries the allele, and whether they carry two copies. Neighbouring variants
are inherited together, and atoms are such groups; populations differ in how often they carry them.
"""

import matplotlib.pyplot as plt

import bitatoms as ba

table = ba.datasets.genotypes(400, 100)  # generated; ba.read reads .bed, .pgen, .vcf.gz and .bcf files
model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
print(model.summary_)

# %%
# The atoms that save most bits, above the correlation of the variants (linkage disequilibrium).

fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
ba.plots.genome_atoms(model.components_, table, table.column_data["position"], ax=ax)

# %%
# The share of each population that carries each atom; no population was named when the atoms were learned.

fig, ax = plt.subplots(figsize=(8, 2.6), layout="constrained")
ba.plots.group_heat_map(model.transform(table)[:, :30], table.row_data["population"], ax=ax)

# %%
# :doc:`/tutorials/genomes` continues with another cohort, missing genotypes and large files.
