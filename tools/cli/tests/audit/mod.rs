//! What stands in for the audit library where nothing is checked.

use std::process::Command;
use std::sync::OnceLock;

/// An audit library that changes nothing: the loader loads it into every program.
pub(crate) fn library() -> &'static [u8] {
    static AUDIT: OnceLock<Vec<u8>> = OnceLock::new();
    AUDIT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let [source, library] = ["audit.c", "audit.so"].map(|name| folder.path().join(name));
        let text = "unsigned la_version(unsigned version) { return version; }\n";
        std::fs::write(&source, text).unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-o"]).arg(&library);
        assert!(cc.arg(&source).status().unwrap().success());
        std::fs::read(&library).unwrap()
    })
}
