"""Made-up records, to try a release with."""

from __future__ import annotations

from fastapi import APIRouter

from hushsum.ledger import DatasetTerms
from hushsum.service.http.dependencies import ActorDependency, ContextDependency, Releaser, ThreadedRoute
from hushsum.service.http.routes.datasets import dataset_response, upload_response
from hushsum.service.http.uploads import store_upload
from hushsum.service.sample_records import SAMPLE_NAME, sample_records
from hushsum.service.schemas import SampleResponse
from hushsum.service.store.database import new_id
from hushsum.service.store.datasets import WAITING

router = APIRouter(prefix="/datasets/samples", tags=["datasets"], route_class=ThreadedRoute)


@router.post("", status_code=201)
def create_sample(caller: Releaser, context: ContextDependency, actor: ActorDependency) -> SampleResponse:
    """A dataset of made-up records with a budget of ε = 1, to try a release with.

    The records come from a fixed seed and are nobody's. The caller's dataset of this kind is used again.
    """
    sample = sample_records()
    found = next((each for each in context.datasets.of(caller.account) if each.name == SAMPLE_NAME), None)
    if found is None:
        context.check_booking()
        id = new_id("ds")
        context.ledger.create_dataset(id, DatasetTerms.of(epsilon=1.0), who=caller.name)
        found = context.datasets.create(id, caller.account, SAMPLE_NAME, actor)
    waiting = [
        each
        for each in context.datasets.uploads_of(found.id)
        if (each.state, each.size) == (WAITING, len(sample.csv))
    ]
    return SampleResponse(
        dataset=dataset_response(context, found),
        upload=upload_response(
            context,
            waiting[0]
            if waiting
            else store_upload(context, found.id, sample.csv, "csv", actor, "sample records"),
        ),
        header=list(sample.header),
        columns=list(sample.columns),
        bounds=[list(pair) for pair in sample.bounds],
        bandwidth=sample.bandwidth,
        records=sample.records,
    )
