//! The section `envoy`: what it means and what is wrong with it.

use super::super::*;

const POLICIES: &str = "policies:\n  api: {limits: [{algorithm: gcra, rate: 10/s, burst: 5}]}\n";

/// The messages that a domain gets, without the way to it.
fn of_domain(domain: &str) -> Vec<String> {
    let text = format!("{POLICIES}envoy: {{edge: {domain}}}\n");
    let Err(errors) = Config::parse(&text, "t.yaml") else { panic!("taken: {text}") };
    errors.errors().iter().map(|error| error.to_string().replacen("envoy.edge", "", 1)).collect()
}

fn in_words(domain: &str) -> Vec<String> {
    let config = Config::parse(&format!("{POLICIES}envoy: {{edge: {domain}}}"), "t.yaml");
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    let (_, level) = config.envoy().domains().next().unwrap();
    descriptors_in_words(level)
}

#[test]
fn domains_in_words() {
    let always = "charged whether it fits or not";
    for (domain, words) in [
        ("[]", &[][..]),
        ("[{key: a, value: 7, policy: api}]", &["a = 7: api"]),
        ("[{key: a, value: '', policy: api, by: [a]}]", &["a: api by a"]),
        (
            "[{key: a, descriptors: [{key: b, value: x*, share: true, policy: api, by: [b, a], shadow: true}]}]",
            &["a, b = x* (all as one): api by b and a, never refused"],
        ),
        (
            "[{key: a, policy: api, quota: true, name: n, replaces: [m, k]}]",
            &["a: api, refused only with all others of its kind, named n, instead of m and k"],
        ),
        ("{descriptors: [{key: a, policy: api}]}", &["a: api"]),
        (
            "{charge: always, descriptors: [{key: a, policy: api, descriptors: [{key: b, policy: api}]}, {key: c, policy: api, charge: fits}]}",
            &[&format!("a: api, {always}"), &format!("a, b: api, {always}"), "c: api"],
        ),
        (
            "[{key: a, charge: always, descriptors: [{key: b, policy: api}, {key: c, policy: api, charge: fits}]}]",
            &[&format!("a, b: api, {always}"), "a, c: api"],
        ),
    ] {
        assert_eq!(in_words(domain), words, "{domain}");
    }
}

#[test]
fn wrong_domains() {
    for (domain, said) in [
        ("~", ": no value (write - {key: remote_address, policy: api})"),
        ("{}", ": descriptors is missing (write descriptors: [{key: remote_address, policy: api}])"),
        ("{charge: never, descriptors: []}", ".charge: \"never\": unknown charge (use fits or always)"),
        ("[{policy: api}]", "[0]: key is missing (write e.g. key: remote_address)"),
        ("[{key: '', policy: api}]", "[0]: key is missing (write e.g. key: remote_address)"),
        ("[{key: a, policy: apo}]", "[0].policy: \"apo\": no policy has this name (did you mean api?)"),
        ("[{key: a, policy: api, unlimited: true}]", "[0]: both a policy and unlimited (remove one of them)"),
        (
            "[{key: a, policy: api, unlimited: yes}]",
            "[0].unlimited: \"yes\": neither true nor false (write true or false, without quotes)",
        ),
        (
            "[{key: a, policy: api, by: [b]}]",
            "[0].by[0]: \"b\": no entry up to here has this key (did you mean a?)",
        ),
        (
            "[{key: a, policy: api, share: true}]",
            "[0]: share is for values with a * (give a value with a *, or remove share)",
        ),
        (
            "[{key: a, policy: api}, {key: a}]",
            "[1]: two descriptors have the key \"a\" (put what is below them together)",
        ),
        (
            "[{key: a, value: x*}, {key: a, value: x*}]",
            "[1]: two descriptors have the key \"a\" and value \"x*\" (put what is below them together)",
        ),
        (
            "[{key: a, policy: api, name: n, replaces: [n]}]",
            "[0].replaces[0]: \"n\": it would replace itself (name others)",
        ),
        ("[{key: a, shadow: true}]", "[0]: shadow without a policy (name a policy, or remove shadow)"),
        ("[{key: a, unlimted: true}]", "[0].unlimted: unknown field (did you mean unlimited?)"),
    ] {
        let told = of_domain(domain);
        assert_eq!(told, [said], "{domain}");
    }
}
