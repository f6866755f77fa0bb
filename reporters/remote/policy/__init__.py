"""The site policy: what a reporter may do at its site, and what it may tell (``docs/site-policy.md``).

``file.py`` reads ``site-policy.json``. ``shapes.py`` has the types of its values, of which the reader and the
published JSON schema are made. ``rules`` has one file for each rule that can refuse a run.
"""
