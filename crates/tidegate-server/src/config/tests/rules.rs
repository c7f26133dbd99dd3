//! Rules for proxies: what they mean and what is wrong with them.

use super::super::*;

const POLICIES: &str = "policies:\n  api: {limits: [{algorithm: gcra, rate: 10/s, burst: 5}]}\n";

/// The messages that a rule gets, without the way to it.
fn of_rule(rule: &str) -> Vec<String> {
    let text = format!("{POLICIES}rules:\n  - {rule}\n");
    let Err(errors) = Config::parse(&text, "t.yaml") else { panic!("taken: {text}") };
    errors.errors().iter().map(|error| error.to_string().replacen("rules[0]", "", 1)).collect()
}

fn in_words(rule: &str) -> String {
    let config = Config::parse(&format!("{POLICIES}rules: [{rule}]"), "t.yaml");
    rule_in_words(&config.unwrap_or_else(|errors| panic!("{errors}")).gateway().rules()[0])
}

#[test]
fn rules_in_words() {
    for (rule, words) in [
        ("{name: all, key: ip}", "every request: 1 of api by ip; 429 when denied"),
        (
            "{name: writes, match: {method: [POST, PUT], path: /v1/*}, policy: api, key: [header:X-API-Key, ip], cost: 5}",
            "POST or PUT, path /v1/*: 5 of api by header x-api-key and ip; denied if one is missing; 429 when denied",
        ),
        (
            "{name: a, match: {host: [Api.Example.com, '*.example.org'], headers: {X-Plan: [free, trial*], x-b: '*'}}, key: [query:t, 'const:a b'], cost: {header: x-cost, max: 9}, on_missing: skip, deny_status: 403}",
            "host api.example.com or *.example.org, header x-plan free or trial*, header x-b *: what x-cost says (or 1, at most 9) of api by query t and \"a b\"; not charged if one is missing; 403 when denied",
        ),
        (
            "{name: a, key: [method, path, host, header:a], on_missing: shared}",
            "every request: 1 of api by method and path and host and header a; all without one share; 429 when denied",
        ),
    ] {
        assert_eq!(in_words(rule), words);
    }
}

#[test]
fn wrong_rules() {
    let table: [(&str, &[&str]); 25] = [
        ("{key: ip}", &[": name is missing (write e.g. name: writes)"]),
        ("{name: a}", &[": key is missing (say who is charged, e.g. key: header:x-api-key)"]),
        (
            "{name: a/b, key: ip}",
            &[
                ".name: \"a/b\": a rule's name is 1 to 128 letters, digits, '-', '_' or '.', since addresses end in it (rename it)",
            ],
        ),
        (
            "{name: a, key: ip, policy: apo}",
            &[".policy: \"apo\": no policy has this name (did you mean api?)"],
        ),
        ("{name: a, key: []}", &[".key: an empty list (give at least one part, e.g. ip)"]),
        (
            "{name: a, key: [ip, header]}",
            &[".key[1]: \"header\": no part of a key (did you mean \"header:NAME\"?)"],
        ),
        ("{name: a, key: \"header:\"}", &[".key: \"header:\": header of what? (write e.g. header:name)"]),
        (
            "{name: a, key: header:x y}",
            &[".key: \"header:x y\": not a header's name (write letters, digits and '-', e.g. x-api-key)"],
        ),
        (
            "{name: a, key: [ip, ip, ip, ip, ip, ip, ip, ip, ip]}",
            &[".key: a key has one to 8 parts, this has 9 (leave some out)"],
        ),
        (
            "{name: a, key: ip, match: {method: post}}",
            &[".match.method: \"post\": methods are told apart by case (write POST)"],
        ),
        (
            "{name: a, key: ip, match: {method: []}}",
            &[".match.method: an empty list (write e.g. POST, or remove the line for every method)"],
        ),
        (
            "{name: a, key: ip, match: {path: [/v1, v1/*]}}",
            &[".match.path[1]: \"v1/*\": a path begins with / (or with * for any ending) (write /v1/*)"],
        ),
        (
            "{name: a, key: ip, match: {path: /v1/*/x}}",
            &[".match.path: \"/v1/*/x\": a * stands only at the beginning or the end (write e.g. /v1/*)"],
        ),
        (
            "{name: a, key: ip, match: {path: '/v1?a'}}",
            &[
                ".match.path: \"/v1?a\": a path has no query: only what stands before the ? is compared (cut it off, or key by query:NAME)",
            ],
        ),
        (
            "{name: a, key: ip, match: {path: /a%20b}}",
            &[
                ".match.path: \"/a%20b\": paths are compared with their escapes undone (write it without them)",
            ],
        ),
        (
            "{name: a, key: ip, match: {path: /a//b}}",
            &[".match.path: \"/a//b\": paths are compared with // and dots resolved (write it without them)"],
        ),
        (
            "{name: a, key: ip, match: {host: example.com:80}}",
            &[".match.host: \"example.com:80\": hosts are compared without their port (cut it off)"],
        ),
        (
            "{name: a, key: ip, match: {headers: {x y: '*'}}}",
            &[".match.headers[\"x y\"]: not a header's name (write letters, digits and '-', e.g. x-api-key)"],
        ),
        (
            "{name: a, key: ip, match: {headers: {x-n: 5}}}",
            &[".match.headers.x-n: 5: not a text (write \"5\")"],
        ),
        ("{name: a, key: ip, cost: -1}", &[".cost: -1: cannot be negative (write 0 or more)"]),
        (
            "{name: a, key: ip, cost: {default: 5}}",
            &[
                ".cost: header is missing (write e.g. cost: {header: x-cost, max: 100})",
                ".cost: max is missing (write e.g. cost: {header: x-cost, max: 100})",
            ],
        ),
        (
            "{name: a, key: ip, cost: {header: x-cost, default: 0, max: 0}}",
            &[
                ".cost.default: 0: nothing would be charged (write 1 or more)",
                ".cost.max: 0: nothing would be charged (write 1 or more)",
            ],
        ),
        (
            "{name: a, key: ip, cost: {header: x-cost, default: 9, max: 5}}",
            &[".cost.default: 9: more than max, 5 (raise max or lower this)"],
        ),
        (
            "{name: a, key: ip, on_missing: allow, deny_status: 503}",
            &[
                ".on_missing: \"allow\": unknown choice (use deny, skip or shared)",
                ".deny_status: 503: a denial has one of two statuses (write 429 or 403, without quotes)",
            ],
        ),
        (
            "{name: a, key: ip, paths: /v1}",
            &[".paths: unknown field (use name, match, policy, key, cost, on_missing or deny_status)"],
        ),
    ];
    for (rule, expected) in table {
        assert_eq!(of_rule(rule), expected, "{rule}");
    }
}

