//! What the messages are called, for those who ask by reflection: as in envoyproxy/data-plane-api, as far as they are
//! read or written here. A test holds them against the generated ones.

use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, FileDescriptorSet, MessageOptions, MethodDescriptorProto, OneofDescriptorProto,
    ServiceDescriptorProto,
};

const DURATION: &str = "google/protobuf/duration.proto";
const WRAPPERS: &str = "google/protobuf/wrappers.proto";
const STRUCT: &str = "google/protobuf/struct.proto";
const UNIT: &str = "envoy/type/v3/ratelimit_unit.proto";
const BASE: &str = "envoy/config/core/v3/base.proto";
const DESCRIPTOR: &str = "envoy/extensions/common/ratelimit/v3/ratelimit.proto";
const RLS: &str = "envoy/service/ratelimit/v3/rls.proto";

/// All files of the service, and what they import.
pub(super) fn files() -> FileDescriptorSet {
    let unit =
        [("UNKNOWN", 0), ("SECOND", 1), ("MINUTE", 2), ("HOUR", 3), ("DAY", 4), ("MONTH", 5), ("YEAR", 6)];
    let duration = message("Duration", [int64("seconds", 1), int32("nanos", 2)]);
    let wrapper = message("UInt64Value", [uint64("value", 1)]);
    let header = message("HeaderValue", [string("key", 1), string("value", 2)]);
    let files = [
        FileDescriptorProto { message_type: vec![duration], ..file(DURATION, "google.protobuf", &[]) },
        FileDescriptorProto { message_type: vec![wrapper], ..file(WRAPPERS, "google.protobuf", &[]) },
        FileDescriptorProto {
            message_type: structure().into(),
            enum_type: vec![enumeration("NullValue", &[("NULL_VALUE", 0)])],
            ..file(STRUCT, "google.protobuf", &[])
        },
        FileDescriptorProto {
            enum_type: vec![enumeration("RateLimitUnit", &unit)],
            ..file(UNIT, "envoy.type.v3", &[])
        },
        FileDescriptorProto { message_type: vec![header], ..file(BASE, "envoy.config.core.v3", &[]) },
        FileDescriptorProto {
            message_type: vec![descriptor()],
            ..file(DESCRIPTOR, "envoy.extensions.common.ratelimit.v3", &[UNIT, WRAPPERS])
        },
        FileDescriptorProto {
            message_type: vec![request(), response()],
            service: vec![service()],
            ..file(RLS, "envoy.service.ratelimit.v3", &[BASE, DESCRIPTOR, DURATION, STRUCT])
        },
    ];
    FileDescriptorSet { file: files.into() }
}

fn descriptor() -> DescriptorProto {
    const OWN: &str = ".envoy.extensions.common.ratelimit.v3.RateLimitDescriptor";
    let fields = [
        repeated(of_message("entries", 1, &format!("{OWN}.Entry"))),
        of_message("limit", 2, &format!("{OWN}.RateLimitOverride")),
        of_message("hits_addend", 3, ".google.protobuf.UInt64Value"),
        boolean("is_negative_hits", 4),
    ];
    let unit = of_enum("unit", 2, ".envoy.type.v3.RateLimitUnit");
    let inner = vec![
        message("Entry", [string("key", 1), string("value", 2)]),
        message("RateLimitOverride", [uint32("requests_per_unit", 1), unit]),
    ];
    DescriptorProto { nested_type: inner, ..message("RateLimitDescriptor", fields) }
}

fn request() -> DescriptorProto {
    let descriptor = ".envoy.extensions.common.ratelimit.v3.RateLimitDescriptor";
    let descriptors = repeated(of_message("descriptors", 2, descriptor));
    message("RateLimitRequest", [string("domain", 1), descriptors, uint32("hits_addend", 3)])
}

fn response() -> DescriptorProto {
    const OWN: &str = ".envoy.service.ratelimit.v3.RateLimitResponse";
    let code = |name, number| of_enum(name, number, &format!("{OWN}.Code"));
    let units = [
        ("UNKNOWN", 0),
        ("SECOND", 1),
        ("MINUTE", 2),
        ("HOUR", 3),
        ("DAY", 4),
        ("MONTH", 5),
        ("YEAR", 6),
        ("WEEK", 7),
    ];
    let unit = of_enum("unit", 2, &format!("{OWN}.RateLimit.Unit"));
    let limit = DescriptorProto {
        enum_type: vec![enumeration("Unit", &units)],
        ..message("RateLimit", [uint32("requests_per_unit", 1), unit, string("name", 3)])
    };
    let status = [
        code("code", 1),
        of_message("current_limit", 2, &format!("{OWN}.RateLimit")),
        uint32("limit_remaining", 3),
        of_message("duration_until_reset", 4, ".google.protobuf.Duration"),
    ];
    let fields = [
        code("overall_code", 1),
        repeated(of_message("statuses", 2, &format!("{OWN}.DescriptorStatus"))),
        repeated(of_message("response_headers_to_add", 3, ".envoy.config.core.v3.HeaderValue")),
        bytes("raw_body", 5),
        of_message("dynamic_metadata", 6, ".google.protobuf.Struct"),
    ];
    DescriptorProto {
        nested_type: vec![limit, message("DescriptorStatus", status)],
        enum_type: vec![enumeration("Code", &[("UNKNOWN", 0), ("OK", 1), ("OVER_LIMIT", 2)])],
        ..message("RateLimitResponse", fields)
    }
}

