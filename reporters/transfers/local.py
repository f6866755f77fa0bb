"""Copy with ``cp`` between two directories of one host."""

from __future__ import annotations

from probes.grid import Capabilities, CopyOptions
from reporters.copying import SourceProgram


class Transfer(SourceProgram):
    """Copies with ``cp``. There are no options."""

    capabilities = Capabilities(third_party=True, parallel_streams=False, server_checksum=False)

    def command(self, source_path: str, target_path: str, options: CopyOptions) -> list[str]:
        return ["cp", "--", source_path, target_path]
