"""Read files of measurements and job logs; an error names file and line of the invalid content."""
