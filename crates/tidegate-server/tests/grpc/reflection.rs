//! What tools learn by reflection.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Command, Stdio};

use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};
use tonic_reflection::pb::v1alpha;

use super::server::{Server, start};

const CONFIG: &str = "policies: {api: {limits: [{algorithm: gcra, rate: 1/s, burst: 1}]}}";

async fn ask(server: &Server, question: MessageRequest) -> MessageResponse {
    let mut client = ServerReflectionClient::new(server.channel.clone());
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let asked = tokio_stream::iter([request]);
    let mut answers = client.server_reflection_info(asked).await.unwrap().into_inner();
    let answer: ServerReflectionResponse = answers.message().await.unwrap().unwrap();
    answer.message_response.unwrap()
}

/// The file that has this symbol, and all that it imports.
async fn files(server: &Server, symbol: &str) -> FileDescriptorSet {
    let mut files: Vec<FileDescriptorProto> = Vec::new();
    let mut questions = vec![MessageRequest::FileContainingSymbol(symbol.to_owned())];
    let mut asked = BTreeSet::new();
    while let Some(question) = questions.pop() {
        let MessageResponse::FileDescriptorResponse(answer) = ask(server, question.clone()).await else {
            panic!("{question:?} is not known")
        };
        for file in answer.file_descriptor_proto {
            let file = FileDescriptorProto::decode(&*file).unwrap();
            let new = file.dependency.iter().filter(|name| asked.insert((*name).clone()));
            questions.extend(new.cloned().map(MessageRequest::FileByFilename));
            files.push(file);
        }
    }
    FileDescriptorSet { file: files }
}

#[tokio::test]
async fn the_services_are_listed_in_both_versions() {
    let server = start(CONFIG).await;
    let MessageResponse::ListServicesResponse(list) =
        ask(&server, MessageRequest::ListServices(String::new())).await
    else {
        panic!("no list")
    };
    let names: BTreeSet<&str> = list.service.iter().map(|service| &*service.name).collect();
    for name in [
        "envoy.service.ratelimit.v3.RateLimitService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
    ] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    let mut older = v1alpha::server_reflection_client::ServerReflectionClient::new(server.channel.clone());
    let question = v1alpha::server_reflection_request::MessageRequest::ListServices(String::new());
    let request = v1alpha::ServerReflectionRequest { host: String::new(), message_request: Some(question) };
    let mut answers = older.server_reflection_info(tokio_stream::iter([request])).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let v1alpha::server_reflection_response::MessageResponse::ListServicesResponse(list) = answer else {
        panic!("{answer:?}")
    };
    assert!(list.service.iter().any(|service| service.name == "envoy.service.ratelimit.v3.RateLimitService"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_messages_are_envoy_s() {
    let server = start(CONFIG).await;
    let files = files(&server, "envoy.service.ratelimit.v3.RateLimitService").await;
    assert_eq!(files.file.len(), 7, "with all that they import");
    let program = std::env::var_os("TIDEGATE_PYTHON").unwrap_or_else(|| {
        panic!("TIDEGATE_PYTHON names no program: run `cargo xtask test`, which gets and names it")
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/grpc/descriptors.py");
    // Newer than the package.
    let newer = "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.is_negative_hits";
    let mut child = Command::new(program)
        .args([script, newer])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&files.encode_to_vec()).unwrap();
    let ran = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success() && said.is_empty(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
}
