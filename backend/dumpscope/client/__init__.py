"""A client of the REST interface, for scripts and notebooks: `Client`, and `AsyncClient` with the same methods.

from dumpscope.client import Client

with Client("http://127.0.0.1:8000") as client:
    target, golden = client.upload("npu_dump"), client.register("/data/gpu_dump")
    result = client.compare(target, golden)
    print(result.outcome, [origin.node for origin in client.origins(result)])
"""

from dumpscope.client.asynchronous import AsyncClient
from dumpscope.client.blocking import Client
from dumpscope.client.records import (
    Comparison,
    Dump,
    Job,
    Origin,
    ServerError,
    Suspect,
    Watch,
    Webhook,
    WorkFailed,
    to_frame,
)
from dumpscope.jobs.webhooks import SignatureError, verify_webhook

__all__ = [
    "AsyncClient",
    "Client",
    "Comparison",
    "Dump",
    "Job",
    "Origin",
    "ServerError",
    "SignatureError",
    "Suspect",
    "Watch",
    "Webhook",
    "WorkFailed",
    "to_frame",
    "verify_webhook",
]
