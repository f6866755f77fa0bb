"""Find out what hosts offer to probes, and propose a first grid: ``manage.py init``.

``ssh_hosts.py`` finds hosts, ``facts.py`` collects facts about each host, ``trials.py`` runs probes with
small parameters, and ``proposal.py`` turns the results into the definitions of a grid file.
"""
