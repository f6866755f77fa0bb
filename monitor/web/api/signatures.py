"""Signatures: those in use, those proposed for runs of unknown cause; one's own, accepted and withdrawn."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.utils import timezone
from ninja import Query, Router, Schema, Status

from monitor.analysis.signatures import own as own_signatures
from monitor.analysis.signatures.own import InvalidSignatureValues, SignatureError
from monitor.analysis.signatures.proposals import Proposal
from monitor.analysis.signatures.unknown_failures import preview, proposals
from monitor.models import FailureSignature, OwnSignature, Run
from monitor.models.failure_signature import Category, Origin, Severity
from monitor.models.token import MANAGE
from monitor.web.api.http.answers import created
from monitor.web.api.http.auth import require_signature_permission
from monitor.web.api.http.declare import declare
from monitor.web.api.http.lists import ListOut, Page, Sparse, list_items, list_rows, show_item
from monitor.web.api.http.problems import Refused
from monitor.web.api.http.schemas import Body, Name

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

router = Router(tags=["failures"])


class SignatureOut(Schema):
    """A cause of failures. *counts_against_site* tells whether the adjusted success rate counts it.

    A `withdrawn` signature names no runs any more.
    """

    name: str
    title: str
    category: Category
    severity: Severity
    counts_against_site: bool
    help: str
    origin: Origin


class ProposalOut(Schema):
    """A signature that would name runs of unknown cause.

    *category* is `unknown` unless a word of the texts, *category_reason*, suggests one. *template* is the
    text with names of its variable parts.
    """

    name: str
    title: str
    category: Category
    category_reason: str
    severity: Severity
    patterns: list[str]
    template: str
    examples: list[str]
    run_count: int
    series_count: int
    first_at: datetime
    latest_at: datetime


class SignatureIn(Body):
    """A signature to add; the fields are those of a grid file.

    *is_confirmed* accepts that it also matches runs that other signatures name now.
    """

    name: Name
    title: str
    category: str
    severity: str
    patterns: list[str]
    help: str = ""
    counts_against_site: bool | None = None
    stages: list[str] = []
    tools: list[str] = []
    precedence: int = 0
    is_confirmed: bool = False

    @property
    def entry(self) -> dict[str, Any]:
        return self.model_dump(exclude={"name", "is_confirmed"}, exclude_unset=True)


class OwnSignatureOut(Schema):
    """A signature that a user or a grid file added; *changed_by* is empty for a grid file."""

    name: str
    title: str
    category: Category
    severity: Severity
    patterns: list[str]
    help: str
    counts_against_site: bool | None
    stages: list[str]
    tools: list[str]
    precedence: int
    origin: Origin
    version: int
    changed_at: datetime
    changed_by: str


class WithdrawalIn(Body):
    """The *version* that you saw: a signature that was changed since is not withdrawn."""

    version: int


class ProposalList(ListOut):
    proposals: list[ProposalOut]


class SignatureList(ListOut):
    signatures: list[SignatureOut]


class OwnSignatureList(ListOut):
    signatures: list[OwnSignatureOut]


@router.get(
    "/failures/proposals",
    response=ProposalList,
    operation_id="list_signature_proposals",
    summary="List signatures proposed for unknown causes",
)
def list_signature_proposals(request: HttpRequest, query: Query[Page]) -> HttpResponse:
    """For the runs of 90 days that you may see; those that would name most runs first."""
    found = proposals(Run.objects.visible_to(request.user), timezone.now())
    return list_items(
        query,
        found,
        ProposalList,
        key=lambda proposal: (-proposal.runs, proposal.signature.name),
        show=_proposal,
    )


@router.get(
    "/failures/signatures",
    response=SignatureList,
    operation_id="list_signatures",
    summary="List the causes that are recognised",
)
def list_signatures(request: HttpRequest, query: Query[Page]) -> HttpResponse:
    return list_rows(query, FailureSignature.objects.all(), SignatureList, order=["name"])


@router.get(
    "/failures/own-signatures",
    response=OwnSignatureList,
    operation_id="list_own_signatures",
    summary="List signatures with their patterns",
)
def list_own_signatures(request: HttpRequest, query: Query[Page]) -> HttpResponse:
    """Those that users and grid files added; `/failures/signatures` has the shipped ones too."""
    return list_rows(query, OwnSignature.objects.all(), OwnSignatureList, order=["name"])


@router.get(
    "/failures/own-signatures/{signature}",
    response=OwnSignatureOut,
    operation_id="show_own_signature",
    openapi_extra=declare(errors={404: ["unknown_signature"]}),
    summary="Show a signature with its patterns",
)
def show_own_signature(request: HttpRequest, signature: str, query: Query[Sparse]) -> HttpResponse:
    found = OwnSignature.objects.filter(name=signature).first()
    if found is None:
        raise Refused(404, "unknown_signature", f"there is no signature {signature!r} of a user or grid file")
    return show_item(query, found, OwnSignatureOut)


@router.post(
    "/failures/signatures",
    response={201: OwnSignatureOut},
    operation_id="accept_signature",
    openapi_extra=declare(
        scope=MANAGE,
        errors={409: ["conflict", "matches_named"]},
        permission=require_signature_permission,
        example={
            "name": "tape-missing",
            "title": "No tape drive is free",
            "category": "storage",
            "severity": "minor",
            "patterns": ["no free tape drive"],
        },
    ),
    summary="Accept a signature",
)
def accept_signature(request: HttpRequest, order: SignatureIn) -> HttpResponse:
    """Failed runs are then judged again in the background."""
    now = timezone.now()
    try:
        signature = own_signatures.checked(order.name, order.entry)
        shown = preview(Run.objects.visible_to(request.user), signature, now)
        if shown.named and not order.is_confirmed:
            names = ", ".join(name for name, _ in shown.named)
            raise Refused(
                409,
                "matches_named",
                f"it also matches {shown.named_runs} runs that other signatures name: {names};"
                " make the patterns more precise, or set is_confirmed",
            )
        row = own_signatures.accept(order.name, order.entry, request.user.get_username(), now)
    except SignatureError as error:
        raise _refused(error) from None
    location = f"/failures/own-signatures/{row.name}"
    return created(OwnSignatureOut.from_orm(row), status=201, location=location)


@router.post(
    "/failures/signatures/{signature}/withdraw",
    response={204: None},
    operation_id="withdraw_signature",
    openapi_extra=declare(scope=MANAGE, errors={409: ["conflict"]}, permission=require_signature_permission),
    summary="Withdraw a signature of one's own",
)
def withdraw_signature(request: HttpRequest, signature: str, order: WithdrawalIn) -> Status[None]:
    """Its runs are then judged again in the background."""
    try:
        own_signatures.withdraw(signature, order.version, request.user.get_username(), timezone.now())
    except SignatureError as error:
        raise _refused(error) from None
    return Status(204, None)


def _proposal(proposal: Proposal) -> ProposalOut:
    signature = proposal.signature
    return ProposalOut(
        name=signature.name,
        title=signature.title,
        category=signature.category,
        category_reason=proposal.category_reason,
        severity=signature.severity,
        patterns=list(signature.patterns),
        template=proposal.template,
        examples=list(proposal.examples),
        run_count=proposal.runs,
        series_count=len(proposal.series),
        first_at=proposal.first,
        latest_at=proposal.latest,
    )


def _refused(error: SignatureError) -> Refused:
    if isinstance(error, InvalidSignatureValues):
        return Refused(422, "invalid", str(error))
    return Refused(409, "conflict", str(error))
