"""Asks Tidegate as any gRPC program does, by the messages of Envoy's own protocol. Prints JSON.

Usage: rls.py PORT [CA [CERT KEY]], the files of TLS if it is spoken
"""

import json
import sys

import grpc
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2
from envoy.service.ratelimit.v3 import rls_pb2, rls_pb2_grpc
from envoy.type.v3 import ratelimit_unit_pb2
from google.protobuf import wrappers_pb2

PATIENCE = 60


def descriptor(entries, hits=None, limit=None):
    one = ratelimit_pb2.RateLimitDescriptor()
    for key, value in entries.items():
        one.entries.add(key=key, value=value)
    if hits is not None:
        one.hits_addend.CopyFrom(wrappers_pb2.UInt64Value(value=hits))
    if limit is not None:
        one.limit.requests_per_unit, one.limit.unit = limit
    return one


def told(answer):
    unit = rls_pb2.RateLimitResponse.RateLimit.Unit
    return {
        "overall": rls_pb2.RateLimitResponse.Code.Name(answer.overall_code),
        "statuses": [
            {
                "code": rls_pb2.RateLimitResponse.Code.Name(status.code),
                "limit": status.current_limit.requests_per_unit,
                "unit": unit.Name(status.current_limit.unit),
                "name": status.current_limit.name,
                "remaining": status.limit_remaining,
                "reset": status.duration_until_reset.ToTimedelta().total_seconds(),
            }
            for status in answer.statuses
        ],
        "headers": {header.key: header.value for header in answer.response_headers_to_add},
        "body": json.loads(answer.raw_body or b"null"),
    }


def channel_to(port, ca=None, cert=None, key=None):
    target = f"127.0.0.1:{port}"
    if ca is None:
        return grpc.insecure_channel(target)
    content = lambda path: path and open(path, "rb").read()
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(content(ca), content(key), content(cert)))


def main():
    with channel_to(*sys.argv[1:]) as channel:
        service = rls_pb2_grpc.RateLimitServiceStub(channel)

        def ask(*descriptors, domain="edge", hits=0):
            request = rls_pb2.RateLimitRequest(domain=domain, descriptors=descriptors, hits_addend=hits)
            return told(service.ShouldRateLimit(request, timeout=PATIENCE))

        acme = {"tenant": "acme"}
        hour = (5, ratelimit_unit_pb2.RateLimitUnit.HOUR)
        answers = {
            "first": ask(descriptor(acme), descriptor({"no": "limit"})),
            "of the request": ask(descriptor(acme), hits=4),
            "of the descriptor": ask(descriptor(acme, hits=2), hits=9),
            "look": ask(descriptor(acme, hits=0)),
            "over": ask(descriptor(acme, hits=4), descriptor({"tenant": "other"})),
            "brought": ask(descriptor(acme, limit=hour)),
            "unlimited": ask(descriptor({"tenant": "acme", "path": "/free"})),
        }
        try:
            ask(domain="edge")
        except grpc.RpcError as error:
            answers["nothing"] = [error.code().name, error.details()]
        print(json.dumps(answers))


main()
