"""`dre-bench evaluate`: what a prior would have saved on past tasks."""
