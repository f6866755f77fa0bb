"""Numbers in, numbers out: what a series will show next, how sure that is, and how good it was before."""
