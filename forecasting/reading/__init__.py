"""Read files of measurements and job logs; errors name the place of what is wrong."""
