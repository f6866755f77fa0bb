"""Remote reporters: enrolment, credentials, assignments and exchanges with the agents at sites."""
