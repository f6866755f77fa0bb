"""The overview: sites by columns, with the counts, figures and head of a page of it."""
