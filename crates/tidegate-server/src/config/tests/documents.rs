//! The schema, the reference page and the examples agree with what is read.

use std::fs;
use std::path::{Path, PathBuf};

use boon::{Compiler, Schemas};
use serde_json::{Value, json};

use super::super::*;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The YAML of the examples and of the reference page, each with a name.
fn documents() -> Vec<(String, String)> {
    let mut documents = Vec::new();
    for entry in fs::read_dir(repository().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            documents.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    let page = fs::read_to_string(repository().join("docs/configuration.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    documents.extend(
        blocks.enumerate().map(|(n, block)| (format!("configuration.md, block {n}"), block.to_owned())),
    );
    assert!(documents.len() >= 8, "examples or blocks got lost: {}", documents.len());
    documents
}

/// Whether the schema takes a document.
fn schema_takes(document: &str) -> bool {
    let value: Value = serde_saphyr::from_str(document).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("tidegate.json", serde_json::from_str(&json_schema()).unwrap()).unwrap();
    let schema = compiler.compile("tidegate.json", &mut schemas).unwrap();
    schemas.validate(&value, schema).is_ok()
}

#[test]
fn schema_in_the_repository_is_the_one_generated() {
    let path = repository().join("docs/tidegate.schema.json");
    let generated = json_schema();
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == generated,
        "docs/tidegate.schema.json is not what the code generates: TIDEGATE_BLESS=1 cargo test -p tidegate-server schema"
    );
}

#[test]
fn every_example_is_read_and_fits_the_schema() {
    for (name, text) in documents() {
        if let Err(errors) = Config::parse(&text, &name) {
            panic!("{errors}");
        }
        assert!(schema_takes(&text), "the schema refuses {name}");
    }
}

#[test]
fn schema_refuses_what_is_refused() {
    let limit = |limit: &str| format!("policies: {{api: {{limits: [{limit}]}}}}");
    let right = limit("{algorithm: token_bucket, capacity: 1, refill: 1/s}");
    assert!(schema_takes(&right));
    let wrong = [
        limit("{algorithm: token_bucket, capacity: 1}"),
        limit("{algorithm: token_bucket, capacity: -1, refill: 1/s}"),
        limit("{algorithm: token_bucket, capacity: 1.5, refill: 1/s}"),
        limit("{algorithm: token_bucket, capacity: '1', refill: 1/s}"),
        limit("{algorithm: token_bucket, capacity: 1000000000001, refill: 1/s}"),
        limit("{algorithm: token_bucket, capacity: 1, refill: 1.5/s}"),
        limit("{algorithm: token_bucket, capacity: 1, refill: 1/m}"),
        limit("{algorithm: token_bucket, capacity: 1, refill: 1/s, window: 1d}"),
        limit("{algorithm: gcra, capacity: 1, refill: 1/s}"),
        limit("{algorithm: sliding_window_log, limit: 65537, window: 1d}"),
        limit("{algorithm: bucket, limit: 1, window: 1d}"),
        limit("{limit: 1, window: 1d}"),
        limit(""),
        format!("store: memroy\n{right}"),
        format!("memory: {{max_keys: 0}}\n{right}"),
        format!("memory: ~\n{right}"),
        format!("headers: {{family: all}}\n{right}"),
        format!("burst: 5\n{right}"),
        format!("rules: [{{key: ip}}]\n{right}"),
        format!("rules: [{{name: a}}]\n{right}"),
        format!("rules: [{{name: a b, key: ip}}]\n{right}"),
        format!("rules: [{{name: a, key: []}}]\n{right}"),
        format!("rules: [{{name: a, key: user}}]\n{right}"),
        format!("rules: [{{name: a, key: ip, deny_status: 500}}]\n{right}"),
        format!("rules: [{{name: a, key: ip, match: {{method: post}}}}]\n{right}"),
        format!("rules: [{{name: a, key: ip, match: {{path: v1}}}}]\n{right}"),
        format!("rules: [{{name: a, key: ip, cost: {{header: x-cost}}}}]\n{right}"),
        format!("trusted_proxies: {{client_ip: x-real-ip}}\n{right}"),
        format!("trusted_proxies: {{addresses: proxy.local}}\n{right}"),
        format!("envoy: {{edge: {{key: a}}}}\n{right}"),
        format!("envoy: {{edge: {{charge: never, descriptors: []}}}}\n{right}"),
        format!("envoy: {{edge: [{{policy: api}}]}}\n{right}"),
        format!("envoy: {{edge: [{{key: a, charge: all}}]}}\n{right}"),
        format!("envoy: {{edge: [{{key: a, shadow: 'yes'}}]}}\n{right}"),
        "policies: {}".to_owned(),
        "{}".to_owned(),
    ];
    for text in wrong {
        assert!(Config::parse(&text, "t").is_err(), "the checks take {text}");
        assert!(!schema_takes(&text), "the schema takes {text}");
    }
}

/// A field that the schema has and the reader does not know, or the page does not explain, is a mistake.
#[test]
fn every_field_of_the_schema_is_read_and_explained() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    let page = fs::read_to_string(repository().join("docs/configuration.md")).unwrap();
    let figures = &schema["$defs"]["Figures"];
    let homes = [
        (&schema, json!(null)),
        (&schema["$defs"]["Memory"], json!("memory")),
        (&schema["$defs"]["Redis"], json!("redis")),
        (&schema["$defs"]["Headers"], json!("headers")),
        (&schema["$defs"]["Policy"], json!("policy")),
        (figures, json!("limit")),
        (&schema["$defs"]["Rule"], json!("rule")),
        (&schema["$defs"]["Match"], json!("match")),
        (&schema["$defs"]["HeaderCost"], json!("cost")),
        (&schema["$defs"]["TrustedProxies"], json!("trusted_proxies")),
        (&schema["$defs"]["Domain"], json!("domain")),
        (&schema["$defs"]["Descriptor"], json!("descriptor")),
    ];
    let mut seen = 0;
    for (object, home) in homes {
        for field in object["properties"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{field}`")), "docs/configuration.md does not explain {field}");
            let nothing = json!({ field: null });
            let document = match home.as_str() {
                None => nothing,
                Some("rule") => json!({ "rules": [nothing] }),
                Some("domain") => json!({ "envoy": { "edge": nothing } }),
                Some("descriptor") => json!({ "envoy": { "edge": [nothing] } }),
                Some(home @ ("match" | "cost")) => json!({ "rules": [{ home: nothing }] }),
                Some("policy") => json!({ "policies": { "p": nothing } }),
                Some("limit") => json!({ "policies": { "p": { "limits": [nothing] } } }),
                Some(home) => json!({ home: nothing }),
            };
            let errors = Config::parse(&document.to_string(), "t").unwrap_err().to_string();
            assert!(errors.contains(&format!("{field}: no value")), "{field} is not read: {errors}");
            seen += 1;
        }
    }
    assert_eq!(seen, 8 + 2 + 6 + 2 + 5 + 8 + 7 + 4 + 3 + 2 + 2 + 12);
}
