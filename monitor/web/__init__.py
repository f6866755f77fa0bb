"""The wing of answers, to people in a browser and to programs.

A request passes ``accounts``, which identifies its user, and reaches a page in ``pages`` or an operation in
``api``; both are thin. Other rooms compute their contents: ``matrix`` the overview, ``places`` a site,
resource or reporter, ``search`` lists and the search field, ``status`` the latest state of every series;
``charts`` draws.
``metrics`` answers Prometheus, ``reports`` writes the study as one document.

An answer reads stored results and computes little. Begin at ``pages/__init__.py``, then at the page of the
path.
"""
