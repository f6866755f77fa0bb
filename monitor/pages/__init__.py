"""The pages: one per file, thin; ``templates/pages/<name>.html`` mirrors them."""
