//! A way to a server on which things go wrong.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// What goes wrong from now on, on connections old and new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mischief {
    /// Nothing.
    None,
    /// Whatever is sent, either way, is taken and never arrives. Connections are accepted and stay.
    BlackHole,
    /// The next request arrives; when the server answers, the connection ends instead. Then nothing more goes wrong.
    LoseNextReply,
    /// Every answer comes so much later.
    Delay(Duration),
    /// Connections end as soon as they are made, or anything is sent on them.
    Refuse,
}

/// Passes connections on to a server.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    to: SocketAddr,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    mischief: Mischief,
    closing: bool,
    /// Both ends of every connection ever made; a test makes few.
    streams: Vec<TcpStream>,
    accepted: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// A proxy before the server at `to`, on a free port.
    pub fn to(to: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap_or_else(|error| panic!("no port for a proxy: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let state = State { mischief: Mischief::None, closing: false, streams: Vec::new(), accepted: 0 };
        let shared = Arc::new(Shared { to, state: Mutex::new(state) });
        let theirs = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &theirs));
        Self { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `redis://` and where it listens.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// What is to go wrong from now on.
    pub fn set(&self, mischief: Mischief) {
        self.shared.state().mischief = mischief;
    }

    /// What goes wrong now.
    pub fn mischief(&self) -> Mischief {
        self.shared.state().mischief
    }

    /// Ends all connections there are.
    pub fn cut(&self) {
        for stream in self.shared.state().streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both); // it may have ended already
        }
    }

    /// How many connections it was ever asked for.
    pub fn accepted(&self) -> usize {
        self.shared.state().accepted
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().closing = true;
        self.cut();
        let _ = TcpStream::connect(self.address); // so that the thread that accepts looks up
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for client in listener.incoming().flatten() {
        let mut state = shared.state();
        if state.closing {
            return;
        }
        state.accepted += 1;
        if state.mischief == Mischief::Refuse {
            continue;
        }
        let Ok(server) = TcpStream::connect(shared.to) else { continue };
        for stream in [&client, &server] {
            let _ = stream.set_nodelay(true);
            state.streams.extend(stream.try_clone());
        }
        drop(state);
        let (Ok(requests), Ok(to_server)) = (client.try_clone(), server.try_clone()) else { continue };
        let (theirs, ours) = (Arc::clone(shared), Arc::clone(shared));
        thread::spawn(move || pass(requests, to_server, &theirs, false));
        thread::spawn(move || pass(server, client, &ours, true));
    }
}

/// Passes on what comes, one way, until either end closes.
fn pass(mut from: TcpStream, mut to: TcpStream, shared: &Shared, replies: bool) {
    let mut bytes = [0; 16 * 1024];
    let mut swallowed = false;
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let mischief = {
            let mut state = shared.state();
            let mischief = state.mischief;
            if replies && mischief == Mischief::LoseNextReply {
                state.mischief = Mischief::None;
            }
            mischief
        };
        match mischief {
            Mischief::BlackHole => {
                swallowed = true;
                continue;
            }
            Mischief::LoseNextReply if replies => break,
            Mischief::Refuse => break,
            Mischief::Delay(by) if replies => thread::sleep(by),
            _ => {}
        }
        // What comes after a gap would not be understood.
        if swallowed || to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    for stream in [&from, &to] {
        let _ = stream.shutdown(Shutdown::Both); // the other direction may have been first
    }
}
