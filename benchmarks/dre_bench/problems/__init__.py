"""What is done on a task: one file for each kind of problem, all of them in `catalogue`."""
