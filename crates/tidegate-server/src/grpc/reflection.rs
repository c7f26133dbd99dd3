//! gRPC server reflection: tools such as grpcurl learn the services and their messages from the server itself.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic_reflection::server::Builder;

use super::descriptors;

/// What answers a call.
pub(super) type Answer = dyn Fn(Request<Incoming>) -> BoxFuture<Response<Body>, Infallible> + Send + Sync;

/// Both versions of the protocol: tools ask for the newer first, some only for the older.
#[derive(Clone)]
pub(super) struct Reflection {
    v1: Arc<Answer>,
    v1alpha: Arc<Answer>,
}

impl Reflection {
    pub fn new() -> Self {
        let builder = || {
            Builder::configure()
                .register_file_descriptor_set(descriptors::files())
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        const WHOLE: &str = "the files are whole and their names differ: a test asks for all of them";
        let (v1, v1alpha) = (builder().build_v1().expect(WHOLE), builder().build_v1alpha().expect(WHOLE));
        Reflection {
            v1: Arc::new(move |request| v1.clone().call(request)),
            v1alpha: Arc::new(move |request| v1alpha.clone().call(request)),
        }
    }

    /// What answers calls at this path, if it is one of reflection.
    pub fn at(&self, path: &str) -> Option<Arc<Answer>> {
        let version = match () {
            () if path.starts_with("/grpc.reflection.v1.ServerReflection/") => &self.v1,
            () if path.starts_with("/grpc.reflection.v1alpha.ServerReflection/") => &self.v1alpha,
            () => return None,
        };
        Some(Arc::clone(version))
    }
}

impl fmt::Debug for Reflection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflection").finish_non_exhaustive()
    }
}
