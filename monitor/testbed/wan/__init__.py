"""The wide-area test-bed: a network namespace a site, and between them an emulated network. Root only.

::

    the machine                      reporter, web, ...                   10.98.N.250 on gridcastN
    `-- emulator.py                  one TUN here and one in each site; moves every packet, late or never
    site anl                         own network, processes, mounts, host name       10.98.N.1 on wan0
    |-- sshd, GridFTP, ...           real servers (``middleware``)
    site iu ...

Each site's first process holds its namespaces; when it ends, the kernel ends whatever lives in them. Nothing
has a route out of 10.98.N.0/24, so that nothing leaves the machine.
"""
