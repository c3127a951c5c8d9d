"""The causal rules O-1 to O-8 of docs/verdicts.md, one module a rule; `registry` lists them, `merging` joins what they find."""
