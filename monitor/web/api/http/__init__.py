"""What all operations of the API share.

A list operation, in full (``lists`` has the details, ``filters`` what other lists filter by, too)::

    class SiteOut(Schema):
        name: str
        title: str

    class SiteList(ListOut):
        sites: list[SiteOut]

    class SiteQuery(Page):
        state: SiteState | None = None

    @router.get("/sites", response=SiteList, operation_id="list_sites", summary="List sites")
    def list_sites(request: HttpRequest, query: Query[SiteQuery]) -> HttpResponse:
        rows = Site.objects.visible_to(request.user).filter(**chosen(state=query.state))
        return list_rows(query, rows, SiteList, order=["sort_name"])

It answers ``{"sites": [...], "next": "<cursor>" | null}`` and takes ``limit``, ``cursor`` and ``fields``. An
operation that answers with one thing takes a ``Sparse`` query and returns ``show_item(query, row, SiteOut)``.

- Bodies extend ``schemas.Body``; times are ``schemas.Time``; names ``schemas.Name``. ``strict`` refuses
  everything else that is not declared.
- An error is ``raise problems.Refused(404, "unknown_site", detail)``.
- 201 and 202 name what was made: ``answers.created``.
- Every parameter and field has a description: its own (``Field(description=...)``), or that of its name in
  ``vocabulary``: a name means the same in every operation.
"""
