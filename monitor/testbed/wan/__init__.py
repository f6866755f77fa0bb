"""The wide-area test-bed: one network namespace per site and an emulated network between them. Root only.

::

    the host                         reporter, web, ...                   10.98.N.250 on gridcastN
    `-- emulator.py                  one TUN device here and one per site; delays and drops packets
    site anl                         network, process, mount, UTS namespaces  10.98.N.1 on wan0
    |-- sshd, GridFTP, ...           real servers (``middleware``)
    site iu ...

The first process of each site holds the site's namespaces; when it ends, the kernel kills all processes in
them. The sites have no route out of 10.98.N.0/24, so no packet leaves the host.
"""
