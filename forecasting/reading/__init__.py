"""Files of measurements and logs, read and refused with the place of what is wrong."""
