//! Calls with one message each way: framed and unframed here, without the buffers that streams of messages need.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame};
use prost::Message;
use tonic::Status;
use tonic::body::Body;

use crate::gathered::Gathered;

/// Bytes before each message: whether it is compressed, and its length.
const HEAD: usize = 5;

/// Takes the one message of a call, of at most `most` bytes.
///
/// # Errors
/// There is none or more than one, it is longer, or it is no such message.
pub(super) fn message<M, B>(
    request: Request<B>,
    most: usize,
) -> impl Future<Output = Result<M, Status>> + use<M, B>
where
    M: Message + Default,
    B: HttpBody<Data = Bytes> + Unpin,
{
    // The head has said all it has to say, and is not to be kept until the message has come.
    let (taken, body) = (refuse_encoded(request.headers()), request.into_body());
    async move {
        taken?;
        decode(&collect(body, most).await?, most)
    }
}

/// The one message in these bytes.
fn decode<M: Message + Default>(framed: &[u8], most: usize) -> Result<M, Status> {
    let broken_off = || Status::internal("the message broke off (send the whole of it)");
    let Some((head, message)) = framed.split_first_chunk::<HEAD>() else {
        return Err(match framed.is_empty() {
            true => Status::internal("there is no message (send one)"),
            false => broken_off(),
        });
    };
    if message.len() < length(*head, most)? {
        return Err(broken_off());
    }
    M::decode(message).map_err(|error| Status::internal(format!("the message cannot be read: {error}")))
}

/// What compresses messages is not taken.
fn refuse_encoded(headers: &HeaderMap) -> Result<(), Status> {
    match headers.get("grpc-encoding") {
        Some(encoding) if encoding != "identity" => {
            let mut status = Status::unimplemented(format!(
                "grpc-encoding: {:?}: messages are taken as they are (send them uncompressed)",
                String::from_utf8_lossy(encoding.as_bytes())
            ));
            let taken = tonic::metadata::MetadataValue::from_static("identity");
            status.metadata_mut().insert("grpc-accept-encoding", taken);
            Err(status)
        }
        _ => Ok(()),
    }
}