#[test]
fn wrong_proxies_and_twins() {
    let messages = |rest: &str| Config::parse(&format!("{POLICIES}{rest}"), "t").unwrap_err().to_string();
    assert_eq!(
        messages("trusted_proxies: {addresses: [10.0.0.1/8, proxy.local], client_ip: 'x y'}"),
        "t:3: trusted_proxies.addresses[0]: \"10.0.0.1/8\": the address has bits beyond its prefix (write 10.0.0.0/8)\n\
         t:3: trusted_proxies.addresses[1]: \"proxy.local\": no range of addresses (write ADDRESS/BITS, such as 10.0.0.0/8)\n\
         t:3: trusted_proxies.client_ip: \"x y\": not a header's name (write letters, digits and '-', e.g. x-api-key)"
    );
    assert_eq!(
        messages("trusted_proxies: {}"),
        "t:3: trusted_proxies: addresses is missing (say who is believed, e.g. addresses: [127.0.0.1])"
    );
    assert_eq!(
        messages("rules: [{name: a, key: ip}, {name: a, key: path}]"),
        "t:3: rules[1].name: \"a\": two rules are named \"a\" (rename one)"
    );
    let several = "policies: {a: &p {limits: [{algorithm: gcra, rate: 10/s, burst: 5}]}, b: *p}\nrules: [{name: r, key: ip}]";
    assert_eq!(
        Config::parse(several, "t").unwrap_err().to_string(),
        "t:2: rules[0]: policy is missing, and there are several (write e.g. policy: a)"
    );
}

#[test]
fn the_default_policy_is_the_one_for_rules_too() {
    let text = "policies: {a: &p {limits: [{algorithm: gcra, rate: 10/s, burst: 5}]}, default: *p}\nrules: [{name: r, key: ip}]";
    assert_eq!(Config::parse(text, "t").unwrap().gateway().rules()[0].policy(), "default");
}

#[test]
fn an_address_that_is_the_proxys_own_is_warned_of() {
    let of = |rest: &str| {
        let config = Config::parse(&format!("{POLICIES}{rest}"), "t").unwrap();
        warnings(&config)
            .iter()
            .filter(|it| it.path().starts_with("rules"))
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("rules: [{name: a, key: path}, {name: b, key: [path, ip]}]"),
        [
            "warning: rules[1].key: no proxy is trusted, so ip is the address of whoever asks about b: the proxy's own (give trusted_proxies)"
        ]
    );
    let trusting = "trusted_proxies: {addresses: ['::1', 10.0.0.0/8], client_ip: X-Real-IP}\n";
    assert!(of(&format!("{trusting}rules: [{{name: b, key: [path, ip]}}]")).is_empty());
    let config = Config::parse(&format!("{POLICIES}{trusting}"), "t").unwrap();
    assert_eq!(
        proxies_in_words(config.gateway().proxies()),
        "::1, 10.0.0.0/8 are trusted, x-real-ip tells the client's address"
    );
}