/// Protobuf's own JSON: `Struct`, `Value` and `ListValue`.
fn structure() -> [DescriptorProto; 3] {
    let value = |name, number| of_message(name, number, ".google.protobuf.Value");
    let entry = DescriptorProto {
        options: Some(MessageOptions { map_entry: Some(true), ..MessageOptions::default() }),
        ..message("FieldsEntry", [string("key", 1), value("value", 2)])
    };
    let fields = repeated(of_message("fields", 1, ".google.protobuf.Struct.FieldsEntry"));
    let kinds = [
        of_enum("null_value", 1, ".google.protobuf.NullValue"),
        field("number_value", 2, Type::Double),
        string("string_value", 3),
        boolean("bool_value", 4),
        of_message("struct_value", 5, ".google.protobuf.Struct"),
        of_message("list_value", 6, ".google.protobuf.ListValue"),
    ];
    let kinds = kinds.map(|kind| FieldDescriptorProto { oneof_index: Some(0), ..kind });
    let kind = OneofDescriptorProto { name: Some("kind".to_owned()), options: None };
    [
        DescriptorProto { nested_type: vec![entry], ..message("Struct", [fields]) },
        DescriptorProto { oneof_decl: vec![kind], ..message("Value", kinds) },
        message("ListValue", [repeated(value("values", 1))]),
    ]
}

fn service() -> ServiceDescriptorProto {
    let method = MethodDescriptorProto {
        name: Some("ShouldRateLimit".to_owned()),
        input_type: Some(".envoy.service.ratelimit.v3.RateLimitRequest".to_owned()),
        output_type: Some(".envoy.service.ratelimit.v3.RateLimitResponse".to_owned()),
        ..MethodDescriptorProto::default()
    };
    ServiceDescriptorProto {
        name: Some("RateLimitService".to_owned()),
        method: vec![method],
        ..ServiceDescriptorProto::default()
    }
}

fn file(name: &str, package: &str, imports: &[&str]) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some(package.to_owned()),
        dependency: imports.iter().map(|import| (*import).to_owned()).collect(),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

fn message(name: &str, fields: impl IntoIterator<Item = FieldDescriptorProto>) -> DescriptorProto {
    let field = fields.into_iter().collect();
    DescriptorProto { name: Some(name.to_owned()), field, ..DescriptorProto::default() }
}

fn enumeration(name: &str, values: &[(&str, i32)]) -> EnumDescriptorProto {
    let value = |(name, number): &(&str, i32)| EnumValueDescriptorProto {
        name: Some((*name).to_owned()),
        number: Some(*number),
        options: None,
    };
    let value = values.iter().map(value).collect();
    EnumDescriptorProto { name: Some(name.to_owned()), value, ..EnumDescriptorProto::default() }
}

fn field(name: &str, number: i32, kind: Type) -> FieldDescriptorProto {
    let mut field = FieldDescriptorProto {
        name: Some(name.to_owned()),
        json_name: Some(camel_case(name)),
        number: Some(number),
        ..FieldDescriptorProto::default()
    };
    field.set_type(kind);
    field.set_label(Label::Optional);
    field
}

/// The name in JSON: `hitsAddend`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| {
        let (initial, rest) = word.split_at(word.len().min(1));
        all + &initial.to_ascii_uppercase() + rest
    })
}

fn repeated(mut field: FieldDescriptorProto) -> FieldDescriptorProto {
    field.set_label(Label::Repeated);
    field
}

fn of_message(name: &str, number: i32, message: &str) -> FieldDescriptorProto {
    FieldDescriptorProto { type_name: Some(message.to_owned()), ..field(name, number, Type::Message) }
}

fn of_enum(name: &str, number: i32, enumeration: &str) -> FieldDescriptorProto {
    FieldDescriptorProto { type_name: Some(enumeration.to_owned()), ..field(name, number, Type::Enum) }
}

fn string(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::String)
}

fn bytes(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::Bytes)
}

fn boolean(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::Bool)
}

fn uint32(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::Uint32)
}

fn uint64(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::Uint64)
}

fn int32(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::Int32)
}

fn int64(name: &str, number: i32) -> FieldDescriptorProto {
    field(name, number, Type::Int64)
}
