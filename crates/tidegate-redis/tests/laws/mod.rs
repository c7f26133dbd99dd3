//! What holds of addresses of stores, whatever the text: tried on seeds by tests, on anything by fuzz/.

use tidegate_redis::Address;

/// Stands nowhere else in what it is put into, however that is decoded.
const PASSWORD: &str = "s3cret";

/// Panics if a password is shown, or what is shown does not read back as the same.
pub fn hold(text: &str) {
    read(text);
    let Some((scheme, rest)) = text.split_once("://") else { return };
    if text.contains('%') || text.to_ascii_lowercase().contains(PASSWORD) {
        return;
    }
    for user in ["", "user"] {
        let said = read(&format!("{scheme}://{user}:{PASSWORD}@{rest}"));
        assert!(!said.contains(PASSWORD), "{said}");
    }
}

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
