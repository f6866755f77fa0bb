"""Access: the roles of users, the tokens of programs, and the record of changes and refusals."""
