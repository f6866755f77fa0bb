"""The spool of a reporter: hash chains of records in segment files, until the server has them."""
