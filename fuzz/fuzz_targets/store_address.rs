//! Addresses of stores: never a panic, never a password shown, and what is shown reads back as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_redis::Address;

/// Stands nowhere else in what it is put into, however that is decoded.
const PASSWORD: &str = "s3cret";

fuzz_target!(|text: &str| {
    read(text);
    let Some((scheme, rest)) = text.split_once("://") else { return };
    if text.contains('%') || text.to_ascii_lowercase().contains(PASSWORD) {
        return;
    }
    for user in ["", "user"] {
        let said = read(&format!("{scheme}://{user}:{PASSWORD}@{rest}"));
        assert!(!said.contains(PASSWORD), "{said}");
    }
});

/// All that anybody may get to see.
fn read(text: &str) -> String {
    match text.parse::<Address>() {
        Ok(address) => {
            let shown = address.to_string();
            let again: Address = shown.parse().expect("what is shown is an address");
            assert_eq!(again.to_string(), shown);
            if !shown.contains("***") {
                assert_eq!(again, address);
            }
            format!("{address} {address:?}")
        }
        Err(error) => format!("{error} {error:?}"),
    }
}
