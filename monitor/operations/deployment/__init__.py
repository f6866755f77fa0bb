"""Remote reporters, deployed from the server over SSH by ``manage.py reporter``.

``site_host.py`` is a login at a site and what is done there; ``deploy.py``, ``upgrade.py`` and ``remove.py``
are sequences of steps; ``many.py`` takes the steps at several sites at once and displays them.
"""
