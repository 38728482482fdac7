"""What stands beside the figures: the paper's claim, what is seen here, and why it differs."""

FIGURE_3 = COMPARISON = "TODO"
