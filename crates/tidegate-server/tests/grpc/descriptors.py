"""Holds file descriptors against the generated messages of Envoy's protocol.

Reads a serialized FileDescriptorSet from standard input, and prints what differs: nothing if all is well. What xds-protos
does not know yet is named on the command line.
"""

import re
import sys

from envoy.config.core.v3 import base_pb2
from envoy.extensions.common.ratelimit.v3 import ratelimit_pb2
from envoy.service.ratelimit.v3 import rls_pb2
from google.protobuf import descriptor_pb2, duration_pb2, struct_pb2, wrappers_pb2
from envoy.type.v3 import ratelimit_unit_pb2

RIGHT = {}
for module in [base_pb2, ratelimit_pb2, rls_pb2, duration_pb2, struct_pb2, wrappers_pb2, ratelimit_unit_pb2]:
    right = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(right)
    RIGHT[right.name] = right


def named(items):
    return {item.name: item for item in items}


def enums(where, own, right):
    for enum in own:
        others = named(named(right)[enum.name].value)
        for value in enum.value:
            if value.number != others[value.name].number:
                print(f"{where}.{enum.name}.{value.name}: {value.number}")
        if len(enum.value) != len(others):
            print(f"{where}.{enum.name}: other values")


def messages(where, own, right):
    for message in own:
        path, other = f"{where}.{message.name}", named(right)[message.name]
        for field in message.field:
            twin = named(other.field).get(field.name)
            if twin is None:
                if f"{path}.{field.name}" not in sys.argv:
                    print(f"{path}.{field.name}: unknown")
                continue
            for part in ["number", "label", "type", "type_name", "oneof_index"]:
                if getattr(field, part) != getattr(twin, part):
                    print(f"{path}.{field.name}: {part}: {getattr(field, part)}")
            # The package is stripped of these.
            if field.json_name != re.sub("_(.)", lambda it: it[1].upper(), field.name):
                print(f"{path}.{field.name}: json_name: {field.json_name}")
        messages(path, message.nested_type, other.nested_type)
        enums(path, message.enum_type, other.enum_type)


for file in descriptor_pb2.FileDescriptorSet.FromString(sys.stdin.buffer.read()).file:
    right = RIGHT[file.name]
    if file.package != right.package or not set(file.dependency) <= set(right.dependency):
        print(f"{file.name}: {file.package}, {list(file.dependency)}")
    messages(file.package, file.message_type, right.message_type)
    enums(file.package, file.enum_type, right.enum_type)
    for service in file.service:
        others = named(named(right.service)[service.name].method)
        for method in service.method:
            if (method.input_type, method.output_type) != (others[method.name].input_type, others[method.name].output_type):
                print(f"{service.name}.{method.name}")
