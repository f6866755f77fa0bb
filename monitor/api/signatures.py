"""Signatures: those in use, those proposed for runs of unknown cause; one's own, accepted and withdrawn."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from django.utils import timezone
from ninja import Query, Router, Schema, Status

from monitor.api.http.auth import require_signature_permission
from monitor.api.http.problems import Refused
from monitor.failures import own_signatures
from monitor.failures.own_signatures import InvalidSignatureValues, SignatureError
from monitor.failures.proposals import Proposal
from monitor.failures.unknown_failures import preview, proposals
from monitor.models import FailureSignature, OwnSignature, Run
from monitor.models.failure_signature import Category, Origin, Severity

if TYPE_CHECKING:
    from django.http import HttpRequest

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
    runs: int
    series: int
    first: datetime
    latest: datetime


class SignatureIn(Schema):
    """A signature to add; the fields are those of a grid file.

    *confirmed* accepts that it also matches runs that other signatures name now.
    """

    name: str
    title: str
    category: str
    severity: str
    patterns: list[str]
    help: str = ""
    counts_against_site: bool | None = None
    stages: list[str] = []
    tools: list[str] = []
    precedence: int = 0
    confirmed: bool = False

    @property
    def entry(self) -> dict[str, Any]:
        return self.dict(exclude={"name", "confirmed"}, exclude_unset=True)


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


class WithdrawalIn(Schema):
    """The *version* that you saw: a signature that was changed since is not withdrawn."""

    version: int


@router.get(
    "/failures/proposals", response=list[ProposalOut], summary="List signatures proposed for unknown causes"
)
def list_proposals(
    request: HttpRequest, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[ProposalOut]:
    """For the runs of 90 days that you may see; those that would name most runs first."""
    found = proposals(Run.objects.visible_to(request.user), timezone.now())
    return [_proposal(each) for each in found[:limit]]


@router.get(
    "/failures/signatures",
    response=list[SignatureOut],
    operation_id="monitor_api_failures_list_signatures",
    summary="List the causes that are recognised",
)
def list_signatures(request: HttpRequest) -> list[FailureSignature]:  # noqa: ARG001
    return list(FailureSignature.objects.all())


@router.get(
    "/failures/own-signatures", response=list[OwnSignatureOut], summary="List signatures with their patterns"
)
def list_own_signatures(request: HttpRequest) -> list[OwnSignature]:  # noqa: ARG001
    """Those that users and grid files added; `/failures/signatures` has the shipped ones too."""
    return list(OwnSignature.objects.all())


@router.post("/failures/signatures", response={201: OwnSignatureOut}, summary="Accept a signature")
def accept_signature(request: HttpRequest, order: SignatureIn) -> Status[OwnSignature]:
    """Failed runs are then judged again in the background."""
    require_signature_permission(request)
    now = timezone.now()
    try:
        signature = own_signatures.checked(order.name, order.entry)
        shown = preview(Run.objects.visible_to(request.user), signature, now)
        if shown.named and not order.confirmed:
            names = ", ".join(name for name, _ in shown.named)
            raise Refused(
                409,
                "matches_named",
                f"it also matches {shown.named_runs} runs that other signatures name: {names};"
                " make the patterns more precise, or set confirmed",
            )
        row = own_signatures.accept(order.name, order.entry, request.user.get_username(), now)
    except SignatureError as error:
        raise _refused(error) from None
    return Status(201, row)


@router.post(
    "/failures/signatures/{name}/withdraw", response={204: None}, summary="Withdraw a signature of one's own"
)
def withdraw_signature(request: HttpRequest, name: str, order: WithdrawalIn) -> Status[None]:
    """Its runs are then judged again in the background."""
    require_signature_permission(request)
    try:
        own_signatures.withdraw(name, order.version, request.user.get_username(), timezone.now())
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
        runs=proposal.runs,
        series=len(proposal.series),
        first=proposal.first,
        latest=proposal.latest,
    )


def _refused(error: SignatureError) -> Refused:
    if isinstance(error, InvalidSignatureValues):
        return Refused(422, "invalid", str(error))
    return Refused(409, "conflict", str(error))
