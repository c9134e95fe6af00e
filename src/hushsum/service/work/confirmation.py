"""The digest by which an owner confirms a claim before it is paid for."""

from __future__ import annotations

import hashlib
import json

from hushsum.files.container import canonical_json
from hushsum.privacy.claim import Claim
from hushsum.service.schemas import RequestBody


def confirmation(dataset: str, request: RequestBody, claim: Claim, *, of: type[RequestBody]) -> str:
    """The digest of a claim, its dataset and its request.

    Parameters
    ----------
    of : type
        The request of the claim. A confirmed request has the same fields and ``confirm``, which is left out.
    """
    parameters = {name: getattr(request, name) for name in of.model_fields}
    text = canonical_json([dataset, of.__name__, json.loads(json.dumps(parameters)), claim.as_json()])
    return hashlib.sha256(text).hexdigest()
