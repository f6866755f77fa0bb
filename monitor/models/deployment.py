"""Deployments: remote reporters that the server has installed over SSH, and how to log in to upgrade them."""

from __future__ import annotations

from django.db import models

from monitor.models.reporter import Reporter


class Deployment(models.Model):
    """The place at which ``manage.py reporter deploy`` has installed a remote reporter."""

    reporter = models.OneToOneField(
        Reporter, on_delete=models.CASCADE, primary_key=True, related_name="deployment"
    )
    shell = models.JSONField(help_text='e.g. {"kind": "ssh", "host": "login.example.org"}')
    state_directory = models.CharField(max_length=1000, help_text="absolute path at the site")
    python = models.CharField(max_length=1000, help_text="absolute path of the interpreter at the site")
    archive_sha256 = models.CharField(max_length=64, help_text="of the installed version")
    installed_at = models.DateTimeField()

    class Meta:
        ordering = ["reporter__name"]

    def __str__(self) -> str:
        return f"{self.reporter} in {self.state_directory}"
