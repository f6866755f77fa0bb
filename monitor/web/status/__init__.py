"""Status: the latest state of every series, counted when it changes; and what visitors see."""