/// The length that stands before a message.
fn length([compressed, length @ ..]: [u8; HEAD], most: usize) -> Result<usize, Status> {
    if compressed != 0 {
        return Err(Status::internal(format!(
            "the message's compressed-flag is {compressed}, and no grpc-encoding was given"
        )));
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > most {
        return Err(Status::out_of_range(format!(
            "the message has {length} bytes, and may have {most} (ask in several calls)"
        )));
    }
    Ok(length)
}

/// Gathers all bytes of a call.
async fn collect<B: HttpBody<Data = Bytes> + Unpin>(mut body: B, most: usize) -> Result<Bytes, Status> {
    let mut gathered = Gathered::default();
    while !body.is_end_stream() {
        let Some(frame) = body.frame().await else { break };
        let frame = frame.map_err(|_| Status::cancelled("the call broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        gathered.push(data);
        let arrived = gathered.as_slice();
        // One that is too long is refused before it has come.
        let Some(head) = arrived.first_chunk() else { continue };
        if arrived.len() > HEAD + length(*head, most)? {
            return Err(Status::internal("more than one message (the call takes one)"));
        }
    }
    Ok(gathered.into_bytes())
}

/// The answer to a call: one message, and that all went well.
pub(super) fn reply(message: &impl Message) -> Response<Body> {
    let length = message.encoded_len();
    let mut framed = Vec::with_capacity(HEAD + length);
    framed.push(0);
    // A reply is some kilobytes at most: a thousand descriptors and their statuses.
    framed.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    // A Vec grows as it must, so there is room.
    let _ = message.encode(&mut framed);
    let mut response = Response::new(Body::new(Reply::Message(framed.into())));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// A message, then the trailer that says that all went well.
#[derive(Debug)]
enum Reply {
    Message(Bytes),
    Trailer,
    Over,
}

impl HttpBody for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        const OK: HeaderValue = HeaderValue::from_static("0");
        let frame = match std::mem::replace(&mut *self, Reply::Over) {
            Reply::Message(message) => {
                *self = Reply::Trailer;
                Frame::data(message)
            }
            Reply::Trailer => Frame::trailers(HeaderMap::from_iter([(Status::GRPC_STATUS.clone(), OK)])),
            Reply::Over => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Reply::Over)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures_util::FutureExt;
    use http_body_util::StreamBody;
    use tonic::Code;

    use super::*;
    use crate::grpc::messages::RateLimitRequest;

    const MOST: usize = 64;

    fn framed(message: &RateLimitRequest) -> Vec<u8> {
        let bytes = message.encode_to_vec();
        [&[0][..], &(bytes.len() as u32).to_be_bytes(), &bytes].concat()
    }

    /// What is taken from frames of these bytes, and a last one that ends the call.
    fn take(frames: &[&[u8]]) -> Result<RateLimitRequest, Status> {
        let frames: Vec<_> = frames
            .iter()
            .map(|bytes| Ok::<_, Infallible>(Frame::data(Bytes::copy_from_slice(bytes))))
            .collect();
        let body = StreamBody::new(futures_util::stream::iter(frames));
        message(Request::new(body), MOST).now_or_never().expect("nothing is waited for")
    }

    fn asked() -> RateLimitRequest {
        RateLimitRequest { domain: "edge".to_owned(), hits_addend: 3, ..RateLimitRequest::default() }
    }

    #[test]
    fn a_message_in_any_pieces_is_the_message() {
        let whole = framed(&asked());
        for size in 1..=whole.len() {
            let pieces: Vec<&[u8]> = whole.chunks(size).collect();
            assert_eq!(take(&pieces).unwrap(), asked(), "pieces of {size}");
        }
        let empty = RateLimitRequest::default();
        assert_eq!(take(&[&framed(&empty)]).unwrap(), empty);
        assert_eq!(take(&[b"", &whole, b""]).unwrap(), asked());
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let whole = framed(&asked());
        let refused = |frames: &[&[u8]]| {
            let status = take(frames).unwrap_err();
            (status.code(), status.message().to_owned())
        };
        for broken in 1..whole.len() {
            let (code, message) = refused(&[&whole[..broken]]);
            assert_eq!((code, &*message), (Code::Internal, "the message broke off (send the whole of it)"));
        }
        assert_eq!(refused(&[]).1, "there is no message (send one)");
        let twice = [&whole[..], &whole].concat();
        for frames in [&[&twice[..]][..], &[&whole, &whole], &[&whole, b"x"]] {
            assert_eq!(refused(frames).1, "more than one message (the call takes one)");
        }
        let (code, message) = refused(&[&[1, 0, 0, 0, 0]]);
        assert_eq!(code, Code::Internal);
        assert!(message.contains("compressed-flag is 1"), "{message}");
        let (code, message) = refused(&[&[0, 0, 0, 0, 1, 0xff]]);
        assert!(code == Code::Internal && message.contains("cannot be read"), "{message}");
    }

    #[test]
    fn one_that_declares_too_much_is_refused_by_its_head() {
        for length in [MOST as u32 + 1, u32::MAX] {
            let status = take(&[&[&[0][..], &length.to_be_bytes()].concat()]).unwrap_err();
            assert_eq!(status.code(), Code::OutOfRange);
            assert!(status.message().contains(&length.to_string()), "{}", status.message());
        }
    }

    #[test]
    fn what_is_compressed_is_refused_by_its_header() {
        let mut request = Request::new(http_body_util::Full::new(Bytes::from(framed(&asked()))));
        request.headers_mut().insert("grpc-encoding", HeaderValue::from_static("gzip"));
        let status = message::<RateLimitRequest, _>(request, MOST).now_or_never().unwrap().unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
        assert_eq!(status.metadata().get("grpc-accept-encoding").unwrap(), "identity");
    }

    #[test]
    fn a_reply_is_the_message_and_the_word_that_all_went_well() {
        let collected = reply(&asked()).into_body().collect().now_or_never().unwrap().unwrap();
        assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
        assert_eq!(collected.to_bytes(), framed(&asked()));
    }
}
