"""Signatures of one's own: those proposed for runs of unknown cause, the form of one, and their history."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from monitor.analysis.signatures import own as own_signatures
from monitor.analysis.signatures.active import signature_of
from monitor.analysis.signatures.loading import SignatureEntry
from monitor.analysis.signatures.own import InvalidSignatureValues, SignatureError
from monitor.analysis.signatures.signature import Signature
from monitor.analysis.signatures.unknown_failures import preview, proposals
from monitor.models import JudgedHistory, OwnSignature, Run, SignatureChange
from monitor.models.own_signature import MANAGE_SIGNATURES
from monitor.web.pages.http.access import members_only
from monitor.web.pages.http.crumbs import crumbs_of
from monitor.web.pages.http.navigation import NavigationEntry
from monitor.web.pages.http.parts import compute
from monitor.web.pages.http.read_form import accepts_form, entry_bytes
from monitor.web.pages.http.signature_form import (
    EMPTY,
    Form,
    form_context,
    form_of_proposal,
    form_of_row,
    submitted,
    values_of,
)

MOST_PROPOSALS = 50
MOST_CHANGES = 50


@members_only
def page(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    runs, changes = Run.objects.visible_to(request.user), SignatureChange.objects.all()[:MOST_CHANGES]
    proposed = compute(request, "proposals", lambda: proposals(runs, now)) or []
    history = compute(request, "judged", JudgedHistory.objects.first)
    context = {
        "crumbs": crumbs_of("failures"),
        "proposals": proposed[:MOST_PROPOSALS],
        "more_proposals": max(len(proposed) - MOST_PROPOSALS, 0),
        "own": compute(request, "own", lambda: list(OwnSignature.objects.all())),
        "changes": compute(request, "changes", lambda: list(changes)),
        "most_changes": MOST_CHANGES,
        "judged_until": history.rejudge_before if history else None,
        "may_manage": request.user.has_perm(MANAGE_SIGNATURES),
        "now": now,
    }
    return render(request, "pages/signatures.html", context)


@accepts_form(entry_bytes(SignatureEntry.model_json_schema()))
@members_only
@permission_required(MANAGE_SIGNATURES, raise_exception=True)
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Add a signature, or show the form, filled in with the proposal that the query string names."""
    if request.method == "POST":
        return _submit(request, None)
    key = request.GET.get("proposal", "")
    if not key:
        return _form(request, EMPTY, None)
    found = proposals(Run.objects.visible_to(request.user), timezone.now())
    proposal = next((each for each in found if each.key == key), None)
    if proposal is None:
        messages.error(request, "This proposal exists no more: its runs have a cause now, or other texts.")
        return redirect("signatures")
    form, reason = form_of_proposal(proposal.signature), proposal.category_reason
    return _form(request, form, None, proposal.signature, reason=reason)


@accepts_form(entry_bytes(SignatureEntry.model_json_schema()))
@members_only
@permission_required(MANAGE_SIGNATURES, raise_exception=True)
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    """Show the form of a signature, or change it."""
    row = get_object_or_404(OwnSignature, name=name)
    if request.method == "POST":
        return _submit(request, row)
    return _form(request, form_of_row(row), row, signature_of(row))


@members_only
@require_POST
@permission_required(MANAGE_SIGNATURES, raise_exception=True)
def withdraw(request: HttpRequest, name: str) -> HttpResponse:
    try:
        own_signatures.withdraw(name, _version(request), request.user.get_username(), timezone.now())
    except SignatureError as error:
        messages.error(request, f"Withdraw: {error}.")
    else:
        messages.success(request, f"Signature {name} withdrawn. Its runs are judged again.")
    return redirect("signatures")


def _submit(request: HttpRequest, row: OwnSignature | None) -> HttpResponse:
    """Preview or save the submitted form; if it is refused, show it again with the errors."""
    form = submitted(request.POST)
    name, values = row.name if row else form["name"], values_of(form)
    try:
        signature = own_signatures.checked(name, values)
    except InvalidSignatureValues as error:
        return _form(request, form, row, problems=error.problems)
    if request.POST.get("verb") != "save":
        return _form(request, form, row, signature)
    user, now = request.user.get_username(), timezone.now()
    has_others = bool(preview(Run.objects.visible_to(request.user), signature, now).named)
    if has_others and "confirmed" not in request.POST:
        return _form(
            request, form, row, signature, error="Confirm that it also matches runs of other causes."
        )
    try:
        if row is None:
            own_signatures.accept(name, values, user, now)
        else:
            own_signatures.edit(name, values, _version(request), user, now)
    except SignatureError as error:
        return _form(request, form, row, signature, error=f"{str(error)[:1].upper()}{str(error)[1:]}.")
    messages.success(
        request, f"Signature {name} {'changed' if row else 'added'}. Failed runs are judged again."
    )
    return redirect("signatures")


def _form(
    request: HttpRequest,
    form: Form,
    row: OwnSignature | None,
    signature: Signature | None = None,
    *,
    problems: Mapping[str, str] | None = None,
    error: str = "",
    reason: str = "",
) -> HttpResponse:
    """Show *form*, of *row* or of a new signature, with a preview of *signature* if its values are valid."""
    context = {
        **form_context(form, problems or {}),
        "crumbs": crumbs_of("failures", "signatures"),
        "row": row,
        "error": error,
        "reason": reason,
    }
    if signature is not None:
        runs = Run.objects.visible_to(request.user)
        context["preview"] = compute(request, "preview", lambda: preview(runs, signature, timezone.now()))
    return render(request, "pages/signature_form.html", context, status=409 if problems or error else 200)


def _version(request: HttpRequest) -> int:
    version = request.POST.get("version", "")
    return int(version) if version.isascii() and version.isdecimal() and len(version) < 10 else 0


entries = [NavigationEntry("Failures", "Signatures", "signatures", pages=("signature-new", "signature-edit"))]
urlpatterns = [
    path("failures/signatures/", page, name="signatures"),
    path("failures/signatures/new/", new, name="signature-new"),
    path("failures/signatures/edit/<slug:name>/", edit, name="signature-edit"),
    path("failures/signatures/withdraw/<slug:name>/", withdraw, name="signature-withdraw"),
]
