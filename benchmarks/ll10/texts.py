"""What stands beside the figures: the paper's claim, what is seen here, and why it differs."""

FIGURE_3 = FIGURE_4 = FIGURE_5 = FIGURE_6 = FIGURE_7 = FIGURE_8 = COSTS = KERNELS = SLOPES = "TODO"
