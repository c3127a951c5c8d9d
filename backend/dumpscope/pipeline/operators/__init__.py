"""Work on single operators: pre-check, scripts that run one call, hand-over, bisection."""
