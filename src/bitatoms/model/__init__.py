"""What a factorization is, and what it states: results, models, patterns, rules, predictions."""
