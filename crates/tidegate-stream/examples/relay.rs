//! A TCP relay that limits bytes per second, in each direction, for each connection and for all of one client together.
//!
//! ```text
//! cargo run -p tidegate-stream --features tokio-io --example relay -- 127.0.0.1:7000 example.org:80
//! curl -H 'Host: example.org' http://127.0.0.1:7000/
//! ```

use std::error::Error;
use std::net::SocketAddr;

use tidegate::{Limit, Limiter, Policy, PolicyHandle, PolicySet, Rate};
use tidegate_stream::{ThrottledReader, ThrottledWriter};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// What a relay limits.
#[derive(Clone)]
pub struct Limits {
    down_per_connection: PolicyHandle,
    down_per_client: PolicyHandle,
    up_per_client: PolicyHandle,
}

impl Limits {
    /// Half a megabyte a second to each connection, one to each client, and a quarter from it.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let bytes = |name, burst, a_second| {
            Policy::single(name, Limit::token_bucket(burst, Rate::per_second(a_second)))
        };
        let limiter = Limiter::new(PolicySet::new([
            bytes("down per connection", 64_000, 500_000)?,
            bytes("down per client", 256_000, 1_000_000)?,
            bytes("up per client", 64_000, 250_000)?,
        ])?);
        Ok(Limits {
            down_per_connection: limiter.policy("down per connection")?,
            down_per_client: limiter.policy("down per client")?,
            up_per_client: limiter.policy("up per client")?,
        })
    }

    /// Relays between a client and a server, until both have ended.
    pub async fn relay(
        &self,
        client: TcpStream,
        from: SocketAddr,
        mut server: TcpStream,
    ) -> std::io::Result<(u64, u64)> {
        // A client has many ports; the address alone says who it is.
        let (connection, client_key) = (from.to_string(), from.ip().to_string());
        let down = ThrottledWriter::new(client, self.down_per_connection.clone(), connection)
            .also(self.down_per_client.clone(), &client_key);
        let mut both = ThrottledReader::new(down, self.up_per_client.clone(), &client_key);
        copy_bidirectional(&mut both, &mut server).await
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(listen), Some(server)) = (arguments.next(), arguments.next()) else {
        return Err("say where to listen and where to relay to: relay 127.0.0.1:7000 example.org:80".into());
    };
    let (limits, listener) = (Limits::new()?, TcpListener::bind(listen).await?);
    loop {
        let (client, from) = listener.accept().await?;
        let (limits, server) = (limits.clone(), server.clone());
        tokio::spawn(async move {
            let relayed = async { limits.relay(client, from, TcpStream::connect(server).await?).await };
            match relayed.await {
                Ok((up, down)) => println!("{from}: {up} bytes up, {down} down"),
                Err(error) => println!("{from}: {error}"),
            }
        });
    }
}
